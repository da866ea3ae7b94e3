//! The fast path for rows as nearly all programs write them.

use memchr::memchr;

const QUOTE: u8 = b'"';

/// Reads the row at the start of `input`: its cells into `text`, one after the other, and their ends into `ends`. Returns
/// the bytes of the row, the bytes of its text and the number of its cells. None, with undefined `text` and `ends`, if the
/// line is not complete, if the row does not fit, or if a quotation mark is at an unusual place.
pub(super) fn read(
    input: &[u8],
    delimiter: u8,
    text: &mut [u8],
    ends: &mut [usize],
) -> Option<(usize, usize, usize)> {
    // The parser treats a row that fills the buffers as too long, so it must read such a row.
    let (capacity, max_cells) = (text.len(), ends.len());
    let (mut at, mut length) = (0, 0);
    for (cell, end) in ends.iter_mut().enumerate() {
        let rest = input.get(at..)?;
        let (read, written) = match rest.first()? {
            &QUOTE => quoted(rest, text.get_mut(length..)?)?,
            _ => unquoted(rest, delimiter, text.get_mut(length..)?)?,
        };
        (at, length) = (at + read, length + written);
        *end = length;
        match input.get(at)? {
            b'\r' | b'\n' => {
                return (length < capacity && cell + 1 < max_cells).then_some((at + 1, length, cell + 1));
            }
            byte if *byte == delimiter => at += 1,
            _ => return None,
        }
    }
    None
}

/// Copies an unquoted cell; returns the bytes read and written.
fn unquoted(rest: &[u8], delimiter: u8, text: &mut [u8]) -> Option<(usize, usize)> {
    let ends_cell = |byte: &u8| *byte == delimiter || matches!(*byte, QUOTE | b'\r' | b'\n');
    let length = rest.iter().position(ends_cell)?;
    text.get_mut(..length)?.copy_from_slice(rest.get(..length)?);
    Some((length, length))
}

/// As [`unquoted`], for a quoted cell, in which two quotation marks are one.
fn quoted(rest: &[u8], text: &mut [u8]) -> Option<(usize, usize)> {
    let (mut at, mut length) = (1, 0);
    loop {
        let inside = rest.get(at..)?;
        let end = memchr(QUOTE, inside)?;
        let doubled = inside.get(end + 1) == Some(&QUOTE);
        let piece = inside.get(..end + usize::from(doubled))?;
        text.get_mut(length..length + piece.len())?.copy_from_slice(piece);
        length += piece.len();
        at += end + 1 + usize::from(doubled);
        if !doubled {
            return Some((at, length));
        }
    }
}
