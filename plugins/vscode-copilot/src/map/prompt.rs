//! What the person wrote, with the context that was attached to it.

use satchel_importer::{Arena, Fields, JsonError, Role, json::Value, warnings::shortened};

use super::{Draft, Exchange, Warning, attachments};
use crate::fields::{FIELD_READER, take_time};
/// Fields that are known and kept as they are.
const KEPT: [&str; 24] = [
    "attachedContext",
    "attempt",
    "confirmation",
    "editedFileEvents",
    "hiddenFromTranscript",
    "isCompleteAddedRequest",
    "isHidden",
    "isSystemInitiated",
    "locationData",
    "modeInfo",
    "modelId",
    "origin",
    "permissionLevel",
    "providerRequestId",
    "requestHiddenFromTranscript",
    "requestId",
    "requestSource",
    "shouldBeRemovedOnSend",
    "systemInitiatedLabel",
    "terminalExecutionId",
    "timestamp",
    "userSelectedTools",
    "variableData",
    "workingSet",
];
/// Fields that hide a request from the person.
const HIDING: [&str; 2] = ["hiddenFromTranscript", "requestHiddenFromTranscript"];

/// Maps a request without its answer.
pub(super) fn map<'a>(mut fields: Fields<'a>, found: &mut Exchange<'a>) -> Result<Draft<'a>, JsonError> {
    // The program itself asks the model, for instance when a command in a terminal has ended.
    let written = !fields.get("isSystemInitiated").is_true();
    let hidden = HIDING.iter().any(|key| fields.get(key).is_true());
    let mut draft = Draft::new(if written { Role::User } else { Role::System });
    draft.message.created_at = take_time(&mut fields, "timestamp");
    found.model = fields.get("modelId").nonempty_text();
    let message = message(&mut fields, &mut draft)?;
    if let Some(text) = message.filter(|text| !text.is_empty()) {
        draft.set_text(text);
        found.words = Some(text).filter(|_| written && !hidden);
    }
    attachments::take(&mut fields, &mut draft, found)?;
    fields.take("modelId");
    for (key, _) in fields.iter().filter(|(key, _)| !KEPT.contains(key)) {
        found.warnings.push(Warning::Once(format!(
            "its field {:?} is unknown; it is kept in raw_metadata",
            shortened(key)
        )));
    }
    fields.add_to(&mut draft.rest, &KEPT);
    if hidden {
        draft.rest.add_bool("hidden", true);
    }
    Ok(draft)
}

/// The text of a message: of versions until 2023 a text, since then an object with its parts.
pub(super) fn text_of<'a>(message: Value<'a>, arena: &'a Arena) -> Option<&'a str> {
    match message {
        Value::Text(text) => Some(text),
        Value::Raw(_) => {
            let fields = FIELD_READER.of(message, arena).ok().flatten()?;
            fields.get("text").text().or_else(|| fields.get("message").text())
        }
        Value::Null => None,
    }
}

/// Takes the message. Parts that are plain text repeat it; the others name agents, commands, tools and files, and are kept.
fn message<'a>(fields: &mut Fields<'a>, draft: &mut Draft<'a>) -> Result<Option<&'a str>, JsonError> {
    const KEY: &str = "message";
    let arena = fields.arena();
    if let Some(text) = fields.get(KEY).text() {
        fields.take(KEY);
        return Ok(Some(text));
    }
    let Some(mut inside) = fields.take_object(KEY)? else { return Ok(None) };
    let text = text_of_fields(&mut inside);
    let plain = |part: &Value<'a>| {
        let part = FIELD_READER.of(*part, arena).ok().flatten();
        part.is_some_and(|part| {
            let own = part.get("text").text();
            part.get("kind") == Value::Text("text")
                && own.is_some_and(|own| text.is_some_and(|text| text.contains(own)))
        })
    };
    if let Some(raw) = inside.get("parts").raw().filter(|raw| raw.starts_with('['))
        && FIELD_READER.items(raw, arena)?.iter().all(plain)
    {
        inside.take("parts");
    }
    let rest = inside.into_rest(&["parts"]);
    if let Some(field) = rest.unread() {
        draft.rest.mark_unread(field);
    }
    if let Some(json) = rest.into_json() {
        draft.rest.add_json(KEY, &json);
    }
    Ok(text)
}

fn text_of_fields<'a>(fields: &mut Fields<'a>) -> Option<&'a str> {
    let key = if fields.get("text").text().is_some() { "text" } else { "message" };
    let text = fields.get(key).text()?;
    fields.take(key);
    Some(text)
}
