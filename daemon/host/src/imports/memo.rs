//! The import `memo`: tells the plugin what is known of a piece, and notes what came of it.

use crate::{
    bindings::satchel::importer::{memo as wit, sink::Verdict},
    delivery::Delivery,
    limits::KIB,
    memo::Piece,
    run::State,
};

/// Bytes of one note; a longer one is not kept.
const MAX_NOTE: usize = 64 * KIB;

impl wit::Host for State {
    fn recall(&mut self, piece: Vec<u8>) -> wasmtime::Result<Option<Vec<u8>>> {
        let Some(recalling) = &mut self.recalling else { return Ok(None) };
        let note = recalling.begin(&piece);
        // Most known pieces are not read again: their beginning need not be told.
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
