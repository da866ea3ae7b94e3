//! One row of activity, whether from a list or from a page.

use std::borrow::Cow;

use satchel_importer::{
    Arena, JsonError, Leftover, Parser,
    json::{Kind, Object, Value, items},
};

use crate::{
    layout::is_gemini,
    markdown::Markdown,
    redact::{self, is_secret, without_secrets},
};

mod prompt;

/// One row.
#[derive(Debug, Default)]
pub(crate) struct Row<'a> {
    /// A verb and the prompt, in the account's language.
    pub(crate) title: Cow<'a, str>,
    /// Microseconds.
    pub(crate) time: Option<i64>,
    /// The names of the product.
    pub(crate) labels: Vec<Cow<'a, str>>,
    /// The ids of its conversations. There are several if a conversation was branched later.
    pub(crate) conversations: Vec<Cow<'a, str>>,
    pub(crate) answers: Vec<Answer<'a>>,
    /// The prompt, if it is not in the title, or not all of it.
    pub(crate) prompt: Option<Cow<'a, str>>,
    /// The field `text`, which may be the prompt.
    text: Option<&'a str>,
    /// The first `value` of `subtitles`, which may be the prompt.
    subtitle_value: Option<&'a str>,
    pub(crate) uploads: Vec<Upload<'a>>,
    /// Names of subtitles without an address. They hold the text of a canvas.
    pub(crate) remarks: Vec<&'a str>,
    /// All other fields.
    pub(crate) rest: Leftover<'a>,
}

/// How much of a row is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// Only whether there is an answer, and no other fields: enough for the index, and much faster.
    #[default]
    Summary,
    Full,
}

/// An answer in the format of the source.
#[derive(Debug)]
pub(crate) enum Answer<'a> {
    Html(&'a str),
    /// Already converted. Empty in a summary.
    Markdown(Markdown),
    Text(Cow<'a, str>),
}

/// A file that the person uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upload<'a> {
    /// Its name in the export.
    pub(crate) file: Cow<'a, str>,
    /// Its original name.
    pub(crate) name: Option<Cow<'a, str>>,
}

impl<'a> Row<'a> {
    /// Reads an element of a list. Returns `None` if it is no object. Text behind the element is ignored, because the
    /// end of the element is not exact if the file is not valid UTF-8.
    pub(crate) fn read(json: &mut Parser<'a>, mode: ReadMode) -> Result<Option<Self>, JsonError> {
        if !json.enter_object()? {
            return Ok(None);
        }
        let mut row = Self::default();
        let arena = json.arena();
        while let Some(key) = json.key()? {
            match key {
                "title" => row.title = Cow::Borrowed(row.rest.text(key, json)?.unwrap_or_default()),
                "text" => row.text = row.rest.text(key, json)?,
                "time" => row.time = row.rest.time(key, json)?,
                "header" => {
                    let header = row.read_and_keep(key, json, mode)?;
                    row.labels.extend(header.nonempty_text().map(Cow::Borrowed));
                }
                "products" => {
                    let list = row.read_and_keep(key, json, mode)?;
                    row.labels.extend(list.nonempty_text().map(Cow::Borrowed));
                    let names = items(list.raw().unwrap_or_default(), arena).into_iter();
                    row.labels.extend(names.filter_map(Value::nonempty_text).map(Cow::Borrowed));
                }
                "titleUrl" => {
                    let address = row.read_and_keep(key, json, mode)?.nonempty_text();
                    row.add_conversation(address.and_then(conversation_id).map(Cow::Borrowed));
                }
                "details" => row.take_details(key, json)?,
                "subtitles" => row.take_subtitles(key, json)?,
                "safeHtmlItem" => row.take_answers(key, json, mode)?,
                "userInteractions" => row.take_interactions(key, json)?,
                "attachedFiles" | "audioFiles" | "imageFile" => row.take_files(key, json)?,
                _ if mode == ReadMode::Summary => json.skip_value()?,
                "activityControls" | "locationInfos" | "description" => {
                    redact::keep(&mut row.rest, key, json)?;
                }
                _ => redact::keep_unknown(&mut row.rest, key, json)?,
            }
        }
        row.find_prompt();
        Ok(Some(row))
    }

    /// Reads the next value, and keeps it unless the row is a summary.
    fn read_and_keep(
        &mut self,
        key: &'a str,
        json: &mut Parser<'a>,
        mode: ReadMode,
    ) -> Result<Value<'a>, JsonError> {
        match mode {
            ReadMode::Summary => Value::read(json),
            ReadMode::Full => self.rest.keep_and_read(key, json),
        }
    }

    /// Whether the row is one of Gemini's. A row without a product is, if it has a field that only those have.
    pub(crate) fn is_gemini(&self) -> bool {
        if self.labels.is_empty() {
            return !self.answers.is_empty() || self.prompt.is_some() || !self.conversations.is_empty();
        }
        self.labels.iter().any(|label| is_gemini(label))
    }

    /// Whether the product has its English name, or none.
    pub(crate) fn is_english(&self) -> bool {
        let english = |label: &str| matches!(label, "Gemini Apps" | "Gemini" | "Bard");
        self.labels.is_empty() || self.labels.iter().any(|label| english(label))
    }

    pub(crate) fn add_conversation(&mut self, id: Option<Cow<'a, str>>) {
        if let Some(id) = id.filter(|id| !self.conversations.contains(id)) {
            self.conversations.push(id);
        }
    }

    /// Adds an uploaded file, or only its original name if the file is known.
    pub(crate) fn add_upload(&mut self, upload: Upload<'a>) {
        match self.uploads.iter_mut().find(|known| known.file == upload.file) {
            Some(known) => known.name = known.name.take().or(upload.name),
            None => self.uploads.push(upload),
        }
    }

    /// Addresses of conversations; in an older format, prompt and answer.
    fn take_details(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let arena = json.arena();
        let Some(raw) = raw_list(&mut self.rest, key, json)? else { return Ok(()) };
        let mut leftover = Vec::new();
        for item in items(raw, arena) {
            let Some(object) = item.raw().filter(|raw| raw.starts_with('{')) else {
                leftover.extend(json_unless_null(item));
                continue;
            };
            let detail = Object::parse(object, arena);
            self.add_conversation(detail.text("url").and_then(conversation_id).map(Cow::Borrowed));
            match (detail.text("name"), detail.text("value")) {
                (Some("Request"), Some(request)) if self.prompt.is_none() => {
                    self.prompt = Some(Cow::Borrowed(request));
                }
                (Some(_), Some(response)) => self.answers.push(Answer::Text(Cow::Borrowed(response))),
                _ => {
                    leftover.push(without_secrets(object, arena));
                    continue;
                }
            }
            if detail.fields().any(|(key, _)| !matches!(key, "name" | "value")) {
                leftover.push(without_fields(&detail, &["value"], arena));
            }
        }
        keep_items(&mut self.rest, key, &leftover);
        Ok(())
    }

    /// Remarks below the title: the uploaded files and their number, the Gem that was used.
    fn take_subtitles(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let arena = json.arena();
        let Some(raw) = raw_list(&mut self.rest, key, json)? else { return Ok(()) };
        self.rest.add_json(key, &without_secrets(raw, arena));
        for item in items(raw, arena).into_iter().filter_map(Value::raw) {
            let subtitle = Object::parse(item, arena);
            let known = |key: &str| matches!(key, "name" | "value" | "url");
            let unknown = subtitle.fields().filter(|(key, _)| !known(key));
            unknown.for_each(|(key, value)| self.rest.note_unknown(key, value));
            let name = subtitle.text("name");
            match subtitle.text("url") {
                None => {
                    self.subtitle_value = self.subtitle_value.or(subtitle.text("value"));
                    self.remarks.extend(name);
                }
                Some(address) if address.contains("://") => {
                    self.add_conversation(conversation_id(address).map(Cow::Borrowed));
                }
                Some(file) => {
                    let name = name.map(|name| name.trim_start_matches(['-', '\u{2013}', ' ', '\u{a0}']));
                    let name = name.filter(|name| !name.is_empty()).map(Cow::Borrowed);
                    self.add_upload(Upload { file: Cow::Borrowed(file), name });
                }
            }
        }
        Ok(())
    }

    /// `[{html}]`, or in an older format `{htmlValue}`.
    fn take_answers(&mut self, key: &'a str, json: &mut Parser<'a>, mode: ReadMode) -> Result<(), JsonError> {
        let arena = json.arena();
        if mode == ReadMode::Full
            && let Some(html) = json.attempt(single_html)
        {
            self.push_answer(html);
            return Ok(());
        }
        let value = Value::read(json)?;
        let list = match value {
            Value::Raw(raw) if mode == ReadMode::Summary && starts_with_text(raw) => {
                self.answers.push(Answer::Markdown(Markdown::default()));
                return Ok(());
            }
            Value::Raw(raw) if raw.starts_with('[') => items(raw, arena),
            _ => vec![value],
        };
        let mut leftover = Vec::new();
        for item in list {
            match item {
                Value::Text(html) => self.push_answer(html),
                Value::Raw(raw) if raw.starts_with('{') => leftover.extend(self.take_answer(raw, arena)),
                Value::Raw(_) => leftover.extend(json_unless_null(item)),
                Value::Null => {}
            }
        }
        keep_items(&mut self.rest, key, &leftover);
        Ok(())
    }

    /// Takes one answer. Returns its other fields as JSON, if it has any.
    fn take_answer(&mut self, raw: &'a str, arena: &'a Arena) -> Option<Cow<'a, str>> {
        let object = Object::parse(raw, arena);
        let html = object.text("html").or_else(|| object.text("htmlValue"));
        if let Some(html) = html {
            self.push_answer(html);
        }
        let mut has_more = false;
        for (key, value) in object.fields().filter(|(key, _)| !matches!(*key, "html" | "htmlValue")) {
            has_more = true;
            self.rest.note_unknown(key, value);
        }
        has_more.then(|| without_fields(&object, &["html", "htmlValue"], arena))
    }

    fn push_answer(&mut self, html: &'a str) {
        if !html.trim().is_empty() {
            self.answers.push(Answer::Html(html));
        }
    }

    /// An older format: `[{userInteraction: {request, response}}]`, each a text or JSON in a text.
    fn take_interactions(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let arena = json.arena();
        let Some(raw) = raw_list(&mut self.rest, key, json)? else { return Ok(()) };
        let mut leftover = Vec::new();
        for item in items(raw, arena) {
            let object = item.raw().map(|raw| Object::parse(raw, arena)).unwrap_or_default();
            let inner = object.object("userInteraction", arena);
            let inner = if inner.is_empty() { object } else { inner };
            let (request, response) = (inner.text("request"), inner.text("response"));
            if request.is_none() && response.is_none() {
                leftover.extend(json_unless_null(item));
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
            if inner.fields().any(|(key, _)| !matches!(key, "request" | "response")) {
                leftover.push(without_fields(&inner, &["request", "response"], arena));
            }
        }
        keep_items(&mut self.rest, key, &leftover);
        Ok(())
    }

    fn take_files(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<(), JsonError> {
        let arena = json.arena();
        let value = Value::read(json)?;
        let list = match value {
            Value::Raw(raw) if raw.starts_with('[') => items(raw, arena),
            _ => vec![value],
        };
        let mut leftover = Vec::new();
        for item in list {
            match item {
                Value::Text(file) if !file.is_empty() => {
                    self.add_upload(Upload { file: Cow::Borrowed(file), name: None });
                }
                _ => leftover.extend(json_unless_null(item)),
            }
        }
        keep_items(&mut self.rest, key, &leftover);
        Ok(())
    }
}

/// Whether a list begins with an answer that is not empty, as far as its first bytes show.
fn starts_with_text(raw: &str) -> bool {
    const BRACKET: &str = "\\u003c";
    let html = raw.strip_prefix("[{\"html\":\"").unwrap_or_default();
    // Google escapes brackets.
    let tag = html.get(..BRACKET.len()).is_some_and(|start| start.eq_ignore_ascii_case(BRACKET));
    tag || html.starts_with(|c: char| !c.is_whitespace() && !matches!(c, '"' | '\\'))
}

/// The HTML of `[{"html":"…"}]`, which nearly all answers are, decoded at once.
fn single_html<'a>(json: &mut Parser<'a>) -> Result<Option<&'a str>, JsonError> {
    let entered = json.enter_array()? && json.item()? && json.enter_object()?;
    if !entered || json.key()? != Some("html") || json.kind()? != Kind::String {
        return Ok(None);
    }
    let html = json.string()?;
    Ok((json.key()?.is_none() && !json.item()?).then_some(html))
}

/// The id in an address of a conversation: `https://gemini.google.com/app/0123456789abcdef`.
pub(crate) fn conversation_id(address: &str) -> Option<&str> {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
    let path = rest.strip_prefix("gemini.google.com/").or_else(|| rest.strip_prefix("bard.google.com/"))?;
    let path = path.split(['?', '#']).next().unwrap_or_default();
    // `u/1/app/…` where the person has several accounts.
    let path = path.strip_prefix("u/").and_then(|rest| rest.split_once('/')).map_or(path, |(_, path)| path);
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let id = match (parts.next()?, parts.collect::<Vec<_>>().as_slice()) {
        ("app" | "chat", [.., id]) | ("gem", [_, .., id]) => *id,
        _ => return None,
    };
    let is_id_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (id.len() >= 6 && id.bytes().all(is_id_byte)).then_some(id)
}

/// Reads a list that is not empty, as JSON text. Keeps any other value.
fn raw_list<'a>(
    rest: &mut Leftover<'a>,
    key: &'a str,
    json: &mut Parser<'a>,
) -> Result<Option<&'a str>, JsonError> {
    let raw = json.raw_value()?;
    if raw.starts_with('[') {
        return Ok((raw != "[]").then_some(raw));
    }
    if !matches!(raw, "null" | "{}") {
        rest.add_json(key, &without_secrets(raw, json.arena()));
    }
    Ok(None)
}

fn keep_items<'a>(rest: &mut Leftover<'a>, key: &'a str, leftover: &[Cow<'_, str>]) {
    if !leftover.is_empty() {
        rest.add_json(key, &format!("[{}]", leftover.join(",")));
    }
}

fn json_unless_null(value: Value<'_>) -> Option<Cow<'_, str>> {
    (value != Value::Null).then(|| value.json())
}

/// The object as JSON text, without the fields `taken` and without secrets.
fn without_fields<'a>(object: &Object<'a>, taken: &[&str], arena: &'a Arena) -> Cow<'a, str> {
    let mut rest = Leftover::default();
    for (key, value) in object.fields().filter(|(key, _)| !taken.contains(key) && !is_secret(key)) {
        match value {
            Value::Null => {}
            Value::Text(text) => rest.add_text(key, text),
            Value::Raw(raw) => rest.add_json(key, &without_secrets(raw, arena)),
        }
    }
    rest.into_json().unwrap_or(Cow::Borrowed("{}"))
}

/// The prompt or answer inside a text that is JSON, else the text itself.
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
    /// The deepest nesting that is searched.
    const MAX_DEPTH: usize = 8;
    let values = if raw.starts_with('[') {
        items(raw, arena)
    } else {
        let object = Object::parse(raw, arena);
        let named =
            ["prompt", "text", "query", "content", "response", "message", "parts"].map(|key| object.get(key));
        named.into_iter().chain(object.fields().map(|(_, value)| value)).collect()
    };
    values.into_iter().filter(|_| depth < MAX_DEPTH).find_map(|value| match value {
        Value::Text(text) => Some(text).filter(|text| !text.is_empty()),
        Value::Raw(raw) if raw.starts_with(['{', '[']) => first_text(raw, arena, depth + 1),
        Value::Raw(_) | Value::Null => None,
    })
}

#[cfg(test)]
mod tests;
