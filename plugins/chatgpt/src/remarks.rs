//! What the person said about conversations elsewhere: feedback on answers, choices between two of them, and links that share
//! a conversation.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{Arena, Bundle, ImportError, RecordKind, Sink, json::Object};

use crate::{
    layout::{self, Kind},
    source::{self, Source},
};

/// Rows that are kept of all files, and their bytes: far more than anyone wrote.
const MAX_ROWS: usize = 50_000;
const MAX_BYTES: usize = 16 * 1024 * 1024;

const ELSEWHERE: &str = "it is about a conversation that the export lacks";
const NOWHERE: &str = "it does not say which conversation it is about";

/// All remarks, by what they are about.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    rows: Vec<Row>,
    bytes: usize,
    by_message: BTreeMap<String, Vec<usize>>,
    by_conversation: BTreeMap<String, Vec<usize>>,
    /// An entry does not say which conversation it is about.
    loose: bool,
}

#[derive(Debug)]
struct Row {
    kind: Kind,
    locator: String,
    /// It says what it is about.
    placed: bool,
    json: String,
    used: Cell<bool>,
}

impl Remarks {
    /// Reads the files of remarks below `folder`.
    pub(crate) fn read(bundle: &Bundle, folder: &str, sink: &mut Sink) -> Result<Self, ImportError> {
        let mut all = Self::default();
        for entry in bundle.entries() {
            let kind = entry.path.strip_prefix(folder).map(layout::kind);
            if let Some(kind @ (Kind::Feedback | Kind::Comparisons | Kind::Shared)) = kind {
                all.read_file(bundle, &entry.path, kind, sink)?;
            }
        }
        Ok(all)
    }

    fn read_file(
        &mut self,
        bundle: &Bundle,
        path: &str,
        kind: Kind,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        if source::holds_nothing(bundle, path) {
            return Ok(());
        }
        Source::below(bundle, path, "/items")?.each(bundle, RecordKind::File, sink, |element, _| {
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
            let id = row.text("message_id").or_else(|| row.text("id")).filter(|_| kind == Kind::Feedback);
            if let Some(id) = id {
                self.by_message.entry(id.to_owned()).or_default().push(at);
            }
            let about = conversation_of(&row, element.arena());
            if let Some(id) = about {
                self.by_conversation.entry(id.to_owned()).or_default().push(at);
            }
            self.loose |= about.is_none();
            let (json, locator, placed) = (raw.to_owned(), element.locator(), about.or(id).is_some());
            self.rows.push(Row { kind, locator, placed, json, used: Cell::new(false) });
            Ok(())
        })
    }

    /// All entries about the conversation with these ids, one after the other; none where one does not say which
    /// conversation it is about, as it may be about any.
    pub(crate) fn about(&self, ids: &[&str]) -> Option<String> {
        if self.loose {
            return None;
        }
        let rows = ids.iter().filter_map(|id| self.by_conversation.get(*id)).flatten();
        let rows: BTreeSet<usize> = rows.copied().collect();
        Some(rows.into_iter().filter_map(|at| self.rows.get(at)).map(|row| row.json.as_str()).collect())
    }

    /// Those entries belong to a conversation that is stored with them.
    pub(crate) fn mark_used(&self, ids: &[&str]) {
        let rows = ids.iter().filter_map(|id| self.by_conversation.get(*id)).flatten();
        rows.filter_map(|at| self.rows.get(*at)).for_each(|row| row.used.set(true));
    }

    /// Feedback on a message, as the text of a JSON list. Old exports call it by the id of the message.
    pub(crate) fn on_message(&self, id: &str) -> Option<String> {
        if self.rows.is_empty() {
            return None;
        }
        self.list(self.by_message.get(id)?, |_| true)
    }

    /// Feedback on a conversation as a whole, or on a message that the export lacks.
    pub(crate) fn on_conversation(&self, id: &str) -> Option<String> {
        self.list(self.by_conversation.get(id)?, |row| row.kind == Kind::Feedback && !row.used.get())
    }

    /// The answers between which the person was asked to choose, and the choice.
    pub(crate) fn comparisons(&self, id: &str) -> Option<String> {
        self.list(self.by_conversation.get(id)?, |row| row.kind == Kind::Comparisons)
    }

    /// The links that share a conversation.
    pub(crate) fn shares(&self, id: &str) -> Option<String> {
        self.list(self.by_conversation.get(id)?, |row| row.kind == Kind::Shared)
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

    /// Tells of entries about conversations that the export lacks.
    pub(crate) fn report_unused(&self, sink: &mut Sink) -> Result<(), ImportError> {
        for row in self.rows.iter().filter(|row| !row.used.get()) {
            let reason = if row.placed { ELSEWHERE } else { NOWHERE };
            sink.skip(RecordKind::File, &row.locator, reason)?;
        }
        Ok(())
    }
}

/// The conversation that an entry is about; a comparison names it with the answers that it is about.
fn conversation_of<'a>(row: &Object<'a>, arena: &'a Arena) -> Option<&'a str> {
    let id = |object: &Object<'a>| object.text("conversation_id");
    id(row).or_else(|| ["input", "output"].into_iter().find_map(|key| id(&row.object(key, arena))))
}
