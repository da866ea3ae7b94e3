//! Reads what a file says about its chat, apart from the messages.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{
    Arena, Bundle, Element, ImportError, JsonArray, JsonError, Leftover, Parser, Surveyed,
    json::{Value, parse_items},
    warnings::shortened,
};

use crate::{
    fields::{FIELD_READER, time_of},
    layout,
    message::MAX_LENGTH,
};

/// The list of messages.
pub(crate) const MESSAGES: &str = "messages";
/// Bytes of one field, and of all that are kept. Real ones have some thousand.
const MAX_FIELD: usize = 1024 * 1024;
const MAX_KEPT: usize = 4 * 1024 * 1024;
/// Fields of a chat. Real ones have twenty.
const MAX_FIELDS: usize = 1000;
/// Names in reports about fields that are left out.
const MAX_NAMES: usize = 16;
/// Fields that are known and kept as they are.
const KEPT: [&str; 19] = [
    "assistantLastMessagedAt",
    "clientInput",
    "clientInputFiles",
    "createdAt",
    "disabledPluginTools",
    "lastUsedModel",
    "looseFiles",
    "name",
    "notes",
    "perChatPredictionConfig",
    "pinned",
    "plugins",
    "preset",
    "systemPrompt",
    "tokenCount",
    "usePerChatPredictionConfig",
    "userFilesSizeBytes",
    "userLastMessagedAt",
    "workingDirectoryName",
];
/// The settings of plugins may have keys of services in them.
const PRIVATE: &str = "pluginConfigs";
/// The setting with the system prompt of one chat.
const SYSTEM_PROMPT: &str = "llm.prediction.systemPrompt";
/// The milliseconds between the name of a new file and the time in it.
const JITTER: i64 = 2000;

/// The fields of a file.
#[derive(Debug, Default)]
pub(crate) struct Header {
    pub(crate) name: Option<String>,
    /// Microseconds.
    pub(crate) created: Option<i64>,
    pub(crate) updated: Option<i64>,
    pub(crate) model: Option<String>,
    pub(crate) system: Option<String>,
    /// The names of the fields that were read, and their bytes.
    read: BTreeSet<String>,
    bytes: usize,
    pub(crate) left_out: LeftOut,
    /// A field that is not known and holds natural language.
    pub(crate) unread: Option<String>,
    /// What is kept, as JSON texts.
    kept: BTreeMap<String, String>,
}

/// The fields that cannot be read or are too long.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    /// The first names.
    pub(crate) names: BTreeSet<String>,
    /// How many more there are.
    pub(crate) more: u64,
}

impl LeftOut {
    fn add(&mut self, name: &str) {
        if self.names.len() < MAX_NAMES {
            self.names.insert(shortened(name));
        } else {
            self.more += 1;
        }
    }
}

impl Header {
    /// Reads the fields of the file at `path`.
    pub(crate) fn read(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let mut header = Self::default();
        JsonArray::new(path).members().limit(MAX_LENGTH).survey_all(bundle, |found| {
            match found {
                Surveyed::Element(element) => header.add_member(&element),
                // The list of messages is read one by one.
                Surveyed::TooLong(element) => {
                    if let Some(key) = element.key().filter(|key| *key != MESSAGES) {
                        header.left_out.add(key);
                    }
                }
            }
            Ok(true)
        })?;
        header.system = header.system.take().or_else(|| header.text("systemPrompt"));
        Ok(header)
    }

    fn add_member(&mut self, element: &Element<'_>) {
        let Some(key) = element.key() else { return };
        if key != MESSAGES {
            self.add(key, element);
        } else if !element.text().starts_with('[') && element.text() != "null" {
            self.left_out.add(key);
        }
    }

    fn add(&mut self, key: &str, element: &Element<'_>) {
        let bytes = self.bytes.saturating_add(key.len()).saturating_add(element.text().len());
        let fits = element.text().len() <= MAX_FIELD && bytes <= MAX_KEPT && self.read.len() < MAX_FIELDS;
        if fits && self.read_field(key, element).is_ok() {
            self.read.insert(key.to_owned());
            self.bytes = bytes;
        } else {
            self.left_out.add(key);
        }
    }

    fn read_field(&mut self, key: &str, element: &Element<'_>) -> Result<(), JsonError> {
        let mut json = Parser::new(element.text(), element.arena());
        let value = Value::read(&mut json)?;
        json.end()?;
        match key {
            "name" => self.name = value.nonempty_text().map(ToOwned::to_owned),
            "createdAt" => self.created = time_of(value),
            "userLastMessagedAt" | "assistantLastMessagedAt" => {
                self.updated = self.updated.max(time_of(value));
            }
            "lastUsedModel" => self.model = model(value, element.arena())?,
            "perChatPredictionConfig" => self.system = own_system_prompt(value, element.arena())?,
            PRIVATE => return Ok(()),
            _ => {}
        }
        if !KEPT.contains(&key) && self.unread.is_none() {
            let mut rest = Leftover::default();
            rest.note_unknown("", value);
            self.unread = rest.unread().map(|_| key.to_owned());
        }
        // A name and a prompt have a place of their own.
        if key != "name" && !matches!(value, Value::Null | Value::Text("") | Value::Raw("{}" | "[]")) {
            self.kept.insert(key.to_owned(), value.json().into_owned());
        }
        Ok(())
    }

    /// The text that was kept under a key.
    fn text(&self, key: &str) -> Option<String> {
        let arena = Arena::new();
        let kept = self.kept.get(key)?;
        let text = Parser::new(kept, &arena).string().ok()?;
        Some(text.to_owned()).filter(|text| !text.is_empty())
    }

    /// The id of the chat: the time at which it began, which stays when the file is renamed. A copy with the time of its original is known by
    /// its name.
    pub(crate) fn id(&self, path: &str) -> Option<String> {
        let begun = self.created.map(|micros| micros / 1000);
        let named = layout::named_time(path);
        let is_copy = |named: &i64| begun.is_none_or(|begun| named.abs_diff(begun) > JITTER.unsigned_abs());
        named.filter(is_copy).or(begun).map(|time| time.to_string())
    }

    /// Adds what is kept to the metadata of the chat.
    pub(crate) fn metadata(&self, folder: &str, title_source: Option<&str>) -> Option<Cow<'static, str>> {
        let mut rest = Leftover::default();
        // The last value of a key counts, and a field of the chat has no other place.
        if !folder.is_empty() {
            rest.add_text("folder", folder);
        }
        if let Some(source) = title_source {
            rest.add_text("title_source", source);
        }
        for (key, json) in &self.kept {
            let is_prompt = key == "systemPrompt" && self.text(key) == self.system;
            if !is_prompt {
                rest.add_json(key, json);
            }
        }
        rest.into_json().map(|json| Cow::Owned(json.into_owned()))
    }
}

fn model<'a>(value: Value<'a>, arena: &'a Arena) -> Result<Option<String>, JsonError> {
    let Some(model) = FIELD_READER.of(value, arena)? else { return Ok(None) };
    let names = ["identifier", "indexedModelIdentifier"];
    Ok(names.into_iter().find_map(|key| model.get(key).nonempty_text()).map(ToOwned::to_owned))
}

/// The system prompt among the settings of a chat.
fn own_system_prompt<'a>(value: Value<'a>, arena: &'a Arena) -> Result<Option<String>, JsonError> {
    let Some(config) = FIELD_READER.of(value, arena)? else { return Ok(None) };
    let Some(raw) = config.get("fields").raw() else { return Ok(None) };
    for item in parse_items(raw, arena)? {
        let Some(field) = FIELD_READER.of(item, arena)? else { continue };
        if field.get("key").text() == Some(SYSTEM_PROMPT) {
            return Ok(field.get("value").nonempty_text().map(ToOwned::to_owned));
        }
    }
    Ok(None)
}
