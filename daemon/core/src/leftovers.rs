//! What work that was cut off left in a data directory or beside it, and nobody needs any more.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::vault;

/// A file or folder that could go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is.
    pub what: &'static str,
    /// Bytes that it takes.
    pub bytes: u64,
    /// What becomes of it.
    pub way: Way,
}

/// How something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It may be removed while we alone have the data directory.
    Remove,
    /// Only its owner knows whether somebody works with it.
    Owner,
    /// The next time that the store is opened it is completed or removed; nobody else may touch it.
    Open,
}

/// A database that was set aside.
const SET_ASIDE: &str = "a database that was set aside; another was built from the journal in its place";
/// The same where the journal is damaged.
const MAY_HOLD: &str =
    "a database that was set aside; the journal is damaged, and it may hold what the journal has lost";
/// A database that shows what a damaged journal has lost.
const KEPT: &str =
    "a database that shows what the damaged journal has lost; `satchel rebuild --put-back` puts it back";
/// A whole data directory that a restore set aside.
const REPLACED: &str = "the data directory that a restore set aside, with all that was in it";
/// The folder in which an encrypted store is built.
const UNENCRYPTED: &str = "a try to encrypt that was cut off; the store is as it was before";
/// A file that was to take the place of another.
const UNFINISHED: &str = "a file that was not finished; the one before it counts";
/// The folder in which the store is written without what is erased.
const ERASING: &str = "an erasure that was cut off; nothing has been erased yet";
/// The same when it is whole: parts of it may be the only copy.
const ERASED: &str = "an erasure that was cut off while it replaced the old files";
/// Compiled importers of a program that kept them for each data directory.
const OLD_CACHE: &str = "compiled importers of an older version of satchel, which are used no more";
/// A store that is built from a backup.
const RESTORING: &str = "a restore that runs, or was cut off: then remove the folder, the backup has it all";

/// Names everything of that kind in and beside `data_dir`, by path.
///
/// # Errors
/// What the file system refuses.
pub fn find(data_dir: &Path) -> io::Result<Vec<Leftover>> {
    let mut found = Vec::new();
    // While an encryption is on its way the folder holds the only copy of what has been sealed: the next start goes on with it.
    let plain = matches!(vault::status(data_dir), Ok(None));
    let damaged = data_dir.join("journal.damaged").exists();
    for (path, name) in entries(data_dir)? {
        let (what, way) = match name.as_str() {
            "encrypting" if plain => (UNENCRYPTED, Way::Remove),
            // Until now compiled importers were kept here; nothing reads them any more.
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
            // The journal is whole again, and has it all.
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

/// The data directories that restores set aside beside `data_dir`, and what an unfinished restore left there: what is erased or
/// encrypted in `data_dir` stays in them as it was.
///
/// # Errors
/// What the file system refuses.
pub fn beside(data_dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = replaced(data_dir)?;
    found.extend(beginning(data_dir, |own| format!(".{own}.restoring-"))?);
    found.sort();
    Ok(found)
}

fn replaced(data_dir: &Path) -> io::Result<Vec<PathBuf>> {
    beginning(data_dir, |own| format!("{own}.replaced-"))
}

/// What lies beside the data directory under names that begin so.
fn beginning(data_dir: &Path, begin: impl Fn(&str) -> String) -> io::Result<Vec<PathBuf>> {
    // The folder may be a link to a larger disk, where a restore works too.
    let data_dir = &fs::canonicalize(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    let (Some(above), Some(own)) = (data_dir.parent(), data_dir.file_name()) else { return Ok(Vec::new()) };
    let begin = begin(&own.to_string_lossy());
    let fitting = entries(above)?.into_iter().filter(|(_, name)| name.starts_with(&begin));
    Ok(fitting.map(|(path, _)| path).collect())
}

/// Removes one. Whoever calls this holds the data directory.
///
/// # Errors
/// What the file system refuses.
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

/// Bytes of a file, or of all files of a folder; no link is followed.
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
        // Whatever stands in it: it is not known that the store is plain.
        fs::write(home.path().join("keys/data-key.json"), "{}").unwrap();
        assert_eq!(find(home.path()).unwrap(), []);
    }
}
