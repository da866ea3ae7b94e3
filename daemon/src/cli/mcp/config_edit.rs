//! Edits of a program's list of MCP servers. Everything else in the file stays as it is, with its comments. Only the white space in
//! that list may change, if all of it was on one line.

mod json;
mod toml;

use std::path::Path;

use super::programs::ConfigFormat;

/// The usual file name of this program.
const PROGRAM: &str = "satchel";
/// The command of this program that serves an agent.
const SUBCOMMAND: &str = "mcp";
/// What some editors write before the text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// How a program starts this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerEntry {
    pub(super) command: String,
    pub(super) args: Vec<String>,
}

impl ServerEntry {
    /// Returns whether `mcp install` has written this entry, or a person has written the same. `executable` is the path of this
    /// program, whose file may have another name than usual.
    fn is_ours(&self, executable: &Path) -> bool {
        let name = Path::new(&self.command).file_name();
        name.is_some_and(|name| name == PROGRAM || Some(name) == executable.file_name())
            && self.args.iter().any(|arg| arg == SUBCOMMAND)
    }

    /// Returns the command line.
    pub(super) fn line(&self) -> String {
        let words = std::iter::once(&self.command).chain(&self.args);
        words.map(|word| crate::cli::text::shell_quoted(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Where an entry is, and whose.
#[derive(Clone, Copy)]
pub(super) struct EntryLocation<'a> {
    pub(super) format: ConfigFormat,
    /// The name of the server.
    pub(super) name: &'a str,
    /// The path of this program.
    pub(super) executable: &'a Path,
}

/// An edited file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    /// The new text of the file.
    pub(super) text: String,
    /// How the server was started before; `None` if it was not in the file.
    pub(super) before: Option<ServerEntry>,
}

/// Why a file was not edited.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditError {
    /// The file is not in its format.
    #[error("it is not valid: {0}")]
    Syntax(String),
    /// A part of the file that must be an object or a table is something else.
    #[error("{0} is not {1}")]
    WrongType(String, &'static str),
    /// A key is there twice, and programs differ in which one counts.
    #[error("it has the key {0:?} twice")]
    Duplicate(String),
    /// The entry of this name starts another program.
    #[error("it has a server {0:?} that is not this program; choose another name with --name")]
    Foreign(String),
}

/// Adds a server to a configuration file. An entry of ours keeps what else it contains.
///
/// # Errors
/// If the text is not valid, or the server of this name is not ours.
pub(super) fn install(
    text: &str,
    place: EntryLocation<'_>,
    entry: &ServerEntry,
) -> Result<Edited, EditError> {
    let (mark, bare) = split_mark(text);
    let mut edited = match place.format {
        ConfigFormat::Json { key, typed } => json::install(bare, (key, typed), place, entry),
        ConfigFormat::Toml { key } => toml::install(bare, key, place, entry),
    }?;
    edited.text =
        if edited.before.as_ref() == Some(entry) { text.to_owned() } else { mark.to_owned() + &edited.text };
    Ok(edited)
}

/// Removes a server. The text stays as it is if the server is not there.
///
/// # Errors
/// If the text is not valid, or the server of this name is not ours.
pub(super) fn uninstall(text: &str, place: EntryLocation<'_>) -> Result<Edited, EditError> {
    let (mark, bare) = split_mark(text);
    let mut edited = match place.format {
        ConfigFormat::Json { key, .. } => json::uninstall(bare, key, place),
        ConfigFormat::Toml { key } => toml::uninstall(bare, key, place),
    }?;
    edited.text = if edited.before.is_none() { text.to_owned() } else { mark.to_owned() + &edited.text };
    Ok(edited)
}

fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
