//! Detects unfinished downloads in a folder by the same signs as watching does: by their names, by partial files beside
//! them, and by an incomplete end while the file is being written.

use std::{
    ffi::OsStr,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::fs::{FileType, Stat};

use super::beneath;
use crate::names;

/// A file with an incomplete end counts as growing if it was last written less than this time ago.
const RECENT_WRITE: Duration = Duration::from_secs(3);
/// How long the partial file of a download counts as a sign of one: a browser that crashed never removes it.
const PARTIAL_FILE_TTL: Duration = Duration::from_mins(10);

/// The reason why an unfinished download is skipped.
const DOWNLOADING: &str = "its download has not ended; import it when it has";
/// The reason why a growing file is skipped.
const GROWING: &str = "it is still being written; import it when that has ended";

/// A folder that is being walked.
pub(super) struct WalkedFolder<'a> {
    base: &'a Path,
    path: &'a Path,
    names: Vec<&'a OsStr>,
    /// Whether a download is in progress in it.
    downloading: bool,
}

impl<'a> WalkedFolder<'a> {
    pub(super) fn new(base: &'a Path, path: &'a Path, names: impl Iterator<Item = &'a OsStr>) -> Self {
        let names: Vec<&OsStr> = names.collect();
        let downloading = names.iter().any(|name| is_download(name));
        Self { base, path, names, downloading }
    }

    /// Returns why `name` is skipped for now, or `None` if it is complete.
    pub(super) fn skip_reason(&self, name: &OsStr, kind: FileType) -> Option<&'static str> {
        if is_download(name) {
            return Some(DOWNLOADING);
        }
        if kind != FileType::RegularFile || !names::importable(name) {
            return None;
        }
        let stat = self.stat(name)?;
        if self.downloading && self.has_partial_file(name) {
            return Some(DOWNLOADING);
        }
        let fresh = age(&stat).is_some_and(|age| age < RECENT_WRITE);
        if stat.st_size == 0 {
            // Browsers often reserve the name of a download with an empty file.
            return (self.downloading || fresh).then_some(DOWNLOADING);
        }
        (fresh && self.is_truncated(name)).then_some(GROWING)
    }

    fn has_partial_file(&self, name: &OsStr) -> bool {
        let there = |partner: &OsStr| self.names.contains(&partner);
        names::partial_names(name).filter(|partner| there(partner)).any(|partner| {
            self.stat(&partner).is_some_and(|stat| age(&stat).is_none_or(|age| age < PARTIAL_FILE_TTL))
        })
    }

    fn is_truncated(&self, name: &OsStr) -> bool {
        let opened = beneath::open_file(self.base, &self.path.join(name));
        opened
            .and_then(|file| crate::completeness::missing_end(file, name))
            .is_ok_and(|missing| missing.is_some())
    }

    fn stat(&self, name: &OsStr) -> Option<Stat> {
        beneath::stat(self.base, &self.path.join(name)).ok()
    }
}

/// Returns whether a name is that of an unfinished download that an importer might read.
fn is_download(name: &OsStr) -> bool {
    let browser = name.as_encoded_bytes().to_ascii_lowercase().ends_with(b".crdownload");
    names::completed_name(name).is_some_and(|stem| browser || names::importable(stem))
}

/// Returns how long ago the file was last written, or `None` if that is in the future.
fn age(stat: &Stat) -> Option<Duration> {
    let written = Duration::new(u64::try_from(stat.st_mtime).ok()?, u32::try_from(stat.st_mtime_nsec).ok()?);
    SystemTime::now().duration_since(UNIX_EPOCH + written).ok()
}
