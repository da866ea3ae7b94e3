//! Repairs the records of a foreign document so that one of our exports may contain them.
//!
//! A value that breaks a rule of PAM is corrected if it can be, and the original is kept beside it under
//! [`ORIGINAL_KEY`], so that a memory is not lost because of a bad label.

use std::collections::BTreeSet;

use satchel_pam::{
    conversation::ConversationHeader,
    hash::ContentHash,
    issue::{Issue, Severity},
    jcs,
    memory::{Memory, MemoryType},
    raw::RawObject,
    validate,
};
use serde::Serialize;
use serde_json::{Map, Value};

/// The key of `metadata` or `raw_metadata` under which the original values are kept, by field name.
pub const ORIGINAL_KEY: &str = "pam:original";
/// The PAM rule for `metadata.language`. The official SDK does not check it, but PAM's schema rejects values that break
/// it.
const LANGUAGE: &str = "R-10.2";
/// Replaces a platform name that cannot be corrected, and a missing custom type.
const UNKNOWN: &str = "unknown";
/// PAM's limits for the length of a platform name.
const PLATFORM_LENGTH: std::ops::RangeInclusive<usize> = 2..=32;

/// The original values of the fields that were corrected.
#[derive(Default)]
struct Originals(Map<String, Value>);

impl Originals {
    fn record(&mut self, field: &str, value: &impl Serialize) {
        self.0.insert(field.to_owned(), serde_json::to_value(value).unwrap_or_default());
    }

    /// Returns the messages for the user about these fields.
    fn notes(&self) -> Vec<String> {
        self.0
            .iter()
            .map(|(field, value)| {
                format!("{field} was {}; it is kept under {ORIGINAL_KEY:?}", excerpt(value))
            })
            .collect()
    }
}

/// The longest original that a note shows, in characters.
const EXCERPT_CHARACTERS: usize = 80;

fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(EXCERPT_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Corrects `memory` and returns what was wrong.
///
/// # Errors
/// A description of the fault, if it cannot be corrected: the memory cannot be imported.
pub fn memory(memory: &mut Memory, path: &str) -> Result<Vec<String>, String> {
    let mut originals = Originals::default();
    if memory.temporal.superseded_by.as_ref().is_some_and(|id| *id == memory.id) {
        originals.record("temporal.superseded_by", &memory.temporal.superseded_by.take());
    }
    let issues = validate::memory(memory, path);
    if issues.iter().any(|issue| issue.rule == LANGUAGE && issue.severity == Severity::Warning) {
        repair_language(memory, &mut originals);
    }
    if first_error(&issues).is_none() && originals.0.is_empty() {
        return Ok(Vec::new());
    }
    repair_text(memory, &mut originals);
    repair_times(memory, &mut originals);
    repair_provenance(memory, &mut originals);
    repair_scores(memory, &mut originals);
    repair_metadata(memory, &mut originals);
    let notes = originals.notes();
    if !originals.0.is_empty() {
        let stored = memory.metadata.entry(ORIGINAL_KEY).or_insert_with(|| Value::Object(Map::new()));
        match stored {
            Value::Object(stored) => stored.extend(originals.0),
            other => *other = Value::Object(originals.0),
        }
    }
    match first_error(&validate::memory(memory, path)) {
        None => Ok(notes),
        Some(issue) => Err(format!("{} {}", issue.path, issue.message)),
    }
}

/// Replaces a language that PAM's schema rejects by its usual spelling if there is one, and removes it otherwise.
fn repair_language(memory: &mut Memory, originals: &mut Originals) {
    let Some(given) = memory.metadata.remove("language") else { return };
    let usual = given.as_str().map(|text| {
        let parts: Vec<String> = text
            .split(['-', '_'])
            .enumerate()
            .map(|(at, part)| match (at, part.len()) {
                (0, _) => part.to_ascii_lowercase(),
                (_, 2) => part.to_ascii_uppercase(),
                _ => part
                    .char_indices()
                    .map(|(at, c)| if at == 0 { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                    .collect(),
            })
            .collect();
        Value::String(parts.join("-"))
    });
    originals.record("metadata.language", &given);
    memory.metadata.extend(usual.map(|usual| ("language".to_owned(), usual)));
    if validate::memory(memory, "").iter().any(|issue| issue.rule == LANGUAGE) {
        memory.metadata.remove("language");
    }
}

fn first_error(issues: &[Issue]) -> Option<&Issue> {
    issues.iter().find(|issue| issue.severity == Severity::Error)
}

fn repair_text(memory: &mut Memory, originals: &mut Originals) {
    let computed = ContentHash::of(&memory.content);
    if computed != memory.content_hash {
        originals.record("content_hash", &memory.content_hash.to_string());
        memory.content_hash = computed;
    }
    if memory.memory_type == MemoryType::Custom {
        if memory.custom_type.as_deref().is_none_or(str::is_empty) {
            originals.record("custom_type", &memory.custom_type);
            memory.custom_type = Some(UNKNOWN.to_owned());
        }
    } else if let Some(custom) = memory.custom_type.take() {
        originals.record("custom_type", &custom);
    }
    let mut seen = BTreeSet::new();
    let valid: Vec<String> =
        memory.tags.iter().filter(|one| valid_tag(one) && seen.insert(one.as_str())).cloned().collect();
    if valid != memory.tags {
        originals.record("tags", &memory.tags);
        memory.tags = valid;
    }
}

fn repair_times(memory: &mut Memory, originals: &mut Originals) {
    let times = &mut memory.temporal;
    if let Some(updated) = times.updated_at.filter(|updated| updated.micros() < times.created_at.micros()) {
        originals.record("temporal.updated_at", &updated);
        times.updated_at = None;
    }
    if let (Some(from), Some(until)) = (times.valid_from, times.valid_until)
        && until.micros() < from.micros()
    {
        originals.record("temporal.valid_from", &from);
        originals.record("temporal.valid_until", &until);
        (times.valid_from, times.valid_until) = (None, None);
    }
}

fn repair_provenance(memory: &mut Memory, originals: &mut Originals) {
    let provenance = &mut memory.provenance;
    let name = valid_platform(&provenance.platform);
    if name != provenance.platform {
        originals.record("provenance.platform", &provenance.platform);
        provenance.platform = name;
    }
    if let Some(extractor) = provenance.extractor.take_if(|name| !valid_software(name)) {
        originals.record("provenance.extractor", &extractor);
    }
}

fn repair_scores(memory: &mut Memory, originals: &mut Originals) {
    if let Some(confidence) = &mut memory.confidence {
        for (field, score) in
            [("confidence.initial", &mut confidence.initial), ("confidence.current", &mut confidence.current)]
        {
            if let Some(score) = score.take_if(|score| !(0.0..=1.0).contains(score)) {
                originals.record(field, &score);
            }
        }
    }
    if let Some(access) = &mut memory.access {
        let original = access.shared_with.clone();
        for grant in &mut access.shared_with {
            let mut seen = BTreeSet::new();
            grant.permissions.retain(|permission| seen.insert(*permission));
        }
        access.shared_with.retain(|grant| !grant.entity.is_empty() && !grant.permissions.is_empty());
        if access.shared_with != original {
            originals.record("access.shared_with", &original);
        }
    }
}

fn repair_metadata(memory: &mut Memory, originals: &mut Originals) {
    for key in ["language", "domain"] {
        let wrong_type = memory.metadata.get(key).is_some_and(|value| !value.is_string() && !value.is_null());
        if wrong_type && let Some(value) = memory.metadata.remove(key) {
            originals.record(&format!("metadata.{key}"), &value.to_string());
        }
    }
    // A value without a canonical form would prevent the checksum over all memories of the document.
    for (key, value) in &mut memory.metadata {
        if jcs::to_vec(value).is_err() {
            originals.record(&format!("metadata.{key}"), &value.to_string());
            *value = Value::String(value.to_string());
        }
    }
}

/// Corrects the header of a conversation and returns what was wrong.
pub fn header(header: &mut ConversationHeader) -> Vec<String> {
    let mut originals = Originals::default();
    let name = valid_platform(&header.provider.name);
    if name != header.provider.name {
        originals.record("provider.name", &header.provider.name);
        header.provider.name = name;
    }
    if !header.tags.iter().all(|one| valid_tag(one)) {
        originals.record("tags", &header.tags);
        header.tags.retain(|one| valid_tag(one));
    }
    if let Some(metadata) = &mut header.import_metadata
        && let Some(importer) = metadata.importer.take_if(|name| !valid_software(name))
    {
        originals.record("import_metadata.importer", &importer);
    }
    let notes = originals.notes();
    if !originals.0.is_empty() {
        let raw: RawObject = header.raw_metadata.take().unwrap_or_default();
        header.raw_metadata = Some(raw.with(ORIGINAL_KEY, &Value::Object(originals.0)));
    }
    notes
}

/// Converts `name` to a valid PAM platform name.
fn valid_platform(name: &str) -> String {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    if PLATFORM_LENGTH.contains(&name.len()) && name.bytes().all(fits) {
        return name.to_owned();
    }
    let lower = name.trim().to_lowercase();
    let slug: String = lower
        .chars()
        .map(|c| if c.is_ascii() && fits(c as u8) { c } else { '-' })
        .take(*PLATFORM_LENGTH.end())
        .collect();
    let slug = slug.trim_matches('-');
    if PLATFORM_LENGTH.contains(&slug.len()) { slug.to_owned() } else { UNKNOWN.to_owned() }
}

/// Returns whether `text` matches PAM's pattern for a tag.
fn valid_tag(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(['_', '-'])
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}

/// Returns whether `text` matches PAM's pattern for the name and version of a program.
fn valid_software(text: &str) -> bool {
    let Some((name, version)) = text.split_once('/') else { return false };
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    !name.is_empty()
        && name.bytes().all(word)
        && version.split('.').count() == 3
        && version.split('.').all(digits)
}
