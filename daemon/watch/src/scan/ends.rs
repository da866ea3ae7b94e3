//! Checks whether the files in a watched folder are complete up to their ends.

use std::{ffi::OsStr, fs::File, io};

use rustix::{
    fd::OwnedFd,
    fs::{FileType, Mode, OFlags},
};
use satchel_source::{ending, names};

use super::{Ground, MAX_DEPTH, each, open_folder, stat_at};

/// Checks whether the end of one file is present; otherwise returns a description of the missing part.
pub(super) fn whole(folder: &OwnedFd, name: &OsStr) -> io::Result<Result<(), String>> {
    // Do not block if a pipe or device took the place of the file.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) != FileType::RegularFile {
        return Ok(Err("it is no plain file any more".to_owned()));
    }
    Ok(ending::missing(File::from(opened), name)?.map_or(Ok(()), Err))
}

/// Does the same for the files of a folder that importers might read, at most `left` of them.
pub(super) fn whole_folder(
    ground: &Ground,
    folder: OwnedFd,
    depth: usize,
    left: &mut usize,
) -> io::Result<Result<(), String>> {
    let mut names = Vec::new();
    each(rustix::io::dup(&folder)?, &mut |name, _| {
        if !ground.passed_over(name) {
            names.push(name.to_owned());
        }
        Ok(true)
    })?;
    for name in names {
        let Some(stat) = stat_at(&folder, &name)? else { continue };
        let missing = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if names::exported(&name) && *left > 0 => {
                *left -= 1;
                // Unreadable and empty files are reported by the receipt.
                whole(&folder, &name).unwrap_or(Ok(())).err().filter(|_| stat.st_size > 0)
            }
            FileType::Directory if depth < MAX_DEPTH => match open_folder(&folder, &name) {
                Ok(inner) => whole_folder(ground, inner, depth + 1, left)?.err(),
                Err(_) => None,
            },
            _ => None,
        };
        if let Some(missing) = missing {
            return Ok(Err(format!("{:?}: {missing}", names::shown(&name))));
        }
    }
    Ok(Ok(()))
}
