//! Checks whose a folder is and whether it is a data directory, before anything in it is read, created or changed.
//!
//! **Invariant:** a folder that is not a data directory, or that belongs to another user, is left unchanged, including
//! its mode; `daemon/tests/disk/folders.rs` holds it.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
};

/// Names that occur in data directories.
const NAMES: [&str; 22] = [
    "blobs",
    "cache",
    "db",
    "db.new",
    "db.state",
    "devices",
    "encrypting",
    "exports-out",
    "journal",
    "journal.damaged",
    "journal.new",
    "keys",
    PEERS,
    "plugins",
    "purging",
    "purging.new",
    "satchel.sock",
    "satchel.sock.path",
    SEARCH,
    SERVERS,
    "store.lock",
    "uploads",
];
/// Prefixes of the other names.
const PREFIXES: [&str; 3] = ["db.broken-", "db.kept-", "satchel.sock."];
/// The folder of installed importers.
pub const PLUGINS: &str = "plugins";
/// The folder with the key of the store's own series of changes, and those for the stores that it exchanges changes with. It is not part of
/// backups.
pub const PEERS: &str = "peers";
/// The folder of the search index. It is derived from the store, and may be removed while no process has the store open.
pub const SEARCH: &str = "search";
/// The folder with the keys for paired daemons, which may exist before there is a store. It has mode 0700.
const SERVERS: &str = "servers";
/// What the first start creates before anything else, and what a service manager creates before the first start.
const LOCK: &str = "store.lock";
const SOCKET: &str = "satchel.sock";
/// A folder that exists in the root of a file system by default.
const LOST_AND_FOUND: &str = "lost+found";
/// Maximum number of links that are followed, as in the operating system.
const MAX_LINKS: usize = 40;

/// The reason why a folder is not accepted as a data directory.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// The folder belongs to another user.
    #[error(
        "the data directory {path:?} belongs to the user with the id {owner}, and this command runs as {user}; run it as its owner, or add --allow-other-owner if you mean it"
    )]
    OtherOwner { path: PathBuf, owner: u32, user: u32 },
    /// The folder contains other files.
    #[error(
        "{path:?} is not a data directory of satchel: it holds {found:?}; name an empty folder, or one that is not there, with --data-dir"
    )]
    NotADataDir { path: PathBuf, found: String },
    /// The path is not a folder.
    #[error("{path:?} is not a folder; name another with --data-dir")]
    NotAFolder { path: PathBuf },
    /// An output path is inside the data directory.
    #[error(
        "{path:?} lies in the data directory {data_dir:?}, which is for Satchel's own files; name a place outside of it"
    )]
    OutputInside { path: PathBuf, data_dir: PathBuf },
    /// The file system refused.
    #[error("cannot use {path:?} as the data directory")]
    Access { path: PathBuf, source: io::Error },
}

/// What exists at the path of a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataDirState {
    /// Nothing.
    Absent,
    /// An empty folder.
    Empty,
    /// A data directory.
    Data,
}

/// Examines `path` without changing anything.
///
/// # Errors
/// The folder belongs to another user, unless `any_owner` is set, or it contains other files.
pub fn inspect(path: &Path, any_owner: bool) -> Result<DataDirState, DataDirError> {
    let failed = |source| DataDirError::Access { path: path.to_owned(), source };
    let about = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DataDirState::Absent),
        about => about.map_err(failed)?,
    };
    if !about.is_dir() {
        return Err(DataDirError::NotAFolder { path: path.to_owned() });
    }
    let (owner, user) = (about.uid(), rustix::process::geteuid().as_raw());
    if owner != user && !any_owner {
        return Err(DataDirError::OtherOwner { path: path.to_owned(), owner, user });
    }
    contents(path)
        .map_err(failed)?
        .map_err(|found| DataDirError::NotADataDir { path: path.to_owned(), found })
}

/// Returns what a folder contains, or the first name in it that is not part of a data directory.
fn contents(path: &Path) -> io::Result<Result<DataDirState, String>> {
    let (mut found, mut foreign, mut begun) = (DataDirState::Empty, None, false);
    let least =
        |first: Option<String>, name: String| Some(first.map_or(name.clone(), |first| first.min(name)));
    let mut ours = None;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == LOST_AND_FOUND {
            continue;
        }
        found = DataDirState::Data;
        begun |= name == LOCK || name.starts_with(SOCKET) || (name == SERVERS && private_folder(&entry)?);
        if !NAMES.contains(&name.as_str()) && !PREFIXES.iter().any(|begin| name.starts_with(begin)) {
            foreign = least(foreign, name);
        } else {
            ours = least(ours, name);
        }
    }
    // A user's own files next to the store do not make the folder foreign. Before a data directory has a store, it must
    // have a lock, a socket, or keys for paired daemons, because other folders may also contain `db` or `cache`.
    let foreign_name = if begun { foreign } else { foreign.or(ours) };
    Ok(match foreign_name {
        Some(name) if !has_store(path) => Err(name),
        _ => Ok(found),
    })
}

/// The permissions of others than the owner.
const OTHERS: u32 = 0o077;

/// Returns whether an entry is a folder that only its owner can read.
fn private_folder(entry: &fs::DirEntry) -> io::Result<bool> {
    let about = entry.metadata()?;
    Ok(about.is_dir() && about.mode() & OTHERS == 0)
}

/// Returns whether a folder contains files that only a store has.
fn has_store(path: &Path) -> bool {
    let segment = |name: &str| name.strip_suffix(".seg").is_some_and(|stem| stem.parse::<u64>().is_ok());
    let segments = ["journal", "journal.new", "purging/journal"].iter().any(|folder| {
        let names = fs::read_dir(path.join(folder)).into_iter().flatten().flatten();
        names.into_iter().any(|entry| entry.file_name().to_str().is_some_and(segment))
    });
    let files =
        ["db.state", "journal.damaged", "keys/data-key.json", "keys/data-key.copy.json", "keys/signing.json"];
    segments || files.iter().any(|file| path.join(file).is_file())
}

/// Creates the folder, or makes an existing one accessible to this user only.
///
/// # Errors
/// As [`inspect`], and if the file system refuses.
pub fn prepare(path: &Path, any_owner: bool) -> Result<(), DataDirError> {
    let failed = |source| DataDirError::Access { path: path.to_owned(), source };
    if inspect(path, any_owner)? == DataDirState::Absent {
        return DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed);
    }
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        match fs::set_permissions(path, fs::Permissions::from_mode(0o700)) {
            // The directory can still be read.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {}
            closed => closed.map_err(failed)?,
        }
    }
    Ok(())
}

/// Refuses an output path inside the data directory, whatever name it is reached by.
///
/// # Errors
/// [`DataDirError::OutputInside`].
pub fn refuse_inside(data_dir: &Path, output: &Path) -> Result<(), DataDirError> {
    if is_inside(data_dir, output) {
        let (path, data_dir) = (output.to_owned(), data_dir.to_owned());
        return Err(DataDirError::OutputInside { path, data_dir });
    }
    Ok(())
}

/// Returns whether `path` is the data directory or inside it. Neither the path nor the folders above it need to exist.
#[must_use]
pub fn is_inside(data_dir: &Path, path: &Path) -> bool {
    let resolved = resolve(path);
    let identity = |path: &Path| fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    match identity(data_dir) {
        // Compare the folders themselves, not their names, because one folder may have several names.
        Some(data) => resolved.ancestors().any(|above| identity(above) == Some(data)),
        None => resolved.starts_with(resolve(data_dir)),
    }
}

/// Returns where a path leads. Links are followed as far as they exist, even to a target that does not exist yet.
fn resolve(path: &Path) -> PathBuf {
    let mut links = MAX_LINKS;
    follow_links(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()), &mut links)
}

fn follow_links(path: &Path, links: &mut usize) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(resolved.pop()),
            part => {
                let next = resolved.join(part);
                resolved = match fs::read_link(&next) {
                    Ok(target) if *links > 0 => {
                        *links -= 1;
                        // An absolute target replaces the path before it.
                        follow_links(&resolved.join(target), links)
                    }
                    _ => next,
                };
            }
        }
    }
    resolved
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    #[test]
    fn only_the_files_of_a_store_make_a_data_directory() {
        let cases: [(&[&str], Option<DataDirState>); 11] = [
            (&[], Some(DataDirState::Empty)),
            (&["lost+found/x"], Some(DataDirState::Empty)),
            (&["journal/00000001.seg", "db/db", "store.lock"], Some(DataDirState::Data)),
            // Left by an interrupted first start, or created by a service manager for socket activation.
            (&["store.lock"], Some(DataDirState::Data)),
            (&["satchel.sock"], Some(DataDirState::Data)),
            (&["journal/00000001.seg", "notes.txt", ".DS_Store"], Some(DataDirState::Data)),
            (&["index.html"], None),
            (&["db/users.sql", "cache/x"], None),
            (&["db/db", "blobs/ab/c", "store.lock"], Some(DataDirState::Data)),
            (&["db/users.sql", "journal/monday.txt", "index.html"], None),
            (&["journal.txt"], None),
        ];
        for (names, expected) in cases {
            let folder = folder(names);
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
            let found = inspect(folder.path(), false);
            assert_eq!(found.as_ref().ok().copied(), expected, "{names:?}: {found:?}");
            let mode = || fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(), 0o755);
            assert_eq!(prepare(folder.path(), false).is_ok(), expected.is_some());
            assert_eq!(mode(), if expected.is_some() { 0o700 } else { 0o755 }, "{names:?}");
        }
        let folder = folder(&["a"]);
        assert_eq!(inspect(&folder.path().join("b"), false).unwrap(), DataDirState::Absent);
        assert!(matches!(inspect(&folder.path().join("a"), false), Err(DataDirError::NotAFolder { .. })));
    }

    #[test]
    fn paths_inside_the_data_directory_are_recognised_under_any_name() {
        let home = folder(&["data/journal/1.seg", "other/file"]);
        let at = |name: &str| home.path().join(name);
        let data = at("data");
        symlink(&data, at("link")).unwrap();
        symlink(at("data/not/there.zip"), at("dangling.zip")).unwrap();
        symlink("../link/keys", at("other/relative")).unwrap();
        symlink(at("loop"), at("loop")).unwrap();
        for name in [
            "data",
            "data/x.zip",
            "data/new/x.zip",
            "data/../data/x.zip",
            "other/../data/x",
            "other/new/../../data/x",
            "link",
            "link/x.zip",
            "link/new/x.zip",
            "dangling.zip",
            "other/relative/x",
            "data/./x",
        ] {
            assert!(is_inside(&data, &at(name)), "{name}");
            assert!(is_inside(&at("link"), &at(name)), "{name}");
        }
        for name in
            ["other", "other/x.zip", "data.zip", "data2/x", "data/../x", "link/../x.zip", "loop/x", "."]
        {
            assert!(!is_inside(&data, &at(name)), "{name}");
        }
        assert!(is_inside(&at("absent"), &at("absent/x")) && !is_inside(&at("absent"), &at("absent2")));
    }
}
