//! Lower case without accents.

use std::sync::LazyLock;

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

/// The characters after ASCII of which the languages of Europe have theirs: each becomes the same, whatever is beside it.
const LATIN: std::ops::Range<u32> = 0x80..0x250;

/// What each of them becomes.
static LATIN_FOLDED: LazyLock<Vec<Box<str>>> = LazyLock::new(|| {
    let folded = |code| {
        let mut folded = String::new();
        if let Some(c) = char::from_u32(code) {
            fold_any(c.encode_utf8(&mut [0; 4]), &mut folded);
        }
        folded.into_boxed_str()
    };
    LATIN.map(folded).collect()
});

/// Returns `text` in lower case and without accents.
#[must_use]
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    fold_into(text, &mut out);
    out
}

/// Appends `text` in lower case and without accents.
///
/// Compatible forms become the usual ones: `ﬁ` becomes `fi`, and full-width and half-width characters those of normal width. Marks
/// that change the word in scripts such as Devanagari, Thai or Japanese are kept.
pub fn fold_into(text: &str, out: &mut String) {
    let start = out.len();
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c.to_ascii_lowercase());
        } else if LATIN.contains(&u32::from(c)) {
            out.push_str(&LATIN_FOLDED[u32::from(c) as usize - LATIN.start as usize]);
        } else {
            out.truncate(start);
            fold_any(text, out);
            return;
        }
    }
}

/// As [`fold_into`], for any text.
fn fold_any(text: &str, out: &mut String) {
    let bare = text.nfkd().filter(|c| !is_accent(*c)).flat_map(char::to_lowercase);
    // Lower case may bring accents of its own: `İ` becomes `i` and a dot.
    for c in bare.filter(|c| !is_accent(*c)).nfc() {
        match c {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'þ' => out.push_str("th"),
            'ø' => out.push('o'),
            'ł' => out.push('l'),
            'đ' | 'ð' => out.push('d'),
            'ħ' => out.push('h'),
            'ı' => out.push('i'),
            'ς' => out.push('σ'),
            'ё' => out.push('е'),
            '’' | 'ʼ' | '＇' => out.push('\''),
            // Drawn out letters in Arabic, and invisible characters inside words.
            '\u{640}' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' => {}
            c => out.push(c),
        }
    }
}

/// Returns whether a mark only decorates a letter: Latin, Greek and Cyrillic accents, and the vowel signs of Hebrew and
/// Arabic, which are mostly not written.
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5c7}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
        && is_combining_mark(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Latin letters are folded one by one, with the result of the rules for all characters.
        #[test]
        fn latin_letters_are_folded_as_any_others(text in "[\u{20}-\u{24f}]{0,12}") {
            let mut any = String::new();
            fold_any(&text, &mut any);
            prop_assert_eq!(fold(&text), any);
        }
    }
}
