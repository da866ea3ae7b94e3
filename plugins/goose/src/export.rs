//! Reads a session that was exported as JSON, in two passes: first the session, then its messages.

use std::collections::BTreeSet;

use satchel_importer::{
    Arena, Bundle, Element, ErrorKind, Fields, ImportError, JsonArray, JsonLists, RecordKind, Sink, Surveyed,
    json::{Value, parse_items},
    unless_malformed,
};

use crate::{
    artifacts::Artifacts,
    detect,
    message::Record,
    session::{Facts, KNOWN, LISTS, MAX_FIELD, Session, SessionNames},
    transcript::{MAX_LENGTH, Transcript, fields_of},
};

/// What the first pass found.
#[derive(Default)]
struct Survey {
    session: Session,
    facts: Facts,
}

/// Reads the file at `path`.
pub(crate) fn read(bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    let survey = Survey::read(bundle, path)?;
    let Some(id) = survey.session.id.as_deref() else {
        return sink.skip(RecordKind::Conversation, path, "its id cannot be read");
    };
    let mut artifacts = Artifacts::read(bundle, path)?;
    let names = SessionNames::of(&survey.session, id);
    let mut transcript =
        Transcript::begin(&survey.session, &survey.facts, &names, detect::EXPORT, path, sink)?;
    let mut has_children = false;
    let lists = members();
    JsonLists::new(path, &lists).each(bundle, sink, |list, element, sink| {
        match lists.get(list).map_or("", |(name, _)| name) {
            "conversation" => {
                transcript.add(fields_of(&element)?, &element.locator(), Some(&mut artifacts), sink)
            }
            "child_sessions" => {
                has_children = true;
                Ok(())
            }
            "artifacts" => fields_of(&element).map(|_| ()),
            _ => {
                // Reports keys that are repeated, and what is no JSON.
                let mut json = element.parser();
                Fields::read(&mut json)?;
                Ok(json.end()?)
            }
        }
    })?;
    if has_children {
        read_children(bundle, path, &names.key, &mut artifacts, sink)?;
    }
    artifacts.report(path, sink)?;
    let others = JsonArray::new(path).limit(MAX_LENGTH);
    others.skip_further(bundle, sink, "a file can have the export of only one session")
}

/// The members of an export, and what an element of each that cannot be read counts as.
fn members() -> Vec<(&'static str, RecordKind)> {
    let kinds = [RecordKind::Message, RecordKind::Conversation, RecordKind::File];
    LISTS.into_iter().zip(kinds).chain(KNOWN.map(|name| (name, RecordKind::File))).collect()
}

impl Survey {
    fn read(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let mut survey = Self::default();
        JsonArray::new(path).members().limit(MAX_FIELD).survey_all(bundle, |found| {
            survey.add(found)?;
            Ok(true)
        })?;
        let messages = JsonArray::new(path).pointer("/conversation").limit(MAX_LENGTH);
        not_found_is_empty(messages.survey(bundle, |element| {
            let record = fields_of(&element).and_then(|fields| Record::read(fields, false));
            if let Some(record) = unless_malformed(record)? {
                survey.facts.add(&record);
            }
            Ok(true)
        }))?;
        Ok(survey)
    }

    /// Adds a member of the export. One that cannot be read, or a list that is none, is left out.
    fn add(&mut self, found: Surveyed<'_>) -> Result<(), ImportError> {
        let (element, whole) = match found {
            Surveyed::Element(element) => (element, true),
            Surveyed::TooLong(element) => (element, false),
        };
        let Some(key) = element.key() else { return Ok(()) };
        if LISTS.contains(&key) {
            if whole && !element.text().starts_with('[') && element.text() != "null" {
                self.session.leave_out(key);
            }
            return Ok(());
        }
        let mut json = element.parser();
        let read = Value::read(&mut json).and_then(|value| {
            json.end()?;
            self.session.add(key, value, element.arena())
        });
        if !whole || unless_malformed(read.map_err(Into::into))?.is_none() {
            self.session.leave_out(key);
        }
        Ok(())
    }
}

/// Reads the sessions of the subagents that the session started.
fn read_children(
    bundle: &Bundle,
    path: &str,
    parent: &str,
    artifacts: &mut Artifacts,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let mut taken = BTreeSet::from([parent.to_owned()]);
    let list = JsonArray::new(path).pointer("/child_sessions").limit(MAX_LENGTH);
    let walk = list.each(bundle, sink, |element, sink| {
        let place = format!("{path}.child_sessions[{}]", element.index());
        match read_child(&element, &place, &mut taken, artifacts, sink) {
            Err(error) if error.kind == ErrorKind::Malformed => {
                sink.skip(RecordKind::Conversation, &place, &error.message)
            }
            other => other,
        }
    });
    not_found_is_empty(walk.map(|_| ()))
}

fn read_child(
    element: &Element<'_>,
    place: &str,
    taken: &mut BTreeSet<String>,
    artifacts: &mut Artifacts,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let mut fields = fields_of(element)?;
    let arena = element.arena();
    let messages = parse_items(fields.take("conversation").raw().unwrap_or("null"), arena)?;
    let mut session = Session::read(&fields)?;
    let id = session.id.take().ok_or_else(|| ImportError::malformed("it has no id"))?;
    let names = SessionNames::of(&session, &id);
    if !taken.insert(names.key.clone()) {
        return Err(ImportError::malformed("an earlier session has the same id"));
    }
    emit_child(&session, &names, &messages, arena, place, artifacts, sink)
}

fn emit_child<'a>(
    session: &Session,
    names: &SessionNames<'_>,
    messages: &[Value<'a>],
    arena: &'a Arena,
    place: &str,
    artifacts: &mut Artifacts,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let mut facts = Facts::default();
    let fields =
        |value: &Value<'a>| Fields::parse(value.raw().unwrap_or("null"), arena).map_err(ImportError::from);
    for message in messages {
        let record = fields(message).and_then(|fields| Record::read(fields, false));
        if let Some(record) = unless_malformed(record)? {
            facts.add(&record);
        }
    }
    let mut transcript = Transcript::begin(session, &facts, names, detect::EXPORT, place, sink)?;
    for (at, message) in messages.iter().enumerate() {
        let own = format!("{place}.conversation[{at}]");
        let added =
            fields(message).and_then(|fields| transcript.add(fields, &own, Some(&mut *artifacts), sink));
        match added {
            Err(error) if error.kind == ErrorKind::Malformed => {
                sink.skip(RecordKind::Message, &own, &error.message)?;
            }
            other => other?,
        }
    }
    Ok(())
}

/// A member that is not there has no elements.
pub(crate) fn not_found_is_empty(result: Result<(), ImportError>) -> Result<(), ImportError> {
    match result {
        Err(error) if error.kind == ErrorKind::NotThisFormat => Ok(()),
        result => result,
    }
}
