//! Results of earlier runs over the same bytes.

use std::sync::Arc;

/// The caller's record of earlier runs. It is called on the plugin's thread.
pub trait PieceMemo: Send + Sync {
    /// Returns the entry of a piece whose records are all stored. With `None` the plugin reads the piece.
    fn recall(&self, digest: &[u8; 32]) -> Option<MemoEntry>;
}

/// A piece that an earlier run read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoEntry {
    /// The plugin's own note, which is returned to the plugin.
    pub note: Vec<u8>,
    /// The caller's own description of the results, which is returned to the caller with
    /// [`crate::Emitted::PieceUnchanged`].
    pub result: Vec<u8>,
}

/// The memo of one run, and the current piece.
pub(crate) struct MemoSession {
    memo: Arc<dyn PieceMemo>,
    key: [u8; 32],
    pub(crate) piece: Option<CurrentPiece>,
}

impl MemoSession {
    /// Creates the memo for a plugin and a format. Another version of either reads each piece again.
    pub(crate) fn new(memo: Arc<dyn PieceMemo>, software: &str, format: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [software, format] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        Self { memo, key: hasher.finalize().into(), piece: None }
    }

    /// Returns the key of a piece. It hashes the bytes without a prefix, because a prefix would shift them off the
    /// boundaries at which many blocks are hashed at once.
    fn digest_of(&self, piece: &[u8]) -> [u8; 32] {
        blake3::keyed_hash(&self.key, piece).into()
    }

    /// Begins a piece, and returns the note that the plugin left on it.
    pub(crate) fn begin_piece(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let digest = self.digest_of(bytes);
        let (note, result) = self.memo.recall(&digest).map(|entry| (entry.note, entry.result)).unzip();
        self.piece = Some(CurrentPiece { digest, result });
        note
    }
}

/// The piece that the plugin is reading.
pub(crate) struct CurrentPiece {
    pub(crate) digest: [u8; 32],
    /// The earlier result, if the piece was recalled.
    pub(crate) result: Option<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    struct EmptyMemo;

    impl PieceMemo for EmptyMemo {
        fn recall(&self, _: &[u8; 32]) -> Option<MemoEntry> {
            None
        }
    }

    #[test]
    fn the_parts_of_a_digest_are_delimited() {
        let digest_of = |software: &str, format: &str, piece: &[u8]| {
            MemoSession::new(Arc::new(EmptyMemo), software, format).digest_of(piece)
        };
        let all = [digest_of("a", "b", b"c"), digest_of("ab", "", b"c"), digest_of("a", "bc", b"")];
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    }
}
