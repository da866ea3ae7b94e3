//! The program's database, `webui.db`. Each row of its table `chat` is read as an element of an export.
//!
//! Only the tables of chats, their messages, folders, tags and memories are opened: the others hold passwords, keys and settings.

use satchel_importer::{
    Arena, Bundle, ErrorKind, ImportError, Parser, RecordKind, Sink,
    sqlite::{self, Row, Table, Value},
    unless_malformed as unless_damaged,
};

use crate::detect::{self, Head};

mod chats;
mod compact;
mod copies;
mod folders;
mod memories;
mod messages;
mod tags;

/// Chats that are sampled.
const MAX_SAMPLED: usize = 8;
/// Tables with texts of people that are no chats, and what they hold.
const OTHERS: [(&str, &str); 2] = [("message", "messages of channels"), ("note", "notes")];

/// What a sample of a database shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatabaseHead {
    /// Whether there is a table of messages.
    messages: bool,
    /// Whether a chat was found, with a message in it.
    certain: bool,
}

impl DatabaseHead {
    pub(crate) fn format(self) -> &'static str {
        if self.messages { detect::MESSAGES } else { detect::CHATS }
    }

    pub(crate) fn confidence(self) -> u8 {
        if self.certain { 95 } else { 80 }
    }
}

/// Looks at the tables of a file and at its first chats; none if it is no database of the program.
pub(crate) fn sample(bundle: &Bundle, path: &str) -> Result<Option<DatabaseHead>, ImportError> {
    let Some(database) = sqlite::Database::sample(bundle, path)? else { return Ok(None) };
    let Some(chats) = chats::table(&database) else { return Ok(None) };
    let (mut head, mut rows) = (Head::default(), 0);
    for row in database.rows(chats).take(MAX_SAMPLED) {
        rows += 1;
        // What cannot be read is not a reason to refuse the rest.
        let Some(text) = unless_damaged(row.and_then(|row| text(&row, "chat")))?.flatten() else { continue };
        head.read_stored_chat(&mut Parser::new(&text, &Arena::new()));
        if head.has_messages() {
            break;
        }
    }
    let certain = head.has_messages();
    // A new installation has no chats yet, and those that were never continued have no messages.
    let known = certain || (database.table("auth").is_some() && (rows == 0 || head.has_chats()));
    let messages = messages::table(&database).is_some();
    Ok(known.then_some(DatabaseHead { messages, certain }))
}

/// Reads all chats and memories of a database.
pub(crate) fn read(
    bundle: &Bundle,
    path: &str,
    version: &'static str,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let database = sqlite::Database::open(bundle, path)?;
    let source = Source { bundle, database: &database, path };
    chats::read(&source, version, sink)?;
    memories::read(&source, sink)?;
    for (name, contents) in OTHERS {
        let first = database.table(name).and_then(|table| database.rows(table).next());
        if first.is_some() {
            sink.warn(path, &format!("it also has {contents}, which are not imported"));
        }
    }
    Ok(())
}

/// A database that is read.
struct Source<'d> {
    bundle: &'d Bundle,
    database: &'d sqlite::Database,
    path: &'d str,
}

impl<'d> Source<'d> {
    /// Calls `read` with every row of a table. A row that cannot be read, or for which `read` returns [`ErrorKind::Malformed`], is reported
    /// as skipped.
    fn each(
        &self,
        table: &'d Table,
        kind: RecordKind,
        sink: &mut Sink,
        mut read: impl FnMut(&Row<'_>, &str, &mut Sink) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let size = self.bundle.entry(self.path).map_or(0, |entry| entry.size);
        for (index, row) in self.database.rows(table).enumerate() {
            let mut locator = self.path.to_owned();
            let outcome = row.and_then(|row| {
                locator = row.locator();
                read(&row, &locator, sink)
            });
            match outcome {
                Err(error) if error.kind == ErrorKind::Malformed => {
                    sink.skip(kind, error.locator.as_deref().unwrap_or(&locator), &error.message)?;
                }
                other => other?,
            }
            if index % PROGRESS_STEP == 0 {
                sink.progress(self.bundle.bytes_read().min(size), Some(size))?;
            }
        }
        Ok(())
    }
}

/// Rows between two reports of progress.
const PROGRESS_STEP: usize = 64;

/// The value of a column. One that is too long costs only its row, as a damaged one does.
fn value(row: &Row<'_>, column: &str) -> Result<Value, ImportError> {
    row.get(column).map_err(|error| match error.kind {
        ErrorKind::Limit => ImportError { kind: ErrorKind::Malformed, ..error },
        _ => error,
    })
}

/// The text of a column; none if it has something else.
fn text(row: &Row<'_>, column: &str) -> Result<Option<String>, ImportError> {
    Ok(match value(row, column)? {
        Value::Text(text) => Some(text),
        _ => None,
    })
}
