//! Where a daemon and its clients meet: the Unix socket of a data directory.
//!
//! The socket is `satchel.sock` in the data directory. Where that path is too long for a socket address, it lies in the
//! runtime folder, and `satchel.sock.path` in the data directory holds its path.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, PermissionsExt},
        net::{UnixListener as StdListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW};
use satchel_pam::hash::Sha256Digest;
use tokio::net::UnixListener;

const SOCKET: &str = "satchel.sock";
const POINTER: &str = "satchel.sock.path";
/// Longest socket path, in bytes: an address holds 107, and the socket is made under a longer name first.
const MAX_PATH_BYTES: usize = 100;
/// Longest pointer file that is read, in bytes; as long as a path may be.
const MAX_POINTER_BYTES: u64 = 4_096;

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// The data directory's path is too long, and no runtime folder takes its place.
    #[error(
        "the path of {dir:?} is too long for a socket, and so is that of the runtime folder; use a shorter data directory"
    )]
    TooLong { dir: PathBuf },
    /// Somebody else could put a socket in our place.
    #[error(
        "{dir:?} must belong to you and be closed to others (mode 0700); remove it, or set its owner and mode"
    )]
    OpenToOthers { dir: PathBuf },
    /// The socket's place is taken by one that we have not made.
    #[error(
        "the service manager listens on {path:?}; start the daemon through it, by `satchel service install --now`, or take the service away by `satchel service uninstall`"
    )]
    Taken { path: PathBuf },
    /// Clients would not find the socket that the service manager made.
    #[error(
        "the service manager listens on {found:?}, but clients look for {expected:?}; run `satchel service install --now` again"
    )]
    Elsewhere { found: PathBuf, expected: PathBuf },
    /// The file system refused.
    #[error("cannot {action} {path:?}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

/// A bound socket; it is removed when this is dropped, unless the service manager made it.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    place: Place,
}

/// The files of a bound socket.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    pointer: Option<PathBuf>,
    /// The service manager made it, goes on listening when we end, and removes it itself.
    inherited: bool,
}

impl Listener {
    /// Binds the socket of `data_dir`, mode 0600. A socket that a killed process left behind is replaced.
    ///
    /// The caller holds the lock of the data directory (an open store), so that no living daemon loses its socket.
    /// `runtime_dir` takes the socket when the path in `data_dir` is over 100 bytes; it must be ours and closed to others.
    ///
    /// # Errors
    /// Both paths too long, a runtime folder that others may write, a service manager that listens there already, or a file
    /// system that refuses.
    pub fn bind(data_dir: &Path, runtime_dir: &Path) -> Result<Self, SocketError> {
        let place = place(data_dir, runtime_dir)?;
        // No other daemon serves this directory: whoever listens there holds the place for one.
        if UnixStream::connect(&place.path).is_ok() {
            return Err(SocketError::Taken { path: place.path.clone() });
        }
        let socket = bind_at(&place.path)?;
        place.point(data_dir)?;
        Ok(Self { socket, place })
    }

    /// Takes the socket that the service manager made for `data_dir`.
    ///
    /// # Errors
    /// When it does not lie where clients of `data_dir` look, or the file system refuses.
    pub fn inherit(socket: StdListener, data_dir: &Path, runtime_dir: &Path) -> Result<Self, SocketError> {
        let mut place = place(data_dir, runtime_dir)?;
        place.inherited = true;
        let io = |action| move |source| SocketError::Io { action, path: data_dir.join(SOCKET), source };
        let address = socket.local_addr().map_err(io("look at the socket for"))?;
        let found = address.as_pathname().unwrap_or(Path::new(""));
        if !same_file(found, &place.path) {
            return Err(SocketError::Elsewhere { found: found.to_owned(), expected: place.path.clone() });
        }
        socket.set_nonblocking(true).map_err(io("listen on the socket for"))?;
        let socket = UnixListener::from_std(socket).map_err(io("listen on the socket for"))?;
        place.point(data_dir)?;
        Ok(Self { socket, place })
    }

    /// Returns where the socket is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    pub(crate) fn into_parts(self) -> (UnixListener, Place) {
        (self.socket, self.place)
    }
}

impl Place {
    /// Lets clients find a socket that does not lie in the data directory.
    fn point(&self, data_dir: &Path) -> Result<(), SocketError> {
        match &self.pointer {
            Some(pointer) => write_pointer(pointer, &self.path),
            None => remove(&data_dir.join(POINTER)),
        }
    }

    /// Marks a socket in a runtime folder as used, for cleaners of temporary files go by the time.
    pub(crate) fn touch(&self) -> io::Result<()> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        Ok(rustix::fs::utimensat(CWD, &self.path, &times, AtFlags::empty())?)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.inherited {
            return;
        }
        for path in self.pointer.iter().chain([&self.path]) {
            if let Err(error) = remove(path) {
                // The next daemon replaces it.
                tracing::warn!(%error, "a socket stays behind");
            }
        }
    }
}

/// Returns where clients of `data_dir` connect, or `None` when nothing listens there.
///
/// # Errors
/// A pointer file that cannot be read.
pub fn socket_path(data_dir: &Path) -> Result<Option<PathBuf>, SocketError> {
    let own = data_dir.join(SOCKET);
    if own.as_os_str().len() <= MAX_PATH_BYTES {
        return Ok(own.exists().then_some(own));
    }
    let pointer = data_dir.join(POINTER);
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(fs::File::open(&pointer)?, MAX_POINTER_BYTES), &mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok(Some(PathBuf::from(OsStr::from_bytes(bytes.trim_ascii_end())))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SocketError::Io { action: "read", path: pointer, source }),
    }
}

/// Returns where the daemon of `data_dir` listens, whether or not one runs.
///
/// # Errors
/// When both paths are too long for a socket.
pub fn listening_path(data_dir: &Path, runtime_dir: &Path) -> Result<PathBuf, SocketError> {
    let own = data_dir.join(SOCKET);
    if own.as_os_str().len() <= MAX_PATH_BYTES {
        return Ok(own);
    }
    let path = runtime_dir.join("satchel").join(runtime_name(data_dir));
    if path.as_os_str().len() > MAX_PATH_BYTES {
        return Err(SocketError::TooLong { dir: data_dir.to_owned() });
    }
    Ok(path)
}

fn place(data_dir: &Path, runtime_dir: &Path) -> Result<Place, SocketError> {
    let path = listening_path(data_dir, runtime_dir)?;
    let pointer = if path.parent() == Some(data_dir) {
        None
    } else {
        make_private(&runtime_dir.join("satchel"))?;
        Some(data_dir.join(POINTER))
    };
    Ok(Place { path, pointer, inherited: false })
}

/// Whether two paths lead to one file; equal ones do so even when nothing is there.
fn same_file(one: &Path, other: &Path) -> bool {
    let identity = |path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
    one == other || matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

/// One name for each data directory.
fn runtime_name(data_dir: &Path) -> String {
    let mut hex = Sha256Digest::of(data_dir.as_os_str().as_bytes()).to_hex();
    // 64 bits tell one person's directories apart, and leave room in the address.
    hex.truncate(16);
    format!("{hex}.sock")
}

/// Makes `dir` if it is absent, and makes sure that it is ours alone.
fn make_private(dir: &Path) -> Result<(), SocketError> {
    let io = |action| move |source| SocketError::Io { action, path: dir.to_owned(), source };
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io("make")(error)),
        _ => {}
    }
    // Not through a link, which somebody else may have laid.
    let found = fs::symlink_metadata(dir).map_err(io("look at"))?;
    let ours =
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o777 == 0o700;
    if ours { Ok(()) } else { Err(SocketError::OpenToOthers { dir: dir.to_owned() }) }
}

fn bind_at(path: &Path) -> Result<UnixListener, SocketError> {
    let io = |action| move |source| SocketError::Io { action, path: path.to_owned(), source };
    // Bound under another name and renamed when its mode is right: no moment in which others could connect, and a
    // socket left behind is replaced in one step.
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    remove(&fresh)?;
    let socket = UnixListener::bind(&fresh).map_err(io("bind"))?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600)).map_err(io("close to others"))?;
    fs::rename(&fresh, path).map_err(io("bind"))?;
    Ok(socket)
}

fn write_pointer(pointer: &Path, path: &Path) -> Result<(), SocketError> {
    let io = |action| move |source| SocketError::Io { action, path: pointer.to_owned(), source };
    let mut text = path.as_os_str().as_bytes().to_vec();
    text.push(b'\n');
    let fresh = pointer.with_extension("path.new");
    fs::write(&fresh, text).map_err(io("write"))?;
    fs::rename(&fresh, pointer).map_err(io("write"))
}

fn remove(path: &Path) -> Result<(), SocketError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(SocketError::Io { action: "remove", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use tokio::net::UnixStream;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[tokio::test]
    async fn the_socket_is_closed_to_others_and_goes_with_its_listener() {
        let dir = tempfile::tempdir().unwrap();
        let listener = Listener::bind(dir.path(), dir.path()).unwrap();
        let path = socket_path(dir.path()).unwrap().unwrap();
        assert_eq!((listener.path(), mode(&path)), (path.as_path(), 0o600));
        UnixStream::connect(&path).await.unwrap();
        drop(listener);
        assert_eq!(socket_path(dir.path()).unwrap(), None);
    }

    #[tokio::test]
    async fn a_socket_left_behind_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        drop(std::os::unix::net::UnixListener::bind(dir.path().join(SOCKET)).unwrap());
        let _listener = Listener::bind(dir.path(), dir.path()).unwrap();
        UnixStream::connect(socket_path(dir.path()).unwrap().unwrap()).await.unwrap();
    }

    #[tokio::test]
    async fn a_long_path_goes_through_the_runtime_folder() {
        let runtime = tempfile::tempdir().unwrap();
        let base = tempfile::tempdir().unwrap();
        let data = base.path().join("d".repeat(120));
        fs::create_dir(&data).unwrap();
        let listener = Listener::bind(&data, runtime.path()).unwrap();
        let path = socket_path(&data).unwrap().unwrap();
        assert!(path.starts_with(runtime.path()) && path == listener.path());
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        UnixStream::connect(&path).await.unwrap();
        drop(listener);
        assert_eq!(socket_path(&data).unwrap(), None);
    }

    #[tokio::test]
    async fn a_runtime_folder_that_others_may_write_is_refused() {
        let runtime = tempfile::tempdir().unwrap();
        let base = tempfile::tempdir().unwrap();
        let data = base.path().join("d".repeat(120));
        fs::create_dir(&data).unwrap();
        fs::create_dir(runtime.path().join("satchel")).unwrap();
        fs::set_permissions(runtime.path().join("satchel"), fs::Permissions::from_mode(0o777)).unwrap();
        let refused = Listener::bind(&data, runtime.path());
        assert!(matches!(refused, Err(SocketError::OpenToOthers { .. })));
    }

    #[tokio::test]
    async fn a_socket_of_the_service_manager_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let _managed = StdListener::bind(dir.path().join(SOCKET)).unwrap();
        let refused = Listener::bind(dir.path(), dir.path());
        assert!(matches!(refused, Err(SocketError::Taken { .. })), "{refused:?}");
    }

    #[tokio::test]
    async fn an_inherited_socket_is_served_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SOCKET);
        let managed = StdListener::bind(&path).unwrap();
        let listener = Listener::inherit(managed.try_clone().unwrap(), dir.path(), dir.path()).unwrap();
        assert_eq!(listener.path(), path);
        drop(listener);
        UnixStream::connect(socket_path(dir.path()).unwrap().unwrap()).await.unwrap();
    }

    #[tokio::test]
    async fn an_inherited_socket_that_clients_would_not_find_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let managed = StdListener::bind(dir.path().join("other.sock")).unwrap();
        let refused = Listener::inherit(managed, dir.path(), dir.path());
        assert!(matches!(refused, Err(SocketError::Elsewhere { .. })), "{refused:?}");
    }

    #[tokio::test]
    async fn a_touched_socket_counts_as_used() {
        let dir = tempfile::tempdir().unwrap();
        let (_socket, place) = Listener::bind(dir.path(), dir.path()).unwrap().into_parts();
        let old = Timespec { tv_sec: 1_000, tv_nsec: 0 };
        let times = Timestamps { last_access: old, last_modification: old };
        rustix::fs::utimensat(CWD, &place.path, &times, AtFlags::empty()).unwrap();
        place.touch().unwrap();
        let metadata = fs::metadata(&place.path).unwrap();
        assert!(metadata.mtime() > 1_000 && metadata.atime() > 1_000);
    }

    #[tokio::test]
    async fn two_long_paths_are_refused() {
        let base = tempfile::tempdir().unwrap();
        let data = base.path().join("d".repeat(120));
        fs::create_dir(&data).unwrap();
        assert!(matches!(Listener::bind(&data, &data), Err(SocketError::TooLong { .. })));
    }
}
