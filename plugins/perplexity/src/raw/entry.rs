//! A turn of the shape `entries[]`, as the site's own interface answers: the answer stands in blocks, in the steps of `text`, or
//! side by side with the question in what the site sends on a request for data.

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

/// Whoever holds it may write to the thread.
const SECRET: &str = "read_write_token";
/// States in which an entry has no answer, or none yet.
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

/// Where an entry may hold its answer.
#[derive(Default)]
struct Found<'a> {
    backend: Option<&'a str>,
    /// `query`, where there is no `query_str`.
    query: Option<&'a str>,
    answer: Option<&'a str>,
    text: Value<'a>,
    blocks: Option<Blocks<'a>>,
}

pub(super) fn read<'a>(place: usize, fields: &Object<'a>, arena: &'a Arena) -> Turn<'a> {
    let mut it = Turn { place, ..Turn::default() };
    let mut found = Found::default();
    for (key, value) in fields.fields() {
        match (key, value) {
            (SECRET, _) => {}
            ("uuid", Value::Text(text)) if !text.is_empty() => it.uuid = Some(text),
            ("backend_uuid", Value::Text(text)) if !text.is_empty() => found.backend = Some(text),
            ("context_uuid", Value::Text(text)) if !text.is_empty() => it.thread = Some(text),
            ("thread_url_slug", Value::Text(text)) if !text.is_empty() => it.slug = Some(text),
            ("thread_title", Value::Text(text)) if !text.is_empty() => it.title = Some(text),
            ("query_str", Value::Text(text)) => it.query = Some(text),
            ("query", Value::Text(text)) => found.query = Some(text),
            ("answer", Value::Text(text)) => found.answer = Some(text),
            ("text", value) => found.text = value,
            ("display_model", Value::Text(text)) if !text.is_empty() => it.model = Some(text),
            ("entry_created_datetime", value) => it.created = time(&mut it.rest, key, value),
            ("entry_updated_datetime", value) => {
                // The thread's own time may be another one.
                it.updated = time(&mut Leftover::default(), key, value);
                keep(&mut it.rest, key, value);
            }
            ("attachments", Value::Raw(raw)) if raw.starts_with('[') => attach(raw, &mut it, arena),
            ("blocks", Value::Raw(raw)) if raw.starts_with('[') => {
                found.blocks = Some(block::read(raw, arena));
            }
            (key, value) => keep(&mut it.rest, key, value),
        }
    }
    set_id(&mut it, found.backend);
    set_time(&mut it, fields);
    let state = ["status", "query_status"].into_iter().find_map(|key| fields.text(key));
    it.unanswered =
        state.is_some_and(|state| WITHOUT_ANSWER.iter().any(|other| state.eq_ignore_ascii_case(other)));
    settle(&mut it, found, arena);
    it.set_hints(fields);
    it
}

fn set_id<'a>(it: &mut Turn<'a>, backend: Option<&'a str>) {
    match (it.uuid, backend) {
        (Some(_), Some(backend)) => it.rest.add_text("backend_uuid", backend),
        (uuid, backend) => it.uuid = uuid.or(backend),
    }
}

/// Without a time of its own that of its creation in microseconds or as the data request writes it, else that of its last change.
fn set_time(it: &mut Turn<'_>, fields: &Object<'_>) {
    let other = |key: &str| {
        let value = fields.get(key);
        Some(time_of_text(value.text().or(value.raw())?)?.0)
    };
    it.created = it
        .created
        .or_else(|| other("created_us"))
        .or_else(|| other("created_at"))
        .or(it.updated)
        .or_else(|| other("updated_datetime"))
        .or_else(|| other("updated_us"));
}

/// Takes question and answer from where they are, and keeps what else stood there.
fn settle<'a>(it: &mut Turn<'a>, found: Found<'a>, arena: &'a Arena) {
    let Found { backend: _, query, answer, text, blocks } = found;
    let steps = Steps::read(text, arena);
    it.unread = steps.report_lost.then_some("text");
    let blocks = blocks.unwrap_or_default();
    it.unread = it.unread.or(blocks.unread.then_some("blocks"));
    let says = |text: Option<&'a str>| text.filter(|text| !text.trim().is_empty());
    let asked = says(it.query).or(says(query)).or(says(steps.query)).or(says(blocks.query));
    it.query = asked.or(it.query);
    let told = blocks.answer.or_else(|| says(answer).map(Cow::Borrowed));
    it.answer = told.or_else(|| steps.answer.clone()).filter(|answer| !answer.trim().is_empty());
    it.citations = blocks.citations;
    for citation in &steps.citations {
        if citation.url.is_none() || it.citations.iter().all(|other| other.url != citation.url) {
            it.citations.push(citation.clone());
        }
    }
    for (key, text, said) in [("query", query, it.query), ("answer", answer, it.answer.as_deref())] {
        if let Some(text) = text.filter(|text| Some(*text) != said) {
            it.rest.add_text(key, text);
        }
    }
    if let Some(left) = steps.left(it.query, it.answer.as_deref(), arena) {
        it.rest.add_json("text", &left);
    }
    if let Some(kept) = blocks.kept {
        it.rest.add_json("blocks", &kept);
    }
}

fn attach<'a>(raw: &'a str, turn: &mut Turn<'a>, arena: &'a Arena) {
    let items = items(raw, arena);
    let addresses: Vec<&str> =
        items.iter().filter_map(|item| item.text()).filter(|text| address::is_uri(text)).collect();
    if addresses.len() < items.len() {
        turn.rest.add_json("attachments", raw);
    }
    turn.attachments = addresses;
}
