//! HTML as a series of tags and texts.

use std::borrow::Cow;

use html5gum::{
    Span, Tokenizer,
    emitters::callback::{CallbackEmitter, CallbackEvent},
};

/// One step of a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event<'e> {
    /// A start tag; its name is in lower case.
    Open(&'e str, &'e Attributes),
    /// An end tag.
    Close(&'e str),
    /// Text with its entities decoded; never what scripts and styles hold.
    Text(&'e str),
}

/// The attributes of one tag.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<(String, String)>);

impl Attributes {
    /// The value of the attribute `name` (lower case).
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether the element is of `class`.
    pub(crate) fn has_class(&self, class: &str) -> bool {
        self.get("class").is_some_and(|classes| classes.split_ascii_whitespace().any(|one| one == class))
    }
}

/// Hands every tag and text of `html` to `each`, in order. Broken HTML is read as browsers read it.
pub(crate) fn walk(html: &str, mut each: impl FnMut(Event<'_>)) {
    let mut tag = Tag::default();
    let take = |event: CallbackEvent<'_>, _: Span<()>| -> Option<()> {
        tag.take(&event, &mut each);
        None
    };
    let mut emitter = CallbackEmitter::new(take);
    emitter.naively_switch_states(true);
    for step in Tokenizer::new_with_emitter(html, emitter) {
        match step {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }
}

/// The start tag that is being read.
#[derive(Default)]
struct Tag {
    name: String,
    attributes: Attributes,
    /// Inside a script or a style sheet.
    silent: bool,
}

impl Tag {
    fn take(&mut self, event: &CallbackEvent<'_>, each: &mut impl FnMut(Event<'_>)) {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                text(name).as_ref().clone_into(&mut self.name);
                self.attributes.0.clear();
            }
            CallbackEvent::AttributeName { name } => {
                self.attributes.0.push((text(name).into_owned(), String::new()));
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some((_, last)) = self.attributes.0.last_mut() {
                    text(value).as_ref().clone_into(last);
                }
            }
            CallbackEvent::CloseStartTag { .. } => {
                self.silent = matches!(self.name.as_str(), "script" | "style");
                each(Event::Open(&self.name, &self.attributes));
            }
            CallbackEvent::EndTag { name } => {
                self.silent = false;
                each(Event::Close(&text(name)));
            }
            CallbackEvent::String { value } if !self.silent => each(Event::Text(&text(value))),
            CallbackEvent::String { .. }
            | CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
    }
}

/// The bytes as text. They nearly always are; checking that first is far cheaper than repairing.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Whether the tag begins a line of its own.
pub(crate) fn is_block(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "dd"
            | "details"
            | "div"
            | "dl"
            | "dt"
            | "figure"
            | "footer"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hr"
            | "li"
            | "main"
            | "ol"
            | "p"
            | "pre"
            | "section"
            | "summary"
            | "table"
            | "tbody"
            | "td"
            | "th"
            | "thead"
            | "tr"
            | "ul"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(html: &str) -> String {
        let mut told = String::new();
        walk(html, |event| match event {
            Event::Open(name, attributes) => {
                let href = attributes.get("href").map(|href| format!(" {href}")).unwrap_or_default();
                told.push_str(&format!("<{name}{href}>"));
            }
            Event::Close(name) => told.push_str(&format!("</{name}>")),
            Event::Text(text) => told.push_str(text),
        });
        told
    }

    #[test]
    fn tags_and_texts_come_in_order() {
        assert_eq!(told("<P>a &amp; b&nbsp;<a HREF='x?y=1&amp;z'>c</a>"), "<p>a & b\u{a0}<a x?y=1&z>c</a>");
        assert_eq!(
            told("a<script>if (1<2) x()</script>b<style>p{}</style>c"),
            "a<script></script>b<style></style>c"
        );
        assert_eq!(told("<!-- x --><br/>a < b"), "<br>a < b");
        assert_eq!(told("<p <b>x</"), "<p>x</");
    }
}
