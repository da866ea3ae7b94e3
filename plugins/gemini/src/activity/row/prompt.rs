//! Finds the prompt of a row whose title is truncated or does not hold it.

use std::borrow::Cow;

use super::Row;
use crate::activity::verb::{self, Action};

/// What a title says about the prompt.
enum TitleContent<'t> {
    /// The title may be the prompt or its beginning. The second text is the title behind a known verb.
    Prompt(&'t str, Option<&'t str>),
    /// The title is empty, or says only that Gemini was used.
    Nothing,
    /// The title describes something else.
    Other,
}

impl Row<'_> {
    /// Takes the prompt from `text` or `subtitles` if it is longer than in the title. Keeps `text` otherwise.
    pub(super) fn find_prompt(&mut self) {
        let (text, value) = (self.text.take(), self.subtitle_value.take());
        let untitled = self.title.trim().is_empty();
        if self.prompt.is_some() || (text.is_none() && value.is_none() && !untitled) {
            return self.keep_text(text);
        }
        let title = self.title.clone();
        let (title, _) = verb::split_attachment_note(&title);
        let content = classify_title(title, self.is_english());
        let mut found = text.and_then(|text| longer_prompt(&content, text));
        found = found.or_else(|| longer_prompt(&content, value?));
        // An English title without a known verb is no prompt.
        let unknown_verb = matches!(content, TitleContent::Prompt(_, None)) && self.is_english();
        found = found.or(value.filter(|value| unknown_verb && !value.trim().is_empty()));
        // Without a title, the first remark of an answered row is the prompt.
        let remark = self.remarks.first().copied().filter(|_| untitled && !self.answers.is_empty());
        found = found.or(remark);
        let in_title = match content {
            TitleContent::Prompt(_, Some(prompt)) => found.is_some_and(|found| found.trim() == prompt.trim()),
            _ => false,
        };
        if !in_title {
            self.prompt = found.map(Cow::Borrowed);
        }
        let used = text.zip(found).is_some_and(|(text, found)| text.contains(found));
        self.keep_text(text.filter(|_| !used));
    }

    fn keep_text(&mut self, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            self.rest.add_text("text", text);
        }
    }
}

fn classify_title(title: &str, english: bool) -> TitleContent<'_> {
    match verb::parse(title, english, None) {
        Action::Prompt { text, .. } => TitleContent::Prompt(title, Some(text)),
        Action::Unknown if title.is_empty() => TitleContent::Nothing,
        Action::Unknown => TitleContent::Prompt(title, None),
        Action::Event if title.starts_with("Used") => TitleContent::Nothing,
        Action::Event | Action::Creation => TitleContent::Other,
    }
}

/// The prompt in `text`, if the title is its beginning or says nothing.
fn longer_prompt<'b>(title: &TitleContent<'_>, text: &'b str) -> Option<&'b str> {
    let text = text.trim();
    let without_verb = match verb::parse(text, false, None) {
        Action::Prompt { text, .. } => text,
        Action::Creation | Action::Event | Action::Unknown => text,
    };
    match title {
        _ if text.is_empty() => None,
        TitleContent::Nothing => Some(text),
        TitleContent::Other => None,
        TitleContent::Prompt(_, Some(prompt)) => {
            [text, without_verb].into_iter().find(|text| starts_with(text, prompt))
        }
        TitleContent::Prompt(title, None) => {
            let verb = verb::possible_verb(title).map_or(0, str::len);
            let behind = title.get(verb..).unwrap_or_default();
            [title, behind].into_iter().any(|title| starts_with(text, title)).then_some(text)
        }
    }
}

/// Whether `text` starts with `part`, without regard to white space and to the ellipsis of a truncated part.
fn starts_with(text: &str, part: &str) -> bool {
    let part = part.trim().trim_end_matches(['…', '.']);
    let mut letters = text.chars().filter(|c| !c.is_whitespace());
    !part.is_empty() && part.chars().filter(|c| !c.is_whitespace()).all(|c| letters.next() == Some(c))
}

#[cfg(test)]
mod tests {
    use satchel_importer::{Arena, Parser};
    use serde_json::{Value, json};

    use super::super::ReadMode;
    use super::*;

    /// The prompt outside the title, and the other fields.
    fn read(row: &Value) -> (Option<String>, String) {
        let (arena, mut row) = (Arena::new(), row.clone());
        if let Value::Object(fields) = &mut row {
            fields.insert("header".to_owned(), "Gemini Apps".into());
        }
        let text = row.to_string();
        let mut json = Parser::new(&text, &arena);
        let row = Row::read(&mut json, ReadMode::Full).expect("it is JSON").expect("it is an object");
        let summary = Row::read(&mut Parser::new(&text, &arena), ReadMode::Summary)
            .expect("it is JSON")
            .expect("it is an object");
        assert_eq!(row.prompt, summary.prompt, "both modes find the same");
        (row.prompt.map(Cow::into_owned), row.rest.into_json().unwrap_or_default().into_owned())
    }

    #[test]
    fn a_prompt_longer_than_the_title_is_taken() {
        for (title, text) in [
            ("Asked: How do I make…", "How do I make tea?"),
            ("Prompted How do I\nmake...", "How do I make tea?"),
            ("Asked: How do I make…", "Asked: How do I make tea?"),
            ("Requête : How do I make", "How do I make tea?"),
            ("How do I make", "How do I make tea?"),
            ("", "How do I make tea?"),
            ("Used Gemini Apps", "How do I make tea?"),
        ] {
            for row in [
                json!({"title": title, "text": text}),
                json!({"title": title, "subtitles": [{"value": text}]}),
            ] {
                assert_eq!(read(&row).0.as_deref(), Some("How do I make tea?"), "{row}");
            }
        }
        let both = json!({"title": "Asked Asked for t", "text": "Asked for tea"});
        assert_eq!(read(&both).0.as_deref(), Some("Asked for tea"), "a prompt that begins like a verb");
    }

    #[test]
    fn text_that_is_not_the_prompt_is_kept() {
        for row in [
            json!({"title": "Asked: How do I make tea?", "text": "Boil some water first."}),
            json!({"title": "Created Gemini Canvas titled Tea", "text": "Boil some water first."}),
            json!({"title": "Gave feedback: Good", "text": "Boil some water first."}),
        ] {
            let (prompt, rest) = read(&row);
            assert_eq!(prompt, None, "{row}");
            assert!(rest.contains("Boil some water"), "{rest}");
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
    fn subtitles_of_an_untitled_row_are_the_prompt() {
        let value =
            json!({"title": "Talked to Bard", "subtitles": [{"name": "x"}, {"value": "Tell me of tea"}]});
        assert_eq!(read(&value).0.as_deref(), Some("Tell me of tea"));
        let name =
            json!({"subtitles": [{"name": "Tell me of tea"}], "safeHtmlItem": [{"html": "<p>Tea</p>"}]});
        assert_eq!(read(&name).0.as_deref(), Some("Tell me of tea"));
        assert_eq!(read(&json!({"subtitles": [{"name": "Tell me of tea"}]})).0, None);
    }
}
