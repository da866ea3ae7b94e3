//! The passage of a text that fits a query best, with the words that were found.

use std::{cell::OnceCell, collections::BTreeMap, ops::Range};

use crate::{
    analysis::{Language, Word, WordKind, Words},
    query::{Atom, Matching, Query},
};

/// Bytes of a passage before its first match.
const LEAD_BYTES: usize = 40;
/// Matches that are considered; in a long text with a frequent word the first of them are enough.
const MAX_MATCHES: usize = 2_000;

/// A passage of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// A part of the text, unchanged.
    pub text: String,
    /// Bytes of it that were found, in order, without overlaps.
    pub marks: Vec<Range<usize>>,
    /// Whether there is more before it.
    pub cut_start: bool,
    /// Whether there is more after it.
    pub cut_end: bool,
}

/// A place of the text that an atom of the query matches.
struct Match {
    range: Range<usize>,
    atom: usize,
}

/// Returns the passage of `text`, at most about `max_bytes` long, that has the most of the query; its beginning if it has nothing
/// of it.
#[must_use]
pub fn snippet(text: &str, query: &Query, max_bytes: usize) -> Snippet {
    let matches = matches(text, query);
    let window = best_window(&matches, max_bytes);
    let start = window.map_or(0, |first| {
        let at = matches[first].range.start;
        if at < LEAD_BYTES { 0 } else { begin_word(text, at - LEAD_BYTES, at) }
    });
    let end = end_word(text, start, max_bytes);
    let marks = matches.iter().filter(|found| found.range.start >= start && found.range.end <= end);
    let marks = merge(marks.map(|found| found.range.start - start..found.range.end - start).collect());
    Snippet { text: text[start..end].to_owned(), marks, cut_start: start > 0, cut_end: end < text.len() }
}

/// Returns the index of the match with which the best window begins.
fn best_window(matches: &[Match], max_bytes: usize) -> Option<usize> {
    // The matches of the window, from the first on, counted by atom. Both ends only move forward.
    let (mut inside, mut end) = (BTreeMap::<usize, usize>::new(), 0);
    let mut best: Option<(usize, usize)> = None;
    for (first, found) in matches.iter().enumerate() {
        let limit = found.range.start + max_bytes.saturating_sub(LEAD_BYTES);
        while let Some(next) = matches.get(end).filter(|next| next.range.end <= limit) {
            *inside.entry(next.atom).or_default() += 1;
            end += 1;
        }
        // The first of equally good ones.
        if best.is_none_or(|(most, _)| inside.len() > most) {
            best = Some((inside.len(), first));
        }
        if end <= first {
            end = first + 1;
        } else if let Some(count) = inside.get_mut(&found.atom) {
            *count -= 1;
            if *count == 0 {
                inside.remove(&found.atom);
            }
        }
    }
    best.map(|(_, first)| first)
}

fn matches(text: &str, query: &Query) -> Vec<Match> {
    let text = SplitText::new(text);
    let wanted = query.clauses.iter().filter(|clause| !clause.excluded).flat_map(|clause| &clause.any);
    let mut matches: Vec<Match> = Vec::new();
    for (atom, wanted) in wanted.enumerate() {
        let matcher = Matcher::new(wanted, text.language);
        let found = (0..text.words.len()).filter_map(|at| matcher.find(&text, at));
        matches.extend(found.take(MAX_MATCHES).map(|range| Match { range, atom }));
    }
    matches.sort_by_key(|found| (found.range.start, found.range.end));
    matches
}

/// A text and its words.
struct SplitText<'a> {
    text: &'a str,
    words: Words,
    language: Language,
    /// The stem of each word, computed when it is first needed: all atoms of a query compare the same ones.
    stems: OnceCell<Vec<Option<String>>>,
}

impl<'a> SplitText<'a> {
    fn new(text: &'a str) -> Self {
        let language = Language::of(text).unwrap_or(Language::English);
        Self { text, words: Words::of(text), language, stems: OnceCell::new() }
    }

    fn stem(&self, word: usize) -> Option<&str> {
        let stem = |word: Word<'_>| self.language.stem(&self.text[word.from..word.to]);
        self.stems.get_or_init(|| self.words.iter().map(stem).collect()).get(word)?.as_deref()
    }
}

/// Finds one atom of a query.
struct Matcher<'a> {
    atom: &'a Atom,
    words: Words,
    stem: Option<String>,
}

impl<'a> Matcher<'a> {
    fn new(atom: &'a Atom, language: Language) -> Self {
        let words = Words::of(&atom.text);
        let single = words.iter().filter(|word| word.kind != WordKind::Part).count() == 1;
        let stem = (atom.matching == Matching::Stem && single).then(|| language.stem(&atom.text)).flatten();
        Self { atom, words, stem }
    }

    /// Returns the place of the match that begins with this word of the text.
    fn find(&self, text: &SplitText<'_>, at: usize) -> Option<Range<usize>> {
        let words = &text.words;
        let mut wanted = self.words.iter().filter(|word| word.kind != WordKind::Part).peekable();
        let (first, mut next) = (words.get(at)?, at);
        let offset = first.position.checked_sub(wanted.peek()?.position)?;
        let mut end = first.to;
        while let Some(word) = wanted.next() {
            let last = wanted.peek().is_none();
            let found =
                word_at(words, next, word.position + offset, |found| self.fits(text, &word, found, last))?;
            (next, end) = (found + 1, words.get(found)?.to.max(end));
        }
        Some(first.from..end)
    }

    fn fits(&self, text: &SplitText<'_>, wanted: &Word<'_>, at: usize, last: bool) -> bool {
        let Some(found) = text.words.get(at) else { return false };
        if wanted.text == found.text {
            return true;
        }
        match self.atom.matching {
            Matching::Prefix => last && found.text.starts_with(wanted.text),
            Matching::Fuzzy(distance) => {
                strsim::damerau_levenshtein(wanted.text, found.text) <= usize::from(distance)
            }
            Matching::Stem if found.kind != WordKind::Pair => {
                self.stem.is_some() && text.stem(at) == self.stem.as_deref()
            }
            Matching::Stem | Matching::Exact | Matching::Phrase => {
                // A single character is found inside of pairs.
                wanted.kind == WordKind::Pair
                    && found.kind == WordKind::Pair
                    && found.text.starts_with(wanted.text)
            }
        }
    }
}

/// Returns the index of a word at this position that fits, from `from` on.
fn word_at(words: &Words, from: usize, position: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    let at = |index: &usize| words.get(*index);
    (from..words.len())
        .take_while(|index| at(index).is_some_and(|word| word.position <= position))
        .find(|index| at(index).is_some_and(|word| word.position == position) && fits(*index))
}

/// Joins ranges that overlap or touch.
fn merge(ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Returns the beginning of the first word from `from` on, but not after `at`.
fn begin_word(text: &str, from: usize, at: usize) -> usize {
    let from = text.floor_char_boundary(from);
    let space = text[from..at].find(char::is_whitespace);
    space.map_or(from, |space| {
        let rest = &text[from + space..at];
        from + space + (rest.len() - rest.trim_start().len())
    })
}

/// Returns where a passage from `start` on ends: after a word, if there is a space.
fn end_word(text: &str, start: usize, max_bytes: usize) -> usize {
    if text.len() - start <= max_bytes {
        return text.len();
    }
    let limit = text.floor_char_boundary(start + max_bytes);
    let space = text[start..limit].rfind(char::is_whitespace).filter(|space| space * 2 > max_bytes);
    space.map_or(limit, |space| start + space)
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, tz::TimeZone};
    use proptest::prelude::*;

    use super::*;
    use crate::query::Calendar;

    fn marked(text: &str, query: &str, max_bytes: usize) -> String {
        let calendar = Calendar { now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC };
        let query = Query::parse(query, &calendar).unwrap_or_default();
        let found = snippet(text, &query, max_bytes);
        let mut out = String::new();
        let mut at = 0;
        for mark in &found.marks {
            out += &format!("{}[{}]", &found.text[at..mark.start], &found.text[mark.clone()]);
            at = mark.end;
        }
        let (before, after) = (if found.cut_start { "…" } else { "" }, if found.cut_end { "…" } else { "" });
        format!("{before}{out}{}{after}", &found.text[at..])
    }

    #[test]
    fn found_words_are_marked() {
        assert_eq!(marked("Two BEES, one bee.", "bee", 100), "Two [BEES], one [bee].");
        assert_eq!(marked("Two bees, one bee.", "+bee", 100), "Two bees, one [bee].");
        assert_eq!(marked("A bee hive, a hive of bees", "\"bee hive\"", 100), "A [bee hive], a hive of bees");
        assert_eq!(marked("honey and honeycomb", "hon*", 100), "[honey] and [honeycomb]");
        assert_eq!(marked("a hony jar", "honey~", 100), "a [hony] jar");
        assert_eq!(marked("O coração e a AÇÃO", "acao", 100), "O coração e a [AÇÃO]");
        assert_eq!(marked("call getUserName()", "user", 100), "call get[User]Name()");
        assert_eq!(marked("我喜欢蜜蜂。", "喜欢蜜蜂", 100), "我[喜欢蜜蜂]。");
        assert_eq!(marked("bees", "-bees wasps", 100), "bees");
    }

    #[test]
    fn the_passage_with_most_of_the_query_is_chosen() {
        let filler = "lorem ipsum dolor ".repeat(20);
        let text = format!("bees {filler} where bees make honey {filler}");
        let found = marked(&text, "bees honey", 120);
        assert!(found.starts_with('…') && found.ends_with('…'), "{found}");
        assert!(found.contains("where [bees] make [honey]"), "{found}");
        assert!(marked(&text, "wasp", 30).starts_with("bees lorem"), "the beginning if nothing is found");
    }

    proptest! {
        #[test]
        fn every_passage_is_a_part_of_the_text(text in "\\PC{0,200}", query in "\\PC{0,10}", max_bytes in 0usize..200) {
            let found = snippet(&text, &Query::parse(&query, &Calendar { now: Timestamp::UNIX_EPOCH, zone: TimeZone::UTC })
                .unwrap_or_default(), max_bytes);
            prop_assert!(text.contains(&found.text) && found.text.len() <= max_bytes.max(text.len()));
            for mark in found.marks {
                prop_assert!(found.text.get(mark).is_some());
            }
        }
    }
}
