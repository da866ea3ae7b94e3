//! Paths of this machine as the contract carries them.

use std::path::PathBuf;

use super::error::CliError;

/// A path as text, which is what the wire carries.
///
/// # Errors
/// A path that is not UTF-8.
pub(super) fn text_of(path: PathBuf) -> Result<String, CliError> {
    path.into_os_string().into_string().map_err(|path| {
        CliError::Usage(format!(
            "the path {} is not UTF-8; rename it or use a link to it",
            path.to_string_lossy()
        ))
    })
}
