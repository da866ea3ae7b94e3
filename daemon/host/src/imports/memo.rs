//! The import `memo`: returns the plugin's note on a piece that was read before, and stores a new note.

use crate::{
    bindings::satchel::importer::{memo as wit, sink::Verdict},
    limits::KIB,
    memo::CurrentPiece,
    run::CallState,
    sink_call::SinkCall,
};

/// Largest note, in bytes; a longer one is not stored.
const MAX_NOTE_BYTES: usize = 64 * KIB;

impl wit::Host for CallState {
    fn recall(&mut self, piece: Vec<u8>) -> wasmtime::Result<Option<Vec<u8>>> {
        let Some(session) = &mut self.memo else { return Ok(None) };
        let note = session.begin_piece(&piece);
        // Most known pieces are not read again, so the start of a piece is delivered only when something is emitted
        // from it.
        self.piece_start_pending = true;
        Ok(note)
    }

    fn again(&mut self) -> wasmtime::Result<Verdict> {
        let piece = self.memo.as_mut().and_then(|session| session.piece.take());
        match piece.and_then(|piece| piece.result) {
            Some(result) => {
                self.piece_start_pending = false;
                self.emit_to_sink(SinkCall::PieceUnchanged(result))
            }
            None => Ok(Verdict::Proceed),
        }
    }

    fn note(&mut self, note: Vec<u8>) -> wasmtime::Result<Verdict> {
        let piece = self.memo.as_mut().and_then(|session| session.piece.take());
        match piece {
            Some(CurrentPiece { digest, .. }) if note.len() <= MAX_NOTE_BYTES => {
                self.emit_to_sink(SinkCall::PieceNoted { digest, note })
            }
            _ => Ok(Verdict::Proceed),
        }
    }
}
