//! Checks whether a file has its end: the directory of a ZIP, the last bracket of a JSON file, and no trailing zeros of
//! space that was only preallocated.

use std::{ffi::OsStr, fs::File, io, os::unix::fs::FileExt};

use crate::{Limits, database, zip_directory};

/// Bytes at either end that are examined.
const END: usize = 4_096;

/// Returns what is missing at the end of a file with this `name`, or `None` if nothing is.
///
/// # Errors
/// If the file cannot be read.
pub fn missing_end(file: File, name: &OsStr) -> io::Result<Option<String>> {
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
            // The directory is complete, but the import will reject it as too long.
            Err(error) if zip_directory::too_long(&error) => None,
            Err(zip::result::ZipError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(error);
            }
            Err(_) => Some("the directory at the end of the ZIP cannot be read".to_owned()),
        });
    }
    if let Some(page) = database::page_size(&head) {
        // The last page of a database may well end in zeros.
        let cut = length % page != 0;
        return Ok(cut.then(|| "the database ends in the middle of a page".to_owned()));
    }
    if tail.last() == Some(&0) {
        return Ok(Some("it ends in zeros, as a download does that is not written yet".to_owned()));
    }
    if ending.eq_ignore_ascii_case(b"json") && !brackets_match(&head, &tail) {
        return Ok(Some("the last bracket of the JSON is missing".to_owned()));
    }
    Ok(None)
}

/// Returns whether JSON that begins with a bracket ends with the matching one.
fn brackets_match(head: &[u8], tail: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    match (head.first(), tail.trim_ascii_end().last()) {
        (Some(b'{'), Some(last)) => *last == b'}',
        // A file with one object per line may have the wrong extension, too.
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
