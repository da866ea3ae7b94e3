//! Documents and thoughts in an answer's text, which models wrote before they had tools: `<antArtifact …>` and
//! `<antThinking>`.

use std::borrow::Cow;

use satchel_importer::{Part, PartKind};

const ARTIFACT: &str = "antArtifact";
const THINKING: &str = "antThinking";
const NAMES: [&str; 2] = [ARTIFACT, THINKING];
/// Bytes of a tag with its attributes; a longer one is read as text.
const MAX_TAG: usize = 4096;
/// Elements of one text; further ones are read as text.
const MAX_ELEMENTS: usize = 1_000;

/// A document in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InlineDocument<'a> {
    /// The index of its block in the content.
    pub(super) block: usize,
    pub(super) id: Option<&'a str>,
    pub(super) title: Option<&'a str>,
    /// Its MIME type.
    pub(super) kind: Option<&'a str>,
    language: Option<&'a str>,
    pub(super) text: &'a str,
}

/// A text with its markup split off.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SplitText<'a> {
    pub(super) parts: Vec<Part<'a>>,
    pub(super) documents: Vec<InlineDocument<'a>>,
    pub(super) thoughts: Vec<&'a str>,
}

/// Splits the text of a `block`; none if it holds no markup.
pub(super) fn split(text: &str, block: usize) -> Option<SplitText<'_>> {
    // A quick check, because nearly every text holds no markup.
    text.match_indices('<').find(|(at, _)| text.get(*at..).is_some_and(|rest| rest.starts_with("<ant")))?;
    // Search for the closing tags once, not once for each of many opening tags without one.
    let last = NAMES.map(|name| text.rfind(&format!("</{name}>")));
    if last.iter().all(Option::is_none) {
        return None;
    }
    let mut split = SplitText::default();
    // Text before `plain` was added, text before `searched` was searched for elements.
    let (mut plain, mut searched, mut elements) = (0, 0, 0);
    while elements < MAX_ELEMENTS
        && let Some(at) = text.get(searched..).and_then(|rest| rest.find("<ant")).map(|at| searched + at)
    {
        let ends = last.map(|end| end.is_some_and(|end| end > at));
        let Some(element) = Element::at(text.get(at..).unwrap_or_default(), ends) else {
            searched = at + 1;
            continue;
        };
        elements += 1;
        split.add_text(text.get(plain..at).unwrap_or_default());
        split.add_element(&element, block);
        plain = at + element.length;
        searched = plain;
    }
    split.add_text(text.get(plain..).unwrap_or_default());
    (elements > 0).then_some(split)
}

impl<'a> SplitText<'a> {
    /// Adds text, unless it is only white space between two elements.
    fn add_text(&mut self, text: &'a str) {
        let text = text.trim_matches('\n');
        if !text.trim().is_empty() {
            self.parts.push(Part { text: Some(text.into()), ..Part::default() });
        }
    }

    fn add_element(&mut self, element: &Element<'a>, block: usize) {
        if element.name == THINKING {
            self.thoughts.extend(Some(element.body.trim()).filter(|thought| !thought.is_empty()));
            return;
        }
        let attribute = |name| element.attribute(name);
        let document = InlineDocument {
            block,
            id: attribute("identifier"),
            title: attribute("title"),
            kind: attribute("type").filter(|kind| kind.contains('/')),
            language: attribute("language"),
            text: element.body,
        };
        self.parts.push(document.part());
        self.documents.push(document);
    }
}

impl<'a> InlineDocument<'a> {
    fn part(self) -> Part<'a> {
        let prose = matches!(self.kind, Some("text/markdown" | "text/plain"));
        Part {
            kind: if prose { PartKind::Text } else { PartKind::Code },
            text: Some(self.text.into()),
            language: self.language.map(Cow::Borrowed),
            mime_type: self.kind.map(Cow::Borrowed),
            ..Part::default()
        }
    }
}

/// An element: its name, its attributes and its body.
struct Element<'a> {
    name: &'static str,
    attributes: &'a str,
    body: &'a str,
    /// Bytes, with the tags.
    length: usize,
}

impl<'a> Element<'a> {
    /// The element at the start of `text`; none if it is another one or not closed. `ends` says which names may be closed.
    fn at(text: &'a str, ends: [bool; 2]) -> Option<Self> {
        let inside = text.strip_prefix('<')?;
        let named = |(name, end): &(&str, bool)| *end && inside.starts_with(name);
        let (name, _) = NAMES.into_iter().zip(ends).find(named)?;
        let rest = inside.get(name.len()..)?;
        if !rest.starts_with(|next: char| next.is_whitespace() || next == '>') {
            return None;
        }
        let end = tag_end(rest)?;
        let (attributes, after) = (rest.get(..end)?, rest.get(end + 1..)?);
        let closing = format!("</{name}>");
        let close = after.find(&closing)?;
        let body = after.get(..close)?;
        let body = body.strip_prefix('\n').unwrap_or(body);
        let body = body.strip_suffix('\n').unwrap_or(body);
        let length = 1 + name.len() + end + 1 + close + closing.len();
        Some(Self { name, attributes, body, length })
    }

    /// The value of an attribute; none if it is blank.
    fn attribute(&self, name: &str) -> Option<&'a str> {
        let mut rest = self.attributes;
        while let Some((before, after)) = rest.split_once("=\"") {
            let (value, next) = after.split_once('"')?;
            if before.trim() == name {
                return Some(value).filter(|value| !value.trim().is_empty());
            }
            rest = next;
        }
        None
    }
}

/// The index of the `>` that ends the tag; one in quotes does not.
fn tag_end(rest: &str) -> Option<usize> {
    let mut quoted = false;
    rest.bytes().take(MAX_TAG).position(|byte| {
        quoted ^= byte == b'"';
        byte == b'>' && !quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<'a>(split: &SplitText<'a>) -> Vec<Cow<'a, str>> {
        split.parts.iter().filter_map(|part| part.text.clone()).collect()
    }

    #[test]
    fn documents_and_thoughts_are_split_from_the_text() {
        let text = "Here:\n<antThinking>A good one.</antThinking>\n\n<antArtifact identifier=\"a\" type=\"application/vnd.ant.code\" \
                    language=\"python\" title=\"x > y\">\nprint(1)\n</antArtifact>\nDone.";
        let found = split(text, 3).unwrap_or_default();
        assert_eq!(words(&found), ["Here:", "print(1)", "Done."]);
        assert_eq!(found.thoughts, ["A good one."]);
        let named: Vec<_> = found.documents.iter().map(|one| (one.id, one.title, one.block)).collect();
        assert_eq!(named, [(Some("a"), Some("x > y"), 3)]);
        assert_eq!(found.parts[1].language.as_deref(), Some("python"));
    }

    #[test]
    fn an_element_that_is_not_closed_stays_text() {
        for text in ["<antArtifact identifier=\"a\">cut off", "<antArtifactual>", "a < b", "<antArtifact", ""]
        {
            assert_eq!(split(text, 0), None, "{text}");
        }
        let found = split("<antArtifact>a</antArtifact> and <antArtifact>b", 0).unwrap_or_default();
        assert_eq!(words(&found), ["a", " and <antArtifact>b"]);
    }

    #[test]
    fn many_opening_tags_without_an_end_are_read_quickly() {
        let text = "<antArtifact>".repeat(200_000);
        assert_eq!(split(&text, 0), None);
    }
}
