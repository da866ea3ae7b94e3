//! Reads one session from the rows of a database.

use std::borrow::Cow;

use satchel_importer::{
    Arena, ErrorKind, Fields, ImportError, Parser, RecordKind, Sink,
    json::{array_of, quote},
    sqlite::Row,
    unless_malformed,
};

use crate::{
    database::{OpenDatabase, storage_of},
    database_index::{RowKind, SESSION_TABLES, SessionRows, or_skip},
    database_messages::{MessageKey, StoredMessages},
    database_text, detect,
    fields::{id_of_name, value},
    layout,
    message::{Info, PartText},
    projection,
    reading::MAX_LENGTH,
    session::{MAX_LIST, Session},
    session_messages::{MAX_PARTS, MessageStore, WholeMessage, emit, survey},
};

/// A session in a database.
struct DatabaseSession<'d> {
    open: &'d OpenDatabase<'d>,
    rows: SessionRows,
    messages: StoredMessages,
}

/// Reads the session with these rows.
pub(crate) fn read(
    open: &OpenDatabase<'_>,
    mut rows: SessionRows,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let messages = StoredMessages::find(open, &mut rows, sink)?;
    DatabaseSession { open, rows, messages }.read(sink)
}

impl DatabaseSession<'_> {
    fn read(&self, sink: &mut Sink) -> Result<(), ImportError> {
        let (mut session, locator) = self.session(sink)?;
        let Some(locator) = locator else { return Ok(()) };
        if self.messages.keys.is_empty() {
            return sink.skip(RecordKind::Conversation, &locator, "the session has no messages");
        }
        self.add_tasks(&mut session, sink)?;
        self.add_changes(&mut session, sink)?;
        // A database is imported again and again while the program writes to it, and most of its sessions do not change any more.
        let Some(state) = self.messages.state(&format!("{} {session:?}", self.rows.id)) else {
            return self.emit(&session, &locator, sink);
        };
        let note = detect::DATABASE.as_bytes();
        sink.remembering(
            &state,
            |noted| noted == note,
            |sink| {
                self.emit(&session, &locator, sink)?;
                Ok(Some(note.to_vec()))
            },
        )
    }

    fn emit(&self, session: &Session, locator: &str, sink: &mut Sink) -> Result<(), ImportError> {
        let (entries, facts) = survey(self, self.messages.keys.iter().copied(), session.title.is_none())?;
        let id = id_of_name(&self.rows.id);
        sink.conversation(&session.conversation(&id, &facts, detect::DATABASE, locator)?, &[])?;
        session.report(locator, sink);
        emit(self, &entries, &facts, sink)
    }

    /// The session as the newer one of its rows has it, and where that is.
    fn session(&self, sink: &mut Sink) -> Result<(Session, Option<String>), ImportError> {
        let mut newest: Option<(Session, String)> = None;
        for (name, rowid) in SESSION_TABLES.into_iter().zip(self.rows.own) {
            let (Some(table), Some(rowid)) = (self.open.database.table(name), rowid) else { continue };
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
        let locator = self.messages.keys.first().map(|key| self.open.locator(key.kind, key.rowid));
        if let Some(locator) = &locator {
            sink.warn(locator, "the row of its session is not there, so its title and folder are not known");
        }
        Ok((Session::default(), locator))
    }

    /// The project of the session with this row.
    fn project(&self, session: &Row<'_>) -> Result<Option<String>, ImportError> {
        let Some(id) = session.text("project_id")? else { return Ok(None) };
        let (Some(table), Some(rowid)) = (self.open.database.table("project"), self.open.projects.get(&id))
        else {
            return Ok(None);
        };
        let row = self.open.database.row(table, *rowid)?;
        row.map(|row| database_text::project(table, &row)).transpose()
    }

    /// Adds the list of tasks, in its order.
    fn add_tasks(&self, session: &mut Session, sink: &mut Sink) -> Result<(), ImportError> {
        let (mut tasks, mut bytes) = (Vec::new(), 0);
        for rowid in self.rows.of(RowKind::Task) {
            let locator = self.open.locator(RowKind::Task, *rowid);
            let task = self
                .open
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

    /// The id of a part and its text.
    fn part(&self, rowid: i64) -> Result<Option<(String, String)>, ImportError> {
        let Some(row) = self.open.row(RowKind::Part, rowid)? else { return Ok(None) };
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
        let Some(row) = self.open.row(key.kind, key.rowid)? else { return Ok(None) };
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
            let row = self.open.row(key.kind, key.rowid)?;
            let kind = row.map_or(Ok(None), |row| row.text("type"))?.unwrap_or_default();
            return projection::take_parts(&kind, info);
        }
        info.take_parts()
    }
}

impl MessageStore for DatabaseSession<'_> {
    type Key = MessageKey;

    fn locator(&self, key: MessageKey) -> Cow<'_, str> {
        self.open.locator(key.kind, key.rowid).into()
    }

    fn fallback_id(&self, key: MessageKey) -> Cow<'_, str> {
        // Only an id that is too long is none.
        let row = self.open.row(key.kind, key.rowid).ok().flatten();
        let id = row.and_then(|row| row.text("id").ok().flatten()).unwrap_or_default();
        id_of_name(&id).into_owned().into()
    }

    fn rank(&self, key: MessageKey) -> Option<i64> {
        key.sequence
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
        for part in self.messages.parts(key).iter().take(MAX_PARTS) {
            let Some((key, text)) = or_none(self.part(part.rowid))?.flatten() else { continue };
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
        let locator = self.open.locator(key.kind, key.rowid);
        let message = or_skip(self.message(key, arena), RecordKind::Message, &locator, sink)?.flatten();
        let Some((mut info, mut bytes)) = message else { return Ok(None) };
        let mut parts = self.own_parts(key, &mut info)?;
        let own = parts.len();
        for (at, part) in self.messages.parts(key).iter().enumerate() {
            let locator = self.open.locator(RowKind::Part, part.rowid);
            if at >= MAX_PARTS {
                sink.skip(RecordKind::Message, &locator, "its message has more parts than fit")?;
                continue;
            }
            let part = or_skip(self.part(part.rowid), RecordKind::Message, &locator, sink)?.flatten();
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
