//! Errors of loading a component and of running it, worded for users.

use std::{fmt, time::Duration};

use crate::limits::MIB;

/// An error while setting up a host or a plugin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The engine cannot be created with the compiler or on the machine.
    #[error("the plugin engine cannot start: {reason}")]
    Engine {
        /// The engine's message.
        reason: String,
    },
    /// The file is too large to compile.
    #[error("the plugin has {bytes} bytes, more than the {limit} that a plugin may have")]
    TooLarge {
        /// Size of the file.
        bytes: usize,
        /// Largest size allowed.
        limit: usize,
    },
    /// The bytes are not a WebAssembly component.
    #[error("the plugin is not a valid WebAssembly component: {reason}")]
    Invalid {
        /// The validator's message.
        reason: String,
    },
    /// The file is a core module instead of a component.
    #[error("the plugin is a core WebAssembly module, not a component; build it with the plugin template")]
    NotAComponent,
    /// The plugin imports a WASI interface.
    #[error(
        "the plugin imports \"{import}\", a WASI interface; an importer gets no clock, disk, network or \
         environment: build it without WASI"
    )]
    WasiImport {
        /// Name of the import.
        import: String,
    },
    /// The plugin imports something else that importers do not get.
    #[error(
        "the plugin imports \"{import}\", which is not part of satchel:importer; an importer gets nothing else"
    )]
    UnknownImport {
        /// Name of the import.
        import: String,
    },
    /// The plugin was built against another version of the interface.
    #[error("the plugin was built for satchel:importer {found}, this program offers {offered}; {remedy}")]
    ApiVersion {
        /// The plugin's version.
        found: String,
        /// The version of this host.
        offered: String,
        /// Which of the two must be upgraded.
        remedy: &'static str,
    },
    /// The plugin does not export the importer interface.
    #[error("the plugin exports no interface satchel:importer/plugin, so it is not an importer")]
    NoPluginExport,
    /// The names match, but the types do not.
    #[error("the plugin does not fit satchel:importer {offered}: {reason}")]
    Mismatch {
        /// The version of this host.
        offered: String,
        /// The difference.
        reason: String,
    },
    /// The plugin's description of itself is not valid.
    #[error("the plugin's description of itself is not valid: {field} is {value:?}, but must be {rule}")]
    BadInfo {
        /// The field of `plugin-info`.
        field: &'static str,
        /// The value, cut to a readable length.
        value: String,
        /// The rule that the value must follow.
        rule: &'static str,
    },
    /// The plugin failed while describing itself.
    #[error("the plugin cannot describe itself")]
    Describe(#[source] PluginError),
}

/// The kind of an error that a plugin reported itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginErrorKind {
    /// The files are not of the format.
    NotThisFormat,
    /// The format is known, but not its version.
    UnsupportedVersion,
    /// The files cannot be parsed as the format.
    Malformed,
    /// A limit was reached.
    Limit,
    /// A file could not be read.
    Io,
    /// The plugin stopped because it was asked to.
    Cancelled,
    /// The plugin reached a state that it regards as impossible.
    Internal,
}

impl fmt::Display for PluginErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotThisFormat => "not this format",
            Self::UnsupportedVersion => "unsupported version",
            Self::Malformed => "malformed",
            Self::Limit => "limit",
            Self::Io => "file not readable",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal error",
        })
    }
}

/// The reason why a run ended early. Records delivered before that stay delivered; only complete records are delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// The plugin worked for too long without a result.
    #[error("the plugin made no progress in {} of processor time", seconds(*.0))]
    NoProgress(Duration),
    /// The plugin worked for longer than one run may.
    #[error("the plugin used more than {} of processor time", seconds(*.0))]
    TooLong(Duration),
    /// The calls of the plugin nest too deeply.
    #[error("the plugin overflowed its stack; it calls itself without end, or too deeply for this input")]
    StackOverflow,
    /// The plugin accessed an address outside its memory.
    #[error("the plugin accessed memory out of bounds")]
    OutOfBounds,
    /// The plugin needed more memory than it may have.
    #[error("the plugin needs more than {} of memory", mebibytes(*.0))]
    Memory(usize),
    /// The plugin panicked, on a case that its author did not expect.
    #[error("the plugin panicked: {0}")]
    Panic(String),
    /// The plugin crashed in another way, without a message.
    #[error("the plugin crashed: {0}")]
    Trap(String),
    /// One call passed too many bytes to the host.
    #[error("the plugin passed more than {} to the host in one call", mebibytes(*.0))]
    TooMuchAtOnce(usize),
    /// The plugin emitted more than an export of this size can hold.
    #[error("the plugin emitted more than {0} bytes, too much for an export of this size")]
    TooMuchEmitted(u64),
    /// The run was cancelled.
    #[error("the import was cancelled")]
    Cancelled,
    /// The requested format is not one that the plugin reads.
    #[error("the plugin does not read the format {0:?}")]
    UnknownFormat(String),
    /// The plugin reported an error itself.
    #[error("{message}{} ({kind})", at(.locator.as_deref()))]
    Reported {
        /// The kind of error.
        kind: PluginErrorKind,
        /// The plugin's message, with unsafe characters removed.
        message: String,
        /// The location in the export.
        locator: Option<String>,
    },
    /// The host or the machine caused the error.
    #[error("the plugin could not be run: {0}")]
    Host(String),
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

fn mebibytes(bytes: usize) -> String {
    if bytes >= MIB { format!("{} MiB", bytes / MIB) } else { format!("{bytes} bytes") }
}

fn at(locator: Option<&str>) -> String {
    locator.map_or_else(String::new, |locator| format!(" at {locator}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_read_as_sentences() {
        assert_eq!(
            PluginError::NoProgress(Duration::from_secs(30)).to_string(),
            "the plugin made no progress in 30 s of processor time"
        );
        assert_eq!(
            PluginError::Memory(128 * MIB).to_string(),
            "the plugin needs more than 128 MiB of memory"
        );
        let reported = PluginError::Reported {
            kind: PluginErrorKind::Malformed,
            message: "the array is cut".to_owned(),
            locator: Some("conversations.json@17".to_owned()),
        };
        assert_eq!(reported.to_string(), "the array is cut at conversations.json@17 (malformed)");
    }
}
