//! Files to which a program appends lines while they are read: only the whole lines that are there at first are read.

use std::{fs::File, io, os::unix::fs::FileExt};

use serde::de::IgnoredAny;

/// Bytes that are read at once, from the end backwards.
const CHUNK: u64 = 64 << 10;
/// The longest line that is looked for, in bytes. No importer reads a longer one.
const MAX_LINE: u64 = 16 << 20;

/// Returns the length of the whole lines among the first `length` bytes of a file. A last line without a line feed is
/// whole if it is a JSON value: no part of an object is one.
pub(super) fn whole_lines(file: &File, length: u64) -> io::Result<u64> {
    let begin = last_line(file, length)?;
    if length - begin > MAX_LINE {
        // Its importer says that it is too long.
        return Ok(length);
    }
    let line = read_between(file, begin, length)?;
    Ok(if line.trim_ascii().is_empty() || is_json(&line) { length } else { begin })
}

/// Returns where the last line among the first `length` bytes begins. It may be longer than [`MAX_LINE`].
fn last_line(file: &File, length: u64) -> io::Result<u64> {
    let mut end = length;
    while end > 0 && length - end <= MAX_LINE {
        let begin = end.saturating_sub(CHUNK);
        let chunk = read_between(file, begin, end)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(end)
}

fn read_between(file: &File, begin: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(end - begin).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, begin)?;
    Ok(bytes)
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn whole(text: &[u8]) -> u64 {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        whole_lines(&file, text.len() as u64).unwrap()
    }

    #[test]
    fn a_line_that_is_being_written_is_left_out() {
        let line = b"{\"a\":\"\\n{}\"}";
        let both = [line.as_slice(), b"\n", line].concat();
        for length in 0..=both.len() {
            let expected = match length {
                // The first line is whole before its line feed is there, and so is the second one.
                _ if length == line.len() || length == both.len() => length,
                _ if length < line.len() => 0,
                _ => line.len() + 1,
            };
            assert_eq!(whole(&both[..length]), expected as u64, "{length} bytes");
        }
    }

    #[test]
    fn long_lines_are_found_across_chunks() {
        let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(300_000));
        let started = format!("{long}{}", &long[..200_000]);
        assert_eq!(whole(started.as_bytes()), long.len() as u64);
        assert_eq!(whole(&started.as_bytes()[..long.len()]), long.len() as u64);
        let endless = vec![b'x'; usize::try_from(MAX_LINE + CHUNK).unwrap() + 7];
        assert_eq!(whole(&endless), endless.len() as u64, "the importer reports it");
    }
}
