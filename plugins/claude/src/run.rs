//! Reads one export: whose it is, its conversations one by one, then its projects, memories and artifacts.

use std::{cell::Cell, collections::BTreeMap};

use satchel_importer::{
    AccountRecord, Arena, Bundle, Element, ImportError, Importer as _, JsonArray, Leftover, Parser,
    RecordKind, Sink, Summary, pam::unread::in_field,
};

use crate::{
    Claude,
    detect::{self, BATCHED, BRANCHING, File, Kind, LINEAR},
    layout,
    map::{
        self, Context,
        artifact::{self, Beside},
        project, reflection,
    },
    memory::{self, Found, Origin, stored},
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
    let mut files: Vec<File> = detect::survey(bundle)?.into_iter().flat_map(|export| export.files).collect();
    if files.is_empty() {
        return Err(ImportError::not_this_format("none of the files is of a Claude export"));
    }
    // When the export was made comes first; the rest follows in the order of `Kind`.
    files.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    let beside = artifact_files(&files);
    let mut run = Run { bundle, beside, exported: None, newest: None };
    for file in &files {
        run.read(file, sink)?;
    }
    for left in run.beside.values().filter_map(|beside| beside.files.first()) {
        sink.warn(left, UNDESCRIBED);
    }
    Ok(bundle.summary())
}

/// The files of each artifact, by its folder.
fn artifact_files(files: &[File]) -> BTreeMap<String, Beside> {
    let mut all: BTreeMap<String, Beside> = BTreeMap::new();
    for file in files.iter().filter(|file| file.kind == Kind::ArtifactFile) {
        let Some(folder) = layout::artifact_folder(&file.path) else { continue };
        let beside = all.entry(folder.to_owned()).or_default();
        folder.clone_into(&mut beside.folder);
        beside.files.push(file.path.clone());
    }
    all
}

struct Run<'r> {
    bundle: &'r Bundle,
    /// Files of artifacts that were not read yet.
    beside: BTreeMap<String, Beside>,
    /// When the export was made, if it says.
    exported: Option<i64>,
    /// The newest time of all that was read.
    newest: Option<i64>,
}

impl Run<'_> {
    fn read(&mut self, file: &File, sink: &mut Sink) -> Result<(), ImportError> {
        match file.kind {
            Kind::Manifest => self.read_manifest(file, sink),
            Kind::Users => self.read_users(file, sink),
            Kind::Conversations | Kind::DesignChats => self.read_conversations(file, sink),
            Kind::Projects => self.read_projects(file, sink),
            Kind::Memories => self.read_memories(file, sink),
            Kind::Artifact => self.read_artifact(file, sink),
            Kind::Reflection => self.read_reflections(file, sink),
            Kind::Silent => self.read_silent(file, sink),
            Kind::Private => {
                sink.warn(&file.path, PRIVATE);
                Ok(())
            }
            Kind::ArtifactFile => Ok(()),
        }
    }

    /// Takes the time of the export and nothing else: the addresses in a manifest are secrets.
    fn read_manifest(&mut self, file: &File, sink: &mut Sink) -> Result<(), ImportError> {
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

    /// Takes ids and names; mail addresses and telephone numbers stay out of the store.
    ///
    /// No record depends on them: this file may come with the conversations, before or behind them.
    fn read_users(&self, file: &File, sink: &mut Sink) -> Result<(), ImportError> {
        JsonArray::new(&file.path).kind(RecordKind::File).each(self.bundle, sink, |element, sink| {
            let (mut json, mut rest) = (element.parser(), Leftover::default());
            let (mut uuid, mut name) = (None, None);
            if json.enter_object()? {
                while let Some(key) = json.key()? {
                    match key {
                        "uuid" => uuid = rest.words(key, &mut json)?,
                        "full_name" => name = rest.words(key, &mut json)?,
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

    fn read_conversations(&mut self, file: &File, sink: &mut Sink) -> Result<(), ImportError> {
        let design = file.kind == Kind::DesignChats;
        let context = Context { version: version(file)?, design };
        let newest = Cell::new(self.newest);
        let key = context.key();
        JsonArray::new(&file.path).pointer(file.pointer).each(self.bundle, sink, |element, sink| {
            let read = |sink: &mut Sink| {
                let json = &mut element.parser();
                let raw =
                    if design { raw::Conversation::read_design(json) } else { raw::Conversation::read(json) };
                let raw = raw?.ok_or_else(|| ImportError::malformed("it is not an object"))?;
                let latest = raw.newest();
                newest.set(newest.get().max(latest));
                if raw.listing == raw::Listing::Absent && raw.uuid.is_some() {
                    if self.stands_alone(file, raw.uuid) {
                        return Ok(None);
                    }
                    sink.warn(&element.locator(), INDEX_ONLY);
                }
                emit(raw, &element, context, sink)?;
                Ok(Some(note(&key, latest)))
            };
            let holds = |noted: &[u8]| match newest_of(noted, &key) {
                Ok(latest) => {
                    newest.set(newest.get().max(latest));
                    true
                }
                Err(Stale) => false,
            };
            element.remembering(sink, holds, read)
        })?;
        self.newest = newest.get();
        Ok(())
    }

    /// Whether the conversation that an index names has a file of its own.
    fn stands_alone(&self, index: &File, uuid: Option<&str>) -> bool {
        let folder = index.path.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
        uuid.is_some_and(|uuid| self.bundle.entry(&format!("{folder}conversations/{uuid}.json")).is_some())
    }

    fn read_projects(&mut self, file: &File, sink: &mut Sink) -> Result<(), ImportError> {
        let version = version(file)?;
        let origin = Origin { owner: None, observed: self.exported.or(self.newest) };
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
            let kept = std::mem::take(&mut project.rest).into_json();
            let mut found = memory::project::evidence(&project, &origin, kept.as_deref(), &locator);
            if !project.documents.is_empty() {
                let key = project::key(&project);
                let (conversation, messages, repeated) =
                    project::records(project, version, kept.as_deref(), &locator);
                sink.conversation(&conversation, &messages)?;
                for at in repeated {
                    sink.skip(RecordKind::Message, &format!("{locator}.docs[{at}]"), SAME_DOCUMENT)?;
                }
                for evidence in &mut found.evidence {
                    evidence.conversation = Some(key.clone());
                }
            }
            tell(&found, sink)
        })?;
        self.newest = newest;
        Ok(())
    }

    fn read_memories(&mut self, file: &File, sink: &mut Sink) -> Result<(), ImportError> {
        let owner = stored::account_of(&file.path);
        let seen = self.exported.or(self.newest);
        JsonArray::new(&file.path).kind(RecordKind::Memory).each(self.bundle, sink, |element, sink| {
            // The time in the file is there whatever else of the export came along.
            let dated = stored::newest(&mut Parser::new(element.text(), element.arena()))?;
            let origin = Origin { owner, observed: dated.or(seen) };
            tell(&stored::read(&mut element.parser(), &origin, &element.locator())?, sink)
        })?;
        Ok(())
    }

    fn read_artifact(&mut self, file: &File, sink: &mut Sink) -> Result<(), ImportError> {
        let folder = layout::artifact_folder(&file.path).unwrap_or_default();
        let mut beside = self.beside.remove(folder).unwrap_or_default();
        let mut texts = Vec::new();
        for (name, pointer) in [("comments.json", ""), ("artifact_comments.json", "/threads")] {
            let path = format!("{folder}{name}");
            if let Some(at) = beside.files.iter().position(|file| *file == path) {
                texts.extend(self.threads(&beside.files.remove(at), pointer, sink)?);
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
                artifact::records(artifact, threads.collect(), &beside, version, &element.locator())
                    .map_err(ImportError::malformed)?;
            sink.conversation(&conversation, &messages)
        })?;
        self.newest = newest;
        Ok(())
    }

    /// The threads of comments in a file, each as JSON text; there are few, next to an artifact.
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

    fn read_reflections(&mut self, file: &File, sink: &mut Sink) -> Result<(), ImportError> {
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

    /// A file that shows nothing is empty or broken; a walk over it tells which.
    fn read_silent(&self, file: &File, sink: &mut Sink) -> Result<(), ImportError> {
        if self.bundle.entry(&file.path).is_some_and(|entry| entry.size == 0) {
            sink.warn(&file.path, "the file is empty");
        }
        JsonArray::new(&file.path).pointer(file.pointer).kind(RecordKind::File).each(
            self.bundle,
            sink,
            |element, _| match element.text() {
                "null" => Ok(()),
                _ => Err(ImportError::malformed("no record of this shape is known")),
            },
        )?;
        Ok(())
    }
}

/// The version of the shape of a file's records: it must not depend on which other files came along.
fn version(file: &File) -> Result<&'static str, ImportError> {
    let format = match file.kind {
        Kind::Conversations if file.branching => BRANCHING,
        Kind::Conversations | Kind::Projects => LINEAR,
        _ => BATCHED,
    };
    Claude::describe().version_of(format)
}

/// What is noted of a conversation: a key of all that was looked at beside it, and its newest time.
fn note(key: &str, newest: Option<i64>) -> Vec<u8> {
    let newest = newest.map(|time| time.to_string()).unwrap_or_default();
    format!("{key} {newest}").into_bytes()
}

/// The newest time in a note, if that is about the same key.
fn newest_of(note: &[u8], key: &str) -> Result<Option<i64>, Stale> {
    let note = std::str::from_utf8(note).map_err(|_| Stale)?;
    let newest = note.rsplit_once(' ').filter(|(noted, _)| *noted == key).ok_or(Stale)?.1;
    if newest.is_empty() { Ok(None) } else { newest.parse().map(Some).map_err(|_| Stale) }
}

/// A note that is about something else.
struct Stale;

/// Emits what was found about memories.
fn tell(found: &Found, sink: &mut Sink) -> Result<(), ImportError> {
    for (locator, message) in &found.warnings {
        sink.warn(locator, message);
    }
    for (locator, reason) in &found.skipped {
        sink.skip(RecordKind::Memory, locator, reason)?;
    }
    if found.evidence.is_empty() { Ok(()) } else { sink.evidence(&found.evidence) }
}

fn emit<'a>(
    raw: raw::Conversation<'a>,
    element: &Element<'a>,
    context: Context,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    // Where no message was read at all, the host says so.
    let unread = raw.rest.unread().filter(|_| !raw.messages.is_empty());
    let records = map::records(raw, context, element).map_err(ImportError::malformed)?;
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
