//! Words of the index that a rare or unknown word may stand for: typed only in part, a part of a compound, with another spelling,
//! or mistyped.

use std::collections::BTreeMap;

use tantivy::{Term, schema::Field};

use super::{IndexError, Snapshot};
use crate::{
    analysis::{Word, WordKind, fold},
    query::{Atom, Matching},
};

/// A word that more documents have is taken as it is.
const RARE_DOCUMENTS: u64 = 10;
/// Shortest word that may be the beginning of another, in characters.
const MIN_BEGINNING_CHARS: usize = 3;
/// Shortest word that may be inside of another, in characters.
const MIN_INNER_CHARS: usize = 4;
/// Shortest word that may be mistyped, in characters.
const MIN_MISTYPED_CHARS: usize = 4;
/// Words of a query that may stand for longer ones; further ones are taken as they are.
const MAX_EXTENDED: usize = 64;
/// Longer words of each that are counted at once. Of more, the rarer half is dropped.
const MAX_COUNTED: usize = 4_096;
/// Words that one may stand for, the most frequent ones.
const MAX_SIMILAR: usize = 16;
/// A word that some documents have is mistyped if near ones are so many times as frequent.
const MISTYPED_RATIO: u64 = 10;
/// How much a hit counts, compared with the word itself.
const RESPELLED_BOOST: f32 = 0.9;
const NEAR_BOOST: f32 = 0.8;
const BEGINNING_BOOST: f32 = 0.7;
const INNER_BOOST: f32 = 0.5;

/// A word to look for, and how much its hits count.
pub(super) type Similar = (Atom, f32);

/// A word of a query.
pub(super) struct TypedWord {
    /// As it was typed.
    pub(super) atom: Atom,
    /// In lower case and without accents.
    pub(super) folded: String,
    pub(super) kind: WordKind,
    /// How many documents have it, in the form that most of them have.
    pub(super) frequency: u64,
}

impl TypedWord {
    /// Returns whether it may stand for a longer word.
    fn may_be_incomplete(&self) -> bool {
        self.kind == WordKind::Whole
            && self.frequency < RARE_DOCUMENTS
            && self.folded.chars().count() >= MIN_BEGINNING_CHARS
    }

    fn may_be_mistyped(&self) -> bool {
        self.frequency < RARE_DOCUMENTS && self.folded.chars().count() >= MIN_MISTYPED_CHARS
    }

    /// Returns whether another word of the index begins with it, or has it inside.
    fn is_in(&self, other: &str) -> bool {
        if self.folded.chars().count() < MIN_INNER_CHARS {
            other.starts_with(&self.folded)
        } else {
            other.contains(&self.folded)
        }
    }

    fn similar(&self, text: String, matching: Matching, boost: f32) -> Similar {
        (Atom { text, matching, ..self.atom.clone() }, boost)
    }
}

impl Snapshot {
    /// Returns the word of an atom.
    pub(super) fn typed_word(&self, atom: &Atom, word: &Word<'_>) -> Result<TypedWord, IndexError> {
        let text = &atom.text[word.from..word.to];
        let mut frequency = self.documents_with(self.fields.text, word.text)?;
        if word.kind != WordKind::Pair {
            for (language, field) in &self.fields.stems {
                if let Some(stem) = language.stem(text) {
                    frequency = frequency.max(self.documents_with(*field, &stem)?);
                }
            }
        }
        let atom = Atom { text: text.to_owned(), ..atom.clone() };
        Ok(TypedWord { atom, folded: word.text.to_owned(), kind: word.kind, frequency })
    }

    fn documents_with(&self, field: Field, word: &str) -> Result<u64, IndexError> {
        Ok(self.searcher.doc_freq(&Term::from_field_text(field, word))?)
    }

    /// Returns what each of the words may stand for.
    pub(super) fn similar(&self, words: &[TypedWord]) -> Result<Vec<Vec<Similar>>, IndexError> {
        let mut longer = self.longer(words)?.into_iter();
        words.iter().map(|word| self.similar_to(word, longer.next().unwrap_or_default())).collect()
    }

    fn similar_to(&self, word: &TypedWord, longer: Vec<String>) -> Result<Vec<Similar>, IndexError> {
        let mut similar = Vec::new();
        if word.kind != WordKind::Whole {
            return Ok(similar);
        }
        for other in respelled(&word.atom.text) {
            if self.documents_with(self.fields.text, &other)? > 0 {
                similar.push(word.similar(other, Matching::Stem, RESPELLED_BOOST));
            }
        }
        for other in longer {
            let boost = if other.starts_with(&word.folded) { BEGINNING_BOOST } else { INNER_BOOST };
            similar.push(word.similar(other, Matching::Exact, boost));
        }
        if similar.is_empty() && word.may_be_mistyped() {
            let near = self.near(&word.folded)?.into_iter();
            let near = near.filter(|(_, documents)| *documents >= word.frequency * MISTYPED_RATIO);
            similar.extend(near.map(|(other, _)| word.similar(other, Matching::Stem, NEAR_BOOST)));
        }
        Ok(similar)
    }

    /// Returns for each of the words the most frequent longer words that have it. All words of the index are read once.
    fn longer(&self, words: &[TypedWord]) -> Result<Vec<Vec<String>>, IndexError> {
        let mut found: Vec<BTreeMap<String, u64>> = vec![BTreeMap::new(); words.len()];
        let incomplete = words.iter().enumerate().filter(|(_, word)| word.may_be_incomplete());
        let wanted: Vec<_> = incomplete.take(MAX_EXTENDED).collect();
        for segment in self.searcher.segment_readers() {
            if wanted.is_empty() {
                break;
            }
            let index = segment.inverted_index(self.fields.text)?;
            let mut terms = index.terms().stream().map_err(tantivy::TantivyError::from)?;
            while terms.advance() {
                let Ok(term) = std::str::from_utf8(terms.key()) else { continue };
                for (at, word) in &wanted {
                    if term.len() > word.folded.len() && word.is_in(term) {
                        let counted = &mut found[*at];
                        *counted.entry(term.to_owned()).or_default() += u64::from(terms.value().doc_freq);
                        if counted.len() > MAX_COUNTED {
                            keep_most_frequent(counted, MAX_COUNTED / 2);
                        }
                    }
                }
            }
        }
        Ok(found.into_iter().map(most_frequent).collect())
    }
}

fn keep_most_frequent(words: &mut BTreeMap<String, u64>, count: usize) {
    let mut all: Vec<_> = std::mem::take(words).into_iter().collect();
    all.sort_by_key(|(_, documents)| std::cmp::Reverse(*documents));
    words.extend(all.into_iter().take(count));
}

fn most_frequent(words: BTreeMap<String, u64>) -> Vec<String> {
    let mut words: Vec<_> = words.into_iter().collect();
    words.sort_by_key(|(_, documents)| std::cmp::Reverse(*documents));
    words.into_iter().take(MAX_SIMILAR).map(|(word, _)| word).collect()
}

/// Returns other spellings of a German word, folded: `ae` for `ä`, and the other way round.
fn respelled(typed: &str) -> Vec<String> {
    let letters = [("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("Ä", "ae"), ("Ö", "oe"), ("Ü", "ue")];
    let plain = fold(typed);
    let long = letters.iter().fold(typed.to_owned(), |word, (umlaut, long)| word.replace(umlaut, long));
    let short =
        letters[..3].iter().fold(plain.clone(), |word, (umlaut, long)| word.replace(long, &fold(umlaut)));
    [fold(&long), short].into_iter().filter(|other| *other != plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn umlauts_have_two_spellings() {
        assert_eq!(respelled("Förderung"), ["foerderung"]);
        assert_eq!(respelled("Foerderung"), ["forderung"]);
        assert!(respelled("Wald").is_empty());
    }
}
