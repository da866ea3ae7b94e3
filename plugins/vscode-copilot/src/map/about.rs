//! Facts about a whole answer: its result, tokens, model, times and sources.

use std::borrow::Cow;

use satchel_importer::{
    Citation, Fields, JsonError,
    address::{is_uri, unsigned},
    json::Value,
};

use super::{Draft, Exchange, answer::FIELDS};
use crate::{
    fields::{FIELD_READER, take_time, time},
    uri,
};

/// Fields that describe the program's agent; they are the same in every session.
const AGENT: [&str; 13] = [
    "description",
    "disambiguation",
    "extensionDisplayName",
    "extensionPublisherId",
    "isCore",
    "isDefault",
    "isDynamic",
    "locations",
    "metadata",
    "modes",
    "publisherDisplayName",
    "slashCommands",
    "when",
];
/// Fields of the result of an answer that are known and kept.
const RESULT: [&str; 7] = ["details", "errorDetails", "metadata", "nextQuestion", "timings", "type", "usage"];
/// Fields of the metadata of a result that are known and kept.
const METADATA: [&str; 20] = [
    "agentId",
    "cacheKey",
    "codeBlocks",
    "command",
    "maxToolCallsExceeded",
    "modelMessageId",
    "outputTokens",
    "promptTokens",
    "renderedGlobalContext",
    "renderedUserMessage",
    "resolvedModel",
    "responseId",
    "sessionId",
    "summaries",
    "summary",
    "toolCallResults",
    "toolCallRounds",
    "toolInputRetry",
    "usage",
    "userMessage",
];
/// Milliseconds: a larger number is a time, not a duration. Until 2026 a log had the time of the answer in the place of a duration.
const TIMES_FROM: u64 = 1_000_000_000_000;
/// Quotations and references of one answer that become citations; the metadata keeps all of them.
const MAX_CITATIONS: usize = 1_000;
/// Adds the facts about the whole answer to its first message, which stays the first one when the answer grows.
pub(super) fn keep<'a>(
    mut fields: Fields<'a>,
    result: Fields<'a>,
    metadata: Fields<'a>,
    drafts: &mut [Draft<'a>],
) -> Result<(), JsonError> {
    let arena = fields.arena();
    let Some(first) = drafts.first_mut() else { return Ok(()) };
    first.message.citations = citations(&fields)?;
    let (metadata, mut result) = (metadata.into_rest(&METADATA), result.into_rest(&RESULT));
    if metadata.unread().or(result.unread()).is_some() {
        first.rest.mark_unread("result");
    }
    if let Some(json) = metadata.into_json() {
        result.add_json("metadata", &json);
    }
    if let Some(json) = result.into_json() {
        first.rest.add_json("result", &json);
    }
    if let Some(mut agent) = fields.take_object("agent")? {
        agent.remove(&AGENT);
        if let Some(json) = agent.into_rest(&[]).into_json() {
            fields.push("agent", Value::Raw(arena.alloc_str(&json)));
        }
    }
    fields.add_to(&mut first.rest, &FIELDS);
    Ok(())
}

/// The time of the answer. Also notes the newest one.
pub(super) fn times<'a>(fields: &mut Fields<'a>, found: &mut Exchange<'a>) -> Option<i64> {
    let waited = fields.get("timeSpentWaiting");
    let of_log = waited.as_u64().filter(|number| *number > TIMES_FROM).and_then(|_| time(waited));
    let created = take_time(fields, "responseTimestamp").or(of_log);
    let state = FIELD_READER.of(fields.get("modelState"), fields.arena()).ok().flatten();
    let completed = state.and_then(|state| time(state.get("completedAt")));
    found.newest = found.newest.max(created).max(completed);
    created
}

/// The model: the one that was chosen, or the one that the program chose.
pub(super) fn model<'a>(
    fields: &Fields<'a>,
    metadata: &Fields<'a>,
    chosen: Option<&'a str>,
) -> Option<&'a str> {
    let resolved = fields.get("actualModelId").nonempty_text();
    let resolved = resolved.or_else(|| metadata.get("resolvedModel").nonempty_text());
    match chosen {
        Some(chosen) if !chosen.ends_with("/auto") => Some(chosen),
        chosen => resolved.or(chosen),
    }
}

/// The tokens that the model wrote: of all rounds, or else of the last one.
pub(super) fn tokens(fields: &Fields<'_>, result: &Fields<'_>, metadata: &Fields<'_>) -> Option<u64> {
    let usage = |from: &Fields<'_>| {
        let usage = FIELD_READER.of(from.get("usage"), from.arena()).ok().flatten()?;
        usage.get("completionTokens").as_u64()
    };
    let all = fields.get("completionTokens").as_u64();
    all.or_else(|| usage(fields)).or_else(|| usage(result)).or_else(|| metadata.get("outputTokens").as_u64())
}

/// Code that the answer quotes, and pages that it refers to.
fn citations<'a>(fields: &Fields<'a>) -> Result<Vec<Citation<'a>>, JsonError> {
    let arena = fields.arena();
    let mut found = Vec::new();
    let web = |value: Value<'a>| {
        let address =
            uri::of(value, arena).filter(|address| address.starts_with("http") && is_uri(address))?;
        Some(Cow::Owned(unsigned(&address).into_owned()))
    };
    let list = |key: &str| {
        fields.get(key).raw().map_or_else(|| Ok(Vec::new()), |raw| FIELD_READER.items(raw, arena))
    };
    for item in list("codeCitations")? {
        let Some(item) = FIELD_READER.of(item, arena)? else { continue };
        found.push(Citation {
            title: item.get("license").nonempty_text().map(Cow::Borrowed),
            url: web(item.get("value")),
            snippet: item.get("snippet").nonempty_text().map(Cow::Borrowed),
        });
    }
    for item in list("contentReferences")? {
        let url = FIELD_READER.of(item, arena)?.and_then(|item| web(item.get("reference")));
        found.extend(url.map(|url| Citation { url: Some(url), ..Citation::default() }));
    }
    found.retain(|citation| *citation != Citation::default());
    found.truncate(MAX_CITATIONS);
    Ok(found)
}
