//! The specification of watched folders.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use glob::Pattern;
use satchel_source::names;

use super::watcher::WatchIntervals;

/// Largest number of name patterns that a folder may ignore.
const MAX_IGNORE: usize = 100;
/// How long a session is not read after a change, so that lines that are written together are read together.
const SESSION_DELAY: Duration = Duration::from_millis(200);
/// Allowed quiet time of a file, in milliseconds.
const SETTLE_MS: std::ops::RangeInclusive<u64> = 10..=3_600_000;

/// The specification of all watched folders.
#[derive(Clone, Debug, Default)]
pub struct WatchConfig {
    /// Whether folders are watched at all: `serve` does, other commands do not.
    pub active: bool,
    /// The folders of `serve --watch`.
    pub flags: Vec<WatchSpec>,
    /// The folders of the configuration.
    pub folders: Vec<WatchSpec>,
    /// The intervals of the watchers.
    pub intervals: WatchIntervals,
}

/// The specification of one watched folder, or of one watched file such as a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchSpec {
    /// An absolute path without `..`.
    pub path: PathBuf,
    /// Import unpacked exports too, not only files.
    pub recursive: bool,
    /// Poll instead of relying on events from the system.
    pub poll: bool,
    /// Use only the importers of these platforms; if empty, all importers.
    pub providers: Vec<String>,
    /// Name patterns to ignore, at any depth; `*` and `?` are wildcards.
    pub ignore: Vec<String>,
    /// Whether programs append to files in it for hours, as agents do with their sessions: each file is then a source of
    /// its own, which is read while it grows.
    pub sessions: bool,
    /// How long a file must keep its size, time and inode; `None` means the default of the daemon. With `sessions`, how
    /// long to wait after the first change.
    pub settle: Option<Duration>,
}

/// The reason why a folder cannot be watched as specified.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// The path is relative, or contains `..`.
    #[error("{0:?} is not an absolute path")]
    Relative(PathBuf),
    /// The path is not text, so the store and the responses cannot represent it.
    #[error("the path {0:?} is not UTF-8; name the folder in the command `satchel serve --watch`")]
    NotText(PathBuf),
    /// There is no such folder.
    #[error("{0:?} is not a folder; create it first, or check the spelling")]
    NoFolder(PathBuf),
    /// It is a link to a file. Only links to folders are followed.
    #[error("{0:?} is a symbolic link; name the file to which it leads")]
    Link(PathBuf),
    /// It is a file of a kind that no importer reads.
    #[error("{0:?} is a file that no importer reads; name a folder, or a file such as a database")]
    NoExport(PathBuf),
    /// A pattern is not valid.
    #[error("the ignore pattern {pattern:?} of {path:?} is not valid: {problem}")]
    Pattern { path: PathBuf, pattern: String, problem: String },
    /// There are too many patterns.
    #[error("{path:?} has more than {MAX_IGNORE} patterns to ignore")]
    TooManyPatterns { path: PathBuf },
    /// The quiet time is out of range.
    #[error(
        "settle-ms of {path:?} must be {} to {}, not {found}",
        SETTLE_MS.start(),
        SETTLE_MS.end()
    )]
    Settle { path: PathBuf, found: u64 },
}

impl WatchSpec {
    /// Creates a folder specification with the defaults.
    pub fn with_defaults(path: PathBuf) -> Self {
        Self {
            path,
            recursive: true,
            poll: false,
            providers: Vec::new(),
            ignore: Vec::new(),
            sessions: false,
            settle: None,
        }
    }

    /// Checks everything that does not depend on the disk.
    ///
    /// # Errors
    /// The first rule that is not met.
    pub fn checked(mut self) -> Result<Self, SpecError> {
        if !self.path.is_absolute() || self.path.components().any(|part| part == Component::ParentDir) {
            return Err(SpecError::Relative(self.path));
        }
        // Each folder has one spelling, without a slash at the end.
        self.path = self.path.components().collect();
        if self.ignore.len() > MAX_IGNORE {
            return Err(SpecError::TooManyPatterns { path: self.path });
        }
        for pattern in &self.ignore {
            if let Err(problem) = Pattern::new(pattern) {
                return Err(SpecError::Pattern {
                    path: self.path,
                    pattern: pattern.clone(),
                    problem: problem.msg.to_owned(),
                });
            }
        }
        let millis = |settle: Duration| u64::try_from(settle.as_millis()).unwrap_or(u64::MAX);
        match self.settle.map(millis).filter(|settle| !SETTLE_MS.contains(settle)) {
            Some(found) => Err(SpecError::Settle { path: self.path, found }),
            None => Ok(self),
        }
    }

    /// Also checks that the path is a folder and can be stored.
    pub(super) fn checked_on_disk(self) -> Result<Self, SpecError> {
        let spec = self.checked()?;
        if spec.path.to_str().is_none() {
            return Err(SpecError::NotText(spec.path));
        }
        match spec.path.metadata() {
            Ok(found) if found.is_dir() => Ok(spec),
            Ok(_) if spec.path.is_symlink() => Err(SpecError::Link(spec.path)),
            Ok(_) if spec.file().is_some() => Ok(spec),
            Ok(_) => Err(SpecError::NoExport(spec.path)),
            Err(_) => Err(SpecError::NoFolder(spec.path)),
        }
    }

    /// Returns the name of the file, if the path is that of a single file. It may not exist yet, or at the moment.
    pub(super) fn file(&self) -> Option<&OsStr> {
        self.path.file_name().filter(|name| names::importable(name) && !self.path.is_dir())
    }

    /// Returns the folder to look at: that of a single file.
    pub(super) fn folder(&self) -> &Path {
        self.file().and_then(|_| self.path.parent()).unwrap_or(&self.path)
    }

    /// Returns whether programs write to the files for hours, so that they are imported while that goes on.
    pub(super) fn grows(&self) -> bool {
        self.sessions || self.file().is_some_and(names::is_database)
    }

    /// Returns the valid patterns; [`WatchSpec::checked`] refused the others.
    pub(super) fn patterns(&self) -> Vec<Pattern> {
        self.ignore.iter().filter_map(|pattern| Pattern::new(pattern).ok()).collect()
    }

    pub(super) fn intervals(&self, defaults: &WatchIntervals) -> WatchIntervals {
        let usual = if self.grows() { defaults.quiet.min(SESSION_DELAY) } else { defaults.quiet };
        WatchIntervals { quiet: self.settle.unwrap_or(usual), ..defaults.clone() }
    }
}
