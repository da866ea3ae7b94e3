//! "Did you mean": words of the index that are near to one that finds nothing.

use std::{collections::BTreeMap, ops::Range};

use tantivy::{Term, query::FuzzyTermQuery};

use super::{IndexError, SearchOptions, Snapshot};
use crate::{
    analysis::{WordKind, Words},
    query::{Atom, Clause, Matching, Query, TextField},
};

/// Shortest word for which there is a suggestion, in characters.
const MIN_CHARS: usize = 4;
/// Shortest word that may have two wrong letters, in characters.
const MIN_CHARS_OF_TWO: usize = 7;
/// The most frequent near words, of which the one with the most hits is suggested.
const MAX_CANDIDATES: usize = 8;

/// A word that finds something, for one that does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// Bytes of the query that it replaces.
    pub at: Range<usize>,
    /// In lower case and without accents.
    pub word: String,
}

impl Snapshot {
    /// Returns suggestions for the words of a query that nothing has which the caller may see. Words that only others may see are
    /// not suggested.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn suggest(&self, query: &Query, options: &SearchOptions) -> Result<Vec<Suggestion>, IndexError> {
        let mut suggestions = Vec::new();
        let wanted = query.clauses.iter().filter(|clause| !clause.excluded).flat_map(|clause| &clause.any);
        for atom in wanted.filter(|atom| matches!(atom.matching, Matching::Stem | Matching::Exact)) {
            let words = Words::of(&atom.text);
            let Some(word) = words.get(0).filter(|word| words.len() == 1 && word.kind == WordKind::Whole)
            else {
                continue;
            };
            if word.text.chars().count() < MIN_CHARS || self.hits_of(atom, options)? > 0 {
                continue;
            }
            let mut best: Option<(usize, String)> = None;
            for (near, _) in self.near(word.text)? {
                let hits = self.hits_of(&exact(&near), options)?;
                if hits > best.as_ref().map_or(0, |(most, _)| *most) {
                    best = Some((hits, near));
                }
            }
            suggestions.extend(best.map(|(_, word)| Suggestion { at: atom.at.clone(), word }));
        }
        Ok(suggestions)
    }

    /// Returns how many documents have the word, of those that the caller may see.
    fn hits_of(&self, atom: &Atom, options: &SearchOptions) -> Result<usize, IndexError> {
        let clauses = vec![Clause { excluded: false, any: vec![atom.clone()] }];
        let query = Query { clauses, time: crate::query::ALL_TIMES, ..Query::default() };
        let options = SearchOptions { limit: 0, ..options.clone() };
        Ok(self.search(&query, &options)?.total)
    }

    /// Returns the words of the index that are near to this one, with one wrong letter or else with two, and how many documents
    /// have them.
    pub(super) fn near(&self, word: &str) -> Result<Vec<(String, u64)>, IndexError> {
        let most = if word.chars().count() < MIN_CHARS_OF_TWO { 1 } else { 2 };
        for distance in 1..=most {
            let query = FuzzyTermQuery::new(Term::from_field_text(self.fields.text, word), distance, true);
            let mut frequencies: BTreeMap<String, u64> = BTreeMap::new();
            for segment in self.searcher.segment_readers() {
                let index = segment.inverted_index(self.fields.text)?;
                let mut terms = index
                    .terms()
                    .search(query.automaton()?)
                    .into_stream()
                    .map_err(tantivy::TantivyError::from)?;
                while terms.advance() {
                    if let Ok(term) = std::str::from_utf8(terms.key()) {
                        *frequencies.entry(term.to_owned()).or_default() += u64::from(terms.value().doc_freq);
                    }
                }
            }
            if !frequencies.is_empty() {
                let mut near: Vec<_> = frequencies.into_iter().collect();
                near.sort_by_key(|(_, frequency)| std::cmp::Reverse(*frequency));
                near.truncate(MAX_CANDIDATES);
                return Ok(near);
            }
        }
        Ok(Vec::new())
    }
}

fn exact(word: &str) -> Atom {
    Atom { text: word.to_owned(), matching: Matching::Exact, field: TextField::All, at: 0..0 }
}
