//! Finds the remains of interrupted work in a data directory or next to it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::vault;

/// A file or folder that may be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The path of the file or folder.
    pub path: PathBuf,
    /// A description for the user.
    pub what: &'static str,
    /// The size in bytes.
    pub bytes: u64,
    /// How it can be removed.
    pub way: Way,
}

/// How a leftover can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It may be removed while this process holds the data directory.
    Remove,
    /// Only the user knows whether it is still in use.
    Owner,
    /// The next opening of the store completes or removes it; nothing else may touch it.
    Open,
}

/// A database that was set aside.
const SET_ASIDE: &str = "a database that was set aside; another was built from the journal in its place";
/// A database that was set aside while the journal is damaged.
const MAY_HOLD: &str =
    "a database that was set aside; the journal is damaged, and it may hold what the journal has lost";
/// A database that contains data that a damaged journal has lost.
const KEPT: &str =
    "a database that shows what the damaged journal has lost; `satchel rebuild --put-back` puts it back";
/// A whole data directory that a restore set aside.
const REPLACED: &str = "the data directory that a restore set aside, with all that was in it";
/// The folder in which an encrypted store is built.
const UNENCRYPTED: &str = "a try to encrypt that was cut off; the store is as it was before";
/// A file that was to replace another one.
const UNFINISHED: &str = "a file that was not finished; the one before it counts";
/// The folder in which the store is rewritten without the erased data.
const ERASING: &str = "an erasure that was cut off; nothing has been erased yet";
/// The same folder after it is complete: parts of it may be the only copy.
const ERASED: &str = "an erasure that was cut off while it replaced the old files";
/// Compiled importers of a program version that kept them in each data directory.
const OLD_CACHE: &str = "compiled importers of an older version of satchel, which are used no more";
/// A store that is being built from a backup.
const RESTORING: &str = "a restore that runs, or was cut off: then remove the folder, the backup has it all";

/// Returns all leftovers in `data_dir` and next to it, ordered by path.
///
/// # Errors
/// The file system refuses.
pub fn find(data_dir: &Path) -> io::Result<Vec<Leftover>> {
    let mut found = Vec::new();
    // While an encryption is in progress, the folder holds the only copy of what is already encrypted, and the next
    // start continues with it.
    let plain = matches!(vault::status(data_dir), Ok(None));
    let damaged = data_dir.join("journal.damaged").exists();
    for (path, name) in entries(data_dir)? {
        let (what, way) = match name.as_str() {
            "encrypting" if plain => (UNENCRYPTED, Way::Remove),
            // Earlier versions kept compiled importers here; nothing reads them any more.
            "cache" => (OLD_CACHE, Way::Remove),
            "purging.new" => (ERASING, Way::Open),
            "purging" => (ERASED, Way::Open),
            "db.new" => (UNFINISHED, Way::Remove),
            name if name.starts_with("db.broken-") && damaged => (MAY_HOLD, Way::Owner),
            name if name.starts_with("db.broken-") => (SET_ASIDE, Way::Remove),
            name if name.starts_with("db.kept-") && damaged && name.strip_suffix(".state").is_some() => {
                continue;
            }
            name if name.starts_with("db.kept-") && damaged => (KEPT, Way::Owner),
            // The journal is intact again and contains everything.
            name if name.starts_with("db.kept-") => (SET_ASIDE, Way::Remove),
            _ => continue,
        };
        found.push(Leftover { bytes: size(&path)?, path, what, way });
    }
    for (path, name) in entries(&data_dir.join("keys"))? {
        if name.starts_with(".data-key-") {
            found.push(Leftover { bytes: size(&path)?, path, what: UNFINISHED, way: Way::Remove });
        }
    }
    for path in beginning(data_dir, |own| format!(".{own}.restoring-"))? {
        found.push(Leftover { bytes: size(&path)?, path, what: RESTORING, way: Way::Owner });
    }
    for path in replaced(data_dir)? {
        found.push(Leftover { bytes: size(&path)?, path, what: REPLACED, way: Way::Owner });
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Returns the data directories that restores set aside next to `data_dir`, and the remains of unfinished restores.
/// Data that is erased or encrypted in `data_dir` stays unchanged in them.
///
/// # Errors
/// The file system refuses.
pub fn beside(data_dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = replaced(data_dir)?;
    found.extend(beginning(data_dir, |own| format!(".{own}.restoring-"))?);
    found.sort();
    Ok(found)
}

fn replaced(data_dir: &Path) -> io::Result<Vec<PathBuf>> {
    beginning(data_dir, |own| format!("{own}.replaced-"))
}

/// Returns the entries next to the data directory whose names begin with a prefix.
fn beginning(data_dir: &Path, begin: impl Fn(&str) -> String) -> io::Result<Vec<PathBuf>> {
    // The folder may be a link to a larger disk; a restore works there too.
    let data_dir = &fs::canonicalize(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    let (Some(above), Some(own)) = (data_dir.parent(), data_dir.file_name()) else { return Ok(Vec::new()) };
    let begin = begin(&own.to_string_lossy());
    let fitting = entries(above)?.into_iter().filter(|(_, name)| name.starts_with(&begin));
    Ok(fitting.map(|(path, _)| path).collect())
}

/// Removes a leftover. The caller must hold the data directory.
///
/// # Errors
/// The file system refuses.
pub fn remove(leftover: &Leftover) -> io::Result<()> {
    let path = &leftover.path;
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
    fn what_was_cut_off_is_found_and_nothing_else() {
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
        let told: Vec<(String, u64, Way)> = found
            .iter()
            .map(|one| {
                let path = one.path.strip_prefix(home.path()).unwrap();
                (path.to_str().unwrap().to_owned(), one.bytes, one.way)
            })
            .collect();
        let expected = [
            (".data.restoring-1", 0, Way::Owner),
            ("data/db.broken-3", 5, Way::Remove),
            ("data/db.kept-1", 0, Way::Remove),
            ("data/db.kept-1.state", 2, Way::Remove),
            ("data/db.new", 5, Way::Remove),
            ("data/encrypting", 0, Way::Remove),
            ("data/keys/.data-key-x", 5, Way::Remove),
            ("data/purging", 5, Way::Open),
            ("data/purging.new", 0, Way::Open),
            ("data.replaced-1", 0, Way::Owner),
        ];
        let expected: Vec<_> = expected.map(|(path, bytes, way)| (path.into(), bytes, way)).into();
        assert_eq!(told, expected);
        found.iter().filter(|one| one.way == Way::Remove).for_each(|one| remove(one).unwrap());
        assert_eq!(find(&data).unwrap().len(), 4);
        assert_eq!(beside(&data).unwrap().len(), 2);
        assert!(data.join("db.state").exists() && data.join("journal/1.log").exists());
    }

    #[test]
    fn beside_a_damaged_journal_no_database_is_offered_for_removal() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("db.broken-1")).unwrap();
        fs::create_dir(home.path().join("db.kept-1")).unwrap();
        fs::write(home.path().join("db.kept-1.state"), "{}").unwrap();
        assert!(find(home.path()).unwrap().iter().all(|one| one.way == Way::Remove));
        fs::write(home.path().join("journal.damaged"), "{}").unwrap();
        let found = find(home.path()).unwrap();
        let told: Vec<(Way, &str)> = found.iter().map(|one| (one.way, one.what)).collect();
        assert_eq!(told, [(Way::Owner, MAY_HOLD), (Way::Owner, KEPT)]);
    }

    #[test]
    fn what_is_sealed_already_is_no_leftover() {
        let home = tempfile::tempdir().unwrap();
        for folder in ["encrypting", "keys"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        // Whatever this file contains, its presence means that the store may be encrypted.
        fs::write(home.path().join("keys/data-key.json"), "{}").unwrap();
        assert_eq!(find(home.path()).unwrap(), []);
    }
}
