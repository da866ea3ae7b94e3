//! What was found damaged while files were read: which file, which archive it lies in, and one sentence for people.

use std::{
    io::{self, Read},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::io::Errno;

use super::entry::{EntryError, Problem};
use crate::names::shown;

/// Faults that are kept; a folder may hold a hundred thousand files of a disk that fails.
const KEPT: usize = 1_000;

/// A file that did not read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its name in the source.
    pub file: String,
    /// The name of the archive that it lies in; none: it is a file of a folder.
    pub archive: Option<String>,
    /// What is wrong, and what to do.
    pub sentence: String,
    /// What whoever read it was told.
    pub told: String,
}

/// The faults that were met since they were last asked for; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults(Arc<Mutex<Vec<Fault>>>);

impl Faults {
    /// Answers them, and forgets them.
    pub(super) fn take(&self) -> Vec<Fault> {
        std::mem::take(&mut *self.list())
    }

    /// Notes why a file did not read.
    pub(super) fn note(&self, file: &str, archive: Option<&str>, error: &io::Error) {
        let Some(sentence) = sentence(file, archive, error) else { return };
        let (file, archive, told) = (file.to_owned(), archive.map(str::to_owned), error.to_string());
        let fault = Fault { file, archive, sentence, told };
        let mut list = self.list();
        if list.len() < KEPT && !list.contains(&fault) {
            list.push(fault);
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the machine lacks something at this moment, which says nothing of the file.
pub(super) fn exhausted(error: &io::Error) -> bool {
    let lacking = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| lacking.contains(&error))
}

/// What is wrong, in one sentence; none: the export as a whole met a limit, or the machine one of its own, and no file of it is to
/// blame.
pub(super) fn sentence(file: &str, archive: Option<&str>, error: &io::Error) -> Option<String> {
    if exhausted(error) {
        return None;
    }
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<EntryError>());
    let name = shown(archive.unwrap_or(file).as_ref());
    let inside = archive.and_then(|archive| file.strip_prefix(archive)).unwrap_or(file);
    let inside = shown(inside.trim_start_matches('/').as_ref());
    let inside = if inside.is_empty() { "it".to_owned() } else { inside };
    match (archive, inner.map(|error| (error, error.problem))) {
        (Some(_), Some((error, Problem::Damaged))) => {
            Some(format!("{name} is damaged ({inside} {}): download it again", error.text))
        }
        (Some(_), Some((error, Problem::Bomb))) => {
            Some(format!("{name} is refused ({inside} {})", error.text))
        }
        (_, Some((_, Problem::Budget))) => None,
        _ => Some(format!("{name} cannot be read ({error}); look at its disk, then import it again")),
    }
}

/// The sentence of a damaged ZIP whose directory does not read.
pub(super) fn damaged(name: &str, problem: &str) -> String {
    format!("{} is damaged ({problem}): download it again", shown(name.as_ref()))
}

/// A reader that notes the first error that it meets.
pub(super) struct Noting<R> {
    pub(super) bytes: R,
    pub(super) faults: Faults,
    pub(super) file: String,
    pub(super) archive: Option<Arc<str>>,
}

impl<R: Read> Read for Noting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer);
        if let Err(error) = &read
            && !matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::Other)
        {
            self.faults.note(&self.file, self.archive.as_deref(), error);
        }
        read
    }
}
