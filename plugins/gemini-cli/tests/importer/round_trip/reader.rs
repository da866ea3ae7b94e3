//! Reads chats without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README (*Rules*) that both apply:
//! - each thought, text, call and result is a message, which follows the one before it;
//! - what the file had before is left out, and so are messages that hold nothing;
//! - after a step back the next message follows the one before the message that is named;
//! - texts that the program wrote in the person's name belong to the system.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    names::has_extension,
    testkit::round_trip::{
        Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_text,
    },
};
use serde_json::Value;

/// Both directions.
pub(crate) const ROUND: RoundTrip = RoundTrip {
    platform: "gemini-cli",
    read_file: from_source,
    ignored: &[
        (
            "odd-lines/odd/chats/session-2026-05-04T10-09-0dd00000.jsonl",
            "most of its messages are of no shape that the program writes",
        ),
        (
            "parts-in-unusual-places/odd/chats/session-2026-05-04T10-18-0dd00001.jsonl",
            "its parts are where the program does not write them",
        ),
        (
            "a-session-that-was-resumed/week/chats/session-2026-03-01T09-00-beefcafe.json",
            "the other file of the session has all of it",
        ),
    ],
    read_stored: from_stored,
};
/// The first two of these files.
const ODD: &str = "0dd0000";
/// The last one, and its format.
const RESUMED: (&str, &str) = ("beefcafe", "2025.09");

/// The kind and the text of each part.
type Parts = Vec<(String, String)>;

/// A piece of a message.
struct Piece {
    slot: &'static str,
    /// Names it among those of its slot.
    key: String,
    role: &'static str,
    parts: Parts,
    time: Option<String>,
}

/// The messages so far.
#[derive(Default)]
struct Log {
    turns: Vec<Turn>,
    /// The turns that were not taken back.
    chain: Vec<String>,
    /// The messages in order, each with the length of the chain before it.
    order: Vec<(String, usize)>,
    said: BTreeSet<(String, &'static str, String)>,
    /// The last calls of each id, and whether they have a result.
    answered: BTreeMap<String, bool>,
    beside: BTreeSet<String>,
    title: Option<String>,
    session: BTreeMap<String, Value>,
    newest: Option<String>,
}

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    let mut log = Log::default();
    if has_extension(file.name, "jsonl") {
        for line in file.text.lines() {
            // A line that is no JSON is reported.
            if let Ok(line) = serde_json::from_str::<Value>(line) {
                log.line(&line);
            }
        }
    } else {
        log.line(&file.json().or_else(|| file.json_before_cut()).unwrap_or_default());
    }
    log.chat().into_iter().collect()
}

impl Log {
    fn line(&mut self, line: &Value) {
        if let Some(id) = line["$rewindTo"].as_str() {
            self.back(id);
        } else if line["id"].is_string() {
            self.message(line);
        } else {
            let fields = if line["$set"].is_object() { &line["$set"] } else { line };
            for (key, value) in fields.as_object().into_iter().flatten() {
                self.newest = self.newest.take().max(number(value).filter(|_| key == "lastUpdated"));
                let first = matches!(key.as_str(), "sessionId" | "startTime");
                if !(first && self.session.contains_key(key)) {
                    self.session.insert(key.clone(), value.clone());
                }
            }
            let messages = fields["messages"].as_array().into_iter().flatten();
            messages.filter(|message| message["id"].is_string()).for_each(|message| self.message(message));
        }
    }

    fn back(&mut self, id: &str) {
        let place = self.order.iter().position(|(own, _)| own == id).unwrap_or(0);
        for (own, length) in self.order.drain(place..).rev() {
            self.chain.truncate(length);
            self.said.retain(|(message, _, _)| *message != own);
        }
    }

    fn message(&mut self, message: &Value) {
        let id = text_of(&message["id"]).unwrap_or_default();
        if !self.order.iter().any(|(own, _)| *own == id) {
            self.order.push((id.clone(), self.chain.len()));
        }
        self.newest = self.newest.take().max(number(&message["timestamp"]));
        let pieces = match message["type"].as_str() {
            Some("user") => prompt(message),
            Some("gemini") => answer(message),
            _ => words("text", "system", message, &message["content"]).into_iter().collect(),
        };
        let results = pieces.iter().any(|piece| piece.slot == "result");
        for piece in pieces {
            self.add(&id, piece, results);
        }
    }

    fn add(&mut self, id: &str, piece: Piece, with_results: bool) {
        let Piece { slot, key, role, parts, time } = piece;
        let own = |slot: &'static str| (id.to_owned(), slot, key.clone());
        let only_files = slot == "text" && parts.iter().all(|(kind, _)| kind == "file");
        let beside = (only_files || (slot == "text" && with_results))
            && parts.iter().all(|(_, text)| self.beside.contains(text));
        let known =
            self.said.contains(&own(slot)) || (slot == "text" && self.said.contains(&own("expanded")));
        let answered = slot == "result" && self.answered.get(&key) == Some(&true);
        if known || answered || (beside && !parts.is_empty()) {
            return;
        }
        let input = parts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" ");
        if slot == "call" {
            // A call may get its id later.
            let named = self.said.contains(&(id.to_owned(), "call", input.clone()));
            self.said.insert(own(slot));
            self.answered.insert(key, false);
            if named {
                return;
            }
        } else if slot == "result" {
            self.said.insert(own(slot));
            self.answered.insert(key, true);
            self.beside.extend(parts.iter().skip(1).map(|(_, text)| text.clone()));
        } else {
            self.said.insert(own(slot));
        }
        self.newest = self.newest.take().max(time.clone().filter(|time| time.parse::<i64>().is_ok()));
        if self.title.is_none() && role == "user" {
            let first = parts.iter().find(|(kind, _)| kind == "text").map(|(_, text)| text.trim());
            self.title = first
                .filter(|text| !text.starts_with('/'))
                .and_then(|text| text.lines().next())
                .map(ToOwned::to_owned);
        }
        let named = slot == "text" && !self.turns.iter().any(|turn| turn.id == id);
        let turn_id = if named { id.to_owned() } else { format!("#{:06}", self.turns.len()) };
        let parent = self.chain.last().cloned();
        self.chain.push(turn_id.clone());
        let mut parts = parts;
        // What a call is compared by is its input.
        parts.retain(|(_, text)| !text.is_empty());
        self.turns.push(Turn { id: turn_id, parent, role: role.to_owned(), time, parts });
    }

    fn chat(self) -> Option<Chat> {
        let field = |key: &str| self.session.get(key).cloned().unwrap_or_default();
        (!self.turns.is_empty()).then_some(())?;
        let created = time_text(&field("startTime"));
        let summary = match field("summary") {
            Value::Array(items) => items.first().and_then(text_of),
            other => text_of(&other),
        };
        let turns: Vec<(Turn, Option<usize>)> = self.turns.into_iter().map(|turn| (turn, None)).collect();
        let current = self.chain.last().filter(|id| !id.starts_with('#')).cloned();
        Some(Chat {
            key: format!(
                "{}/{}",
                text_of(&field("sessionId")).unwrap_or_default(),
                created.clone().unwrap_or_default()
            ),
            title: summary.or(self.title),
            created,
            updated: self.newest,
            current,
            turns: arrange(turns),
        })
    }
}

/// The pieces of a message in the person's name.
fn prompt(message: &Value) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = each(&message["content"])
        .into_iter()
        .filter(|part| part["functionResponse"].is_object())
        .map(|part| {
            let response = &part["functionResponse"];
            piece(
                "result",
                text_of(&response["id"]).unwrap_or_default(),
                "tool",
                output(response),
                &message["timestamp"],
            )
        })
        .collect();
    let shown = texts(&message["displayContent"]);
    let whole = texts(&message["content"]);
    if !shown.is_empty() && squeezed(&shown) != squeezed(&whole) {
        let parts = shown.iter().map(|text| text_part(text)).chain(files(&message["content"])).collect();
        pieces.push(piece("text", squeezed(&shown), "user", parts, &message["timestamp"]));
        let parts = whole.iter().map(|text| text_part(text)).collect();
        pieces.push(piece("expanded", squeezed(&whole), "system", parts, &message["timestamp"]));
        return pieces;
    }
    let injected = ["<session_context>", "<hook_context>", "<state_snapshot>"];
    let ours = whole.first().is_some_and(|text| injected.iter().any(|tag| text.starts_with(tag)));
    pieces.extend(words("text", if ours { "system" } else { "user" }, message, &message["content"]));
    pieces
}

/// The pieces of an answer.
fn answer(message: &Value) -> Vec<Piece> {
    let time = &message["timestamp"];
    let listed = message["thoughts"].as_array().cloned().unwrap_or_default();
    let mut pieces: Vec<Piece> = listed
        .iter()
        .map(|thought| {
            let paragraphs: Vec<String> =
                ["subject", "description"].iter().filter_map(|key| text_of(&thought[*key])).collect();
            let text = paragraphs.join("\n\n");
            piece(
                "thought",
                squeezed(&paragraphs),
                "assistant",
                vec![text_part(&text)],
                &thought["timestamp"],
            )
        })
        .collect();
    if pieces.is_empty() {
        let inside = each(&message["content"]).into_iter().filter(|part| part["thought"] == true);
        pieces.extend(inside.filter_map(|part| text_of(&part["text"])).map(|text| {
            piece("thought", squeezed(std::slice::from_ref(&text)), "assistant", vec![text_part(&text)], time)
        }));
    }
    pieces.extend(words("text", "assistant", message, &message["content"]));
    let called = message["toolCalls"].as_array().cloned().unwrap_or_default();
    for part in each(&message["content"]) {
        let own = &part["functionCall"];
        let same = |call: &&Value| match own["id"].as_str() {
            Some(id) => call["id"] == id,
            None => call["name"] == own["name"] && call["args"] == own["args"],
        };
        if own.is_object() && !called.iter().any(|call| same(&call)) {
            pieces.push(call(own, time));
        }
    }
    for own in &called {
        pieces.push(call(own, time));
        let responses: Vec<Value> =
            each(&own["result"]).iter().map(|part| part["functionResponse"].clone()).collect();
        // In a checkpoint, the results of parallel calls are in each of them.
        let named = responses.iter().any(|response| response["id"] == own["id"]);
        let ours = responses.iter().filter(|response| !named || response["id"] == own["id"]);
        let mut parts: Parts = ours.flat_map(output).collect();
        parts.extend(texts(&own["result"]).iter().map(|text| text_part(text)));
        parts.extend(files(&own["result"]));
        pieces.push(piece(
            "result",
            text_of(&own["id"]).unwrap_or_default(),
            "tool",
            parts,
            &own["timestamp"],
        ));
    }
    pieces
}

fn call(call: &Value, time: &Value) -> Piece {
    let name = text_of(&call["name"]).unwrap_or_default();
    let parts = vec![("call".to_owned(), name.clone()), ("input".to_owned(), call["args"].to_string())];
    let key = text_of(&call["id"]).unwrap_or_else(|| format!("{name} {}", call["args"]));
    piece("call", key, "assistant", parts, time)
}

fn piece(slot: &'static str, key: String, role: &'static str, parts: Parts, time: &Value) -> Piece {
    Piece { slot, key, role, parts, time: time_text(time) }
}

/// The texts and files of a content.
fn words(slot: &'static str, role: &'static str, message: &Value, content: &Value) -> Option<Piece> {
    let texts = texts(content);
    let parts: Parts = texts.iter().map(|text| text_part(text)).chain(files(content)).collect();
    let key = if texts.is_empty() { format!("{parts:?}") } else { squeezed(&texts) };
    (!parts.is_empty()).then(|| piece(slot, key, role, parts, &message["timestamp"]))
}

fn each(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(items) => items.clone(),
        Value::Null => Vec::new(),
        other => vec![other.clone()],
    }
}

fn texts(content: &Value) -> Vec<String> {
    let text =
        |part: &Value| text_of(part).or_else(|| text_of(&part["text"]).filter(|_| part["thought"] != true));
    each(content).iter().filter_map(text).collect()
}

fn files(content: &Value) -> Parts {
    let parts = each(content);
    let inside = parts.iter().flat_map(|part| each(&part["functionResponse"]["parts"]));
    let all: Vec<Value> = inside.chain(parts.iter().cloned()).collect();
    let file = |part: &Value| {
        let data =
            ["inlineData", "fileData"].into_iter().map(|key| &part[key]).find(|data| data.is_object())?;
        Some(("file".to_owned(), text_of(&data["mimeType"]).unwrap_or_default()))
    };
    all.iter().filter_map(file).collect()
}

fn output(response: &Value) -> Parts {
    let inner = &response["response"];
    let text = text_of(&inner["output"]).or_else(|| text_of(&inner["error"]));
    text.iter().map(|text| text_part(text)).collect()
}

fn text_part(text: &str) -> (String, String) {
    ("text".to_owned(), text.to_owned())
}

/// The words alone.
fn squeezed(texts: &[String]) -> String {
    texts.concat().replace('*', " ").split_whitespace().collect()
}

fn number(time: &Value) -> Option<String> {
    time_text(time).filter(|time| time.parse::<i64>().is_ok())
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    let own = stored.id.clone().unwrap_or_default();
    let resumed = own.starts_with(RESUMED.0) && stored.format.as_deref() == Some(RESUMED.1);
    if own.starts_with(ODD) || resumed {
        return Vec::new();
    }
    let id = |at: usize| stored.messages[at].id.clone().unwrap_or_else(|| format!("#{at:06}"));
    let turn = |at: usize| {
        let message = &stored.messages[at];
        let turn = Turn {
            id: id(at),
            parent: message.parent.map(id),
            role: message.role.clone(),
            time: message.time_text("timestamp"),
            parts: stored_parts(message),
        };
        (turn, None)
    };
    let created = stored.time_text(stored.created.filter(|_| has_start(stored)), "startTime");
    vec![Chat {
        key: format!("{own}/{}", created.clone().unwrap_or_default()),
        title: stored.title.clone(),
        created,
        updated: stored.updated.map(|time| time.to_string()),
        current: stored.current.map(id).filter(|id| !id.starts_with('#')),
        turns: arrange((0..stored.messages.len()).map(turn).collect()),
    }]
}

/// Without the first line, or with one whose time is not understood, the file does not say when the session began.
fn has_start(stored: &Stored) -> bool {
    stored.id.is_some() && stored.metadata_text("startTime").is_none()
}

fn stored_parts(message: &StoredMessage) -> Parts {
    let mut parts: Parts = message.parts.clone();
    for call in &message.calls {
        parts.extend(text_of(&call["name"]).map(|name| ("call".to_owned(), name)));
        parts.push(("input".to_owned(), call["input"].to_string()));
    }
    let mime = |file: &Value| text_of(&file["mime_type"]).unwrap_or_default();
    parts.extend(message.attachments.iter().map(|file| ("file".to_owned(), mime(file))));
    parts
}
