//! Finds words in lines of text, without regard to case.

use unicode_width::UnicodeWidthChar as _;

/// The words that are highlighted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Terms {
    terms: Vec<Vec<char>>,
    /// True if a match must not be a part of a longer word.
    whole_words: bool,
}

/// A match within a line, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineMatch {
    pub(super) line: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Terms {
    /// Returns the words of passages that matched a query.
    pub(super) fn of_matches<'a>(matches: impl Iterator<Item = &'a str>) -> Self {
        let mut terms: Vec<Vec<char>> = matches.flat_map(str::split_whitespace).map(folded).collect();
        terms.retain(|term| !term.is_empty());
        terms.sort_unstable();
        terms.dedup();
        // Of two matches at one place the longer one counts.
        terms.sort_by_key(|term| std::cmp::Reverse(term.len()));
        Self { terms, whole_words: true }
    }

    /// Returns a text that is looked for as it was typed.
    pub(super) fn literal(text: &str) -> Self {
        let term = folded(text.trim());
        Self { terms: if term.is_empty() { Vec::new() } else { vec![term] }, whole_words: false }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Appends the matches in a line, in order and without overlaps.
    pub(super) fn find(&self, number: usize, line: &str, matches: &mut Vec<LineMatch>) {
        if self.is_empty() {
            return;
        }
        let chars: Vec<(usize, char)> = line.char_indices().map(|(at, c)| (at, fold(c))).collect();
        let mut at = 0;
        while at < chars.len() {
            let Some(length) = self.match_at(&chars, at) else {
                at += 1;
                continue;
            };
            let start = chars[at].0;
            let end = chars.get(at + length).map_or(line.len(), |(end, _)| *end);
            matches.push(LineMatch { line: number, start, end });
            at += length;
        }
    }

    /// Returns the length of the longest match that begins at a character, in characters.
    fn match_at(&self, chars: &[(usize, char)], at: usize) -> Option<usize> {
        let fits = |term: &&Vec<char>| {
            let Some(part) = chars.get(at..at + term.len()) else { return false };
            let before = at.checked_sub(1).and_then(|at| chars.get(at));
            let bounded = !self.whole_words
                || (!joined(before, part.first()) && !joined(part.last(), chars.get(at + term.len())));
            bounded && part.iter().map(|(_, c)| c).eq(term.iter())
        };
        self.terms.iter().find(fits).map(Vec::len)
    }
}

/// Returns whether two neighbours belong to one word. Scripts with wide characters have no spaces between words.
fn joined(left: Option<&(usize, char)>, right: Option<&(usize, char)>) -> bool {
    let letter =
        |c: Option<&(usize, char)>| c.is_some_and(|(_, c)| c.is_alphanumeric() && c.width().unwrap_or(0) < 2);
    letter(left) && letter(right)
}

fn folded(text: &str) -> Vec<char> {
    text.chars().map(fold).collect()
}

/// Folds the case of a character for which this is again one character.
fn fold(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(folded), None) => folded,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(terms: &Terms, line: &'a str) -> Vec<&'a str> {
        let mut matches = Vec::new();
        terms.find(7, line, &mut matches);
        assert!(matches.iter().all(|found| found.line == 7));
        matches.iter().map(|found| &line[found.start..found.end]).collect()
    }

    #[test]
    fn matches_of_a_query_are_whole_words() {
        let terms = Terms::of_matches(["Bees", "queen bee", "bees"].into_iter());
        assert_eq!(found(&terms, "BEES, beeswax, a bee; bees"), ["BEES", "bee", "bees"]);
        assert_eq!(found(&Terms::of_matches(["蜂"].into_iter()), "蜜蜂は蜂"), ["蜂", "蜂"]);
        assert!(Terms::of_matches([" "].into_iter()).is_empty());
    }

    #[test]
    fn typed_text_is_found_anywhere() {
        assert_eq!(found(&Terms::literal("EES"), "bees Ees"), ["ees", "Ees"]);
        assert_eq!(found(&Terms::literal("aa"), "aaaaa"), ["aa", "aa"]);
        assert!(found(&Terms::literal("  "), "a b").is_empty());
    }

    #[test]
    fn characters_that_grow_when_folded_do_not_shift_the_match() {
        assert_eq!(found(&Terms::literal("x"), "İİX"), ["X"]);
        assert_eq!(found(&Terms::literal("É"), "caf\u{e9}"), ["é"]);
    }
}
