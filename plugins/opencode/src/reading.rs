//! Reads files and messages, and reports what cannot be read.

use satchel_importer::{
    Bundle, Fields, ImportError, JsonArray, Message, RecordKind, Sink,
    warnings::{Warnings, shortened},
};

use crate::{message::Record, piece::Piece};

/// Bytes of one file, or of one message with its parts. A guest has 128 MiB for it, its decoded texts and its files.
pub(crate) const MAX_LENGTH: usize = 16 * 1024 * 1024;
/// Messages that are emitted at once.
const AT_ONCE: usize = 256;
/// What is said in place of further warnings.
const MORE_WARNINGS: &str = "there are more kinds of warnings about this session, which are not listed";

/// The JSON text of the object in a small file. What cannot be read is reported as a skipped `kind`.
pub(crate) fn read_object(
    bundle: &Bundle,
    path: &str,
    kind: RecordKind,
    sink: &mut Sink,
) -> Result<Option<String>, ImportError> {
    let mut found = None;
    let outcome = file(path).kind(kind).each(bundle, sink, |element, _| {
        if !element.text().starts_with('{') {
            return Err(ImportError::malformed("it is not an object"));
        }
        if found.is_some() {
            return Err(ImportError::malformed("the file has another object already"));
        }
        let mut json = element.parser();
        Fields::read(&mut json)?;
        json.end()?;
        found = Some(element.text().to_owned());
        Ok(())
    })?;
    if outcome.elements == 0 && outcome.cut.is_none() {
        sink.skip(kind, path, "the file is empty")?;
    }
    Ok(found)
}

/// The same without reports, for a first pass.
pub(crate) fn peek_object(bundle: &Bundle, path: &str) -> Result<Option<String>, ImportError> {
    let mut found = None;
    file(path).survey(bundle, |element| {
        found = Some(element.text().to_owned()).filter(|text| text.starts_with('{') && element.whole());
        Ok(found.is_none())
    })?;
    Ok(found)
}

fn file(path: &str) -> JsonArray<'_> {
    JsonArray::new(path).limit(MAX_LENGTH)
}

/// What was reported about a session.
#[derive(Debug)]
pub(crate) struct Reports(Warnings);

impl Default for Reports {
    fn default() -> Self {
        Self(Warnings::new(MORE_WARNINGS))
    }
}

impl Reports {
    /// Warns once of what is not understood in the messages of a session.
    pub(crate) fn add(
        &mut self,
        record: &Record<'_>,
        role: Option<&str>,
        place: &str,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        for (key, problem) in &record.broken {
            sink.skip(RecordKind::Message, &format!("{place}#part {}", shortened(key)), problem)?;
        }
        let role = role.map(|role| {
            format!("the role {:?} is unknown; the message is read as an answer", shortened(role))
        });
        let types = record.unknown.iter().map(|kind| {
            format!("a part of the unknown type {:?} is kept, and its text read", shortened(kind))
        });
        let mark = record.unknown_mark.map(|mark| {
            format!("the mark {:?} of a text is unknown; it may say who wrote the text", shortened(mark))
        });
        for warning in role.into_iter().chain(types).chain(mark) {
            self.0.warn(place, warning, sink);
        }
        if record.unreadable {
            sink.warn(place, "a file in it cannot be decoded or is larger than 16 MiB; it is left out");
        }
        Ok(())
    }
}

/// Emits the pieces, some at a time, because there may be many. Each follows the one before it, and the first one follows `parent`.
/// Returns the id of the last one.
pub(crate) fn emit(
    pieces: Vec<Piece<'_>>,
    parent: Option<&str>,
    sink: &mut Sink,
) -> Result<Option<String>, ImportError> {
    let mut last: Option<String> = None;
    let mut pieces = pieces.into_iter().peekable();
    while pieces.peek().is_some() {
        let mut messages: Vec<Message<'_>> = Vec::new();
        for piece in pieces.by_ref().take(AT_ONCE) {
            let before = messages.last().map(|before| &*before.id).or(last.as_deref()).or(parent);
            let message = piece.finish(before);
            messages.push(message);
        }
        sink.more_messages(&messages)?;
        last = messages.pop().map(|message| message.id.into_owned());
    }
    Ok(last)
}
