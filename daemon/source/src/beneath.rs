//! Opens files below a folder without ever leaving it: no link on the way is followed, and only regular files are
//! opened.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::unix::ffi::OsStrExt,
    path::{Component, Path},
};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat},
};

/// Returns the metadata of `path`, which is `base` or lies below it; only `base` itself may be a link.
pub(super) fn stat(base: &Path, path: &Path) -> io::Result<Stat> {
    match open_parent(base, path)? {
        None => Ok(rustix::fs::stat(path)?),
        Some((folder, name)) => Ok(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?),
    }
}

/// Opens a regular file below `base`, or `base` itself, for reading.
pub(super) fn open_file(base: &Path, path: &Path) -> io::Result<File> {
    // Opening a pipe or a device must neither block nor have any effect. They are rejected before the file is opened,
    // and a later replacement is detected afterwards.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match open_parent(base, path)? {
        None => {
            require_regular_file(&rustix::fs::stat(path)?)?;
            rustix::fs::open(path, flags, Mode::empty())?
        }
        Some((folder, name)) => {
            require_regular_file(&rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?)?;
            rustix::fs::openat(&folder, name, flags | OFlags::NOFOLLOW, Mode::empty())?
        }
    };
    require_regular_file(&rustix::fs::fstat(&opened)?)?;
    Ok(File::from(opened))
}

/// Returns the names in a folder below `base`, or in `base` itself, with their file types, sorted.
pub(super) fn list(base: &Path, path: &Path) -> io::Result<Vec<(OsString, FileType)>> {
    let folder = match open_parent(base, path)? {
        None => rustix::fs::open(path, FOLDER, Mode::empty())?,
        Some((folder, name)) => rustix::fs::openat(&folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?,
    };
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            known => known,
        };
        names.push((name.to_owned(), kind));
    }
    names.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(names)
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens the folder that contains `path`, one component after the other starting at `base`. Returns `None` if `path` is
/// `base`.
fn open_parent<'a>(base: &Path, path: &'a Path) -> io::Result<Option<(OwnedFd, &'a OsStr)>> {
    let Ok(rest) = path.strip_prefix(base) else { return Err(outside()) };
    let Some(name) = rest.file_name() else { return Ok(None) };
    let mut folder = rustix::fs::open(base, FOLDER, Mode::empty())?;
    for step in rest.parent().unwrap_or(Path::new("")).components() {
        let Component::Normal(step) = step else { return Err(outside()) };
        folder = rustix::fs::openat(&folder, step, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(Some((folder, name)))
}

fn require_regular_file(stat: &Stat) -> io::Result<()> {
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"))
}

fn outside() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it lies outside of the folder")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{
        fs,
        io::Read,
        os::unix::fs::symlink,
        sync::atomic::{AtomicBool, Ordering},
    };

    use super::*;

    fn read(mut file: File) -> String {
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn only_the_base_may_be_a_symbolic_link() {
        let dir = tempfile::tempdir().unwrap();
        let (base, out) = (dir.path().join("base"), dir.path().join("out"));
        fs::create_dir_all(base.join("inner")).unwrap();
        fs::create_dir(&out).unwrap();
        fs::write(out.join("a"), "secret").unwrap();
        fs::write(base.join("inner/a"), "mine").unwrap();
        symlink(&out, base.join("way")).unwrap();
        symlink(out.join("a"), base.join("a")).unwrap();
        symlink(&base, dir.path().join("named")).unwrap();
        let named = dir.path().join("named");
        assert_eq!(read(open_file(&named, &named.join("inner/a")).unwrap()), "mine");
        assert!(open_file(&base, &base.join("a")).is_err());
        assert!(open_file(&base, &base.join("way/a")).is_err());
        assert!(open_file(&base, &base.join("../out/a")).is_err());
        assert!(open_file(&base, &out.join("a")).is_err());
        assert!(list(&base, &base.join("way")).is_err());
        assert!(stat(&base, &base.join("way/a")).is_err());
    }

    #[test]
    fn a_pipe_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe.json");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(open_file(dir.path(), &pipe).is_err());
        assert!(open_file(&pipe, &pipe).is_err());
    }

    #[test]
    fn a_folder_swapped_for_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (base, out) = (dir.path().join("base"), dir.path().join("out"));
        fs::create_dir(&out).unwrap();
        fs::create_dir(&base).unwrap();
        fs::write(out.join("a"), "secret").unwrap();
        fs::create_dir(base.join("real")).unwrap();
        fs::write(base.join("real/a"), "mine").unwrap();
        symlink(&out, base.join("link")).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for from in ["real", "link"] {
                        fs::rename(base.join(from), base.join("x")).unwrap();
                        fs::rename(base.join("x"), base.join(from)).unwrap();
                        fs::rename(base.join(from), base.join("swapped")).unwrap();
                        fs::rename(base.join("swapped"), base.join(from)).unwrap();
                    }
                }
            });
            for _ in 0..1_000 {
                if let Ok(file) = open_file(&base, &base.join("swapped/a")) {
                    assert_eq!(read(file), "mine");
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
