//! The import `memo`: returns the plugin's note on a piece that was read before, and stores a new note.

use crate::{
    bindings::satchel::importer::{memo as wit, sink::Verdict},
    delivery::Delivery,
    limits::KIB,
    memo::Piece,
    run::State,
};

/// Largest note, in bytes; a longer one is not stored.
const MAX_NOTE: usize = 64 * KIB;

impl wit::Host for State {
    fn recall(&mut self, piece: Vec<u8>) -> wasmtime::Result<Option<Vec<u8>>> {
        let Some(recalling) = &mut self.recalling else { return Ok(None) };
        let note = recalling.begin(&piece);
        // Most known pieces are not read again, so the start of a piece is delivered only when something is emitted
        // from it.
        self.unsaid = true;
        Ok(note)
    }

    fn again(&mut self) -> wasmtime::Result<Verdict> {
        let piece = self.recalling.as_mut().and_then(|recalling| recalling.piece.take());
        match piece.and_then(|piece| piece.account) {
            Some(account) => {
                self.unsaid = false;
                self.answer(Delivery::Again(account))
            }
            None => Ok(Verdict::Proceed),
        }
    }

    fn note(&mut self, note: Vec<u8>) -> wasmtime::Result<Verdict> {
        let piece = self.recalling.as_mut().and_then(|recalling| recalling.piece.take());
        match piece {
            Some(Piece { digest, .. }) if note.len() <= MAX_NOTE => {
                self.answer(Delivery::Noted { digest, note })
            }
            _ => Ok(Verdict::Proceed),
        }
    }
}
