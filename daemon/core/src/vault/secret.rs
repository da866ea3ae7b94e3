//! Text that is never shown, and is wiped from memory when it is no longer needed.

use std::{
    fmt,
    io::{self, Read as _},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use zeroize::Zeroizing;

use super::VaultError;
use crate::plain_file;

/// Largest file that a secret is read from, in bytes.
const MAX_BYTES: u64 = 4_096;

/// A passphrase, a recovery phrase, or the text of a key.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Creates a secret from a text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Reads one line from a file that only its owner can read.
    ///
    /// # Errors
    /// Other users can read the file, it is too long, or the file system refuses.
    pub fn from_file(path: &Path) -> Result<Self, VaultError> {
        let failed = |source| VaultError::Read { path: path.to_owned(), source };
        let file = plain_file::open_argument(path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        #[expect(clippy::verbose_bit_mask, reason = "modes are read in octal")]
        let closed = mode & 0o077 == 0;
        if !closed {
            return Err(VaultError::ReadableByOthers { path: path.to_owned(), mode });
        }
        let mut text = Zeroizing::new(String::new());
        file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > MAX_BYTES {
            return Err(failed(io::Error::other("it is too long for a key or a passphrase")));
        }
        Ok(Self::new(text.trim_end_matches(['\r', '\n']).to_owned()))
    }

    /// Returns the text.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Shows nothing of the text.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
