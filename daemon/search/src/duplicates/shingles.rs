//! The shingles of a text: what it has in common with others that say nearly the same.

use unicode_normalization::UnicodeNormalization as _;

use crate::analysis::{CharClass, char_class};

/// Returns a text in lower case and in compatible characters, its words separated by single spaces, without punctuation.
///
/// Accents are kept, as they change what is said. So are signs that belong to a word or number: `C++`, `C#`, `-5`, `3.5`, `50%`.
pub(super) fn normalised(text: &str) -> String {
    // Lower case may bring characters that compose, so the form is that of what results.
    let folded = text.nfkc().flat_map(char::to_lowercase).nfkc();
    let folded: Vec<char> = folded.filter(|c| !is_invisible(*c)).collect();
    let mut out = String::with_capacity(text.len());
    for (at, c) in folded.iter().copied().enumerate() {
        let before = at.checked_sub(1).map(|before| folded[before]);
        let after = folded.get(at + 1).copied();
        match role(c, before, after) {
            CharRole::Kept => match c {
                'ß' => out.push_str("ss"),
                'ς' => out.push('σ'),
                c => out.push(c),
            },
            CharRole::Dropped => {}
            CharRole::Separator if out.is_empty() || out.ends_with(' ') => {}
            CharRole::Separator => out.push(' '),
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// What becomes of a character.
enum CharRole {
    Kept,
    Dropped,
    Separator,
}

fn role(c: char, before: Option<char>, after: Option<char>) -> CharRole {
    let is_digit = |c: Option<char>| c.is_some_and(char::is_numeric);
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    match c {
        c if c.is_whitespace() || c.is_control() => CharRole::Separator,
        // `3.5` and `10:30`, but not the end of a sentence.
        '.' | ',' | ':' | '/' if is_digit(before) && is_digit(after) => CharRole::Kept,
        // A number below zero, but not a range or a date.
        '-' | '\u{2212}' if !is_letter(before) && is_digit(after) => CharRole::Kept,
        // `don't` and `dont` are the same word.
        '\'' | '\u{2019}' | '\u{2bc}' if is_letter(before) && is_letter(after) => CharRole::Dropped,
        c if is_punctuation(c) => CharRole::Separator,
        _ => CharRole::Kept,
    }
}

/// Returns whether a character separates words without a meaning of its own. Mathematical signs, currencies and pictures do have
/// one.
fn is_punctuation(c: char) -> bool {
    match c {
        '+' | '#' | '$' | '%' | '&' | '<' | '=' | '>' | '@' | '^' | '~' => false,
        c if c.is_ascii() => c.is_ascii_punctuation(),
        '々' | '〆' | '〇' => false,
        '¡' | '¿' | '«' | '»' | '·' | '¶' | '§' | '\u{2212}' | '،' | '؛' | '؟' | '۔' | '।' | '॥' | '・' => {
            true
        }
        c => {
            matches!(c, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3020}' | '\u{2e00}'..='\u{2e7f}')
        }
    }
}

/// Returns whether a character is not seen and only guides the layout.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Shingle<'a> {
    Word(&'a str),
    /// Two words in a row.
    Words(&'a str, &'a str),
    /// Two characters in a row of a script without spaces.
    Characters(char, char),
}

/// Returns the hashes of the shingles of a normalised text, each once; none if there are more than `most`.
pub(super) fn shingles(normal: &str, most: usize, hash: impl Fn(Shingle<'_>) -> u64) -> Vec<u64> {
    let mut all = Vec::new();
    let mut previous = None;
    for word in normal.split(' ').filter(|word| !word.is_empty()) {
        for part in parts(word) {
            if is_unspaced(part) {
                let mut characters = part.chars().peekable();
                while let Some(one) = characters.next() {
                    // A single character is a pair with itself.
                    match characters.peek() {
                        Some(other) => all.push(hash(Shingle::Characters(one, *other))),
                        None if part.chars().nth(1).is_none() => {
                            all.push(hash(Shingle::Characters(one, one)));
                        }
                        None => {}
                    }
                }
                previous = None;
            } else {
                all.push(hash(Shingle::Word(part)));
                all.extend(previous.replace(part).map(|before| hash(Shingle::Words(before, part))));
            }
        }
        if all.len() > most.saturating_mul(2) {
            return Vec::new();
        }
    }
    all.sort_unstable();
    all.dedup();
    if all.len() > most { Vec::new() } else { all }
}

/// Splits a word where a script without spaces begins or ends.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let unspaced = char_class(first) == CharClass::Unspaced;
        let end = rest.find(|c| match char_class(c) {
            CharClass::Mark => false,
            class => (class == CharClass::Unspaced) != unspaced,
        });
        let (part, after) = rest.split_at(end.filter(|end| *end > 0).unwrap_or(rest.len()));
        rest = after;
        Some(part)
    })
}

fn is_unspaced(part: &str) -> bool {
    part.chars().next().is_some_and(|first| char_class(first) == CharClass::Unspaced)
}
