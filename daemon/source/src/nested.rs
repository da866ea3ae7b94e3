//! Archives inside archives, which are opened to see what they contain.

use std::{collections::BTreeSet, io::Read as _, path::Path, sync::Arc};

use super::{
    Bundle, SourceError, UnreadFile, UnreadKind, archive::has_zip_magic, builder::BundleBuilder,
    location::FileLocation,
};
use crate::{FileEntry, FileSet as _};

impl Bundle {
    /// Returns the ZIPs inside archives that are not `claimed`, and so may contain anything; only those that may be
    /// opened.
    fn nested_archives(&self, claimed: impl Fn(&str) -> bool) -> Vec<String> {
        let names = self.entries.iter().map(|entry| &entry.path);
        names.filter(|name| !claimed(name) && self.may_open(name)).cloned().collect()
    }

    /// Opens the archives `names`: their files take their places. Faults in them are reported like those of any other
    /// archive.
    ///
    /// # Errors
    /// If the operation was cancelled.
    pub fn with_opened(&self, names: &[String]) -> Result<Self, SourceError> {
        let mut builder = BundleBuilder::resume(self);
        for name in names {
            builder.open_nested(name, &self.limits)?;
        }
        let opened = builder.finish(&self.limits);
        Ok(Self { unpacked: self.unpacked.clone(), ..opened })
    }

    /// Closes the archives `names` again, as they were `before`: their contents are then unknown.
    fn with_closed(&self, before: &Self, names: &[String]) -> Self {
        let inside = |path: &str| names.iter().any(|name| inside(path, name));
        let mut entries: Vec<FileEntry> =
            self.entries.iter().filter(|entry| !inside(&entry.path)).cloned().collect();
        entries.extend(before.entries.iter().filter(|entry| names.contains(&entry.path)).cloned());
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        let mut places = self.locations.as_ref().clone();
        let closed =
            names.iter().filter_map(|name| Some((name.clone(), before.locations.get(name)?.clone())));
        places.extend(closed);
        Self { entries, locations: Arc::new(places), ..self.clone() }
    }

    /// Returns the ZIPs that are not `claimed` and that are nested too deep to be opened.
    pub fn too_deep(&self, claimed: impl Fn(&str) -> bool) -> Vec<UnreadFile> {
        let deep = |name: &str| match self.locations.get(name) {
            Some(FileLocation::Packed(_, unit)) => {
                unit.nesting >= self.limits.nesting && has_zip_extension(name)
            }
            _ => false,
        };
        let names = self.entries.iter().map(|entry| &entry.path).filter(|name| !claimed(name) && deep(name));
        let reason = "it lies in too many archives within each other".to_owned();
        names
            .map(|name| UnreadFile { name: name.clone(), reason: reason.clone(), kind: UnreadKind::Skipped })
            .collect()
    }

    fn may_open(&self, name: &str) -> bool {
        let Some(FileLocation::Packed(packed, unit)) = self.locations.get(name) else { return false };
        has_zip_extension(name)
            && unit.nesting < self.limits.nesting
            && !packed.file.is_encrypted()
            && self.starts_like_zip(name)
    }

    /// Returns whether the file starts like a ZIP. One that cannot be read counts as well: it is damaged, which is
    /// reported when it is opened.
    fn starts_like_zip(&self, name: &str) -> bool {
        let mut head = Vec::new();
        let read = self.open(name, 0).and_then(|bytes| bytes.take(4).read_to_end(&mut head));
        read.is_err() || has_zip_magic(&head)
    }
}

/// Inner archives that were opened to see what they contain, and the bundle as it was before each round.
#[derive(Default)]
pub struct OpenedArchives(Vec<(Bundle, Vec<String>)>);

impl OpenedArchives {
    /// Returns the archives of `bundle` that are not claimed and were not opened yet.
    pub fn unopened(&self, bundle: &Bundle, claimed: &BTreeSet<&str>) -> Vec<String> {
        let known = |name: &str| self.0.iter().any(|(_, names)| names.iter().any(|other| other == name));
        bundle.nested_archives(|name| claimed.contains(name) || known(name))
    }

    /// Records that `names` were opened in the bundle `before`.
    pub fn add(&mut self, before: Bundle, names: Vec<String>) {
        self.0.push((before, names));
    }

    /// Closes the archives in which nothing is claimed, because the user knows them as single files.
    #[must_use]
    pub fn close_unclaimed(&self, mut bundle: Bundle, claimed: &BTreeSet<&str>) -> Bundle {
        for (before, names) in self.0.iter().rev() {
            let unclaimed = names.iter().filter(|name| !claimed.iter().any(|file| inside(file, name)));
            let unclaimed: Vec<String> = unclaimed.cloned().collect();
            bundle = bundle.with_closed(before, &unclaimed);
        }
        bundle
    }
}

fn has_zip_extension(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("zip"))
}

/// Returns whether a file is inside the opened archive `name`.
fn inside(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
}
