//! Classifies a sentence that Claude was told to remember: an instruction or a fact.

use satchel_importer::pam::memory::MemoryType;

/// First words of an instruction, in lower case.
const IMPERATIVES: [&str; 42] = [
    "address", "always", "answer", "ask", "avoid", "be", "call", "check", "cite", "consider", "default",
    "do", "don't", "exclude", "explain", "focus", "follow", "forget", "format", "give", "ignore", "include",
    "keep", "let", "limit", "make", "mention", "never", "offer", "omit", "only", "please", "provide",
    "refer", "remember", "reply", "respond", "skip", "speak", "stop", "use", "write",
];
/// Starts of an instruction that say whose wish it is.
const REQUESTS: [&str; 8] = [
    "claude should ",
    "claude must ",
    "you should ",
    "you must ",
    "the user wants claude to ",
    "user wants claude to ",
    "the user wants you to ",
    "user wants you to ",
];
/// Starts of a condition; the instruction follows the first comma.
const CONDITIONS: [&str; 5] = ["when ", "whenever ", "if ", "in every ", "for every "];
/// Characters of a text that are looked at; Claude's own limit is 500.
const MAX_CHARS: usize = 500;

/// `instruction` or `fact`. Only English is recognized; other languages give `fact`, which most of these lines are.
pub(super) fn memory_type(text: &str) -> MemoryType {
    let start: String =
        text.chars().take(MAX_CHARS).collect::<String>().trim_start().to_lowercase().replace('’', "'");
    let instruction = REQUESTS.iter().any(|request| start.starts_with(request))
        || starts_with_imperative(&start)
        || (CONDITIONS.iter().any(|word| start.starts_with(word))
            && start.split_once(',').is_some_and(|(_, rest)| starts_with_imperative(rest.trim_start())));
    if instruction { MemoryType::Instruction } else { MemoryType::Fact }
}

fn starts_with_imperative(text: &str) -> bool {
    let word: &str =
        text.split(|next: char| !next.is_alphanumeric() && next != '\'').next().unwrap_or_default();
    IMPERATIVES.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_distinguished_from_facts() {
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
    fn imperatives_are_single_words_in_lower_case() {
        assert!(IMPERATIVES.iter().all(|word| *word == word.to_lowercase() && !word.contains(' ')));
    }
}
