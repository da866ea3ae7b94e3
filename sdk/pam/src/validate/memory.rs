//! Checks one memory.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{patterns, unicode};
use crate::{
    hash::ContentHash,
    issue::{Issue, Issues, quote},
    jcs::{self, JcsError},
    memory::{Access, Confidence, Memory, MemoryType, Status},
};

/// Writes the path of a value; called only for issues.
pub(super) type Place<'p> = &'p dyn Fn() -> String;

pub(super) fn check(memory: &Memory, place: Place<'_>, issues: &mut Issues) {
    check_text(memory, place, issues);
    check_type(memory, place, issues);
    check_tags(&memory.tags, &|| place() + ".tags", true, issues);
    check_status(memory, place, issues);
    check_times(memory, place, issues);
    check_provenance(memory, place, issues);
    if let Some(confidence) = &memory.confidence {
        check_confidence(confidence, &|| place() + ".confidence", issues);
    }
    if let Some(access) = &memory.access {
        check_access(access, &|| place() + ".access", issues);
    }
    check_metadata(memory, place, issues);
}

fn check_text(memory: &Memory, place: Place<'_>, issues: &mut Issues) {
    issues.reject_empty(&memory.id, "R-4.2", || place() + ".id");
    issues.reject_empty(&memory.content, "R-4.3", || place() + ".content");
    let computed = ContentHash::of(&memory.content);
    if computed != memory.content_hash {
        let path = place() + ".content_hash";
        issues.push(if unicode::depends_on_version(&memory.content) {
            Issue::warning("A-7", path, "differs, but so do Unicode versions on this content")
        } else {
            Issue::error("R-6.2", path, format!("is not that of the content, which is {computed}"))
        });
    }
}

fn check_type(memory: &Memory, place: Place<'_>, issues: &mut Issues) {
    let path = || place() + ".custom_type";
    match (memory.memory_type, memory.custom_type.as_deref()) {
        (MemoryType::Custom, None | Some("")) => {
            issues.error("R-5.2", path(), "is missing or empty, and the type is custom");
        }
        (MemoryType::Custom, Some(_)) | (_, None) => {}
        (named, Some(custom)) => {
            issues.error("R-5.3", path(), format!("is {}, but the type is {named}", quote(custom)));
        }
    }
}

/// Checks the form of tags. Tags of memories must be unique; those of the index and of conversations need not.
pub(super) fn check_tags(tags: &[String], place: Place<'_>, unique: bool, issues: &mut Issues) {
    let mut seen = BTreeSet::new();
    for (index, tag) in tags.iter().enumerate() {
        if !patterns::tag(tag) {
            let message = format!("{} is not lower-case letters, digits, - and _", quote(tag));
            issues.error("R-4.4", format!("{}[{index}]", place()), message);
        }
        if unique && !seen.insert(tag.as_str()) {
            issues.error("R-4.4", format!("{}[{index}]", place()), format!("{} stands twice", quote(tag)));
        }
    }
}

fn check_status(memory: &Memory, place: Place<'_>, issues: &mut Issues) {
    match (memory.status, &memory.temporal.superseded_by) {
        (Status::Superseded, None) => {
            let message = "is missing, and the status is superseded";
            issues.warning("R-7.2", place() + ".temporal.superseded_by", message);
        }
        // A superseded memory may be archived (§7.1) and still name its successor.
        (Status::Superseded | Status::Archived, Some(_)) | (_, None) => {}
        (status, Some(_)) => {
            let message = format!("is set, but the status is {status}");
            issues.warning("R-7.2", place() + ".temporal.superseded_by", message);
        }
    }
}

fn check_times(memory: &Memory, place: Place<'_>, issues: &mut Issues) {
    let times = &memory.temporal;
    let created = times.created_at.micros();
    if times.updated_at.is_some_and(|updated| updated.micros() < created) {
        issues.error("SDK-temporal", place() + ".temporal.updated_at", "is before created_at");
    }
    if let (Some(from), Some(until)) = (times.valid_from, times.valid_until)
        && until.micros() < from.micros()
    {
        issues.error("SDK-temporal", place() + ".temporal.valid_until", "is before valid_from");
    }
    let reinforced = memory.confidence.as_ref().and_then(|confidence| confidence.last_reinforced);
    if reinforced.is_some_and(|reinforced| reinforced.micros() < created) {
        issues.warning("SDK-temporal", place() + ".confidence.last_reinforced", "is before created_at");
    }
}

fn check_provenance(memory: &Memory, place: Place<'_>, issues: &mut Issues) {
    check_platform(&memory.provenance.platform, &|| place() + ".provenance.platform", issues);
    if let Some(extractor) = memory.provenance.extractor.as_deref().filter(|name| !patterns::software(name)) {
        let message = format!("{} is not name/x.y.z", quote(extractor));
        issues.error("R-11.4", place() + ".provenance.extractor", message);
    }
}

pub(super) fn check_platform(platform: &str, place: Place<'_>, issues: &mut Issues) {
    if !patterns::platform(platform) {
        let message = format!("{} is not 2 to 32 lower-case letters, digits, - and _", quote(platform));
        issues.error("R-11.1", place(), message);
    }
    if let Some(product) = patterns::product_of(platform) {
        issues.warning("R-11.3", place(), format!("{platform:?} is a company; the product is {product:?}"));
    }
}

fn check_confidence(confidence: &Confidence, place: Place<'_>, issues: &mut Issues) {
    for (name, score) in [("initial", confidence.initial), ("current", confidence.current)] {
        check_score(score, "R-8.1", &|| format!("{}.{name}", place()), issues);
    }
}

pub(super) fn check_score(score: Option<f64>, rule: &'static str, place: Place<'_>, issues: &mut Issues) {
    if let Some(score) = score.filter(|score| !(0.0..=1.0).contains(score)) {
        issues.error(rule, place(), format!("{score} is not within 0 to 1"));
    }
}

fn check_access(access: &Access, place: Place<'_>, issues: &mut Issues) {
    if !access.exportable {
        let message = "is false, so the memory should not stand in an export";
        issues.warning("R-9.2", place() + ".exportable", message);
    }
    for (index, grant) in access.shared_with.iter().enumerate() {
        let path = || format!("{}.shared_with[{index}]", place());
        issues.reject_empty(&grant.entity, "R-9.1", || path() + ".entity");
        if grant.permissions.is_empty() {
            issues.error("R-9.1", path() + ".permissions", "is empty");
        }
        let different: BTreeSet<_> = grant.permissions.iter().collect();
        if different.len() < grant.permissions.len() {
            issues.error("R-9.1", path() + ".permissions", "names a permission twice");
        }
    }
}

fn check_metadata(memory: &Memory, place: Place<'_>, issues: &mut Issues) {
    let path = |key: &str| format!("{}.metadata.{key}", place());
    match memory.metadata.get("language") {
        Some(Value::String(language)) if !patterns::language(language) => {
            let message = format!("{} is not a language such as pt-BR", quote(language));
            issues.warning("R-10.2", path("language"), message);
        }
        None | Some(Value::Null | Value::String(_)) => {}
        Some(_) => issues.error("R-10.2", path("language"), "is not a string"),
    }
    if !matches!(memory.metadata.get("domain"), None | Some(Value::Null | Value::String(_))) {
        issues.error("R-10.2", path("domain"), "is not a string");
    }
    for (key, value) in &memory.metadata {
        if let Err(problem) = check_canonical(value) {
            issues.error("A-12", path(key), problem.to_string());
        }
    }
}

/// Whether a value has a canonical form. Only numbers and nesting can fail, and most metadata is text.
fn check_canonical(value: &Value) -> Result<(), JcsError> {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
        Value::Number(_) | Value::Array(_) | Value::Object(_) => jcs::to_vec(value).map(drop),
    }
}
