//! A database of SQLite and the files that SQLite keeps beside it, which have its newest changes.

use std::{
    ffi::OsString,
    io::Read as _,
    path::{Path, PathBuf},
};

use rustix::fs::FileType;

use super::{Limits, SourceError, beneath, builder::BundleBuilder, names};

/// The first bytes of every database.
pub(super) const MAGIC: &[u8] = b"SQLite format 3\0";
/// The first bytes of a write-ahead log; the last bit says how it counts its checksums.
const LOG_MAGICS: [[u8; 4]; 2] = [[0x37, 0x7f, 0x06, 0x82], [0x37, 0x7f, 0x06, 0x83]];

/// A database with files beside it.
#[derive(Clone, Debug)]
pub(super) struct DatabaseFiles {
    /// The folder that no link may lead out of.
    pub(super) base: PathBuf,
    path: PathBuf,
}

impl DatabaseFiles {
    /// Returns the database at `path`, which is `base` or lies below it, if there are files beside it.
    pub(super) fn find(base: &Path, path: &Path) -> Option<Self> {
        let files = if base == path {
            // The files are beside the database, not beside a link to it that the user named.
            let path = path.canonicalize().ok()?;
            Self { base: path.parent()?.to_owned(), path }
        } else {
            Self { base: base.to_owned(), path: path.to_owned() }
        };
        files.beside().next()?;
        let mut head = Vec::new();
        let file = beneath::open_file(&files.base, &files.path).ok()?;
        file.take(MAGIC.len() as u64).read_to_end(&mut head).ok()?;
        (head == MAGIC).then_some(files)
    }

    /// Adds the database as `name`, and the files beside it.
    pub(super) fn add_to(
        &self,
        builder: &mut BundleBuilder,
        name: &str,
        limits: &Limits,
    ) -> Result<(), SourceError> {
        builder.add_file(name.to_owned(), self.path.clone(), limits)?;
        for (path, suffix) in self.beside() {
            builder.add_file(format!("{name}{suffix}"), path, limits)?;
        }
        Ok(())
    }

    /// Returns the files beside it, with what their names append to its name.
    fn beside(&self) -> impl Iterator<Item = (PathBuf, &'static str)> {
        [names::DATABASE_LOG, names::DATABASE_JOURNAL].into_iter().filter_map(|suffix| {
            let mut path = OsString::from(&self.path);
            path.push(suffix);
            let path = PathBuf::from(path);
            let stat = beneath::stat(&self.base, &path).ok()?;
            (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some((path, suffix))
        })
    }
}

/// Returns whether these are the first bytes of the log of a database. A program appends to it only what is of later transactions.
pub(super) fn is_log(head: &[u8]) -> bool {
    LOG_MAGICS.iter().any(|magic| head.starts_with(magic))
}

/// Returns the number of bytes of a page, if this is the start of a database.
pub(super) fn page_size(head: &[u8]) -> Option<u64> {
    let size = head.strip_prefix(MAGIC)?.first_chunk().copied().map(u16::from_be_bytes)?;
    Some(if size == 1 { 65_536 } else { u64::from(size).max(1) })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;
    use crate::{FileSet as _, Source};

    fn names_in(source: &Source) -> Vec<String> {
        let bundle = source.open(&Limits::default()).unwrap();
        bundle.list().iter().map(|entry| entry.path.clone()).collect()
    }

    #[test]
    fn a_database_brings_its_log_along() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chats.db");
        fs::write(&path, [MAGIC, b"pages"].concat()).unwrap();
        assert!(!Source::at(&path).unwrap().folder(), "without a log it is a single file");
        fs::write(folder.path().join("chats.db-wal"), [0x37, 0x7f, 0x06, 0x82, 1]).unwrap();
        fs::write(folder.path().join("chats.db-shm"), "index").unwrap();
        fs::write(folder.path().join("other.db-shm"), "index of nothing").unwrap();
        let link = folder.path().join("link.db");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let both = ["chats.db", "chats.db-wal"];
        for source in [
            Source::at(&path).unwrap(),
            Source::at(&link).unwrap(),
            Source::beneath(folder.path(), "chats.db".as_ref()).unwrap(),
            Source::session(folder.path(), "chats.db".as_ref()).unwrap(),
        ] {
            assert!(source.folder());
            assert_eq!(names_in(&source), both);
        }
        assert_eq!(
            names_in(&Source::at(folder.path()).unwrap()),
            ["chats.db", "chats.db-wal", "other.db-shm"]
        );
    }

    #[test]
    fn what_is_appended_to_the_log_is_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let (path, log) = (folder.path().join("chats.db"), folder.path().join("chats.db-wal"));
        fs::write(&path, [MAGIC, b"pages"].concat()).unwrap();
        fs::write(&log, [0x37, 0x7f, 0x06, 0x83, 1]).unwrap();
        let bundle = Source::at(&path).unwrap().open(&Limits::default()).unwrap();
        fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(b"more").unwrap();
        bundle.check_unchanged().unwrap();
        let mut read = Vec::new();
        bundle.open("chats.db-wal", 0).unwrap().read_to_end(&mut read).unwrap();
        assert_eq!(read, [0x37, 0x7f, 0x06, 0x83, 1]);
        fs::write(&path, [MAGIC, b"other"].concat()).unwrap();
        assert!(matches!(bundle.check_unchanged(), Err(SourceError::Changed { .. })));
    }

    #[test]
    fn a_database_may_end_in_zeros_but_not_in_the_middle_of_a_page() {
        let missing = |length: usize| {
            let mut bytes = [MAGIC, &[2, 0]].concat();
            bytes.resize(length, 0);
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            crate::completeness::missing_end(file, "chats.db".as_ref()).unwrap()
        };
        assert_eq!(missing(1024), None);
        assert_eq!(missing(1025).as_deref(), Some("the database ends in the middle of a page"));
    }

    #[test]
    fn a_database_in_an_archive_is_read_in_any_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("export.zip");
        let mut archive = zip::ZipWriter::new(fs::File::create(&path).unwrap());
        let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        for name in ["data/chats.db", "data/chats.txt"] {
            archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(&bytes).unwrap();
        }
        archive.finish().unwrap();
        // A read from the middle of a compressed file unpacks what is before it, which counts.
        let limits = Limits { total_bytes: 3 * bytes.len() as u64, ..Limits::default() };
        let bundle = Source::at(&path).unwrap().open(&limits).unwrap();
        let read = |name: &str, offset: usize| {
            let mut part = [0; 100];
            bundle.open(name, offset as u64).and_then(|mut file| file.read_exact(&mut part)).map(|()| part)
        };
        for offset in (0..bytes.len() - 100).rev().step_by(50_000) {
            assert_eq!(read("data/chats.db", offset).unwrap(), bytes[offset..offset + 100], "{offset}");
        }
        assert!(
            (0..9).any(|_| read("data/chats.txt", bytes.len() - 100).is_err()),
            "other files stay packed"
        );
        assert_eq!(bundle.archive_of("data/chats.db"), bundle.archive_of("data/chats.txt"));
        bundle.check_unchanged().unwrap();
    }

    #[test]
    fn an_unrelated_file_with_such_a_name_stays_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        fs::write(&path, "text").unwrap();
        fs::write(folder.path().join("notes.txt-wal"), "text").unwrap();
        assert!(!Source::at(&path).unwrap().folder());
    }
}
