//! Citation markers in an answer's text, and the readable text that replaces them.
//!
//! There are two kinds: `【12†source】` (2023 to 2024), and since 2024 a run of private-use characters,
//! `U+E200 kind U+E202 payload … U+E201`. Some markers contain words of the sentence (a place's name), so removing every
//! marker would delete text. Since 2026 there are also [`super::blocks`].

use std::borrow::Cow;

use super::blocks;

/// The fields of a content reference that replace a marker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reference<'a> {
    /// `grouped_webpages`, `entity`, `products`, …
    pub(crate) kind: &'a str,
    /// The text of its marker; exports since July 2026 leave it out.
    pub(crate) matched: Option<&'a str>,
    /// Markdown; empty if the page shows nothing.
    pub(crate) alt: Option<&'a str>,
}

/// The id of a search result in a conversation, such as `turn0search3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId<'a> {
    pub(crate) turn: u64,
    pub(crate) kind: &'a str,
    pub(crate) index: u64,
}

impl<'a> SourceId<'a> {
    /// Numbers above [`u32::MAX`] are refused.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let number = |digits: &str| digits.parse::<u32>().ok().map(u64::from);
        let rest = text.strip_prefix("turn")?;
        let kind_at = rest.find(|c: char| !c.is_ascii_digit())?;
        let (turn, rest) = rest.split_at(kind_at);
        let index_at = rest.find(|c: char| c.is_ascii_digit())?;
        let (kind, index) = rest.split_at(index_at);
        let lowercase = kind.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        if !lowercase {
            return None;
        }
        Some(Self { turn: number(turn)?, kind, index: number(index)? })
    }
}

/// A marker in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker<'a> {
    /// The whole marker, as references repeat it.
    pub(crate) text: &'a str,
    pub(crate) kind: &'a str,
    /// The search results that it cites.
    pub(crate) ids: Vec<SourceId<'a>>,
    /// How many markers of its kind come before it.
    pub(crate) nth: usize,
    /// The export lacks the words that the page shows for it.
    pub(crate) unresolved: bool,
}

/// The kind of `【1†source】`.
pub(crate) const DAGGER: &str = "†";

const OPEN: char = '\u{e200}';
const CLOSE: char = '\u{e201}';
const SEPARATOR: char = '\u{e202}';
/// Characters of markers that also occur alone.
const STRAY: std::ops::RangeInclusive<char> = '\u{e200}'..='\u{e206}';
/// Bytes; a longer run is not a marker. The longest kinds contain a JSON object with image queries.
const LONGEST_MARKER: usize = 16 * 1024;
/// Bytes between `【` and `】`.
const LONGEST_DAGGER: usize = 200;

/// Replaces the markers in `text` and appends them to `markers`. Borrowed if nothing changed.
pub(crate) fn replace<'a>(
    text: &'a str,
    references: &[Reference<'_>],
    markers: &mut Vec<Marker<'a>>,
) -> Cow<'a, str> {
    let special = |c| STRAY.contains(&c) || c == '【';
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut replacer = Replacer { out: String::with_capacity(text.len()), references };
    let mut rest = text;
    while let Some(at) = rest.find(special) {
        let (before, marker) = rest.split_at(at);
        replacer.out.push_str(before);
        rest = replacer.read(marker, markers);
    }
    replacer.out.push_str(rest);
    if replacer.out == text { Cow::Borrowed(text) } else { Cow::Owned(replacer.out) }
}

struct Replacer<'r> {
    out: String,
    references: &'r [Reference<'r>],
}

impl<'r> Replacer<'r> {
    /// Reads the marker at the start of `text` and returns the text after it.
    fn read<'t>(&mut self, text: &'t str, markers: &mut Vec<Marker<'t>>) -> &'t str {
        let first = text.chars().next().unwrap_or_default();
        if first == '【' {
            return self.read_dagger(text, markers);
        }
        if first != OPEN {
            return &text[first.len_utf8()..];
        }
        let body = &text[OPEN.len_utf8()..];
        let Some(end) =
            body.find([CLOSE, OPEN]).filter(|end| *end <= LONGEST_MARKER && body[*end..].starts_with(CLOSE))
        else {
            // The marker is cut off: the rest of the word belongs to it.
            let end = body.find(|c: char| c.is_whitespace() || STRAY.contains(&c) && c != SEPARATOR);
            return self.drop_marker(&body[end.unwrap_or(body.len())..]);
        };
        let (marker, after) = text.split_at(OPEN.len_utf8() + end + CLOSE.len_utf8());
        let words = self.words(marker, &body[..end], markers);
        if words.is_empty() {
            return self.drop_marker(after);
        }
        self.out.push_str(&words);
        after
    }

    /// The words that the page shows for a marker.
    fn words<'t>(&mut self, text: &'t str, body: &'t str, markers: &mut Vec<Marker<'t>>) -> Cow<'t, str> {
        let mut payload = body.split(SEPARATOR);
        let kind = payload.next().unwrap_or_default();
        // Lists of ids are separated by commas.
        let ids = payload.clone().filter(|part| names_sources(part)).flat_map(|part| part.split(','));
        let ids = ids.filter_map(|id| SourceId::parse(id.trim())).collect();
        let nth = markers.iter().filter(|marker| marker.kind == kind).count();
        let mut marker = Marker { text, kind, ids, nth, unresolved: false };
        let alt = self.alt(&marker);
        let words = words_of(kind, payload, alt);
        marker.unresolved = words.is_empty() && alt.is_none() && !marker.ids.is_empty() && !cites(kind);
        markers.push(marker);
        words
    }

    /// The `alt` of the marker's reference; it may be empty.
    fn alt(&self, marker: &Marker<'_>) -> Option<&'r str> {
        let found = self.references.iter().find(|reference| reference.matched == Some(marker.text));
        let found = found.or_else(|| {
            let unmatched = self.references.iter().filter(|reference| reference.matched.is_none());
            unmatched.filter(|reference| same_kind(marker.kind, reference.kind)).nth(marker.nth)
        });
        found.and_then(|reference| reference.alt).map(str::trim)
    }

    /// `【1†source】`, `【12†L3-L9】`, `【4:0†notes.pdf】`; other brackets stay.
    fn read_dagger<'t>(&mut self, text: &'t str, markers: &mut Vec<Marker<'t>>) -> &'t str {
        let body = &text['【'.len_utf8()..];
        let digits = body.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(0);
        let end = body.find('】').filter(|end| *end <= LONGEST_DAGGER);
        match end {
            Some(end) if digits > 0 && body[digits..].starts_with('†') => {
                let after = &body[end + '】'.len_utf8()..];
                let text = &text[..text.len() - after.len()];
                let nth = markers.iter().filter(|marker| marker.kind == DAGGER).count();
                markers.push(Marker { text, kind: DAGGER, ids: Vec::new(), nth, unresolved: false });
                self.drop_marker(after)
            }
            _ => {
                self.out.push('【');
                body
            }
        }
    }

    /// Removes the space before a marker if no word follows.
    fn drop_marker<'t>(&mut self, after: &'t str) -> &'t str {
        let closes = |c: char| c.is_whitespace() || ".,;:!?)".contains(c);
        if self.out.ends_with(' ') && after.chars().next().is_none_or(closes) {
            self.out.pop();
        }
        after
    }
}

fn words_of<'t>(
    kind: &str,
    payload: impl Iterator<Item = &'t str> + Clone,
    alt: Option<&str>,
) -> Cow<'t, str> {
    if cites(kind) {
        return Cow::Borrowed("");
    }
    if let Some(words) = payload.clone().find_map(entity_name) {
        return words;
    }
    if let Some(alt) = alt.filter(|alt| !alt.is_empty()) {
        return Cow::Owned(alt.to_owned());
    }
    let words: Vec<Cow<'t, str>> = payload
        .filter(|part| !part.is_empty() && !names_sources(part))
        .filter_map(
            |part| if part.starts_with(['{', '[']) { blocks::payload_text(part) } else { Some(part.into()) },
        )
        .collect();
    match words.as_slice() {
        [label, address] if address.contains("://") => Cow::Owned(format!("[{label}]({address})")),
        words => Cow::Owned(words.join(" ")),
    }
}

/// Whether references of the type `reference` belong to markers of the kind `marker`.
pub(crate) fn same_kind(marker: &str, reference: &str) -> bool {
    let bare = |name: &'_ str| name.bytes().filter(|byte| *byte != b'_').collect::<Vec<_>>();
    match marker {
        "cite" => matches!(reference, "grouped_webpages" | "webpage" | "webpage_extended"),
        "filecite" => reference == "file",
        _ => bare(marker) == bare(reference),
    }
}

/// Whether markers of a kind only name sources, which become citations.
fn cites(kind: &str) -> bool {
    matches!(kind, "cite" | "filecite" | "memcite")
}

/// Whether a payload consists of ids of search results.
fn names_sources(payload: &str) -> bool {
    payload.split(',').all(|id| SourceId::parse(id.trim()).is_some())
}

/// The name of an entity: the second element of `["place","Siruela",0]`.
fn entity_name(payload: &str) -> Option<Cow<'static, str>> {
    if !payload.starts_with('[') {
        return None;
    }
    let fields: Vec<serde_json::Value> = serde_json::from_str(payload).ok()?;
    fields.get(1)?.as_str().map(|name| Cow::Owned(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(text: &str) -> String {
        replace(text, &[], &mut Vec::new()).into_owned()
    }

    #[test]
    fn ordinary_text_is_borrowed() {
        for text in ["", "plain", "中文【注】和 emoji 🧭", "† 1603"] {
            assert!(matches!(replace(text, &[], &mut Vec::new()), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn dagger_markers_are_removed_and_other_brackets_stay() {
        assert_eq!(replaced("Rye【1†source】 grows【12†L3-L9】. 【note】"), "Rye grows. 【note】");
        assert_eq!(replaced("a 【4:0†notes.pdf】, b"), "a, b");
    }

    #[test]
    fn the_words_of_an_entity_stay() {
        assert_eq!(
            replaced("near \u{e200}entity\u{e202}[\"place\",\"Siruela\",0]\u{e201}."),
            "near Siruela."
        );
    }

    #[test]
    fn cited_results_are_named() {
        let mut markers = Vec::new();
        let text = "A\u{e200}cite\u{e202}turn0search3\u{e202}turn12news_x0\u{e202}odd\u{e201}.";
        assert_eq!(replace(text, &[], &mut markers), "A.");
        assert_eq!(
            markers[0].ids,
            [SourceId { turn: 0, kind: "search", index: 3 }, SourceId { turn: 12, kind: "news_x", index: 0 }]
        );
    }

    #[test]
    fn words_in_json_stay_and_lists_of_ids_are_removed() {
        let marker = |body: &str| replaced(&format!("a \u{e200}{}\u{e201} b", body.replace('|', "\u{e202}")));
        assert_eq!(
            marker(r#"products|{"selections":[["turn0product1","Tent"],["turn0product2","Stove"]]}"#),
            "a Tent, Stove b"
        );
        assert_eq!(marker(r#"genui|{"math_block":{"content":"E=mc^2"}}"#), "a E=mc^2 b");
        assert_eq!(marker(r#"image_group|{"layout":"carousel","query":["tents"]}"#), "a b");
        assert_eq!(marker("navlist|More to read|turn0news1,turn0news2"), "a More to read b");
        assert_eq!(marker("video|How to pitch|turn0video1"), "a How to pitch b");
    }

    #[test]
    fn cut_markers_and_stray_characters_are_removed() {
        assert_eq!(replaced("end \u{e200}cite\u{e202}turn0"), "end");
        assert_eq!(replaced("a \u{e203}span\u{e204} b\u{e206}"), "a span b");
        assert_eq!(replaced("x\u{e200}\u{e200}\u{e201}y"), "xy");
    }

    #[test]
    fn references_without_matched_text_are_found_by_position() {
        let alt = |kind, alt| Reference { kind, matched: None, alt: Some(alt) };
        let references = [alt("products", "one"), alt("nav_list", "list"), alt("products", "two")];
        let text = "\u{e200}products\u{e202}turn0product0\u{e201}, \u{e200}navlist\u{e202}turn0nav1\u{e201}, \u{e200}products\u{e202}turn0product9\u{e201}";
        assert_eq!(replace(text, &references, &mut Vec::new()), "one, list, two");
    }

    #[test]
    fn a_marker_whose_words_the_export_lacks_is_unresolved() {
        let unresolved = |body: &str, alt: Option<&'static str>| {
            let text = format!("a \u{e200}{}\u{e201} b", body.replace('|', "\u{e202}"));
            let references = [Reference { kind: "products", matched: None, alt }];
            let mut markers = Vec::new();
            replace(&text, &references, &mut markers);
            markers.iter().any(|marker| marker.unresolved)
        };
        assert!(unresolved("products|turn1product2", None));
        assert!(!unresolved("products|turn1product2", Some("")), "the page shows nothing");
        assert!(!unresolved("products|turn1product2", Some("**A paper map**")));
        assert!(!unresolved("cite|turn0search0", None));
        assert!(!unresolved("video|How to pitch|turn0video1", None));
        assert!(!unresolved("image_group|{\"query\":[\"tents\"]}", None));
    }
}
