//! Reasoning inside the text of an answer.

/// The marks around reasoning at the beginning of a text: those of older versions of LibreChat, and those of models whose server leaves the
/// reasoning in the text.
const MARKS: [(&str, &str); 2] = [(":::thinking", ":::"), ("<think>", "</think>")];

/// The reasoning at the beginning of a text, and the words behind it.
pub(crate) fn reasoning(text: &str) -> Option<(&str, &str)> {
    let start = text.trim_start();
    MARKS.iter().find_map(|(open, close)| {
        let inside = start.strip_prefix(open)?;
        // The closing mark is usually on a line of its own; the reasoning may have the same characters inside a line.
        let line = ["\n", close].concat();
        let (thought, words) = inside.split_once(line.as_str()).or_else(|| inside.split_once(close))?;
        Some((thought.trim(), words.trim()))
    })
}

/// A thought without the marks that some models write around it.
pub(crate) fn unmarked(thought: &str) -> &str {
    let (open, close) = MARKS[1];
    let inside = thought.trim();
    let inside = inside.strip_prefix(open).unwrap_or(inside);
    inside.strip_suffix(close).unwrap_or(inside).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_is_separated_from_words() {
        assert_eq!(reasoning(":::thinking\na ::: b\n:::\n\nYes."), Some(("a ::: b", "Yes.")));
        assert_eq!(reasoning(":::thinking a:::Yes."), Some(("a", "Yes.")));
        assert_eq!(reasoning("\n<think>a</think>"), Some(("a", "")));
        for text in ["Yes.", "", ":::thinking a", "See <think>a</think>", ":::artifact{title=\"A\"}\na\n:::"]
        {
            assert_eq!(reasoning(text), None, "{text}");
        }
    }

    #[test]
    fn marks_around_a_thought_are_removed() {
        assert_eq!(unmarked("<think>\na\n</think>"), "a");
        assert_eq!(unmarked("a < b"), "a < b");
    }
}
