//! What a file says about its thread, apart from the messages.

use std::borrow::Cow;

use satchel_importer::{
    Bundle, Element, Fields, ImportError, JsonArray, Leftover, Parser, RecordKind, Sink, Surveyed,
    json::{Value, array_of},
    warnings::shortened,
};

use crate::fields::{FIELD_READER, time_of};

/// Bytes of a file about a thread, and of a field of an export. Real ones have some thousand.
const MAX_LENGTH: usize = 4 * 1024 * 1024;
/// Bytes of all fields of an export beside its messages.
const MAX_FIELDS: usize = 4 * MAX_LENGTH;
/// Fields that are named when they are left out.
const MAX_NAMED: usize = 16;
/// Bytes of an id. A longer one counts as absent.
const MAX_ID: usize = 256;
/// The name of a thread that has none yet.
const PLACEHOLDER: &str = "New Thread";
/// The model of a thread for which none was chosen.
const ANY_MODEL: &str = "*";
/// Fields that are known and kept as they are.
const KEPT: [&str; 14] = [
    "assistants",
    "created",
    "created_at",
    "exported_at",
    "id",
    "isFavorite",
    "metadata",
    "model",
    "object",
    "order",
    "provider",
    "title",
    "updated",
    "updated_at",
];

/// A thread.
#[derive(Debug, Default)]
pub(crate) struct Header {
    pub(crate) id: Option<String>,
    pub(crate) title: Option<String>,
    /// Microseconds.
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) model: Option<String>,
    pub(crate) system: Option<String>,
    /// The first message that the person sees, if there are versions of it.
    pub(crate) active_root: Option<String>,
    /// The fields of an export that cannot be read or are too long, shortened.
    pub(crate) left_out: Vec<String>,
    /// Number of further ones.
    pub(crate) more_left_out: usize,
    /// Bytes of what is kept.
    bytes: usize,
    /// A field that is not known and holds natural language.
    pub(crate) unread: Option<String>,
    /// What is kept, as JSON texts.
    kept: Vec<(String, String)>,
}

impl Header {
    /// Reads the file of a thread. One that cannot be read is reported, and the messages are read nevertheless.
    pub(crate) fn of_thread(bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<Self, ImportError> {
        let mut found = None;
        let file = JsonArray::new(path).limit(MAX_LENGTH).kind(RecordKind::File);
        let outcome = file.each(bundle, sink, |element, _| {
            if !element.text().starts_with('{') {
                return Err(ImportError::malformed("it is not an object"));
            }
            if found.is_some() {
                return Err(ImportError::malformed("the file has another thread already"));
            }
            let mut json = element.parser();
            let fields = FIELD_READER.read(&mut json)?;
            json.end()?;
            found = Some(Self::read(fields)?);
            Ok(())
        })?;
        if outcome.elements == 0 && outcome.cut.is_none() {
            sink.skip(RecordKind::File, path, "the file is empty")?;
        }
        Ok(found.unwrap_or_default())
    }

    /// Reads the fields of an export beside its messages.
    pub(crate) fn of_export(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let mut header = Self::default();
        JsonArray::new(path).members().limit(MAX_LENGTH).survey_all(bundle, |found| {
            let (Surveyed::Element(element) | Surveyed::TooLong(element)) = found;
            if let Some(key) = element.key().filter(|key| *key != "messages")
                && !(element.whole() && header.add_member(key, &element))
            {
                header.leave_out(key);
            }
            Ok(true)
        })?;
        Ok(header)
    }

    /// Adds a field of an export; false if it cannot be read or does not fit.
    fn add_member(&mut self, key: &str, element: &Element<'_>) -> bool {
        let mut json = Parser::new(element.text(), element.arena());
        let Ok(value) = Value::read(&mut json) else { return false };
        if json.end().is_err() {
            return false;
        }
        match key {
            "title" => self.title = title(value),
            "id" => self.id = id(value),
            _ => {
                self.bytes += key.len() + element.text().len();
                if self.bytes > MAX_FIELDS {
                    self.bytes -= key.len() + element.text().len();
                    return false;
                }
                self.keep(key, value);
            }
        }
        true
    }

    fn leave_out(&mut self, key: &str) {
        if self.left_out.len() < MAX_NAMED {
            self.left_out.push(shortened(key));
        } else {
            self.more_left_out += 1;
        }
    }

    fn read(mut fields: Fields<'_>) -> Result<Self, ImportError> {
        let mut header = Self {
            id: id(fields.get("id")),
            title: title(fields.get("title")),
            created: time_of(fields.get("created")).or(time_of(fields.get("created_at"))),
            updated: time_of(fields.get("updated")).or(time_of(fields.get("updated_at"))),
            ..Self::default()
        };
        header.read_assistants(&mut fields)?;
        let metadata = fields.object("metadata")?;
        header.active_root = metadata.get("activeRootId").nonempty_text().map(crate::message::key_of);
        if header.id.is_some() {
            fields.take("id");
        }
        if header.title.is_some() {
            fields.take("title");
        }
        for (key, value) in fields.iter() {
            header.keep(key, value);
        }
        Ok(header)
    }

    /// Takes the instructions of the first assistant, which is the only one that the program uses.
    fn read_assistants(&mut self, fields: &mut Fields<'_>) -> Result<(), ImportError> {
        let Some(list) = fields.take_array("assistants")? else { return Ok(()) };
        let mut kept = Vec::with_capacity(list.len());
        for (at, value) in list.into_iter().enumerate() {
            let Some(mut assistant) = FIELD_READER.of(value, fields.arena())? else {
                kept.push(value.json().into_owned());
                continue;
            };
            if at == 0 {
                let model = assistant.object("model")?.get("id").nonempty_text();
                let model = model.or(assistant.get("model").nonempty_text());
                self.model = model.filter(|model| *model != ANY_MODEL).map(ToOwned::to_owned);
                self.system = assistant.take_text("instructions").map(ToOwned::to_owned);
            }
            kept.push(assistant.into_json());
        }
        fields.push_json("assistants", &array_of(&kept));
        Ok(())
    }

    fn keep(&mut self, key: &str, value: Value<'_>) {
        if !KEPT.contains(&key) && self.unread.is_none() {
            let mut rest = Leftover::default();
            rest.note_unknown("", value);
            self.unread = rest.unread().map(|_| key.to_owned());
        }
        let usual = key == "object" && value.text() == Some("thread");
        if !usual && !matches!(value, Value::Null | Value::Text("") | Value::Raw("{}" | "[]")) {
            self.kept.push((key.to_owned(), value.json().into_owned()));
        }
    }

    /// What is kept, with what else is to say about the thread.
    pub(crate) fn metadata(&self, more: &[(&str, &str)]) -> Option<Cow<'static, str>> {
        let mut rest = Leftover::default();
        for (key, json) in &self.kept {
            rest.add_json(key, json);
        }
        for (key, text) in more {
            rest.add_text(key, text);
        }
        rest.into_json().map(|json| Cow::Owned(json.into_owned()))
    }
}

fn id(value: Value<'_>) -> Option<String> {
    value.nonempty_text().filter(|id| id.len() <= MAX_ID).map(ToOwned::to_owned)
}

fn title(value: Value<'_>) -> Option<String> {
    value.nonempty_text().filter(|title| *title != PLACEHOLDER).map(ToOwned::to_owned)
}
