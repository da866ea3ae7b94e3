//! Reads one export: first what other records refer to, then memories, then conversations.

use std::collections::BTreeMap;

use satchel_importer::{
    Arena, Bundle, Element, EmbeddingRecord, Evidence, ImportError, Importer as _, JsonArray, Parser,
    RecordKind, Sink, Summary,
};

use crate::{
    MemU,
    detect::{self, File},
    generation::Generation,
    layout, map,
    memory::{self, Emit, Kind, Owner, Place},
    raw,
    shape::{LISTS, Seen, Shape, Sight},
    tables,
};

mod answers;
mod headers;

use answers::{Answers, Match};
use headers::Headers;

/// Messages that are mapped and handed over at once.
const CHUNK: usize = 2_000;

const NO_RECORD: &str = "no record of this shape is known";
const NO_OBJECT: &str = "it is not an object";
const NO_MESSAGES: &str = "the conversation is only named here; its messages are not in the export";
const PIPELINE: &str = "a result of the pipeline that does not say of which conversation";
const OPERATION: &str = "a line of the list of operations; the memories themselves tell more";

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = MemU::describe().version_of(format)?;
    if let Some(generation) = Generation::of(format) {
        let first = bundle.entries().first().map(|entry| entry.path.clone());
        let error = generation.error();
        return Err(first.map_or_else(|| error.clone(), |path| error.clone().at(path)));
    }
    let survey = detect::survey(bundle)?;
    if survey.exports.is_empty() {
        return Err(ImportError::not_this_format("none of the files is of MemU"));
    }
    for export in survey.exports {
        Run::new(bundle, version).export(&export.files, sink)?;
    }
    Ok(bundle.summary())
}

/// Records of one file, below one of its members or at its root.
struct Part<'f> {
    path: &'f str,
    pointer: String,
    shape: Shape,
}

struct Run<'r> {
    bundle: &'r Bundle,
    version: &'static str,
    answers: Answers,
    headers: Headers,
    /// Files whose root object breaks off, and whether that was told.
    broken: BTreeMap<String, bool>,
}

impl<'r> Run<'r> {
    fn new(bundle: &'r Bundle, version: &'static str) -> Self {
        Self {
            bundle,
            version,
            answers: Answers::default(),
            headers: Headers::default(),
            broken: BTreeMap::new(),
        }
    }

    fn export(&mut self, files: &[File], sink: &mut Sink) -> Result<(), ImportError> {
        self.headers.wanted = files.iter().any(|file| file.wrapped || file.shapes.contains(&Shape::Contents));
        let mut parts = Vec::new();
        for file in files {
            self.parts(file, &mut parts, sink)?;
        }
        parts.sort_by(|a, b| (a.shape, a.path, &a.pointer).cmp(&(b.shape, b.path, &b.pointer)));
        for part in &parts {
            self.read(part, sink)?;
        }
        for path in self.broken.iter().filter(|(_, told)| !**told).map(|(path, _)| path) {
            let size = self.bundle.entry(path).map_or(0, |entry| entry.size);
            sink.skip(RecordKind::File, &format!("{path}@{size}"), "the file ends before its list does")?;
        }
        for answer in self.answers.unmatched() {
            answer.emit(self.version, sink)?;
        }
        for locator in self.headers.unused() {
            sink.skip(RecordKind::Memory, &locator, headers::EMPTY)?;
        }
        Ok(())
    }

    fn parts<'f>(
        &mut self,
        file: &'f File,
        parts: &mut Vec<Part<'f>>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let path = file.path.as_str();
        if !file.wrapped {
            let shape = file.shapes.first().copied().unwrap_or(Shape::Memory);
            parts.push(Part { path, pointer: String::new(), shape });
            return Ok(());
        }
        let mut others = Vec::new();
        let tables = tables::of(self.bundle, path)?;
        if !tables.whole {
            self.broken.insert(path.to_owned(), false);
        }
        for name in tables.names {
            match layout::table(&name) {
                Some(shape) => parts.push(Part { path, pointer: format!("/{name}"), shape }),
                None => others.push(name),
            }
        }
        if !others.is_empty() {
            let message = format!("these members beside the lists are not imported: {}", others.join(", "));
            sink.warn(path, &message);
        }
        Ok(())
    }

    fn read(&mut self, part: &Part<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        let kind = match part.shape {
            Shape::Memory | Shape::Contents | Shape::Operation => RecordKind::Memory,
            Shape::Answer | Shape::Conversation | Shape::Request | Shape::Pipeline => {
                RecordKind::Conversation
            }
        };
        let list = JsonArray::new(part.path).pointer(&part.pointer).kind(kind);
        let dots = part.pointer.replace('/', ".");
        let outcome = list.each(self.bundle, sink, |element, sink| {
            let locator = format!("{}{dots}[{}]", part.path, element.index());
            self.record(&element, &locator, sink).map_err(|error| error.at(&locator))
        })?;
        if let (Some(_), Some(told)) = (outcome.cut, self.broken.get_mut(part.path)) {
            *told = true;
        }
        Ok(())
    }

    fn record(&mut self, element: &Element<'_>, locator: &str, sink: &mut Sink) -> Result<(), ImportError> {
        let shape = match Seen::read(&mut Parser::new(element.text(), element.arena())).sight() {
            Sight::Record { shape, .. } => shape,
            Sight::Other(generation) => return Err(ImportError::malformed(generation.refusal())),
            Sight::Nothing => return Err(ImportError::malformed(NO_RECORD)),
        };
        let json = &mut element.parser();
        let no_object = || ImportError::malformed(NO_OBJECT);
        match shape {
            Shape::Answer => {
                let answer = raw::Answer::read(json)?.ok_or_else(no_object)?;
                match self.answers.add(answer, locator)? {
                    Some(beyond) => beyond.emit(self.version, sink),
                    None => Ok(()),
                }
            }
            Shape::Memory => self.memory(raw::Memory::read(json)?.ok_or_else(no_object)?, locator, sink),
            Shape::Contents => {
                let raw = raw::Contents::read(json)?.ok_or_else(no_object)?;
                self.contents(raw, element.arena(), locator, sink)
            }
            Shape::Conversation | Shape::Request => {
                self.conversation(raw::Conversation::read(json)?.ok_or_else(no_object)?, locator, sink)
            }
            Shape::Pipeline => sink.skip(RecordKind::Conversation, locator, PIPELINE),
            Shape::Operation => sink.skip(RecordKind::Memory, locator, OPERATION),
        }
    }

    fn memory(&mut self, raw: raw::Memory<'_>, locator: &str, sink: &mut Sink) -> Result<(), ImportError> {
        let raw::Memory { id, agent, user, created, updated, lists, places, rest } = raw;
        let record = rest.into_json();
        let at = updated.or(created);
        let owner = Owner { memory: id, agent, user, at, record: record.as_deref() };
        let mut entries = 0;
        for ((list, name), place) in lists.iter().zip(LISTS).zip(places) {
            let place = format!("{locator}.{place}");
            tell_gaps(list, &place, sink)?;
            entries += list.entries.len() + list.gaps.len();
            let place = Place { owner, kind: Kind(name), row: None, locator: &place };
            memory::entries(list, &place, &mut Outlet(sink))?;
        }
        if !self.headers.add(&owner, locator, entries > 0) && entries == 0 {
            return sink.skip(RecordKind::Memory, locator, headers::EMPTY);
        }
        Ok(())
    }

    fn contents<'a>(
        &mut self,
        raw: raw::Contents<'a>,
        arena: &'a Arena,
        locator: &str,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let raw::Contents { memory, kind, mut list, text, vector, mut rest } = raw;
        let kind = kind.ok_or_else(|| ImportError::malformed("it does not say what it is of"))?;
        if let Some(text) = text {
            if list.entries.is_empty() {
                list.take_lines(text, arena);
            }
            if text != list.joined() {
                rest.add_text("content_text", text);
            }
        }
        tell_gaps(&list, locator, sink)?;
        if list.entries.is_empty() {
            return Err(ImportError::malformed("it holds no text"));
        }
        let row = rest.into_json();
        let header = memory.and_then(|memory| self.headers.take(memory));
        let owner = header.as_ref().map_or(Owner { memory, ..Owner::default() }, headers::Header::owner);
        let place = Place { owner, kind: Kind(kind), row: row.as_deref(), locator };
        memory::row(&list, text, vector, &place, &mut Outlet(sink))
    }

    fn conversation(
        &mut self,
        raw: raw::Conversation<'_>,
        locator: &str,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        if raw.id.is_none() && raw.messages.is_empty() {
            return Err(ImportError::malformed("it has neither a conversation_id nor messages"));
        }
        let found = match raw.id {
            Some(id) => self.answers.of_conversation(id),
            None => self.answers.of_request(raw.session, raw.messages.len()),
        };
        let (answer, full) = match found {
            Match::None => (None, false),
            Match::Answer(answer) => (Some(answer), false),
            Match::InFull(answer) => (Some(answer), true),
        };
        let mut raw = raw;
        if let Some(answer) = &answer {
            raw.id = raw.id.or(Some(&answer.conversation));
            raw.created = raw.created.or(answer.created);
            if let Some(rest) = &answer.rest {
                raw.rest.add_json("save_answer", rest);
            }
        }
        if full {
            // The messages are those of the conversation, which has their ids; the other fields join it.
            raw.messages.clear();
        }
        emit(raw, self.version, locator, sink)
    }
}

fn tell_gaps(list: &raw::List<'_>, place: &str, sink: &mut Sink) -> Result<(), ImportError> {
    for (index, reason) in &list.gaps {
        sink.skip(RecordKind::Memory, &format!("{place}[{index}]"), reason)?;
    }
    if list.form == raw::Form::Odd {
        sink.warn(place, "it holds no list of texts; it is kept as it stands");
    }
    Ok(())
}

fn emit(
    mut raw: raw::Conversation<'_>,
    version: &'static str,
    locator: &str,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    if let Some(warning) = map::sort(&mut raw.messages) {
        sink.warn(locator, warning);
    }
    let key = map::key(&raw);
    let mut messages = std::mem::take(&mut raw.messages);
    match raw.listing {
        raw::Listing::Absent => sink.warn(locator, NO_MESSAGES),
        raw::Listing::Odd => sink.warn(locator, "its messages are no list; they are kept as they stand"),
        raw::Listing::List => {}
    }
    let place = |at: usize| format!("{locator}.messages[{at}]");
    let (gaps, insight, created) = (std::mem::take(&mut raw.gaps), raw.insight, raw.created);
    let (agent, user) = (raw.agent, raw.user);
    sink.conversation(&map::conversation(&mut raw, &key, version, locator), &[])?;
    for (at, reason) in gaps {
        sink.skip(RecordKind::Message, &place(at), reason)?;
    }
    let mut chain = map::Chain::default();
    for chunk in messages.chunks_mut(CHUNK) {
        let mut mapped = Vec::with_capacity(chunk.len());
        for message in chunk.iter_mut().map(std::mem::take) {
            let at = message.place;
            match chain.next(message) {
                Ok(map::Mapped { message, warning }) => {
                    if let Some(warning) = warning {
                        sink.warn(&place(at), warning);
                    }
                    mapped.push(message);
                }
                Err(reason) => sink.skip(RecordKind::Message, &place(at), reason)?,
            }
        }
        sink.more_messages(&mapped)?;
    }
    let Some(insight) = insight else { return Ok(()) };
    let owner = Owner { agent, user, at: insight.at.or(created), ..Owner::default() };
    let locator = format!("{locator}.pipeline_result.mind_result.insights");
    let place = Place { owner, kind: Kind("mind"), row: None, locator: &locator };
    memory::insight(&insight, &key, &place, &mut Outlet(sink))
}

/// Hands memories over.
struct Outlet<'s>(&'s mut Sink);

impl Emit for Outlet<'_> {
    fn evidence(&mut self, evidence: Evidence) -> Result<(), ImportError> {
        self.0.evidence(&[evidence])
    }

    fn embedding(&mut self, embedding: EmbeddingRecord) -> Result<(), ImportError> {
        self.0.embeddings(&[embedding])
    }

    fn warn(&mut self, locator: &str, message: &str) {
        self.0.warn(locator, message);
    }
}
