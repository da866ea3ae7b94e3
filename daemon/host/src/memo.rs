//! Results of earlier runs over the same bytes.

use std::sync::Arc;

/// The caller's record of earlier runs. It is called on the plugin's thread.
pub trait Memo: Send + Sync {
    /// Returns the entry of a piece whose records are all stored. With `None` the plugin reads the piece.
    fn recall(&self, digest: &[u8; 32]) -> Option<Remembered>;
}

/// A piece that an earlier run read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The plugin's own note, which is returned to the plugin.
    pub note: Vec<u8>,
    /// The caller's account of the results, which is returned to the caller with [`crate::Emitted::Again`].
    pub account: Vec<u8>,
}

/// The memo of one run, and the current piece.
pub(crate) struct Recalling {
    memo: Arc<dyn Memo>,
    key: [u8; 32],
    pub(crate) piece: Option<Piece>,
}

impl Recalling {
    /// Creates the memo for a plugin and a format. Another version of either reads each piece again.
    pub(crate) fn new(memo: Arc<dyn Memo>, software: &str, format: &str) -> Self {
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
    pub(crate) fn begin(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let digest = self.digest_of(bytes);
        let (note, account) = self.memo.recall(&digest).map(|known| (known.note, known.account)).unzip();
        self.piece = Some(Piece { digest, account });
        note
    }
}

/// The piece that the plugin is reading.
pub(crate) struct Piece {
    pub(crate) digest: [u8; 32],
    /// The earlier result, if the piece was recalled.
    pub(crate) account: Option<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Memo for Nothing {
        fn recall(&self, _: &[u8; 32]) -> Option<Remembered> {
            None
        }
    }

    #[test]
    fn the_parts_of_a_digest_do_not_run_together() {
        let digest_of = |software: &str, format: &str, piece: &[u8]| {
            Recalling::new(Arc::new(Nothing), software, format).digest_of(piece)
        };
        let all = [digest_of("a", "b", b"c"), digest_of("ab", "", b"c"), digest_of("a", "bc", b"")];
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    }
}
