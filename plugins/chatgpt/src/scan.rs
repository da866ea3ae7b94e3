//! Looking for bytes in texts of all sizes, at the speed of memory.

/// Whether `text` holds `byte` anywhere.
pub(crate) fn holds(text: &str, byte: u8) -> bool {
    any(text, |other| other == byte)
}

/// Whether a JSON value may hold what only lenient parsers take: escapes, of which some are lone surrogates, and
/// control characters.
pub(crate) fn may_be_odd(raw: &str) -> bool {
    any(raw, |byte| matches!(byte, b'\\' | 0..b' '))
}

/// Whole blocks without an early exit: the compiler turns them into vector code.
fn any(text: &str, wanted: impl Fn(u8) -> bool) -> bool {
    text.as_bytes()
        .chunks(BLOCK)
        .any(|block| block.iter().fold(0, |any, byte| any | u8::from(wanted(*byte))) != 0)
}

/// Bytes; a few vectors.
const BLOCK: usize = 64;
