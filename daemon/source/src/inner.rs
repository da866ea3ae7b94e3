//! Archives inside archives. They are unpacked to the disk because their directory is at the end, within one limit for
//! the whole source.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read as _, Seek, SeekFrom},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    Bundle, Limits, Pulse, SourceError, Unread, Why,
    archive::{Packed, SharedFile},
    builder::{Builder, zipped},
    bundle::Place,
    entry::{self, Stoppable, Unpacked},
};
use crate::{CancelToken, Entry, Files as _};

/// The inner archives of one source, in one unnamed file; clones share it.
#[derive(Clone, Default)]
pub(super) struct Spill {
    /// Created on first use. The lock also ensures that only one archive is written at a time.
    file: Arc<Mutex<Option<Arc<File>>>>,
    /// The number of bytes that all of them unpacked to.
    bytes: Unpacked,
}

impl Spill {
    /// Unpacks an inner archive and appends it to those before it.
    pub(super) fn take_in(
        &self,
        packed: &Packed,
        limits: &Limits,
        (cancel, pulse): (&CancelToken, &Pulse),
    ) -> io::Result<SharedFile> {
        let mut held = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &*held {
            Some(file) => Arc::clone(file),
            None => Arc::clone(held.insert(Arc::new(tempfile::tempfile()?))),
        };
        let base = (&*file).seek(SeekFrom::End(0))?;
        let bytes = entry::packed(packed, limits, &self.bytes)?;
        let mut bytes = Stoppable { bytes, cancel: cancel.clone(), pulse: pulse.clone() };
        let copied = io::copy(&mut bytes, &mut &*file);
        pulse.beats();
        match copied {
            Ok(length) => Ok(SharedFile::part(file, base, length)),
            Err(error) => {
                // A partially unpacked archive is useless.
                file.set_len(base)?;
                Err(error)
            }
        }
    }
}

impl Bundle {
    /// Returns the ZIPs inside archives that are not `claimed`, and so may contain anything; only those that may be
    /// opened.
    fn inner_archives(&self, claimed: impl Fn(&str) -> bool) -> Vec<String> {
        let names = self.entries.iter().map(|entry| &entry.path);
        names.filter(|name| !claimed(name) && self.opens(name)).cloned().collect()
    }

    /// Opens the archives `names`: their files take their places. Faults in them are reported like those of any other
    /// archive.
    ///
    /// # Errors
    /// If the operation was cancelled.
    pub fn opening(&self, names: &[String]) -> Result<Self, SourceError> {
        let mut builder = Builder::again(self);
        for name in names {
            builder.inner(name, &self.limits)?;
        }
        let opened = builder.finish(&self.limits);
        Ok(Self { unpacked: self.unpacked.clone(), ..opened })
    }

    /// Closes the archives `names` again, as they were `before`: their contents are then unknown.
    fn closing(&self, before: &Self, names: &[String]) -> Self {
        let inside = |path: &str| names.iter().any(|name| lies_in(path, name));
        let mut entries: Vec<Entry> =
            self.entries.iter().filter(|entry| !inside(&entry.path)).cloned().collect();
        entries.extend(before.entries.iter().filter(|entry| names.contains(&entry.path)).cloned());
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        let mut places = self.places.as_ref().clone();
        let closed = names.iter().filter_map(|name| Some((name.clone(), before.places.get(name)?.clone())));
        places.extend(closed);
        Self { entries, places: Arc::new(places), ..self.clone() }
    }

    /// Returns the ZIPs that are not `claimed` and that are nested too deep to be opened.
    pub fn too_deep(&self, claimed: impl Fn(&str) -> bool) -> Vec<Unread> {
        let deep = |name: &str| match self.places.get(name) {
            Some(Place::Packed(_, unit)) => unit.nesting >= self.limits.nesting && zip_named(name),
            _ => false,
        };
        let names = self.entries.iter().map(|entry| &entry.path).filter(|name| !claimed(name) && deep(name));
        let reason = "it lies in too many archives within each other".to_owned();
        names.map(|name| Unread { name: name.clone(), reason: reason.clone(), why: Why::LeftOut }).collect()
    }

    fn opens(&self, name: &str) -> bool {
        let Some(Place::Packed(packed, unit)) = self.places.get(name) else { return false };
        zip_named(name)
            && unit.nesting < self.limits.nesting
            && !packed.file.is_sealed()
            && self.begins_as_zip(name)
    }

    /// Returns whether the file starts like a ZIP. One that cannot be read counts as well: it is damaged, which is
    /// reported when it is opened.
    fn begins_as_zip(&self, name: &str) -> bool {
        let mut head = Vec::new();
        let read = self.open(name, 0).and_then(|bytes| bytes.take(4).read_to_end(&mut head));
        read.is_err() || zipped(&head)
    }
}

/// Inner archives that were opened to see what they contain, and the bundle as it was before each round.
#[derive(Default)]
pub struct Opened(Vec<(Bundle, Vec<String>)>);

impl Opened {
    /// Returns the archives of `bundle` that are not claimed and were not opened yet.
    pub fn left(&self, bundle: &Bundle, claimed: &BTreeSet<&str>) -> Vec<String> {
        let known = |name: &str| self.0.iter().any(|(_, names)| names.iter().any(|other| other == name));
        bundle.inner_archives(|name| claimed.contains(name) || known(name))
    }

    /// Records that `names` were opened in the bundle `before`.
    pub fn add(&mut self, before: Bundle, names: Vec<String>) {
        self.0.push((before, names));
    }

    /// Closes the archives in which nothing is claimed, because the user knows them as single files.
    #[must_use]
    pub fn without_barren(&self, mut bundle: Bundle, claimed: &BTreeSet<&str>) -> Bundle {
        for (before, names) in self.0.iter().rev() {
            let barren = names.iter().filter(|name| !claimed.iter().any(|file| lies_in(file, name)));
            let barren: Vec<String> = barren.cloned().collect();
            bundle = bundle.closing(before, &barren);
        }
        bundle
    }
}

fn zip_named(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("zip"))
}

/// Returns whether a file is inside the opened archive `name`.
fn lies_in(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
}
