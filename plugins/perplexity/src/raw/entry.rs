//! A turn of `entries[]`, as the website's interface responds: the answer is in blocks, in the steps of `text`, or, in the
//! response to a data request, next to the question.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Leftover, address,
    json::{Object, Value, items, time_of_text},
};

use super::{
    Turn,
    block::{self, Blocks},
    keep,
    steps::Steps,
    time,
};

/// A token that gives write access to the thread; it is dropped.
const SECRET: &str = "read_write_token";
/// States of an entry without an answer, or without one yet.
const WITHOUT_ANSWER: [&str; 12] = [
    "PENDING",
    "IN_PROGRESS",
    "RUNNING",
    "QUEUED",
    "RESUMING",
    "FAILED",
    "ERROR",
    "BLOCKED",
    "CANCELLED",
    "CANCELED",
    "STOPPED",
    "INCOMPLETE",
];

/// The values of an entry that may have its question or its answer.
#[derive(Default)]
struct Sources<'a> {
    backend: Option<&'a str>,
    /// Used if there is no `query_str`.
    query: Option<&'a str>,
    answer: Option<&'a str>,
    text: Value<'a>,
    blocks: Option<Blocks<'a>>,
}

pub(super) fn read<'a>(index: usize, fields: &Object<'a>, arena: &'a Arena) -> Turn<'a> {
    let mut it = Turn { index, ..Turn::default() };
    let mut sources = Sources::default();
    for (key, value) in fields.fields() {
        match (key, value) {
            (SECRET, _) => {}
            ("uuid", Value::Text(text)) if !text.is_empty() => it.uuid = Some(text),
            ("backend_uuid", Value::Text(text)) if !text.is_empty() => sources.backend = Some(text),
            ("context_uuid", Value::Text(text)) if !text.is_empty() => it.thread = Some(text),
            ("thread_url_slug", Value::Text(text)) if !text.is_empty() => it.slug = Some(text),
            ("thread_title", Value::Text(text)) if !text.is_empty() => it.title = Some(text),
            ("query_str", Value::Text(text)) => it.query = Some(text),
            ("query", Value::Text(text)) => sources.query = Some(text),
            ("answer", Value::Text(text)) => sources.answer = Some(text),
            ("text", value) => sources.text = value,
            ("display_model", Value::Text(text)) if !text.is_empty() => it.model = Some(text),
            ("entry_created_datetime", value) => it.created = time(&mut it.rest, key, value),
            ("entry_updated_datetime", value) => {
                // It is also kept: the time of the thread can differ.
                it.updated = time(&mut Leftover::default(), key, value);
                keep(&mut it.rest, key, value);
            }
            ("attachments", Value::Raw(raw)) if raw.starts_with('[') => read_attachments(raw, &mut it, arena),
            ("blocks", Value::Raw(raw)) if raw.starts_with('[') => {
                sources.blocks = Some(block::read(raw, arena));
            }
            (key, value) => keep(&mut it.rest, key, value),
        }
    }
    set_id(&mut it, sources.backend);
    set_time(&mut it, fields);
    let state = ["status", "query_status"].into_iter().find_map(|key| fields.text(key));
    it.unanswered =
        state.is_some_and(|state| WITHOUT_ANSWER.iter().any(|other| state.eq_ignore_ascii_case(other)));
    set_texts(&mut it, sources, arena);
    it.set_candidates(fields);
    it
}

fn set_id<'a>(it: &mut Turn<'a>, backend: Option<&'a str>) {
    match (it.uuid, backend) {
        (Some(_), Some(backend)) => it.rest.add_text("backend_uuid", backend),
        (uuid, backend) => it.uuid = uuid.or(backend),
    }
}

/// Falls back to the other creation times, then to those of the last change.
fn set_time(it: &mut Turn<'_>, fields: &Object<'_>) {
    let first = |keys: [&str; 2]| {
        let mut values = keys.into_iter().map(|key| fields.get(key));
        values.find_map(|value| Some(time_of_text(value.text().or(value.raw())?)?.0))
    };
    let created = it.created.or_else(|| first(["created_us", "created_at"]));
    it.created = created.or(it.updated).or_else(|| first(["updated_datetime", "updated_us"]));
}

/// Takes the question and the answer from the sources, and keeps the rest of those.
fn set_texts<'a>(it: &mut Turn<'a>, sources: Sources<'a>, arena: &'a Arena) {
    let Sources { backend: _, query, answer, text, blocks } = sources;
    let steps = Steps::read(text, arena);
    it.unread = steps.report_missing.then_some("text");
    let blocks = blocks.unwrap_or_default();
    it.unread = it.unread.or(blocks.unread.then_some("blocks"));
    let not_blank = |text: &&str| !text.trim().is_empty();
    let queries = [it.query, query, steps.query, blocks.query];
    it.query = queries.into_iter().flatten().find(not_blank).or(it.query);
    let text = blocks.answer.or_else(|| answer.filter(not_blank).map(Cow::Borrowed));
    it.answer = text.or_else(|| steps.answer.clone()).filter(|answer| !answer.trim().is_empty());
    it.citations = blocks.citations;
    for citation in &steps.citations {
        if citation.url.is_none() || it.citations.iter().all(|other| other.url != citation.url) {
            it.citations.push(citation.clone());
        }
    }
    for (key, text, emitted) in [("query", query, it.query), ("answer", answer, it.answer.as_deref())] {
        if let Some(text) = text.filter(|text| Some(*text) != emitted) {
            it.rest.add_text(key, text);
        }
    }
    if let Some(remaining) = steps.rest(it.query, it.answer.as_deref(), arena) {
        it.rest.add_json("text", &remaining);
    }
    if let Some(remaining) = blocks.remaining {
        it.rest.add_json("blocks", &remaining);
    }
}

fn read_attachments<'a>(raw: &'a str, turn: &mut Turn<'a>, arena: &'a Arena) {
    let items = items(raw, arena);
    let addresses: Vec<&str> =
        items.iter().filter_map(|item| item.text()).filter(|text| address::is_uri(text)).collect();
    if addresses.len() < items.len() {
        turn.rest.add_json("attachments", raw);
    }
    turn.attachments = addresses;
}
