//! Reads a session from its many small files: first all messages without their parts, then each message with its parts.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Bundle, ErrorKind, Fields, ImportError, Parser, RecordKind, Role, Sink, unless_malformed,
    warnings::shortened,
};

use crate::{
    detect,
    fields::{id_of_name, value},
    message::{Info, PartText, Record},
    order::{self, Entry, MAX_MESSAGES, PieceIds},
    reading::{self, MAX_LENGTH, Reports, peek_object, read_object},
    session::{Facts, Session},
    storage_index::{Key, SessionFiles, StorageIndex},
};

/// Prompts that are searched for a title.
const MAX_PROMPTS: usize = 8;
/// Bytes of the parts of such a prompt.
const MAX_TITLE_BYTES: usize = 4 * 1024 * 1024;
/// Parts of one message that have their own files; as many as a list inside of a message may have.
const MAX_PARTS: usize = 50_000;

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

/// Reads the session `key`; `project` is the text of the file of its project, and `taken` has the ids of those before it.
pub(crate) fn read(
    bundle: &Bundle,
    index: &StorageIndex<'_>,
    key: Key<'_>,
    project: Option<&str>,
    taken: &mut BTreeSet<String>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let Some(files) = index.sessions.get(&key) else { return Ok(()) };
    StoredSession { bundle, index, files, root: key.0, id: key.1 }.read(project, taken, sink)
}

impl<'r> StoredSession<'r> {
    fn read(
        &self,
        project: Option<&str>,
        taken: &mut BTreeSet<String>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let Some(locator) = self.locator() else { return Ok(()) };
        let session = self.session(project, sink)?;
        if self.files.messages.is_empty() {
            return sink.skip(RecordKind::Conversation, locator, "the session has no messages");
        }
        let (entries, facts) = self.survey(session.title.is_none())?;
        let id = self.new_id(&session, taken, sink);
        sink.conversation(&session.conversation(&id, &facts, detect::format_of(self.root), locator)?, &[])?;
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
            session = self.session_file(path, sink)?.unwrap_or_default();
            let mut path = path;
            // A session that moved to another project leaves its old file.
            for other in &self.files.others {
                let Some(read) = self.session_file(other, sink)? else { continue };
                let newer = read.updated > session.updated || session.id.is_none();
                let mut old = *other;
                if newer {
                    session = read;
                    std::mem::swap(&mut path, &mut old);
                }
                sink.skip(RecordKind::File, old, "another file of the same session is newer")?;
            }
        } else if let Some((_, path)) = self.files.messages.first() {
            sink.warn(path, "the file of its session is not there, so its title and folder are not known");
        }
        self.add_beside(&mut session, project, sink)?;
        Ok(session)
    }

    /// The session as the file at `path` has it.
    fn session_file(&self, path: &str, sink: &mut Sink) -> Result<Option<Session>, ImportError> {
        let Some(text) = read_object(self.bundle, path, RecordKind::File, sink)? else { return Ok(None) };
        let arena = Arena::new();
        let fields = Fields::read(&mut Parser::new(arena.alloc_str(&text), &arena)).map_err(Into::into);
        let session = unless_malformed(fields.and_then(Session::read))?;
        if session.is_none() {
            sink.skip(RecordKind::File, path, "its fields cannot be read")?;
        }
        Ok(session)
    }

    /// The id of the session, or that in the names of its files if an earlier session has it.
    fn new_id(&self, session: &Session, taken: &mut BTreeSet<String>, sink: &mut Sink) -> String {
        let name = id_of_name(self.id).into_owned();
        let own = session.id.clone().unwrap_or_else(|| name.clone());
        if taken.insert(own.clone()) {
            return own;
        }
        let locator = self.locator().unwrap_or_default();
        sink.warn(locator, "an earlier session has the id in the file; the name of the file is the id");
        taken.insert(name.clone());
        name
    }

    fn add_beside(
        &self,
        session: &mut Session,
        project: Option<&str>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        if let Some(text) = project {
            unless_malformed(session.add_project(text))?;
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
            let own = info.as_ref().and_then(|info| info.id);
            let id = own.map_or_else(|| id_of_name(source.0), Cow::Borrowed).into_owned();
            if let Some(info) = &info {
                facts.add(info, &id);
                prompts.extend((info.role == Role::User).then_some(source.1));
            }
            let created = info.as_ref().and_then(|info| info.created);
            entries.push(Entry { id, created, source: *source });
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
        let fields = Fields::read(&mut Parser::new(arena.alloc_str(&text), arena)).map_err(Into::into);
        unless_malformed(fields.and_then(Info::read))
    }

    /// Adds the first text of the person.
    fn add_title(&self, entry: &Entry<Source<'r>>, facts: &mut Facts) -> Result<(), ImportError> {
        let arena = Arena::new();
        let Some(mut info) = self.peek(entry.source, &arena)? else { return Ok(()) };
        let mut parts = unless_malformed(info.take_parts())?.unwrap_or_default();
        let mut bytes = 0;
        for (name, path) in self.index.parts(self.root, entry.source.0).iter().take(MAX_PARTS) {
            let Some(text) = peek_object(self.bundle, path)? else { continue };
            bytes += text.len();
            if bytes > MAX_TITLE_BYTES {
                break;
            }
            parts.push(PartText { text: arena.alloc_str(&text), key: id_of_name(name).into_owned() });
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
        let mut info = Info::read(Fields::read(&mut Parser::new(arena.alloc_str(&text), arena))?)?;
        let role = info.unknown_role;
        let mut parts = info.take_parts()?;
        self.read_parts(name, text.len(), arena, &mut parts, sink)?;
        let mut record =
            Record::read(info, arena.alloc_str(&entry.id), &parts, facts.system.as_deref(), true)?;
        for id in ids.claim(&mut record) {
            let place = format!("{path}#{}", shortened(&id));
            sink.skip(RecordKind::Message, &place, ids.reason())?;
        }
        reports.add(&record, role, path, sink)?;
        reading::emit(record.pieces, parent, sink)
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
        for (at, (name, path)) in self.index.parts(self.root, message).iter().enumerate() {
            if at >= MAX_PARTS {
                sink.skip(RecordKind::File, path, "its message has more parts than fit")?;
                continue;
            }
            let Some(text) = read_object(self.bundle, path, RecordKind::File, sink)? else { continue };
            bytes += text.len();
            if bytes > MAX_LENGTH {
                bytes -= text.len();
                sink.skip(RecordKind::File, path, "the parts of its message are longer than 16 MiB")?;
                continue;
            }
            parts.push(PartText { text: arena.alloc_str(&text), key: id_of_name(name).into_owned() });
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
