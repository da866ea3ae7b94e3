//! Text normalisation (PAM 1.0 §6.1, A-2 to A-6): texts with equal results are the same statement.

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// Lower-cases, composes (NFC), trims, and replaces each run of white space by one space, in this order.
#[must_use]
pub fn normalise(content: &str) -> String {
    // Lower-case first: "J\u{30c}" composes only in lower case, so the other order gives another hash.
    let lower = content.to_lowercase();
    let composed = match is_nfc_quick(lower.chars()) {
        IsNormalized::Yes => lower,
        IsNormalized::No | IsNormalized::Maybe => lower.nfc().collect(),
    };
    collapse(&composed)
}

/// Whether Python's `str.isspace` holds, which includes U+001C to U+001F, unlike Unicode's `White_Space`.
#[must_use]
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn collapse(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}
