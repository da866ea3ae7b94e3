//! Exports for devices, which cannot name a path here: they are kept in the data directory until they are fetched.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use uuid::Uuid;

use super::{ExportError, ExportProgress, ExportRecord, ExportRequest, Exports};

/// The folder of these exports in a data directory.
pub const DOWNLOADS: &str = "exports-out";
/// How long such an export is kept.
const LIFETIME: Duration = Duration::from_hours(24);
/// Exports that are kept at the same time. The oldest is removed for another one, so that they do not fill the disk.
const MAX_FILES: usize = 8;

impl Exports {
    /// Does the same as [`Exports::create_with_progress`], at a path of its own choice; the output of `request` is ignored.
    ///
    /// # Errors
    /// As [`Exports::create_with_progress`].
    pub fn create_for_download(
        &self,
        request: ExportRequest,
        report: &dyn Fn(ExportProgress) -> bool,
    ) -> Result<ExportRecord, ExportError> {
        let folder = self.downloads_folder();
        let failed = ExportError::write(&folder);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        self.remove_downloads(SystemTime::now(), MAX_FILES - 1);
        let extension = if request.lock.is_some() { "zip.age" } else { "zip" };
        let output = folder.join(format!("{}.{extension}", Uuid::new_v4()));
        self.write(&ExportRequest { output, ..request }, false, report)
    }

    /// Removes the exports for devices that are older than a day at `now`.
    pub fn remove_old_downloads(&self, now: SystemTime) {
        self.remove_downloads(now, MAX_FILES);
    }

    /// Removes exports that are too old, and the oldest ones until at most `most` are left.
    fn remove_downloads(&self, now: SystemTime, most: usize) {
        let mut files = match self.downloads() {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return tracing::warn!(%error, "the exports for devices cannot be listed"),
        };
        files.sort();
        let excess = files.len().saturating_sub(most);
        for (at, (modified, path)) in files.into_iter().enumerate() {
            let age = now.duration_since(modified).unwrap_or_default();
            if (at < excess || age > LIFETIME)
                && let Err(error) = fs::remove_file(&path)
            {
                tracing::warn!(%error, ?path, "an export for a device cannot be removed");
            }
        }
    }

    fn downloads(&self) -> io::Result<Vec<(SystemTime, PathBuf)>> {
        let file = |entry: io::Result<fs::DirEntry>| {
            let entry = entry?;
            Ok((entry.metadata()?.modified()?, entry.path()))
        };
        fs::read_dir(self.downloads_folder())?.map(file).collect()
    }

    fn downloads_folder(&self) -> PathBuf {
        self.0.store.dir().join(DOWNLOADS)
    }
}
