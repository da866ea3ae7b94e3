//! Files that could not be read, or not to their end, each with the reason for the user.

use std::{
    io::{self, Read},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::io::Errno;

use super::entry::{EntryError, EntryProblem};
use crate::names::shown;

/// The maximum number of faults in the log; a folder may contain a hundred thousand files on a failing disk.
const MAX_FAULTS: usize = 1_000;

/// A file that could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFault {
    /// Its name in the source.
    pub file: String,
    /// The name of the archive that contains it; `None` for a file of a folder.
    pub archive: Option<String>,
    /// What is wrong, and what to do.
    pub message: String,
    /// The text of the error that the reader of the file got.
    pub error: String,
}

/// A file that could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadFile {
    /// Its name in the source.
    pub name: String,
    /// The reason, for the user.
    pub reason: String,
    /// The kind of reason.
    pub kind: UnreadKind,
}

/// The kind of reason why a file could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadKind {
    /// The file is left out; the others are read without it.
    Skipped,
    /// An archive that cannot be opened: its contents are unknown.
    Damaged,
    /// A backup of a data directory.
    Backup,
    /// An unfinished download.
    Downloading,
}

/// The faults that occurred since the last call of `take`; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct FaultLog(Arc<Mutex<Vec<ReadFault>>>);

impl FaultLog {
    /// Returns the faults and removes them.
    pub(super) fn take(&self) -> Vec<ReadFault> {
        std::mem::take(&mut *self.list())
    }

    /// Records why a file could not be read.
    pub(super) fn record(&self, file: &str, archive: Option<&str>, error: &io::Error) {
        let Some(sentence) = describe(file, archive, error) else { return };
        let (file, archive) = (file.to_owned(), archive.map(str::to_owned));
        let fault = ReadFault { file, archive, message: sentence, error: error.to_string() };
        let mut list = self.list();
        if list.len() < MAX_FAULTS && !list.contains(&fault) {
            list.push(fault);
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<ReadFault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the machine currently lacks a resource, which says nothing about the file.
pub(super) fn out_of_resources(error: &io::Error) -> bool {
    let lacking = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| lacking.contains(&error))
}

/// Returns one sentence about what is wrong, or `None` if no file is at fault: the export as a whole exceeded a limit,
/// or the machine ran out of a resource.
pub(super) fn describe(file: &str, archive: Option<&str>, error: &io::Error) -> Option<String> {
    if out_of_resources(error) {
        return None;
    }
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<EntryError>());
    let name = shown(archive.unwrap_or(file).as_ref());
    let inside = archive.and_then(|archive| file.strip_prefix(archive)).unwrap_or(file);
    let inside = shown(inside.trim_start_matches('/').as_ref());
    let inside = if inside.is_empty() { "it".to_owned() } else { inside };
    match (archive, inner.map(|error| (error, error.problem))) {
        (Some(_), Some((error, EntryProblem::Damaged))) => {
            Some(format!("{name} is damaged ({inside} {}): download it again", error.text))
        }
        (Some(_), Some((error, EntryProblem::Bomb))) => {
            Some(format!("{name} is refused ({inside} {})", error.text))
        }
        (_, Some((_, EntryProblem::Budget))) => None,
        _ => Some(format!("{name} cannot be read ({error}); look at its disk, then import it again")),
    }
}

/// Returns the sentence for a damaged ZIP whose directory cannot be read.
pub(super) fn describe_damaged_archive(name: &str, problem: &str) -> String {
    format!("{} is damaged ({problem}): download it again", shown(name.as_ref()))
}

/// A reader that records errors as faults.
pub(super) struct FaultRecorder<R> {
    pub(super) bytes: R,
    pub(super) faults: FaultLog,
    pub(super) file: String,
    pub(super) archive: Option<Arc<str>>,
}

impl<R: Read> Read for FaultRecorder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer);
        if let Err(error) = &read
            && !matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::Other)
        {
            self.faults.record(&self.file, self.archive.as_deref(), error);
        }
        read
    }
}
