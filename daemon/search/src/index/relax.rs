//! Searches for some of the words, when few documents have all of them.
//!
//! Only plain words are relaxed. Phrases, `+word`, `-word`, `OR`, `word*`, `word~`, `title:` and filters mean what they say.

use std::iter;

use tantivy::query::{BooleanQuery, BoostQuery, DisjunctionMaxQuery, Occur};

use super::{
    Hit, IndexError, Page, SearchOptions, Snapshot,
    compile::{self, Boxed},
    similar::{Similar, TypedWord},
};
use crate::{
    analysis::{WordKind, Words, is_stop_word},
    query::{Atom, Clause, Matching, Query, TextField},
};

/// If so many documents have all words, nothing else is looked for: they fill the first page.
const ENOUGH_HITS: usize = 10;
/// A document has at least one of so many significant words. Those that have more of them, and rarer ones, come first.
const WORDS_PER_REQUIRED: usize = 3;
/// How much a word counts that says little.
const STOP_WORD_BOOST: f32 = 0.2;

/// A page of a relaxed search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RelaxedPage {
    /// The hits: first all that match the query as it is, then those that match it less strictly.
    pub page: Page,
    /// How many of all hits match the query as it is.
    pub strict_total: usize,
    /// What the other hits match, to be marked in them with [`super::snippet`]; `None` if the search was not relaxed. It must not
    /// be shown to the caller: it may have words of documents that the caller may not see.
    pub relaxed: Option<Query>,
}

/// A word of the query, and how it is found.
struct RelaxedWord {
    /// The word itself, and what it may stand for.
    any: Vec<Similar>,
    /// Whether it says something about what is looked for.
    significant: bool,
}

impl Snapshot {
    /// Returns the documents that match, as [`Snapshot::search`] does. If they are few, documents follow that have some of the
    /// words, or words that are written in a similar way: `thermost` finds `thermostat`, `honny` finds `honey`, and `Erklärung`
    /// finds `Steuererklärung`. Whatever the page, the same hits are in the same order. Facets count
    /// only hits of the query as it is.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn search_relaxed(&self, query: &Query, options: &SearchOptions) -> Result<RelaxedPage, IndexError> {
        let strict = self.search(query, options)?;
        let strict_total = strict.total;
        if strict_total >= ENOUGH_HITS {
            return Ok(RelaxedPage { page: strict, strict_total, relaxed: None });
        }
        let words = self.relaxed_words(query, options)?;
        if !words.iter().any(|word| word.significant) {
            return Ok(RelaxedPage { page: strict, strict_total, relaxed: None });
        }
        let offset = options.offset.saturating_sub(strict_total);
        let limit = options.limit.saturating_sub(strict.hits.len());
        let all = SearchOptions { offset: 0, limit: ENOUGH_HITS, ..options.clone() };
        let found = self.search(query, &all)?.hits;
        let more = self.relaxed_query(query, &words, &found, options);
        let more = self.best(&more, offset, limit, options.now)?;
        let hits = strict.hits.into_iter().chain(more.hits).collect();
        let page = Page { hits, total: strict_total + more.total };
        Ok(RelaxedPage { page, strict_total, relaxed: Some(relaxed(query, &words)) })
    }

    /// Returns the plain words of a query that documents can have, with what they may stand for.
    ///
    /// For a restricted caller, all words count as they are: which words the index has, and which are similar, depends on
    /// documents that the caller may not see, and would show in the number of hits.
    fn relaxed_words(&self, query: &Query, options: &SearchOptions) -> Result<Vec<RelaxedWord>, IndexError> {
        let (mut significant, mut relaxed) = (Vec::new(), Vec::new());
        for atom in query.clauses.iter().filter_map(plain) {
            let words = Words::of(&atom.text);
            for word in words.iter().filter(|word| word.kind != WordKind::Part) {
                let typed = self.typed_word(atom, &word)?;
                if is_stop_word(&word) {
                    relaxed
                        .push(RelaxedWord { any: vec![(typed.atom, STOP_WORD_BOOST)], significant: false });
                } else {
                    significant.push(typed);
                }
            }
        }
        let all_stop_words = significant.is_empty();
        relaxed.iter_mut().for_each(|word| word.significant = all_stop_words);
        if options.restriction.is_some() {
            let as_typed = |word: TypedWord| RelaxedWord { any: vec![(word.atom, 1.0)], significant: true };
            relaxed.extend(significant.into_iter().map(as_typed));
            return Ok(relaxed);
        }
        let similar = self.similar(&significant)?;
        for (typed, similar) in significant.into_iter().zip(similar) {
            // The parts of a name may be in a row where the name itself is not.
            let possible =
                typed.frequency > 0 || !similar.is_empty() || Words::of(&typed.atom.text).len() > 1;
            if possible {
                let any = iter::once((typed.atom, 1.0)).chain(similar).collect();
                relaxed.push(RelaxedWord { any, significant: true });
            }
        }
        Ok(relaxed)
    }

    /// Returns the query for documents that have enough of the words, without those that were found already.
    fn relaxed_query(
        &self,
        query: &Query,
        words: &[RelaxedWord],
        found: &[Hit],
        options: &SearchOptions,
    ) -> Boxed {
        let fields = &self.fields;
        let any = |word: &RelaxedWord| -> Boxed {
            let boosted = word.any.iter().map(|(atom, boost)| -> Boxed {
                Box::new(BoostQuery::new(compile::atom(fields, atom), *boost))
            });
            Box::new(DisjunctionMaxQuery::new(boosted.collect()))
        };
        let significant: Vec<_> =
            words.iter().filter(|word| word.significant).map(|word| (Occur::Should, any(word))).collect();
        let required = significant.len().div_ceil(WORDS_PER_REQUIRED).max(1);
        let mut parts: Vec<(Occur, Boxed)> =
            vec![(Occur::Must, Box::new(BooleanQuery::with_minimum_required_clauses(significant, required)))];
        parts.extend(words.iter().filter(|word| !word.significant).map(|word| (Occur::Should, any(word))));
        let strict: Vec<Clause> =
            query.clauses.iter().filter(|clause| plain(clause).is_none()).cloned().collect();
        if !strict.is_empty() {
            parts.push((Occur::Must, compile::all_clauses(fields, &strict)));
        }
        // By their names: excluding the query itself would be slower, and trips an assertion of tantivy's phrase scorer.
        parts.extend(found.iter().map(|hit| (Occur::MustNot, compile::document(fields, hit))));
        compile::limited(fields, query, options, Box::new(BooleanQuery::new(parts)))
    }
}

/// Returns the word or words of a clause that is typed without any sign.
fn plain(clause: &Clause) -> Option<&Atom> {
    match &clause.any[..] {
        [atom] if !clause.excluded && atom.matching == Matching::Stem && atom.field == TextField::All => {
            Some(atom)
        }
        _ => None,
    }
}

/// Returns the query that relaxed hits match.
fn relaxed(query: &Query, words: &[RelaxedWord]) -> Query {
    let strict = query.clauses.iter().filter(|clause| plain(clause).is_none()).cloned();
    let significant = words
        .iter()
        .filter(|word| word.significant)
        .map(|word| Clause { excluded: false, any: word.any.iter().map(|(atom, _)| atom.clone()).collect() });
    Query { clauses: strict.chain(significant).collect(), ..query.clone() }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
