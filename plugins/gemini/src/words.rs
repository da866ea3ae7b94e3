//! Runs of words that need no folding of white space.

/// Bytes that are looked at together, which compilers turn into vectors.
const BLOCK: usize = 16;

/// How long the front of `text` has no white space but one space between two words; it does not end in one. `other` gives 1 for
/// a byte with which white space other than a space may begin, else 0.
pub(crate) fn evenly_spaced(text: &[u8], other: impl Fn(u8) -> u8) -> usize {
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
    // One by one what is left, and the block with the end in it. What follows the text may begin with a space.
    let rest = text.get(start..).unwrap_or_default();
    let after = |at: usize| *rest.get(at + 1).unwrap_or(&b' ');
    let end = rest.iter().enumerate().position(|(at, byte)| ends(*byte, after(at)) != 0);
    start + end.unwrap_or(rest.len())
}
