//! One row of activity, whether from a list or from a page.

use std::borrow::Cow;

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Kind, Object, Value, items, quote},
};

use crate::{layout::is_ours, markdown::Markdown, private};

mod prompt;

/// One row.
#[derive(Debug, Default)]
pub(crate) struct Row<'a> {
    /// What was done, in the account's language: a verb and the prompt.
    pub(crate) title: Cow<'a, str>,
    /// Microseconds.
    pub(crate) time: Option<i64>,
    /// The names of the product.
    pub(crate) labels: Vec<Cow<'a, str>>,
    /// The conversations to which it belongs: several, where one was branched off later.
    pub(crate) conversations: Vec<Cow<'a, str>>,
    pub(crate) answers: Vec<Answer<'a>>,
    /// The prompt, where it does not stand in the title, or not all of it.
    pub(crate) prompt: Option<Cow<'a, str>>,
    /// What stands beside the title and may be the prompt.
    beside: prompt::Beside<'a>,
    pub(crate) uploads: Vec<Upload<'a>>,
    /// Remarks without an address; a canvas has its text there.
    pub(crate) remarks: Vec<&'a str>,
    /// What has no place above.
    pub(crate) rest: Leftover<'a>,
}

/// What becomes of answers, and of what has no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Depth {
    /// That there is an answer, nothing else: enough for the first walk, and far cheaper.
    #[default]
    Noted,
    Read,
}

/// An answer as it stands in the source.
#[derive(Debug)]
pub(crate) enum Answer<'a> {
    Html(&'a str),
    /// Already read; empty where it is only noted.
    Markdown(Markdown),
    Text(Cow<'a, str>),
}

/// A file that the person gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upload<'a> {
    /// Its name in the export.
    pub(crate) file: Cow<'a, str>,
    /// Its name when it was given.
    pub(crate) name: Option<Cow<'a, str>>,
}

impl<'a> Row<'a> {
    /// Reads an element of a list; none if it is no object. What follows the element is not looked at: where bytes are
    /// no UTF-8, its end is not known to the byte.
    pub(crate) fn read(json: &mut Parser<'a>, depth: Depth) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut row = Self::default();
        let arena = json.arena();
        while let Some(key) = json.key()? {
            match key {
                "title" => row.title = Cow::Borrowed(row.rest.text(key, json)?.unwrap_or_default()),
                "text" => row.beside.text = row.rest.text(key, json)?,
                "time" => row.time = row.rest.time(key, json)?,
                "header" => {
                    let header = row.kept(key, json, depth)?;
                    row.labels.extend(header.words().map(Cow::Borrowed));
                }
                "products" => {
                    let list = row.kept(key, json, depth)?;
                    row.labels.extend(list.words().map(Cow::Borrowed));
                    row.labels.extend(words(list.raw().unwrap_or_default(), arena).map(Cow::Borrowed));
                }
                "titleUrl" => {
                    let address = row.kept(key, json, depth)?.words();
                    row.belongs_to(address.and_then(conversation_of).map(Cow::Borrowed));
                }
                "details" => row.take_details(key, json)?,
                "subtitles" => row.take_subtitles(key, json)?,
                "safeHtmlItem" => row.take_answers(key, json, depth)?,
                "userInteractions" => row.take_interactions(key, json)?,
                "attachedFiles" | "audioFiles" | "imageFile" => row.take_files(key, json)?,
                _ if depth == Depth::Noted => json.skip_value()?,
                "activityControls" | "locationInfos" | "description" => {
                    private::keep(&mut row.rest, key, json)?;
                }
                _ => private::keep_unknown(&mut row.rest, key, json)?,
            }
        }
        row.take_prompt_beside();
        Ok(Some(row))
    }

    /// The next value, which is kept too; of a row that is only noted, nothing is.
    fn kept(&mut self, key: &'a str, json: &mut Parser<'a>, depth: Depth) -> Result<Value<'a>, JsonError> {
        match depth {
            Depth::Noted => Value::read(json),
            Depth::Read => self.rest.keep_and_read(key, json),
        }
    }

    /// Whether it is one of Gemini's. Rows without any product are, if they say something that only those say.
    pub(crate) fn is_ours(&self) -> bool {
        if self.labels.is_empty() {
            return !self.answers.is_empty() || self.prompt.is_some() || !self.conversations.is_empty();
        }
        self.labels.iter().any(|label| is_ours(label))
    }

    /// Whether it is written in English, as far as its product's name tells.
    pub(crate) fn in_english(&self) -> bool {
        let english = |label: &str| matches!(label, "Gemini Apps" | "Gemini" | "Bard");
        self.labels.is_empty() || self.labels.iter().any(|label| english(label))
    }

    pub(crate) fn belongs_to(&mut self, conversation: Option<Cow<'a, str>>) {
        if let Some(id) = conversation.filter(|id| !self.conversations.contains(id)) {
            self.conversations.push(id);
        }
    }

    /// Adds an uploaded file, unless it is known; a name of its own is taken over.
    pub(crate) fn uploads(&mut self, upload: Upload<'a>) {
        match self.uploads.iter_mut().find(|known| known.file == upload.file) {
            Some(known) => known.name = known.name.take().or(upload.name),
            None => self.uploads.push(upload),
        }
    }

    /// Addresses of conversations; in an older form, the prompt and the answer.
    fn take_details(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let arena = json.arena();
        let Some(raw) = list_or_kept(&mut self.rest, key, json)? else { return Ok(()) };
        let mut kept = Vec::new();
        for item in items(raw, arena) {
            let Some(object) = item.raw().filter(|raw| raw.starts_with('{')) else {
                kept.extend(json_text(item));
                continue;
            };
            let detail = Object::parse(object, arena);
            self.belongs_to(detail.text("url").and_then(conversation_of).map(Cow::Borrowed));
            match (detail.text("name"), detail.text("value")) {
                (Some("Request"), Some(request)) if self.prompt.is_none() => {
                    self.prompt = Some(Cow::Borrowed(request));
                }
                (Some(_), Some(response)) => self.answers.push(Answer::Text(Cow::Borrowed(response))),
                _ => {
                    kept.push(private::clean(object, arena));
                    continue;
                }
            }
            let beside = detail.fields().any(|(key, _)| !matches!(key, "name" | "value"));
            if beside {
                kept.push(without(&detail, &["value"], arena));
            }
        }
        keep_list(&mut self.rest, key, &kept);
        Ok(())
    }

    /// Remarks below the title: how many files were given and which, the Gem that was used.
    fn take_subtitles(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let arena = json.arena();
        let Some(raw) = list_or_kept(&mut self.rest, key, json)? else { return Ok(()) };
        self.rest.add_json(key, &private::clean(raw, arena));
        for item in items(raw, arena).into_iter().filter_map(Value::raw) {
            let subtitle = Object::parse(item, arena);
            let known = |key: &str| matches!(key, "name" | "value" | "url");
            let unknown = subtitle.fields().filter(|(key, _)| !known(key));
            unknown.for_each(|(key, value)| self.rest.note_unknown(key, value));
            let name = subtitle.text("name");
            match subtitle.text("url") {
                None => {
                    self.beside.value = self.beside.value.or(subtitle.text("value"));
                    self.remarks.extend(name);
                }
                Some(address) if address.contains("://") => {
                    self.belongs_to(conversation_of(address).map(Cow::Borrowed));
                }
                Some(file) => {
                    let name = name.map(|name| name.trim_start_matches(['-', '\u{2013}', ' ', '\u{a0}']));
                    let name = name.filter(|name| !name.is_empty()).map(Cow::Borrowed);
                    self.uploads(Upload { file: Cow::Borrowed(file), name });
                }
            }
        }
        Ok(())
    }

    /// `[{html}]`, or in an older form `{htmlValue}`.
    fn take_answers(&mut self, key: &'a str, json: &mut Parser<'a>, depth: Depth) -> Result<(), JsonError> {
        let arena = json.arena();
        if depth == Depth::Read
            && let Some(html) = json.attempt(only_html)
        {
            self.push_answer(html);
            return Ok(());
        }
        let value = Value::read(json)?;
        let list = match value {
            Value::Raw(raw) if depth == Depth::Noted && says_something(raw) => {
                self.answers.push(Answer::Markdown(Markdown::default()));
                return Ok(());
            }
            Value::Raw(raw) if raw.starts_with('[') => items(raw, arena),
            _ => vec![value],
        };
        let mut kept = Vec::new();
        for item in list {
            match item {
                Value::Text(html) => self.push_answer(html),
                Value::Raw(raw) if raw.starts_with('{') => kept.extend(self.take_answer(raw, arena)),
                Value::Raw(_) => kept.extend(json_text(item)),
                Value::Null => {}
            }
        }
        keep_list(&mut self.rest, key, &kept);
        Ok(())
    }

    /// Gives what stands beside the HTML.
    fn take_answer(&mut self, raw: &'a str, arena: &'a Arena) -> Option<Cow<'a, str>> {
        let object = Object::parse(raw, arena);
        let html = object.text("html").or_else(|| object.text("htmlValue"));
        if let Some(html) = html {
            self.push_answer(html);
        }
        let mut beside = false;
        for (key, value) in object.fields().filter(|(key, _)| !matches!(*key, "html" | "htmlValue")) {
            beside = true;
            self.rest.note_unknown(key, value);
        }
        beside.then(|| without(&object, &["html", "htmlValue"], arena))
    }

    fn push_answer(&mut self, html: &'a str) {
        if !html.trim().is_empty() {
            self.answers.push(Answer::Html(html));
        }
    }

    /// An older form: `[{userInteraction: {request, response}}]`, each a text or JSON in a text.
    fn take_interactions(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let arena = json.arena();
        let Some(raw) = list_or_kept(&mut self.rest, key, json)? else { return Ok(()) };
        let mut kept = Vec::new();
        for item in items(raw, arena) {
            let object = item.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
            let inner = object.object("userInteraction", arena);
            let inner = if inner.is_empty() { object } else { inner };
            let (request, response) = (inner.text("request"), inner.text("response"));
            if request.is_none() && response.is_none() {
                kept.extend(json_text(item));
                continue;
            }
            let answer = response.map(|text| Answer::Text(inner_text(text, arena)));
            match (request.map(|text| inner_text(text, arena)), &mut self.prompt) {
                (Some(text), None) => self.prompt = Some(text),
                // A second prompt of the same row follows the answer to the first.
                (Some(text), Some(_)) => self.answers.push(Answer::Text(text)),
                (None, _) => {}
            }
            self.answers.extend(answer);
            let beside = inner.fields().any(|(key, _)| !matches!(key, "request" | "response"));
            if beside {
                kept.push(without(&inner, &["request", "response"], arena));
            }
        }
        keep_list(&mut self.rest, key, &kept);
        Ok(())
    }

    fn take_files(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let arena = json.arena();
        let value = Value::read(json)?;
        let list = match value {
            Value::Raw(raw) if raw.starts_with('[') => items(raw, arena),
            _ => vec![value],
        };
        let mut kept = Vec::new();
        for item in list {
            match item {
                Value::Text(file) if !file.is_empty() => {
                    self.uploads(Upload { file: Cow::Borrowed(file), name: None });
                }
                _ => kept.extend(json_text(item)),
            }
        }
        keep_list(&mut self.rest, key, &kept);
        Ok(())
    }
}

/// Whether a list begins with an answer, as far as its first bytes tell without being decoded.
fn says_something(raw: &str) -> bool {
    const BRACKET: &str = "\\u003c";
    let html = raw.strip_prefix("[{\"html\":\"").unwrap_or_default();
    // Google escapes brackets.
    let tag = html.get(..BRACKET.len()).is_some_and(|start| start.eq_ignore_ascii_case(BRACKET));
    tag || html.starts_with(|c: char| !c.is_whitespace() && !matches!(c, '"' | '\\'))
}

/// The HTML of `[{"html":"…"}]`, if that is all: nearly always it is, and then one look decodes it.
fn only_html<'a>(json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    let entered = json.enter_array()? && json.item()? && json.enter_object()?;
    if !entered || json.key()? != Some("html") || json.kind()? != Kind::String {
        return Ok(None);
    }
    let html = json.string()?;
    Ok((json.key()?.is_none() && !json.item()?).then_some(html))
}

/// The id in an address of a conversation: `https://gemini.google.com/app/0123456789abcdef`.
pub(crate) fn conversation_of(address: &str) -> Option<&str> {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
    let path = rest.strip_prefix("gemini.google.com/").or_else(|| rest.strip_prefix("bard.google.com/"))?;
    let path = path.split(['?', '#']).next().unwrap_or_default();
    // `u/1/app/…` where the person has several accounts.
    let path = path.strip_prefix("u/").and_then(|rest| rest.split_once('/')).map_or(path, |(_, path)| path);
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let (kind, rest) = (parts.next()?, parts.collect::<Vec<_>>());
    let id = match (kind, rest.as_slice()) {
        ("app" | "chat", [.., id]) | ("gem", [_, .., id]) => *id,
        _ => return None,
    };
    let fits =
        id.len() >= 6 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    fits.then_some(id)
}

/// The raw list that is next; anything else is kept.
fn list_or_kept<'a>(
    rest: &mut Leftover<'a>,
    key: &'a str,
    json: &mut Parser<'a>,
) -> Result<Option<&'a str>, JsonError> {
    let raw = json.raw_value()?;
    if raw.starts_with('[') {
        return Ok((raw != "[]").then_some(raw));
    }
    if !matches!(raw, "null" | "{}") {
        rest.add_json(key, &private::clean(raw, json.arena()));
    }
    Ok(None)
}

fn keep_list<'a>(rest: &mut Leftover<'a>, key: &'a str, kept: &[Cow<'_, str>]) {
    if !kept.is_empty() {
        rest.add_json(key, &format!("[{}]", kept.join(",")));
    }
}

/// The value as JSON text; none if it is null.
fn json_text(value: Value<'_>) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::Raw(raw) => Some(Cow::Borrowed(raw)),
        Value::Text(text) => {
            let mut quoted = String::new();
            quote(text, &mut quoted);
            Some(Cow::Owned(quoted))
        }
    }
}

/// The object without some fields and without secrets, as JSON text.
fn without<'a>(object: &Object<'a>, taken: &[&str], arena: &'a Arena) -> Cow<'a, str> {
    let mut rest = Leftover::default();
    for (key, value) in object.fields().filter(|(key, _)| !taken.contains(key) && !private::is_secret(key)) {
        match value {
            Value::Null => {}
            Value::Text(text) => rest.add_text(key, text),
            Value::Raw(raw) => rest.add_json(key, &private::clean(raw, arena)),
        }
    }
    rest.into_json().unwrap_or(Cow::Borrowed("{}"))
}

/// The first text inside JSON that stands in a text; the text itself if it is no JSON.
fn inner_text<'a>(text: &'a str, arena: &'a Arena) -> Cow<'a, str> {
    let trimmed = text.trim();
    if !trimmed.starts_with(['{', '[']) {
        return Cow::Borrowed(text);
    }
    let mut json = Parser::new(trimmed, arena);
    let whole = json.raw_value().and_then(|raw| json.end().map(|()| raw));
    let found = whole.ok().and_then(|raw| first_text(raw, arena, 0));
    found.map_or(Cow::Borrowed(text), Cow::Borrowed)
}

fn first_text<'a>(raw: &'a str, arena: &'a Arena, depth: usize) -> Option<&'a str> {
    /// Deeper there is no prompt.
    const DEEPEST: usize = 8;
    let values = if raw.starts_with('[') {
        items(raw, arena)
    } else {
        let object = Object::parse(raw, arena);
        let named =
            ["prompt", "text", "query", "content", "response", "message", "parts"].map(|key| object.get(key));
        named.into_iter().chain(object.fields().map(|(_, value)| value)).collect()
    };
    values.into_iter().filter(|_| depth < DEEPEST).find_map(|value| match value {
        Value::Text(text) => Some(text).filter(|text| !text.is_empty()),
        Value::Raw(raw) if raw.starts_with(['{', '[']) => first_text(raw, arena, depth + 1),
        Value::Raw(_) | Value::Null => None,
    })
}

fn words<'a>(raw: &'a str, arena: &'a Arena) -> impl Iterator<Item = &'a str> {
    items(raw, arena).into_iter().filter_map(Value::words)
}

#[cfg(test)]
mod tests;
