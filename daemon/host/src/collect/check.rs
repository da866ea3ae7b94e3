//! Checks of single records: a wrong identifier rejects the record, a wrong descriptive value is only left out.
//!
//! A record whose id, role or content cannot be used is dropped with a reason. An optional value that breaks a rule (a
//! time outside the calendar, a tag with other characters, a confidence of 7) is left out with a warning: it would help
//! nobody to lose a whole conversation because of a bad tag.

use satchel_pam::{
    conversation::Attachment,
    memory::MemoryType,
    record::{
        AccountRecord, AttachmentRecord, Claim, ConfidenceRecord, ConversationRecord, Edit, EmbeddingRecord,
        Evidence, Item, MessageRecord, RelationRecord, Source,
    },
};

use crate::{
    imports::PathIndex,
    limits::{KIB, MIB},
    text,
};

/// Longest id or key, in bytes. UUIDs have 36 bytes, and ids are keys in the store.
const MAX_ID_BYTES: usize = KIB;
/// Longest short text, in bytes: a model, a media type, the name of a list.
const MAX_LABEL_BYTES: usize = 4 * KIB;
/// Largest number of tags of one record; each is a key in the store.
const MAX_TAGS: usize = 1_000;
/// Largest attachment inside a record, in bytes.
const MAX_INLINE_BYTES: usize = 16 * MIB;
/// Microseconds of 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z, the range that RFC 3339 can write.
const FIRST_TIME: i64 = -62_135_596_800_000_000;
const LAST_TIME: i64 = 253_402_300_799_999_999;

/// The reason for dropping a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rejection(pub(super) String);

/// Notes about values that were left out of a record. The caller adds the locator, and only if there is a note.
#[derive(Debug, Default)]
pub(crate) struct RecordNotes {
    messages: Vec<String>,
    /// The first message about a value that breaks a rule of the interface.
    breach: Option<String>,
}

impl RecordNotes {
    pub(crate) fn left_out(&mut self, field: &str, problem: &str) {
        self.add_breach(format!("{field} {problem}; it is left out"));
    }

    /// Adds a note about a value that was changed while it was read.
    pub(crate) fn add(&mut self, note: String) {
        self.messages.push(note);
    }

    fn add_breach(&mut self, note: String) {
        self.breach.get_or_insert_with(|| note.clone());
        self.messages.push(note);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns the first message about a value that breaks a rule of the interface.
    pub(super) fn breach(&self) -> Option<&str> {
        self.breach.as_deref()
    }

    pub(crate) fn into_messages(self) -> Vec<String> {
        self.messages
    }

    /// Checks an optional id.
    fn optional_id(&mut self, field: &str, id: &mut Option<String>) {
        if let Some(problem) = id.as_deref().and_then(id_problem) {
            self.left_out(field, &problem);
            *id = None;
        }
    }

    fn label(&mut self, field: &str, label: &mut Option<String>) {
        if label.as_ref().is_some_and(|label| label.len() > MAX_LABEL_BYTES) {
            self.left_out(field, &format!("is longer than {MAX_LABEL_BYTES} bytes"));
            *label = None;
        }
    }

    fn time(&mut self, field: &str, time: &mut Option<i64>) {
        if time.is_some_and(|time| !(FIRST_TIME..=LAST_TIME).contains(&time)) {
            self.left_out(field, "lies outside the years 1 to 9999");
            *time = None;
        }
    }

    fn confidence(&mut self, field: &str, confidence: &mut Option<f64>) {
        // NaN is in no range.
        if confidence.is_some_and(|confidence| !(0.0..=1.0).contains(&confidence)) {
            self.left_out(field, "does not lie between 0 and 1");
            *confidence = None;
        }
    }

    fn tags(&mut self, tags: &mut Vec<String>) {
        tags.retain(|tag| {
            let fits = is_tag(tag);
            if !fits {
                self.left_out(
                    "a tag",
                    &format!("(\"{}\") has other characters than a-z, 0-9, _ and -", text::clean(tag)),
                );
            }
            fits
        });
        if tags.len() > MAX_TAGS {
            self.add_breach(format!(
                "the list of tags goes on after the first {MAX_TAGS}; the rest is left out"
            ));
            tags.truncate(MAX_TAGS);
        }
    }
}

/// Checks a required id.
fn required_id(field: &str, id: &str) -> Result<(), Rejection> {
    id_problem(id).map_or(Ok(()), |problem| Err(Rejection(format!("its {field} {problem}"))))
}

fn id_problem(id: &str) -> Option<String> {
    if id.is_empty() {
        Some("is empty".to_owned())
    } else if id.len() > MAX_ID_BYTES {
        Some(format!("is longer than {MAX_ID_BYTES} bytes"))
    } else {
        None
    }
}

/// Returns whether `tag` is a PAM tag: `[a-z0-9][a-z0-9_-]*`.
fn is_tag(tag: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    tag.len() <= MAX_ID_BYTES
        && tag.bytes().next().is_some_and(plain)
        && tag.bytes().all(|byte| plain(byte) || matches!(byte, b'_' | b'-'))
}

pub(super) fn conversation(
    record: &mut ConversationRecord,
    notes: &mut RecordNotes,
) -> Result<(), Rejection> {
    record.locator = text::clean_owned(std::mem::take(&mut record.locator));
    required_id("id", &record.id)?;
    notes.optional_id("provider_conversation_id", &mut record.provider_conversation_id);
    notes.optional_id("account", &mut record.account);
    notes.optional_id("current", &mut record.current);
    notes.label("export_format_version", &mut record.export_format_version);
    notes.label("model", &mut record.model);
    notes.time("created_at", &mut record.created_at);
    notes.time("updated_at", &mut record.updated_at);
    notes.tags(&mut record.tags);
    Ok(())
}

pub(super) fn message(
    record: &mut MessageRecord,
    paths: &PathIndex,
    notes: &mut RecordNotes,
) -> Result<(), Rejection> {
    required_id("id", &record.id)?;
    notes.optional_id("provider_message_id", &mut record.provider_message_id);
    notes.optional_id("parent", &mut record.parent);
    notes.label("model", &mut record.model);
    notes.time("created_at", &mut record.created_at);
    for AttachmentRecord { attachment, source } in &mut record.attachments {
        let Attachment { kind: _, name: _, mime_type, size_bytes: _, reference: _, provider_id } = attachment;
        notes.label("mime_type", mime_type);
        notes.optional_id("provider_id", provider_id);
        if let Some(problem) = source.as_ref().and_then(|source| source_problem(source, paths)) {
            notes.left_out("the source of an attachment", &problem);
            *source = None;
        }
    }
    Ok(())
}

fn source_problem(source: &Source, paths: &PathIndex) -> Option<String> {
    match source {
        Source::Path(path) if !paths.contains(path) => {
            Some(format!("(\"{}\") is not a file of this export", text::clean(path)))
        }
        Source::Bytes(bytes) if bytes.len() > MAX_INLINE_BYTES => {
            Some(format!("has {} bytes, more than {MAX_INLINE_BYTES}", bytes.len()))
        }
        Source::Path(_) | Source::Bytes(_) | Source::Uri(_) => None,
    }
}

pub(super) fn evidence(record: &mut Evidence, notes: &mut RecordNotes) -> Result<(), Rejection> {
    record.locator = text::clean_owned(std::mem::take(&mut record.locator));
    required_id("id", &record.id)?;
    notes.optional_id("account", &mut record.account);
    notes.optional_id("conversation", &mut record.conversation);
    notes.optional_id("message", &mut record.message);
    notes.time("at", &mut record.at);
    match &mut record.claim {
        Claim::Statement(statement) => check_item(statement, notes),
        Claim::Snapshot { series, items } => {
            required_id("series", series)?;
            items.iter_mut().try_for_each(|member| check_item(member, notes))
        }
        Claim::Edit { log, sequence: _, edit } => {
            required_id("log", log)?;
            match edit {
                Edit::Add(new) | Edit::Replace { line: _, target: _, item: new } => check_item(new, notes),
                Edit::Remove { line: None, target: None } => Err(Rejection(
                    "it removes a memory but names neither its line nor its content".to_owned(),
                )),
                Edit::Remove { .. } => Ok(()),
            }
        }
    }
}

/// Checks an item of evidence.
fn check_item(item: &mut Item, notes: &mut RecordNotes) -> Result<(), Rejection> {
    if item.content.trim().is_empty() {
        return Err(Rejection("its content is empty".to_owned()));
    }
    custom_type(item, notes)?;
    notes.optional_id("key", &mut item.key);
    notes.optional_id("scope", &mut item.scope);
    notes.optional_id("superseded_by", &mut item.superseded_by);
    notes.label("embedding_ref", &mut item.embedding_ref);
    notes.tags(&mut item.tags);
    notes.time("created_at", &mut item.created_at);
    notes.time("updated_at", &mut item.updated_at);
    notes.time("valid_from", &mut item.valid_from);
    notes.time("valid_until", &mut item.valid_until);
    if let Some(confidence) = &mut item.confidence {
        let ConfidenceRecord { initial, current, decay_model: _, last_reinforced } = confidence;
        notes.confidence("confidence.initial", initial);
        notes.confidence("confidence.current", current);
        notes.time("confidence.last_reinforced", last_reinforced);
    }
    Ok(())
}

fn custom_type(item: &mut Item, notes: &mut RecordNotes) -> Result<(), Rejection> {
    let custom = item.memory_type == MemoryType::Custom;
    let named = item.custom_type.as_ref().is_some_and(|name| !name.trim().is_empty());
    match (custom, named) {
        (true, false) => return Err(Rejection("its type is custom, but it does not say which".to_owned())),
        (false, true) => {
            notes.left_out("custom_type", "is set, but the type is not custom");
            item.custom_type = None;
        }
        (false, false) => item.custom_type = None,
        (true, true) => notes.label("custom_type", &mut item.custom_type),
    }
    if custom && item.custom_type.is_none() {
        return Err(Rejection("its custom type is too long".to_owned()));
    }
    Ok(())
}

pub(super) fn relation(record: &mut RelationRecord, notes: &mut RecordNotes) -> Result<(), Rejection> {
    required_id("source", &record.source)?;
    required_id("target", &record.target)?;
    notes.confidence("confidence", &mut record.confidence);
    notes.time("created_at", &mut record.created_at);
    Ok(())
}

/// Checks an account. Addresses and telephone numbers are contact data that the program does not need, so they are not
/// kept.
pub(super) fn account(record: &mut AccountRecord, notes: &mut RecordNotes) -> Result<(), Rejection> {
    record.locator = text::clean_owned(std::mem::take(&mut record.locator));
    required_id("id", &record.id)?;
    if is_contact(&record.id) {
        return Err(Rejection("its id is a mail address or a telephone number".to_owned()));
    }
    notes.label("name", &mut record.name);
    if record.name.as_deref().is_some_and(is_contact) {
        notes.left_out("name", "is a mail address or a telephone number");
        record.name = None;
    }
    record.name = record.name.take().map(text::clean_owned).filter(|name| !name.trim().is_empty());
    Ok(())
}

/// Returns whether a text is a mail address or a telephone number.
fn is_contact(text: &str) -> bool {
    let mail = text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    mail || (text.starts_with('+') && digits > 6 && !text.bytes().any(|byte| byte.is_ascii_alphabetic()))
}

pub(super) fn embedding(record: &mut EmbeddingRecord, notes: &mut RecordNotes) -> Result<(), Rejection> {
    required_id("memory", &record.memory)?;
    required_id("model", &record.model)?;
    notes.time("created_at", &mut record.created_at);
    let Some(vector) = &record.vector else { return Ok(()) };
    if u32::try_from(vector.len()) != Ok(record.dimensions) {
        let (length, dimensions) = (vector.len(), record.dimensions);
        return Err(Rejection(format!("its vector has {length} numbers, but it states {dimensions}")));
    }
    if vector.iter().all(|number| number.is_finite()) {
        Ok(())
    } else {
        Err(Rejection("its vector contains a number that is not finite".to_owned()))
    }
}

#[cfg(test)]
mod tests;
