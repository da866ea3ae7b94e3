//! From the rows of one conversation to its record: ids, a line of answers, times.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{Content, Conversation, Leftover, Message, Participant, natural_key};

use crate::raw::{Record, Role};

/// Names of assistants that one conversation lists; the rows keep them all.
const MAX_NAMES: usize = 16;

/// The conversation of `rows`, oldest first, which belong together by what `grouped_by` says; `version` names the format.
pub(crate) fn conversation(
    rows: Vec<(u64, Record)>,
    grouped_by: &str,
    version: &'static str,
    path: &str,
) -> (Conversation<'static>, Vec<Message<'static>>) {
    let times = || rows.iter().filter_map(|(_, record)| record.time).map(|time| time.micros);
    let (created, updated) = (times().min(), times().max());
    let first = rows.iter().map(|(place, _)| *place).min().unwrap_or(0);
    let mut kept = Leftover::default();
    kept.add_text("grouped_by", grouped_by);
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
        raw_metadata: kept.into_json().map(|kept| kept.into_owned().into()),
        locator: format!("{path}[{first}]").into(),
        ..Conversation::default()
    };
    let messages = messages(rows);
    // It is known by its oldest row.
    conversation.id = messages.first().map(|first| first.id.clone()).unwrap_or_default();
    (conversation, messages)
}

fn participants(rows: &[(u64, Record)]) -> Vec<Participant<'static>> {
    let names: BTreeSet<&str> =
        rows.iter().filter_map(|(_, record)| record.name.as_deref()).map(str::trim).collect();
    let participant = |name: &str| Participant {
        role: satchel_importer::Role::Assistant,
        name: Some(name.to_owned().into()),
        ..Participant::default()
    };
    names.into_iter().take(MAX_NAMES).map(participant).collect()
}

fn messages(rows: Vec<(u64, Record)>) -> Vec<Message<'static>> {
    let mut messages: Vec<Message<'static>> = Vec::with_capacity(rows.len());
    let mut keys = Keys::default();
    for (_, record) in rows {
        let id = keys.next(&record);
        let parent = messages.last().map(|last| last.id.clone());
        let Record { title: _, time, role, name: _, text, rest } = record;
        messages.push(Message {
            id: id.into(),
            role: match role {
                Role::User => satchel_importer::Role::User,
                Role::Assistant => satchel_importer::Role::Assistant,
                Role::System => satchel_importer::Role::System,
            },
            content: (!text.is_empty()).then(|| Content::Text(text.into())),
            created_at: time.map(|time| time.micros),
            parent,
            raw_metadata: rest.map(Into::into),
            ..Message::default()
        });
    }
    messages
}

/// Names rows by what they say and when, equal ones by how many of them are older, too: other rows change no name, so a row
/// is known again in an export that begins or ends elsewhere. Rows without a time are named by the row before as well, so that
/// a "thanks" of one chat is not that of another.
#[derive(Default)]
struct Keys {
    seen: BTreeMap<String, u32>,
    last: String,
}

impl Keys {
    fn next(&mut self, record: &Record) -> String {
        let time = record.time.map(|time| time.micros.to_string());
        let (title, text) = (Some(record.title.as_str()), Some(record.text.as_str()));
        let mut row = vec![Some("row"), title, time.as_deref(), Some(record.role.word()), text];
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
