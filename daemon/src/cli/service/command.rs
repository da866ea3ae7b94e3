//! The files for a service manager, and the commands that control it.

use std::path::PathBuf;

use crate::cli::text;

/// A file of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// A command that controls the service manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ManagerCommand {
    pub(super) words: Vec<String>,
    /// True if it must succeed.
    pub(super) required: bool,
}

impl ManagerCommand {
    /// Returns the command as a person would type it.
    pub(super) fn shell_line(&self) -> String {
        let quoted = self.words.iter().map(|word| text::shell_quoted(word));
        quoted.collect::<Vec<_>>().join(" ")
    }
}
