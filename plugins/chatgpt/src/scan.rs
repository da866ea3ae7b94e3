//! Looking for bytes in texts of all sizes, at the speed of memory.

/// Whether `text` holds anything that the marks of answers are made of; never wrong when it says no. One pass for all:
/// nearly every answer holds none.
///
/// U+E000 to U+EFFF begin with the byte EE, the last two bytes of a dagger are `80 A0`; `:::` opens a block, `s{` stands in
/// `products{`, `x:` in `sandbox:`.
pub(crate) fn may_hold_marks(text: &str) -> bool {
    let bytes = text.as_bytes();
    let next = bytes.get(1..).unwrap_or_default();
    if bytes.last() == Some(&0xEE) {
        return true;
    }
    bytes.chunks(BLOCK).zip(next.chunks(BLOCK)).any(|(block, next)| {
        let pairs = block.iter().zip(next);
        let found = pairs.fold(0, |any, (one, other)| {
            let pair = |first, second| u8::from(*one == first) & u8::from(*other == second);
            any | u8::from(*one == 0xEE)
                | pair(0x80, 0xA0)
                | pair(b':', b':')
                | pair(b's', b'{')
                | pair(b'x', b':')
        });
        found != 0
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
    fn a_mark_is_found_wherever_it_stands() {
        for mark in ["\u{e200}", "\u{2020}", "::", "s{", "x:"] {
            for before in 0..200 {
                let text = format!("{}{mark}{}", "a".repeat(before), "b".repeat(before % 3));
                assert!(may_hold_marks(&text), "{mark} behind {before}");
                assert!(!may_hold_marks(&"a".repeat(before)), "{before}");
            }
        }
    }
}
