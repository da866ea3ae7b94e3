//! Folders and files that only this user can change.

use std::{
    fs::{self, DirBuilder, File, Metadata},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Component, Path},
};

use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, geteuid, test_kill_process},
};
use tempfile::TempDir;

use super::CompiledCode;

/// Name prefix of the per-process folders for wasmtime; the process id follows.
const SCRATCH_PREFIX: &str = ".process-";
/// The write bits of group and others in a file mode.
const OTHERS_WRITE: u32 = 0o022;

/// Creates a folder that only this user can read and change, or accepts an existing one that only this user can change.
pub(super) fn ensure_private_folder(path: &Path) -> io::Result<()> {
    if !path.is_absolute() {
        return Err(permission_denied("its path is not absolute"));
    }
    if fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        // If root runs this with another user's home, it would leave folders there that their owner could not use.
        let above = path.ancestors().find_map(|above| fs::metadata(above).ok());
        let euid = geteuid().as_raw();
        if above.is_some_and(|above| above.uid() != euid && above.uid() != 0) {
            return Err(permission_denied("it would be inside a folder that belongs to another user"));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    }
    let about = fs::metadata(path)?;
    if !about.is_dir() {
        return Err(permission_denied("it is not a folder"));
    }
    check_private(&about)
}

/// Refuses a file or folder that another user owns or may write to.
fn check_private(about: &Metadata) -> io::Result<()> {
    if about.uid() != geteuid().as_raw() {
        return Err(permission_denied("it belongs to another user"));
    }
    if about.mode() & OTHERS_WRITE != 0 {
        return Err(permission_denied("other users may write to it"));
    }
    Ok(())
}

fn permission_denied(problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}

/// Opens a regular file for reading. It does not follow symbolic links and does not block on a pipe.
pub(super) fn open_regular_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(permission_denied("it is not a regular file"));
    }
    Ok(file)
}

/// A folder of this process with mode 0700, used by wasmtime. It is removed when this value is dropped.
pub(crate) struct ScratchFolder(TempDir);

impl ScratchFolder {
    /// Creates a scratch folder in `folder`, and removes the scratch folders of killed processes.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        remove_stale_folders(folder);
        let prefix = format!("{SCRATCH_PREFIX}{}-", std::process::id());
        // The folder is always created, with mode 0700; an existing one is never reused.
        tempfile::Builder::new().prefix(&prefix).tempdir_in(folder).map(Self)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Creates another such folder inside this one.
    pub(crate) fn subfolder(&self) -> io::Result<Self> {
        tempfile::Builder::new().prefix("compile-").tempdir_in(self.path()).map(Self)
    }

    /// Writes `code` to where wasmtime looks for it.
    pub(crate) fn install(&self, code: &CompiledCode) -> io::Result<()> {
        let name = Path::new(&code.name);
        if !name.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(permission_denied("its name points outside the cache"));
        }
        let path = self.path().join(name);
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        fs::write(path, &code.bytes)
    }

    /// Returns the one entry that wasmtime wrote here.
    pub(crate) fn compiled_code(&self) -> io::Result<Option<CompiledCode>> {
        for compiler in fs::read_dir(self.path().join("modules"))? {
            for file in fs::read_dir(compiler?.path())? {
                let path = file?.path();
                // Beside each entry wasmtime keeps a file of statistics; only that file has an extension.
                if let (None, Ok(name)) = (path.extension(), path.strip_prefix(self.path())) {
                    let Some(name) = name.to_str().map(str::to_owned) else { continue };
                    return Ok(Some(CompiledCode { name, bytes: fs::read(&path)? }));
                }
            }
        }
        Ok(None)
    }
}

/// Removes the folders of processes that no longer exist. A folder that cannot be removed does no harm.
fn remove_stale_folders(folder: &Path) {
    for found in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = found.file_name();
        let id = name
            .to_str()
            .and_then(|name| name.strip_prefix(SCRATCH_PREFIX))
            .and_then(|rest| rest.split('-').next());
        let Some(pid) = id.and_then(|id| id.parse().ok()).and_then(Pid::from_raw) else { continue };
        let ended = test_kill_process(pid).is_err_and(|error| error == rustix::io::Errno::SRCH);
        if ended && let Err(error) = fs::remove_dir_all(found.path()) {
            tracing::debug!(%error, path = ?found.path(), "a folder of a killed process stays behind");
        }
    }
}
