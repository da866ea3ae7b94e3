//! Markup in the text of a response: places where the client draws a card, and documents that the model wrote.

use std::borrow::Cow;

use satchel_importer::{Content, Part, PartKind};

use super::message::content;

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
pub(super) struct Marked<'a> {
    parts: Vec<Part<'a>>,
    /// Ids of the cards, in the order of the text.
    pub(super) cards: Vec<&'a str>,
    pub(super) artifacts: Vec<Artifact<'a>>,
    /// The text was another one.
    pub(super) changed: bool,
}

impl<'a> Marked<'a> {
    /// What is said; none if that is nothing.
    pub(super) fn content(self) -> Option<Content<'a>> {
        content(self.parts)
    }
}

/// Takes the markup out of `text`, and the `thinking` that some exports glue in front of it.
pub(super) fn resolve<'a>(text: &'a str, thinking: Option<&str>) -> Marked<'a> {
    let mut marked = Marked::default();
    let mut rest = text;
    if let Some(answer) = thinking.and_then(|thinking| text.strip_prefix(thinking)).map(str::trim_start)
        && !answer.is_empty()
    {
        marked.changed = true;
        rest = answer;
    }
    let ends = Ends::of(rest);
    let mut plain: Cow<'a, str> = Cow::Borrowed("");
    let mut looked = 0;
    while let Some(at) = rest.get(looked..).and_then(|rest| rest.find('<')).map(|at| looked + at) {
        let Some(element) = Element::at(rest.get(at..).unwrap_or_default(), &ends) else {
            looked = at + 1;
            continue;
        };
        append(&mut plain, rest.get(..at).unwrap_or_default());
        rest = rest.get(at + element.length..).unwrap_or_default();
        looked = 0;
        marked.changed = true;
        if element.name == CARD {
            marked.cards.extend(element.attribute("card_id"));
            close_gap(&mut plain, rest);
        } else {
            marked.say(std::mem::take(&mut plain));
            marked.show(&element);
        }
    }
    append(&mut plain, rest);
    marked.say(plain);
    marked
}

impl<'a> Marked<'a> {
    fn say(&mut self, text: Cow<'a, str>) {
        // White space between two documents says nothing; a text of its own may be anything.
        let nothing = if self.changed { text.trim().is_empty() } else { text.is_empty() };
        if !nothing {
            self.parts.push(Part { text: Some(text), ..Part::default() });
        }
    }

    fn show(&mut self, element: &Element<'a>) {
        let artifact = Artifact {
            version: element.attribute("artifact_version_id"),
            title: element.attribute("title"),
            mime: element.attribute("contentType"),
        };
        self.parts.push(Part {
            kind: PartKind::Code,
            text: Some(Cow::Borrowed(element.body)),
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

/// Takes the space off the end of `text` that would stand double, at the end or before a punctuation mark where a card was.
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

/// Where the last closing tag of each kind is, in bytes from the end of the text: many opening tags without an end must
/// not lead to as many searches for it.
struct Ends([Option<usize>; 2]);

impl Ends {
    fn of(text: &str) -> Self {
        let end = |name: &str| text.rfind(&format!("</{name}>")).map(|at| text.len() - at);
        Self([end(CARD), end(ARTIFACT)])
    }

    /// Whether a closing tag of `name` is in `rest`, the end of the text.
    fn within(&self, name: &str, rest: &str) -> bool {
        let end = if name == CARD { self.0[0] } else { self.0[1] };
        end.is_some_and(|end| end <= rest.len())
    }
}

/// One element of markup.
struct Element<'a> {
    name: &'static str,
    attributes: &'a str,
    body: &'a str,
    /// Bytes from its `<` to behind its end.
    length: usize,
}

impl<'a> Element<'a> {
    /// The element that `text` begins with; none if it is something else, or does not end.
    fn at(text: &'a str, ends: &Ends) -> Option<Self> {
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
        let body = behind.get(1..).filter(|body| ends.within(name, body))?;
        let closing = format!("</{name}>");
        let length = body.find(&closing)?;
        Some(Self { name, attributes, body: body.get(..length)?, length: body_at + length + closing.len() })
    }

    /// The value of `name="…"`, if it says something.
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

/// Where the `>` of an opening tag is: the first one outside quotes.
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
        resolve(given, None).content().and_then(|content| content.text().map(Cow::into_owned))
    }

    #[test]
    fn cards_leave_the_text_and_are_named_in_order() {
        let given = r#"A <grok:render card_id="c1" type="x > y"><argument name="n">0</argument></grok:render>, B <grok:render card_id="c2"/>"#;
        let marked = resolve(given, None);
        assert_eq!(marked.cards, ["c1", "c2"]);
        assert!(marked.changed);
        assert_eq!(marked.content(), Some(Content::Text("A, B".into())));
    }

    #[test]
    fn documents_become_code() {
        let given = r#"See <xaiArtifact artifact_version_id="v1" title="a.py" contentType="text/python">print("<b>")</xaiArtifact> Done."#;
        let marked = resolve(given, None);
        assert_eq!(
            marked.artifacts,
            [Artifact { version: Some("v1"), title: Some("a.py"), mime: Some("text/python") }]
        );
        let Some(Content::Multipart(parts)) = marked.content() else { unreachable!("three parts") };
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
        let said = |text: &'static str| resolve(text, Some("Let me see.")).content().and_then(|c| c.text());
        assert_eq!(said("Let me see.\n\nTea.").as_deref(), Some("Tea."));
        assert_eq!(said("Let me see.").as_deref(), Some("Let me see."));
    }
}
