//! Reads what `opencode export` printed, in two passes: first the order of the messages, then the messages.

use std::collections::{BTreeMap, BTreeSet};

use satchel_importer::{
    Arena, Bundle, Element, ErrorKind, Fields, ImportError, JsonArray, JsonLists, Parser, RecordKind, Role,
    Sink, Surveyed, json::array_of, unless_malformed, warnings::shortened,
};

use crate::{
    detect,
    fields::value,
    message::{Info, Record, parts_of},
    order::{self, Entry, LastPieces, MAX_MESSAGES, PieceIds},
    reading::{self, MAX_LENGTH, Reports},
    session::{Facts, MAX_LIST, Session},
};

/// The fields of an export; all but the messages are read in the first pass.
const LISTS: [(&str, RecordKind); 3] =
    [("messages", RecordKind::Message), ("info", RecordKind::File), ("todos", RecordKind::File)];

/// What the first pass found.
#[derive(Default)]
struct Survey {
    session: Session,
    facts: Facts,
    /// For each message, by its place in the file, the piece that it follows.
    parents: BTreeMap<u64, String>,
    /// Places of the messages that are emitted: no earlier one has their id, and they fit.
    taken: BTreeSet<u64>,
    has_messages: bool,
}

/// Reads the file at `path`.
pub(crate) fn read(bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    let survey = Survey::read(bundle, path)?;
    let session = &survey.session;
    let Some(id) = session.id.as_deref() else {
        return sink.skip(RecordKind::Conversation, path, "its session cannot be read");
    };
    if survey.has_messages {
        sink.conversation(&session.conversation(id, &survey.facts, detect::EXPORT, path)?, &[])?;
    } else {
        sink.skip(RecordKind::Conversation, path, "the session has no messages")?;
    }
    session.report(path, sink);
    let (mut ids, mut reports) = (PieceIds::default(), Reports::default());
    let outcome = JsonLists::new(path, &LISTS).each(bundle, sink, |list, element, sink| {
        if list != 0 {
            // Reports keys that are repeated.
            Fields::read(&mut element.parser())?;
            return Ok(());
        }
        survey.message(&element, &mut ids, &mut reports, sink)
    })?;
    for name in &outcome.others {
        sink.warn(path, &format!("its field {:?} is unknown and was not read", shortened(name)));
    }
    outcome.warn_of_more_others(path, sink);
    let others = JsonArray::new(path).limit(MAX_LENGTH);
    others.skip_further(bundle, sink, "a file can have the export of only one session")
}

/// A message of an export: its fields, and its parts as the JSON text of a list.
fn take_apart<'a>(element: &Element<'a>) -> Result<(Info<'a>, Option<&'a str>, Fields<'a>), ImportError> {
    if element.text().len() > MAX_LENGTH {
        return Err(ImportError::malformed(format!("it is longer than {MAX_LENGTH} bytes")));
    }
    let mut json = element.parser();
    let mut fields = Fields::read(&mut json)?;
    json.end()?;
    let info = fields.take_object("info")?;
    let info = info.ok_or_else(|| ImportError::malformed("it is not a message"))?;
    let parts = fields.get("parts").raw().filter(|raw| raw.starts_with('['));
    if parts.is_some() {
        fields.take("parts");
    }
    Ok((Info::read(info)?, parts, fields))
}

/// Takes the message apart into its pieces.
fn record<'a>(
    element: &Element<'a>,
    system: Option<&str>,
    decode: bool,
    look: &mut dyn FnMut(&Info<'a>, &str),
) -> Result<(&'a str, Record<'a>), ImportError> {
    let (mut info, raw, others) = take_apart(element)?;
    let arena = element.arena();
    let id = info.id.ok_or_else(|| ImportError::malformed("it has no id"))?;
    let mut parts = info.take_parts()?;
    if let Some(raw) = raw {
        parts.extend(parts_of(raw, arena)?);
    }
    look(&info, id);
    let mut record = Record::read(info, id, &parts, system, decode)?;
    if let Some(first) = record.pieces.first_mut() {
        others.add_to(&mut first.rest, &[]);
    }
    Ok((id, record))
}

impl Survey {
    fn read(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let mut survey = Self::default();
        for pointer in ["/info", "/todos"] {
            survey.read_member(bundle, path, pointer)?;
        }
        let (mut ids, mut pieces) = (BTreeSet::new(), PieceIds::default());
        let (mut entries, mut last) = (Vec::new(), LastPieces::new());
        let walk = member(path, "/messages").survey(bundle, |element| {
            unless_malformed(survey.add(&element, &mut ids, &mut pieces, &mut entries, &mut last))?;
            Ok(true)
        });
        not_found_is_empty(walk)?;
        // Their ids are not needed any more, and may be most of the memory.
        drop((ids, pieces));
        survey.parents = order::parents(entries, &last);
        Ok(survey)
    }

    /// Reads the session or its list of tasks.
    fn read_member(&mut self, bundle: &Bundle, path: &str, pointer: &str) -> Result<(), ImportError> {
        let (mut texts, mut bytes, mut fits) = (Vec::new(), 0, true);
        not_found_is_empty(member(path, pointer).survey_all(bundle, |found| {
            let Surveyed::Element(element) = found else {
                fits = false;
                return Ok(false);
            };
            // The walk has not checked what is inside of the element.
            bytes += element.text().len();
            texts.extend(value(element.text(), element.arena()).ok());
            // A longer list is not kept, so the rest of it is not needed.
            Ok(bytes <= MAX_LIST)
        }))?;
        if pointer == "/todos" && !fits {
            self.session.left_out.push("todos");
        } else if pointer == "/todos" {
            self.session.add_tasks(&array_of(&texts));
        } else if let [text] = texts.as_slice() {
            let arena = Arena::new();
            let fields = Fields::read(&mut Parser::new(arena.alloc_str(text), &arena)).map_err(Into::into);
            self.session = unless_malformed(fields.and_then(Session::read))?.unwrap_or_default();
        }
        Ok(())
    }

    fn add(
        &mut self,
        element: &Element<'_>,
        ids: &mut BTreeSet<String>,
        pieces: &mut PieceIds,
        entries: &mut Vec<Entry<u64>>,
        last: &mut LastPieces,
    ) -> Result<(), ImportError> {
        let mut created = None;
        let facts = &mut self.facts;
        let (id, mut record) = record(element, None, false, &mut |info, id| {
            created = info.created;
            facts.add(info, id);
        })?;
        let fits = entries.len() < MAX_MESSAGES && !pieces.is_full();
        if !fits || !ids.insert(id.to_owned()) {
            return Ok(());
        }
        self.taken.insert(element.index());
        pieces.claim(&mut record);
        for piece in record.pieces.iter().filter(|piece| piece.message.role == Role::User) {
            piece.texts.iter().for_each(|text| self.facts.add_prompt(text, (created, id.to_owned())));
        }
        self.has_messages |= !record.pieces.is_empty();
        if let Some(piece) = record.pieces.last() {
            last.insert(element.index(), piece.id.to_string());
        }
        entries.push(Entry { id: id.to_owned(), rank: None, created, source: element.index() });
        Ok(())
    }

    /// Emits a message in the second pass.
    fn message(
        &self,
        element: &Element<'_>,
        ids: &mut PieceIds,
        reports: &mut Reports,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let mut role = None;
        let (_, mut record) =
            record(element, self.facts.system.as_deref(), true, &mut |info, _| role = info.unknown_role)?;
        if !self.taken.contains(&element.index()) {
            return Err(ImportError::malformed("an earlier message has the same id, or there are too many"));
        }
        if !self.has_messages {
            return Err(ImportError::malformed("the first pass found no messages in the file"));
        }
        let place = element.locator();
        for id in ids.claim(&mut record) {
            let place = format!("{place}#{}", shortened(&id));
            sink.skip(RecordKind::Message, &place, ids.reason())?;
        }
        reports.add(&record, role, &place, sink)?;
        let parent = self.parents.get(&element.index()).map(String::as_str);
        reading::emit(record.pieces, parent, sink)?;
        Ok(())
    }
}

fn member<'p>(path: &'p str, pointer: &'p str) -> JsonArray<'p> {
    JsonArray::new(path).limit(MAX_LENGTH).pointer(pointer)
}

/// A member that is not there has no elements.
fn not_found_is_empty(result: Result<(), ImportError>) -> Result<(), ImportError> {
    match result {
        Err(error) if error.kind == ErrorKind::NotThisFormat => Ok(()),
        result => result,
    }
}
