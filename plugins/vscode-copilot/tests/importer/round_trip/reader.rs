//! Reads sessions without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README that both apply:
//! - a turn is a request; its answer is one turn, whatever the number of its messages;
//! - requests that the person took back are a branch;
//! - fences around edits, and steps of the page, have no words;
//! - requests that the receipt reports as skipped are ignored.

use satchel_importer::testkit::round_trip::{
    Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_text,
};
use serde_json::Value;

/// Both directions.
pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "vscode-copilot", read_file: from_source, ignored: &[], read_stored: from_stored };

/// The version of sessions from a database. `database.rs` compares them with the same sessions in files.
const DATABASE: &str = "2023.05";

/// The kind and the text of each part.
type Parts = Vec<(String, String)>;

fn part(kind: &str, text: impl Into<String>) -> (String, String) {
    (kind.to_owned(), text.into())
}

// From the file.

/// The session after all changes.
fn session(file: &SourceFile<'_>) -> Option<Value> {
    if let Some(whole) = file.json().filter(|whole| !whole["kind"].is_number()) {
        return Some(whole);
    }
    let mut state = None;
    for line in file.text.lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        if line["kind"] == 0 {
            state = Some(line["v"].clone());
        } else if let Some(state) = &mut state {
            change(state, &line);
        }
    }
    state
}

/// Applies a line; one that leads nowhere changes nothing.
fn change(state: &mut Value, line: &Value) -> Option<()> {
    let path = line["k"].as_array()?;
    let pointer = |path: &[Value]| -> String {
        let step =
            |step: &Value| format!("/{}", step.as_str().map_or_else(|| step.to_string(), ToOwned::to_owned));
        path.iter().map(step).collect()
    };
    let (last, above) = path.split_last()?;
    let place = state.pointer_mut(&pointer(above))?;
    match (line["kind"].as_u64()?, last) {
        (1, Value::String(key)) => place[key] = line["v"].clone(),
        (1, key) => *place.get_mut(usize::try_from(key.as_u64()?).ok()?)? = line["v"].clone(),
        (2, _) => {
            let key = last.as_str()?;
            let mut items = place[key].as_array().cloned().unwrap_or_default();
            items.truncate(
                line["i"].as_u64().map_or(usize::MAX, |from| usize::try_from(from).expect("small")),
            );
            items.extend(line["v"].as_array().cloned().unwrap_or_default());
            place[key] = items.into();
        }
        (3, _) => drop(place.as_object_mut()?.remove(last.as_str()?)),
        _ => {}
    }
    Some(())
}

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    let Some(session) = session(file).filter(|session| session["requests"].is_array()) else {
        return Vec::new();
    };
    let requests = session["requests"].as_array().cloned().unwrap_or_default();
    let skipped = |at: &usize| file.skips(&format!("{}.requests[{at}]", file.name));
    let requests: Vec<&Value> =
        requests.iter().enumerate().filter(|(at, _)| !skipped(at)).map(|(_, request)| request).collect();
    let mut turns: Vec<(Turn, Option<usize>)> = Vec::new();
    // The last turns of what stands and of what was taken back.
    let (mut last, mut undone): (Option<String>, Option<String>) = (None, None);
    for request in &requests {
        let back = request["isHidden"] == true
            || (request["shouldBeRemovedOnSend"].is_object()
                && request["shouldBeRemovedOnSend"]["afterUndoStop"].is_null());
        let mut parent = if back { undone.clone().or_else(|| last.clone()) } else { last.clone() };
        for mut turn in request_turns(request) {
            turn.id = format!("#{}", turns.len());
            turn.parent = parent.replace(turn.id.clone());
            turns.push((turn, None));
        }
        if back {
            undone = parent;
        } else {
            (last, undone) = (parent, None);
        }
    }
    let Some((first, _)) = turns.first() else { return Vec::new() };
    let words = first.parts.first().map(|(_, text)| text.lines().next().unwrap_or_default().to_owned());
    let created = time_text(&session["creationDate"]).or_else(|| first.time.clone());
    vec![Chat {
        key: text_of(&session["sessionId"]).unwrap_or_else(|| format!("{words:?}")),
        title: text_of(&session["customTitle"]).or_else(|| text_of(&session["computedTitle"])).or(words),
        created,
        updated: None,
        current: last.map(|last| position(&turns, &last)),
        turns: arrange(turns),
    }]
}

/// The number of a turn among those that are arranged.
fn position(turns: &[(Turn, Option<usize>)], id: &str) -> String {
    let (at, _) = turns.iter().enumerate().find(|(_, (turn, _))| turn.id == id).expect("it is a turn");
    let back = turns.iter().filter(|(turn, _)| turn.id == "back").count();
    format!("#{}", at - back)
}

fn request_turns(request: &Value) -> Vec<Turn> {
    let message = &request["message"];
    let words = text_of(message).or_else(|| text_of(&message["text"]));
    let system = request["isSystemInitiated"] == true;
    let time = time_text(&request["timestamp"]);
    let role = if system { "system" } else { "user" };
    let mut parts: Parts = words.into_iter().map(|text| part("text", text)).collect();
    let names = request["variableData"]["variables"].as_array().into_iter().flatten();
    let pictures = names.filter(|entry| entry["kind"] == "image").filter_map(|entry| text_of(&entry["name"]));
    parts.extend(pictures.map(|name| part("file", name)));
    let mut turns = vec![Turn { role: role.to_owned(), time: time.clone(), parts, ..Turn::default() }];
    let answer = answer_parts(request);
    if !answer.is_empty() {
        let of_log =
            Some(&request["timeSpentWaiting"]).filter(|time| time.as_u64() > Some(1_000_000_000_000));
        let own = time_text(&request["responseTimestamp"]).or_else(|| of_log.and_then(time_text));
        turns.push(Turn {
            role: "answer".to_owned(),
            time: own.or(time.filter(|time| time.parse::<i64>().is_ok())),
            parts: answer,
            ..Turn::default()
        });
    }
    turns
}

fn markdown(value: &Value) -> String {
    text_of(value).or_else(|| text_of(&value["value"])).unwrap_or_default()
}

/// The words of an answer: texts and thoughts with everything between them, and how many calls there are.
fn answer_parts(request: &Value) -> Parts {
    let mut parts = Parts::new();
    let mut calls = 0;
    let items = match &request["response"] {
        Value::Array(items) => items.clone(),
        Value::String(_) | Value::Object(_) => vec![request["response"].clone()],
        _ => Vec::new(),
    };
    let mut add = |kind: &str, text: &str| match parts.last_mut() {
        Some((last, whole)) if last == kind => whole.push_str(text),
        _ => parts.push(part(kind, text)),
    };
    for item in &items {
        match item["kind"].as_str() {
            None => add("text", &markdown(item)),
            Some("markdownContent" | "markdownVuln") => add("text", &markdown(&item["content"])),
            Some("inlineReference") => {
                let target = &item["inlineReference"];
                let path = text_of(&target["path"]).unwrap_or_default();
                let name = text_of(&item["name"]).or_else(|| text_of(&target["name"]));
                let name = name.unwrap_or_else(|| path.rsplit('/').next().unwrap_or_default().to_owned());
                add("text", &format!("`{name}`"));
            }
            Some("thinking") => add("thought", &markdown(&item["value"])),
            Some("toolInvocationSerialized" | "textEditGroup" | "externalEdit") => calls += 1,
            Some(_) => {}
        }
    }
    let rounds = request["result"]["metadata"]["toolCallRounds"].as_array().cloned().unwrap_or_default();
    if items.is_empty() {
        for round in &rounds {
            let thought =
                round["thinking"]["text"].as_array().into_iter().flatten().filter_map(Value::as_str);
            parts.push(part("thought", thought.collect::<String>()));
            parts.push(part("text", markdown(&round["response"])));
        }
    }
    let shown: Vec<String> = items.iter().filter_map(|item| text_of(&item["toolCallId"])).collect();
    let of_rounds: Vec<&Value> =
        rounds.iter().flat_map(|round| round["toolCalls"].as_array().into_iter().flatten()).collect();
    let is_shown = |call: &&&Value| shown.iter().any(|id| markdown(&call["id"]).starts_with(id.as_str()));
    let paired = of_rounds.iter().filter(is_shown).count();
    if paired > 0 || shown.len() != of_rounds.len() {
        calls += of_rounds.len() - paired;
    }
    if calls > 0 {
        parts.push(part("calls", calls.to_string()));
    }
    let error = [&request["result"]["errorDetails"], &request["responseErrorDetails"]];
    parts.extend(error.iter().filter_map(|error| text_of(&error["message"])).map(|text| part("error", text)));
    normal(parts)
}

/// Without fences, and texts of one kind together: calls and notices stand between them.
fn normal(parts: Parts) -> Parts {
    let mut merged = Parts::new();
    for kind in ["text", "thought", "calls", "error"] {
        let words = |text: &str| text.replace("```", "").split_whitespace().collect::<Vec<_>>().join(" ");
        let texts: Vec<String> = parts
            .iter()
            .filter(|(own, _)| own == kind)
            .map(|(_, text)| words(text))
            .filter(|text| !text.is_empty())
            .collect();
        if !texts.is_empty() {
            merged.push(part(kind, texts.join(" ").replace(' ', "")));
        }
    }
    merged
}

// From the store.

fn from_stored(stored: &Stored) -> Vec<Chat> {
    if stored.format.as_deref() == Some(DATABASE) {
        return Vec::new();
    }
    let mut turns: Vec<(Turn, Option<usize>)> = Vec::new();
    let mut turn_of: Vec<String> = Vec::new();
    for (at, message) in stored.messages.iter().enumerate() {
        let begins = is_prompt(message);
        let parent = message.parent.map(|parent| turn_of[parent].clone());
        let above = message.parent.map(|parent| &stored.messages[parent]);
        let goes_on = !begins && above.is_some_and(|above| !is_prompt(above));
        if goes_on {
            let own = parent.expect("it has a parent");
            turn_of.push(own);
            continue;
        }
        let id = format!("#{at}");
        let role = if begins { message.role.clone() } else { "answer".to_owned() };
        let answer = || answer_of(stored, at);
        let parts = if begins { prompt_parts(message) } else { answer() };
        if !begins && parts.is_empty() {
            // An answer without words.
            turn_of.push(parent.unwrap_or(id));
            continue;
        }
        let role = if begins || role_is_known(stored, at) { role } else { "tool".to_owned() };
        turn_of.push(id.clone());
        turns.push((Turn { id, parent, role, time: message.time_text("timestamp"), parts }, None));
    }
    let words = turns
        .first()
        .and_then(|(turn, _)| turn.parts.first())
        .map(|(_, text)| text.lines().next().unwrap_or_default().to_owned());
    let names: Vec<String> = turns.iter().map(|(turn, _)| turn.id.clone()).collect();
    let place = |id: &String| names.iter().position(|name| name == id).map(|at| format!("#{at}"));
    vec![Chat {
        key: stored.id.clone().unwrap_or_else(|| format!("{words:?}")),
        title: stored.title.clone(),
        created: stored.time_text(stored.created, "creationDate"),
        updated: None,
        current: stored.current.and_then(|current| place(&turn_of[current])),
        turns: arrange(turns),
    }]
}

/// Whether it is a request: the first messages of answers and all others are the model's, or have what the program says.
fn is_prompt(message: &StoredMessage) -> bool {
    message.role == "user" || message.raw["isSystemInitiated"] == true
}

/// Whether no message of the answer has a role that answers do not have.
fn role_is_known(stored: &Stored, first: usize) -> bool {
    members(stored, first).all(|message| message.role == "assistant" || message.role == "system")
}

/// The messages of the answer that begins with `first`.
fn members(stored: &Stored, first: usize) -> impl Iterator<Item = &StoredMessage> {
    let mut last = first;
    let mut found = vec![first];
    for (at, message) in stored.messages.iter().enumerate().skip(first + 1) {
        if message.parent == Some(last) && !is_prompt(message) {
            found.push(at);
            last = at;
        }
    }
    found.into_iter().map(|at| &stored.messages[at])
}

fn prompt_parts(message: &StoredMessage) -> Parts {
    let mut parts: Parts = message.texts().into_iter().map(|text| part("text", text)).collect();
    let pictures = message.attachments.iter().filter(|file| file["type"] == "image");
    parts.extend(pictures.filter_map(|file| text_of(&file["name"])).map(|name| part("file", name)));
    parts
}

fn answer_of(stored: &Stored, first: usize) -> Parts {
    let mut parts = Parts::new();
    let mut calls = 0;
    for message in members(stored, first) {
        calls += message.calls.len();
        let kind = match (message.thought, message.role.as_str()) {
            (true, _) => "thought",
            (false, "assistant") => "text",
            (false, _) if message.raw["part"].is_object() => continue,
            (false, _) => "error",
        };
        parts.extend(message.texts().into_iter().map(|text| part(kind, text)));
    }
    if calls > 0 {
        parts.push(part("calls", calls.to_string()));
    }
    normal(parts)
}
