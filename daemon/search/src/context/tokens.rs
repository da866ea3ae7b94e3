//! Estimates how many tokens a text has for a model.
//!
//! Each model splits texts in its own way, and the tables for one of them take more memory than the whole daemon at rest. So the
//! tokens are estimated by the script, from above: `tests/quality` asserts that texts in many scripts do not have more in
//! `cl100k_base` and `o200k_base`, two widely used encodings. Newer models need fewer, above all for other scripts than Latin.

/// A token, in the unit in which parts of tokens are added up.
const TOKEN: usize = 12;
/// Letters after which the rest of a word has more tokens: it is rare, or made of several words.
const LONG_WORD: usize = 6;

/// What a character counts as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharKind {
    /// `a` to `z`.
    Lower,
    /// `A` to `Z`.
    Upper,
    Digit,
    Space,
    /// The end of a line.
    LineEnd,
    /// Another character of ASCII.
    Sign,
    /// Anything else, with what it costs.
    Other(usize),
}

/// Estimates the number of tokens of a text. The number for two texts that end with a line break is that of both together.
#[must_use]
pub fn estimate(text: &str) -> usize {
    text.split_inclusive('\n').map(|line| cost(line).div_ceil(TOKEN)).sum()
}

fn cost(line: &str) -> usize {
    let mut cost = 0;
    let mut previous = CharKind::LineEnd;
    // Characters of the same kind directly before this one.
    let mut run = 0;
    for c in line.chars() {
        let kind = CharKind::of(c);
        let joined = kind == previous
            || matches!(
                (previous, kind),
                (CharKind::Upper | CharKind::Lower, CharKind::Lower) | (CharKind::Upper, CharKind::Upper)
            );
        run = if joined { run + 1 } else { 0 };
        cost += kind.cost(previous, run);
        previous = kind;
    }
    cost
}

impl CharKind {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Digit,
            '\n' => Self::LineEnd,
            ' ' => Self::Space,
            c if c.is_ascii() => Self::Sign,
            c => Self::Other(other_cost(c)),
        }
    }

    /// Returns what a character costs after `run` others of its kind, or after `previous`.
    fn cost(self, previous: Self, run: usize) -> usize {
        match self {
            // A word is one or two tokens, a long one more. Without a space before it, it rarely belongs to what is there.
            Self::Lower if run == 0 && previous == Self::Digit => 14,
            Self::Lower if run == 0 => 7,
            Self::Lower if run < LONG_WORD => 3,
            Self::Lower => 6,
            Self::Upper if run == 0 && matches!(previous, Self::Digit | Self::Lower) => 18,
            Self::Upper if run == 0 => 13,
            Self::Upper => 6,
            Self::Digit if run == 0 => TOKEN,
            Self::Digit => 4,
            // A single space belongs to the word after it.
            Self::Space if run == 0 => 1,
            Self::Space => 3,
            Self::LineEnd => TOKEN,
            // Signs that often follow each other, as in JSON, are one token.
            Self::Sign if run == 0 => TOKEN,
            Self::Sign => 8,
            Self::Other(cost) => cost,
        }
    }
}

/// Returns the cost of a character that is not in ASCII.
fn other_cost(c: char) -> usize {
    match c {
        // Latin letters with accents, and Greek.
        '\u{80}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{370}'..='\u{3ff}' => 16,
        // Cyrillic.
        '\u{400}'..='\u{52f}' => 10,
        // Hebrew and Arabic.
        '\u{590}'..='\u{6ff}' => 14,
        // Devanagari and Thai.
        '\u{900}'..='\u{97f}' | '\u{e00}'..='\u{e7f}' => 16,
        // Kana, and the punctuation of Chinese and Japanese.
        '\u{3000}'..='\u{30ff}' | '\u{ff00}'..='\u{ffef}' => 13,
        // Chinese characters, and Korean.
        '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' => 20,
        // Dashes, quotation marks and other signs.
        '\u{2000}'..='\u{206f}' => 18,
        // One token for each byte, which no such encoding exceeds.
        c => TOKEN * c.len_utf8(),
    }
}
