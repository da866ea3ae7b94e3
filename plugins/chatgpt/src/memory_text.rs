//! Parses the texts in which ChatGPT wraps custom instructions and saved memories.

/// The two kinds of custom instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstructionKind {
    /// What the model should know about the person.
    AboutUser,
    /// How the model should answer.
    AboutModel,
}

const FENCE: &str = "```";
/// Part of the sentence before the fenced instructions about the model.
const RESPONSE_SENTENCE: &str = "how they would like you to respond";

/// The person's own text in one `user_profile` or `user_instructions`.
///
/// It is between the first fence and the last, because it may contain fences itself; without fences it is the whole text.
pub(crate) fn strip_fences(text: &str) -> &str {
    let inner = match (text.find(FENCE), text.rfind(FENCE)) {
        (Some(first), Some(last)) if first + FENCE.len() <= last => &text[first + FENCE.len()..last],
        _ => text,
    };
    inner.trim()
}

/// The instructions in a system message of 2023, which has a sentence and a fenced text for each.
pub(crate) fn parse_instructions(text: &str) -> Vec<(InstructionKind, &str)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((sentence, after)) = rest.split_once(FENCE) {
        let Some((inner, next)) = after.split_once(FENCE) else { break };
        let about_model = sentence.contains(RESPONSE_SENTENCE);
        let kind = if about_model { InstructionKind::AboutModel } else { InstructionKind::AboutUser };
        found.push((kind, inner.trim()));
        rest = next;
    }
    found.retain(|(_, text)| !text.is_empty());
    found
}

/// One item of `model_set_context`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SavedMemory {
    /// `YYYY-MM-DD`
    pub(crate) date: Option<String>,
    pub(crate) text: String,
}

/// The items of `model_set_context`: `1. [2025-05-02]. text` and its continuation lines, or one unnumbered line each.
pub(crate) fn parse_saved_memories(context: &str) -> Vec<SavedMemory> {
    let mut items: Vec<SavedMemory> = Vec::new();
    let mut numbered = false;
    for line in context.lines() {
        if let Some((date, text)) = numbered_line(line) {
            numbered = true;
            items.push(SavedMemory { date: Some(date.to_owned()), text: text.trim().to_owned() });
        } else if let Some(item) = items.last_mut().filter(|_| numbered) {
            item.text.push('\n');
            item.text.push_str(line.trim_end());
        } else if !line.trim().is_empty() {
            items.push(SavedMemory { date: None, text: line.trim().to_owned() });
        }
    }
    items.iter_mut().for_each(|item| item.text.truncate(item.text.trim_end().len()));
    items.retain(|item| !item.text.is_empty());
    items
}

/// `12. [2025-05-02]. text` → the date and the text.
fn numbered_line(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == line.len() {
        return None;
    }
    let rest = rest.strip_prefix(". [")?;
    let (date, text) = rest.split_once("]. ").or_else(|| rest.split_once("]."))?;
    let is_date = date.len() == 10
        && date
            .bytes()
            .enumerate()
            .all(|(at, b)| if matches!(at, 4 | 7) { b == b'-' } else { b.is_ascii_digit() });
    is_date.then_some((date, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_fences_stay() {
        assert_eq!(strip_fences("Sentence.\n```a ```b``` c```"), "a ```b``` c");
        assert_eq!(strip_fences(" no fence "), "no fence");
        assert_eq!(strip_fences("one ``` only"), "one ``` only");
        assert_eq!(strip_fences("``````"), "");
    }

    #[test]
    fn continuation_lines_belong_to_their_item() {
        let items = parse_saved_memories("1. [2025-05-02]. A\n\n12. [2025-06-10]. B,\nand C\n");
        let dates: Vec<_> = items.iter().filter_map(|item| item.date.as_deref()).collect();
        assert_eq!(dates, ["2025-05-02", "2025-06-10"]);
        assert_eq!(items[0].text, "A");
        assert_eq!(items[1].text, "B,\nand C");
    }

    #[test]
    fn unnumbered_lines_are_items() {
        assert_eq!(parse_saved_memories("Keeps bees.\n\nHas two hives.").len(), 2);
        assert!(parse_saved_memories(" \n").is_empty());
    }
}
