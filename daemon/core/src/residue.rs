//! Finds the remains of interrupted work in a data directory or next to it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::vault;

/// A file or folder that may be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResidueEntry {
    /// The path of the file or folder.
    pub path: PathBuf,
    /// A description for the user.
    pub description: &'static str,
    /// The size in bytes.
    pub bytes: u64,
    /// How it can be removed.
    pub removal: Removal,
}

/// How a residue entry can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It may be removed while this process holds the data directory.
    Safe,
    /// Only the user knows whether it is still in use.
    AskUser,
    /// The next opening of the store completes or removes it; nothing else may touch it.
    NextOpen,
}

/// A database that was set aside.
const SET_ASIDE: &str = "a database that was set aside; another was built from the journal in its place";
/// A database that was set aside while the journal is damaged.
const SET_ASIDE_DAMAGED: &str =
    "a database that was set aside; the journal is damaged, and it may hold what the journal has lost";
/// A database that contains data that a damaged journal has lost.
const KEPT: &str =
    "a database that shows what the damaged journal has lost; `satchel rebuild --put-back` puts it back";
/// A whole data directory that a restore set aside.
const REPLACED: &str = "the previous data directory, which a restore set aside";
/// The folder in which an encrypted store is built.
const UNENCRYPTED: &str = "an interrupted encryption; the store is unchanged";
/// A file that was to replace another one.
const UNFINISHED: &str = "an unfinished file; the previous one is still in use";
/// The folder in which the store is rewritten without the erased data.
const ERASING: &str = "an interrupted erasure; nothing has been erased yet";
/// The same folder after it is complete: parts of it may be the only copy.
const ERASED: &str = "an erasure that was interrupted while it replaced the old files";
/// Compiled importers of a program version that kept them in each data directory.
const OLD_CACHE: &str = "compiled importers of an older version of satchel, no longer used";
/// A store that is being built from a backup.
const RESTORING: &str = "a restore that is running or was interrupted; if none is running, remove the folder: the backup contains everything";

/// Returns all residue in `data_dir` and next to it, ordered by path.
///
/// # Errors
/// The file system refuses.
pub fn find(data_dir: &Path) -> io::Result<Vec<ResidueEntry>> {
    let mut found = Vec::new();
    // While an encryption is in progress, the folder holds the only copy of what is already encrypted, and the next
    // start continues with it.
    let plain = matches!(vault::status(data_dir), Ok(None));
    let damaged = data_dir.join("journal.damaged").exists();
    for (path, name) in entries(data_dir)? {
        let (description, removal) = match name.as_str() {
            "encrypting" if plain => (UNENCRYPTED, Removal::Safe),
            // Earlier versions kept compiled importers here; nothing reads them any more.
            "cache" => (OLD_CACHE, Removal::Safe),
            "purging.new" => (ERASING, Removal::NextOpen),
            "purging" => (ERASED, Removal::NextOpen),
            "db.new" => (UNFINISHED, Removal::Safe),
            name if name.starts_with("db.broken-") && damaged => (SET_ASIDE_DAMAGED, Removal::AskUser),
            name if name.starts_with("db.broken-") => (SET_ASIDE, Removal::Safe),
            name if name.starts_with("db.kept-") && damaged && name.strip_suffix(".state").is_some() => {
                continue;
            }
            name if name.starts_with("db.kept-") && damaged => (KEPT, Removal::AskUser),
            // The journal is intact again and contains everything.
            name if name.starts_with("db.kept-") => (SET_ASIDE, Removal::Safe),
            _ => continue,
        };
        found.push(ResidueEntry { bytes: size(&path)?, path, description, removal });
    }
    for (path, name) in entries(&data_dir.join("keys"))? {
        if name.starts_with(".data-key-") {
            found.push(ResidueEntry {
                bytes: size(&path)?,
                path,
                description: UNFINISHED,
                removal: Removal::Safe,
            });
        }
    }
    for path in siblings(data_dir, |own| format!(".{own}.restoring-"))? {
        found.push(ResidueEntry {
            bytes: size(&path)?,
            path,
            description: RESTORING,
            removal: Removal::AskUser,
        });
    }
    for path in replaced(data_dir)? {
        found.push(ResidueEntry {
            bytes: size(&path)?,
            path,
            description: REPLACED,
            removal: Removal::AskUser,
        });
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Returns the data directories that restores set aside next to `data_dir`, and the remains of unfinished restores.
/// Data that is erased or encrypted in `data_dir` stays unchanged in them.
///
/// # Errors
/// The file system refuses.
pub fn next_to(data_dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = replaced(data_dir)?;
    found.extend(siblings(data_dir, |own| format!(".{own}.restoring-"))?);
    found.sort();
    Ok(found)
}

fn replaced(data_dir: &Path) -> io::Result<Vec<PathBuf>> {
    siblings(data_dir, |own| format!("{own}.replaced-"))
}

/// Returns the entries next to the data directory whose names begin with a prefix.
fn siblings(data_dir: &Path, begin: impl Fn(&str) -> String) -> io::Result<Vec<PathBuf>> {
    // The folder may be a link to a larger disk; a restore works there too.
    let data_dir = &fs::canonicalize(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    let (Some(above), Some(own)) = (data_dir.parent(), data_dir.file_name()) else { return Ok(Vec::new()) };
    let begin = begin(&own.to_string_lossy());
    let fitting = entries(above)?.into_iter().filter(|(_, name)| name.starts_with(&begin));
    Ok(fitting.map(|(path, _)| path).collect())
}

/// Removes an entry. The caller must hold the data directory.
///
/// # Errors
/// The file system refuses.
pub fn remove(entry: &ResidueEntry) -> io::Result<()> {
    let path = &entry.path;
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn entries(folder: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let list = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        list => list?,
    };
    let named = |entry: fs::DirEntry| (entry.path(), entry.file_name().to_string_lossy().into_owned());
    list.map(|entry| entry.map(named)).collect()
}

/// Returns the size in bytes of a file, or of all files in a folder. Links are not followed.
fn size(path: &Path) -> io::Result<u64> {
    let about = fs::symlink_metadata(path)?;
    if !about.is_dir() {
        return Ok(about.len());
    }
    entries(path)?.iter().try_fold(0_u64, |sum, (path, _)| Ok(sum.saturating_add(size(path)?)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn residue_of_interrupted_work_is_found_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        for folder in [
            "db",
            "db.broken-3/inner",
            "encrypting/journal",
            "keys",
            "journal",
            "blobs/ab",
            "purging.new",
            "purging/db",
        ] {
            fs::create_dir_all(data.join(folder)).unwrap();
        }
        fs::create_dir(home.path().join(".data.restoring-1")).unwrap();
        fs::create_dir(home.path().join(".other.restoring-1")).unwrap();
        fs::create_dir_all(home.path().join("data.replaced-1/journal")).unwrap();
        fs::create_dir_all(data.join("db.kept-1")).unwrap();
        fs::write(data.join("db.kept-1.state"), "{}").unwrap();
        for file in [
            "db.broken-3/inner/db",
            "purging/db/db",
            "db.state",
            "db.new",
            "keys/.data-key-x",
            "journal/1.log",
        ] {
            fs::write(data.join(file), "12345").unwrap();
        }
        let found = find(&data).unwrap();
        let listed: Vec<(String, u64, Removal)> = found
            .iter()
            .map(|one| {
                let path = one.path.strip_prefix(home.path()).unwrap();
                (path.to_str().unwrap().to_owned(), one.bytes, one.removal)
            })
            .collect();
        let expected = [
            (".data.restoring-1", 0, Removal::AskUser),
            ("data/db.broken-3", 5, Removal::Safe),
            ("data/db.kept-1", 0, Removal::Safe),
            ("data/db.kept-1.state", 2, Removal::Safe),
            ("data/db.new", 5, Removal::Safe),
            ("data/encrypting", 0, Removal::Safe),
            ("data/keys/.data-key-x", 5, Removal::Safe),
            ("data/purging", 5, Removal::NextOpen),
            ("data/purging.new", 0, Removal::NextOpen),
            ("data.replaced-1", 0, Removal::AskUser),
        ];
        let expected: Vec<_> = expected.map(|(path, bytes, way)| (path.into(), bytes, way)).into();
        assert_eq!(listed, expected);
        found.iter().filter(|one| one.removal == Removal::Safe).for_each(|one| remove(one).unwrap());
        assert_eq!(find(&data).unwrap().len(), 4);
        assert_eq!(next_to(&data).unwrap().len(), 2);
        assert!(data.join("db.state").exists() && data.join("journal/1.log").exists());
    }

    #[test]
    fn with_a_damaged_journal_no_database_is_offered_for_removal() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("db.broken-1")).unwrap();
        fs::create_dir(home.path().join("db.kept-1")).unwrap();
        fs::write(home.path().join("db.kept-1.state"), "{}").unwrap();
        assert!(find(home.path()).unwrap().iter().all(|one| one.removal == Removal::Safe));
        fs::write(home.path().join("journal.damaged"), "{}").unwrap();
        let found = find(home.path()).unwrap();
        let listed: Vec<(Removal, &str)> = found.iter().map(|one| (one.removal, one.description)).collect();
        assert_eq!(listed, [(Removal::AskUser, SET_ASIDE_DAMAGED), (Removal::AskUser, KEPT)]);
    }

    #[test]
    fn an_encryption_in_progress_is_not_residue() {
        let home = tempfile::tempdir().unwrap();
        for folder in ["encrypting", "keys"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        // Whatever this file contains, its presence means that the store may be encrypted.
        fs::write(home.path().join("keys/data-key.json"), "{}").unwrap();
        assert_eq!(find(home.path()).unwrap(), []);
    }
}
