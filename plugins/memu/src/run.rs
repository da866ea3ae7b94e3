//! Reads one export: first records that others refer to, then memories, then conversations.

use std::collections::BTreeMap;

use satchel_importer::{
    Arena, Bundle, Element, ErrorKind, ImportError, Importer as _, JsonArray, Parser, RecordKind, Sink,
    Summary,
};

use crate::{
    MemU, database,
    detect::{self, ExportFile},
    generation::{self, Generation},
    layout, map,
    memory::{ContentType, ListContext, MemoryHeader},
    raw,
    record_type::{Classification, LISTS, RecordKeys, RecordType},
};

mod headers;
mod responses;

use headers::Headers;
use responses::Responses;

/// Messages that are mapped and emitted at once.
const CHUNK: usize = 2_000;

const NO_RECORD: &str = "no record of this shape is known";
const NO_MESSAGES: &str = "the conversation is only named here; its messages are not in the export";
const PIPELINE: &str = "a result of the pipeline that does not say of which conversation";
const OPERATION: &str = "a line of the list of operations; the memories themselves tell more";

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = MemU::describe().version_of(format)?;
    if let Some(generation) = Generation::of(format) {
        let error = ImportError::new(ErrorKind::UnsupportedVersion, generation.refusal());
        return Err(match bundle.entries().first() {
            Some(entry) => error.at(entry.path.clone()),
            None => error,
        });
    }
    let survey = detect::survey(bundle)?;
    let databases = if format == generation::DATABASE { survey.databases } else { Vec::new() };
    let exports = if format == generation::DATABASE { Vec::new() } else { survey.exports };
    if exports.is_empty() && databases.is_empty() {
        return Err(ImportError::not_this_format("none of the files is of MemU"));
    }
    for path in &databases {
        database::read(bundle, path, sink)?;
    }
    for export in exports {
        let (responses, headers) = (Responses::default(), Headers::default());
        let mut run = Run { bundle, version, responses, headers, broken: BTreeMap::new() };
        run.read_export(&export.files, sink)?;
    }
    Ok(bundle.summary())
}

/// A list of records: in one member of a file, or at its root.
struct RecordList<'f> {
    path: &'f str,
    pointer: String,
    kind: RecordType,
}

struct Run<'r> {
    bundle: &'r Bundle,
    version: &'static str,
    responses: Responses,
    headers: Headers,
    /// Files whose root object breaks off, and whether that was reported.
    broken: BTreeMap<String, bool>,
}

impl Run<'_> {
    fn read_export(&mut self, files: &[ExportFile], sink: &mut Sink) -> Result<(), ImportError> {
        self.headers.wanted =
            files.iter().any(|file| file.wrapped || file.types.contains(&RecordType::Contents));
        let mut lists = Vec::new();
        for file in files {
            self.add_lists(file, &mut lists, sink)?;
        }
        lists.sort_by(|a, b| (a.kind, a.path, &a.pointer).cmp(&(b.kind, b.path, &b.pointer)));
        for list in &lists {
            self.read_list(list, sink)?;
        }
        for path in self.broken.iter().filter(|(_, reported)| !**reported).map(|(path, _)| path) {
            let size = self.bundle.entry(path).map_or(0, |entry| entry.size);
            sink.skip(RecordKind::File, &format!("{path}@{size}"), "the file ends before its list does")?;
        }
        for response in self.responses.unmatched() {
            response.emit(self.version, sink)?;
        }
        for locator in self.headers.take_empty() {
            sink.skip(RecordKind::Memory, &locator, headers::EMPTY)?;
        }
        Ok(())
    }

    fn add_lists<'f>(
        &mut self,
        file: &'f ExportFile,
        lists: &mut Vec<RecordList<'f>>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let path = file.path.as_str();
        if !file.wrapped {
            let kind = file.types.first().copied().unwrap_or(RecordType::Memory);
            lists.push(RecordList { path, pointer: String::new(), kind });
            return Ok(());
        }
        let mut others = Vec::new();
        let members = layout::root_members(self.bundle, path)?;
        if !members.whole {
            self.broken.insert(path.to_owned(), false);
        }
        for name in members.names {
            match layout::table(&name) {
                Some(kind) => lists.push(RecordList { path, pointer: format!("/{name}"), kind }),
                None => others.push(name),
            }
        }
        if !others.is_empty() {
            let message = format!("these members beside the lists are not imported: {}", others.join(", "));
            sink.warn(path, &message);
        }
        Ok(())
    }

    fn read_list(&mut self, list: &RecordList<'_>, sink: &mut Sink) -> Result<(), ImportError> {
        let record_kind = match list.kind {
            RecordType::Memory | RecordType::Contents | RecordType::Operation => RecordKind::Memory,
            RecordType::SaveResponse
            | RecordType::Conversation
            | RecordType::Request
            | RecordType::Pipeline => RecordKind::Conversation,
        };
        let dots = list.pointer.replace('/', ".");
        let array = JsonArray::new(list.path).pointer(&list.pointer).kind(record_kind);
        let outcome = array.each(self.bundle, sink, |element, sink| {
            let locator = format!("{}{dots}[{}]", list.path, element.index());
            self.read_record(&element, &locator, sink).map_err(|error| error.at(&locator))
        })?;
        if let (Some(_), Some(reported)) = (outcome.cut, self.broken.get_mut(list.path)) {
            *reported = true;
        }
        Ok(())
    }

    fn read_record(
        &mut self,
        element: &Element<'_>,
        locator: &str,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let kind = match RecordKeys::read(&mut Parser::new(element.text(), element.arena())).classify() {
            Classification::Record { kind, .. } => kind,
            Classification::Other(generation) => return Err(ImportError::malformed(generation.refusal())),
            Classification::Unknown => return Err(ImportError::malformed(NO_RECORD)),
        };
        let json = &mut element.parser();
        let no_object = || ImportError::malformed("it is not an object");
        match kind {
            RecordType::SaveResponse => {
                let response = raw::SaveResponse::read(json)?.ok_or_else(no_object)?;
                match self.responses.add(response, locator)? {
                    Some(response) => response.emit(self.version, sink),
                    None => Ok(()),
                }
            }
            RecordType::Memory => {
                self.read_memory(raw::Memory::read(json)?.ok_or_else(no_object)?, locator, sink)
            }
            RecordType::Contents => {
                let raw = raw::Contents::read(json)?.ok_or_else(no_object)?;
                self.read_contents(raw, element.arena(), locator, sink)
            }
            RecordType::Conversation | RecordType::Request => {
                self.read_conversation(raw::Conversation::read(json)?.ok_or_else(no_object)?, locator, sink)
            }
            RecordType::Pipeline => sink.skip(RecordKind::Conversation, locator, PIPELINE),
            RecordType::Operation => sink.skip(RecordKind::Memory, locator, OPERATION),
        }
    }

    fn read_memory(
        &mut self,
        raw: raw::Memory<'_>,
        locator: &str,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let raw::Memory { id, agent, user, created, updated, lists, places, rest } = raw;
        let record = rest.into_json();
        let at = updated.or(created);
        let header = MemoryHeader { memory: id, agent, user, at, record: record.as_deref() };
        let mut entries = 0;
        for ((list, name), place) in lists.iter().zip(LISTS).zip(places) {
            let place = format!("{locator}.{place}");
            report_gaps(list, &place, sink)?;
            entries += list.entries.len() + list.gaps.len();
            let context = ListContext { header, content_type: ContentType(name), row: None, locator: &place };
            context.emit_entries(list, sink)?;
        }
        if !self.headers.add(&header, locator, entries > 0) && entries == 0 {
            return sink.skip(RecordKind::Memory, locator, headers::EMPTY);
        }
        Ok(())
    }

    fn read_contents<'a>(
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
        report_gaps(&list, locator, sink)?;
        if list.entries.is_empty() {
            return Err(ImportError::malformed("it holds no text"));
        }
        let row = rest.into_json();
        let header = memory.map(|memory| self.headers.of_contents(memory)).unwrap_or_default();
        let context = ListContext { header, content_type: ContentType(kind), row: row.as_deref(), locator };
        context.emit_row(&list, text, vector, sink)
    }

    fn read_conversation(
        &mut self,
        raw: raw::Conversation<'_>,
        locator: &str,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        if raw.id.is_none() && raw.messages.is_empty() {
            return Err(ImportError::malformed("it has neither a conversation_id nor messages"));
        }
        let found = match raw.id {
            Some(id) => self.responses.of_conversation(id),
            None => self.responses.of_request(raw.session, raw.messages.len()),
        };
        let mut raw = raw;
        if let Some(response) = &found {
            if raw.id.is_none() && response.conversation_found() {
                // The conversation holds the messages with their ids; only the other fields are added to it.
                raw.messages.clear();
            }
            raw.id = raw.id.or(Some(&response.conversation));
            raw.created = raw.created.or(response.created);
            if let Some(rest) = &response.rest {
                raw.rest.add_json("save_answer", rest);
            }
        }
        emit_conversation(raw, self.version, locator, sink)
    }
}

fn report_gaps(list: &raw::List<'_>, place: &str, sink: &mut Sink) -> Result<(), ImportError> {
    for (index, reason) in &list.gaps {
        sink.skip(RecordKind::Memory, &format!("{place}[{index}]"), reason)?;
    }
    if list.form == raw::Form::Invalid {
        sink.warn(place, "it holds no list of texts; it is kept as it stands");
    }
    Ok(())
}

fn emit_conversation(
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
        raw::Listing::Invalid => sink.warn(locator, "its messages are no list; they are kept as they stand"),
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
                Ok((message, warning)) => {
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
    let header = MemoryHeader { agent, user, at: insight.at.or(created), ..MemoryHeader::default() };
    let locator = format!("{locator}.pipeline_result.mind_result.insights");
    let context = ListContext { header, content_type: ContentType("mind"), row: None, locator: &locator };
    context.emit_insight(&insight, &key, sink)
}
