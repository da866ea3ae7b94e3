//! Who somebody is elsewhere, found again inside titles, names of files, ids and addresses.

use std::{collections::BTreeSet, ops::Range};

use super::fields::{address, unescaped};
use crate::{
    conversation::{ConversationHeader, Participant, Role},
    memory::Memory,
    store::MemoryStore,
};

/// What stands in a text in the place of an account's id.
const MASK: &str = "account";
/// Words of a name or an id that are compared; what is longer is told by its first ones.
const LONGEST: usize = 8;
/// Shorter ones would be found in everything.
const SHORTEST: usize = 3;
/// Bytes of an id that nobody would say by chance.
const OPAQUE: usize = 16;
/// Names that say nothing of who somebody is.
const NOBODY: [&str; 8] = ["anonymous", "human", "me", "none", "null", "unknown", "user", "you"];

/// By what people are known elsewhere: ids of accounts and names.
///
/// E-mail addresses need not be added: they are found by their form.
#[derive(Clone, Debug, Default)]
pub struct Identifiers {
    /// Each as its words in lower case, parted by a space.
    phrases: BTreeSet<String>,
    /// Words of the longest phrase.
    longest: usize,
    /// Phrases in scripts that do not part their words.
    unparted: BTreeSet<String>,
    /// Ids that are long and no words, in lower case.
    opaque: BTreeSet<String>,
    /// How long those are.
    lengths: BTreeSet<usize>,
}

impl Identifiers {
    /// Adds an id or a name; what says nothing of anybody is passed over.
    pub fn add(&mut self, text: &str) {
        let text = text.trim().to_lowercase();
        let words: Vec<String> = words(&text).take(LONGEST).map(ToOwned::to_owned).collect();
        let letters: usize = words.iter().map(|word| word.chars().count()).sum();
        if letters < SHORTEST && text.is_ascii() || words.is_empty() || NOBODY.contains(&text.as_str()) {
            return;
        }
        if is_opaque(&text) {
            self.lengths.insert(text.len());
            self.opaque.insert(text.clone());
        }
        // Scripts that part their words have lower case, but for few.
        if !text.is_ascii() && letters > 1 && !text.chars().any(char::is_lowercase) {
            self.unparted.insert(text);
        }
        self.longest = self.longest.max(words.len());
        self.phrases.insert(words.join(" "));
    }

    /// Adds whose conversation it is, and who takes part.
    pub fn add_header(&mut self, header: &ConversationHeader) {
        header.provider.account_id.iter().for_each(|id| self.add(id));
        for Participant { role, name, provider_id } in &header.participants {
            // What a model is called is no secret; which one of their own somebody talks to may be.
            let name = name.iter().filter(|_| *role == Role::User);
            name.chain(provider_id).for_each(|text| self.add(text));
        }
    }

    /// Adds whose memory it is.
    pub fn add_memory(&mut self, memory: &Memory) {
        memory.provenance.platform_user_id.iter().for_each(|id| self.add(id));
    }

    /// Those of all memories of a store.
    #[must_use]
    pub fn of_store(store: &MemoryStore) -> Self {
        let mut who = Self::default();
        store.memories.iter().for_each(|memory| who.add_memory(memory));
        who
    }

    /// Whether one of them, or an e-mail address, stands in `text`: as whole words, an id anywhere.
    #[must_use]
    pub fn hold(&self, text: &str) -> bool {
        address(text) || self.named_in(&unescaped(text).to_lowercase())
    }

    fn named_in(&self, text: &str) -> bool {
        if self.unparted.iter().any(|name| text.contains(name.as_str())) || !self.found(text).is_empty() {
            return true;
        }
        let words: Vec<&str> = words(text).collect();
        (0..words.len()).any(|start| {
            let mut phrase = String::new();
            words[start..].iter().take(self.longest).any(|word| {
                phrase.push_str(if phrase.is_empty() { "" } else { " " });
                phrase.push_str(word);
                self.phrases.contains(&phrase)
            })
        })
    }

    /// The text with a mask for each id of an account that is no word; names stay, as somebody may say them.
    #[must_use]
    pub fn masked(&self, text: &str) -> Option<String> {
        let found = self.found(&text.to_ascii_lowercase());
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

    /// Where ids stand that are no words, in order; `text` is in lower case.
    fn found(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let Some(shortest) = self.lengths.first() else { return found };
        let mut at = 0;
        for run in text.split(|c: char| !is_of_id(c)) {
            let (start, end) = (at, at + run.len());
            // What parts two runs is one character.
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

/// Whether an id is long and of no words.
fn is_opaque(text: &str) -> bool {
    text.len() >= OPAQUE && text.contains(|c: char| c.is_ascii_digit()) && text.chars().all(is_of_id)
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

    fn who() -> Identifiers {
        let mut who = Identifiers::default();
        [ID, "Ines Brandt", "Ole", "user", "a", "山田太郎", "user-AbCdEfGh12345678"]
            .into_iter()
            .for_each(|text| who.add(text));
        who
    }

    #[test]
    fn people_are_found_in_what_surrounds_them() {
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
            assert!(who().hold(text), "{text}");
        }
    }

    #[test]
    fn other_words_are_not() {
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
            assert!(!who().hold(text), "{text}");
        }
        assert!(!Identifiers::default().hold("Ines Brandt"));
    }

    #[test]
    fn in_what_was_said_only_ids_are_masked() {
        let text = format!("Ines Brandt: é {ID}, x{}é", ID.to_lowercase());
        assert_eq!(who().masked(&text).as_deref(), Some("Ines Brandt: é account, xaccounté"));
        assert_eq!(who().masked("Ines Brandt is Ole"), None);
    }
}
