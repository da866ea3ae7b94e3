//! Finds which rows of a database belong to which session. Only the numbers of the rows are kept, and only as many as fit into memory.

use std::{collections::BTreeMap, ops::Range, rc::Rc};

use satchel_importer::{
    ErrorKind, ImportError, RecordKind, Sink,
    json::MAX_ID_BYTES,
    sqlite::{Database, Row, Table},
};

use crate::projection;

/// Rows whose numbers are kept at once: 24 MiB at most. A database with more of them is searched several times.
pub(crate) const MAX_ROWS: usize = 1_500_000;
/// Sessions of one database.
const MAX_SESSIONS: usize = 200_000;
/// Bytes of their ids together. Those of the program have 30 bytes each.
const MAX_IDS: usize = 16 * 1024 * 1024;
/// Kinds of rows that belong to a session.
const KINDS: [RowKind; 4] = [RowKind::Message, RowKind::Projection, RowKind::Part, RowKind::Task];

/// A kind of rows that belong to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowKind {
    /// A message, whose parts are rows of their own.
    Message,
    /// A message as version 2 of the program keeps it.
    Projection,
    Part,
    /// An entry of the list of tasks.
    Task,
}

impl RowKind {
    /// The name of the table.
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Projection => "session_message",
            Self::Part => "part",
            Self::Task => "todo",
        }
    }

    /// The columns without which the rows cannot be read.
    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Message => &["id", "session_id", "data"],
            Self::Projection => &["id", "session_id", "type", "data"],
            Self::Part => &["id", "message_id", "session_id", "data"],
            Self::Task => &["session_id", "content"],
        }
    }

    /// What is skipped if such a row cannot be read.
    fn record(self) -> RecordKind {
        if self == Self::Task { RecordKind::File } else { RecordKind::Message }
    }

    /// What is said of a row whose session is not there.
    fn lost(self) -> &'static str {
        match self {
            Self::Message | Self::Projection => "the database has more sessions than fit",
            Self::Part => "the session of this part is not there",
            Self::Task => "the session of this task is not there",
        }
    }
}

/// The rows of one session, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct SessionRows {
    pub(crate) id: Rc<str>,
    /// Its rows in the tables `session` and `session_v2`.
    pub(crate) own: [Option<i64>; 2],
    rows: [Vec<i64>; 4],
}

impl SessionRows {
    pub(crate) fn of(&self, kind: RowKind) -> &[i64] {
        &self.rows[kind as usize]
    }

    /// The rows of this kind, which are forgotten.
    pub(crate) fn take(&mut self, kind: RowKind) -> Vec<i64> {
        std::mem::take(&mut self.rows[kind as usize])
    }

    fn count(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }
}

/// The tables of sessions: until version 2 of the program, and since then.
pub(crate) const SESSION_TABLES: [&str; 2] = ["session", "session_v2"];

/// The sessions of a database, of which those in one range have their rows.
pub(crate) struct DatabaseIndex<'d> {
    database: &'d Database,
    ids: BTreeMap<Rc<str>, usize>,
    id_bytes: usize,
    sessions: Vec<SessionRows>,
    /// The sessions whose rows are known.
    batch: Range<usize>,
    kept: usize,
    max_rows: usize,
    /// The session of the last row: mostly, that of the next one, too.
    last: usize,
}

impl<'d> DatabaseIndex<'d> {
    /// Reads the list of sessions.
    pub(crate) fn read(
        database: &'d Database,
        max_rows: usize,
        sink: &mut Sink,
    ) -> Result<Self, ImportError> {
        let mut index = Self {
            database,
            ids: BTreeMap::new(),
            id_bytes: 0,
            sessions: Vec::new(),
            batch: 0..0,
            kept: 0,
            max_rows,
            last: 0,
        };
        for (at, name) in SESSION_TABLES.into_iter().enumerate() {
            let Some(table) = database.table(name).filter(|table| is_session_table(table)) else { continue };
            for row in database.rows(table) {
                let Some(row) = or_skip(row, RecordKind::Conversation, "", sink)? else { continue };
                index.add_session(at, &row, sink)?;
            }
        }
        Ok(index)
    }

    fn add_session(&mut self, table: usize, row: &Row<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        let locator = row.locator();
        let Some(id) = or_skip(row.text("id"), RecordKind::Conversation, &locator, sink)? else {
            return Ok(());
        };
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            return sink.skip(RecordKind::Conversation, &locator, "the session has no id");
        };
        let Some(at) = self.session(&id, true) else {
            return sink.skip(RecordKind::Conversation, &locator, RowKind::Message.lost());
        };
        if self.sessions[at].own[table].is_some() {
            return sink.skip(RecordKind::Conversation, &locator, "an earlier row has the same id");
        }
        self.sessions[at].own[table] = Some(row.rowid());
        Ok(())
    }

    /// The place of the session with this id, which is added if it is not there and `add` says so.
    fn session(&mut self, id: &str, add: bool) -> Option<usize> {
        if self.sessions.get(self.last).is_some_and(|session| &*session.id == id) {
            return Some(self.last);
        }
        if let Some(at) = self.ids.get(id) {
            self.last = *at;
            return Some(*at);
        }
        let fits = id.len() <= MAX_ID_BYTES
            && self.sessions.len() < MAX_SESSIONS
            && self.id_bytes + id.len() <= MAX_IDS;
        if !add || !fits {
            return None;
        }
        self.id_bytes += id.len();
        let id: Rc<str> = id.into();
        self.last = self.sessions.len();
        self.ids.insert(Rc::clone(&id), self.last);
        self.sessions.push(SessionRows { id, ..SessionRows::default() });
        Some(self.last)
    }

    /// Searches the rows of the next sessions, and returns which these are; none if there are no more.
    pub(crate) fn next_batch(&mut self, sink: &mut Sink) -> Result<Option<Range<usize>>, ImportError> {
        let first = self.batch.end == 0;
        if !first && self.batch.end >= self.sessions.len() {
            return Ok(None);
        }
        self.kept = 0;
        // Sessions that only their messages name are found in the first search.
        self.batch = self.batch.end..usize::MAX;
        for kind in KINDS {
            let Some(table) = self.database.table(kind.table()).filter(|table| table.has(kind.columns()))
            else {
                continue;
            };
            for row in self.database.rows(table) {
                match row {
                    Ok(row) => self.add_row(kind, &row, first, sink)?,
                    // What is damaged is reported once.
                    Err(error) if !first && error.kind == ErrorKind::Malformed => {}
                    Err(error) => {
                        or_skip::<()>(Err(error), kind.record(), "", sink)?;
                    }
                }
            }
        }
        self.batch.end = self.batch.end.min(self.sessions.len());
        Ok(Some(self.batch.clone()).filter(|batch| !batch.is_empty()))
    }

    /// The rows of a session of the last batch, which are forgotten here.
    pub(crate) fn take(&mut self, at: usize) -> SessionRows {
        let Some(session) = self.sessions.get_mut(at) else { return SessionRows::default() };
        let rows = std::mem::take(&mut session.rows);
        SessionRows { id: Rc::clone(&session.id), own: session.own, rows }
    }

    fn add_row(
        &mut self,
        kind: RowKind,
        row: &Row<'_>,
        first: bool,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let named = row.text("session_id").and_then(|session| {
            let is_message = kind != RowKind::Projection
                || row.text("type")?.is_none_or(|kind| projection::is_message(&kind));
            Ok((session, is_message))
        });
        let (session, is_message) = match named {
            Err(error) if first => {
                or_skip::<()>(Err(error), kind.record(), &row.locator(), sink)?;
                return Ok(());
            }
            Err(error) if matches!(error.kind, ErrorKind::Malformed | ErrorKind::Limit) => return Ok(()),
            named => named?,
        };
        if !is_message {
            return Ok(());
        }
        let add = first && matches!(kind, RowKind::Message | RowKind::Projection);
        let at = session.filter(|id| !id.is_empty()).and_then(|id| self.session(&id, add));
        let problem = match at {
            Some(at) if self.keep(at, kind, row.rowid()) => return Ok(()),
            Some(_) => "the session has more messages than fit",
            None if !first => return Ok(()),
            None => kind.lost(),
        };
        sink.skip(kind.record(), &row.locator(), problem)
    }

    /// Keeps the number of a row if its session is in the batch, which becomes smaller if there are too many. False if the rows of this
    /// session alone do not fit.
    fn keep(&mut self, at: usize, kind: RowKind, rowid: i64) -> bool {
        while self.batch.contains(&at) && self.kept >= self.max_rows {
            let last = self.batch.end.min(self.sessions.len()) - 1;
            if last == self.batch.start {
                return false;
            }
            self.batch.end = last;
            self.kept -= self.sessions[last].count();
            self.sessions[last].rows = Default::default();
        }
        if self.batch.contains(&at) {
            self.sessions[at].rows[kind as usize].push(rowid);
            self.kept += 1;
        }
        true
    }
}

/// Whether a table has sessions of this program.
pub(crate) fn is_session_table(table: &Table) -> bool {
    table.has(&["id", "project_id", "directory", "title", "version", "time_created"])
}

/// The value, or none if it is damaged or too long, which is reported as a skipped `kind` at the place that the error names.
pub(crate) fn or_skip<T>(
    result: Result<T, ImportError>,
    kind: RecordKind,
    locator: &str,
    sink: &mut Sink,
) -> Result<Option<T>, ImportError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind, ErrorKind::Malformed | ErrorKind::Limit) => {
            let place = error.locator.as_deref().unwrap_or(locator);
            sink.skip(kind, place, &error.message)?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
