//! Why a component was refused, and why a run ended, in words for people.

use std::{fmt, time::Duration};

use crate::limits::MIB;

/// Why a host or a plugin could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The compiler or the machine does not allow the engine that is needed.
    #[error("the plugin engine cannot start: {reason}")]
    Engine {
        /// In the engine's words.
        reason: String,
    },
    /// The file is too large to be compiled.
    #[error("the plugin has {bytes} bytes, more than the {limit} that a plugin may have")]
    TooLarge {
        /// Of the file.
        bytes: usize,
        /// Allowed.
        limit: usize,
    },
    /// The bytes are no WebAssembly component.
    #[error("the plugin is not a valid WebAssembly component: {reason}")]
    Invalid {
        /// In the validator's words.
        reason: String,
    },
    /// A core module where a component is needed.
    #[error("the plugin is a core WebAssembly module, not a component; build it with the plugin template")]
    NotAComponent,
    /// It asks for the operating system.
    #[error(
        "the plugin imports \"{import}\", a WASI interface; an importer gets no clock, disk, network or \
         environment: build it without WASI"
    )]
    WasiImport {
        /// Its name.
        import: String,
    },
    /// It asks for something else that no importer gets.
    #[error(
        "the plugin imports \"{import}\", which is not part of satchel:importer; an importer gets nothing else"
    )]
    UnknownImport {
        /// Its name.
        import: String,
    },
    /// It was built against another version of the contract.
    #[error("the plugin was built for satchel:importer {found}, this program offers {offered}; {remedy}")]
    ApiVersion {
        /// The plugin's.
        found: String,
        /// Ours.
        offered: String,
        /// Which of the two must be renewed.
        remedy: &'static str,
    },
    /// It does not export what an importer exports.
    #[error("the plugin exports no interface satchel:importer/plugin, so it is no importer")]
    NoPluginExport,
    /// The names fit, the types do not.
    #[error("the plugin does not fit satchel:importer {offered}: {reason}")]
    Mismatch {
        /// Our version.
        offered: String,
        /// The difference.
        reason: String,
    },
    /// What it says of itself is not allowed.
    #[error("the plugin describes itself wrongly: {field} is {value:?}, but must be {rule}")]
    BadInfo {
        /// Which field of `plugin-info`.
        field: &'static str,
        /// What it says, cut to a readable length.
        value: String,
        /// What is allowed.
        rule: &'static str,
    },
    /// It failed while it was asked to describe itself.
    #[error("the plugin cannot describe itself")]
    Describe(#[source] RunError),
}

/// The kind of an error that a plugin reported itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The files are not of the format.
    NotThisFormat,
    /// The format is known, its version is not.
    UnsupportedVersion,
    /// The files cannot be read as the format.
    Malformed,
    /// A limit was met.
    Limit,
    /// A file could not be read.
    Io,
    /// It stopped when asked to.
    Cancelled,
    /// It met a case that it holds impossible.
    Internal,
}

impl fmt::Display for ErrorKind {
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

/// Why a run ended early. What it delivered before stays delivered, whole records only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It worked on and on without a result.
    #[error("the plugin made no progress for {} of work", seconds(*.0))]
    NoProgress(Duration),
    /// It worked longer than a run may.
    #[error("the plugin worked for more than {}", seconds(*.0))]
    TooLong(Duration),
    /// Its calls nest without end.
    #[error("the plugin overflowed its stack; it calls itself without end, or too deeply for this input")]
    StackOverflow,
    /// It used an address that it does not have.
    #[error("the plugin reached outside its memory")]
    OutOfBounds,
    /// It wanted more memory than it may have.
    #[error("the plugin needs more than {} of memory", mebibytes(*.0))]
    Memory(usize),
    /// It gave up on a case that its author did not think of.
    #[error("the plugin panicked: {0}")]
    Panic(String),
    /// It stopped in another way, without a word.
    #[error("the plugin crashed: {0}")]
    Trap(String),
    /// One call handed over too much.
    #[error("the plugin handed over more than {} in one call", mebibytes(*.0))]
    TooMuchAtOnce(usize),
    /// It emitted more than an export of this size can hold.
    #[error("the plugin emitted more than {0} bytes, too much for an export of this size")]
    TooMuchEmitted(u64),
    /// Somebody stopped it.
    #[error("the import was cancelled")]
    Cancelled,
    /// It was asked for a format that it does not read.
    #[error("the plugin does not read the format {0:?}")]
    UnknownFormat(String),
    /// It reports an error itself.
    #[error("{message}{} ({kind})", at(.locator.as_deref()))]
    Reported {
        /// Which kind.
        kind: ErrorKind,
        /// In the plugin's words, cleaned.
        message: String,
        /// Where in the export.
        locator: Option<String>,
    },
    /// The fault is in the host or the machine.
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
            RunError::NoProgress(Duration::from_secs(30)).to_string(),
            "the plugin made no progress for 30 s of work"
        );
        assert_eq!(RunError::Memory(128 * MIB).to_string(), "the plugin needs more than 128 MiB of memory");
        let reported = RunError::Reported {
            kind: ErrorKind::Malformed,
            message: "the array is cut".to_owned(),
            locator: Some("conversations.json@17".to_owned()),
        };
        assert_eq!(reported.to_string(), "the array is cut at conversations.json@17 (malformed)");
    }
}
