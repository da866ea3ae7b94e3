//! Where a bundle is written: a folder or a ZIP, hidden until it is whole.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use satchel_pam::hash::Sha256Digest;
use sha2::{Digest, Sha256};
use zip::{ZipWriter, write::SimpleFileOptions};

use super::ExportError;

/// One file of a bundle as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) path: String,
    pub(super) sha256: Sha256Digest,
    pub(super) bytes: u64,
}

/// A bundle that is being written beside its final place.
pub(super) struct Target {
    output: PathBuf,
    partial: PathBuf,
    kind: Kind,
    pub(super) files: Vec<Written>,
    finished: bool,
}

enum Kind {
    Folder,
    Zip(Box<ZipWriter<BufWriter<File>>>),
}

impl Target {
    /// Prepares to write `output`: a ZIP if it ends so, else a folder that is absent or empty.
    pub(super) fn create(output: &Path, id: &str) -> Result<Self, ExportError> {
        let failed = ExportError::write(output);
        let name = output.file_name().ok_or_else(|| ExportError::BadOutput { path: output.to_owned() })?;
        let zip = output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"));
        if output.exists() && (zip || !empty_folder(output)) {
            return Err(ExportError::Occupied { path: output.to_owned() });
        }
        let parent =
            output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(&failed)?;
        let partial = parent.join(format!(".{}.partial-{id}", name.to_string_lossy()));
        let kind = if zip {
            let file = new_file(&partial).map_err(&failed)?;
            Kind::Zip(Box::new(ZipWriter::new(BufWriter::new(file))))
        } else {
            fs::DirBuilder::new().mode(0o700).create(&partial).map_err(&failed)?;
            Kind::Folder
        };
        Ok(Self { output: output.to_owned(), partial, kind, files: Vec::new(), finished: false })
    }

    /// Writes one file by `fill`; `path` is made of safe names only.
    pub(super) fn file(
        &mut self,
        path: &str,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
    ) -> Result<Written, ExportError> {
        let failed = ExportError::write(&self.output);
        let written = match &mut self.kind {
            Kind::Folder => {
                let place = self.partial.join(path);
                if let Some(parent) = place.parent() {
                    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(&failed)?;
                }
                let mut hashing = Hashing::new(BufWriter::new(new_file(&place).map_err(&failed)?));
                fill(&mut hashing)?;
                let (written, file) = hashing.finish(path);
                let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
                file.sync_all().map_err(&failed)?;
                written
            }
            Kind::Zip(zip) => {
                // A fixed time, so that equal content gives equal bytes.
                let options = SimpleFileOptions::default()
                    .unix_permissions(0o600)
                    .large_file(true)
                    .last_modified_time(zip::DateTime::default());
                zip.start_file(path, options).map_err(|error| failed(error.into()))?;
                let mut hashing = Hashing::new(zip.as_mut());
                fill(&mut hashing)?;
                hashing.finish(path).0
            }
        };
        self.files.push(written.clone());
        Ok(written)
    }

    /// Makes the bundle durable and puts it in its place in one step.
    pub(super) fn publish(mut self) -> Result<u64, ExportError> {
        let failed = ExportError::write(&self.output);
        match std::mem::replace(&mut self.kind, Kind::Folder) {
            Kind::Folder => sync_folders(&self.partial).map_err(&failed)?,
            Kind::Zip(zip) => {
                let file = zip.finish().map_err(|error| failed(error.into()))?;
                let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
                file.sync_all().map_err(&failed)?;
            }
        }
        fs::rename(&self.partial, &self.output).map_err(&failed)?;
        self.finished = true;
        let parent =
            self.output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent).and_then(|folder| folder.sync_all()).map_err(&failed)?;
        Ok(self.files.iter().map(|file| file.bytes).sum())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let removed = if self.partial.is_dir() {
            fs::remove_dir_all(&self.partial)
        } else {
            fs::remove_file(&self.partial)
        };
        if let Err(error) = removed {
            tracing::warn!(%error, path = ?self.partial, "an unfinished export stays behind");
        }
    }
}

fn empty_folder(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut children| children.next().is_none())
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// A folder's entries are durable only once the folder itself is synced.
fn sync_folders(root: &Path) -> io::Result<()> {
    for child in fs::read_dir(root)? {
        let child = child?;
        if child.file_type()?.is_dir() {
            sync_folders(&child.path())?;
        }
    }
    File::open(root)?.sync_all()
}

struct Hashing<W> {
    inner: W,
    hasher: Sha256,
    bytes: u64,
}

impl<W: Write> Hashing<W> {
    fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new(), bytes: 0 }
    }

    fn finish(self, path: &str) -> (Written, W) {
        let sha256 = Sha256Digest::from_bytes(self.hasher.finalize().into());
        (Written { path: path.to_owned(), sha256, bytes: self.bytes }, self.inner)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
