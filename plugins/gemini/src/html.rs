//! HTML as a series of tags and texts.
//!
//! [`tag`] and [`text`] read the syntax that pages commonly use, and borrow all of it. At the first other tag, [`full`]
//! takes over, which reads as browsers do and is many times slower.

mod full;
mod tag;
mod text;

use tag::Tag;
pub(crate) use tag::{Attributes, Event};
pub(crate) use text::{Text, TextPart, utf8_lossy};

/// The events that a walk passes on next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventFilter {
    All,
    /// At least the tags of this name; others may come.
    Tag(&'static str),
    /// None: the walk ends.
    Stop,
}

/// Calls `each` with every tag and text of `html`, in order. Broken HTML is read as browsers read it.
pub(crate) fn walk(html: &str, mut each: impl FnMut(Event<'_>)) {
    walk_filtered(html, |event, _| {
        each(event);
        EventFilter::All
    });
}

/// Like [`walk`], but passes on only the events that `each` asks for. `each` also gets the offset behind a tag, if it is
/// known.
pub(crate) fn walk_filtered(html: &str, mut each: impl FnMut(Event<'_>, Option<usize>) -> EventFilter) {
    let mut attributes = Attributes::default();
    let mut filter = EventFilter::All;
    let mut rest = html;
    while !rest.is_empty() && filter != EventFilter::Stop {
        let (text, markup) = rest.split_at(memchr::memchr(b'<', rest.as_bytes()).unwrap_or(rest.len()));
        if !text.is_empty() && filter == EventFilter::All {
            filter = each(Event::Text(Text::encoded(text)), None);
        }
        if markup.is_empty() {
            return;
        }
        let Some((tag, behind)) = tag::read(markup, &mut attributes) else {
            return full::walk(markup, |event| {
                if filter != EventFilter::Stop {
                    filter = each(event, None);
                }
            });
        };
        let at = Some(html.len() - behind.len());
        filter = match (tag, filter) {
            (_, EventFilter::Stop) => filter,
            (Tag::Open(name) | Tag::Close(name), EventFilter::Tag(wanted)) if name != wanted => filter,
            (Tag::Open(name), _) => each(Event::Open(name, &attributes), at),
            (Tag::Close(name), _) => each(Event::Close(name), at),
        };
        rest = behind;
    }
}

/// Whether the element begins on a line of its own.
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

    fn render_event(event: Event<'_>, out: &mut String) {
        match event {
            Event::Open(name, attributes) => {
                let href = attributes.get("href").map(|href| format!(" {href}")).unwrap_or_default();
                out.push_str(&format!("<{name}{href}>"));
            }
            Event::Close(name) => out.push_str(&format!("</{name}>")),
            Event::Text(text) => text.push_to(out),
        }
    }

    fn render(html: &str) -> String {
        let mut out = String::new();
        walk(html, |event| render_event(event, &mut out));
        out
    }

    /// Like [`render`], by the full tokenizer alone.
    fn render_full(html: &str) -> String {
        let mut out = String::new();
        full::walk(html, |event| render_event(event, &mut out));
        out
    }

    #[test]
    fn tags_and_texts_are_read_in_order() {
        assert_eq!(render("<P>a &amp; b&nbsp;<a HREF='x?y=1&amp;z'>c</a>"), "<p>a & b\u{a0}<a x?y=1&z>c</a>");
        assert_eq!(
            render("a<script>if (1<2) x()</script>b<style>p{}</style>c"),
            "a<script></script>b<style></style>c"
        );
        assert_eq!(render("<!-- x --><br/>a < b"), "<br>a < b");
        assert_eq!(render("<p <b>x</"), "<p>x</");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_fast_reader_agrees_with_the_tokenizer(pieces in prop::collection::vec(prop::sample::select(vec![
            "<", ">", "</", "/>", "/", "=", "\"", "'", " ", "\n", "\r", "\r\n", "\t", "\u{c}", "\u{0}", "p", "b-1", "B", "é", "\u{fffe}", "\u{7f}",
            "<p>", "</p>", "</p >", "<br/>", "<a href=\"x\">", "<a href='x&amp;y'>", "<a href=\"1\" href=\"2\">", "<a href=x>", "<a href>", "<a\nhref = \"x\">",
            "<a href=\"&\">", "<a href=\"&copy\">", "<a href=\"&lt=\">", "<a href=\"x\"b>", "<!--", "-->", "<!", "<?", "<![CDATA[", "<script>", "</script>",
            "<title>", "</title>", "<textarea>", "<plaintext>", "<noscript>", "<style>", "</style>", "&", "&amp;", "&ampx", "&lt", "&quot;", "&nbsp;",
            "&emsp;", "&apos;", "&copy;", "&notit;", "&#39;", "&#039;", "&#x27;", "&#8239;", "&#0;", "&#128;", "&#128640;", "&#xD800;", "&#99999999999;", "&#;", "#", ";",
        ]), 0..24)) {
            let html = pieces.concat();
            prop_assert_eq!(render(&html), render_full(&html), "{}", html);
        }
    }
}
