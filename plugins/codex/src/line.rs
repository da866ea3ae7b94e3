//! Reads one line of a session file, in any of the three layouts.

use satchel_importer::{
    Arena, Fields, ImportError, JsonError, Leftover, Parser,
    json::{Value, time_of_text},
};

use crate::fields::FIELD_READER;

/// One line.
pub(crate) struct Line<'a> {
    pub(crate) kind: Kind<'a>,
    /// Microseconds.
    pub(crate) time: Option<i64>,
    /// The time as the file has it, for keys of messages.
    pub(crate) stamp: Option<&'a str>,
    pub(crate) payload: Fields<'a>,
    /// The JSON text of the payload.
    pub(crate) raw: &'a str,
    /// What the line has beside its payload.
    pub(crate) rest: Leftover<'a>,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// The session's own fields, or those of a session whose history was copied.
    Session,
    /// An item of the conversation with the model.
    Item,
    /// An event that was shown to the user.
    Event,
    /// The settings of a turn.
    Turn,
    /// The summary that replaces the history.
    Compacted,
    /// A message between agents.
    Agent,
    /// A known line that holds no message, with its type.
    Bookkeeping(&'a str),
    /// A line of an unknown type.
    Unknown(&'a str),
}

/// Types of lines that are not part of the conversation.
const BOOKKEEPING: [&str; 9] = [
    "agent_response_observation",
    "inter_agent_communication_metadata",
    "retained_context",
    "sampling_boundary",
    "security_risk_score",
    "session_state",
    "token_usage_record",
    "tool_manifest",
    "world_state",
];
/// Types of lines with a payload of their own.
const PAYLOADS: [&str; 6] =
    ["session_meta", "response_item", "event_msg", "turn_context", "compacted", "inter_agent_communication"];
/// Types of items of the conversation with the model.
const ITEMS: [&str; 18] = [
    "additional_tools",
    "agent_message",
    "compaction",
    "compaction_summary",
    "context_compaction",
    "custom_tool_call",
    "custom_tool_call_output",
    "function_call",
    "function_call_output",
    "ghost_snapshot",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "message",
    "reasoning",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
];

/// Whether lines of this type have a payload that is part of a session.
pub(crate) fn is_payload_type(kind: &str) -> bool {
    PAYLOADS.contains(&kind)
}

/// Whether it is the type of an item.
pub(crate) fn is_item_type(kind: &str) -> bool {
    ITEMS.contains(&kind)
}

/// The members of a line that were read.
#[derive(Default)]
struct Members<'a> {
    kind: Option<&'a str>,
    record_type: Option<&'a str>,
    payload: Value<'a>,
    /// Those of the payload, if they were read with it.
    fields: Option<Fields<'a>>,
    header: bool,
}

impl<'a> Line<'a> {
    /// Reads the element `text`, which `json` is at.
    pub(crate) fn read(json: &mut Parser<'a>, text: &'a str) -> Result<Self, ImportError> {
        let arena = json.arena();
        let mut line = Self {
            kind: Kind::Item,
            time: None,
            stamp: None,
            payload: FIELD_READER.none(arena),
            raw: text,
            rest: Leftover::default(),
        };
        if !json.enter_object()? {
            let reason = if text.trim() == "null" { "it is null" } else { "it is not an object" };
            return Err(ImportError::malformed(reason));
        }
        let members = line.read_members(json)?;
        json.end()?;
        match members.payload {
            Value::Null => line.use_itself(&members, arena)?,
            _ => line.use_payload(members, arena)?,
        }
        Ok(line)
    }

    /// Goes over a line of which nothing is made. The walk reports the keys that it repeats.
    pub(crate) fn skip(json: &mut Parser<'a>) -> Result<(), JsonError> {
        if json.enter_object()? {
            while json.key()?.is_some() {}
        }
        json.end()
    }

    fn read_members(&mut self, json: &mut Parser<'a>) -> Result<Members<'a>, JsonError> {
        let mut members = Members::default();
        while let Some(key) = json.key()? {
            let rest = &mut self.rest;
            match key {
                "timestamp" => {
                    let raw = json.raw_value()?;
                    self.stamp = Some(raw);
                    self.time = rest.time(key, &mut Parser::new(raw, json.arena()))?;
                }
                "type" => members.kind = rest.nonempty_text(key, json)?,
                "payload" => {
                    (members.payload, members.fields) = match FIELD_READER.attempt(json) {
                        Some((fields, raw)) => (Value::Raw(raw), Some(fields)),
                        None => (Value::read(json)?, None),
                    }
                }
                // The number of the line.
                "ordinal" => json.skip_value()?,
                "metadata" => rest.keep(key, json)?,
                "record_type" => members.record_type = rest.nonempty_text(key, json)?,
                _ => {
                    members.header |= matches!(key, "instructions" | "git");
                    rest.keep_unknown(key, json)?;
                }
            }
        }
        Ok(members)
    }

    /// The line has a payload: the layout since September 2025.
    fn use_payload(&mut self, members: Members<'a>, arena: &'a Arena) -> Result<(), JsonError> {
        let Members { payload, fields, .. } = members;
        let kind = members.kind.unwrap_or_default();
        let Some(raw) = payload.raw().filter(|raw| raw.starts_with('{')) else {
            self.payload.push("payload", payload);
            self.kind = Kind::Unknown(kind);
            return Ok(());
        };
        self.payload = fields.map_or_else(|| FIELD_READER.parse(raw, arena), Ok)?;
        self.raw = raw;
        self.kind = match kind {
            "response_item" => Kind::Item,
            "event_msg" => Kind::Event,
            _ => kind_of(kind),
        };
        Ok(())
    }

    /// The line is itself the item, or the header of the file: older layouts.
    fn use_itself(&mut self, members: &Members<'a>, arena: &'a Arena) -> Result<(), JsonError> {
        self.payload = FIELD_READER.parse(self.raw, arena)?;
        // The payload has the same fields.
        self.rest.clear();
        self.payload.remove(&["payload", "ordinal", "record_type"]);
        self.kind = match (members.kind, members.record_type) {
            (None, Some(record_type)) => Kind::Bookkeeping(record_type),
            (None, None) if members.header && self.payload.get("id") != Value::Null => Kind::Session,
            (None, None) => Kind::Unknown("untyped"),
            (Some(kind), _) => kind_of(kind),
        };
        let time = self.payload.get("timestamp").text().and_then(time_of_text);
        if self.kind != Kind::Session && matches!(time, Some((_, None))) {
            self.payload.remove(&["timestamp"]);
        }
        Ok(())
    }
}

fn kind_of(kind: &str) -> Kind<'_> {
    match kind {
        "session_meta" => Kind::Session,
        "turn_context" => Kind::Turn,
        "compacted" => Kind::Compacted,
        "inter_agent_communication" => Kind::Agent,
        _ if BOOKKEEPING.contains(&kind) => Kind::Bookkeeping(kind),
        _ if ITEMS.contains(&kind) => Kind::Item,
        _ => Kind::Unknown(if kind.is_empty() { "untyped" } else { kind }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Result<String, String> {
        let arena = Arena::new();
        let text = arena.alloc_str(text);
        let line = Line::read(&mut Parser::new(text, &arena), text);
        line.map(|line| format!("{:?}", line.kind)).map_err(|error| error.message)
    }

    #[test]
    fn lines_of_all_layouts_are_told_apart() {
        for (text, expected) in [
            (r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"a"}}"#, "Session"),
            (r#"{"type":"response_item","payload":{"type":"message"}}"#, "Item"),
            (r#"{"type":"event_msg","payload":{"type":"user_message"}}"#, "Event"),
            (r#"{"type":"turn_context","payload":{}}"#, "Turn"),
            (r#"{"type":"world_state","payload":{}}"#, "Bookkeeping(\"world_state\")"),
            (r#"{"type":"new","payload":{}}"#, "Unknown(\"new\")"),
            (r#"{"type":"event_msg","payload":"x"}"#, "Unknown(\"event_msg\")"),
            (r#"{"id":"a","timestamp":"2025-07-01T00:00:00Z","instructions":null}"#, "Session"),
            (r#"{"record_type":"state"}"#, "Bookkeeping(\"state\")"),
            (r#"{"type":"message","role":"user"}"#, "Item"),
            (r#"{"a":1}"#, "Unknown(\"untyped\")"),
        ] {
            assert_eq!(kind(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(kind("null"), Err("it is null".to_owned()));
        assert_eq!(kind("[1]"), Err("it is not an object".to_owned()));
    }
}
