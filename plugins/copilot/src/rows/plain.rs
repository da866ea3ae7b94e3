//! Reads rows in the form in which nearly all are written, many bytes at a time.

use memchr::memchr;

const QUOTE: u8 = b'"';

/// Reads the row at the front of `input` into `text`, its cells one behind the other, and says of how many bytes it is,
/// those of its text, and how many cells it has. None, and nothing to be read in `text` and `ends`, if it has not all of
/// its line in `input`, if it does not fit, or if there is a quotation mark where no program writes one.
pub(super) fn read(
    input: &[u8],
    delimiter: u8,
    text: &mut [u8],
    ends: &mut [usize],
) -> Option<(usize, usize, usize)> {
    // One that fills them is left to the parser, which takes it for too long.
    let (room, most) = (text.len(), ends.len());
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
                return (length < room && cell + 1 < most).then_some((at + 1, length, cell + 1));
            }
            byte if *byte == delimiter => at += 1,
            _ => return None,
        }
    }
    None
}

/// The bytes of a cell up to what ends it, and those of its text.
fn unquoted(rest: &[u8], delimiter: u8, text: &mut [u8]) -> Option<(usize, usize)> {
    let over = |byte: &u8| *byte == delimiter || matches!(*byte, QUOTE | b'\r' | b'\n');
    let length = rest.iter().position(over)?;
    text.get_mut(..length)?.copy_from_slice(rest.get(..length)?);
    Some((length, length))
}

/// The same of a cell in quotation marks; two of them inside are one.
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
