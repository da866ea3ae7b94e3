//! Reads the messages of version 2 of the program, whose texts, calls and results are in one row, as a message with its parts.

use satchel_importer::{
    Arena, Fields, ImportError, JsonError,
    json::{Value, array_of, parse_items, quote},
};

use crate::{
    message::{Info, PartText},
    part::remove_private,
};

/// Rows that say what was chosen or that an answer has ended. Each answer names its agent and model itself.
const STATES: [&str; 4] = ["agent-switched", "model-switched", "location-switched", "idle"];

/// Whether a row of this type is a message.
pub(crate) fn is_message(kind: &str) -> bool {
    !STATES.contains(&kind)
}

/// The message of a row of the type `kind`; its parts are still in its fields.
pub(crate) fn info<'a>(kind: &'a str, mut fields: Fields<'a>) -> Result<Info<'a>, ImportError> {
    let role = match kind {
        "user" | "synthetic" | "system" | "skill" => "user",
        "assistant" | "shell" | "compaction" => "assistant",
        other => other,
    };
    fields.take("role");
    fields.push("role", Value::Text(role));
    if !matches!(kind, "user" | "assistant") {
        fields.take("type");
        fields.push("type", Value::Text(kind));
    }
    Info::read(fields)
}

/// Takes the parts out of the fields of a message, in the form that earlier versions gave them.
pub(crate) fn take_parts<'a>(kind: &str, info: &mut Info<'a>) -> Result<Vec<PartText<'a>>, ImportError> {
    let fields = &mut info.fields;
    let arena = fields.arena();
    let texts = match kind {
        "assistant" => {
            remove_private(fields)?;
            contents(fields)?
        }
        "shell" => vec![shell(fields)?],
        "compaction" => {
            // Both are for the provider, and repeat what the session has already.
            for key in ["recent", "providerContext", "native", "providerState"] {
                fields.take(key);
            }
            let summary = fields.take_text("summary");
            fields.take("summary");
            fields.push("summary", Value::Raw("true"));
            summary.map(|text| text_part(text, false)).into_iter().collect()
        }
        _ => {
            let synthetic = matches!(kind, "synthetic" | "system" | "skill");
            let text = fields.take_text("text").map(|text| text_part(text, synthetic));
            fields.remove_text("text", "");
            text.into_iter().chain(files(fields)?).collect()
        }
    };
    let part = |(at, text): (usize, String)| PartText { text: arena.alloc_str(&text), key: at.to_string() };
    Ok(texts.into_iter().enumerate().map(part).collect())
}

fn text_part(text: &str, synthetic: bool) -> String {
    let mark = if synthetic { r#","synthetic":true"# } else { "" };
    format!(r#"{{"type":"text","text":{}{mark}}}"#, Value::Text(text).json())
}

/// The texts, thoughts and calls of an answer.
fn contents(fields: &mut Fields<'_>) -> Result<Vec<String>, ImportError> {
    let Some(raw) = fields.get("content").raw().filter(|raw| raw.starts_with('[')) else {
        return Ok(Vec::new());
    };
    fields.take("content");
    let arena = fields.arena();
    let mut parts = Vec::new();
    for value in parse_items(raw, arena)? {
        let Some(mut part) = Fields::of(value, arena)? else {
            // What is no object is reported with the other parts.
            parts.push(value.json().into_owned());
            continue;
        };
        if part.get("type").text() == Some("tool") {
            rename(&mut part, "id", "callID");
            rename(&mut part, "name", "tool");
            tool_state(&mut part)?;
        }
        parts.push(json_of(&part));
    }
    Ok(parts)
}

fn rename<'a>(fields: &mut Fields<'a>, from: &str, to: &'a str) {
    let value = fields.take(from);
    if value != Value::Null {
        fields.push(to, value);
    }
}

/// Turns what a tool returned into a text and files, and its error into a text.
fn tool_state(part: &mut Fields<'_>) -> Result<(), JsonError> {
    let Some(mut state) = part.take_object("state")? else { return Ok(()) };
    let arena = state.arena();
    if let Some(raw) = state.get("content").raw().filter(|raw| raw.starts_with('[')) {
        state.take("content");
        let (mut texts, mut files) = (Vec::new(), Vec::new());
        for value in parse_items(raw, arena)? {
            let own = Fields::of(value, arena)?;
            match own {
                Some(own) if own.get("type").text() == Some("text") => texts.extend(own.get("text").text()),
                Some(own) => files.push(file(own)),
                None => files.push(value.json().into_owned()),
            }
        }
        if !texts.is_empty() {
            state.push("output", Value::Text(arena.alloc_str(&texts.join("\n"))));
        }
        if !files.is_empty() {
            state.push_json("attachments", &array_of(&files));
        }
    }
    if let Some(mut error) = state.take_object("error")? {
        let message = error.take("message");
        let rest = error.into_json();
        if message != Value::Null {
            state.push("error", message);
        }
        if rest != "{}" {
            state.push_json("errorDetails", &rest);
        }
    }
    part.push_json("state", &json_of(&state));
    Ok(())
}

/// The files of a prompt.
fn files(fields: &mut Fields<'_>) -> Result<Vec<String>, JsonError> {
    let Some(raw) = fields.get("files").raw().filter(|raw| raw.starts_with('[')) else {
        return Ok(Vec::new());
    };
    fields.take("files");
    let arena = fields.arena();
    let mut parts = Vec::new();
    for value in parse_items(raw, arena)? {
        parts.push(Fields::of(value, arena)?.map_or_else(|| value.json().into_owned(), file));
    }
    Ok(parts)
}

/// A part with a file, whose bytes or address are in `url`.
fn file(mut fields: Fields<'_>) -> String {
    let arena: &Arena = fields.arena();
    fields.take("type");
    fields.push("type", Value::Text("file"));
    rename(&mut fields, "name", "filename");
    rename(&mut fields, "uri", "url");
    if let Some(data) = fields.get("data").nonempty_text().filter(|_| !fields.has("url")) {
        fields.take("data");
        let mime = fields.get("mime").text().unwrap_or_default();
        fields.push("url", Value::Text(arena.alloc_str(&format!("data:{mime};base64,{data}"))));
    }
    json_of(&fields)
}

/// The JSON text of all fields, also of empty ones: a call without arguments has an empty object.
fn json_of(fields: &Fields<'_>) -> String {
    let mut json = String::from("{");
    for (key, value) in fields.iter_all().filter(|(_, value)| *value != Value::Null) {
        if json.len() > 1 {
            json.push(',');
        }
        quote(key, &mut json);
        json.push(':');
        json.push_str(&value.json());
    }
    json.push('}');
    json
}

/// A command that the person ran, as a call of a tool with its result.
fn shell(fields: &mut Fields<'_>) -> Result<String, JsonError> {
    let arena = fields.arena();
    let mut state = Fields::none(arena);
    let status = fields.get("status").text();
    state.push("status", Value::Text(if status == Some("running") { "running" } else { "completed" }));
    let mut input = Fields::none(arena);
    input.push("command", fields.take("command"));
    state.push_json("input", &json_of(&input));
    if let Some(mut output) = fields.take_object("output")? {
        state.push("output", output.take("output"));
        state.push_json("metadata", &output.into_json());
    }
    let time = fields.object("time")?;
    let mut spent = Fields::none(arena);
    spent.push("start", time.get("created"));
    spent.push("end", time.get("completed"));
    state.push_json("time", &spent.into_json());
    let mut part = Fields::none(arena);
    part.push("type", Value::Text("tool"));
    part.push("tool", Value::Text("shell"));
    rename(fields, "shellID", "callID");
    part.push("callID", fields.take("callID"));
    part.push_json("state", &json_of(&state));
    Ok(json_of(&part))
}
