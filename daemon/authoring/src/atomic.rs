//! Writes a file whole or not at all.

use std::{
    fs::{File, Permissions},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

/// What happens if the file exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    Replace,
    Refuse,
}

/// Writes `content` to `path` with the permissions `mode`, less those that the person's umask takes away. Durable when
/// this returns.
pub(crate) fn write(path: &Path, content: &[u8], mode: u32, existing: Existing) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".satchel-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    match existing {
        Existing::Replace => file.persist(path),
        Existing::Refuse => file.persist_noclobber(path),
    }
    .map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}
