//! Parts of an answer that are neither the model's words nor calls: what the program says or asks, and parts of unknown types.

use satchel_importer::{Fields, JsonError, Role, json::Value, warnings::shortened};

use super::{Draft, Exchange, Warning, markdown};
use crate::fields::FIELD_READER;
/// Types that hold no message: steps of the page and states of the program.
const LEFT_OUT: [&str; 14] = [
    "clearToPreviousToolInvocation",
    "codeblockUri",
    "disabledClaudeHooks",
    "externalEdits",
    "mcpServersStarting",
    "mcpServersStartingSerialized",
    "mcpServersStartingSlow",
    "prepareToolInvocation",
    "progressMessage",
    "progressTask",
    "progressTaskResult",
    "progressTaskSerialized",
    "undoStop",
    "voiceProgress",
];
/// Types of messages of the program.
const NOTICES: [&str; 18] = [
    "autoModeResolution",
    "command",
    "confirmation",
    "elicitation",
    "elicitation2",
    "elicitationSerialized",
    "extensions",
    "hook",
    "info",
    "move",
    "planReview",
    "pullRequest",
    "questionCarousel",
    "systemNotification",
    "treeData",
    "usage",
    "usedContext",
    "warning",
];
/// Fields with the words of a notice, in the order in which they are shown.
const WORDS: [&str; 8] =
    ["title", "subtitle", "message", "content", "planContent", "description", "stopReason", "systemMessage"];

/// Whether parts of this type are left out.
pub(super) fn is_left_out(kind: &str) -> bool {
    LEFT_OUT.contains(&kind)
}

/// Maps a part to a message of the program.
pub(super) fn notice<'a>(
    kind: Option<&'a str>,
    mut fields: Fields<'a>,
    found: &mut Exchange<'a>,
) -> Result<Draft<'a>, JsonError> {
    let arena = fields.arena();
    let mut draft = Draft::new(Role::System);
    let known = match kind {
        Some(kind) => NOTICES.contains(&kind),
        // Until 2025 a tree of files had no type.
        None => {
            fields.get("treeData") != Value::Null
                || (fields.get("label") != Value::Null && fields.get("uri") != Value::Null)
        }
    };
    let mut words = Vec::new();
    if known {
        for key in WORDS {
            if let Some(text) = markdown(fields.get(key), arena).filter(|text| !text.trim().is_empty()) {
                fields.take(key);
                words.push(text);
            }
        }
        words.extend(questions(&fields)?);
    } else {
        let name = kind.map_or_else(|| "none".to_owned(), |kind| format!("{:?}", shortened(kind)));
        found
            .warnings
            .push(Warning::Once(format!("a part of an answer has an unknown type: {name}; it is kept")));
    }
    if !words.is_empty() {
        draft.set_text(words.join("\n\n"));
    }
    let names: Vec<&str> = if known { fields.iter().map(|(key, _)| key).collect() } else { vec!["kind"] };
    let rest = fields.into_rest(&names);
    if rest.unread().is_some() {
        draft.rest.mark_unread("part");
    }
    if let Some(json) = rest.into_json() {
        draft.rest.add_json("part", &json);
    }
    Ok(draft)
}

/// The titles of the questions that the person was asked. The answers are kept.
fn questions<'a>(fields: &Fields<'a>) -> Result<Vec<&'a str>, JsonError> {
    let arena = fields.arena();
    let mut titles = Vec::new();
    if let Some(raw) = fields.get("questions").raw() {
        for question in FIELD_READER.items(raw, arena)? {
            let question = FIELD_READER.of(question, arena)?;
            titles.extend(question.and_then(|question| question.get("title").nonempty_text()));
        }
    }
    Ok(titles)
}
