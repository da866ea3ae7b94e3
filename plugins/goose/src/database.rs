//! Reads the database in which Goose keeps its sessions.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Arena, Bundle, ErrorKind, Fields, ImportError, RecordKind, Sink, natural_key,
    sqlite::{Database, Row},
    unless_malformed,
    warnings::shortened,
};

use crate::{
    detect,
    message::Record,
    session::{Facts, MAX_ID, SessionNames},
    transcript::Transcript,
};
use row::{MessageText, SessionRow};
use tables::{List, Tables};

mod row;
mod tables;

pub(crate) use tables::is_of_goose;

/// Sessions of one database. They and the places of their messages are kept in memory.
const MAX_SESSIONS: usize = 200_000;
/// Messages of one database. Each takes eight bytes of memory.
const MAX_MESSAGES: usize = 4_000_000;

/// Rows between two reports of progress.
const PROGRESS_STEP: usize = 10_000;

/// Reads the database at `path`.
pub(crate) fn read(bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    let Some(database) = or_skip(Database::open(bundle, path), RecordKind::File, path, sink)? else {
        return Ok(());
    };
    let tables = Tables::of(&database)
        .ok_or_else(|| ImportError::not_this_format("it is no database with sessions of Goose"))?;
    let size = bundle.entry(path).map_or(0, |entry| entry.size);
    let mut reader = Reader {
        bundle,
        size,
        database: &database,
        path,
        taken: BTreeSet::new(),
        arena: Arena::new(),
        read: BTreeSet::new(),
    };
    for list in tables.lists {
        reader.read_all(&list, sink)?;
    }
    Ok(())
}

/// Reports what is malformed, and goes on without it.
fn or_skip<T>(
    result: Result<T, ImportError>,
    kind: RecordKind,
    place: &str,
    sink: &mut Sink,
) -> Result<Option<T>, ImportError> {
    match result {
        Err(error) if error.kind == ErrorKind::Malformed => {
            sink.skip(kind, error.locator.as_deref().unwrap_or(place), &error.message)?;
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// A value that is longer than those that can be read costs only its row.
fn of_row(error: ImportError) -> ImportError {
    let kind = if error.kind == ErrorKind::Limit { ErrorKind::Malformed } else { error.kind };
    ImportError { kind, ..error }
}

/// Reads one database.
struct Reader<'d> {
    bundle: &'d Bundle,
    /// Bytes of the database.
    size: u64,
    database: &'d Database,
    path: &'d str,
    /// The keys of the sessions that were emitted.
    taken: BTreeSet<String>,
    /// The threads of which a session has the messages.
    read: BTreeSet<String>,
    /// For one row at a time.
    arena: Arena,
}

/// A session, and the rows of its messages.
struct Listed {
    row: i64,
    messages: Vec<i64>,
}

/// What is known about a session before its messages are emitted.
struct Survey {
    facts: Facts,
    /// Changes if the session or any of its messages does.
    digest: String,
}

impl Survey {
    fn of_session(place: &str, text: &str) -> Self {
        Self { facts: Facts::default(), digest: natural_key(&[Some(place), Some(text)]) }
    }

    fn add(&mut self, text: &str) {
        self.digest = natural_key(&[Some(&self.digest), Some(text)]);
    }
}

impl Reader<'_> {
    fn place(&self, table: &str, row: i64) -> String {
        format!("{}#{table}[rowid {row}]", self.path)
    }

    fn place_of(&self, row: &Result<Row<'_>, ImportError>) -> String {
        row.as_ref().map_or_else(|_| self.path.to_owned(), Row::locator)
    }

    /// Reports how much was read. Most of it is read three times: for the list of messages, for the session, and for the messages.
    fn report_progress(&self, sink: &mut Sink) -> Result<(), ImportError> {
        sink.progress((self.bundle.bytes_read() / 3).min(self.size), Some(self.size))
    }

    /// Reads a table of sessions and that of their messages.
    fn read_all(&mut self, list: &List<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        for mut session in self.grouped(list, sink)? {
            self.report_progress(sink)?;
            let place = self.place(list.sessions.name(), session.row);
            let read = self.read_session(list, &mut session, &place, sink);
            or_skip(read, RecordKind::Conversation, &place, sink)?;
        }
        Ok(())
    }

    /// The sessions in the order of their rows, each with its messages. Only the columns with ids are read.
    fn grouped(&self, list: &List<'_>, sink: &mut Sink) -> Result<Vec<Listed>, ImportError> {
        let (mut sessions, mut numbers) = (Vec::new(), BTreeMap::new());
        for row in self.database.rows(list.sessions) {
            let place = self.place_of(&row);
            let named = row.and_then(|row| Ok((row.rowid(), row.text("id").map_err(of_row)?)));
            let Some((row, id)) = or_skip(named, RecordKind::Conversation, &place, sink)? else { continue };
            let id = id.filter(|id| !id.is_empty() && id.len() <= MAX_ID);
            let problem = match id {
                None => "its id cannot be read",
                Some(id) if numbers.contains_key(&id) => "an earlier session has the same id",
                Some(_) if sessions.len() == MAX_SESSIONS => "the database has more sessions than fit",
                Some(id) => {
                    numbers.insert(id, sessions.len());
                    sessions.push(Listed { row, messages: Vec::new() });
                    continue;
                }
            };
            sink.skip(RecordKind::Conversation, &place, problem)?;
        }
        self.add_messages(list, &numbers, &mut sessions, sink)?;
        Ok(sessions)
    }

    fn add_messages(
        &self,
        list: &List<'_>,
        numbers: &BTreeMap<String, usize>,
        sessions: &mut [Listed],
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let mut count = 0;
        for (number, row) in self.database.rows(list.messages).enumerate() {
            if number % PROGRESS_STEP == 0 {
                self.report_progress(sink)?;
            }
            let place = self.place_of(&row);
            let named = row.and_then(|row| Ok((row.rowid(), row.text(list.owner).map_err(of_row)?)));
            let Some((row, id)) = or_skip(named, RecordKind::Message, &place, sink)? else { continue };
            let session = id.and_then(|id| numbers.get(&id)).and_then(|number| sessions.get_mut(*number));
            let problem = match session {
                None => "its session is not in the database",
                Some(_) if count == MAX_MESSAGES => "the database has more messages than fit",
                Some(session) => {
                    count += 1;
                    session.messages.push(row);
                    continue;
                }
            };
            sink.skip(RecordKind::Message, &place, problem)?;
        }
        Ok(())
    }

    fn read_session(
        &mut self,
        list: &List<'_>,
        listed: &mut Listed,
        place: &str,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        self.arena.reset();
        let row = self.database.row(list.sessions, listed.row)?;
        let row = row.ok_or_else(|| ImportError::malformed("its row cannot be found"))?;
        let SessionRow { mut session, thread, text } =
            row::session(&row, list, &self.arena).map_err(of_row)?;
        let id = session.id.take().ok_or_else(|| ImportError::malformed("its id cannot be read"))?;
        if list.copies && self.read.contains(&id) {
            // A session has the same messages.
            return Ok(());
        }
        let names = SessionNames::of(&session, &id);
        if !self.taken.insert(names.key.clone()) {
            return Err(ImportError::malformed("an earlier session has the same id"));
        }
        let mut survey = Survey::of_session(place, &text);
        self.survey(list, &mut listed.messages, &mut survey)?;
        self.read.extend(thread.filter(|_| survey.facts.has_messages));
        // A database is imported again and again while the program writes to it.
        let note = detect::DATABASE.as_bytes();
        sink.remembering(
            survey.digest.as_bytes(),
            |noted| noted == note,
            |sink| {
                let transcript =
                    Transcript::begin(&session, &survey.facts, &names, detect::DATABASE, place, sink)?;
                self.emit(list, &listed.messages, transcript, sink)?;
                Ok(Some(note.to_vec()))
            },
        )
    }

    fn emit(
        &mut self,
        list: &List<'_>,
        rows: &[i64],
        mut transcript: Transcript,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        for &number in rows {
            let place = self.place(list.messages.name(), number);
            let added = self.with_message(list, number, |fields, message| {
                transcript.add(fields, &place, None, sink)?;
                if let Some(column) = &message.left_out {
                    let column = shortened(column);
                    let warning = format!("the column {column:?} cannot be read; it is left out");
                    transcript.warn(&place, warning, sink);
                }
                Ok(())
            });
            or_skip(added, RecordKind::Message, &place, sink)?;
        }
        Ok(())
    }

    /// Puts the messages into the order in which the program shows them, and collects what they say about the session.
    fn survey(
        &mut self,
        list: &List<'_>,
        rows: &mut Vec<i64>,
        survey: &mut Survey,
    ) -> Result<(), ImportError> {
        let session = survey.digest.clone();
        let mut times = Vec::with_capacity(rows.len());
        for &number in rows.iter() {
            times.push((self.collect(list, number, survey)?, number));
        }
        if times.is_sorted() {
            return Ok(());
        }
        times.sort_unstable();
        *rows = times.into_iter().map(|(_, row)| row).collect();
        *survey = Survey { facts: Facts::default(), digest: session };
        rows.iter().try_for_each(|number| self.collect(list, *number, survey).map(|_| ()))
    }

    /// Adds what a message says. Returns the number by which the messages are sorted.
    fn collect(&mut self, list: &List<'_>, number: i64, survey: &mut Survey) -> Result<i64, ImportError> {
        let mut time = i64::MIN;
        let added = self.with_message(list, number, |fields, message| {
            time = row::number(fields.get("created"));
            survey.facts.add(&Record::read(fields, false)?);
            survey.add(&message.text);
            Ok(())
        });
        if unless_malformed(added)?.is_none() {
            survey.add(&format!("{number} cannot be read"));
        }
        Ok(time)
    }

    /// Calls `read` with the fields that an export has of the message.
    fn with_message(
        &mut self,
        list: &List<'_>,
        number: i64,
        read: impl FnOnce(Fields<'_>, &MessageText) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        self.arena.reset();
        let row = self.database.row(list.messages, number)?;
        let row = row.ok_or_else(|| ImportError::malformed("its row cannot be found"))?;
        let message = row::message(&row, list, &self.arena).map_err(of_row)?;
        read(Fields::parse(&message.text, &self.arena)?, &message)
    }
}
