//! Answers as one text: the program writes thoughts and tool calls into it as `<details type="…">` blocks.

use std::borrow::Cow;

mod details;

pub(crate) use details::Details;

/// The types of blocks that are not part of the answer's words.
const TYPES: [&str; 3] = ["reasoning", "tool_calls", "code_interpreter"];
/// The marks around the reasoning of models whose server leaves it in the text.
const THINK: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// One part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block<'t> {
    /// Words of the answer.
    Words(&'t str),
    /// Reasoning between marks.
    Think(&'t str),
    /// A block of one of [`TYPES`].
    Details(Details<'t>),
}

/// Splits the text of an answer. A text without blocks is one part, unchanged.
pub(crate) fn split(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut rest = text;
    if let Some((thought, after)) = think(rest) {
        blocks.push(Block::Think(thought));
        rest = after;
    }
    let mut from = 0;
    while let Some(found) = rest.get(from..).and_then(|text| text.find("<details")) {
        let at = from + found;
        let (before, tag) = rest.split_at(at);
        let starts_line = before.is_empty() || before.ends_with('\n');
        let parsed = starts_line.then(|| Details::parse(tag)).flatten();
        match parsed.filter(|(details, _)| TYPES.contains(&details.kind())) {
            Some((details, after)) => {
                push_words(&mut blocks, before);
                blocks.push(Block::Details(details));
                (rest, from) = (after, 0);
            }
            None => from = at + 1,
        }
    }
    if blocks.is_empty() {
        blocks.push(Block::Words(rest));
    } else {
        push_words(&mut blocks, rest);
    }
    blocks
}

fn push_words<'t>(blocks: &mut Vec<Block<'t>>, text: &'t str) {
    let words = text.trim();
    if !words.is_empty() {
        blocks.push(Block::Words(words));
    }
}

/// The reasoning at the beginning of a text, and what follows it.
fn think(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    THINK.iter().find_map(|(open, close)| {
        let (thought, after) = text.strip_prefix(open)?.split_once(close)?;
        Some((thought.trim(), after))
    })
}

/// Decodes what Python's `html.escape` encodes.
pub(crate) fn unescape(text: &str) -> Cow<'_, str> {
    const ENTITIES: [(&str, char); 6] =
        [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>'), ("&quot;", '"'), ("&#x27;", '\''), ("&#39;", '\'')];
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('&') {
        let (before, entity) = rest.split_at(at);
        plain.push_str(before);
        let known = ENTITIES.iter().find(|(name, _)| entity.starts_with(name));
        let (name, character) = known.copied().unwrap_or(("&", '&'));
        plain.push(character);
        rest = entity.get(name.len()..).unwrap_or_default();
    }
    Cow::Owned(plain + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_separated_from_words() {
        let text = "Before.\n<details type=\"reasoning\" done=\"true\" duration=\"2\">\n<summary>Thought</summary>\n> hm\n</details>\nAfter.";
        let blocks = split(text);
        assert_eq!(blocks.len(), 3, "{blocks:?}");
        assert_eq!((&blocks[0], &blocks[2]), (&Block::Words("Before."), &Block::Words("After.")));
        let Block::Details(details) = &blocks[1] else { unreachable!("{blocks:?}") };
        assert_eq!((details.kind(), details.body), ("reasoning", "\n> hm"));
    }

    #[test]
    fn other_html_is_part_of_the_words() {
        for text in [
            "",
            " two\n",
            "<details><summary>More</summary>x</details>",
            "<details type=\"note\">x</details>",
            "use `<details type=\"reasoning\">`",
            "<details type=\"reasoning",
            "a <think>b</think>",
            "<think>never closed",
        ] {
            assert_eq!(split(text), [Block::Words(text)]);
        }
    }

    #[test]
    fn reasoning_between_marks_comes_first() {
        assert_eq!(split("\n<think>\nhm\n</think>\n\nYes."), [Block::Think("hm"), Block::Words("Yes.")]);
        assert_eq!(split("<thinking>hm</thinking>"), [Block::Think("hm")]);
    }

    #[test]
    fn entities_are_decoded_once() {
        assert_eq!(unescape("a &amp;lt; b &gt; &#x27;c&#39; &euro; &"), "a &lt; b > 'c' &euro; &");
    }
}
