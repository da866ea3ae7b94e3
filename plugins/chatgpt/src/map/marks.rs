//! Citation marks inside an answer's text: found, read, and replaced by what a person can read.
//!
//! Two kinds of citation marks occur: `【12†source】` (2023 to 2024), and since 2024 a run of private-use characters,
//! `U+E200 kind U+E202 payload … U+E201`. Some marks carry words of the sentence (a place's name), so removing every
//! mark would delete text. Since 2026 plain words open things too: [`super::blocks`].

use std::borrow::Cow;

use super::blocks;

/// A content reference, as far as marks need it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reference<'a> {
    /// `grouped_webpages`, `entity`, `products`, …
    pub(crate) kind: &'a str,
    /// The mark that it stands for; exports since July 2026 leave it out.
    pub(crate) matched: Option<&'a str>,
    /// Ready Markdown; empty where nothing is to be read.
    pub(crate) alt: Option<&'a str>,
}

/// A search result's name inside a conversation, such as `turn0search3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceId<'a> {
    pub(crate) turn: u32,
    pub(crate) kind: &'a str,
    pub(crate) index: u32,
}

impl<'a> SourceId<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("turn")?;
        let kind_at = rest.find(|c: char| !c.is_ascii_digit())?;
        let (turn, rest) = rest.split_at(kind_at);
        let index_at = rest.find(|c: char| c.is_ascii_digit())?;
        let (kind, index) = rest.split_at(index_at);
        let named = kind.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        if !named {
            return None;
        }
        Some(Self { turn: turn.parse().ok()?, kind, index: index.parse().ok()? })
    }
}

/// A mark that was found, for the sources that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark<'a> {
    /// All of it, as references repeat it.
    pub(crate) whole: &'a str,
    pub(crate) kind: &'a str,
    /// The search results that it names.
    pub(crate) ids: Vec<SourceId<'a>>,
    /// How many marks of its kind stand before it.
    pub(crate) nth: usize,
    /// It stands for words, and nothing says which.
    pub(crate) wordless: bool,
}

/// The kind of `【1†source】`.
pub(crate) const DAGGER: &str = "†";

const OPEN: char = '\u{e200}';
const CLOSE: char = '\u{e201}';
const SEPARATOR: char = '\u{e202}';
/// Characters of the marks' alphabet that also occur alone.
const STRAY: std::ops::RangeInclusive<char> = '\u{e200}'..='\u{e206}';
/// Bytes; a longer run is not a mark. The longest kinds carry a JSON object with image queries.
const LONGEST_MARK: usize = 16 * 1024;
/// Bytes between `【` and `】`.
const LONGEST_DAGGER: usize = 200;

/// The text without marks; `marks` receives them. Borrowed when nothing changed.
pub(crate) fn clean<'a>(
    text: &'a str,
    references: &[Reference<'_>],
    marks: &mut Vec<Mark<'a>>,
) -> Cow<'a, str> {
    let marked = |c| STRAY.contains(&c) || c == '【';
    if !text.contains(marked) {
        return Cow::Borrowed(text);
    }
    let mut cleaner = Cleaner { out: String::with_capacity(text.len()), references };
    let mut rest = text;
    while let Some(at) = rest.find(marked) {
        let (before, mark) = rest.split_at(at);
        cleaner.out.push_str(before);
        rest = cleaner.mark(mark, marks);
    }
    cleaner.out.push_str(rest);
    if cleaner.out == text { Cow::Borrowed(text) } else { Cow::Owned(cleaner.out) }
}

struct Cleaner<'r> {
    out: String,
    references: &'r [Reference<'r>],
}

impl<'r> Cleaner<'r> {
    /// Reads the mark that `text` begins with and returns what follows it.
    fn mark<'t>(&mut self, text: &'t str, marks: &mut Vec<Mark<'t>>) -> &'t str {
        let first = text.chars().next().unwrap_or_default();
        if first == '【' {
            return self.dagger(text, marks);
        }
        if first != OPEN {
            return &text[first.len_utf8()..];
        }
        let body = &text[OPEN.len_utf8()..];
        let Some(end) =
            body.find([CLOSE, OPEN]).filter(|end| *end <= LONGEST_MARK && body[*end..].starts_with(CLOSE))
        else {
            // Cut off in the middle: the rest of the word belongs to the mark.
            let end = body.find(|c: char| c.is_whitespace() || STRAY.contains(&c) && c != SEPARATOR);
            return self.drop_mark(&body[end.unwrap_or(body.len())..]);
        };
        let whole = &text[..OPEN.len_utf8() + end + CLOSE.len_utf8()];
        let after = &text[whole.len()..];
        let words = self.words(whole, &body[..end], marks);
        if words.is_empty() {
            return self.drop_mark(after);
        }
        self.out.push_str(&words);
        after
    }

    fn words<'t>(&mut self, whole: &'t str, body: &'t str, marks: &mut Vec<Mark<'t>>) -> Cow<'t, str> {
        let mut payload = body.split(SEPARATOR);
        let kind = payload.next().unwrap_or_default();
        // Lists of ids are parted by commas.
        let ids = payload.clone().filter(|part| names_sources(part)).flat_map(|part| part.split(','));
        let ids = ids.filter_map(|id| SourceId::parse(id.trim())).collect();
        let nth = marks.iter().filter(|mark| mark.kind == kind).count();
        let mut mark = Mark { whole, kind, ids, nth, wordless: false };
        let alt = self.alt(&mark);
        let words = Self::words_of(kind, payload, alt);
        mark.wordless = words.is_empty() && alt.is_none() && !mark.ids.is_empty() && !cites(kind);
        marks.push(mark);
        words
    }

    fn words_of<'t>(
        kind: &str,
        payload: impl Iterator<Item = &'t str> + Clone,
        alt: Option<&str>,
    ) -> Cow<'t, str> {
        if cites(kind) {
            return Cow::Borrowed("");
        }
        if let Some(words) = payload.clone().find_map(entity_words) {
            return words;
        }
        if let Some(alt) = alt.filter(|alt| !alt.is_empty()) {
            return Cow::Owned(alt.to_owned());
        }
        let words: Vec<Cow<'t, str>> = payload
            .filter(|part| !part.is_empty() && !names_sources(part))
            .filter_map(
                |part| if part.starts_with(['{', '[']) { blocks::words(part) } else { Some(part.into()) },
            )
            .collect();
        match words.as_slice() {
            [label, address] if address.contains("://") => Cow::Owned(format!("[{label}]({address})")),
            words => Cow::Owned(words.join(" ")),
        }
    }

    /// What a reference says in the mark's place; it may be empty.
    fn alt(&self, mark: &Mark<'_>) -> Option<&'r str> {
        let found = self.references.iter().find(|reference| reference.matched == Some(mark.whole));
        let found = found.or_else(|| {
            let unmatched = self.references.iter().filter(|reference| reference.matched.is_none());
            unmatched.filter(|reference| same_kind(mark.kind, reference.kind)).nth(mark.nth)
        });
        found.and_then(|reference| reference.alt).map(str::trim)
    }

    /// `【1†source】`, `【12†L3-L9】`, `【4:0†notes.pdf】`; other brackets stay.
    fn dagger<'t>(&mut self, text: &'t str, marks: &mut Vec<Mark<'t>>) -> &'t str {
        let body = &text['【'.len_utf8()..];
        let digits = body.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(0);
        let end = body.find('】').filter(|end| *end <= LONGEST_DAGGER);
        match end {
            Some(end) if digits > 0 && body[digits..].starts_with('†') => {
                let after = &body[end + '】'.len_utf8()..];
                let whole = &text[..text.len() - after.len()];
                let nth = marks.iter().filter(|mark| mark.kind == DAGGER).count();
                marks.push(Mark { whole, kind: DAGGER, ids: Vec::new(), nth, wordless: false });
                self.drop_mark(after)
            }
            _ => {
                self.out.push('【');
                body
            }
        }
    }

    /// Takes the space before a removed mark along where it would be left over.
    fn drop_mark<'t>(&mut self, after: &'t str) -> &'t str {
        let closes = |c: char| c.is_whitespace() || ".,;:!?)".contains(c);
        if self.out.ends_with(' ') && after.chars().next().is_none_or(closes) {
            self.out.pop();
        }
        after
    }
}

/// Whether references of the type `reference` stand for marks of the kind `mark`.
pub(crate) fn same_kind(mark: &str, reference: &str) -> bool {
    let bare = |name: &'_ str| name.bytes().filter(|byte| *byte != b'_').collect::<Vec<_>>();
    match mark {
        "cite" => matches!(reference, "grouped_webpages" | "webpage" | "webpage_extended"),
        "filecite" => reference == "file",
        _ => bare(mark) == bare(reference),
    }
}

/// Whether marks of a kind name sources only, which become citations.
fn cites(kind: &str) -> bool {
    matches!(kind, "cite" | "filecite" | "memcite")
}

/// Whether a payload is ids of search results only.
fn names_sources(payload: &str) -> bool {
    payload.split(',').all(|id| SourceId::parse(id.trim()).is_some())
}

/// `["place","Siruela",0]`: the second element is the words of the sentence.
fn entity_words(payload: &str) -> Option<Cow<'static, str>> {
    if !payload.starts_with('[') {
        return None;
    }
    let fields: Vec<serde_json::Value> = serde_json::from_str(payload).ok()?;
    fields.get(1)?.as_str().map(|words| Cow::Owned(words.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(text: &str) -> String {
        clean(text, &[], &mut Vec::new()).into_owned()
    }

    #[test]
    fn ordinary_text_is_borrowed() {
        for text in ["", "plain", "中文【注】和 emoji 🧭", "† 1603"] {
            assert!(matches!(clean(text, &[], &mut Vec::new()), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn dagger_marks_go_and_other_brackets_stay() {
        assert_eq!(cleaned("Rye【1†source】 grows【12†L3-L9】. 【note】"), "Rye grows. 【note】");
        assert_eq!(cleaned("a 【4:0†notes.pdf】, b"), "a, b");
    }

    #[test]
    fn the_words_of_an_entity_stay() {
        assert_eq!(cleaned("near \u{e200}entity\u{e202}[\"place\",\"Siruela\",0]\u{e201}."), "near Siruela.");
    }

    #[test]
    fn cited_results_are_named() {
        let mut marks = Vec::new();
        let text = "A\u{e200}cite\u{e202}turn0search3\u{e202}turn12news_x0\u{e202}odd\u{e201}.";
        assert_eq!(clean(text, &[], &mut marks), "A.");
        assert_eq!(
            marks[0].ids,
            [SourceId { turn: 0, kind: "search", index: 3 }, SourceId { turn: 12, kind: "news_x", index: 0 }]
        );
    }

    #[test]
    fn words_inside_json_stay_and_lists_of_ids_go() {
        let mark = |body: &str| cleaned(&format!("a \u{e200}{}\u{e201} b", body.replace('|', "\u{e202}")));
        assert_eq!(
            mark(r#"products|{"selections":[["turn0product1","Tent"],["turn0product2","Stove"]]}"#),
            "a Tent, Stove b"
        );
        assert_eq!(mark(r#"genui|{"math_block":{"content":"E=mc^2"}}"#), "a E=mc^2 b");
        assert_eq!(mark(r#"image_group|{"layout":"carousel","query":["tents"]}"#), "a b");
        assert_eq!(mark("navlist|More to read|turn0news1,turn0news2"), "a More to read b");
        assert_eq!(mark("video|How to pitch|turn0video1"), "a How to pitch b");
    }

    #[test]
    fn a_cut_mark_and_stray_characters_go() {
        assert_eq!(cleaned("end \u{e200}cite\u{e202}turn0"), "end");
        assert_eq!(cleaned("a \u{e203}span\u{e204} b\u{e206}"), "a span b");
        assert_eq!(cleaned("x\u{e200}\u{e200}\u{e201}y"), "xy");
    }

    #[test]
    fn references_without_matched_text_join_by_position() {
        let alt = |kind, alt| Reference { kind, matched: None, alt: Some(alt) };
        let references = [alt("products", "one"), alt("nav_list", "list"), alt("products", "two")];
        let text = "\u{e200}products\u{e202}turn0product0\u{e201}, \u{e200}navlist\u{e202}turn0nav1\u{e201}, \u{e200}products\u{e202}turn0product9\u{e201}";
        assert_eq!(clean(text, &references, &mut Vec::new()), "one, list, two");
    }

    #[test]
    fn a_mark_that_stands_for_words_which_nothing_says_is_known() {
        let wordless = |body: &str, alt: Option<&'static str>| {
            let text = format!("a \u{e200}{}\u{e201} b", body.replace('|', "\u{e202}"));
            let references = [Reference { kind: "products", matched: None, alt }];
            let mut marks = Vec::new();
            clean(&text, &references, &mut marks);
            marks.iter().any(|mark| mark.wordless)
        };
        assert!(wordless("products|turn1product2", None));
        assert!(!wordless("products|turn1product2", Some("")), "nothing is to be read there");
        assert!(!wordless("products|turn1product2", Some("**A paper map**")));
        assert!(!wordless("cite|turn0search0", None));
        assert!(!wordless("video|How to pitch|turn0video1", None));
        assert!(!wordless("image_group|{\"query\":[\"tents\"]}", None));
    }
}
