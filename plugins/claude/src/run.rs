//! Reads one export: whose it is, its conversations one by one, then its projects and memories.

use satchel_importer::{
    Bundle, Element, ImportError, Importer as _, JsonArray, Leftover, RecordKind, Sink, Summary,
};

use crate::{
    Claude,
    detect::{self, File, Kind},
    map::{self, Context, Owner},
    memory::{Origin, Read, project, stored},
    raw,
};

const PRIVATE: &str = "this file is private and is not read";
const INDEX_ONLY: &str = "the conversation is only named here; its messages are not in the export";

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = Claude::describe().version_of(format)?;
    let mut files: Vec<File> = detect::survey(bundle)?.into_iter().flat_map(|export| export.files).collect();
    if files.is_empty() {
        return Err(ImportError::not_this_format("none of the files is of a Claude export"));
    }
    // When the export was made and whose it is comes first; the rest follows in the order of `Kind`.
    files.sort_by(|a, b| (a.kind, &a.path).cmp(&(b.kind, &b.path)));
    let mut run = Run { bundle, version, owners: Vec::new(), exported: None, newest: None };
    for file in &files {
        run.read(file, sink)?;
    }
    report_unread(&files, sink);
    Ok(bundle.summary())
}

struct Run<'r> {
    bundle: &'r Bundle,
    version: &'static str,
    owners: Vec<Owner>,
    /// When the export was made, if it says.
    exported: Option<i64>,
    /// The newest time of all that was read.
    newest: Option<i64>,
}

impl Run<'_> {
    fn read(&mut self, file: &File, sink: &mut Sink) -> Result<(), ImportError> {
        match file.kind {
            Kind::Manifest => return self.read_manifest(file, sink),
            Kind::Users => return self.read_users(file, sink),
            Kind::Conversations | Kind::DesignChats => return self.read_conversations(file, sink),
            Kind::Projects => return self.read_memories(file, sink, project::read),
            Kind::Memories => return self.read_memories(file, sink, stored::read),
            Kind::Silent => return self.read_silent(file, sink),
            Kind::Private => sink.warn(&file.path, PRIVATE),
            Kind::NotRead => {}
        }
        Ok(())
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
    fn read_users(&mut self, file: &File, sink: &mut Sink) -> Result<(), ImportError> {
        let owners = &mut self.owners;
        JsonArray::new(&file.path).kind(RecordKind::File).each(self.bundle, sink, |element, _| {
            let (mut json, mut rest) = (element.parser(), Leftover::default());
            let (mut uuid, mut name) = (None, None);
            if json.enter_object()? {
                while let Some(key) = json.key()? {
                    match key {
                        "uuid" => uuid = rest.text(key, &mut json)?,
                        "full_name" => name = rest.text(key, &mut json)?,
                        _ => {}
                    }
                }
            }
            let uuid = uuid.ok_or_else(|| ImportError::malformed("the user has no uuid"))?;
            let name = name.filter(|name| !name.trim().is_empty()).map(ToOwned::to_owned);
            owners.push(Owner { uuid: uuid.to_owned(), name });
            Ok(())
        })?;
        Ok(())
    }

    fn read_conversations(&mut self, file: &File, sink: &mut Sink) -> Result<(), ImportError> {
        let design = file.kind == Kind::DesignChats;
        let context = Context { version: self.version, owners: &self.owners, design };
        let mut newest = self.newest;
        JsonArray::new(&file.path).pointer(file.pointer).each(self.bundle, sink, |element, sink| {
            let json = &mut element.parser();
            let raw =
                if design { raw::Conversation::read_design(json) } else { raw::Conversation::read(json) };
            let raw = raw?.ok_or_else(|| ImportError::malformed("it is not an object"))?;
            newest = newest.max(raw.newest());
            if raw.listing == raw::Listing::Absent && raw.uuid.is_some() {
                if self.stands_alone(file, raw.uuid) {
                    return Ok(());
                }
                sink.warn(&element.locator(), INDEX_ONLY);
            }
            emit(raw, &element, &context, sink)
        })?;
        self.newest = newest;
        Ok(())
    }

    /// Whether the conversation that an index names has a file of its own.
    fn stands_alone(&self, index: &File, uuid: Option<&str>) -> bool {
        let folder = index.path.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
        uuid.is_some_and(|uuid| self.bundle.entry(&format!("{folder}conversations/{uuid}.json")).is_some())
    }

    fn read_memories(&mut self, file: &File, sink: &mut Sink, read: Read) -> Result<(), ImportError> {
        // Who it belongs to, if it does not say so: only one person can be meant, or nobody.
        let owner = map::only(&self.owners);
        let origin = Origin { owner, observed: self.exported.or(self.newest) };
        let mut newest = self.newest;
        JsonArray::new(&file.path).kind(RecordKind::Memory).each(self.bundle, sink, |element, sink| {
            let found = read(&mut element.parser(), &origin, &element.locator())?;
            newest = newest.max(found.newest());
            for (locator, message) in &found.warnings {
                sink.warn(locator, message);
            }
            for (locator, reason) in &found.skipped {
                sink.skip(RecordKind::Memory, locator, reason)?;
            }
            if found.evidence.is_empty() { Ok(()) } else { sink.evidence(&found.evidence) }
        })?;
        self.newest = newest;
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

/// Says which files were left aside, so that nothing is lost in silence.
fn report_unread(files: &[File], sink: &mut Sink) {
    let mut unread = files.iter().filter(|file| file.kind == Kind::NotRead);
    if let Some(first) = unread.next() {
        let message = match unread.count() {
            0 => "files of this kind are not read yet; it is not imported".to_owned(),
            more => {
                format!("files of this kind are not read yet; it and {more} more like it are not imported")
            }
        };
        sink.warn(&first.path, &message);
    }
}

fn emit<'a>(
    raw: raw::Conversation<'a>,
    element: &Element<'a>,
    context: &Context<'_>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let records =
        map::records(raw, context, &element.locator(), element.arena()).map_err(ImportError::malformed)?;
    for (locator, message) in &records.warnings {
        sink.warn(locator, message);
    }
    sink.conversation(&records.conversation, &records.messages)?;
    for (kind, locator, reason) in &records.skipped {
        sink.skip(*kind, locator, reason)?;
    }
    if records.evidence.is_empty() { Ok(()) } else { sink.evidence(&records.evidence) }
}
