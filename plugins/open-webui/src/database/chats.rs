//! The table `chat`.

use satchel_importer::{
    Arena, ImportError, Parser, RecordKind, Sink,
    json::array_of,
    sqlite::{Database, ObjectText, Row, Table, Value},
};

use super::{
    Source, compact::compact, copies::Copies, folders::Folders, messages::StoredMessages, tags::Tags, text,
    value,
};
use crate::{raw, run};

/// The columns that exports have, in their order. Others follow.
const COLUMNS: [&str; 14] = [
    "id",
    "user_id",
    "title",
    "chat",
    "updated_at",
    "created_at",
    "share_id",
    "archived",
    "pinned",
    "meta",
    "variables",
    "folder_id",
    "tasks",
    "summary",
];
/// The only time until April 2024; the program later made both times of it.
const TIME: &str = "timestamp";
/// Columns with JSON text.
const JSON: [&str; 4] = ["chat", "meta", "variables", "tasks"];
/// Columns with 0 and 1.
const FLAGS: [&str; 2] = ["archived", "pinned"];

/// The table of chats, if the database has it.
pub(super) fn table(database: &Database) -> Option<&Table> {
    database.table("chat").filter(|table| table.has(&["id", "user_id", "title", "chat"]))
}

/// Reads every chat.
pub(super) fn read(source: &Source<'_>, version: &'static str, sink: &mut Sink) -> Result<(), ImportError> {
    let Some(table) = table(source.database) else { return Ok(()) };
    let mut chats = Chats {
        table,
        version,
        copies: Copies::find(source, table)?,
        folders: Folders::read(source, sink)?,
        tags: Tags::read(source, table, sink)?,
        messages: StoredMessages::find(source, sink)?,
    };
    source
        .each(table, RecordKind::Conversation, sink, |row, locator, sink| chats.read(row, locator, sink))?;
    chats.messages.report_rest(sink);
    Ok(())
}

/// What is known of the chats before they are read.
struct Chats<'d> {
    table: &'d Table,
    version: &'static str,
    copies: Copies,
    folders: Folders,
    tags: Tags,
    messages: StoredMessages<'d>,
}

impl Chats<'_> {
    fn read(&mut self, row: &Row<'_>, locator: &str, sink: &mut Sink) -> Result<(), ImportError> {
        let id = text(row, "id")?.unwrap_or_default();
        if let Some(original) = self.copies.original(row)? {
            let reason = format!("it is the copy of the chat {original} that its link shows");
            return sink.skip(RecordKind::Conversation, locator, &reason);
        }
        let stored = self.messages.take(&id);
        let text = self.element(row, &id, locator, sink)?;
        let arena = Arena::new();
        let version = self.version;
        // The records depend on the element, on the version and on the other messages of the chat.
        let note = format!("{version} {}", stored.len());
        sink.remembering(
            text.as_bytes(),
            |noted| noted == note.as_bytes(),
            |sink| {
                let mut chat = raw::Chat::read(&mut Parser::new(&text, &arena))?
                    .ok_or_else(|| ImportError::malformed("it is not an object"))?;
                let taken = self.messages.complete(&mut chat, &id, &stored, &arena, locator, sink)?;
                run::emit(chat, version, locator, &arena, sink)?;
                Ok((taken == 0).then(|| note.clone().into_bytes()))
            },
        )
    }

    /// The row as an element of an export.
    fn element(
        &self,
        row: &Row<'_>,
        id: &str,
        locator: &str,
        sink: &mut Sink,
    ) -> Result<String, ImportError> {
        let mut element = ObjectText::default();
        let known = |column: &&str| COLUMNS.contains(column) || *column == TIME;
        let others = self.table.columns().filter(|column| !known(column));
        for column in COLUMNS.into_iter().chain(others) {
            if !add(&mut element, column, value(row, column)?) {
                sink.warn(locator, &format!("its column {column:?} is no text; it is left out"));
            }
        }
        if !self.table.has(&["created_at"]) {
            let time = value(row, TIME)?;
            let fits = ["updated_at", "created_at"].map(|column| add(&mut element, column, time.clone()));
            if fits.contains(&false) {
                sink.warn(locator, "its time is no number; it is left out");
            }
        }
        if let Some(folder) = text(row, "folder_id")? {
            let path = self.folders.path(&folder);
            if !path.is_empty() {
                element.json("folder_path", &array_of(path.into_iter().map(quoted)));
            }
        }
        self.tags.add(id, &mut element);
        Ok(element.finish())
    }
}

/// Adds a column; false if it has no form in JSON.
fn add(element: &mut ObjectText, column: &str, value: Value) -> bool {
    match value {
        // Whoever reads the element finds what is broken.
        Value::Text(text) if column == "chat" => element.json(column, &compact(text)),
        Value::Text(text) if JSON.contains(&column) && is_json(&text) => element.json(column, &compact(text)),
        Value::Integer(number) if FLAGS.contains(&column) => {
            element.json(column, if number == 0 { "false" } else { "true" });
        }
        value => return element.value(column, &value),
    }
    true
}

/// Whether a text is one JSON value.
pub(super) fn is_json(text: &str) -> bool {
    let arena = Arena::new();
    let mut json = Parser::new(text, &arena);
    json.skip_value().is_ok() && json.end().is_ok()
}

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    satchel_importer::json::quote(text, &mut quoted);
    quoted
}
