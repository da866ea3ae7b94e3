//! What the user points at: a file or a folder, examined once and opened as a bundle.

use std::{
    ffi::OsStr,
    io::{self, Read as _, Seek as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{FileType, Stat};
use satchel_pam::hash::Sha256Digest;

use super::{
    Bundle, Heartbeat, Limits, ReadAt, SourceError,
    archive::{SharedFile, file_name, has_zip_magic},
    beneath,
    builder::BundleBuilder,
    database::DatabaseFiles,
    identity::{self, SourceStamp},
    location::ContainingArchive,
    names, tree,
};
use crate::{
    CancelToken,
    envelope::{DecryptionKeys, EnvelopeOpenError, MAGIC},
};

/// A file or folder, with its state when it was examined.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it is.
    pub path: PathBuf,
    /// The last component of the path, for messages.
    pub name: String,
    /// The folder that no link may lead out of; the path itself if the user named it.
    base: PathBuf,
    /// Whether it is a session to which a program appends, with what belongs to it.
    session: bool,
    /// The database that it is, if SQLite keeps files beside it.
    database: Option<DatabaseFiles>,
    /// The keys that open it if it is encrypted.
    keys: Option<DecryptionKeys>,
    stamp: SourceStamp,
    /// Whether unfinished downloads in it are skipped.
    skip_downloads: bool,
    /// Records every call to the file system that holds the source.
    heartbeat: Heartbeat,
    /// The bytes, if they are not those of the file at `path`.
    stored: Option<Arc<dyn ReadAt>>,
}

impl Source {
    /// Examines `path`, following a symbolic link that the user named.
    pub fn at(path: &Path) -> Result<Self, SourceError> {
        let name = path
            .canonicalize()
            .ok()
            .and_then(|whole| whole.file_name().map(|name| name.to_string_lossy().into_owned()))
            .unwrap_or_else(|| path.display().to_string());
        Self::examine(path, path, name)
    }

    /// Examines `name` in the folder `root`. Nothing outside of `root` is read, even if something is replaced by a link
    /// in the meantime.
    pub fn beneath(root: &Path, name: &OsStr) -> Result<Self, SourceError> {
        Self::examine(root, &root.join(name), name.to_string_lossy().into_owned())
    }

    /// Examines a session in the folder `root`, to which a program may append while it is read. `name` is the path of its
    /// file below `root`; what is in the folder with the name of the file, without its extension, belongs to it. Or it is
    /// the path of a folder, whose files all belong together. The files are named by their paths below `root`, and of
    /// those with lines, the lines are read that are whole now.
    pub fn session(root: &Path, name: &OsStr) -> Result<Self, SourceError> {
        Ok(Self { session: true, ..Self::beneath(root, name)? })
    }

    fn examine(base: &Path, path: &Path, name: String) -> Result<Self, SourceError> {
        let stat = beneath::stat(base, path).map_err(SourceError::read(path))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile && kind != FileType::Directory {
            return Err(SourceError::NotAFile { path: path.to_owned() });
        }
        let (stamp, heartbeat) = (SourceStamp::of(&stat), Heartbeat::default());
        let database = if kind == FileType::RegularFile { DatabaseFiles::find(base, path) } else { None };
        Ok(Self {
            path: path.to_owned(),
            name,
            base: base.to_owned(),
            session: false,
            database,
            keys: None,
            stamp,
            skip_downloads: false,
            heartbeat,
            stored: None,
        })
    }

    /// Creates a source of `length` bytes that are not a file of the machine. Messages name it as `path`.
    #[must_use]
    pub fn stored(path: &Path, bytes: Arc<dyn ReadAt>, length: u64) -> Self {
        Self {
            path: path.to_owned(),
            name: file_name(path),
            base: path.to_owned(),
            session: false,
            database: None,
            keys: None,
            stamp: SourceStamp::stored(length),
            skip_downloads: false,
            heartbeat: Heartbeat::default(),
            stored: Some(bytes),
        }
    }

    /// Sets the `keys` that open the source if it is encrypted.
    #[must_use]
    pub fn with_keys(self, keys: Option<DecryptionKeys>) -> Self {
        Self { keys, ..self }
    }

    /// Records every call to the file system in `heartbeat`.
    #[must_use]
    pub fn with_heartbeat(self, heartbeat: Heartbeat) -> Self {
        Self { heartbeat, ..self }
    }

    /// Returns the number of bytes of a file; 0 for a folder.
    pub fn length(&self) -> u64 {
        self.stamp.length()
    }

    /// Skips unfinished downloads in a folder and lists them as unread.
    #[must_use]
    pub fn skipping_downloads(self) -> Self {
        Self { skip_downloads: true, ..self }
    }

    /// Returns the unit that this source is, if it is an archive.
    fn as_archive(&self) -> Arc<ContainingArchive> {
        Arc::new(ContainingArchive { name: self.name.as_str().into(), nesting: 1 })
    }

    /// Returns whether it may have several files: a folder, a session, which may have files in a folder of its own, and a database
    /// with files beside it.
    pub fn folder(&self) -> bool {
        self.session || self.database.is_some() || self.stamp.is_folder()
    }

    /// Opens it as a bundle of files.
    pub fn open(&self, limits: &Limits) -> Result<Bundle, SourceError> {
        self.open_cancellable(limits, &CancelToken::new())
    }

    /// Opens it as a bundle of files. Once `cancel` was raised, opening and reading fail at the next bytes.
    pub fn open_cancellable(&self, limits: &Limits, cancel: &CancelToken) -> Result<Bundle, SourceError> {
        let _call = self.heartbeat.begin_call();
        let base = self.database.as_ref().map_or(&self.base, |database| &database.base);
        let builder = BundleBuilder::new(base, self.skip_downloads, (cancel, &self.heartbeat));
        let mut builder = if self.session { builder.appended() } else { builder };
        if self.session {
            self.add_session(limits, &mut builder)?;
            return Ok(builder.finish(limits));
        }
        if let Some(database) = &self.database {
            database.add_to(&mut builder, &self.name, limits)?;
            return Ok(builder.finish(limits));
        }
        if self.folder() {
            tree::walk((&self.path, ""), limits, &mut builder)?;
            return Ok(builder.finish(limits));
        }
        let read = SourceError::read;
        let mut file = self.file()?;
        if is_zip(&mut file).map_err(read(&self.path))? {
            builder.add_archive("", file.at(0), &self.path, limits, &self.as_archive())?;
        } else if is_encrypted(&mut file).map_err(read(&self.path))? {
            let keys = self.keys.clone().unwrap_or_default();
            let failed = |error| SourceError::Encrypted { path: self.path.clone(), source: error };
            let file = keys.open(file.at(0)).map_err(failed)?;
            let file = SharedFile::decrypted(file).map_err(|_| failed(EnvelopeOpenError::Damaged))?;
            builder.add_archive("", file, &self.path, limits, &self.as_archive())?;
        } else if self.stored.is_some() {
            builder.add_stored(self.name.clone(), file.at(0), limits)?;
        } else {
            builder.add_file(self.name.clone(), self.path.clone(), limits)?;
        }
        Ok(builder.finish(limits))
    }

    fn add_session(&self, limits: &Limits, builder: &mut BundleBuilder) -> Result<(), SourceError> {
        let below = self.path.strip_prefix(&self.base).ok().and_then(Path::to_str);
        let Some(name) = below else {
            builder.add_unread(self.name.clone(), "its name is not UTF-8");
            return Ok(());
        };
        if self.stamp.is_folder() {
            return tree::walk((&self.path, &format!("{name}/")), limits, builder);
        }
        if let Some(database) = &self.database {
            return database.add_to(builder, name, limits);
        }
        builder.add_file(name.to_owned(), self.path.clone(), limits)?;
        self.add_project_file(limits, builder)?;
        if !self.path.file_name().is_some_and(names::has_lines) {
            return Ok(());
        }
        let folder = self.path.with_extension("");
        let is_folder = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if beneath::stat(&self.base, &folder).is_ok_and(|stat| is_folder(&stat)) {
            let prefix = Path::new(name).with_extension("");
            return tree::walk((&folder, &format!("{}/", prefix.display())), limits, builder);
        }
        Ok(())
    }

    /// Adds the file that names the folder of the session's project, if there is one above the session.
    fn add_project_file(&self, limits: &Limits, builder: &mut BundleBuilder) -> Result<(), SourceError> {
        let above = self.path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.base));
        for file in above.map(|folder| folder.join(names::PROJECT_FILE)) {
            let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            if let Some(name) = file.strip_prefix(&self.base).ok().and_then(Path::to_str)
                && beneath::stat(&self.base, &file).is_ok_and(|stat| is_file(&stat))
            {
                return builder.add_file(name.to_owned(), file.clone(), limits);
            }
        }
        Ok(())
    }

    /// Opens the file.
    fn file(&self) -> Result<SharedFile, SourceError> {
        if let Some(bytes) = &self.stored {
            return Ok(SharedFile::stored(Arc::clone(bytes), self.length()));
        }
        let file = beneath::open_file(&self.base, &self.path).and_then(SharedFile::new);
        file.map_err(SourceError::read(&self.path))
    }

    /// Fails if the bytes may differ from those at the time when the source was examined.
    pub fn check_unchanged(&self) -> Result<(), SourceError> {
        // The bundle compares each of the files of a session or a database.
        if self.stored.is_some() || self.session || self.database.is_some() {
            return Ok(());
        }
        let _call = self.heartbeat.begin_call();
        let now = beneath::stat(&self.base, &self.path).map_err(SourceError::read(&self.path))?;
        if SourceStamp::of(&now) == self.stamp {
            Ok(())
        } else {
            Err(SourceError::Changed { path: self.path.clone() })
        }
    }

    /// Hashes a single file in one pass.
    pub fn checksum(
        &self,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<Option<Sha256Digest>, SourceError> {
        let call = self.heartbeat.begin_call();
        let mut file = self.file()?;
        let mut progress = |bytes| {
            self.heartbeat.beat();
            progress(bytes)
        };
        let digest = identity::hash(&mut file, &mut progress).map_err(SourceError::read(&self.path))?;
        drop(call);
        self.check_unchanged()?;
        Ok(digest)
    }
}

fn is_zip(file: &mut SharedFile) -> io::Result<bool> {
    let mut head = Vec::new();
    file.take(4).read_to_end(&mut head)?;
    Ok(has_zip_magic(&head))
}

/// Returns whether the file is encrypted, and rewinds it to its first byte.
fn is_encrypted(file: &mut SharedFile) -> io::Result<bool> {
    let mut head = Vec::new();
    file.rewind()?;
    file.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(head == MAGIC)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;
    use crate::FileSet as _;

    fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in entries {
            writer.start_file(*name, SimpleFileOptions::default()).expect("a file is begun");
            writer.write_all(bytes).expect("a file is written");
        }
        writer.finish().expect("the archive is finished").into_inner()
    }

    #[test]
    fn a_session_brings_the_file_of_its_project() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            std::fs::write(path, "{}\n").expect("it is written");
        };
        let files = ["a/.project_root", "a/chats/one.jsonl", "a/chats/one/two.jsonl", "b/chats/three.jsonl"];
        files.iter().for_each(|name| write(name));
        let names = |session: &str| -> Vec<String> {
            let source = Source::session(folder.path(), session.as_ref());
            let bundle = source.and_then(|source| source.open(&Limits::default())).expect("it opens");
            bundle.list().iter().map(|entry| entry.path.clone()).collect()
        };
        assert_eq!(names("a/chats/one.jsonl"), files[..3]);
        assert_eq!(names("a/chats/one/two.jsonl"), [files[0], files[2]]);
        assert_eq!(names("b/chats/three.jsonl"), files[3..]);
    }

    #[test]
    fn nested_archives_of_a_provider_are_opened_and_other_archives_stay_files() {
        let inner = zip(&[("conversations.json", b"[]")]);
        let outer = zip(&[
            ("Conversations__1.zip", &inner),
            ("export/memories-000.zip", &zip(&[("memories/a.json", b"{}")])),
            ("export/frames-000.zip", b"PK\x03\x04 and then nothing"),
            ("export/holiday.zip", &inner),
            ("user.json", b"{}"),
        ]);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("export.zip");
        std::fs::write(&path, outer).expect("the archive is written");
        let limits = Limits::default();
        let bundle = Source::at(&path).and_then(|source| source.open(&limits)).expect("it opens");
        let names: Vec<&str> = bundle.list().iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(
            names,
            [
                "Conversations__1.zip/conversations.json",
                "export/holiday.zip",
                "export/memories-000.zip/memories/a.json",
                "user.json"
            ]
        );
        let mut text = String::new();
        let mut reader = bundle.open(names[0], 0).expect("an inner file opens");
        reader.read_to_string(&mut text).expect("an inner file is read");
        assert_eq!(text, "[]");
        let unread: Vec<&str> = bundle.unread().iter().map(|unread| unread.name.as_str()).collect();
        assert_eq!(unread, ["export/frames-000.zip"], "a broken one is named");
    }
}
