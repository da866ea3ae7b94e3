//! The prompt where it stands beside the title: whole where the title is cut, or alone where the title says nothing of it.

use std::borrow::Cow;

use super::Row;
use crate::activity::verb::{self, Act};

/// What may be the prompt.
#[derive(Debug, Default)]
pub(super) struct Beside<'a> {
    /// The field `text`.
    pub(super) text: Option<&'a str>,
    /// `value` of the first of `subtitles` that has one; in some exports it is the prompt.
    pub(super) value: Option<&'a str>,
}

/// What a title says of the prompt.
enum Title<'t> {
    /// The prompt, perhaps not all of it; with the words before it, and without.
    Says(&'t str, Option<&'t str>),
    /// Nothing: it is empty, or says only that Gemini was used.
    Silent,
    /// It is of something else.
    Other,
}

impl Row<'_> {
    /// Takes the prompt from beside the title, where it is the fuller one. What is not taken is kept.
    pub(super) fn take_prompt_beside(&mut self) {
        let Beside { text, value } = std::mem::take(&mut self.beside);
        let nameless = self.title.trim().is_empty();
        if self.prompt.is_some() || (text.is_none() && value.is_none() && !nameless) {
            return self.keep_text(text);
        }
        let title = self.title.clone();
        let (plain, _) = verb::without_attached(&title);
        let said = said(plain, self.in_english());
        let mut found = text.and_then(|text| fuller(&said, text)).or_else(|| fuller(&said, value?));
        // An English title with a verb that is not known is none of a prompt.
        let foreign = matches!(said, Title::Says(_, None)) && self.in_english();
        found = found.or(value.filter(|value| foreign && !value.trim().is_empty()));
        // Without a title, a remark that is answered is the prompt.
        let remark = self.remarks.first().copied().filter(|_| nameless && !self.answers.is_empty());
        let taken = found.or(remark);
        let same = matches!((taken, &said), (Some(taken), Title::Says(_, Some(said))) if taken.trim() == said.trim());
        if !same {
            self.prompt = taken.map(Cow::Borrowed);
        }
        let used = text.zip(taken).is_some_and(|(text, taken)| text.contains(taken));
        self.keep_text(text.filter(|_| !used));
    }

    fn keep_text(&mut self, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            self.rest.add_text("text", text);
        }
    }
}

fn said(title: &str, english: bool) -> Title<'_> {
    match verb::read(title, english, None) {
        Act::Prompt { text, .. } => Title::Says(title, Some(text)),
        Act::Unknown if title.is_empty() => Title::Silent,
        Act::Unknown => Title::Says(title, None),
        Act::Event if title.starts_with("Used") => Title::Silent,
        Act::Event | Act::Creation => Title::Other,
    }
}

/// The prompt in `beside`, if the title begins like it or says nothing.
fn fuller<'b>(said: &Title<'_>, beside: &'b str) -> Option<&'b str> {
    let beside = beside.trim();
    let bare = match verb::read(beside, false, None) {
        Act::Prompt { text, .. } => text,
        Act::Creation | Act::Event | Act::Unknown => beside,
    };
    match said {
        _ if beside.is_empty() => None,
        Title::Silent => Some(beside),
        Title::Other => None,
        Title::Says(_, Some(text)) => [beside, bare].into_iter().find(|beside| begins(beside, text)),
        Title::Says(title, None) => {
            let verb = verb::candidate(title).map_or(0, str::len);
            let behind = title.get(verb..).unwrap_or_default();
            [title, behind].into_iter().any(|title| begins(beside, title)).then_some(beside)
        }
    }
}

/// Whether `whole` begins as `part` does, white space and the mark of a cut apart.
fn begins(whole: &str, part: &str) -> bool {
    let part = part.trim().trim_end_matches(['…', '.']);
    let mut letters = whole.chars().filter(|c| !c.is_whitespace());
    !part.is_empty() && part.chars().filter(|c| !c.is_whitespace()).all(|c| letters.next() == Some(c))
}

#[cfg(test)]
mod tests {
    use satchel_importer::{Arena, Parser};
    use serde_json::{Value, json};

    use super::super::Depth;
    use super::*;

    /// The prompt beside the title, and what is kept.
    fn read(row: &Value) -> (Option<String>, String) {
        let (arena, mut row) = (Arena::new(), row.clone());
        if let Value::Object(fields) = &mut row {
            fields.insert("header".to_owned(), "Gemini Apps".into());
        }
        let text = row.to_string();
        let mut json = Parser::new(&text, &arena);
        let row = Row::read(&mut json, Depth::Read).expect("it is JSON").expect("it is an object");
        let noted = Row::read(&mut Parser::new(&text, &arena), Depth::Noted)
            .expect("it is JSON")
            .expect("it is an object");
        assert_eq!(row.prompt, noted.prompt, "both walks find the same");
        (row.prompt.map(Cow::into_owned), row.rest.into_json().unwrap_or_default().into_owned())
    }

    #[test]
    fn the_whole_prompt_beside_a_cut_title_is_taken() {
        for (title, beside) in [
            ("Asked: How do I make…", "How do I make tea?"),
            ("Prompted How do I\nmake...", "How do I make tea?"),
            ("Asked: How do I make…", "Asked: How do I make tea?"),
            ("Requête : How do I make", "How do I make tea?"),
            ("How do I make", "How do I make tea?"),
            ("", "How do I make tea?"),
            ("Used Gemini Apps", "How do I make tea?"),
        ] {
            for row in [
                json!({"title": title, "text": beside}),
                json!({"title": title, "subtitles": [{"value": beside}]}),
            ] {
                assert_eq!(read(&row).0.as_deref(), Some("How do I make tea?"), "{row}");
            }
        }
        let both = json!({"title": "Asked Asked for t", "text": "Asked for tea"});
        assert_eq!(read(&both).0.as_deref(), Some("Asked for tea"), "a prompt that begins like a verb");
    }

    #[test]
    fn what_is_not_the_prompt_is_kept() {
        for row in [
            json!({"title": "Asked: How do I make tea?", "text": "Boil some water first."}),
            json!({"title": "Created Gemini Canvas titled Tea", "text": "Boil some water first."}),
            json!({"title": "Gave feedback: Good", "text": "Boil some water first."}),
        ] {
            let (prompt, kept) = read(&row);
            assert_eq!(prompt, None, "{row}");
            assert!(kept.contains("Boil some water"), "{kept}");
        }
        assert_eq!(
            read(&json!({"title": "Asked: tea?", "text": "tea?"})).0,
            None,
            "it says no more than the title"
        );
        let file = json!({"title": "Asked: tea?", "subtitles": [{"name": "a.png", "value": "1 file", "url": "a.png"}]});
        assert_eq!(read(&file).0, None);
    }

    #[test]
    fn values_and_names_of_subtitles_stand_in_for_a_title() {
        let value =
            json!({"title": "Talked to Bard", "subtitles": [{"name": "x"}, {"value": "Tell me of tea"}]});
        assert_eq!(read(&value).0.as_deref(), Some("Tell me of tea"));
        let name =
            json!({"subtitles": [{"name": "Tell me of tea"}], "safeHtmlItem": [{"html": "<p>Tea</p>"}]});
        assert_eq!(read(&name).0.as_deref(), Some("Tell me of tea"));
        assert_eq!(read(&json!({"subtitles": [{"name": "Tell me of tea"}]})).0, None);
    }
}
