//! The parts of a content, as the Gemini API has them: texts, thoughts, files, calls and results.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Fields, JsonError, Leftover, Source, address,
    bytes::from_base64,
    json::{FieldReader, Value},
};

use crate::digest::{digest, digest_of_json};

/// Bytes of an address.
const MAX_ADDRESS: usize = 4096;
/// Fields of a part that are known and kept.
const KEPT: [&str; 1] = ["videoMetadata"];

/// A call of a tool.
pub(crate) struct Call<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) args: Value<'a>,
    pub(crate) rest: Fields<'a>,
}

/// What a tool answered.
pub(crate) struct Response<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) texts: Vec<Cow<'a, str>>,
    /// Whether the answer is an error.
    pub(crate) error: bool,
    pub(crate) rest: Fields<'a>,
}

/// What is left of a part.
pub(crate) struct Remaining<'a> {
    json: Cow<'a, str>,
    /// The values that are not known.
    unknown: Vec<Value<'a>>,
}

/// What a content holds.
#[derive(Default)]
pub(crate) struct Parts<'a> {
    pub(crate) texts: Vec<Cow<'a, str>>,
    pub(crate) thoughts: Vec<&'a str>,
    pub(crate) attachments: Vec<Attachment<'a>>,
    /// Digests of the files.
    pub(crate) files: Vec<u64>,
    pub(crate) calls: Vec<Call<'a>>,
    pub(crate) responses: Vec<Response<'a>>,
    /// What is left of the parts.
    pub(crate) remaining: Vec<Remaining<'a>>,
    /// Whether the bytes of a file cannot be decoded.
    pub(crate) unreadable: bool,
    decode: bool,
}

impl<'a> Parts<'a> {
    /// Reads a text, a part, or a list of both. `decode` says whether the bytes of files are needed.
    pub(crate) fn read(value: Value<'a>, arena: &'a Arena, decode: bool) -> Result<Self, JsonError> {
        let mut parts = Self { decode, ..Self::default() };
        parts.add_all(value, arena)?;
        Ok(parts)
    }

    /// The texts as they are compared.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// Whether nothing in it is for a message of its own.
    pub(crate) fn is_empty(&self) -> bool {
        let unknown = self.remaining.iter().any(|part| !part.unknown.is_empty());
        self.texts.is_empty() && self.attachments.is_empty() && !unknown
    }

    /// Whether it holds texts and nothing else.
    pub(crate) fn is_text(&self) -> bool {
        let others = self.attachments.len() + self.thoughts.len() + self.calls.len() + self.responses.len();
        !self.texts.is_empty() && others + self.remaining.len() == 0
    }

    /// Takes the results of other calls, if there is one of this call.
    pub(crate) fn take_others(&mut self, call: Option<&str>) -> Vec<Response<'a>> {
        let own = |response: &Response<'a>| response.id.is_none() || response.id == call;
        if !self.responses.iter().any(|response| call.is_some() && response.id == call) {
            return Vec::new();
        }
        let (own, others) = std::mem::take(&mut self.responses).into_iter().partition(own);
        self.responses = own;
        others
    }

    fn add_all(&mut self, value: Value<'a>, arena: &'a Arena) -> Result<(), JsonError> {
        match value {
            Value::Raw(raw) if raw.starts_with('[') => {
                let items = FieldReader::new().item_fields(raw, arena)?;
                items.into_iter().try_for_each(|item| match item.fields? {
                    Some(fields) => self.add_part(fields, item.value),
                    None => self.add(item.value, arena),
                })
            }
            value => self.add(value, arena),
        }
    }

    fn add(&mut self, part: Value<'a>, arena: &'a Arena) -> Result<(), JsonError> {
        match part {
            Value::Null => {}
            Value::Text(text) => self.add_text(text),
            Value::Raw(raw) if raw.starts_with('{') => self.add_part(Fields::parse(raw, arena)?, part)?,
            Value::Raw(_) => self.keep_unknown(part),
        }
        Ok(())
    }

    fn add_part(&mut self, mut fields: Fields<'a>, part: Value<'a>) -> Result<(), JsonError> {
        let thought = fields.get("thought").is_true();
        if matches!(fields.get("thought").raw(), Some("true" | "false")) {
            fields.take("thought");
        }
        fields.take_text("thoughtSignature");
        if fields.get("text").text().is_some() {
            match (fields.take_text("text"), thought) {
                (Some(text), true) => self.thoughts.push(text),
                (text, _) => self.add_text(text.unwrap_or_default()),
            }
        } else if let Some(call) = fields.take_object("functionCall")? {
            self.calls.push(Call::new(call));
        } else if let Some(response) = fields.take_object("functionResponse")? {
            self.add_response(response)?;
        } else if !self.add_file(&mut fields)? {
            // A part with a signature and nothing else is left by a stream.
            if fields.iter().next().is_some() {
                self.keep_unknown(part);
            }
            return Ok(());
        }
        self.keep_rest(&fields);
        Ok(())
    }

    fn add_text(&mut self, text: &'a str) {
        if !text.is_empty() {
            self.texts.push(Cow::Borrowed(text));
        }
    }

    fn add_response(&mut self, mut fields: Fields<'a>) -> Result<(), JsonError> {
        let arena = fields.arena();
        let (texts, error) = response_texts(fields.take("response"), arena)?;
        // The files of an answer may be inside it.
        if fields.get("parts").raw().is_some_and(|raw| raw.starts_with('[')) {
            self.add_all(fields.take("parts"), arena)?;
        }
        let id = fields.take_id("id");
        self.responses.push(Response { id, texts, error, rest: fields });
        Ok(())
    }

    /// Adds the bytes or the address of a file; false if the part has none.
    fn add_file(&mut self, fields: &mut Fields<'a>) -> Result<bool, JsonError> {
        if let Some(mut data) = fields.take_object("inlineData")? {
            let mut attachment = attachment(&mut data);
            let base64 = data.take_text("data").unwrap_or_default();
            self.files.push(digest(base64));
            self.set_bytes(&mut attachment, base64);
            self.attachments.push(attachment);
            self.keep_rest(&data);
            return Ok(true);
        }
        let Some(mut data) = fields.take_object("fileData")? else { return Ok(false) };
        let mut attachment = attachment(&mut data);
        let address =
            data.get("fileUri").text().filter(|uri| uri.len() <= MAX_ADDRESS && address::is_uri(uri));
        self.files.push(digest(address.unwrap_or_default()));
        if let Some(address) = address {
            data.take("fileUri");
            attachment.source = Some(Source::Uri(address::unsigned(address)));
        }
        self.attachments.push(attachment);
        self.keep_rest(&data);
        Ok(true)
    }

    fn set_bytes(&mut self, attachment: &mut Attachment<'a>, base64: &str) {
        if !self.decode {
            return;
        }
        match from_base64(base64) {
            Some(bytes) => {
                attachment.size_bytes = Some(bytes.len() as u64);
                attachment.source = Some(Source::Bytes(bytes.into()));
            }
            None => self.unreadable = true,
        }
    }

    fn keep_unknown(&mut self, part: Value<'a>) {
        self.remaining.push(Remaining { json: part.json(), unknown: vec![part] });
    }

    fn keep_rest(&mut self, fields: &Fields<'a>) {
        let (mut rest, mut unknown) = (Leftover::default(), Vec::new());
        for (key, value) in fields.iter() {
            rest.add_value(key, value);
            if !KEPT.contains(&key) {
                unknown.push(value);
            }
        }
        self.remaining.extend(rest.into_json().map(|json| Remaining { json, unknown }));
    }
}

impl<'a> Remaining<'a> {
    pub(crate) fn digest(&self) -> u64 {
        digest_of_json(&self.json)
    }

    /// Keeps what is left of parts under `key`.
    pub(crate) fn add_to(parts: &[Self], rest: &mut Leftover<'a>, key: &'a str) {
        if parts.is_empty() {
            return;
        }
        let list: Vec<&str> = parts.iter().map(|part| &*part.json).collect();
        rest.add_json(key, &format!("[{}]", list.join(",")));
        parts.iter().flat_map(|part| &part.unknown).for_each(|value| rest.note_unknown(key, *value));
    }
}

impl<'a> Call<'a> {
    /// Takes a call out of its fields.
    pub(crate) fn new(mut fields: Fields<'a>) -> Self {
        let (id, name) = (fields.take_id("id"), fields.take_text("name"));
        Self { id, name, args: fields.take("args"), rest: fields }
    }
}

fn attachment<'a>(fields: &mut Fields<'a>) -> Attachment<'a> {
    let (mime, name) = (fields.take_text("mimeType"), fields.take_text("displayName"));
    Attachment {
        kind: AttachmentKind::of(mime, name),
        name: name.map(Cow::Borrowed),
        mime_type: mime.map(Cow::Borrowed),
        ..Attachment::default()
    }
}

/// The text of an answer, and whether it is an error. An answer is usually an object with an `output` or an `error`; another one is
/// its own JSON text.
fn response_texts<'a>(response: Value<'a>, arena: &'a Arena) -> Result<(Vec<Cow<'a, str>>, bool), JsonError> {
    let Some(raw) = response.raw().filter(|raw| raw.starts_with('{')) else {
        return Ok((text_of(response).into_iter().collect(), false));
    };
    let fields = Fields::parse(raw, arena)?;
    let mut own = fields.iter();
    Ok(match (own.next(), own.next()) {
        (None, _) => (Vec::new(), false),
        (Some((key @ ("output" | "error"), value)), None) => {
            (text_of(value).into_iter().collect(), key == "error")
        }
        _ => (vec![Cow::Borrowed(raw)], fields.has("error")),
    })
}

/// A text, or the JSON text of another value.
fn text_of(value: Value<'_>) -> Option<Cow<'_, str>> {
    match value {
        Value::Null | Value::Text("") => None,
        Value::Text(text) => Some(Cow::Borrowed(text)),
        Value::Raw(raw) => Some(Cow::Borrowed(raw)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &str, check: impl Fn(&Parts<'_>)) {
        let arena = Arena::new();
        check(&Parts::read(Value::Raw(arena.alloc_str(raw)), &arena, true).expect("it is JSON"));
    }

    #[test]
    fn parts_are_told_apart() {
        let raw = r#"["one",{"text":"two"},{"text":"why","thought":true},{"functionCall":{"id":"c","name":"ls","args":{}}},
            {"inlineData":{"mimeType":"image/png","data":"AAEC"}},{"thoughtSignature":"x"},
            {"fileData":{"mimeType":"text/plain","fileUri":"https://example.org/a?sig=x"}},7]"#;
        read(raw, |parts| {
            assert_eq!(
                (parts.texts.as_slice(), parts.thoughts.as_slice()),
                (&["one".into(), "two".into()][..], &["why"][..])
            );
            assert_eq!(parts.calls[0].name, Some("ls"));
            assert_eq!(parts.attachments[0].source, Some(Source::Bytes(vec![0, 1, 2].into())));
            assert_eq!(parts.attachments[1].source, Some(Source::Uri("https://example.org/a".into())));
            assert_eq!(parts.remaining.iter().map(|part| &*part.json).collect::<Vec<_>>(), ["7"]);
        });
    }

    #[test]
    fn answers_are_taken_out_of_their_objects() {
        for (response, text, error) in [
            (r#"{"output":"a"}"#, Some("a"), false),
            (r#"{"error":"b"}"#, Some("b"), true),
            (r#"{"output":[1]}"#, Some("[1]"), false),
            (r#"{"output":"a","more":1}"#, Some(r#"{"output":"a","more":1}"#), false),
            ("{}", None, false),
            ("\"c\"", Some("c"), false),
        ] {
            read(&format!(r#"[{{"functionResponse":{{"id":"c","response":{response}}}}}]"#), |parts| {
                let response = &parts.responses[0];
                assert_eq!((response.texts.first().map(|text| &**text), response.error), (text, error));
            });
        }
    }

    #[test]
    fn bytes_that_are_not_base64_are_reported() {
        read(r#"{"inlineData":{"mimeType":"image/png","data":"A!"}}"#, |parts| assert!(parts.unreadable));
    }
}
