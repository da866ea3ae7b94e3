//! Whether a sentence that Claude was told to remember says how to answer, or what is so.

use satchel_importer::pam::memory::MemoryType;

/// Words that a demand begins with, in lower case.
const DEMANDS: [&str; 42] = [
    "address", "always", "answer", "ask", "avoid", "be", "call", "check", "cite", "consider", "default",
    "do", "don't", "exclude", "explain", "focus", "follow", "forget", "format", "give", "ignore", "include",
    "keep", "let", "limit", "make", "mention", "never", "offer", "omit", "only", "please", "provide",
    "refer", "remember", "reply", "respond", "skip", "speak", "stop", "use", "write",
];
/// What the sentence may say before: who wants it, or when it holds.
const WISHES: [&str; 8] = [
    "claude should ",
    "claude must ",
    "you should ",
    "you must ",
    "the user wants claude to ",
    "user wants claude to ",
    "the user wants you to ",
    "user wants you to ",
];
const CONDITIONS: [&str; 5] = ["when ", "whenever ", "if ", "in every ", "for every "];
/// What follows a condition is looked for behind the first comma.
const COMMA: char = ',';

/// `instruction` for a demand, else `fact`. English only: other languages give facts, which is what most of these lines are.
pub(super) fn memory_type(text: &str) -> MemoryType {
    let start: String =
        text.chars().take(MOST).collect::<String>().trim_start().to_lowercase().replace('’', "'");
    let demand = WISHES.iter().any(|wish| start.starts_with(wish))
        || begins_with_demand(&start)
        || (CONDITIONS.iter().any(|word| start.starts_with(word))
            && start.split_once(COMMA).is_some_and(|(_, rest)| begins_with_demand(rest.trim_start())));
    if demand { MemoryType::Instruction } else { MemoryType::Fact }
}

fn begins_with_demand(text: &str) -> bool {
    let word: &str =
        text.split(|next: char| !next.is_alphanumeric() && next != '\'').next().unwrap_or_default();
    DEMANDS.contains(&word)
}

/// Characters of a text that decide; Claude's own limit is 500.
const MOST: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demands_are_told_from_what_is_so() {
        for text in [
            "Always answer in grams",
            "Don’t mention Rex",
            "Do not use tables.",
            "User wants Claude to answer in German",
            "When baking comes up, use grams",
            "Please: no emoji",
            "exclude the divorce from memory",
        ] {
            assert_eq!(memory_type(text), MemoryType::Instruction, "{text}");
        }
        for text in [
            "Uses grams",
            "User bakes bread when it rains, and sells it",
            "When Ines was ten, she moved to Ulm",
            "Beate is her sister",
            "Benutzt Gramm",
            "",
        ] {
            assert_eq!(memory_type(text), MemoryType::Fact, "{text}");
        }
    }

    #[test]
    fn the_words_are_looked_up_whole_and_in_lower_case() {
        assert!(DEMANDS.iter().all(|word| *word == word.to_lowercase() && !word.contains(' ')));
    }
}
