//! Markup in the text of a response: placeholders of cards, and documents that the model wrote.

use std::borrow::Cow;

use satchel_importer::{Content, Part, PartKind};

const CARD: &str = "grok:render";
const ARTIFACT: &str = "xaiArtifact";
/// Bytes of a tag with its attributes; a longer one is text.
const MAX_TAG: usize = 4096;

/// A document inside a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Artifact<'a> {
    /// The id of its bytes among the files.
    pub(super) version: Option<&'a str>,
    pub(super) title: Option<&'a str>,
    pub(super) mime: Option<&'a str>,
}

/// A text without its markup.
#[derive(Debug, Default)]
pub(super) struct ParsedText<'a> {
    parts: Vec<Part<'a>>,
    /// Ids of the cards, in the order of the text.
    pub(super) cards: Vec<&'a str>,
    pub(super) artifacts: Vec<Artifact<'a>>,
    /// Something was removed from the text.
    pub(super) changed: bool,
}

impl<'a> ParsedText<'a> {
    /// The content; none if nothing is left.
    pub(super) fn content(mut self) -> Option<Content<'a>> {
        match self.parts.as_mut_slice() {
            [] => None,
            [part] if part.kind == PartKind::Text => part.text.take().map(Content::Text),
            _ => Some(Content::Multipart(self.parts)),
        }
    }
}

/// Removes the markup of `text`, and the `thinking` that some exports put in front of it.
pub(super) fn parse<'a>(text: &'a str, thinking: Option<&str>) -> ParsedText<'a> {
    let mut parsed = ParsedText::default();
    let mut rest = text;
    if let Some(answer) = thinking.and_then(|thinking| text.strip_prefix(thinking)).map(str::trim_start)
        && !answer.is_empty()
    {
        parsed.changed = true;
        rest = answer;
    }
    let closings = Closings::find(rest);
    let mut plain: Cow<'a, str> = Cow::Borrowed("");
    let mut searched = 0;
    while let Some(at) = rest.get(searched..).and_then(|rest| rest.find('<')).map(|at| searched + at) {
        let Some(tag) = Tag::read(rest.get(at..).unwrap_or_default(), &closings) else {
            searched = at + 1;
            continue;
        };
        append(&mut plain, rest.get(..at).unwrap_or_default());
        rest = rest.get(at + tag.length..).unwrap_or_default();
        searched = 0;
        parsed.changed = true;
        if tag.name == CARD {
            parsed.cards.extend(tag.attribute("card_id"));
            close_gap(&mut plain, rest);
        } else {
            parsed.push_text(std::mem::take(&mut plain));
            parsed.push_artifact(&tag);
        }
    }
    append(&mut plain, rest);
    parsed.push_text(plain);
    parsed
}

impl<'a> ParsedText<'a> {
    fn push_text(&mut self, text: Cow<'a, str>) {
        // White space between two documents is dropped; a text without markup is kept as it stands.
        let blank = if self.changed { text.trim().is_empty() } else { text.is_empty() };
        if !blank {
            self.parts.push(Part { text: Some(text), ..Part::default() });
        }
    }

    fn push_artifact(&mut self, tag: &Tag<'a>) {
        let artifact = Artifact {
            version: tag.attribute("artifact_version_id"),
            title: tag.attribute("title"),
            mime: tag.attribute("contentType"),
        };
        self.parts.push(Part {
            kind: PartKind::Code,
            text: Some(Cow::Borrowed(tag.body)),
            language: artifact.mime.and_then(language).map(Cow::Borrowed),
            mime_type: artifact.mime.map(Cow::Borrowed),
            ..Part::default()
        });
        self.artifacts.push(artifact);
    }
}

fn append<'a>(text: &mut Cow<'a, str>, more: &'a str) {
    if text.is_empty() {
        *text = Cow::Borrowed(more);
    } else if !more.is_empty() {
        text.to_mut().push_str(more);
    }
}

/// Removes the space before a card if white space, punctuation or nothing follows the card.
fn close_gap(text: &mut Cow<'_, str>, rest: &str) {
    let gap = rest.chars().next().is_none_or(|next| next.is_whitespace() || ".,;:!?)".contains(next));
    if gap && text.ends_with(' ') {
        match text {
            Cow::Borrowed(text) => *text = text.strip_suffix(' ').unwrap_or_default(),
            Cow::Owned(text) => drop(text.pop()),
        }
    }
}

/// The language of `text/python`, `text/x-rust`.
fn language(mime: &str) -> Option<&str> {
    let name = mime.strip_prefix("text/")?;
    Some(name.strip_prefix("x-").unwrap_or(name)).filter(|name| !name.is_empty())
}

/// The last closing tag of each kind, in bytes from the end of the text, so that many unclosed tags do not lead to as many
/// searches.
struct Closings([Option<usize>; 2]);

impl Closings {
    fn find(text: &str) -> Self {
        let end = |name: &str| text.rfind(&format!("</{name}>")).map(|at| text.len() - at);
        Self([end(CARD), end(ARTIFACT)])
    }

    /// Whether `rest`, the end of the text, has a closing tag of `name`.
    fn within(&self, name: &str, rest: &str) -> bool {
        let end = if name == CARD { self.0[0] } else { self.0[1] };
        end.is_some_and(|end| end <= rest.len())
    }
}

/// One tag with its body.
struct Tag<'a> {
    name: &'static str,
    attributes: &'a str,
    body: &'a str,
    /// Bytes from its `<` to the end of its closing tag.
    length: usize,
}

impl<'a> Tag<'a> {
    /// Reads the tag at the start of `text`; none if there is none or if it is not closed.
    fn read(text: &'a str, closings: &Closings) -> Option<Self> {
        let inside = text.strip_prefix('<')?;
        let name = [CARD, ARTIFACT].into_iter().find(|name| inside.starts_with(name))?;
        let attributes = inside.get(name.len()..)?;
        if !attributes.starts_with([' ', '\n', '\t', '\r', '>', '/']) {
            return None;
        }
        let end = end_of_tag(attributes)?;
        let (attributes, behind) = attributes.split_at(end);
        let body_at = 1 + name.len() + end + 1;
        if attributes.ends_with('/') {
            return Some(Self { name, attributes, body: "", length: body_at });
        }
        let body = behind.get(1..).filter(|body| closings.within(name, body))?;
        let closing = format!("</{name}>");
        let length = body.find(&closing)?;
        Some(Self { name, attributes, body: body.get(..length)?, length: body_at + length + closing.len() })
    }

    /// The value of `name="…"`, if it is not empty.
    fn attribute(&self, name: &str) -> Option<&'a str> {
        let mut rest = self.attributes;
        while let Some((before, after)) = rest.split_once("=\"") {
            let (value, behind) = after.split_once('"')?;
            if before.rsplit(char::is_whitespace).next() == Some(name) {
                return Some(value).filter(|value| !value.is_empty());
            }
            rest = behind;
        }
        None
    }
}

/// The offset of the first `>` outside quotes.
fn end_of_tag(attributes: &str) -> Option<usize> {
    let mut quoted = false;
    for (at, byte) in attributes.bytes().enumerate().take(MAX_TAG) {
        match byte {
            b'"' => quoted = !quoted,
            b'>' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(given: &str) -> Option<String> {
        parse(given, None).content().and_then(|content| content.text().map(Cow::into_owned))
    }

    #[test]
    fn cards_leave_the_text_and_are_named_in_order() {
        let given = r#"A <grok:render card_id="c1" type="x > y"><argument name="n">0</argument></grok:render>, B <grok:render card_id="c2"/>"#;
        let parsed = parse(given, None);
        assert_eq!(parsed.cards, ["c1", "c2"]);
        assert!(parsed.changed);
        assert_eq!(parsed.content(), Some(Content::Text("A, B".into())));
    }

    #[test]
    fn documents_become_code() {
        let given = r#"See <xaiArtifact artifact_version_id="v1" title="a.py" contentType="text/python">print("<b>")</xaiArtifact> Done."#;
        let parsed = parse(given, None);
        assert_eq!(
            parsed.artifacts,
            [Artifact { version: Some("v1"), title: Some("a.py"), mime: Some("text/python") }]
        );
        let Some(Content::Multipart(parts)) = parsed.content() else { unreachable!("three parts") };
        let kinds: Vec<_> = parts.iter().map(|part| (part.kind, part.text.as_deref())).collect();
        assert_eq!(
            kinds,
            [
                (PartKind::Text, Some("See ")),
                (PartKind::Code, Some("print(\"<b>\")")),
                (PartKind::Text, Some(" Done."))
            ]
        );
        assert_eq!(parts.get(1).and_then(|part| part.language.as_deref()), Some("python"));
    }

    #[test]
    fn other_text_stays_as_it_is() {
        for given in [
            "a < b",
            "<grok:render card_id=\"c\">no end",
            "<grok:renders/>",
            "<",
            "<grok:render",
            "  ",
            "<b>x</b>",
        ] {
            assert_eq!(text(given).as_deref(), Some(given));
        }
        assert_eq!(text(""), None);
        assert_eq!(text("<grok:render card_id=\"c\"/>"), None);
    }

    #[test]
    fn thinking_in_front_is_cut_off_unless_nothing_follows() {
        let parsed = |text: &'static str| parse(text, Some("Let me see.")).content().and_then(|c| c.text());
        assert_eq!(parsed("Let me see.\n\nTea.").as_deref(), Some("Tea."));
        assert_eq!(parsed("Let me see.").as_deref(), Some("Let me see."));
    }
}
