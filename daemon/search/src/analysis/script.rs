//! Classes of characters that decide how a text is split.

/// How a character takes part in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CharClass {
    /// A letter or digit of a script that puts spaces between words.
    Letter,
    /// A character of a script without spaces, or of Korean.
    Unspaced,
    /// A mark that belongs to the character before it.
    Mark,
    Emoji,
    Other,
}

/// Ranges of scripts without spaces, from the blocks of Unicode 16: Thai and Lao, Myanmar, Khmer, Hangul, kana, Han.
const UNSPACED: [(u32, u32); 18] = [
    (0x0E01, 0x0E5B),
    (0x0E81, 0x0EDF),
    (0x0F40, 0x0FBC),
    (0x1000, 0x109F),
    (0x1100, 0x11FF),
    (0x1780, 0x17D3),
    (0x3005, 0x3007),
    (0x3041, 0x3096),
    (0x309D, 0x309F),
    (0x30A1, 0x30FA),
    (0x30FC, 0x30FF),
    (0x3105, 0x318E),
    (0x31F0, 0x31FF),
    (0x3400, 0x9FFF),
    (0xAC00, 0xD7FB),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),
    (0x20000, 0x323AF),
];

/// Pictures that stand for themselves.
const EMOJI: [(u32, u32); 6] = [
    (0x2600, 0x27BF),
    (0x2B50, 0x2B55),
    (0x1F000, 0x1F0FF),
    (0x1F1E6, 0x1F1FF),
    (0x1F300, 0x1FAFF),
    (0x2300, 0x23FF),
];

/// Returns the class of a character.
pub(crate) fn char_class(c: char) -> CharClass {
    if c.is_ascii() {
        return if c.is_ascii_alphanumeric() { CharClass::Letter } else { CharClass::Other };
    }
    let code = u32::from(c);
    // Latin letters with accents: all of these blocks but two signs.
    if (0xC0..0x250).contains(&code) && !matches!(c, '×' | '÷') {
        return CharClass::Letter;
    }
    let within = |ranges: &[(u32, u32)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&code));
    if unicode_normalization::char::is_combining_mark(c) || matches!(code, 0xFF9E | 0xFF9F) {
        CharClass::Mark
    } else if code >= 0x0E01 && within(&UNSPACED) {
        CharClass::Unspaced
    } else if c.is_alphanumeric() {
        CharClass::Letter
    } else if code >= 0x2300 && within(&EMOJI) {
        CharClass::Emoji
    } else {
        CharClass::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin_letters_are_letters() {
        for c in '\u{c0}'..'\u{250}' {
            let expected = if c.is_alphanumeric() { CharClass::Letter } else { CharClass::Other };
            assert_eq!(char_class(c), expected, "{c}");
        }
    }
}
