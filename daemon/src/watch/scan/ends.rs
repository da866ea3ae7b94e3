//! Whether the end of a file is there: the directory of a ZIP, the last bracket of a JSON file, and no zeros of room that was
//! only set aside.

use std::{ffi::OsStr, fs::File, io, os::unix::fs::FileExt};

use rustix::{
    fd::OwnedFd,
    fs::{FileType, Mode, OFlags},
};

use super::{Ground, MAX_DEPTH, each, open_folder, stat_at};
use crate::{intake::Limits, watch::names, zip_directory};

/// Bytes at either end that are looked at.
const END: usize = 4_096;

/// Whether the end of one file is there; else what is missing.
pub(super) fn whole(folder: &OwnedFd, name: &OsStr) -> io::Result<Result<(), String>> {
    // A pipe or device in its place must not hold us.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) != FileType::RegularFile {
        return Ok(Err("it is no plain file any more".to_owned()));
    }
    Ok(missing(File::from(opened), name)?.map_or(Ok(()), Err))
}

/// What is missing at the end of a file that is called `name`; none: nothing is.
pub(crate) fn missing(file: File, name: &OsStr) -> io::Result<Option<String>> {
    let length = file.metadata()?.len();
    let (head, tail) = (read_at(&file, 0)?, read_at(&file, length.saturating_sub(END as u64))?);
    if length == 0 {
        return Ok(Some("it is empty".to_owned()));
    }
    let ending = name.as_encoded_bytes().rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    let zipped = ending.eq_ignore_ascii_case(b"zip") || head.starts_with(b"PK\x03\x04");
    if zipped {
        return Ok(match zip_directory::open(io::BufReader::new(file), Limits::default().entries) {
            Ok(_) => None,
            // It is there, and the import refuses it.
            Err(error) if zip_directory::too_long(&error) => None,
            Err(zip::result::ZipError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(error);
            }
            Err(_) => Some("the directory at the end of the ZIP cannot be read".to_owned()),
        });
    }
    if tail.last() == Some(&0) {
        return Ok(Some("it ends in zeros, as a download does that is not written yet".to_owned()));
    }
    if ending.eq_ignore_ascii_case(b"json") && !closed(&head, &tail) {
        return Ok(Some("the last bracket of the JSON is missing".to_owned()));
    }
    Ok(None)
}

/// Whether JSON that begins with a bracket ends with its partner.
fn closed(head: &[u8], tail: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    match (head.first(), tail.trim_ascii_end().last()) {
        (Some(b'{'), Some(last)) => *last == b'}',
        // Lines of objects may have the wrong ending too.
        (Some(b'['), Some(last)) => matches!(last, b']' | b'}'),
        _ => true,
    }
}

fn read_at(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; END];
    let mut filled = 0;
    while filled < END {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// The same of the files of a folder that importers might read, `left` of them.
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
                // What may not be read, and what is empty, is for the receipt to tell.
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
