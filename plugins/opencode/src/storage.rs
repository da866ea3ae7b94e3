//! Reads a session from its many small files: first all messages without their parts, then each message with its parts.

use std::{borrow::Cow, collections::BTreeSet};

use satchel_importer::{
    Arena, Bundle, ErrorKind, Fields, ImportError, Parser, RecordKind, Sink, unless_malformed,
};

use crate::{
    detect,
    fields::{id_of_name, value},
    message::{Info, PartText},
    order::MAX_MESSAGES,
    reading::{MAX_LENGTH, peek_object, read_object},
    session::Session,
    session_messages::{MAX_PARTS, MessageStore, WholeMessage, emit, survey},
    storage_index::{Key, SessionFiles, StorageIndex},
};

/// A session in a storage.
struct StoredSession<'r> {
    bundle: &'r Bundle,
    index: &'r StorageIndex<'r>,
    files: &'r SessionFiles<'r>,
    root: &'r str,
    /// The id in the names of the files.
    id: &'r str,
}

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
        let messages = self.files.messages.iter().copied();
        let (entries, facts) = survey(self, messages.take(MAX_MESSAGES), session.title.is_none())?;
        let id = self.new_id(&session, taken, sink);
        sink.conversation(&session.conversation(&id, &facts, detect::format_of(self.root), locator)?, &[])?;
        session.report(locator, sink);
        emit(self, &entries, &facts, sink)?;
        for (_, path) in self.files.messages.iter().skip(MAX_MESSAGES) {
            sink.skip(RecordKind::Message, path, "the session has more messages than fit")?;
        }
        Ok(())
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

impl<'r> MessageStore for StoredSession<'r> {
    /// The id in the name of the file, and its path.
    type Key = (&'r str, &'r str);

    fn locator(&self, (_, path): Self::Key) -> Cow<'_, str> {
        path.into()
    }

    fn fallback_id(&self, (name, _): Self::Key) -> Cow<'_, str> {
        id_of_name(name)
    }

    fn rank(&self, _: Self::Key) -> Option<i64> {
        None
    }

    fn peek<'a>(&self, (_, path): Self::Key, arena: &'a Arena) -> Result<Option<Info<'a>>, ImportError> {
        let Some(text) = peek_object(self.bundle, path)? else { return Ok(None) };
        let fields = Fields::read(&mut Parser::new(arena.alloc_str(&text), arena)).map_err(Into::into);
        unless_malformed(fields.and_then(Info::read))
    }

    fn peek_parts<'a>(
        &self,
        (message, _): Self::Key,
        info: &mut Info<'a>,
        limit: usize,
    ) -> Result<Vec<PartText<'a>>, ImportError> {
        let mut parts = unless_malformed(info.take_parts())?.unwrap_or_default();
        let arena = info.fields.arena();
        let mut bytes = 0;
        for (name, path) in self.index.parts(self.root, message).iter().take(MAX_PARTS) {
            let Some(text) = peek_object(self.bundle, path)? else { continue };
            bytes += text.len();
            if bytes > limit {
                break;
            }
            parts.push(PartText { text: arena.alloc_str(&text), key: id_of_name(name).into_owned() });
        }
        Ok(parts)
    }

    fn read<'a>(
        &self,
        (name, path): Self::Key,
        arena: &'a Arena,
        sink: &mut Sink,
    ) -> Result<Option<WholeMessage<'a>>, ImportError> {
        let Some(text) = read_object(self.bundle, path, RecordKind::Message, sink)? else { return Ok(None) };
        let mut info = Info::read(Fields::read(&mut Parser::new(arena.alloc_str(&text), arena))?)?;
        let mut parts = info.take_parts()?;
        self.read_parts(name, text.len(), arena, &mut parts, sink)?;
        Ok(Some((info, parts)))
    }
}

/// The text, if it is a JSON list.
fn list(text: &str) -> Result<String, ImportError> {
    if !text.starts_with('[') {
        return Err(ImportError::malformed("it is not a list"));
    }
    Ok(value(text, &Arena::new())?)
}
