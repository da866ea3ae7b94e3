//! The wording around custom instructions and saved memories, taken off.

/// The two sides of ChatGPT's custom instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// What the model should know about the person.
    AboutUser,
    /// How the model should answer.
    AboutModel,
}

const FENCE: &str = "```";
/// Words of the sentence that stands before the fenced answer to "how should ChatGPT respond".
const RESPONSE_SENTENCE: &str = "how they would like you to respond";

/// The person's own words inside one `user_profile` or `user_instructions`.
///
/// From the first fence to the last, since the words may hold fences of their own; without fences all of it.
pub(crate) fn unfence(text: &str) -> &str {
    let words = match (text.find(FENCE), text.rfind(FENCE)) {
        (Some(first), Some(last)) if first + FENCE.len() <= last => &text[first + FENCE.len()..last],
        _ => text,
    };
    words.trim()
}

/// The sides inside one system message of 2023, which held both sentences with their fences.
pub(crate) fn split_sides(text: &str) -> Vec<(Side, &str)> {
    let mut sides = Vec::new();
    let mut rest = text;
    while let Some((sentence, after)) = rest.split_once(FENCE) {
        let Some((words, next)) = after.split_once(FENCE) else { break };
        let side = if sentence.contains(RESPONSE_SENTENCE) { Side::AboutModel } else { Side::AboutUser };
        sides.push((side, words.trim()));
        rest = next;
    }
    sides.retain(|(_, words)| !words.is_empty());
    sides
}

/// One line of the saved-memory list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Saved {
    /// `YYYY-MM-DD` as it stood.
    pub(crate) date: Option<String>,
    pub(crate) text: String,
}

/// The items of `model_set_context`: `1. [2025-05-02]. text`, further lines belonging to the item before.
pub(crate) fn saved_items(context: &str) -> Vec<Saved> {
    let mut items: Vec<Saved> = Vec::new();
    let mut numbered = false;
    for line in context.lines() {
        if let Some((date, text)) = numbered_line(line) {
            numbered = true;
            items.push(Saved { date: Some(date.to_owned()), text: text.trim().to_owned() });
        } else if let Some(item) = items.last_mut().filter(|_| numbered) {
            item.text.push('\n');
            item.text.push_str(line.trim_end());
        } else if !line.trim().is_empty() {
            items.push(Saved { date: None, text: line.trim().to_owned() });
        }
    }
    for item in &mut items {
        item.text.truncate(item.text.trim_end().len());
    }
    items.retain(|item| !item.text.trim().is_empty());
    items
}

/// `12. [2025-05-02]. text` → the date and the text.
fn numbered_line(line: &str) -> Option<(&str, &str)> {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == line.len() {
        return None;
    }
    let (date, text) =
        rest.strip_prefix(". [")?.split_once("]. ").or_else(|| rest.strip_prefix(". [")?.split_once("]."))?;
    let shaped = date.len() == 10
        && date
            .bytes()
            .enumerate()
            .all(|(at, b)| if matches!(at, 4 | 7) { b == b'-' } else { b.is_ascii_digit() });
    shaped.then_some((date, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_inside_the_words_stay() {
        assert_eq!(unfence("Sentence.\n```a ```b``` c```"), "a ```b``` c");
        assert_eq!(unfence(" no fence "), "no fence");
        assert_eq!(unfence("one ``` only"), "one ``` only");
        assert_eq!(unfence("``````"), "");
    }

    #[test]
    fn continuation_lines_belong_to_their_item() {
        let items = saved_items("1. [2025-05-02]. A\n\n12. [2025-06-10]. B,\nand C\n");
        let dates: Vec<_> = items.iter().filter_map(|item| item.date.as_deref()).collect();
        assert_eq!(dates, ["2025-05-02", "2025-06-10"]);
        assert_eq!(items[0].text, "A");
        assert_eq!(items[1].text, "B,\nand C");
    }

    #[test]
    fn unnumbered_lines_are_items() {
        assert_eq!(saved_items("Keeps bees.\n\nHas two hives.").len(), 2);
        assert!(saved_items(" \n").is_empty());
    }
}
