//! Byte scans that rule out rare cases fast: whole blocks without an early exit, which the compiler turns into vector code.

/// Whether `text` may contain citation markers, blocks or sandbox links; false is certain.
///
/// U+E000 to U+EFFF begin with the byte EE, the last two bytes of a dagger are `80 A0`; `:::` opens a block, `s{` is in
/// `products{`, `x:` in `sandbox:`.
pub(crate) fn may_contain_markers(text: &str) -> bool {
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

/// Whether a JSON value may contain what only lenient parsers accept: lone surrogate escapes and control characters.
pub(crate) fn may_be_lenient(raw: &str) -> bool {
    let rare = |any, byte: &u8| any | u8::from(matches!(byte, b'\\' | 0..b' '));
    raw.as_bytes().chunks(BLOCK).any(|block| block.iter().fold(0, rare) != 0)
}

/// Bytes; a few vectors.
const BLOCK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_at_any_offset() {
        for marker in ["\u{e200}", "\u{2020}", "::", "s{", "x:"] {
            for before in 0..200 {
                let text = format!("{}{marker}{}", "a".repeat(before), "b".repeat(before % 3));
                assert!(may_contain_markers(&text), "{marker} behind {before}");
                assert!(!may_contain_markers(&"a".repeat(before)), "{before}");
            }
        }
    }
}
