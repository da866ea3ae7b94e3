//! Sample exports: real or realistic exports beside the repository.
//!
//! Their folders, relative to that of an importer's crate, are `../../../shared/fixtures/<provider>`, and the same below `authored` and
//! `agents`. If they are missing, tests that need them print that and do nothing.

use std::path::{Path, PathBuf};

use satchel_pam::record::{ConversationRecord, Line, RecordKind};

use super::{FixtureError, ProducedExport, conversations, entries_of, produce, skips_of};
use crate::{Bundle, Importer};

/// The folder of the sample exports, relative to that of an importer's crate.
const SAMPLES: &str = "../../../shared/fixtures";
/// The folders below it that have a folder for each provider.
const GROUPS: [&str; 3] = ["", "authored", "agents"];

/// The output of an importer for one folder of sample exports.
pub struct Sample {
    /// The folder.
    pub folder: PathBuf,
    /// Every file in it.
    pub bundle: Bundle,
    /// One for each detected export; none of them has an error.
    pub exports: Vec<ProducedExport>,
}

impl Sample {
    /// Runs `T` on the sample exports `name`, such as `grok` or `authored/grok`; none if they are missing.
    /// `crate_folder` is `env!("CARGO_MANIFEST_DIR")`.
    ///
    /// # Panics
    /// If the folder cannot be read, or a run ends with an error.
    pub fn read<T: Importer>(crate_folder: &str, name: &str) -> Option<Self> {
        let folder = folder(crate_folder, name)?;
        let bundle = Bundle::from_folder(&folder).expect("the folder can be listed");
        let exports = produce::<T>(&bundle).expect("detection answers").exports;
        for export in &exports {
            assert_eq!(export.error, None, "{}: {:?}", folder.display(), export.detection.files);
        }
        Some(Self { folder, bundle, exports })
    }

    /// The paths of all files.
    pub fn files(&self) -> Vec<&str> {
        self.bundle.entries().iter().map(|entry| entry.path.as_str()).collect()
    }

    /// The lines of all exports, in order.
    pub fn lines(&self) -> Vec<Line> {
        self.exports.iter().flat_map(|export| export.lines.clone()).collect()
    }

    /// The files that no export claims.
    pub fn unclaimed(&self) -> Vec<&str> {
        let mut left = self.files();
        left.retain(|path| {
            !self.exports.iter().any(|export| export.detection.files.iter().any(|file| file == path))
        });
        left
    }

    /// Checks that every conversation and message of each export is emitted or reported as skipped, and that at least one conversation is
    /// emitted. `expected` counts the conversations and messages of a file; none if it has no conversations. `emitted` counts the messages
    /// of a conversation; none if it does not come from such a file.
    ///
    /// # Panics
    /// If a check fails.
    pub fn check_counts(
        &self,
        expected: impl Fn(&str) -> Option<(usize, usize)>,
        emitted: impl Fn(&ConversationRecord) -> Option<usize>,
    ) {
        for ProducedExport { detection, lines, .. } in &self.exports {
            let files = &detection.files;
            let read: Vec<usize> = conversations(lines).into_iter().filter_map(&emitted).collect();
            let skipped = [RecordKind::Conversation, RecordKind::Message].map(|kind| skips_of(lines, kind));
            let found = (read.len() + skipped[0], read.iter().sum::<usize>() + skipped[1]);
            let counts = files.iter().filter_map(|file| expected(file));
            let all = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            assert_eq!(found, all, "{files:?}");
            assert!(!read.is_empty(), "{files:?}");
        }
    }

    /// The JSON in the file at `path`, as `serde_json` reads it.
    ///
    /// # Panics
    /// If there is no such file, or it is not JSON.
    pub fn json(&self, path: &str) -> serde_json::Value {
        let bytes = std::fs::read(self.folder.join(path)).expect("a file can be read");
        serde_json::from_slice(&bytes).expect("it is JSON")
    }
}

/// Checks that `T` claims no file of the sample exports of other providers than `provider`.
pub fn check_other_samples<T: Importer>(crate_folder: &str, provider: &str) -> Result<(), FixtureError> {
    let mut faults = Vec::new();
    for group in GROUPS {
        let Some(group) = folder(crate_folder, group) else { return Ok(()) };
        let groups = || GROUPS.into_iter().filter(|group| !group.is_empty());
        let other = |path: &PathBuf| {
            path.is_dir() && !path.ends_with(provider) && !groups().any(|group| path.ends_with(group))
        };
        for folder in entries_of(&group)?.into_iter().filter(other) {
            let detected = Bundle::from_folder(&folder).and_then(|bundle| T::detect(&bundle));
            let detected = detected.map_err(FixtureError::at(&folder))?;
            faults
                .extend(detected.into_iter().map(|found| format!("{}: claims {found:?}", folder.display())));
        }
    }
    FixtureError::of_faults(faults)
}

/// The folders of sample exports of `provider` that exist.
pub(super) fn sample_folders(crate_folder: &Path, provider: &str) -> impl Iterator<Item = PathBuf> {
    let folders = GROUPS.map(|group| crate_folder.join(SAMPLES).join(group).join(provider));
    folders.into_iter().filter(|folder| folder.is_dir())
}

#[expect(clippy::print_stderr, reason = "says why a test does nothing")]
fn folder(crate_folder: &str, name: &str) -> Option<PathBuf> {
    let folder = Path::new(crate_folder).join(SAMPLES).join(name);
    if !folder.is_dir() {
        eprintln!("skipped: there are no sample exports at {}", folder.display());
        return None;
    }
    Some(folder)
}
