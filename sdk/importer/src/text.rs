//! Texts as importers read and compare them.

use std::borrow::Cow;

/// The bytes as text, with U+FFFD in the place of those that are not UTF-8. Much faster than [`String::from_utf8_lossy`].
pub fn of_utf8(bytes: &[u8]) -> Cow<'_, str> {
    simdutf8::basic::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// The text without its white space, for comparisons of words.
pub fn without_white_space(text: &str) -> String {
    // Whole characters are left out, so the rest is UTF-8.
    of_utf8(&bytes_of_words(text)).into_owned()
}

/// The bytes of [`without_white_space`], for digests.
pub fn bytes_of_words(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut kept = vec![0; bytes.len()];
    let (mut at, mut length) = (0, 0);
    // Without a branch for each word: those cannot be predicted.
    while let (Some(byte), Some(slot)) = (bytes.get(at), kept.get_mut(length)) {
        *slot = *byte;
        length += usize::from(!is_ascii_space(*byte));
        at += 1;
        if may_begin_space(*byte) {
            let character = text.get(at - 1..).and_then(|rest| rest.chars().next());
            if let Some(space) = character.filter(|character| character.is_whitespace()) {
                length -= 1;
                at += space.len_utf8() - 1;
            }
        }
    }
    kept.truncate(length);
    kept
}

/// Whether it is white space in ASCII, as [`char::is_whitespace`] counts it.
fn is_ascii_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

/// Whether white space beyond ASCII begins with this byte in UTF-8: U+0085, U+00A0, U+1680, U+2000 to U+205F, U+3000.
fn may_begin_space(byte: u8) -> bool {
    matches!(byte, 0xc2 | 0xe1..=0xe3)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_white_space_is_left_out() {
        let all: String = ('\0'..=char::MAX).collect();
        let expected: String = all.chars().filter(|c| !c.is_whitespace()).collect();
        assert!(without_white_space(&all) == expected, "some character is not told apart");
    }

    proptest! {
        #[test]
        fn words_stay_as_they_are(text in "([a-cé花 \t\u{a0}\u{2003}\u{2014}\u{3000}]|.){0,40}") {
            let expected: String = text.chars().filter(|c| !c.is_whitespace()).collect();
            prop_assert_eq!(without_white_space(&text), expected);
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced() {
        assert_eq!(of_utf8(b"a\xffb"), "a\u{fffd}b");
        assert!(matches!(of_utf8("é".as_bytes()), Cow::Borrowed("é")));
    }
}
