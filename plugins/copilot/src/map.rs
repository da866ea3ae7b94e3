//! Maps the rows of one conversation to its record; each message is the parent of the next.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{Content, Conversation, Leftover, Message, Participant, Role, natural_key};

use crate::record::Record;

/// Names of assistants that one conversation lists; the metadata of the messages has all of them.
const MAX_NAMES: usize = 16;

/// Maps `rows`, oldest first. `grouped_by` says why they are one conversation; `version` is that of the format.
pub(crate) fn conversation(
    rows: Vec<(u64, Record)>,
    grouped_by: &str,
    version: &'static str,
    path: &str,
) -> (Conversation<'static>, Vec<Message<'static>>) {
    let times = || rows.iter().filter_map(|(_, record)| record.time).map(|time| time.micros);
    let (created, updated) = (times().min(), times().max());
    let first = rows.iter().map(|(place, _)| *place).min().unwrap_or(0);
    let mut metadata = Leftover::default();
    metadata.add_text("grouped_by", grouped_by);
    let mut conversation = Conversation {
        export_format_version: Some(version.into()),
        title: rows
            .first()
            .map(|(_, record)| record.title.clone())
            .filter(|title| !title.trim().is_empty())
            .map(Into::into),
        created_at: created,
        updated_at: updated,
        participants: participants(&rows),
        raw_metadata: metadata.into_json().map(|metadata| metadata.into_owned().into()),
        locator: format!("{path}[{first}]").into(),
        ..Conversation::default()
    };
    let messages = messages(rows);
    // The oldest row identifies it.
    conversation.id = messages.first().map(|first| first.id.clone()).unwrap_or_default();
    (conversation, messages)
}

fn participants(rows: &[(u64, Record)]) -> Vec<Participant<'static>> {
    let names: BTreeSet<&str> =
        rows.iter().filter_map(|(_, record)| record.name.as_deref()).map(str::trim).collect();
    let participant = |name: &str| Participant {
        role: Role::Assistant,
        name: Some(name.to_owned().into()),
        ..Participant::default()
    };
    names.into_iter().take(MAX_NAMES).map(participant).collect()
}

fn messages(rows: Vec<(u64, Record)>) -> Vec<Message<'static>> {
    let mut messages: Vec<Message<'static>> = Vec::with_capacity(rows.len());
    let mut ids = MessageIds::default();
    for (_, record) in rows {
        let id = ids.next(&record);
        let parent = messages.last().map(|last| last.id.clone());
        let Record { title: _, time, role, name: _, text, rest } = record;
        messages.push(Message {
            id: id.into(),
            role,
            content: (!text.is_empty()).then(|| Content::Text(text.into())),
            created_at: time.map(|time| time.micros),
            parent,
            raw_metadata: rest.map(Into::into),
            ..Message::default()
        });
    }
    messages
}

/// Derives ids from the content of rows, and from the number of equal older rows, so that a row has the same id in exports
/// that begin or end elsewhere. The id of a row without a time also depends on the row before it: "thanks" of two chats are
/// two messages.
#[derive(Default)]
struct MessageIds {
    seen: BTreeMap<String, u32>,
    last: String,
}

impl MessageIds {
    fn next(&mut self, record: &Record) -> String {
        let time = record.time.map(|time| time.micros.to_string());
        let (title, text) = (Some(record.title.as_str()), Some(record.text.as_str()));
        let mut row = vec![Some("row"), title, time.as_deref(), Some(role_key(record.role)), text];
        if time.is_none() {
            row.push(Some(&self.last));
        }
        let key = natural_key(&row);
        let seen = self.seen.entry(key.clone()).or_default();
        *seen += 1;
        let key = if *seen == 1 { key } else { format!("{key}#{seen}") };
        self.last.clone_from(&key);
        key
    }
}

/// The role's part of an id.
fn role_key(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Tool => "tool",
    }
}
