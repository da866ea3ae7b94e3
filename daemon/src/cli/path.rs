//! Paths of this machine, for requests.

use std::path::{Path, PathBuf};

use super::error::CliError;

/// Returns the absolute path, without following links.
///
/// # Errors
/// Fails if the current folder is unknown.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(CliError::file("resolve", path))
}

/// Returns a path as text, as requests carry it.
///
/// # Errors
/// Fails if the path is not UTF-8.
pub(super) fn path_to_string(path: PathBuf) -> Result<String, CliError> {
    path.into_os_string().into_string().map_err(|path| {
        CliError::Usage(format!(
            "the path {} is not valid UTF-8; rename it, or use a symbolic link to it",
            path.to_string_lossy()
        ))
    })
}
