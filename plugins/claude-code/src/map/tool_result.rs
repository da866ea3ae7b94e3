//! `toolUseResult`: what a tool answered, in a form of its own for each tool.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Attachment, AttachmentKind, Leftover, Source,
    json::{Object, Value},
};

use super::{SessionContext, blocks::Parts};
use crate::{
    layout,
    raw::{KeepUnexpected as _, Line},
};

/// The field that names the file with the full output.
const PERSISTED: &str = "persistedOutputPath";
/// The name before the path of that file in the text.
const SAVED_TO: &str = "Full output saved to: ";

/// Keeps what the result of a tool says beside its text, and attaches its full output.
pub(super) fn add<'a>(
    line: &mut Line<'a>,
    parts: &mut Parts<'a>,
    context: &SessionContext<'_>,
    files: &mut Vec<String>,
    arena: &'a Arena,
) {
    let result = std::mem::take(&mut line.tool_result);
    let mut stated = parts.results.iter().find_map(|text| saved_to(text));
    match result {
        Value::Null => {}
        // The text once more, usually behind `Error: `.
        Value::Text(text) => {
            if !parts.results.iter().any(|result| !result.is_empty() && text.ends_with(result)) {
                line.rest.keep_unexpected("toolUseResult", result);
            }
        }
        Value::Raw(raw) if raw.starts_with('{') => {
            let object = Object::parse(raw, arena);
            stated = object.text(PERSISTED).or(stated);
            let rest = without_repetitions(&object, parts, arena);
            line.rest.add_json("toolUseResult", &rest);
        }
        Value::Raw(raw) => line.rest.add_json("toolUseResult", raw),
    }
    attach(stated, parts, context, files);
}

/// Attaches the file with the full output, if the export has it.
fn attach(
    stated: Option<&str>,
    parts: &mut Parts<'_>,
    context: &SessionContext<'_>,
    files: &mut Vec<String>,
) {
    let Some(path) = stated.map(|stated| layout::tool_result(context.path, stated)) else { return };
    let Some(entry) = context.bundle.entry(&path) else { return };
    let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
    parts.attachments.push(Attachment {
        kind: AttachmentKind::of(None, Some(&name)),
        name: Some(name.into()),
        size_bytes: Some(entry.size),
        source: Some(Source::Path(path.clone().into())),
        ..Attachment::default()
    });
    files.push(path);
}

/// The path that a shortened output names.
fn saved_to(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(SAVED_TO)?;
    rest.lines().next().map(str::trim).filter(|path| !path.is_empty())
}

/// The object without texts that are those of the message, and without the bytes of pictures that are attached to it.
fn without_repetitions<'a>(object: &Object<'a>, parts: &Parts<'a>, arena: &'a Arena) -> String {
    let mut rest = Leftover::default();
    let attached = !parts.attachments.is_empty();
    let results: BTreeSet<&str> = parts.results.iter().map(|result| result.trim_end()).collect();
    for (key, value) in object.fields() {
        match value {
            Value::Null => {}
            Value::Text(text) if !text.is_empty() && results.contains(text.trim_end()) => {}
            Value::Raw(raw) if attached && key == "file" && raw.starts_with('{') => {
                rest.add_json(key, &without_bytes(&Object::parse(raw, arena)));
            }
            _ => rest.add_json(key, &value.json()),
        }
    }
    rest.into_json().map_or_else(|| "{}".to_owned(), Cow::into_owned)
}

fn without_bytes(object: &Object<'_>) -> String {
    let mut rest = Leftover::default();
    for (key, value) in object.fields().filter(|(key, _)| *key != "base64") {
        rest.add_json(key, &value.json());
    }
    rest.into_json().map_or_else(|| "{}".to_owned(), Cow::into_owned)
}
