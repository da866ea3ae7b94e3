//! `library_files.json`, indexed by message, conversation and file name.

use std::{cell::OnceCell, collections::BTreeMap};

use satchel_importer::{Arena, json::Object, natural_key};

/// The rows with an id.
#[derive(Debug, Default)]
pub(crate) struct Library {
    rows: Vec<Row>,
    by_message: BTreeMap<String, Vec<usize>>,
    by_name: BTreeMap<String, Vec<usize>>,
    by_thread: BTreeMap<String, Vec<usize>>,
    /// Rows that name a message but no conversation.
    unassigned: String,
    unassigned_key: OnceCell<String>,
}

#[derive(Debug)]
struct Row {
    id: String,
    name: String,
    message: Option<String>,
    thread: Option<String>,
}

impl Library {
    pub(super) fn add<'a>(&mut self, row: &Object<'a>, arena: &'a Arena) {
        let Some(id) = row.text("file_id").or_else(|| row.object("id", arena).text("id")) else { return };
        let at = self.rows.len();
        let text = |key| row.text(key).map(str::to_owned);
        let (message, thread) = (text("origination_message_id"), text("origination_thread_id"));
        let name = text("file_name").unwrap_or_default();
        if let Some(message) = &message {
            self.by_message.entry(message.clone()).or_default().push(at);
        }
        self.by_name.entry(name.clone()).or_default().push(at);
        match (&thread, &message) {
            (Some(thread), _) => self.by_thread.entry(thread.clone()).or_default().push(at),
            (None, Some(message)) => self.unassigned.push_str(&format!("{message} {id}\n")),
            (None, None) => {}
        }
        self.rows.push(Row { id: id.to_owned(), name, message, thread });
    }

    /// The rows that may belong to the conversation with these ids, as text.
    pub(crate) fn text_of(&self, ids: &[&str]) -> String {
        let rows = ids.iter().filter_map(|id| self.by_thread.get(*id)).flatten();
        // The unassigned rows are the same for every conversation, and there may be many.
        let mut text = self.unassigned_key.get_or_init(|| natural_key(&[Some(&self.unassigned)])).clone();
        for row in rows.filter_map(|at| self.rows.get(*at)) {
            text.push_str(&format!("{:?} {:?} {}\n", row.message, row.id, row.name));
        }
        text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Ids of the files that a message added or created.
    pub(crate) fn of_message(&self, message: &str) -> impl Iterator<Item = &str> {
        let rows = self.by_message.get(message).into_iter().flatten();
        rows.filter_map(|at| self.rows.get(*at)).map(|row| row.id.as_str())
    }

    /// The file `name` that a message shows: its own, else that of its conversation, else the only one of that name. None if
    /// there are several.
    pub(crate) fn named(&self, name: &str, message: &str, thread: &str) -> Option<&str> {
        let rows: Vec<&Row> = self.by_name.get(name)?.iter().filter_map(|at| self.rows.get(*at)).collect();
        let of_message = |row: &Row| row.message.as_deref() == Some(message);
        let of_thread = |row: &Row| row.thread.as_deref() == Some(thread);
        let tests: [&dyn Fn(&Row) -> bool; 3] = [&of_message, &of_thread, &|_| true];
        for test in tests {
            let mut matching = rows.iter().filter(|row| test(row));
            if let Some(row) = matching.next() {
                return matching.next().is_none().then_some(row.id.as_str());
            }
        }
        None
    }
}
