//! Finds the messages of a session and their parts in a database, without reading what they say.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{ImportError, RecordKind, Sink};

use crate::{
    database::OpenDatabase,
    database_index::{RowKind, SessionRows, or_skip},
    order::MAX_MESSAGES,
};

/// Characters of an id that are made of the time: `msg_` and 12 digits.
const MOMENT: usize = 16;

/// What a message is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageKey {
    pub(crate) kind: RowKind,
    pub(crate) rowid: i64,
    /// Its number among the messages of the session, by which its parts are found.
    number: u32,
    /// The number that version 2 of the program gives it in the session: ids of messages in copies of a session have no order.
    pub(crate) sequence: Option<i64>,
}

/// A row with a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartRow {
    /// The number of its message.
    message: u32,
    pub(crate) rowid: i64,
    /// When it was written.
    updated: i64,
}

/// What a row says apart from its data.
#[derive(Default)]
struct Stored {
    text: String,
    updated: i64,
    sequence: Option<i64>,
    created: Option<i64>,
    is_synthetic: bool,
}

/// The messages that were found so far.
#[derive(Default)]
struct Known {
    /// Their numbers by their ids.
    numbers: BTreeMap<String, u32>,
    /// The first halves of the ids of messages of earlier versions, and the times of these messages.
    moments: BTreeSet<(String, Option<i64>)>,
}

impl Known {
    /// Whether an earlier version of the program wrote the message, too. Version 2 takes the texts that the program itself added to a
    /// prompt out of it. They become a message of the same time, whose id begins with the first half of that of the prompt.
    fn has(&self, row: &Stored) -> bool {
        let id = &row.text;
        (!id.is_empty() && self.numbers.contains_key(id))
            || (row.is_synthetic && self.moments.contains(&(moment(id).to_owned(), row.created)))
    }
}

/// The part of an id that the program makes of the time.
fn moment(id: &str) -> &str {
    id.get(..MOMENT).unwrap_or(id)
}

/// The messages of a session and their parts, by their rows.
#[derive(Debug)]
pub(crate) struct StoredMessages {
    pub(crate) keys: Vec<MessageKey>,
    /// When each message was written.
    updated: Vec<i64>,
    /// Sorted by message.
    parts: Vec<PartRow>,
    /// Whether all rows say when they were written.
    dated: bool,
}

impl StoredMessages {
    /// Finds the messages and their parts. A message that version 2 of the program took over is read as the earlier version wrote it,
    /// because that has the ids of its parts.
    pub(crate) fn find(
        open: &OpenDatabase<'_>,
        rows: &mut SessionRows,
        sink: &mut Sink,
    ) -> Result<Self, ImportError> {
        let mut found = Self { keys: Vec::new(), updated: Vec::new(), parts: Vec::new(), dated: true };
        let mut known = Known::default();
        for kind in [RowKind::Message, RowKind::Projection] {
            for rowid in rows.take(kind) {
                found.add_message(open, (kind, rowid), &mut known, sink)?;
            }
        }
        for rowid in rows.take(RowKind::Part) {
            let locator = open.locator(RowKind::Part, rowid);
            let row = or_skip(
                found.row(open, (RowKind::Part, rowid), "message_id"),
                RecordKind::Message,
                &locator,
                sink,
            )?;
            let Some(Stored { text: message, updated, .. }) = row else { continue };
            if let Some(number) = known.numbers.get(&message) {
                found.parts.push(PartRow { message: *number, rowid, updated });
            } else {
                let reason = "the message of this part is not there, or does not fit";
                sink.skip(RecordKind::Message, &locator, reason)?;
            }
        }
        found.parts.sort_unstable();
        Ok(found)
    }

    fn add_message(
        &mut self,
        open: &OpenDatabase<'_>,
        (kind, rowid): (RowKind, i64),
        known: &mut Known,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let locator = open.locator(kind, rowid);
        let row = or_skip(self.row(open, (kind, rowid), "id"), RecordKind::Message, &locator, sink)?;
        let Some(Stored { text: id, updated, sequence, created, .. }) = row.as_ref() else { return Ok(()) };
        if kind == RowKind::Projection && row.as_ref().is_some_and(|row| known.has(row)) {
            return Ok(());
        }
        if self.keys.len() >= MAX_MESSAGES {
            return sink.skip(RecordKind::Message, &locator, "the session has more messages than fit");
        }
        let number = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        self.keys.push(MessageKey { kind, rowid, number, sequence: *sequence });
        self.updated.push(*updated);
        // Of several rows with one id, the first one has the parts.
        known.numbers.entry(id.clone()).or_insert(number);
        known.moments.extend(Some((moment(id).to_owned(), *created)).filter(|_| kind == RowKind::Message));
        Ok(())
    }

    /// What a row says apart from its data; `column` has the id of a message.
    fn row(
        &mut self,
        open: &OpenDatabase<'_>,
        (kind, rowid): (RowKind, i64),
        column: &str,
    ) -> Result<Stored, ImportError> {
        let Some(row) = open.row(kind, rowid)? else { return Ok(Stored::default()) };
        let updated = row.integer("time_updated")?;
        self.dated &= updated.is_some();
        let text = row.text(column)?.unwrap_or_default();
        Ok(Stored {
            text,
            updated: updated.unwrap_or_default(),
            sequence: row.integer("seq")?,
            created: row.integer("time_created")?,
            is_synthetic: row.text("type")?.as_deref() == Some("synthetic"),
        })
    }

    /// The rows of the parts of a message.
    pub(crate) fn parts(&self, key: MessageKey) -> &[PartRow] {
        let start = self.parts.partition_point(|part| part.message < key.number);
        let end = self.parts.partition_point(|part| part.message <= key.number);
        self.parts.get(start..end).unwrap_or_default()
    }

    /// What changes when the session does: what is known about it, and when each of its rows was written. None if a row does not say so.
    pub(crate) fn state(&self, session: &str) -> Option<Vec<u8>> {
        let mut state = session.as_bytes().to_vec();
        state.reserve(self.keys.len() * 17 + self.parts.len() * 20);
        for (key, updated) in self.keys.iter().zip(&self.updated) {
            state.push(key.kind as u8);
            state.extend(key.rowid.to_le_bytes());
            state.extend(updated.to_le_bytes());
        }
        for part in &self.parts {
            state.extend(part.message.to_le_bytes());
            state.extend(part.rowid.to_le_bytes());
            state.extend(part.updated.to_le_bytes());
        }
        Some(state).filter(|_| self.dated)
    }
}
