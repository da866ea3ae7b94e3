//! Reads session files without the importer, and rebuilds the same from the stored records.
//!
//! Rules of the README (*Rules*) that both apply:
//! - each message follows the one before, except after a rollback;
//! - events whose text is that of an item of their turn are left out, and so are lines without a message;
//! - texts that Codex added to the user's messages belong to the system;
//! - lines that the receipt reports as skipped are ignored.

use std::collections::BTreeSet;

use satchel_importer::testkit::round_trip::{
    Chat, RoundTrip, SourceFile, Stored, StoredMessage, Turn, arrange, text_of, time_text,
};
use serde_json::Value;

/// Both directions.
pub(crate) const ROUND: RoundTrip =
    RoundTrip { platform: "codex", read_file: from_source, ignored: &[], read_stored: from_stored };

/// The kind and the text of each part.
type Parts = Vec<(String, String)>;

/// A message of a line.
struct Spoken {
    id: Option<String>,
    role: String,
    parts: Parts,
    time: Option<String>,
    /// It may repeat an item.
    event: bool,
    /// The number of turns that were rolled back before it.
    back: usize,
}

/// What the lines of a file say.
#[derive(Default)]
struct Lines {
    session: Value,
    name: Option<String>,
    newest: Option<String>,
    /// Turns that were rolled back before the next message.
    back: usize,
    spoken: Vec<Spoken>,
}

impl Lines {
    fn add(&mut self, line: &Value) {
        let (kind, payload) = unwrap(line);
        let time = time_text(&line["timestamp"]);
        self.newest = self.newest.take().max(time.clone().filter(|time| time.parse::<i64>().is_ok()));
        match (kind.as_str(), payload["type"].as_str().unwrap_or_default()) {
            ("session_meta", _) if self.session.is_null() => self.session = payload.clone(),
            ("session_meta", _) => {}
            ("event_msg", "thread_name_updated") => {
                if payload["thread_id"] == self.session["id"] {
                    self.name = text_of(&payload["thread_name"]);
                }
            }
            ("event_msg", "thread_rolled_back") => {
                self.back = usize::try_from(payload["num_turns"].as_u64().unwrap_or(0)).expect("few turns");
            }
            _ => self.spoken.extend(read(&kind, payload).map(|message| Spoken {
                time,
                back: std::mem::take(&mut self.back),
                ..message
            })),
        }
    }
}

fn from_source(file: &SourceFile<'_>) -> Vec<Chat> {
    let mut lines = Lines { session: file.json().unwrap_or_default()["session"].clone(), ..Lines::default() };
    file.elements("items").iter().for_each(|(_, line)| lines.add(line));
    let Lines { session, name, newest, back, mut spoken } = lines;
    let turns = turns_of(&spoken);
    let in_turn = |(message, turn): (&Spoken, &usize)| -> Vec<(usize, (String, String))> {
        texts(message).into_iter().map(|text| (*turn, text)).collect()
    };
    let all = || spoken.iter().zip(&turns);
    let items: BTreeSet<_> = all().filter(|(message, _)| !message.event).flat_map(in_turn).collect();
    let repeats = |at: (&Spoken, &usize)| {
        let own = in_turn(at);
        at.0.event && !own.is_empty() && own.iter().all(|text| items.contains(text))
    };
    let mut repeated = all().map(repeats).collect::<Vec<_>>().into_iter();
    spoken.retain(|_| !repeated.next().unwrap_or_default());
    if spoken.is_empty() {
        return Vec::new();
    }
    let created = time_text(&session["timestamp"]);
    let title = name.or_else(|| title(&spoken));
    let (turns, current) = chain(spoken, back);
    vec![Chat {
        key: text_of(&session["id"]).unwrap_or_default(),
        title,
        updated: newest.or_else(|| created.clone()),
        created,
        current,
        turns: arrange(turns),
    }]
}

/// The number of the turn of each message: the person writes, and another message of the person begins the next one, unless one of the two is
/// the event of the other.
fn turns_of(messages: &[Spoken]) -> Vec<usize> {
    let mut last: Option<&Spoken> = None;
    let mut turn = 0;
    let number = |message| {
        let same = last.is_some_and(|last: &Spoken| {
            texts(last).first() == texts(message).first() && last.event != message.event
        });
        if message.role == "user" && !same {
            (turn, last) = (turn + 1, Some(message));
        }
        turn
    };
    messages.iter().map(number).collect()
}

/// The type and the payload of a line in any layout.
fn unwrap(line: &Value) -> (String, &Value) {
    let kind = line["type"].as_str().unwrap_or_default();
    match &line["payload"] {
        Value::Null if kind.is_empty() && line["instructions"].is_string() => {
            ("session_meta".to_owned(), line)
        }
        Value::Null if kind.is_empty() => ("untyped".to_owned(), line),
        Value::Null => ("response_item".to_owned(), line),
        Value::String(_) => ("untyped".to_owned(), line),
        payload => (kind.to_owned(), payload),
    }
}

fn read(kind: &str, payload: &Value) -> Option<Spoken> {
    let own = payload["type"].as_str().unwrap_or_default();
    let words = |key: &str| text_of(&payload[key]).map(|text| vec![("text".to_owned(), text)]);
    let given = |role: &str, parts: Option<Parts>| Some(spoken(payload, role, parts?, kind == "event_msg"));
    match (kind, own) {
        ("compacted", _) => given("system", words("message")),
        ("inter_agent_communication", _) => given("assistant", words("content")),
        ("turn_context" | "world_state" | "inter_agent_communication_metadata", _) => None,
        ("response_item", "message") => message(payload),
        ("response_item", "agent_message") => given("assistant", filled(content(&payload["content"]))),
        ("response_item", "reasoning") => {
            given("assistant", thought(&payload["summary"], &payload["content"]))
        }
        ("response_item", _) if own.ends_with("_call") => given("assistant", Some(call(own, payload))),
        ("response_item", _) if own.ends_with("_output") => given("tool", Some(output(&payload["output"]))),
        ("event_msg", "user_message") => {
            let mut parts = words("message")?;
            let plain = matches!(payload["kind"].as_str(), None | Some("plain"));
            let role = if injected(&parts) || !plain { "system" } else { "user" };
            let images = payload["images"].as_array().cloned().unwrap_or_default();
            parts.extend(images.iter().filter_map(file));
            given(role, Some(parts))
        }
        ("event_msg", "agent_message") => given("assistant", words("message")),
        ("event_msg", "agent_reasoning" | "agent_reasoning_raw_content") => given("assistant", words("text")),
        ("event_msg", "error" | "warning" | "stream_error") => {
            Some(Spoken { event: false, ..given("system", words("message"))? })
        }
        ("event_msg", "turn_aborted") => Some(Spoken { event: false, ..given("system", words("reason"))? }),
        ("event_msg", "item_completed") => completed(&payload["item"]),
        _ if own.ends_with("_end") || own.starts_with("task_") || own == "token_count" => None,
        _ => unknown(payload),
    }
}

fn spoken(payload: &Value, role: &str, mut parts: Parts, event: bool) -> Spoken {
    let id = text_of(&payload["id"]).filter(|_| !event);
    // The files of a message are stored behind its texts.
    parts.sort_by_key(|(kind, _)| kind == "file");
    Spoken { id, role: role.to_owned(), parts, time: None, event, back: 0 }
}

fn message(payload: &Value) -> Option<Spoken> {
    let parts = filled(content(&payload["content"]))?;
    let kinds = &payload["internal_chat_message_metadata_passthrough"]["content_item_kinds"];
    let foreign = kinds.as_array().is_some_and(|kinds| !kinds.is_empty());
    let role = match payload["role"].as_str() {
        Some("user") if foreign || injected(&parts) => "system",
        Some(role) => role,
        None => "system",
    };
    Some(spoken(payload, role, parts, false))
}

fn completed(item: &Value) -> Option<Spoken> {
    let (role, parts) = match item["type"].as_str()? {
        "UserMessage" => ("user", content(&item["content"])),
        "AgentMessage" => ("assistant", content(&item["content"])),
        "Plan" => ("assistant", content(&item["text"])),
        "Reasoning" => ("assistant", thought(&item["summary_text"], &item["raw_content"])?),
        "CommandExecution" => return None,
        _ => return unknown(item),
    };
    Some(spoken(item, role, parts, true))
}

/// A line of an unknown type counts if it holds words.
fn unknown(payload: &Value) -> Option<Spoken> {
    payload.to_string().contains(' ').then_some(())?;
    let role = payload["role"].as_str().unwrap_or("system");
    let keys = ["payload", "text", "message", "content"].into_iter().find(|key| !payload[*key].is_null());
    Some(spoken(payload, role, keys.map(|key| content(&payload[key])).unwrap_or_default(), true))
}

/// Parts of a content; none if there are no texts and no files.
fn filled(parts: Parts) -> Option<Parts> {
    (!parts.is_empty()).then_some(parts)
}

fn content(value: &Value) -> Parts {
    match value {
        Value::Array(items) => items.iter().flat_map(content).collect(),
        Value::String(text) if !text.is_empty() => vec![("text".to_owned(), text.clone())],
        Value::Object(_) => {
            let encrypted = text_of(&value["encrypted_content"]).filter(|text| !text.starts_with("gAAAA"));
            let text = text_of(&value["text"]).or(encrypted).map(|text| ("text".to_owned(), text));
            let urls = ["image_url", "audio_url"].into_iter().filter_map(|key| file(&value[key]));
            text.into_iter().chain(urls).collect()
        }
        _ => Vec::new(),
    }
}

/// A file by its address.
fn file(address: &Value) -> Option<(String, String)> {
    let address = address.as_str().filter(|address| address.contains(':'))?;
    let mime = address.strip_prefix("data:").and_then(|data| data.split(';').next());
    Some(("file".to_owned(), mime.unwrap_or_default().to_owned()))
}

fn thought(summary: &Value, raw: &Value) -> Option<Parts> {
    let texts = filled(content(summary)).or_else(|| filled(content(raw)))?;
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    Some(vec![("text".to_owned(), texts.join("\n\n"))])
}

fn call(kind: &str, payload: &Value) -> Parts {
    let fallback = if kind == "function_call" { "function" } else { kind.trim_end_matches("_call") };
    let name = text_of(&payload["name"]).unwrap_or_else(|| fallback.to_owned());
    let input = ["arguments", "input", "action", "revised_prompt"].map(|key| &payload[key]);
    let input = input.into_iter().find(|input| !input.is_null()).and_then(json_of);
    let image = payload["result"].as_str().map(|_| ("file".to_owned(), String::new()));
    let input = input.map(|input| ("input".to_owned(), input));
    std::iter::once(("call".to_owned(), name)).chain(input).chain(image).collect()
}

fn output(value: &Value) -> Parts {
    let inner = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match inner.filter(|inner| inner["output"].is_string() && inner["metadata"].is_object()) {
        Some(inner) => content(&inner["output"]),
        None if value.is_object() => content(&value["content"]),
        None => content(value),
    }
}

/// An object in a text as that object.
fn json_of(value: &Value) -> Option<String> {
    let inner = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match inner.filter(Value::is_object) {
        Some(object) => Some(object.to_string()),
        None => text_of(value).or_else(|| value.is_object().then(|| value.to_string())),
    }
}

/// Whether all texts begin and end with the same tag, or are the instructions of a project.
fn injected(parts: &Parts) -> bool {
    let whole = |text: &str| {
        let text = text.trim();
        let name = text.strip_prefix('<').and_then(|text| text.split(['>', ' ']).next()).unwrap_or_default();
        text.starts_with("# AGENTS.md instructions")
            || (!name.is_empty() && text.ends_with(&format!("</{name}>")))
    };
    parts.iter().all(|(kind, text)| kind == "text" && whole(text))
}

/// The texts of a message, each with its role and without citations.
fn texts(message: &Spoken) -> Vec<(String, String)> {
    let words = message.parts.iter().filter(|(kind, _)| kind == "text");
    let paragraphs = words.flat_map(|(_, text)| [text.clone()].into_iter().chain(split(text)));
    let plain = |text: String| text.split("<oai-mem-citation>").next().unwrap_or_default().trim().to_owned();
    let all = paragraphs.map(|text| (message.role.clone(), plain(text)));
    if message.event { all.take(1).collect() } else { all.collect() }
}

fn split(text: &str) -> Vec<String> {
    text.split("\n\n").map(ToOwned::to_owned).collect()
}

/// The first line of the first message of the person.
fn title(messages: &[Spoken]) -> Option<String> {
    let user = messages.iter().filter(|message| message.role == "user");
    let mut texts = user.flat_map(|message| &message.parts).filter(|(kind, _)| kind == "text");
    let (_, text) = texts.next()?;
    let text = text.split("## My request for Codex:").last()?.trim();
    text.lines().next().map(ToOwned::to_owned)
}

/// Makes each message follow the one before, or after a rollback the last one that is left; `back` turns are rolled back behind the last.
/// The last message that is left is current.
fn chain(messages: Vec<Spoken>, back: usize) -> (Vec<(Turn, Option<usize>)>, Option<String>) {
    let mut turns: Vec<(Turn, Option<usize>)> = Vec::new();
    let (mut before, mut begun): (Option<String>, Vec<Option<String>>) = (None, Vec::new());
    let mut seen = BTreeSet::new();
    for (at, message) in messages.into_iter().enumerate() {
        for _ in 0..message.back.min(begun.len()) {
            before = begun.pop().flatten();
        }
        let id = message.id.filter(|id| seen.insert(id.clone())).unwrap_or_else(|| format!("#{at:06}"));
        if message.role == "user" {
            begun.push(before.clone());
        }
        let parent = before.replace(id.clone());
        turns.push((Turn { id, parent, role: message.role, time: message.time, parts: message.parts }, None));
    }
    for _ in 0..back.min(begun.len()) {
        before = begun.pop().flatten();
    }
    (turns, before)
}

fn from_stored(stored: &Stored) -> Vec<Chat> {
    let id = |at: usize| stored.messages[at].id.clone().unwrap_or_else(|| format!("#{at:06}"));
    let turn = |at: usize| {
        let message = &stored.messages[at];
        let unparsed = text_of(&message.raw["line"]["timestamp"]);
        let turn = Turn {
            id: id(at),
            parent: message.parent.map(id),
            role: message.metadata_text("role").unwrap_or_else(|| message.role.clone()),
            time: message.time.map(|time| time.to_string()).or(unparsed),
            parts: stored_parts(message),
        };
        (turn, None)
    };
    vec![Chat {
        key: stored.id.clone().unwrap_or_default(),
        title: stored.title.clone(),
        created: stored.time_text(stored.created, "timestamp"),
        updated: stored.updated.map(|time| time.to_string()),
        current: stored.current.map(id),
        turns: arrange((0..stored.messages.len()).map(turn).collect()),
    }]
}

fn stored_parts(message: &StoredMessage) -> Parts {
    let mut parts: Parts = message.parts.clone();
    for call in &message.calls {
        parts.extend(text_of(&call["name"]).map(|name| ("call".to_owned(), name)));
        parts.extend(json_of(&call["input"]).map(|input| ("input".to_owned(), input)));
    }
    let mime = |file: &Value| text_of(&file["mime_type"]).unwrap_or_default();
    let files: Vec<(String, String)> =
        message.attachments.iter().map(|file| ("file".to_owned(), mime(file))).collect();
    parts.extend(files);
    parts
}
