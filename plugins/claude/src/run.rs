//! Reads one export: its account, then its conversations, projects, memories and artifacts.

use std::{cell::Cell, collections::BTreeMap};

use satchel_importer::{
    AccountRecord, Arena, Bundle, Element, ImportError, Importer as _, JsonArray, Leftover, Parser,
    RecordKind, Sink, Summary, pam::unread::in_field,
};

use crate::{
    Claude,
    detect::{self, BATCHED, BRANCHING, ExportFile, FileKind, LINEAR},
    layout,
    map::{
        self, Context,
        artifact::{self, ArtifactFiles},
        project, reflection,
    },
    memory::{self, Fallback, MemoryRecords, stored},
    raw,
};

const PRIVATE: &str = "this file is private and is not read";
const SAME_DOCUMENT: &str = "another document of the project has the same id";
const STARTER: &str = "the provider made this project, to show what projects are";
const INDEX_ONLY: &str = "the conversation is only named here; its messages are not in the export";
const UNDESCRIBED: &str = "no description of this artifact is in the export; its files are not imported";

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    Claude::describe().version_of(format)?;
    let mut files: Vec<ExportFile> =
        detect::find_exports(bundle)?.into_iter().flat_map(|export| export.files).collect();
    if files.is_empty() {
        return Err(ImportError::not_this_format("none of the files is of a Claude export"));
    }
    // The manifest comes first: it says when the export was made.
    files.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    let mut run = Run { bundle, artifacts: artifact_files(&files), exported: None, newest: None };
    for file in &files {
        run.read(file, sink)?;
    }
    for path in run.artifacts.values().filter_map(|files| files.paths.first()) {
        sink.warn(path, UNDESCRIBED);
    }
    Ok(bundle.summary())
}

/// The files of each artifact, by its folder.
fn artifact_files(files: &[ExportFile]) -> BTreeMap<String, ArtifactFiles> {
    let mut all: BTreeMap<String, ArtifactFiles> = BTreeMap::new();
    for file in files.iter().filter(|file| file.kind == FileKind::ArtifactFile) {
        let Some(folder) = layout::artifact_folder(&file.path) else { continue };
        let files = all.entry(folder.to_owned()).or_default();
        folder.clone_into(&mut files.folder);
        files.paths.push(file.path.clone());
    }
    all
}

struct Run<'r> {
    bundle: &'r Bundle,
    /// Files of artifacts that were not read yet, by folder.
    artifacts: BTreeMap<String, ArtifactFiles>,
    /// When the export was made, if the manifest says.
    exported: Option<i64>,
    /// The newest time that was read.
    newest: Option<i64>,
}

impl Run<'_> {
    fn read(&mut self, file: &ExportFile, sink: &mut Sink) -> Result<(), ImportError> {
        match file.kind {
            FileKind::Manifest => self.read_manifest(file, sink),
            FileKind::Users => self.read_users(file, sink),
            FileKind::Conversations | FileKind::DesignChats => self.read_conversations(file, sink),
            FileKind::Projects => self.read_projects(file, sink),
            FileKind::Memories => self.read_memories(file, sink),
            FileKind::Artifact => self.read_artifact(file, sink),
            FileKind::Reflection => self.read_reflections(file, sink),
            FileKind::Unrecognized => self.read_unrecognized(file, sink),
            FileKind::Private => {
                sink.warn(&file.path, PRIVATE);
                Ok(())
            }
            FileKind::ArtifactFile => Ok(()),
        }
    }

    /// Reads only the time of the export: the addresses in a manifest are secrets.
    fn read_manifest(&mut self, file: &ExportFile, sink: &mut Sink) -> Result<(), ImportError> {
        let exported = &mut self.exported;
        JsonArray::new(&file.path).kind(RecordKind::File).each(self.bundle, sink, |element, _| {
            let (mut json, mut rest) = (element.parser(), Leftover::default());
            if json.enter_object()? {
                while let Some(key) = json.key()? {
                    if key == "created_at" {
                        *exported = rest.time(key, &mut json)?;
                    }
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Reads ids and names; mail addresses and telephone numbers stay out of the store.
    ///
    /// No other record depends on them: this file may be imported with the conversations, before or after them.
    fn read_users(&self, file: &ExportFile, sink: &mut Sink) -> Result<(), ImportError> {
        JsonArray::new(&file.path).kind(RecordKind::File).each(self.bundle, sink, |element, sink| {
            let (mut json, mut rest) = (element.parser(), Leftover::default());
            let (mut uuid, mut name) = (None, None);
            if json.enter_object()? {
                while let Some(key) = json.key()? {
                    match key {
                        "uuid" => uuid = rest.nonempty_text(key, &mut json)?,
                        "full_name" => name = rest.nonempty_text(key, &mut json)?,
                        _ => {}
                    }
                }
            }
            let id = uuid.ok_or_else(|| ImportError::malformed("the user has no uuid"))?.to_owned();
            let name = name.map(ToOwned::to_owned);
            sink.account(&AccountRecord { id, name, locator: element.locator() })
        })?;
        Ok(())
    }

    fn read_conversations(&mut self, file: &ExportFile, sink: &mut Sink) -> Result<(), ImportError> {
        let context = Context { version: version(file)?, design: file.kind == FileKind::DesignChats };
        let newest = Cell::new(self.newest);
        let key = context.key();
        JsonArray::new(&file.path).pointer(file.pointer).each(self.bundle, sink, |element, sink| {
            let read = |sink: &mut Sink| {
                let raw = raw::Conversation::read(&mut element.parser(), context.design)?;
                let raw = raw.ok_or_else(|| ImportError::malformed("it is not an object"))?;
                let latest = raw.newest();
                newest.set(newest.get().max(latest));
                if raw.listing == raw::Listing::Absent && raw.uuid.is_some() {
                    if self.has_own_file(file, raw.uuid) {
                        return Ok(None);
                    }
                    sink.warn(&element.locator(), INDEX_ONLY);
                }
                emit_conversation(raw, &element, context, sink)?;
                Ok(Some(note(&key, latest)))
            };
            let unchanged = |note: &[u8]| {
                newest_of(note, &key).map(|latest| newest.set(newest.get().max(latest))).is_ok()
            };
            element.remembering(sink, unchanged, read)
        })?;
        self.newest = newest.get();
        Ok(())
    }

    /// Whether a conversation in an index has a file of its own.
    fn has_own_file(&self, index: &ExportFile, uuid: Option<&str>) -> bool {
        let folder = index.path.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
        uuid.is_some_and(|uuid| self.bundle.entry(&format!("{folder}conversations/{uuid}.json")).is_some())
    }

    fn read_projects(&mut self, file: &ExportFile, sink: &mut Sink) -> Result<(), ImportError> {
        let version = version(file)?;
        let fallback = Fallback { account: None, observed: self.exported.or(self.newest) };
        let mut newest = self.newest;
        let list = JsonArray::new(&file.path).pointer(file.pointer).kind(RecordKind::Memory);
        list.each(self.bundle, sink, |element, sink| {
            let locator = element.locator();
            let project = raw::Project::read(&mut element.parser())?;
            let mut project = project.ok_or_else(|| ImportError::malformed("it is not an object"))?;
            newest = newest.max(project.newest());
            if project.starter {
                return sink.skip(RecordKind::Memory, &locator, STARTER);
            }
            if let Some(field) = project.unread() {
                sink.warn(&locator, &in_field(field));
            }
            let rest = std::mem::take(&mut project.rest).into_json();
            let mut memories = memory::project::evidence(&project, &fallback, rest.as_deref(), &locator);
            if !project.documents.is_empty() {
                let key = project::key(&project);
                let (conversation, messages, repeated) =
                    project::map(project, version, rest.as_deref(), &locator);
                sink.conversation(&conversation, &messages)?;
                for at in repeated {
                    sink.skip(RecordKind::Message, &format!("{locator}.docs[{at}]"), SAME_DOCUMENT)?;
                }
                for evidence in &mut memories.evidence {
                    evidence.conversation = Some(key.clone());
                }
            }
            emit_memories(&memories, sink)
        })?;
        self.newest = newest;
        Ok(())
    }

    fn read_memories(&mut self, file: &ExportFile, sink: &mut Sink) -> Result<(), ImportError> {
        let account = stored::account_of(&file.path);
        let observed = self.exported.or(self.newest);
        JsonArray::new(&file.path).kind(RecordKind::Memory).each(self.bundle, sink, |element, sink| {
            // A time in the file is preferred: it does not depend on the other files.
            let newest = stored::newest(&mut Parser::new(element.text(), element.arena()))?;
            let fallback = Fallback { account, observed: newest.or(observed) };
            emit_memories(&stored::read(&mut element.parser(), &fallback, &element.locator())?, sink)
        })?;
        Ok(())
    }

    fn read_artifact(&mut self, file: &ExportFile, sink: &mut Sink) -> Result<(), ImportError> {
        let folder = layout::artifact_folder(&file.path).unwrap_or_default();
        let mut files = self.artifacts.remove(folder).unwrap_or_default();
        let mut texts = Vec::new();
        for (name, pointer) in [("comments.json", ""), ("artifact_comments.json", "/threads")] {
            let path = format!("{folder}{name}");
            if let Some(at) = files.paths.iter().position(|file| *file == path) {
                texts.extend(self.threads(&files.paths.remove(at), pointer, sink)?);
            }
        }
        let (arena, version) = (Arena::new(), version(file)?);
        let mut newest = self.newest;
        JsonArray::new(&file.path).each(self.bundle, sink, |element, sink| {
            let artifact = raw::Artifact::read(&mut element.parser())?;
            let artifact = artifact.ok_or_else(|| ImportError::malformed("it is not an object"))?;
            newest = newest.max(artifact.newest());
            let threads =
                texts.iter().filter_map(|text| raw::Thread::read(&mut Parser::new(text, &arena)).ok()?);
            let (conversation, messages) =
                artifact::map(artifact, threads.collect(), &files, version, &element.locator())
                    .map_err(ImportError::malformed)?;
            sink.conversation(&conversation, &messages)
        })?;
        self.newest = newest;
        Ok(())
    }

    /// The threads of comments in a file, each as JSON text; there are few.
    fn threads(&self, path: &str, pointer: &str, sink: &mut Sink) -> Result<Vec<String>, ImportError> {
        let mut threads = Vec::new();
        let list = JsonArray::new(path).pointer(pointer).kind(RecordKind::Message);
        list.each(self.bundle, sink, |element, sink| {
            let thread = raw::Thread::read(&mut element.parser())?
                .ok_or_else(|| ImportError::malformed("it is no thread of comments"))?;
            if let Some(field) = thread.rest.unread() {
                sink.warn(&element.locator(), &in_field(field));
            }
            threads.push(element.text().to_owned());
            Ok(())
        })?;
        Ok(threads)
    }

    fn read_reflections(&mut self, file: &ExportFile, sink: &mut Sink) -> Result<(), ImportError> {
        let version = version(file)?;
        JsonArray::new(&file.path).each(self.bundle, sink, |element, sink| {
            let name = layout::stem(&file.path);
            let (conversation, messages) =
                reflection::read(&mut element.parser(), name, version, &element.locator())?
                    .ok_or_else(|| ImportError::malformed("it is not an object"))?;
            sink.conversation(&conversation, &messages)
        })?;
        Ok(())
    }

    /// Reports whether the file is empty or broken.
    fn read_unrecognized(&self, file: &ExportFile, sink: &mut Sink) -> Result<(), ImportError> {
        if self.bundle.entry(&file.path).is_some_and(|entry| entry.size == 0) {
            sink.warn(&file.path, "the file is empty");
        }
        let list = JsonArray::new(&file.path).pointer(file.pointer).kind(RecordKind::File);
        list.each(self.bundle, sink, |element, _| match element.text() {
            "null" => Ok(()),
            _ => Err(ImportError::malformed("no record of this shape is known")),
        })?;
        Ok(())
    }
}

/// The format version of a file's records. It must not depend on the other files.
fn version(file: &ExportFile) -> Result<&'static str, ImportError> {
    let format = match file.kind {
        FileKind::Conversations if file.branching => BRANCHING,
        FileKind::Conversations | FileKind::Projects => LINEAR,
        _ => BATCHED,
    };
    Claude::describe().version_of(format)
}

/// The note for a conversation: the key of its context, and its newest time.
fn note(key: &str, newest: Option<i64>) -> Vec<u8> {
    let newest = newest.map(|time| time.to_string()).unwrap_or_default();
    format!("{key} {newest}").into_bytes()
}

/// The newest time in a note with this key.
fn newest_of(note: &[u8], key: &str) -> Result<Option<i64>, StaleNote> {
    let note = std::str::from_utf8(note).map_err(|_| StaleNote)?;
    let newest = note.rsplit_once(' ').filter(|(other, _)| *other == key).ok_or(StaleNote)?.1;
    if newest.is_empty() { Ok(None) } else { newest.parse().map(Some).map_err(|_| StaleNote) }
}

/// The note has another key.
struct StaleNote;

fn emit_memories(records: &MemoryRecords, sink: &mut Sink) -> Result<(), ImportError> {
    for (locator, message) in &records.warnings {
        sink.warn(locator, message);
    }
    for (locator, reason) in &records.skipped {
        sink.skip(RecordKind::Memory, locator, reason)?;
    }
    if records.evidence.is_empty() { Ok(()) } else { sink.evidence(&records.evidence) }
}

fn emit_conversation<'a>(
    raw: raw::Conversation<'a>,
    element: &Element<'a>,
    context: Context,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    // If no message was read, the host says so.
    let unread = raw.rest.unread().filter(|_| !raw.messages.is_empty());
    let records = map::map(raw, context, element).map_err(ImportError::malformed)?;
    if let Some(field) = unread {
        sink.warn(&element.locator(), &in_field(field));
    }
    for (locator, message) in &records.warnings {
        sink.warn(locator, message);
    }
    sink.conversation(&records.conversation, &records.messages)?;
    for (kind, locator, reason) in &records.skipped {
        sink.skip(*kind, locator, reason)?;
    }
    if records.evidence.is_empty() { Ok(()) } else { sink.evidence(&records.evidence) }
}
