//! Reads a session from its many small files: first all messages without their parts, then each message with its parts.

use std::collections::BTreeSet;

use satchel_importer::{Arena, Bundle, ErrorKind, ImportError, RecordKind, Role, Sink};

use crate::{
    detect,
    fields::{Fields, value},
    message::{Info, PartText, Record},
    order::{self, Entry, MAX_MESSAGES, PieceIds},
    reading::{MAX_LENGTH, Reports, messages, peek_object, read_object, shortened, unless_malformed},
    session::{Facts, Session},
    storage_index::{Key, SessionFiles, StorageIndex},
};

/// Prompts that are searched for a title.
const MAX_PROMPTS: usize = 8;

/// A session in a storage.
struct StoredSession<'r> {
    bundle: &'r Bundle,
    index: &'r StorageIndex<'r>,
    files: &'r SessionFiles<'r>,
    root: &'r str,
    /// The id in the names of the files.
    id: &'r str,
}

/// Where a message is: the id in its name, and its path.
type Source<'r> = (&'r str, &'r str);

/// Reads the session `key`; `project` is the path of the file of its project.
pub(crate) fn read(
    bundle: &Bundle,
    index: &StorageIndex<'_>,
    key: Key<'_>,
    project: Option<&str>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let Some(files) = index.sessions.get(&key) else { return Ok(()) };
    StoredSession { bundle, index, files, root: key.0, id: key.1 }.read(project, sink)
}

impl<'r> StoredSession<'r> {
    fn read(&self, project: Option<&str>, sink: &mut Sink) -> Result<(), ImportError> {
        let Some(locator) = self.locator() else { return Ok(()) };
        let session = self.session(project, sink)?;
        if self.files.messages.is_empty() {
            return sink.skip(RecordKind::Conversation, locator, "the session has no messages");
        }
        let (entries, facts) = self.survey(session.title.is_none())?;
        let id = session.id.as_deref().unwrap_or(self.id);
        sink.conversation(&session.conversation(id, &facts, detect::format_of(self.root), locator)?, &[])?;
        for list in &session.left_out {
            sink.warn(locator, &format!("the session's list {list:?} is longer than 1 MiB; it is left out"));
        }
        if let Some(field) = &session.unread {
            let field = shortened(field);
            sink.warn(locator, &format!("the session's field {field:?} is unknown; it is kept"));
        }
        self.emit(&entries, &facts, sink)
    }

    /// The place of the session: its own file, or else its first message.
    fn locator(&self) -> Option<&'r str> {
        let own = self.files.file.map(|(_, path)| path);
        own.or_else(|| self.files.messages.first().map(|(_, path)| *path))
    }

    /// Reads the file of the session, and what is beside it.
    fn session(&self, project: Option<&str>, sink: &mut Sink) -> Result<Session, ImportError> {
        let mut session = Session::default();
        if let Some((_, path)) = self.files.file {
            if let Some(text) = read_object(self.bundle, path, RecordKind::File, sink)? {
                let arena = Arena::new();
                let fields = Fields::parse(arena.alloc_str(&text), &arena).map_err(Into::into);
                match unless_malformed(fields.and_then(Session::read))? {
                    Some(read) => session = read,
                    None => sink.skip(RecordKind::File, path, "its fields cannot be read")?,
                }
            }
        } else if let Some((_, path)) = self.files.messages.first() {
            sink.warn(path, "the file of its session is not there, so its title and folder are not known");
        }
        self.add_beside(&mut session, project, sink)?;
        Ok(session)
    }

    fn add_beside(
        &self,
        session: &mut Session,
        project: Option<&str>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        if let Some(text) = project.map(|path| peek_object(self.bundle, path)).transpose()?.flatten() {
            unless_malformed(session.add_project(&text))?;
        }
        for (path, tasks) in [(self.files.tasks, true), (self.files.changes, false)] {
            let Some(path) = path else { continue };
            let bytes = match self.bundle.read(path, MAX_LENGTH as u64) {
                Ok(bytes) => bytes,
                Err(error) if error.kind == ErrorKind::Limit => {
                    sink.skip(RecordKind::File, path, &error.message)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let text = String::from_utf8_lossy(&bytes);
            let added = list(text.trim()).and_then(|list| {
                if tasks {
                    session.add_tasks(&list);
                    Ok(())
                } else {
                    session.add_changes(&list)
                }
            });
            if unless_malformed(added)?.is_none() {
                sink.skip(RecordKind::File, path, "it is not a list")?;
            }
        }
        Ok(())
    }

    /// Reads all messages without their parts: their order, and what they say about the session.
    fn survey(&self, without_title: bool) -> Result<(Vec<Entry<Source<'r>>>, Facts), ImportError> {
        let (mut entries, mut facts) = (Vec::new(), Facts::default());
        let mut prompts = BTreeSet::new();
        let mut arena = Arena::new();
        for source in self.files.messages.iter().take(MAX_MESSAGES) {
            let info = self.peek(*source, &arena)?;
            let id = info.as_ref().and_then(|info| info.id).unwrap_or(source.0);
            if let Some(info) = &info {
                facts.add(info, id);
                prompts.extend((info.role == Role::User).then_some(source.1));
            }
            let created = info.as_ref().and_then(|info| info.created);
            entries.push(Entry { id: id.to_owned(), created, source: *source });
            arena.reset();
        }
        order::sort(&mut entries);
        let first = entries.iter().filter(|entry| without_title && prompts.contains(entry.source.1));
        for entry in first.take(MAX_PROMPTS) {
            if facts.title.is_none() {
                self.add_title(entry, &mut facts)?;
            }
        }
        Ok((entries, facts))
    }

    fn peek<'a>(&self, source: Source<'r>, arena: &'a Arena) -> Result<Option<Info<'a>>, ImportError> {
        let Some(text) = peek_object(self.bundle, source.1)? else { return Ok(None) };
        let fields = Fields::parse(arena.alloc_str(&text), arena).map_err(Into::into);
        unless_malformed(fields.and_then(Info::read))
    }

    /// Adds the first text of the person.
    fn add_title(&self, entry: &Entry<Source<'r>>, facts: &mut Facts) -> Result<(), ImportError> {
        let arena = Arena::new();
        let Some(mut info) = self.peek(entry.source, &arena)? else { return Ok(()) };
        let mut parts = unless_malformed(info.take_parts())?.unwrap_or_default();
        for (name, path) in self.index.parts(self.root, entry.source.0) {
            if let Some(text) = peek_object(self.bundle, path)? {
                parts.push(PartText { text: arena.alloc_str(&text), key: (*name).to_owned() });
            }
        }
        let id = arena.alloc_str(&entry.id);
        let Some(record) = unless_malformed(Record::read(info, id, &parts, None, false))? else {
            return Ok(());
        };
        for piece in record.pieces.iter().filter(|piece| piece.message.role == Role::User) {
            piece.texts.iter().for_each(|text| facts.add_prompt(text, (entry.created, entry.id.clone())));
        }
        Ok(())
    }

    /// Emits the messages in their order.
    fn emit(&self, entries: &[Entry<Source<'r>>], facts: &Facts, sink: &mut Sink) -> Result<(), ImportError> {
        let (mut ids, mut reports) = (PieceIds::default(), Reports::default());
        let mut last: Option<String> = None;
        let mut arena = Arena::new();
        for entry in entries {
            let result = self.message(entry, facts, &arena, &mut ids, &mut reports, last.as_deref(), sink);
            match result {
                Err(error) if error.kind == ErrorKind::Malformed => {
                    sink.skip(RecordKind::Message, entry.source.1, &error.message)?;
                }
                result => last = result?.or(last),
            }
            arena.reset();
        }
        for (_, path) in self.files.messages.iter().skip(MAX_MESSAGES) {
            sink.skip(RecordKind::Message, path, "the session has more messages than fit")?;
        }
        Ok(())
    }

    /// Emits one message, and returns the id of its last piece.
    #[expect(clippy::too_many_arguments, reason = "what is known about the session so far")]
    fn message(
        &self,
        entry: &Entry<Source<'r>>,
        facts: &Facts,
        arena: &Arena,
        ids: &mut PieceIds,
        reports: &mut Reports,
        parent: Option<&str>,
        sink: &mut Sink,
    ) -> Result<Option<String>, ImportError> {
        let (name, path) = entry.source;
        let Some(text) = read_object(self.bundle, path, RecordKind::Message, sink)? else { return Ok(None) };
        let mut info = Info::read(Fields::parse(arena.alloc_str(&text), arena)?)?;
        let role = info.unknown_role;
        let mut parts = info.take_parts()?;
        self.read_parts(name, text.len(), arena, &mut parts, sink)?;
        let mut record =
            Record::read(info, arena.alloc_str(&entry.id), &parts, facts.system.as_deref(), true)?;
        for id in ids.claim(&mut record) {
            let place = format!("{path}#{}", shortened(&id));
            sink.skip(RecordKind::Message, &place, ids.reason())?;
        }
        reports.add(&record, role, path, sink);
        let messages = messages(record.pieces, parent);
        sink.more_messages(&messages)?;
        Ok(messages.last().map(|message| message.id.to_string()))
    }

    /// Adds the parts in their own files, as long as they fit into memory together with the `bytes` of the message.
    fn read_parts<'a>(
        &self,
        message: &str,
        mut bytes: usize,
        arena: &'a Arena,
        parts: &mut Vec<PartText<'a>>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        for (name, path) in self.index.parts(self.root, message) {
            let Some(text) = read_object(self.bundle, path, RecordKind::File, sink)? else { continue };
            bytes += text.len();
            if bytes > MAX_LENGTH {
                bytes -= text.len();
                sink.skip(RecordKind::File, path, "the parts of its message are longer than 16 MiB")?;
                continue;
            }
            parts.push(PartText { text: arena.alloc_str(&text), key: (*name).to_owned() });
        }
        Ok(())
    }
}

/// The text, if it is a JSON list.
fn list(text: &str) -> Result<String, ImportError> {
    if !text.starts_with('[') {
        return Err(ImportError::malformed("it is not a list"));
    }
    Ok(value(text, &Arena::new())?)
}
