//! The table `chat_message`, a copy of the messages of all chats. What the program shows, and exports have, is in the chats; the copy is read
//! where a chat has no messages, and for messages that others of the chat answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use satchel_importer::{
    Arena, ImportError, RecordKind, Sink,
    sqlite::{Database, ObjectText, Row, Table, Value},
    tree::node_id,
    unless_malformed as unless_damaged,
};

use super::{Source, chats, compact::compact, text, value};
use crate::raw::Chat;

/// Rows that are remembered, 16 bytes each.
const MAX_ROWS: usize = 2_500_000;
/// Bytes of the id of a chat.
const MAX_ID: usize = 256;
/// Bytes of the messages that are taken for one chat.
const MAX_TAKEN: usize = 24 * 1024 * 1024;

/// The columns and the fields of exports.
const FIELDS: [(&str, &str); 5] = [
    ("parent_id", "parentId"),
    ("model_id", "model"),
    ("status_history", "statusHistory"),
    ("context_summary", "contextSummary"),
    ("created_at", "timestamp"),
];
/// Columns with JSON text.
const JSON: [&str; 9] =
    ["content", "output", "files", "sources", "embeds", "meta", "status_history", "error", "usage"];
/// Columns that the fields of exports do not have, as in the program.
const OWN: [&str; 4] = ["id", "chat_id", "user_id", "updated_at"];

/// The table of messages, if the database has it.
pub(super) fn table(database: &Database) -> Option<&Table> {
    database
        .table("chat_message")
        .filter(|table| table.has(&["id", "chat_id", "role", "parent_id", "content"]))
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredMessage {
    rowid: i64,
    /// The hash of the message's id, because ids would need more memory.
    id: u32,
}

/// The messages of each chat that was not read yet.
pub(super) struct StoredMessages<'d> {
    source: &'d Source<'d>,
    table: Option<&'d Table>,
    chats: BTreeMap<String, Vec<StoredMessage>>,
}

impl<'d> StoredMessages<'d> {
    /// Looks at the ids of all rows.
    pub(super) fn find(source: &'d Source<'d>, sink: &mut Sink) -> Result<Self, ImportError> {
        let table = table(source.database);
        let mut it = Self { source, table, chats: BTreeMap::new() };
        let Some(table) = table else { return Ok(it) };
        let (mut known, mut more) = (0, 0_u64);
        source.each(table, RecordKind::Message, sink, |row, _, _| {
            let (Some(id), Some(chat)) = (text(row, "id")?, text(row, "chat_id")?) else {
                return Err(ImportError::malformed("it does not say to which chat it belongs"));
            };
            if known < MAX_ROWS && chat.len() <= MAX_ID {
                let id = hash(own_id(&id, &chat));
                it.chats.entry(chat).or_default().push(StoredMessage { rowid: row.rowid(), id });
                known += 1;
            } else {
                more += 1;
            }
            Ok(())
        })?;
        if more > 0 {
            let message = format!(
                "rows of its table chat_message that are too many to be compared with the chats: {more}"
            );
            sink.warn(source.path, &message);
        }
        Ok(it)
    }

    /// The rows of a chat, sorted by the ids of their messages.
    pub(super) fn take(&mut self, chat: &str) -> Vec<StoredMessage> {
        let mut rows = self.chats.remove(chat).unwrap_or_default();
        rows.sort_unstable_by_key(|row| (row.id, row.rowid));
        rows
    }

    /// Adds to a chat the messages that it lacks, and returns how many these are. `stored` is sorted by the ids.
    pub(super) fn complete<'a>(
        &self,
        chat: &mut Chat<'a>,
        id: &str,
        stored: &[StoredMessage],
        arena: &'a Arena,
        locator: &str,
        sink: &mut Sink,
    ) -> Result<usize, ImportError> {
        let before = chat.nodes.len();
        let mut bytes = 0;
        if chat.nodes.is_empty() {
            self.add(chat, id, stored.to_vec(), None, &mut bytes, arena)?;
        }
        let (mut known, mut looked_at) = (BTreeSet::new(), 0);
        while !stored.is_empty() && looked_at < chat.nodes.len() {
            let wanted = chat.absent_parents(looked_at, &mut known);
            looked_at = chat.nodes.len();
            let found = wanted.iter().flat_map(|id| with_id(stored, hash(id))).copied().collect();
            self.add(chat, id, found, Some(&wanted), &mut bytes, arena)?;
        }
        let taken = chat.nodes.len() - before;
        let known: BTreeSet<u32> = chat.nodes.iter().map(|node| hash(node.key)).collect();
        let left = stored.iter().filter(|row| !known.contains(&row.id)).count();
        if taken > 0 {
            sink.warn(locator, &format!("messages that only the table chat_message has: {taken}"));
        }
        if left > 0 {
            let message = format!(
                "messages in the table chat_message that the program does not show: {left}; they are not imported"
            );
            sink.warn(locator, &message);
        }
        Ok(taken)
    }

    /// Reads these rows and adds them to the chat, if their ids are `wanted`. `bytes` counts those of all messages that were added.
    fn add<'a>(
        &self,
        chat: &mut Chat<'a>,
        id: &str,
        mut rows: Vec<StoredMessage>,
        wanted: Option<&BTreeSet<&str>>,
        bytes: &mut usize,
        arena: &'a Arena,
    ) -> Result<(), ImportError> {
        let Some(table) = self.table.filter(|_| !rows.is_empty()) else { return Ok(()) };
        rows.sort_unstable_by_key(|row| row.rowid);
        rows.dedup_by_key(|row| row.rowid);
        let mut messages = ObjectText::default();
        for row in rows {
            let row = self.source.database.row(table, row.rowid);
            // A damaged row was reported when all ids were read.
            let Some(row) = unless_damaged(row)?.flatten() else { continue };
            let (key, message) = message(table, &row, id)?;
            // Another id may have the same hash.
            if wanted.is_some_and(|wanted| !wanted.contains(node_id(&key))) {
                continue;
            }
            *bytes += message.len();
            if *bytes > MAX_TAKEN {
                return Err(ImportError::malformed(format!(
                    "its messages in the table chat_message have more than {MAX_TAKEN} bytes"
                )));
            }
            messages.json(&key, &message);
        }
        let messages = messages.finish();
        chat.add_messages(arena.alloc_str(&messages), arena)?;
        Ok(())
    }

    /// Reports the rows whose chat the database does not have.
    pub(super) fn report_rest(&self, sink: &mut Sink) {
        let rows: usize = self.chats.values().map(Vec::len).sum();
        if rows > 0 {
            let message = format!(
                "messages in its table chat_message whose chat was deleted: {rows}; they are not imported"
            );
            sink.warn(self.source.path, &message);
        }
    }
}

/// The rows whose id has this hash.
fn with_id(stored: &[StoredMessage], id: u32) -> &[StoredMessage] {
    let start = stored.partition_point(|row| row.id < id);
    let end = stored.partition_point(|row| row.id <= id);
    stored.get(start..end).unwrap_or_default()
}

/// The id of a message: the column has that of the chat in front of it.
fn own_id<'i>(id: &'i str, chat: &str) -> &'i str {
    id.strip_prefix(chat).and_then(|rest| rest.strip_prefix('-')).unwrap_or(id)
}

fn hash(id: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "half of the bits are enough to tell the messages of one chat apart"
    )]
    let half = hasher.finish() as u32;
    half
}

/// The id of a message, and its fields as an export has them.
fn message(table: &Table, row: &Row<'_>, chat: &str) -> Result<(String, String), ImportError> {
    let id = text(row, "id")?.unwrap_or_default();
    let id = own_id(&id, chat);
    let mut message = ObjectText::default();
    message.string("id", id);
    for column in table.columns().filter(|column| !OWN.contains(column)) {
        let field = FIELDS.iter().find(|(own, _)| *own == column).map_or(column, |(_, field)| *field);
        match value(row, column)? {
            Value::Text(text) if JSON.contains(&column) && chats::is_json(&text) => {
                message.json(field, &compact(text));
            }
            Value::Integer(flag) if column == "done" => {
                message.json(field, if flag == 0 { "false" } else { "true" });
            }
            value => {
                if !message.value(field, &value) {
                    return Err(
                        ImportError::malformed(format!("its column {column:?} is no text")).at(row.locator())
                    );
                }
            }
        }
    }
    Ok((id.to_owned(), message.finish()))
}
