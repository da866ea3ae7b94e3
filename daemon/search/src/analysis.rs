//! The words of a text.
//!
//! Words are those of Unicode (UAX 29), in lower case and without accents, so that `AÇÃO` is found as `acao`. Scripts that are
//! written without spaces (Chinese, Japanese, Thai and others) and Korean, whose words have endings, are split into overlapping
//! pairs of characters. A name from a program, such as `getUserName`, counts as a whole and as its parts. An emoji is a word.

mod fold;
mod script;
mod stem;
mod stop;

use unicode_segmentation::UnicodeSegmentation as _;

pub(crate) use self::script::{CharClass, char_class};
pub use self::{
    fold::{fold, fold_into},
    stem::Language,
    stop::is_stop_word,
};

/// Longest word, in bytes. Of a longer one, such as encoded data, the beginning is kept.
pub const MAX_WORD_BYTES: usize = 128;
/// Shortest part of a name on both sides of a boundary between letters and digits, in characters.
const MIN_NUMBERED_PART: usize = 2;

/// The words of a text, in order. The same value is used for one text after the other, so that its memory is used again.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// The folded words, one after the other.
    text: String,
    words: Vec<WordRange>,
}

#[derive(Clone, Copy, Debug)]
struct WordRange {
    /// In [`Words::text`].
    start: usize,
    end: usize,
    /// In the text that was split.
    from: usize,
    to: usize,
    position: usize,
    kind: WordKind,
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// A word, a number or an emoji.
    Whole,
    /// A part of the word before it.
    Part,
    /// One or two characters of a script that is written without spaces.
    Pair,
}

/// A word of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// In lower case and without accents.
    pub text: &'a str,
    /// Where it is in the text, in bytes.
    pub from: usize,
    /// Its end, in bytes.
    pub to: usize,
    /// Its number. A name and its first part have the same.
    pub position: usize,
    /// What it is.
    pub kind: WordKind,
}

impl Words {
    /// Returns the words of `text`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut words = Self::default();
        words.split(text);
        words
    }

    /// Replaces the words with those of `text`.
    pub fn split(&mut self, text: &str) {
        self.text.clear();
        self.words.clear();
        let mut splitter = Splitter { words: self, source: text, position: 0, run: Vec::new() };
        for (offset, segment) in text.split_word_bound_indices() {
            splitter.segment(offset, segment);
        }
        splitter.end_run();
    }

    /// Returns the words in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Word<'_>> {
        self.words.iter().map(|word| self.word(word))
    }

    /// Returns the word with this index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Word<'_>> {
        self.words.get(index).map(|word| self.word(word))
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    fn word(&self, word: &WordRange) -> Word<'_> {
        let WordRange { start, end, from, to, position, kind } = *word;
        Word { text: &self.text[start..end], from, to, position, kind }
    }

    fn push(&mut self, source: &str, (from, to): (usize, usize), position: usize, kind: WordKind) {
        let start = self.text.len();
        fold_into(&source[from..to], &mut self.text);
        if self.text.len() - start > MAX_WORD_BYTES {
            let cut = self.text.floor_char_boundary(start + MAX_WORD_BYTES);
            self.text.truncate(cut);
        }
        let end = self.text.len();
        if start < end {
            self.words.push(WordRange { start, end, from, to, position, kind });
        }
    }
}

/// Splits one text.
struct Splitter<'a> {
    words: &'a mut Words,
    source: &'a str,
    position: usize,
    /// The characters of a run without spaces, with their ends.
    run: Vec<(usize, usize)>,
}

impl Splitter<'_> {
    /// Adds a segment between two word boundaries of Unicode. It may mix scripts: `C언어` is one.
    fn segment(&mut self, offset: usize, segment: &str) {
        let mut chars = segment.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match char_class(c) {
                CharClass::Unspaced => {
                    let mut end = at + c.len_utf8();
                    // Marks belong to the character before them.
                    while let Some((next, mark)) =
                        chars.next_if(|(_, next)| char_class(*next) == CharClass::Mark)
                    {
                        end = next + mark.len_utf8();
                    }
                    self.unspaced(offset + at, offset + end);
                }
                CharClass::Letter => {
                    let end = word_end(&segment[at..]) + at;
                    while chars.next_if(|(next, _)| *next < end).is_some() {}
                    self.end_run();
                    self.whole(offset + at, offset + end);
                }
                CharClass::Emoji => {
                    self.end_run();
                    while chars.next().is_some() {}
                    self.words.push(
                        self.source,
                        (offset + at, offset + segment.len()),
                        self.position,
                        WordKind::Whole,
                    );
                    self.position += 1;
                }
                CharClass::Mark | CharClass::Other => self.end_run(),
            }
        }
    }

    fn unspaced(&mut self, from: usize, to: usize) {
        if self.run.last().is_some_and(|(_, end)| *end != from) {
            self.end_run();
        }
        self.run.push((from, to));
    }

    /// Adds the pairs of the run.
    fn end_run(&mut self) {
        if let [(from, to)] = self.run[..] {
            self.words.push(self.source, (from, to), self.position, WordKind::Pair);
            self.position += 1;
        }
        for pair in self.run.windows(2) {
            self.words.push(self.source, (pair[0].0, pair[1].1), self.position, WordKind::Pair);
            self.position += 1;
        }
        self.run.clear();
    }

    /// Adds a word, and its parts if it has several.
    fn whole(&mut self, from: usize, to: usize) {
        self.words.push(self.source, (from, to), self.position, WordKind::Whole);
        let mut parts = 0;
        let source = self.source;
        for (start, end) in name_parts(&source[from..to]) {
            self.words.push(source, (from + start, from + end), self.position, WordKind::Part);
            self.position += 1;
            parts += 1;
        }
        self.position += usize::from(parts == 0);
    }
}

/// Returns where the letters and digits of a script with spaces end.
fn word_end(text: &str) -> usize {
    let other = |(_, c): &(usize, char)| matches!(char_class(*c), CharClass::Unspaced | CharClass::Emoji);
    let end = text.char_indices().find(other).map_or(text.len(), |(at, _)| at);
    text[..end].trim_end_matches(|c: char| char_class(c) == CharClass::Other).len()
}

/// Returns the parts of a name, or nothing if it has only one: of `snake_case`, `camelCase`, `HTTPServer`, `file.name`,
/// `l'école`, `iphone15`.
fn name_parts(word: &str) -> Vec<(usize, usize)> {
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) || !word.chars().any(char::is_alphabetic) {
        return Vec::new();
    }
    // Each part but the first begins at one of these, or after one.
    let separates = |c: char| c.is_uppercase() || c.is_numeric() || char_class(c) == CharClass::Other;
    if !word.chars().any(separates) {
        return Vec::new();
    }
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let (mut parts, mut start) = (Vec::new(), None);
    for (index, (at, c)) in chars.iter().enumerate() {
        if char_class(*c) == CharClass::Other {
            parts.extend(start.take().map(|start| (start, *at)));
        } else if start.is_none() {
            start = Some(*at);
        } else if is_boundary(&chars, index) {
            parts.extend(start.replace(*at).map(|start| (start, *at)));
        }
    }
    parts.extend(start.map(|start| (start, word.len())));
    if parts.len() > 1 { parts } else { Vec::new() }
}

/// Returns whether a part of a name begins at this character.
fn is_boundary(chars: &[(usize, char)], index: usize) -> bool {
    let at = |index: usize| chars.get(index).map(|(_, c)| *c);
    let (Some(before), Some(c)) = (index.checked_sub(1).and_then(at), at(index)) else { return false };
    let camel = c.is_uppercase()
        && (before.is_lowercase()
            || (before.is_uppercase() && at(index + 1).is_some_and(char::is_lowercase)));
    let numbered = c.is_numeric() && before.is_alphabetic() && {
        let letters = chars[..index].iter().rev().take_while(|(_, c)| c.is_alphabetic()).count();
        let digits = chars[index..].iter().take_while(|(_, c)| c.is_numeric()).count();
        letters >= MIN_NUMBERED_PART && digits >= MIN_NUMBERED_PART
    };
    camel || numbered
}

#[cfg(test)]
mod tests;
