//! What earlier runs made of the same bytes.

/// What the caller of a run remembers of earlier ones. Asked on the plugin's thread.
pub trait Memo: Send + Sync {
    /// What is remembered of a piece whose records are all stored; none: the plugin reads it.
    fn recall(&self, digest: &[u8; 32]) -> Option<Remembered>;
}

/// A piece that an earlier run read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The plugin's own note, which it gets back.
    pub note: Vec<u8>,
    /// The caller's account of what came of it, which it gets back with [`crate::Emitted::Again`].
    pub account: Vec<u8>,
}

/// What a piece is known by: plugin, format and bytes, so that another version of either reads it anew.
pub(crate) fn digest_of(software: &str, format: &str, piece: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in [software.as_bytes(), format.as_bytes(), piece] {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// The memo of one run, and the piece that is at hand.
pub(crate) struct Recalling {
    pub(crate) memo: std::sync::Arc<dyn Memo>,
    pub(crate) software: String,
    pub(crate) format: String,
    pub(crate) piece: Option<Piece>,
}

/// A piece on its way through the plugin.
pub(crate) struct Piece {
    pub(crate) digest: [u8; 32],
    /// What came of it before, if the plugin was told.
    pub(crate) account: Option<Vec<u8>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_digest_do_not_run_together() {
        let all = [digest_of("a", "b", b"c"), digest_of("ab", "", b"c"), digest_of("a", "bc", b"")];
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    }
}
