//! Checks of single records: a wrong identifier rejects the record, a wrong descriptive value is only left out.
//!
//! A record whose id, role or content cannot be used is dropped with a reason. An optional value that breaks a rule (a
//! time outside the calendar, a tag with other characters, a confidence of 7) is left out with a warning: it would help
//! nobody to lose a whole conversation because of a bad tag.

mod item;

use satchel_pam::{
    conversation::Attachment,
    record::{
        AccountRecord, AttachmentRecord, Claim, ConversationRecord, Edit, EmbeddingRecord, Evidence,
        MessageRecord, RelationRecord, Source,
    },
};

use crate::{
    imports::Paths,
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
pub(super) struct Fault(pub(super) String);

/// Notes about values that were left out of a record. The caller adds the locator, and only if there is a note.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<String>);

impl Notes {
    pub(crate) fn left_out(&mut self, field: &str, problem: &str) {
        self.0.push(format!("{field} {problem}; it is left out"));
    }

    /// Adds a note about a value that was changed while it was read.
    pub(crate) fn tell(&mut self, note: String) {
        self.0.push(note);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_messages(self) -> Vec<String> {
        self.0
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
            self.0.push(format!("the list of tags goes on after the first {MAX_TAGS}; the rest is left out"));
            tags.truncate(MAX_TAGS);
        }
    }
}

/// Checks a required id.
fn required_id(field: &str, id: &str) -> Result<(), Fault> {
    id_problem(id).map_or(Ok(()), |problem| Err(Fault(format!("its {field} {problem}"))))
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

pub(super) fn conversation(record: &mut ConversationRecord, notes: &mut Notes) -> Result<(), Fault> {
    record.locator = text::cleaned(std::mem::take(&mut record.locator));
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

pub(super) fn message(record: &mut MessageRecord, paths: &Paths, notes: &mut Notes) -> Result<(), Fault> {
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

fn source_problem(source: &Source, paths: &Paths) -> Option<String> {
    match source {
        Source::Path(path) if !paths.contains(path) => {
            Some(format!("(\"{}\") is no file of this export", text::clean(path)))
        }
        Source::Bytes(bytes) if bytes.len() > MAX_INLINE_BYTES => {
            Some(format!("has {} bytes, more than {MAX_INLINE_BYTES}", bytes.len()))
        }
        Source::Path(_) | Source::Bytes(_) | Source::Uri(_) => None,
    }
}

pub(super) fn evidence(record: &mut Evidence, notes: &mut Notes) -> Result<(), Fault> {
    record.locator = text::cleaned(std::mem::take(&mut record.locator));
    required_id("id", &record.id)?;
    notes.optional_id("account", &mut record.account);
    notes.optional_id("conversation", &mut record.conversation);
    notes.optional_id("message", &mut record.message);
    notes.time("at", &mut record.at);
    match &mut record.claim {
        Claim::Statement(statement) => item::check(statement, notes),
        Claim::Snapshot { series, items } => {
            required_id("series", series)?;
            items.iter_mut().try_for_each(|member| item::check(member, notes))
        }
        Claim::Edit { log, sequence: _, edit } => {
            required_id("log", log)?;
            match edit {
                Edit::Add(new) | Edit::Replace { line: _, target: _, item: new } => item::check(new, notes),
                Edit::Remove { line: None, target: None } => {
                    Err(Fault("it removes a memory but names neither its line nor its content".to_owned()))
                }
                Edit::Remove { .. } => Ok(()),
            }
        }
    }
}

pub(super) fn relation(record: &mut RelationRecord, notes: &mut Notes) -> Result<(), Fault> {
    required_id("source", &record.source)?;
    required_id("target", &record.target)?;
    notes.confidence("confidence", &mut record.confidence);
    notes.time("created_at", &mut record.created_at);
    Ok(())
}

/// Checks an account. Addresses and telephone numbers are contact data that the program does not need, so they are not
/// kept.
pub(super) fn account(record: &mut AccountRecord, notes: &mut Notes) -> Result<(), Fault> {
    record.locator = text::cleaned(std::mem::take(&mut record.locator));
    required_id("id", &record.id)?;
    if is_contact(&record.id) {
        return Err(Fault("its id is a mail address or a telephone number".to_owned()));
    }
    notes.label("name", &mut record.name);
    if record.name.as_deref().is_some_and(is_contact) {
        notes.left_out("name", "is a mail address or a telephone number");
        record.name = None;
    }
    record.name = record.name.take().map(text::cleaned).filter(|name| !name.trim().is_empty());
    Ok(())
}

/// Returns whether a text is a mail address or a telephone number.
fn is_contact(text: &str) -> bool {
    let mail = text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    mail || (text.starts_with('+') && digits > 6 && !text.bytes().any(|byte| byte.is_ascii_alphabetic()))
}

pub(super) fn embedding(record: &mut EmbeddingRecord, notes: &mut Notes) -> Result<(), Fault> {
    required_id("memory", &record.memory)?;
    required_id("model", &record.model)?;
    notes.time("created_at", &mut record.created_at);
    let Some(vector) = &record.vector else { return Ok(()) };
    if u32::try_from(vector.len()) != Ok(record.dimensions) {
        let (length, dimensions) = (vector.len(), record.dimensions);
        return Err(Fault(format!("its vector has {length} numbers, but it states {dimensions}")));
    }
    if vector.iter().all(|number| number.is_finite()) {
        Ok(())
    } else {
        Err(Fault("its vector holds a number that is not finite".to_owned()))
    }
}

#[cfg(test)]
mod tests;
