//! Looking for bytes in texts of all sizes, at the speed of memory.

/// Whether `text` holds `byte` anywhere.
pub(crate) fn holds(text: &str, byte: u8) -> bool {
    any(text, |other| other == byte)
}

/// Whether `text` holds the bytes `first` and `second` side by side.
pub(crate) fn holds_pair(text: &str, first: u8, second: u8) -> bool {
    let bytes = text.as_bytes();
    let next = bytes.get(1..).unwrap_or_default();
    bytes.chunks(BLOCK).zip(next.chunks(BLOCK)).any(|(block, next)| {
        let pairs = block.iter().zip(next);
        pairs.fold(0, |any, (one, other)| any | (u8::from(*one == first) & u8::from(*other == second))) != 0
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_found_wherever_it_stands() {
        for length in 2..200 {
            for at in 0..length - 1 {
                let mut bytes = vec![b'a'; length];
                assert!(!holds_pair(&String::from_utf8_lossy(&bytes), b'x', b'y'));
                bytes[at] = b'x';
                assert!(!holds_pair(&String::from_utf8_lossy(&bytes), b'x', b'y'));
                bytes[at + 1] = b'y';
                assert!(holds_pair(&String::from_utf8_lossy(&bytes), b'x', b'y'), "{at} of {length}");
            }
        }
    }
}
