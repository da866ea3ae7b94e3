//! The output of a bundle: a folder or a ZIP file, hidden until it is complete.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use satchel_pam::hash::Sha256Digest;
use satchel_source::envelope::{self, ExportEncryption};
use sha2::{Digest, Sha256};
use zip::{ZipWriter, write::SimpleFileOptions};

use super::{
    ExportError,
    partial::{self, PartialExport, new_file},
};

/// Size of the write buffer, in bytes, before data is hashed and compressed.
const PIECE: usize = 64 << 10;

/// A file of a bundle as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrittenFile {
    pub(super) path: String,
    pub(super) sha256: Sha256Digest,
    pub(super) bytes: u64,
}

/// A bundle that is being written next to its final place.
pub(super) struct ExportTarget {
    output: PathBuf,
    partial: PartialExport,
    kind: TargetKind,
    files: Vec<WrittenFile>,
    bytes: u64,
}

enum TargetKind {
    Folder,
    Zip(Box<ZipWriter<BufWriter<File>>>),
    /// A ZIP written without seeking, because encrypted output can only be appended.
    EncryptedZip(Box<ZipWriter<zip::write::StreamWriter<EncryptWriter>>>),
}

/// The encrypting writer.
type EncryptWriter = age::stream::StreamWriter<BufWriter<File>>;

impl ExportTarget {
    /// Prepares to write `output`: a ZIP if the name ends in `.zip`, an encrypted ZIP with a `lock`, otherwise a folder
    /// that does not exist or is empty.
    pub(super) fn create(
        output: &Path,
        lock: Option<&ExportEncryption>,
        id: &str,
    ) -> Result<Self, ExportError> {
        let failed = ExportError::write(output);
        if output.file_name().is_none() {
            return Err(ExportError::BadOutput { path: output.to_owned() });
        }
        let sealed = envelope::has_age_extension(output);
        if sealed != lock.is_some() {
            let path = output.to_owned();
            return Err(if sealed {
                ExportError::NoRecipients { path }
            } else {
                ExportError::NotEncryptedName { path }
            });
        }
        let zip = sealed || output.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"));
        if output.exists() && (zip || !empty_folder(output)) {
            return Err(ExportError::Occupied { path: output.to_owned() });
        }
        let parent = crate::parent_of(output);
        fs::create_dir_all(parent).map_err(&failed)?;
        partial::remove_abandoned(parent);
        let (partial, kind) = if zip {
            let (partial, file) = PartialExport::file(parent, id).map_err(&failed)?;
            let out = BufWriter::new(file);
            let kind = match lock {
                Some(lock) => {
                    let out = lock.encrypt(out).map_err(&failed)?;
                    TargetKind::EncryptedZip(Box::new(ZipWriter::new_stream(out)))
                }
                None => TargetKind::Zip(Box::new(ZipWriter::new(out))),
            };
            (partial, kind)
        } else {
            (PartialExport::folder(parent, id).map_err(&failed)?, TargetKind::Folder)
        };
        satchel_failpoints::reached("export started");
        Ok(Self { output: output.to_owned(), partial, kind, files: Vec::new(), bytes: 0 })
    }

    /// Writes one file with `fill`. `path` must consist of safe names only.
    pub(super) fn file(
        &mut self,
        path: &str,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
    ) -> Result<WrittenFile, ExportError> {
        let failed = ExportError::write(&self.output);
        let written = match &mut self.kind {
            TargetKind::Folder => {
                let place = self.partial.path().join(path);
                folders(self.partial.path(), Path::new(path)).map_err(&failed)?;
                let (written, file) = write_hashed(new_file(&place).map_err(&failed)?, path, &failed, fill)?;
                file.sync_all().map_err(&failed)?;
                written
            }
            TargetKind::Zip(zip) => write_entry(zip, path, &failed, fill)?,
            TargetKind::EncryptedZip(zip) => write_entry(zip, path, &failed, fill)?,
        };
        satchel_failpoints::reached("export file written");
        self.bytes += written.bytes;
        self.files.push(written.clone());
        Ok(written)
    }

    /// Returns the files written since the last call.
    pub(super) fn take_files(&mut self) -> Vec<WrittenFile> {
        std::mem::take(&mut self.files)
    }

    /// Makes the bundle durable and moves it to its final place in one step.
    pub(super) fn publish(mut self) -> Result<u64, ExportError> {
        let failed = ExportError::write(&self.output);
        match std::mem::replace(&mut self.kind, TargetKind::Folder) {
            TargetKind::Folder => sync_folders(self.partial.path()).map_err(&failed)?,
            TargetKind::Zip(zip) => {
                let file = zip.finish().map_err(|error| failed(error.into()))?;
                let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
                file.sync_all().map_err(&failed)?;
            }
            TargetKind::EncryptedZip(zip) => {
                let encrypting = zip.finish().map_err(|error| failed(error.into()))?.into_inner();
                let file = encrypting.finish().map_err(&failed)?;
                let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
                file.sync_all().map_err(&failed)?;
            }
        }
        satchel_failpoints::reached("export synced");
        match self.move_into_place() {
            // Another export took the path first.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty
                ) =>
            {
                return Err(ExportError::Occupied { path: self.output.clone() });
            }
            placed => placed.map_err(&failed)?,
        }
        satchel_failpoints::reached("export placed");
        self.partial.mark_published();
        crate::sync_folder(crate::parent_of(&self.output)).map_err(&failed)?;
        satchel_failpoints::reached("export folder synced");
        Ok(self.bytes)
    }
}

/// Writes one entry of an archive.
fn write_entry<W: Write + io::Seek>(
    zip: &mut ZipWriter<W>,
    path: &str,
    failed: impl Fn(io::Error) -> ExportError,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
) -> Result<WrittenFile, ExportError> {
    // A fixed time, so that equal content gives equal bytes.
    let options = SimpleFileOptions::default()
        .unix_permissions(0o600)
        .large_file(true)
        .last_modified_time(zip::DateTime::default());
    zip.start_file(path, options).map_err(|error| failed(error.into()))?;
    Ok(write_hashed(zip, path, failed, fill)?.0)
}

/// Writes to `out` with `fill`, in large pieces: the compressor clears its buffer at each call.
fn write_hashed<W: Write>(
    out: W,
    path: &str,
    failed: impl Fn(io::Error) -> ExportError,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
) -> Result<(WrittenFile, W), ExportError> {
    let mut out = BufWriter::with_capacity(PIECE, HashingWriter::new(out));
    fill(&mut out)?;
    let hashed = out.into_inner().map_err(|error| failed(error.into_error()))?;
    Ok(hashed.finish(path))
}

impl ExportTarget {
    /// Renames the partial export to the output path, which another export must not have taken in the meantime.
    fn move_into_place(&self) -> io::Result<()> {
        // A rename of a folder replaces an empty folder, but never one with content.
        let partial = self.partial.path();
        if partial.is_dir() {
            return fs::rename(partial, &self.output);
        }
        match renameat_with(CWD, partial, CWD, &self.output, RenameFlags::NOREPLACE) {
            // Some file systems of USB sticks and network shares do not support `RENAME_NOREPLACE`.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rename_over_placeholder(partial, &self.output)
            }
            placed => Ok(placed?),
        }
    }
}

/// Acts like a rename that replaces nothing, in two steps: the first creates an empty file, which only one process can
/// do.
fn rename_over_placeholder(partial: &Path, output: &Path) -> io::Result<()> {
    new_file(output)?;
    // The reserved file is ours, so remove it if the rename fails.
    fs::rename(partial, output).inspect_err(|_| drop(fs::remove_file(output)))
}

fn empty_folder(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut children| children.next().is_none())
}

/// Creates the folders of `path` in `root`, which must exist: an export whose first files somebody removed is never
/// published.
fn folders(root: &Path, path: &Path) -> io::Result<()> {
    let mut at = root.to_owned();
    for name in path.parent().into_iter().flat_map(Path::iter) {
        at.push(name);
        match fs::DirBuilder::new().mode(0o700).create(&at) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
    }
    Ok(())
}

/// Syncs all folders: an entry is durable only after its folder is synced.
fn sync_folders(root: &Path) -> io::Result<()> {
    for child in fs::read_dir(root)? {
        let child = child?;
        if child.file_type()?.is_dir() {
            sync_folders(&child.path())?;
        }
    }
    File::open(root)?.sync_all()
}

struct HashingWriter<W> {
    inner: W,
    hasher: Sha256,
    bytes: u64,
}

impl<W: Write> HashingWriter<W> {
    fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new(), bytes: 0 }
    }

    fn finish(self, path: &str) -> (WrittenFile, W) {
        let sha256 = Sha256Digest::from_bytes(self.hasher.finalize().into());
        (WrittenFile { path: path.to_owned(), sha256, bytes: self.bytes }, self.inner)
    }
}

impl<W: Write> Write for HashingWriter<W> {
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn written(output: &Path, id: &str) -> ExportTarget {
        let mut target = ExportTarget::create(output, None, id).unwrap();
        target
            .file("name.txt", |file| file.write_all(id.as_bytes()).map_err(ExportError::write(output)))
            .unwrap();
        target
    }

    fn names(folder: &Path) -> Vec<std::ffi::OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn of_two_exports_to_one_place_the_first_stays_and_the_second_is_refused() {
        for name in ["out.zip", "out"] {
            let folder = tempfile::tempdir().unwrap();
            let output = folder.path().join(name);
            let (first, second) = (written(&output, "first"), written(&output, "second"));
            first.publish().unwrap();
            let stays = |output: &Path| fs::read(output).or_else(|_| fs::read(output.join("name.txt")));
            let before = stays(&output).unwrap();
            let refused = second.publish();
            assert!(matches!(refused, Err(ExportError::Occupied { .. })), "{name}: {refused:?}");
            assert_eq!(stays(&output).unwrap(), before, "{name}");
            assert_eq!(names(folder.path()), [name], "nothing is left behind");
        }
    }

    #[test]
    fn an_export_whose_beginning_is_gone_fails() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out");
        let mut target = written(&output, "id");
        fs::remove_dir_all(target.partial.path()).unwrap();
        for path in ["conversations/c1.json", "memory-store.json"] {
            let result = target.file(path, |_| Ok(()));
            assert!(matches!(result, Err(ExportError::Write { .. })), "{path}: {result:?}");
        }
        assert!(target.publish().is_err() && names(folder.path()).is_empty());
    }

    #[test]
    fn an_encrypted_export_goes_to_the_disk_while_it_is_written() {
        const PIECE: u64 = 1 << 20;
        /// One chunk of the encryption, the compressor's buffer, and the file's buffer.
        const HELD: u64 = 256 << 10;
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.zip.age");
        let lock =
            ExportEncryption::parse(&[age::x25519::Identity::generate().to_public().to_string()], None)
                .unwrap();
        let mut target = ExportTarget::create(&output, lock.as_ref(), "id").unwrap();
        let partial = target.partial.path().to_owned();
        let mut noise = vec![0; usize::try_from(PIECE).unwrap()];
        let result = target.file("noise", |file| {
            for piece in 1..=8 {
                // Random data, which cannot be compressed.
                getrandom::fill(&mut noise).unwrap();
                file.write_all(&noise).map_err(ExportError::write(&output))?;
                let there = fs::metadata(&partial).unwrap().len();
                assert!(there + HELD >= piece * PIECE, "{there} bytes after {piece} pieces");
            }
            Ok(())
        });
        assert_eq!(result.unwrap().bytes, 8 * PIECE);
        target.publish().unwrap();
        assert!(fs::read(&output).unwrap().starts_with(envelope::MAGIC));
        assert_eq!(names(folder.path()), ["out.zip.age"]);
    }

    #[test]
    fn a_name_is_reserved_where_rename_cannot_refuse_to_replace() {
        let folder = tempfile::tempdir().unwrap();
        let [one, other, output] = ["one", "other", "out.zip"].map(|name| folder.path().join(name));
        fs::write(&one, "one").unwrap();
        fs::write(&other, "other").unwrap();
        rename_over_placeholder(&one, &output).unwrap();
        assert_eq!(
            rename_over_placeholder(&other, &output).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(fs::read(&output).unwrap(), b"one");
        let elsewhere = folder.path().join("elsewhere.zip");
        assert!(rename_over_placeholder(&folder.path().join("gone"), &elsewhere).is_err());
        assert!(!elsewhere.exists(), "a place that was reserved for nothing is free again");
    }
}
