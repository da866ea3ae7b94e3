//! HTML as a series of tags and texts.
//!
//! Pages are mostly plain: [`tag`] and [`text`] read what they commonly hold, borrowing all of it. From the first tag on
//! that is anything else, [`full`] reads as browsers do, which takes many times as long.

use std::borrow::Cow;

mod full;
mod tag;
mod text;

pub(crate) use tag::Attributes;
use tag::Tag;
pub(crate) use text::{Piece, Text};

/// One step of a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event<'e> {
    /// A start tag; its name is in lower case.
    Open(&'e str, &'e Attributes<'e>),
    /// An end tag.
    Close(&'e str),
    /// Text, never what scripts and styles hold; what stands between two tags may come in several parts.
    Text(Text<'e>),
}

/// What a walk hands over next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Every tag and text.
    All,
    /// Tags of this name; others may come.
    Only(&'static str),
    /// Nothing more.
    Nothing,
}

/// Hands every tag and text of `html` to `each`, in order. Broken HTML is read as browsers read it.
pub(crate) fn walk(html: &str, mut each: impl FnMut(Event<'_>)) {
    walk_on(html, |event, _| {
        each(event);
        Next::All
    });
}

/// Like [`walk`], with what `each` asks for; it gets the offset behind a tag as well, as far as that is known.
pub(crate) fn walk_on(html: &str, mut each: impl FnMut(Event<'_>, Option<usize>) -> Next) {
    let mut attributes = Attributes::default();
    let mut next = Next::All;
    let mut rest = html;
    while !rest.is_empty() && next != Next::Nothing {
        let (text, markup) = rest.split_at(memchr::memchr(b'<', rest.as_bytes()).unwrap_or(rest.len()));
        if !text.is_empty() && next == Next::All {
            next = each(Event::Text(Text::source(text)), None);
        }
        if markup.is_empty() {
            return;
        }
        let Some((tag, behind)) = tag::read(markup, &mut attributes) else {
            return full::walk(markup, &mut |event| {
                if next != Next::Nothing {
                    next = each(event, None);
                }
            });
        };
        let at = Some(html.len() - behind.len());
        next = match (tag, next) {
            (_, Next::Nothing) => next,
            (Tag::Open(name) | Tag::Close(name), Next::Only(wanted)) if name != wanted => next,
            (Tag::Open(name), _) => each(Event::Open(name, &attributes), at),
            (Tag::Close(name), _) => each(Event::Close(name), at),
        };
        rest = behind;
    }
}

/// The bytes as text. They nearly always are; checking that first is far cheaper than repairing.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    simdutf8::basic::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
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
    use proptest::prelude::*;

    use super::*;

    fn note(event: Event<'_>, told: &mut String) {
        match event {
            Event::Open(name, attributes) => {
                let href = attributes.get("href").map(|href| format!(" {href}")).unwrap_or_default();
                told.push_str(&format!("<{name}{href}>"));
            }
            Event::Close(name) => told.push_str(&format!("</{name}>")),
            Event::Text(text) => text.push_to(told),
        }
    }

    fn told(html: &str) -> String {
        let mut told = String::new();
        walk(html, |event| note(event, &mut told));
        told
    }

    /// The same by the full tokenizer alone.
    fn told_in_full(html: &str) -> String {
        let mut told = String::new();
        full::walk(html, &mut |event| note(event, &mut told));
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

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn plain_pages_are_read_as_browsers_read_them(pieces in prop::collection::vec(prop::sample::select(vec![
            "<", ">", "</", "/>", "/", "=", "\"", "'", " ", "\n", "\r", "\r\n", "\t", "\u{c}", "\u{0}", "p", "b-1", "B", "é", "\u{fffe}", "\u{7f}",
            "<p>", "</p>", "</p >", "<br/>", "<a href=\"x\">", "<a href='x&amp;y'>", "<a href=\"1\" href=\"2\">", "<a href=x>", "<a href>", "<a\nhref = \"x\">",
            "<a href=\"&\">", "<a href=\"&copy\">", "<a href=\"&lt=\">", "<a href=\"x\"b>", "<!--", "-->", "<!", "<?", "<![CDATA[", "<script>", "</script>",
            "<title>", "</title>", "<textarea>", "<plaintext>", "<noscript>", "<style>", "</style>", "&", "&amp;", "&ampx", "&lt", "&quot;", "&nbsp;",
            "&emsp;", "&apos;", "&copy;", "&notit;", "&#39;", "&#039;", "&#x27;", "&#8239;", "&#0;", "&#128;", "&#128640;", "&#xD800;", "&#99999999999;", "&#;", "#", ";",
        ]), 0..24)) {
            let html = pieces.concat();
            prop_assert_eq!(told(&html), told_in_full(&html), "{}", html);
        }
    }
}
