//! What the person said about conversations in other files: feedback on answers, choices between two answers, shared links.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{Arena, Bundle, ImportError, RecordKind, Sink, json::Object};

use crate::{
    layout::{self, FileKind},
    record_list::{self, RecordList},
};

/// Rows of all files, and their bytes: far more than anyone wrote.
const MAX_ROWS: usize = 50_000;
const MAX_BYTES: usize = 16 * 1024 * 1024;

const CONVERSATION_ABSENT: &str = "it is about a conversation that the export lacks";
const CONVERSATION_UNNAMED: &str = "it does not say which conversation it is about";

/// Key of the links that share a conversation.
pub(crate) const SHARED: &str = "shared_conversations";
const CONVERSATION_KEYS: [(FileKind, &str); 3] = [
    (FileKind::Feedback, "feedback"),
    (FileKind::Comparisons, "model_comparisons"),
    (FileKind::Shared, SHARED),
];

/// All annotations, by message and by conversation.
#[derive(Debug, Default)]
pub(crate) struct Annotations {
    rows: Vec<Row>,
    bytes: usize,
    by_message: BTreeMap<String, Vec<usize>>,
    by_conversation: BTreeMap<String, Vec<usize>>,
    /// Some row does not name its conversation.
    unassigned: bool,
}

#[derive(Debug)]
struct Row {
    kind: FileKind,
    locator: String,
    /// It names a conversation or a message.
    assigned: bool,
    json: String,
    used: Cell<bool>,
}

impl Annotations {
    /// Reads the files of annotations in `folder`.
    pub(crate) fn read(bundle: &Bundle, folder: &str, sink: &mut Sink) -> Result<Self, ImportError> {
        let mut all = Self::default();
        for entry in bundle.entries() {
            let kind = entry.path.strip_prefix(folder).map(layout::kind);
            if let Some(kind @ (FileKind::Feedback | FileKind::Comparisons | FileKind::Shared)) = kind
                && !record_list::is_empty(bundle, &entry.path)
            {
                all.read_file(bundle, &entry.path, kind, sink)?;
            }
        }
        Ok(all)
    }

    fn read_file(
        &mut self,
        bundle: &Bundle,
        path: &str,
        kind: FileKind,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        RecordList::below(bundle, path, "/items")?.each(bundle, RecordKind::File, sink, |element, _| {
            let mut json = element.parser();
            let raw = json.raw_value()?;
            let row = Object::parse(raw, element.arena());
            if row.is_empty() {
                return Err(ImportError::malformed("it is not an object"));
            }
            self.bytes += raw.len();
            if self.rows.len() >= MAX_ROWS || self.bytes > MAX_BYTES {
                return Err(ImportError::malformed("there are too many entries"));
            }
            let at = self.rows.len();
            // Old exports give the id of the message as `id`.
            let message = row.text("message_id").or_else(|| row.text("id"));
            let message = message.filter(|_| kind == FileKind::Feedback);
            if let Some(id) = message {
                self.by_message.entry(id.to_owned()).or_default().push(at);
            }
            let conversation = conversation_of(&row, element.arena());
            if let Some(id) = conversation {
                self.by_conversation.entry(id.to_owned()).or_default().push(at);
            }
            self.unassigned |= conversation.is_none();
            let (json, locator, used) = (raw.to_owned(), element.locator(), Cell::new(false));
            self.rows.push(Row { kind, locator, assigned: conversation.or(message).is_some(), json, used });
            Ok(())
        })
    }

    /// All rows about the conversation with these ids, concatenated; none if some row names no conversation, because it may be
    /// about any.
    pub(crate) fn text_of(&self, ids: &[&str]) -> Option<String> {
        if self.unassigned {
            return None;
        }
        let rows: BTreeSet<usize> = self.rows_of(ids).collect();
        Some(rows.into_iter().filter_map(|at| self.rows.get(at)).map(|row| row.json.as_str()).collect())
    }

    /// Marks the rows of a reused conversation, which is stored together with them.
    pub(crate) fn mark_used(&self, ids: &[&str]) {
        self.rows_of(ids).filter_map(|at| self.rows.get(at)).for_each(|row| row.used.set(true));
    }

    fn rows_of(&self, ids: &[&str]) -> impl Iterator<Item = usize> {
        ids.iter().filter_map(|id| self.by_conversation.get(*id)).flatten().copied()
    }

    /// Feedback on a message, as a JSON list.
    pub(crate) fn on_message(&self, id: &str) -> Option<String> {
        if self.rows.is_empty() {
            return None;
        }
        self.list(self.by_message.get(id)?, |_| true)
    }

    /// The rows about a conversation as JSON lists, with their keys in `raw_metadata`. Feedback that a message has is left out.
    pub(crate) fn on_conversation(&self, id: &str) -> Vec<(&'static str, String)> {
        let Some(rows) = self.by_conversation.get(id) else { return Vec::new() };
        let list = |(kind, key)| {
            let wanted = |row: &Row| row.kind == kind && (kind != FileKind::Feedback || !row.used.get());
            Some((key, self.list(rows, wanted)?))
        };
        CONVERSATION_KEYS.into_iter().filter_map(list).collect()
    }

    fn list(&self, rows: &[usize], wanted: impl Fn(&Row) -> bool) -> Option<String> {
        let mut text = String::new();
        for row in rows.iter().filter_map(|at| self.rows.get(*at)).filter(|row| wanted(row)) {
            row.used.set(true);
            text.push(if text.is_empty() { '[' } else { ',' });
            text.push_str(&row.json);
        }
        (!text.is_empty()).then(|| text + "]")
    }

    /// Reports the rows that no conversation of the export used.
    pub(crate) fn report_unused(&self, sink: &mut Sink) -> Result<(), ImportError> {
        for row in self.rows.iter().filter(|row| !row.used.get()) {
            let reason = if row.assigned { CONVERSATION_ABSENT } else { CONVERSATION_UNNAMED };
            sink.skip(RecordKind::File, &row.locator, reason)?;
        }
        Ok(())
    }
}

/// The conversation that a row is about; a comparison names it beside its answers.
fn conversation_of<'a>(row: &Object<'a>, arena: &'a Arena) -> Option<&'a str> {
    let id = |object: &Object<'a>| object.text("conversation_id");
    id(row).or_else(|| ["input", "output"].into_iter().find_map(|key| id(&row.object(key, arena))))
}
