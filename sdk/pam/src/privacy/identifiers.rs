//! Identifiers of people, and the search for them in titles, file names, ids and addresses.

use std::{collections::BTreeSet, ops::Range};

use super::fields::{has_email_address, percent_decoded};
use crate::{
    conversation::{ConversationHeader, Participant, Role},
    memory::Memory,
    store::MemoryStore,
};

/// Replacement for an account id in a text.
const MASK: &str = "account";
/// Words of an identifier that are compared; of a longer one the first words.
const MAX_WORDS: usize = 8;
/// Letters and digits of an ASCII identifier; a shorter one would be found everywhere.
const MIN_LETTERS: usize = 3;
/// Bytes of an id that does not occur in a text by chance.
const MIN_OPAQUE_BYTES: usize = 16;
/// Names that identify nobody.
const GENERIC_NAMES: [&str; 8] = ["anonymous", "human", "me", "none", "null", "unknown", "user", "you"];

/// The names and account ids of people.
///
/// E-mail addresses need not be added; they are recognised by their form.
#[derive(Clone, Debug, Default)]
pub struct Identifiers {
    /// The lower-case words of each, separated by a space.
    phrases: BTreeSet<String>,
    /// Number of words of the longest phrase.
    max_words: usize,
    /// Phrases in scripts without spaces between words.
    unspaced: BTreeSet<String>,
    /// Long ids that are not words, in lower case.
    opaque: BTreeSet<String>,
    /// Their lengths in bytes.
    lengths: BTreeSet<usize>,
}

impl Identifiers {
    /// Adds an id or a name, unless it is too short or too general to identify somebody.
    pub fn add(&mut self, text: &str) {
        let text = text.trim().to_lowercase();
        let words: Vec<String> = words(&text).take(MAX_WORDS).map(ToOwned::to_owned).collect();
        let letters: usize = words.iter().map(|word| word.chars().count()).sum();
        if letters < MIN_LETTERS && text.is_ascii()
            || words.is_empty()
            || GENERIC_NAMES.contains(&text.as_str())
        {
            return;
        }
        if is_opaque(&text) {
            self.lengths.insert(text.len());
            self.opaque.insert(text.clone());
        }
        // Most scripts with spaces between words have lower case.
        if !text.is_ascii() && letters > 1 && !text.chars().any(char::is_lowercase) {
            self.unspaced.insert(text);
        }
        self.max_words = self.max_words.max(words.len());
        self.phrases.insert(words.join(" "));
    }

    /// Adds the account and the participants of a conversation.
    pub fn add_header(&mut self, header: &ConversationHeader) {
        header.provider.account_id.iter().for_each(|id| self.add(id));
        for Participant { role, name, provider_id } in &header.participants {
            // The name of a model is not secret, but the id of a personal one may be.
            let name = name.iter().filter(|_| *role == Role::User);
            name.chain(provider_id).for_each(|text| self.add(text));
        }
    }

    /// Adds the account of a memory.
    pub fn add_memory(&mut self, memory: &Memory) {
        memory.provenance.platform_user_id.iter().for_each(|id| self.add(id));
    }

    /// Collects the accounts of all memories of a store.
    #[must_use]
    pub fn of_store(store: &MemoryStore) -> Self {
        let mut identifiers = Self::default();
        store.memories.iter().for_each(|memory| identifiers.add_memory(memory));
        identifiers
    }

    /// Whether `text` contains one of them or an e-mail address: names as whole words, ids anywhere.
    #[must_use]
    pub fn found_in(&self, text: &str) -> bool {
        has_email_address(text) || self.contained_in(&percent_decoded(text).to_lowercase())
    }

    fn contained_in(&self, text: &str) -> bool {
        if self.unspaced.iter().any(|name| text.contains(name.as_str())) || !self.opaque_ids(text).is_empty()
        {
            return true;
        }
        let words: Vec<&str> = words(text).collect();
        (0..words.len()).any(|start| {
            let mut phrase = String::new();
            words[start..].iter().take(self.max_words).any(|word| {
                phrase.push_str(if phrase.is_empty() { "" } else { " " });
                phrase.push_str(word);
                self.phrases.contains(&phrase)
            })
        })
    }

    /// Masks all opaque account ids in a text; none if there are none. Names are kept, because they may be part of what was said.
    #[must_use]
    pub fn mask(&self, text: &str) -> Option<String> {
        let found = self.opaque_ids(&text.to_ascii_lowercase());
        if found.is_empty() {
            return None;
        }
        let (mut masked, mut done) = (String::with_capacity(text.len()), 0);
        for Range { start, end } in found {
            masked.push_str(&text[done..start]);
            masked.push_str(MASK);
            done = end;
        }
        masked.push_str(&text[done..]);
        Some(masked)
    }

    /// Byte ranges of opaque ids in `text`, which is in lower case, in order.
    fn opaque_ids(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let Some(shortest) = self.lengths.first() else { return found };
        let mut at = 0;
        for run in text.split(|c: char| !is_of_id(c)) {
            let (start, end) = (at, at + run.len());
            // One character separates two runs.
            at = end + text[end..].chars().next().map_or(0, char::len_utf8);
            let mut place = start;
            while place + shortest <= end {
                let mut ids = self.lengths.iter().rev().map(|length| place..place + length);
                match ids.find(|id| id.end <= end && self.opaque.contains(&text[id.clone()])) {
                    Some(id) => {
                        place = id.end;
                        found.push(id);
                    }
                    None => place += 1,
                }
            }
        }
        found
    }
}

/// Whether an id is long and not made of words.
fn is_opaque(text: &str) -> bool {
    text.len() >= MIN_OPAQUE_BYTES
        && text.contains(|c: char| c.is_ascii_digit())
        && text.chars().all(is_of_id)
}

fn is_of_id(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "6F1EAA10-0000-4000-8000-0000000000AB";

    fn identifiers() -> Identifiers {
        let mut identifiers = Identifiers::default();
        [ID, "Ines Brandt", "Ole", "user", "a", "山田太郎", "user-AbCdEfGh12345678"]
            .into_iter()
            .for_each(|text| identifiers.add(text));
        identifiers
    }

    #[test]
    fn people_are_found_inside_texts() {
        for text in [
            "https://assets.example.com/users/6f1eaa10-0000-4000-8000-0000000000ab/x/content",
            "users_6f1eaa10-0000-4000-8000-0000000000ab_x",
            "Letter of INES BRANDT",
            "ines_brandt-2026.pdf",
            "https://example.com/Ines%20Brandt.png",
            "for Ole!",
            "山田太郎の旅",
            "x user-abcdefgh12345678.zip",
            "lea@example.org",
        ] {
            assert!(identifiers().found_in(text), "{text}");
        }
    }

    #[test]
    fn other_words_are_not_found() {
        for text in [
            "",
            "Olease",
            "the user",
            "Ines went home",
            "Brandt",
            "6f1eaa10-0000-4000-8000-0000000000ac",
            "山田",
            "a b",
        ] {
            assert!(!identifiers().found_in(text), "{text}");
        }
        assert!(!Identifiers::default().found_in("Ines Brandt"));
    }

    #[test]
    fn only_ids_are_masked_in_messages() {
        let text = format!("Ines Brandt: é {ID}, x{}é", ID.to_lowercase());
        assert_eq!(identifiers().mask(&text).as_deref(), Some("Ines Brandt: é account, xaccounté"));
        assert_eq!(identifiers().mask("Ines Brandt is Ole"), None);
    }
}
