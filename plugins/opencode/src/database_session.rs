//! Reads one session from the rows of a database.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, ErrorKind, Fields, ImportError, Parser, RecordKind, Sink,
    json::{array_of, quote},
    sqlite::{Row, Table},
    unless_malformed,
};

use crate::{
    database::{OpenDatabase, storage_of},
    database_index::{RowKind, SESSION_TABLES, SessionRows, or_skip},
    database_text, detect,
    fields::{id_of_name, value},
    layout,
    message::{Info, PartText},
    order::MAX_MESSAGES,
    projection,
    reading::MAX_LENGTH,
    session::{MAX_LIST, Session},
    session_messages::{MAX_PARTS, MessageStore, WholeMessage, emit, survey},
};

/// What a message is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageKey {
    kind: RowKind,
    rowid: i64,
    /// Its number among the messages of the session, by which its parts are found.
    number: u32,
}

/// A session in a database.
struct DatabaseSession<'d> {
    open: &'d OpenDatabase<'d>,
    rows: SessionRows,
    keys: Vec<MessageKey>,
    /// The rows of parts, sorted, each with the number of its message.
    parts: Vec<(u32, i64)>,
}

/// Reads the session with these rows.
pub(crate) fn read(open: &OpenDatabase<'_>, rows: SessionRows, sink: &mut Sink) -> Result<(), ImportError> {
    let mut session = DatabaseSession { open, rows, keys: Vec::new(), parts: Vec::new() };
    session.find_messages(sink)?;
    session.read(sink)
}

impl DatabaseSession<'_> {
    fn read(&self, sink: &mut Sink) -> Result<(), ImportError> {
        let (mut session, locator) = self.session(sink)?;
        let Some(locator) = locator else { return Ok(()) };
        if self.keys.is_empty() {
            return sink.skip(RecordKind::Conversation, &locator, "the session has no messages");
        }
        self.add_tasks(&mut session, sink)?;
        self.add_changes(&mut session, sink)?;
        let (entries, facts) = survey(self, self.keys.iter().copied(), session.title.is_none())?;
        let id = id_of_name(&self.rows.id);
        sink.conversation(&session.conversation(&id, &facts, detect::DATABASE, &locator)?, &[])?;
        session.report(&locator, sink);
        emit(self, &entries, &facts, sink)
    }

    fn table(&self, name: &str) -> Option<&Table> {
        self.open.database.table(name)
    }

    fn row(&self, kind: RowKind, rowid: i64) -> Result<Option<Row<'_>>, ImportError> {
        let Some(table) = self.table(kind.table()) else { return Ok(None) };
        self.open.database.row(table, rowid)
    }

    fn locator_of(&self, kind: RowKind, rowid: i64) -> String {
        format!("{}#{}[rowid {rowid}]", self.open.path, kind.table())
    }

    /// Finds the messages and their parts. A message that version 2 of the program took over is read as the earlier version wrote it,
    /// because that has the ids of its parts.
    fn find_messages(&mut self, sink: &mut Sink) -> Result<(), ImportError> {
        let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
        let mut keys = Vec::new();
        for kind in [RowKind::Message, RowKind::Projection] {
            for rowid in self.rows.take(kind) {
                let locator = self.locator_of(kind, rowid);
                let id = self.row(kind, rowid).and_then(|row| row.map_or(Ok(None), |row| row.text("id")));
                let Some(id) = or_skip(id, RecordKind::Message, &locator, sink)? else { continue };
                if kind == RowKind::Projection && id.as_ref().is_some_and(|id| numbers.contains_key(id)) {
                    continue;
                }
                if keys.len() >= MAX_MESSAGES {
                    sink.skip(RecordKind::Message, &locator, "the session has more messages than fit")?;
                    continue;
                }
                let number = u32::try_from(keys.len()).unwrap_or(u32::MAX);
                keys.push(MessageKey { kind, rowid, number });
                // Of several rows with one id, the first one has the parts.
                numbers.entry(id.unwrap_or_default()).or_insert(number);
            }
        }
        let mut parts = Vec::new();
        for rowid in self.rows.take(RowKind::Part) {
            let locator = self.locator_of(RowKind::Part, rowid);
            let message = self.row(RowKind::Part, rowid);
            let message = message.and_then(|row| row.map_or(Ok(None), |row| row.text("message_id")));
            let Some(message) = or_skip(message, RecordKind::Message, &locator, sink)? else { continue };
            match message.and_then(|message| numbers.get(&message)) {
                Some(number) => parts.push((*number, rowid)),
                None => sink.skip(
                    RecordKind::Message,
                    &locator,
                    "the message of this part is not there, or does not fit",
                )?,
            }
        }
        parts.sort_unstable();
        (self.keys, self.parts) = (keys, parts);
        Ok(())
    }

    /// The session as the newer one of its rows has it, and where that is.
    fn session(&self, sink: &mut Sink) -> Result<(Session, Option<String>), ImportError> {
        let mut newest: Option<(Session, String)> = None;
        for (name, rowid) in SESSION_TABLES.into_iter().zip(self.rows.own) {
            let (Some(table), Some(rowid)) = (self.table(name), rowid) else { continue };
            let row = self.open.database.row(table, rowid);
            let Some(row) = or_skip(row, RecordKind::File, self.open.path, sink)?.flatten() else { continue };
            let locator = row.locator();
            let read = or_skip(database_text::session(table, &row), RecordKind::File, &locator, sink)?;
            let Some((text, left_out)) = read else { continue };
            for column in left_out {
                let reason = format!("its column {column:?} cannot be read");
                sink.skip(RecordKind::File, &locator, &reason)?;
            }
            let arena = Arena::new();
            let fields = Fields::read(&mut Parser::new(&text, &arena)).map_err(Into::into);
            let session = or_skip(fields.and_then(Session::read), RecordKind::File, &locator, sink)?;
            let Some(mut session) = session else { continue };
            let project = or_skip(self.project(&row), RecordKind::File, &locator, sink)?.flatten();
            if let Some(project) = project {
                unless_malformed(session.add_project(&project))?;
            }
            if newest.as_ref().is_none_or(|(known, _)| session.updated > known.updated) {
                newest = Some((session, locator));
            }
        }
        if let Some((session, locator)) = newest {
            return Ok((session, Some(locator)));
        }
        let locator = self.keys.first().map(|key| self.locator_of(key.kind, key.rowid));
        if let Some(locator) = &locator {
            sink.warn(locator, "the row of its session is not there, so its title and folder are not known");
        }
        Ok((Session::default(), locator))
    }

    /// The project of the session with this row.
    fn project(&self, session: &Row<'_>) -> Result<Option<String>, ImportError> {
        let Some(id) = session.text("project_id")? else { return Ok(None) };
        let (Some(table), Some(rowid)) = (self.table("project"), self.open.projects.get(&id)) else {
            return Ok(None);
        };
        let row = self.open.database.row(table, *rowid)?;
        row.map(|row| database_text::project(table, &row)).transpose()
    }

    /// Adds the list of tasks, in its order.
    fn add_tasks(&self, session: &mut Session, sink: &mut Sink) -> Result<(), ImportError> {
        let (mut tasks, mut bytes) = (Vec::new(), 0);
        for rowid in self.rows.of(RowKind::Task) {
            let locator = self.locator_of(RowKind::Task, *rowid);
            let task = self
                .row(RowKind::Task, *rowid)
                .and_then(|row| row.map(|row| database_text::task(&row)).transpose());
            let Some((position, text)) = or_skip(task, RecordKind::File, &locator, sink)?.flatten() else {
                continue;
            };
            bytes += text.len();
            tasks.push((position, text));
            if bytes > MAX_LIST {
                break;
            }
        }
        tasks.sort();
        let texts: Vec<&str> = tasks.iter().map(|(_, text)| text.as_str()).collect();
        session.add_tasks(&array_of(&texts));
        Ok(())
    }

    /// Adds the list of changed files, which the program keeps in a file.
    fn add_changes(&self, session: &mut Session, sink: &mut Sink) -> Result<(), ImportError> {
        let path = layout::changes_file(&storage_of(self.open.path), &self.rows.id);
        if self.open.bundle.entry(&path).is_none() {
            return Ok(());
        }
        let bytes = match self.open.bundle.read(&path, MAX_LENGTH as u64) {
            Err(error) if error.kind == ErrorKind::Limit => {
                return sink.skip(RecordKind::File, &path, &error.message);
            }
            bytes => bytes?,
        };
        let text = String::from_utf8_lossy(&bytes);
        let is_list = text.trim_start().starts_with('[');
        let checked = value(text.trim(), &Arena::new()).map_err(ImportError::from);
        let added = checked.and_then(|list| session.add_changes(&list));
        if !is_list || unless_malformed(added)?.is_none() {
            sink.skip(RecordKind::File, &path, "it is not a list")?;
        }
        Ok(())
    }

    /// The rows of the parts of a message.
    fn part_rows(&self, key: MessageKey) -> &[(u32, i64)] {
        let start = self.parts.partition_point(|(number, _)| *number < key.number);
        let end = self.parts.partition_point(|(number, _)| *number <= key.number);
        self.parts.get(start..end).unwrap_or_default()
    }

    /// The id of a part and its text.
    fn part(&self, rowid: i64) -> Result<Option<(String, String)>, ImportError> {
        let Some(row) = self.row(RowKind::Part, rowid)? else { return Ok(None) };
        let id = row.text("id")?.unwrap_or_default();
        let data = row.text("data")?.unwrap_or_default();
        let text = with_id(Some(&id).filter(|id| !id.is_empty()), &data)?;
        Ok(Some((id, text)))
    }

    /// The message in a row, with all of its data.
    fn message<'a>(
        &self,
        key: MessageKey,
        arena: &'a Arena,
    ) -> Result<Option<(Info<'a>, usize)>, ImportError> {
        let Some(row) = self.row(key.kind, key.rowid)? else { return Ok(None) };
        let id = row.text("id")?.filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| ImportError::malformed("the message has no id"))?;
        let data = row.text("data")?.unwrap_or_default();
        if data.len() > MAX_LENGTH {
            return Err(ImportError::malformed(format!("it is longer than {MAX_LENGTH} bytes")));
        }
        let text = arena.alloc_str(&with_id(Some(&id), &data)?);
        let fields = Fields::read(&mut Parser::new(text, arena))?;
        let mut info = match key.kind {
            RowKind::Projection => {
                let kind = row.text("type")?.unwrap_or_default();
                projection::info(arena.alloc_str(&kind), fields)?
            }
            _ => Info::read(fields)?,
        };
        let column = row.integer("time_created")?.and_then(|millis| millis.checked_mul(1000));
        info.created = info.created.or(column);
        Ok(Some((info, data.len())))
    }

    fn own_parts<'a>(&self, key: MessageKey, info: &mut Info<'a>) -> Result<Vec<PartText<'a>>, ImportError> {
        if key.kind == RowKind::Projection {
            let row = self.row(key.kind, key.rowid)?;
            let kind = row.map_or(Ok(None), |row| row.text("type"))?.unwrap_or_default();
            return projection::take_parts(&kind, info);
        }
        info.take_parts()
    }
}

impl MessageStore for DatabaseSession<'_> {
    type Key = MessageKey;

    fn locator(&self, key: MessageKey) -> Cow<'_, str> {
        self.locator_of(key.kind, key.rowid).into()
    }

    fn fallback_id(&self, key: MessageKey) -> Cow<'_, str> {
        // Only an id that is too long is none.
        let row = self.row(key.kind, key.rowid).ok().flatten();
        let id = row.and_then(|row| row.text("id").ok().flatten()).unwrap_or_default();
        id_of_name(&id).into_owned().into()
    }

    fn peek<'a>(&self, key: MessageKey, arena: &'a Arena) -> Result<Option<Info<'a>>, ImportError> {
        Ok(or_none(self.message(key, arena))?.flatten().map(|(info, _)| info))
    }

    fn peek_parts<'a>(
        &self,
        key: MessageKey,
        info: &mut Info<'a>,
        limit: usize,
    ) -> Result<Vec<PartText<'a>>, ImportError> {
        let mut parts = or_none(self.own_parts(key, info))?.unwrap_or_default();
        let arena = info.fields.arena();
        let mut bytes = 0;
        for (_, rowid) in self.part_rows(key).iter().take(MAX_PARTS) {
            let Some((key, text)) = or_none(self.part(*rowid))?.flatten() else { continue };
            bytes += text.len();
            if bytes > limit {
                break;
            }
            parts.push(PartText { text: arena.alloc_str(&text), key });
        }
        Ok(parts)
    }

    fn read<'a>(
        &self,
        key: MessageKey,
        arena: &'a Arena,
        sink: &mut Sink,
    ) -> Result<Option<WholeMessage<'a>>, ImportError> {
        let locator = self.locator_of(key.kind, key.rowid);
        let message = or_skip(self.message(key, arena), RecordKind::Message, &locator, sink)?.flatten();
        let Some((mut info, mut bytes)) = message else { return Ok(None) };
        let mut parts = self.own_parts(key, &mut info)?;
        let own = parts.len();
        for (at, (_, rowid)) in self.part_rows(key).iter().enumerate() {
            let locator = self.locator_of(RowKind::Part, *rowid);
            if at >= MAX_PARTS {
                sink.skip(RecordKind::Message, &locator, "its message has more parts than fit")?;
                continue;
            }
            let part = or_skip(self.part(*rowid), RecordKind::Message, &locator, sink)?.flatten();
            let Some((id, text)) = part else { continue };
            if bytes + text.len() > MAX_LENGTH {
                sink.skip(RecordKind::Message, &locator, "the parts of its message are longer than 16 MiB")?;
                continue;
            }
            bytes += text.len();
            parts.push(PartText { text: arena.alloc_str(&text), key: id });
        }
        // The program reads them in the order of their ids.
        if let Some(stored) = parts.get_mut(own..) {
            stored.sort_by(|one, other| one.key.cmp(&other.key));
        }
        Ok(Some((info, parts)))
    }
}

/// The value, or none if it is damaged or too long.
fn or_none<T>(result: Result<T, ImportError>) -> Result<Option<T>, ImportError> {
    match result {
        Err(error) if matches!(error.kind, ErrorKind::Malformed | ErrorKind::Limit) => Ok(None),
        result => result.map(Some),
    }
}

/// The text of an object in a column, with the id that another column has. Both together may have 16 MiB, so the text is copied once.
fn with_id(id: Option<&String>, data: &str) -> Result<String, ImportError> {
    let members = data.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let members = members.ok_or_else(|| ImportError::malformed("it is not an object"))?;
    let mut text = String::with_capacity(members.len() + id.map_or(0, String::len) + 16);
    text.push('{');
    if let Some(id) = id {
        text.push_str("\"id\":");
        quote(id, &mut text);
        text.push_str(if members.trim().is_empty() { "" } else { "," });
    }
    text.push_str(members);
    text.push('}');
    Ok(text)
}
