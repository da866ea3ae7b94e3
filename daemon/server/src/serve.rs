//! The Unix socket of a data directory, where a daemon and its clients meet.
//!
//! The socket is `satchel.sock` in the data directory. If that path is too long for a socket address, the socket is in
//! the runtime folder ([`runtime_folder`]), and `satchel.sock.path` in the data directory contains its path, so that
//! clients find it whatever runtime folder their environment names.

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
use satchel_core::plain_file;
use satchel_pam::hash::Sha256Digest;
use tokio::net::UnixListener;

const SOCKET: &str = "satchel.sock";
const POINTER: &str = "satchel.sock.path";
/// Longest socket path, in bytes: an address holds 107, and the socket is first created under a longer name.
const MAX_PATH_BYTES: usize = 100;
/// Longest pointer file that is read, in bytes: the longest possible path.
const MAX_POINTER_BYTES: u64 = 4_096;

/// The reason why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The path of the data directory is too long, and so is that of the runtime folder.
    #[error(
        "the path of {dir:?} is too long for a socket, and so is that of the runtime folder; use a shorter data directory"
    )]
    TooLong { dir: PathBuf },
    /// Another user could replace our socket.
    #[error(
        "{dir:?} must be closed to other users, and has mode {mode:03o}; run `chmod 700` on it, or remove it"
    )]
    OpenToOthers { dir: PathBuf, mode: u32 },
    /// The name of the runtime folder is taken by another user, a link or a file.
    #[error(
        "{dir:?}, the folder for the socket, {problem}; use a shorter data directory, or set XDG_RUNTIME_DIR to a folder of your own with mode 0700"
    )]
    NotOurs { dir: PathBuf, problem: String },
    /// Another process listens at the place of the socket.
    #[error(
        "the service manager listens on {path:?}; start the daemon through it, by `satchel service install --now`, or take the service away by `satchel service uninstall`"
    )]
    Taken { path: PathBuf },
    /// Clients would not find the socket that the service manager created.
    #[error(
        "the service manager listens on {found:?}, but clients look for {expected:?}; run `satchel service install --now` again"
    )]
    Elsewhere { found: PathBuf, expected: PathBuf },
    /// The file system returned an error.
    #[error("cannot {action} {path:?}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

/// A bound socket. It is removed when this is dropped, unless the service manager created it.
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
    /// Whether the service manager created the socket. It then keeps listening after we end, and removes the socket
    /// itself.
    inherited: bool,
}

impl Listener {
    /// Binds the socket of `data_dir`, with mode 0600. A socket that a killed process left behind is replaced.
    ///
    /// The caller holds the lock of the data directory (an open store), so that no running daemon loses its socket. The
    /// socket is in `runtime_dir` if the path in `data_dir` is over 100 bytes; that folder must be ours and closed to
    /// others.
    ///
    /// # Errors
    /// If both paths are too long, other users may write to the runtime folder, a service manager already listens
    /// there, or the file system returns an error.
    pub fn bind(data_dir: &Path, runtime_dir: &Path) -> Result<Self, SocketError> {
        let place = place(data_dir, runtime_dir)?;
        // No other daemon serves this directory. A process that listens here, or where a daemon with another runtime
        // folder would listen, reserves the place for a daemon.
        for path in socket_path(data_dir)?.into_iter().chain([place.path.clone()]) {
            if UnixStream::connect(&path).is_ok() {
                return Err(SocketError::Taken { path });
            }
        }
        let socket = bind_at(&place.path)?;
        place.point(data_dir)?;
        Ok(Self { socket, place })
    }

    /// Takes over the socket that the service manager created for `data_dir`.
    ///
    /// # Errors
    /// If it is not where clients of `data_dir` look for it, or the file system returns an error.
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

    /// Returns the path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.place.path
    }

    pub(crate) fn into_parts(self) -> (UnixListener, Place) {
        (self.socket, self.place)
    }
}

impl Place {
    /// Writes the pointer file if the socket is not in the data directory, and removes it otherwise.
    fn point(&self, data_dir: &Path) -> Result<(), SocketError> {
        match &self.pointer {
            Some(pointer) => write_pointer(pointer, &self.path),
            None => remove(&data_dir.join(POINTER)),
        }
    }

    /// Updates the times of a socket in a runtime folder, because cleaners of temporary files remove old ones.
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

/// Returns the path to which clients of `data_dir` connect, or `None` if there is no socket.
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
        let file = plain_file::open(&pointer)?;
        io::Read::read_to_end(&mut io::Read::take(file, MAX_POINTER_BYTES), &mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok(Some(PathBuf::from(OsStr::from_bytes(bytes.trim_ascii_end())))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(SocketError::Io { action: "read", path: pointer, source }),
    }
}

/// Returns the folder for sockets whose paths in their data directories are too long. This is `satchel` in the user's
/// own runtime folder `own`. If `own` is not set, belongs to another user or is open to others, it is a folder with the
/// user's id in its name, in the folder for temporary files.
///
/// The folder is created, and checked again, when a daemon binds its socket there.
#[must_use]
pub fn runtime_folder(own: Option<&Path>, temporary: &Path) -> PathBuf {
    let closed = |dir: &&Path| {
        let found = fs::metadata(dir);
        dir.is_absolute()
            && found.is_ok_and(|found| found.is_dir() && is_ours(&found) && mode(&found) == 0o700)
    };
    match own.filter(closed) {
        Some(own) => own.join("satchel"),
        // Another user could occupy a name that is the same for all users.
        None => temporary.join(format!("satchel-{}", rustix::process::geteuid().as_raw())),
    }
}

/// Returns the path where the daemon of `data_dir` listens, whether or not one runs.
///
/// # Errors
/// If both paths are too long for a socket.
pub fn listening_path(data_dir: &Path, runtime_dir: &Path) -> Result<PathBuf, SocketError> {
    let own = data_dir.join(SOCKET);
    if own.as_os_str().len() <= MAX_PATH_BYTES {
        return Ok(own);
    }
    let path = runtime_dir.join(runtime_name(data_dir));
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
        make_private(runtime_dir)?;
        Some(data_dir.join(POINTER))
    };
    Ok(Place { path, pointer, inherited: false })
}

/// Returns whether two paths lead to the same file; equal paths do so even if there is no file.
fn same_file(one: &Path, other: &Path) -> bool {
    let identity = |path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
    one == other || matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

/// Returns a name that is unique for each data directory.
fn runtime_name(data_dir: &Path) -> String {
    let mut hex = Sha256Digest::of(data_dir.as_os_str().as_bytes()).to_hex();
    // 64 bits distinguish the directories of one user and leave space in the address.
    hex.truncate(16);
    format!("{hex}.sock")
}

/// Creates `dir` if it does not exist, and checks that only we can access it.
fn make_private(dir: &Path) -> Result<(), SocketError> {
    let io = |action| move |source| SocketError::Io { action, path: dir.to_owned(), source };
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io("make")(error)),
        _ => {}
    }
    // Do not follow a link, which another user may have created.
    let found = fs::symlink_metadata(dir).map_err(io("look at"))?;
    let problem = if found.is_symlink() {
        "is a symbolic link".to_owned()
    } else if !found.is_dir() {
        "is no folder".to_owned()
    } else if !is_ours(&found) {
        format!("belongs to user {}, not to you", found.uid())
    } else if mode(&found) != 0o700 {
        return Err(SocketError::OpenToOthers { dir: dir.to_owned(), mode: mode(&found) });
    } else {
        return Ok(());
    };
    Err(SocketError::NotOurs { dir: dir.to_owned(), problem })
}

fn is_ours(found: &fs::Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

fn mode(found: &fs::Metadata) -> u32 {
    found.mode() & 0o777
}

fn bind_at(path: &Path) -> Result<UnixListener, SocketError> {
    let io = |action| move |source| SocketError::Io { action, path: path.to_owned(), source };
    // Bind under another name and rename when the mode is right. So there is no moment in which other users could
    // connect, and a socket that was left behind is replaced in one step.
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
        super::mode(&fs::metadata(path).unwrap())
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
        let listener = Listener::bind(&data, &runtime.path().join("run")).unwrap();
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
        let folder = runtime.path().join("satchel");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = Listener::bind(&data, &folder);
        assert!(matches!(refused, Err(SocketError::OpenToOthers { mode: 0o777, .. })));
    }

    /// Creates a data directory whose path is too long for a socket.
    fn long(base: &Path) -> PathBuf {
        let data = base.join("d".repeat(120));
        fs::create_dir(&data).unwrap();
        data
    }

    #[test]
    fn the_runtime_folder_is_the_users_own_or_has_the_users_id_in_its_name() {
        let (own, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let uid = rustix::process::geteuid().as_raw();
        let shared = temporary.path().join(format!("satchel-{uid}"));
        let chosen = |own: Option<&Path>| runtime_folder(own, temporary.path());
        fs::set_permissions(own.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(chosen(Some(own.path())), own.path().join("satchel"));
        assert_eq!(chosen(None), shared);
        assert_eq!(chosen(Some(Path::new("run/user/1"))), shared);
        assert_eq!(chosen(Some(&own.path().join("missing"))), shared);
        fs::set_permissions(own.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(chosen(Some(own.path())), shared, "open to others");
        if uid == 0 {
            fs::set_permissions(own.path(), fs::Permissions::from_mode(0o700)).unwrap();
            std::os::unix::fs::chown(own.path(), Some(4_711), None).unwrap();
            assert_eq!(chosen(Some(own.path())), shared, "another user's");
        }
    }

    #[tokio::test]
    async fn a_runtime_folder_that_others_occupied_is_refused_and_named() {
        let (base, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let data = long(base.path());
        let folder = runtime_folder(None, temporary.path());
        let refusal = || Listener::bind(&data, &folder).unwrap_err().to_string();
        // A link that another user created is refused, even if it leads to a folder of ours.
        std::os::unix::fs::symlink(base.path(), &folder).unwrap();
        assert!(refusal().contains("is a symbolic link; use a shorter data directory"), "{}", refusal());
        fs::remove_file(&folder).unwrap();
        fs::write(&folder, "").unwrap();
        assert!(refusal().contains("is no folder"), "{}", refusal());
        fs::remove_file(&folder).unwrap();
        if rustix::process::geteuid().as_raw() == 0 {
            fs::create_dir(&folder).unwrap();
            std::os::unix::fs::chown(&folder, Some(4_711), None).unwrap();
            assert!(refusal().contains("belongs to user 4711, not to you"), "{}", refusal());
            fs::remove_dir(&folder).unwrap();
        }
        let listener = Listener::bind(&data, &folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        drop(listener);
    }

    #[tokio::test]
    async fn clients_find_a_daemon_that_was_started_with_another_runtime_folder() {
        let base = tempfile::tempdir().unwrap();
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let data = long(base.path());
        // The first daemon is killed, and leaves its socket and its pointer file behind.
        let (socket, place) = Listener::bind(&data, &one.path().join("run")).unwrap().into_parts();
        std::mem::forget(place);
        drop(socket);
        let second = Listener::bind(&data, &other.path().join("run")).unwrap();
        let found = socket_path(&data).unwrap().unwrap();
        assert!(found == second.path() && found.starts_with(other.path()), "{found:?}");
        UnixStream::connect(&found).await.unwrap();
    }

    #[tokio::test]
    async fn a_socket_of_the_service_manager_in_another_runtime_folder_is_not_passed_over() {
        let base = tempfile::tempdir().unwrap();
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let data = long(base.path());
        let run = one.path().join("run");
        make_private(&run).unwrap();
        let managed = StdListener::bind(listening_path(&data, &run).unwrap()).unwrap();
        // A daemon served it before, and wrote the pointer file for clients.
        drop(Listener::inherit(managed.try_clone().unwrap(), &data, &run).unwrap());
        let refused = Listener::bind(&data, &other.path().join("run"));
        assert!(matches!(refused, Err(SocketError::Taken { .. })), "{refused:?}");
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
