//! The Unix socket of a data directory, on which a daemon serves its clients.
//!
//! The socket is `satchel.sock` in the data directory. If that path is too long for a socket address, the socket is in
//! the runtime folder ([`default_runtime_dir`]), and `satchel.sock.path` in the data directory contains its path, so that
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

const SOCKET_FILE: &str = "satchel.sock";
const POINTER_FILE: &str = "satchel.sock.path";
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
    /// Another process listens on the path of the socket.
    #[error(
        "the service manager listens on {path:?}; start the daemon through it with `satchel service install --now`, or remove the service with `satchel service uninstall`"
    )]
    InUse { path: PathBuf },
    /// Clients would not find the socket that the service manager created.
    #[error(
        "the service manager listens on {found:?}, but clients look for {expected:?}; run `satchel service install --now` again"
    )]
    WrongPath { found: PathBuf, expected: PathBuf },
    /// The file system returned an error.
    #[error("cannot {action} {path:?}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

/// A bound socket. It is removed when this is dropped, unless the service manager created it.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    files: SocketFiles,
}

/// The files of a bound socket.
#[derive(Debug)]
pub(crate) struct SocketFiles {
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
        let files = socket_files(data_dir, runtime_dir)?;
        // No other daemon serves this directory. A process that listens here, or where a daemon with another runtime
        // folder would listen, reserves the path for a daemon.
        for path in socket_path(data_dir)?.into_iter().chain([files.path.clone()]) {
            if UnixStream::connect(&path).is_ok() {
                return Err(SocketError::InUse { path });
            }
        }
        let socket = bind_at(&files.path)?;
        files.update_pointer(data_dir)?;
        Ok(Self { socket, files })
    }

    /// Takes over the socket that the service manager created for `data_dir`.
    ///
    /// # Errors
    /// If it is not where clients of `data_dir` look for it, or the file system returns an error.
    pub fn inherit(socket: StdListener, data_dir: &Path, runtime_dir: &Path) -> Result<Self, SocketError> {
        let mut files = socket_files(data_dir, runtime_dir)?;
        files.inherited = true;
        let io = |action| move |source| SocketError::Io { action, path: data_dir.join(SOCKET_FILE), source };
        let address = socket.local_addr().map_err(io("read the address of the socket for"))?;
        let found = address.as_pathname().unwrap_or(Path::new(""));
        if !same_file(found, &files.path) {
            return Err(SocketError::WrongPath { found: found.to_owned(), expected: files.path.clone() });
        }
        socket.set_nonblocking(true).map_err(io("listen on the socket for"))?;
        let socket = UnixListener::from_std(socket).map_err(io("listen on the socket for"))?;
        files.update_pointer(data_dir)?;
        Ok(Self { socket, files })
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.files.path
    }

    pub(crate) fn into_parts(self) -> (UnixListener, SocketFiles) {
        (self.socket, self.files)
    }
}

impl SocketFiles {
    /// Writes the pointer file if the socket is not in the data directory, and removes it otherwise.
    fn update_pointer(&self, data_dir: &Path) -> Result<(), SocketError> {
        match &self.pointer {
            Some(pointer) => write_pointer(pointer, &self.path),
            None => remove(&data_dir.join(POINTER_FILE)),
        }
    }

    /// Updates the times of a socket in a runtime folder, because cleaners of temporary files remove old ones.
    pub(crate) fn touch(&self) -> io::Result<()> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        Ok(rustix::fs::utimensat(CWD, &self.path, &times, AtFlags::empty())?)
    }
}

impl Drop for SocketFiles {
    fn drop(&mut self) {
        if self.inherited {
            return;
        }
        for path in self.pointer.iter().chain([&self.path]) {
            if let Err(error) = remove(path) {
                // The next daemon replaces it.
                tracing::warn!(%error, "cannot remove the socket");
            }
        }
    }
}

/// Returns the path to which clients of `data_dir` connect, or `None` if there is no socket.
///
/// # Errors
/// A pointer file that cannot be read.
pub fn socket_path(data_dir: &Path) -> Result<Option<PathBuf>, SocketError> {
    let path = data_dir.join(SOCKET_FILE);
    if path.as_os_str().len() <= MAX_PATH_BYTES {
        return Ok(path.exists().then_some(path));
    }
    let pointer = data_dir.join(POINTER_FILE);
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
/// own runtime folder `user_dir`. If that is not set, belongs to another user or is open to others, it is a folder with the
/// user's id in its name, in the folder for temporary files.
///
/// The folder is created, and checked again, when a daemon binds its socket there.
#[must_use]
pub fn default_runtime_dir(user_dir: Option<&Path>, temporary: &Path) -> PathBuf {
    let closed = |dir: &&Path| {
        let found = fs::metadata(dir);
        dir.is_absolute()
            && found.is_ok_and(|found| found.is_dir() && is_ours(&found) && mode(&found) == 0o700)
    };
    match user_dir.filter(closed) {
        Some(dir) => dir.join("satchel"),
        // Another user could occupy a name that is the same for all users.
        None => temporary.join(format!("satchel-{}", rustix::process::geteuid().as_raw())),
    }
}

/// Returns the path where the daemon of `data_dir` listens, whether or not one runs.
///
/// # Errors
/// If both paths are too long for a socket.
pub fn listen_path(data_dir: &Path, runtime_dir: &Path) -> Result<PathBuf, SocketError> {
    let path = data_dir.join(SOCKET_FILE);
    if path.as_os_str().len() <= MAX_PATH_BYTES {
        return Ok(path);
    }
    let path = runtime_dir.join(runtime_socket_name(data_dir));
    if path.as_os_str().len() > MAX_PATH_BYTES {
        return Err(SocketError::TooLong { dir: data_dir.to_owned() });
    }
    Ok(path)
}

fn socket_files(data_dir: &Path, runtime_dir: &Path) -> Result<SocketFiles, SocketError> {
    let path = listen_path(data_dir, runtime_dir)?;
    let pointer = if path.parent() == Some(data_dir) {
        None
    } else {
        make_private(runtime_dir)?;
        Some(data_dir.join(POINTER_FILE))
    };
    Ok(SocketFiles { path, pointer, inherited: false })
}

/// Returns whether two paths lead to the same file; equal paths do so even if there is no file.
fn same_file(one: &Path, other: &Path) -> bool {
    let identity = |path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
    one == other || matches!((identity(one), identity(other)), (Ok(one), Ok(other)) if one == other)
}

/// Returns a name that is unique for each data directory.
fn runtime_socket_name(data_dir: &Path) -> String {
    let mut hex = Sha256Digest::of(data_dir.as_os_str().as_bytes()).to_hex();
    // 64 bits distinguish the directories of one user and leave space in the address.
    hex.truncate(16);
    format!("{hex}.sock")
}

/// Creates `dir` if it does not exist, and checks that only we can access it.
fn make_private(dir: &Path) -> Result<(), SocketError> {
    let io = |action| move |source| SocketError::Io { action, path: dir.to_owned(), source };
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(io("create")(error)),
        _ => {}
    }
    // Do not follow a link, which another user may have created.
    let found = fs::symlink_metadata(dir).map_err(io("read"))?;
    let problem = if found.is_symlink() {
        "is a symbolic link".to_owned()
    } else if !found.is_dir() {
        "is not a folder".to_owned()
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
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    remove(&temporary)?;
    let socket = UnixListener::bind(&temporary).map_err(io("bind"))?;
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600)).map_err(io("close to others"))?;
    fs::rename(&temporary, path).map_err(io("bind"))?;
    Ok(socket)
}

fn write_pointer(pointer: &Path, path: &Path) -> Result<(), SocketError> {
    let io = |action| move |source| SocketError::Io { action, path: pointer.to_owned(), source };
    let mut text = path.as_os_str().as_bytes().to_vec();
    text.push(b'\n');
    let temporary = pointer.with_extension("path.new");
    fs::write(&temporary, text).map_err(io("write"))?;
    fs::rename(&temporary, pointer).map_err(io("write"))
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
mod tests;
