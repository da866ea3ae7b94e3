//! Finds texts that say the same in nearly the same words.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use crate::analysis::{Words, is_stop_word};

/// Texts with fewer words repeat each other only if they are equal: a single word, such as `not`, may turn the meaning around.
const MIN_WORDS_OF_LONG: usize = 40;
/// Of this many words of two long texts, one may differ.
const WORDS_PER_DIFFERENCE: usize = 10;
/// Words of a text that are compared; no quotation has more.
const MAX_WORDS: usize = 2_000;
/// Stop words that change what a sentence says, in lower case and without accents.
const NEGATIONS: [&str; 27] = [
    "nao", "sem", "nem", "ni", "no", "ohne", "nicht", "kein", "keine", "gegen", "sans", "ne", "pas", "non",
    "senza", "niet", "zonder", "inte", "utan", "не", "нет", "без", "isn't", "don't", "won't", "not", "never",
];

/// The words of a text, for comparison.
#[derive(Debug)]
pub(super) struct TextWords {
    /// The words that say something, in order.
    sequence: u64,
    all: BTreeSet<u64>,
}

/// The texts that are quoted already.
#[derive(Debug, Default)]
pub(super) struct PackedTexts(Vec<TextWords>);

/// Returns the words of a text. Case, accents, punctuation and words that say little make no difference; a text without words has
/// its characters instead.
pub(super) fn words_of(text: &str) -> TextWords {
    let words = Words::of(text);
    let mut sequence = DefaultHasher::new();
    let mut all = BTreeSet::new();
    for word in words.iter().take(MAX_WORDS) {
        if !is_stop_word(&word) || NEGATIONS.contains(&word.text) {
            word.text.hash(&mut sequence);
            let mut hasher = DefaultHasher::new();
            word.text.hash(&mut hasher);
            all.insert(hasher.finish());
        }
    }
    if all.is_empty() || words.len() > MAX_WORDS {
        text.trim().hash(&mut sequence);
    }
    TextWords { sequence: sequence.finish(), all }
}

impl PackedTexts {
    /// Returns whether a text repeats one of these.
    pub(super) fn repeats(&self, words: &TextWords) -> bool {
        self.0.iter().any(|other| other.sequence == words.sequence || other.resembles(words))
    }

    pub(super) fn add(&mut self, words: TextWords) {
        self.0.push(words);
    }
}

impl TextWords {
    fn resembles(&self, other: &Self) -> bool {
        let (fewer, more) = (self.all.len().min(other.all.len()), self.all.len().max(other.all.len()));
        if fewer < MIN_WORDS_OF_LONG || (more - fewer) * WORDS_PER_DIFFERENCE > more {
            return false;
        }
        let common = self.all.intersection(&other.all).count();
        let different = self.all.len() + other.all.len() - 2 * common;
        different * WORDS_PER_DIFFERENCE <= common
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeats(one: &str, other: &str) -> bool {
        let mut packed = PackedTexts::default();
        packed.add(words_of(one));
        packed.repeats(&words_of(other))
    }

    #[test]
    fn texts_that_say_the_same_repeat_each_other() {
        assert!(repeats("Ana likes the green tea.", "ANA likes green tea"));
        assert!(repeats("我喜欢绿茶。", "我喜欢绿茶"));
        assert!(repeats("!!!", "!!!"));
        let long: String = (0..100).map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ");
        assert!(repeats(&long, &format!("{long} indeed")));
    }

    #[test]
    fn texts_that_say_something_else_do_not() {
        assert!(!repeats("Ana likes green tea", "Ana likes black tea"));
        assert!(!repeats("Ana is vegetarian", "Ana is not vegetarian"));
        assert!(
            !repeats("Ana trinkt Tee", "Ana trinkt keinen Tee")
                && !repeats("Ana isst Fleisch", "Ana isst kein Fleisch")
        );
        assert!(!repeats("Meets Rex at 3", "Meets Rex at 4"));
        assert!(!repeats("Ana trusts Rex", "Rex trusts Ana"));
        assert!(!repeats("!!!", "???"));
    }
}
