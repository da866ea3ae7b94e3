//! Turns a query into one of the index.

use std::ops::{Bound, Range};

use tantivy::{
    Term,
    query::{
        AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, DisjunctionMaxQuery, FuzzyTermQuery, Occur,
        PhrasePrefixQuery, PhraseQuery, Query as IndexQuery, RangeQuery, TermQuery, TermSetQuery,
    },
    schema::{Field, IndexRecordOption},
};

use super::{
    document::OwnerId,
    schema::Fields,
    snapshot::{Hit, Restriction, SearchOptions},
};
use crate::{
    analysis::{Word, WordKind, Words},
    query::{
        ALL_TIMES, Atom, Clause, Filter, FilterField, Matching, Query, TextField, Validity, ValidityFilter,
    },
};

/// How much a hit of a stem counts, compared with the word itself.
const STEM_BOOST: f32 = 0.6;
/// How much a hit in a title counts.
const TITLE_BOOST: f32 = 1.6;
/// How much a hit of another spelling or of a beginning counts.
const SIMILAR_SCORE: f32 = 1.0;
/// Words that a prefix after a phrase may stand for.
const MAX_EXPANSIONS: u32 = 200;
/// Shortest word that is looked for in other spellings, in characters.
const MIN_FUZZY_CHARS: usize = 4;

pub(super) type Boxed = Box<dyn IndexQuery>;

/// Returns the query for what a person typed, within what the caller may see.
pub(super) fn compile(fields: &Fields, query: &Query, options: &SearchOptions) -> Boxed {
    let words = all_clauses(fields, &query.clauses);
    limited(fields, query, options, words)
}

/// Returns the query for all words of a person, in any form.
pub(super) fn all_clauses(fields: &Fields, clauses: &[Clause]) -> Boxed {
    let mut parts: Vec<(Occur, Boxed)> = Vec::new();
    for clause in clauses {
        let occur = if clause.excluded { Occur::MustNot } else { Occur::Must };
        let any = alternatives(fields, clause);
        parts.push((occur, if clause.excluded { excludable(any) } else { any }));
    }
    if !parts.iter().any(|(occur, _)| *occur != Occur::MustNot) {
        parts.push((Occur::Must, unscored(Box::new(AllQuery))));
    }
    Box::new(BooleanQuery::new(parts))
}

/// Returns `words` within the filters and the time of the query, and within what the caller may see.
pub(super) fn limited(fields: &Fields, query: &Query, options: &SearchOptions, words: Boxed) -> Boxed {
    let mut limits = vec![(Occur::Must, words)];
    limits.extend(query.filters.iter().map(|one| filter(fields, one)));
    limits.extend(query.validity.iter().map(|one| validity(fields, one)));
    limits.extend(time(fields, &query.time).map(|one| (Occur::Must, one)));
    if !options.hidden {
        let hidden = Term::from_field_bool(fields.hidden, true);
        limits.push((Occur::MustNot, Box::new(TermQuery::new(hidden, IndexRecordOption::Basic))));
    }
    if let Some(restriction) = &options.restriction {
        limits.push((Occur::Must, unscored(restrict(fields, restriction))));
    }
    Box::new(BooleanQuery::new(limits))
}

/// Returns the query for a document that was found.
pub(super) fn document(fields: &Fields, hit: &Hit) -> Boxed {
    let owner = match &hit.conversation_id {
        Some(id) => OwnerId::Conversation(id),
        None => OwnerId::Memory(&hit.id),
    };
    let terms = [(fields.owner, owner.to_string()), (fields.id, hit.id.clone())];
    let terms = terms.iter().map(|(field, text)| -> Boxed {
        Box::new(TermQuery::new(Term::from_field_text(*field, text), IndexRecordOption::Basic))
    });
    Box::new(BooleanQuery::intersection(terms.collect()))
}

/// Returns a query that tantivy can exclude. Its scorer of phrases asserts that no document before the first match is asked for, which
/// an exclusion does; a union of two asks for none.
fn excludable(query: Boxed) -> Boxed {
    Box::new(BooleanQuery::union(vec![query.box_clone(), query]))
}

fn unscored(query: Boxed) -> Boxed {
    Box::new(ConstScoreQuery::new(query, 0.0))
}

/// Returns the query for one part of what a person typed.
pub(super) fn alternatives(fields: &Fields, clause: &Clause) -> Boxed {
    let mut all: Vec<Boxed> = clause.any.iter().map(|one| atom(fields, one)).collect();
    if all.len() == 1 { all.remove(0) } else { Box::new(BooleanQuery::union(all)) }
}

/// Returns the query for one word or phrase.
pub(super) fn atom(fields: &Fields, atom: &Atom) -> Boxed {
    let words = Words::of(&atom.text);
    // A phrase goes through whole names; a single name is found by its parts too.
    let line: Vec<Word<'_>> = words.iter().filter(|word| word.kind != WordKind::Part).collect();
    let in_field = |field| match atom.matching {
        Matching::Prefix => prefix(field, &line),
        Matching::Fuzzy(distance) => fuzzy(field, &line, distance),
        Matching::Stem | Matching::Exact | Matching::Phrase => exact(field, &words, &line),
    };
    let title: Boxed = Box::new(BoostQuery::new(in_field(fields.title), TITLE_BOOST));
    if atom.field == TextField::Title {
        return title;
    }
    let mut best = vec![in_field(fields.text), title];
    if let (Matching::Stem, [word]) = (atom.matching, &line[..]) {
        best.extend(stems(fields, &atom.text[word.from..word.to]));
    }
    Box::new(DisjunctionMaxQuery::new(best))
}

fn term(field: Field, text: &str) -> Boxed {
    Box::new(TermQuery::new(Term::from_field_text(field, text), IndexRecordOption::WithFreqs))
}

/// Returns the query for words in a row; for one name, also for its parts in a row.
fn exact(field: Field, words: &Words, line: &[Word<'_>]) -> Boxed {
    match line {
        [word] if is_single_character(word) => prefix(field, line),
        [word] => {
            let parts: Vec<Word<'_>> = words.iter().filter(|word| word.kind == WordKind::Part).collect();
            let parts = significant(&parts);
            if parts.is_empty() {
                return term(field, word.text);
            }
            Box::new(DisjunctionMaxQuery::new(vec![term(field, word.text), phrase(field, parts)]))
        }
        words => phrase(field, words),
    }
}

/// Returns the parts of a name without an article before an apostrophe: `l'école` is found where `école` is.
fn significant<'a, 'b>(parts: &'a [Word<'b>]) -> &'a [Word<'b>] {
    match parts {
        [article, rest @ ..]
            if rest.len() == 1 && article.text.len() <= 2 && rest[0].from == article.to + '’'.len_utf8() =>
        {
            rest
        }
        [article, rest @ ..]
            if rest.len() == 1 && article.text.len() <= 1 && rest[0].from == article.to + 1 =>
        {
            rest
        }
        parts => parts,
    }
}

/// A single character of a script without spaces is mostly the beginning or the end of a pair.
fn is_single_character(word: &Word<'_>) -> bool {
    word.kind == WordKind::Pair && word.text.chars().nth(1).is_none()
}

fn phrase(field: Field, words: &[Word<'_>]) -> Boxed {
    if let [word] = words {
        return term(field, word.text);
    }
    let terms = words.iter().map(|word| (word.position, Term::from_field_text(field, word.text)));
    Box::new(PhraseQuery::new_with_offset(terms.collect()))
}

fn prefix(field: Field, words: &[Word<'_>]) -> Boxed {
    match words {
        [] => Box::new(BooleanQuery::new(Vec::new())),
        [word] => {
            let start = Term::from_field_text(field, word.text);
            let prefix = FuzzyTermQuery::new_prefix(start, 0, true);
            // The word itself counts more than what begins with it.
            let similar = ConstScoreQuery::new(Box::new(prefix), SIMILAR_SCORE);
            Box::new(DisjunctionMaxQuery::new(vec![term(field, word.text), Box::new(similar)]))
        }
        words => {
            let terms = words.iter().map(|word| (word.position, Term::from_field_text(field, word.text)));
            let mut query = PhrasePrefixQuery::new_with_offset(terms.collect());
            query.set_max_expansions(MAX_EXPANSIONS);
            Box::new(query)
        }
    }
}

fn fuzzy(field: Field, words: &[Word<'_>], distance: u8) -> Boxed {
    let each = words.iter().map(|word| -> (Occur, Boxed) {
        if word.kind == WordKind::Pair || word.text.chars().count() < MIN_FUZZY_CHARS {
            return (Occur::Must, term(field, word.text));
        }
        let similar = FuzzyTermQuery::new(Term::from_field_text(field, word.text), distance, true);
        let similar = Box::new(ConstScoreQuery::new(Box::new(similar), SIMILAR_SCORE));
        (Occur::Must, Box::new(DisjunctionMaxQuery::new(vec![term(field, word.text), similar])))
    });
    Box::new(BooleanQuery::new(each.collect()))
}

/// Returns the queries for the stems of a word, in each language.
fn stems(fields: &Fields, word: &str) -> Vec<Boxed> {
    let stems = fields.stems.iter().filter_map(|(language, field)| Some((*field, language.stem(word)?)));
    stems
        .map(|(field, stem)| -> Boxed { Box::new(BoostQuery::new(term(field, &stem), STEM_BOOST)) })
        .collect()
}

fn filter(fields: &Fields, filter: &Filter) -> (Occur, Boxed) {
    let field = fields.of_filter(filter.field);
    let terms = filter.values.iter().map(|value| match filter.field {
        FilterField::Conversation => Term::from_field_text(field, &OwnerId::Conversation(value).to_string()),
        _ => Term::from_field_text(field, value),
    });
    let query: Boxed = Box::new(TermSetQuery::new(terms));
    if filter.excluded { (Occur::MustNot, query) } else { (Occur::Must, unscored(query)) }
}

fn time(fields: &Fields, range: &Range<i64>) -> Option<Boxed> {
    if *range == ALL_TIMES {
        return None;
    }
    let bound = |time| Term::from_field_i64(fields.time, time);
    let query = RangeQuery::new(Bound::Included(bound(range.start)), Bound::Excluded(bound(range.end)));
    Some(unscored(Box::new(query)))
}

fn validity(fields: &Fields, filter: &ValidityFilter) -> (Occur, Boxed) {
    let range = |field: Field, from: Bound<i64>, to: Bound<i64>| -> Boxed {
        let term = |time| Term::from_field_i64(field, time);
        Box::new(RangeQuery::new(from.map(term), to.map(term)))
    };
    let ended = |from, to| range(fields.valid_until, from, to);
    let query: Boxed = match filter.validity {
        Validity::Valid => Box::new(BooleanQuery::intersection(vec![
            range(fields.valid_from, Bound::Unbounded, Bound::Excluded(filter.at.end)),
            ended(Bound::Excluded(filter.at.start), Bound::Unbounded),
        ])),
        Validity::Expired => ended(Bound::Unbounded, Bound::Included(filter.at.start)),
    };
    if filter.excluded { (Occur::MustNot, query) } else { (Occur::Must, unscored(query)) }
}

/// Returns the query for what a device may see. Each list that is empty restricts nothing.
fn restrict(fields: &Fields, restriction: &Restriction) -> Boxed {
    let set = |field: Field, values: &[String]| -> Boxed {
        Box::new(TermSetQuery::new(values.iter().map(|value| Term::from_field_text(field, value))))
    };
    let mut parts: Vec<(Occur, Boxed)> = vec![(Occur::Must, Box::new(AllQuery))];
    for (field, values) in
        [(fields.exact_platform, &restriction.platforms), (fields.exact_tag, &restriction.tags)]
    {
        if !values.is_empty() {
            parts.push((Occur::Must, set(field, values)));
        }
    }
    if !restriction.deny_tags.is_empty() {
        parts.push((Occur::MustNot, set(fields.exact_tag, &restriction.deny_tags)));
    }
    let kinds: Vec<String> = restriction.kinds.iter().map(|kind| kind.word().to_owned()).collect();
    parts.push((Occur::Must, set(fields.kind, &kinds)));
    let mut memories: Vec<(Occur, Boxed)> = Vec::new();
    if !restriction.types.is_empty() {
        memories.push((Occur::Must, set(fields.memory_type, &restriction.types)));
    }
    if let Some(readers) = &restriction.readers {
        memories.push((Occur::Must, set(fields.reader, readers)));
    }
    if !memories.is_empty() {
        // Other documents have neither types nor readers.
        let memory = super::DocumentKind::Memory.word().to_owned();
        let others =
            vec![(Occur::Must, Box::new(AllQuery) as Boxed), (Occur::MustNot, set(fields.kind, &[memory]))];
        let either: Vec<Boxed> =
            vec![Box::new(BooleanQuery::new(memories)), Box::new(BooleanQuery::new(others))];
        parts.push((Occur::Must, Box::new(BooleanQuery::union(either))));
    }
    Box::new(BooleanQuery::new(parts))
}
