//! Which folders are watched, and how.

use std::{
    path::{Component, Path, PathBuf},
    time::Duration,
};

use glob::Pattern;

use super::folder::Pace;

/// Patterns of names that a folder may leave out.
const MAX_IGNORE: usize = 100;
/// How long a file may be asked to be quiet, in milliseconds.
const SETTLE_MS: std::ops::RangeInclusive<u64> = 10..=3_600_000;

/// What is watched in all.
#[derive(Clone, Debug, Default)]
pub struct Watching {
    /// Whether folders are watched at all: `serve` does, other commands do not.
    pub active: bool,
    /// The folders of `serve --watch`.
    pub flags: Vec<WatchSpec>,
    /// Those of the configuration.
    pub folders: Vec<WatchSpec>,
    /// How patiently.
    pub pace: Pace,
}

/// One folder to be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchSpec {
    /// Absolute, with no `..` in it.
    pub path: PathBuf,
    /// Unpacked exports too, not only files.
    pub recursive: bool,
    /// Look now and then instead of relying on the system's events.
    pub poll: bool,
    /// Only importers of these platforms; empty: all.
    pub providers: Vec<String>,
    /// Names that are left out, at any depth; `*` and `?` stand for others.
    pub ignore: Vec<String>,
    /// How long a file must keep size, time and inode; none: as the daemon does.
    pub settle: Option<Duration>,
}

/// Why a folder cannot be watched as given.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// Relative to what?
    #[error("{0:?} is not an absolute path")]
    Relative(PathBuf),
    /// A path that the store and the answers cannot carry.
    #[error("the path {0:?} is not UTF-8; name the folder in the command `satchel serve --watch`")]
    NotText(PathBuf),
    /// Nothing there to watch.
    #[error("{0:?} is no folder; make it first, or check the spelling")]
    NoFolder(PathBuf),
    /// A pattern does not read.
    #[error("ignore {pattern:?} of {path:?} is no pattern: {problem}")]
    Pattern { path: PathBuf, pattern: String, problem: String },
    /// More patterns than anyone needs.
    #[error("{path:?} has more than {MAX_IGNORE} patterns to ignore")]
    TooManyPatterns { path: PathBuf },
    /// A time that makes no sense.
    #[error(
        "settle-ms of {path:?} must be {} to {}, not {found}",
        SETTLE_MS.start(),
        SETTLE_MS.end()
    )]
    Settle { path: PathBuf, found: u64 },
}

impl WatchSpec {
    /// A folder with the defaults.
    pub fn of(path: PathBuf) -> Self {
        Self { path, recursive: true, poll: false, providers: Vec::new(), ignore: Vec::new(), settle: None }
    }

    /// Checks what does not depend on the disk.
    ///
    /// # Errors
    /// What is not right.
    pub fn checked(mut self) -> Result<Self, SpecError> {
        if !self.path.is_absolute() || self.path.components().any(|part| part == Component::ParentDir) {
            return Err(SpecError::Relative(self.path));
        }
        // One spelling for one folder: without a slash at the end.
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

    /// Checks that it is a folder, too, and that its path can be kept.
    pub(super) fn checked_now(self) -> Result<Self, SpecError> {
        let spec = self.checked()?;
        if spec.path.to_str().is_none() {
            return Err(SpecError::NotText(spec.path));
        }
        if Path::is_dir(&spec.path) { Ok(spec) } else { Err(SpecError::NoFolder(spec.path)) }
    }

    /// The patterns that read; [`WatchSpec::checked`] refused the others.
    pub(super) fn patterns(&self) -> Vec<Pattern> {
        self.ignore.iter().filter_map(|pattern| Pattern::new(pattern).ok()).collect()
    }

    pub(super) fn paced(&self, pace: &Pace) -> Pace {
        Pace { quiet: self.settle.unwrap_or(pace.quiet), ..pace.clone() }
    }
}
