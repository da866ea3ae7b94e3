//! From the rows of one conversation to its record: ids, a line of answers, times.

use std::collections::BTreeSet;

use satchel_importer::{Content, Conversation, Message, Participant, natural_key};

use crate::raw::{Record, Role};

/// Names of assistants that one conversation lists; the rows keep them all.
const MAX_NAMES: usize = 16;

/// The conversation of `rows`, oldest first; `version` names the format.
pub(crate) fn conversation(
    rows: Vec<(u64, Record)>,
    version: &'static str,
    path: &str,
) -> (Conversation<'static>, Vec<Message<'static>>) {
    let times = || rows.iter().filter_map(|(_, record)| record.time).map(|time| time.micros);
    let (created, updated) = (times().min(), times().max());
    let first = rows.iter().map(|(place, _)| *place).min().unwrap_or(0);
    let conversation = Conversation {
        id: key(&rows, created).into(),
        export_format_version: Some(version.into()),
        title: rows
            .first()
            .map(|(_, record)| record.title.clone())
            .filter(|title| !title.trim().is_empty())
            .map(Into::into),
        created_at: created,
        updated_at: updated,
        participants: participants(&rows),
        locator: format!("{path}[{first}]").into(),
        ..Conversation::default()
    };
    (conversation, messages(rows))
}

/// A key that later exports of the conversation give too: they add rows that are newer.
fn key(rows: &[(u64, Record)], created: Option<i64>) -> String {
    let first = rows.first().map(|(_, record)| record);
    let title = first.map(|record| record.title.as_str());
    match created {
        Some(created) => natural_key(&[title, Some(&created.to_string())]),
        None => natural_key(&[title, None, first.map(|record| record.text.as_str())]),
    }
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

/// Names messages by time, role, and how many such rows are older: newer rows change no name.
#[derive(Default)]
struct Keys {
    time: Option<i64>,
    seen: [u32; 3],
    undated: u32,
}

impl Keys {
    fn next(&mut self, record: &Record) -> String {
        let word = record.role.word();
        let Some(time) = record.time.map(|time| time.micros) else {
            self.undated += 1;
            return format!("undated:{word}:{}", self.undated);
        };
        if self.time.replace(time) != Some(time) {
            self.seen = [0; 3];
        }
        let seen = match record.role {
            Role::User => &mut self.seen[0],
            Role::Assistant => &mut self.seen[1],
            Role::System => &mut self.seen[2],
        };
        *seen += 1;
        format!("{time}:{word}:{seen}")
    }
}
