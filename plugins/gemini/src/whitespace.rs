//! Finds text whose white space needs no collapsing.

/// Bytes that are compared at once, so that compilers vectorise the loop.
const BLOCK: usize = 16;

/// The length of the longest prefix of `text` whose only white space is single spaces between words.
///
/// `other` returns 1 for a byte with which white space other than a space may begin, else 0.
pub(crate) fn collapsed_prefix(text: &[u8], other: impl Fn(u8) -> u8) -> usize {
    let space = |byte: u8| u8::from(byte == b' ');
    let ends = |byte: u8, next: u8| other(byte) | (space(byte) & (other(next) | space(next)));
    let mut start = 0;
    while let Some((block, next)) =
        text.get(start..).and_then(|rest| rest.first_chunk::<BLOCK>().zip(rest.get(1..=BLOCK)))
    {
        if block.iter().zip(next).fold(0, |any, (byte, next)| any | ends(*byte, *next)) != 0 {
            break;
        }
        start += BLOCK;
    }
    // The text may be followed by a space, so a space at its end does not belong to the prefix.
    let rest = text.get(start..).unwrap_or_default();
    let after = |at: usize| *rest.get(at + 1).unwrap_or(&b' ');
    let end = rest.iter().enumerate().position(|(at, byte)| ends(*byte, after(at)) != 0);
    start + end.unwrap_or(rest.len())
}
