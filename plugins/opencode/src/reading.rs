//! Reads files and messages, and reports what cannot be read.

use std::collections::BTreeSet;

use satchel_importer::{
    Bundle, Fields, ImportError, JsonArray, Message, RecordKind, Sink, warnings::shortened,
};

use crate::{message::Record, piece::Piece};

/// Bytes of one file, or of one message with its parts. A guest has 128 MiB for it, its decoded texts and its files.
pub(crate) const MAX_LENGTH: usize = 16 * 1024 * 1024;
/// Messages that are emitted at once.
const AT_ONCE: usize = 256;
/// Different warnings about one session; one of a kind is enough to see that the format has changed.
const MAX_WARNINGS: usize = 64;
/// Further kinds that are counted.
const MAX_COUNTED: usize = 10_000;

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
#[derive(Debug, Default)]
pub(crate) struct Reports {
    given: BTreeSet<String>,
    /// The warnings beyond the limit.
    more: BTreeSet<String>,
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
            self.warn(warning, place, sink);
        }
        if record.unreadable {
            sink.warn(place, "a file in it cannot be decoded or is larger than 16 MiB; it is left out");
        }
        Ok(())
    }

    fn warn(&mut self, warning: String, place: &str, sink: &mut Sink) {
        if self.given.contains(&warning) {
            return;
        }
        if self.given.len() < MAX_WARNINGS {
            sink.warn(place, &warning);
            self.given.insert(warning);
        } else if self.more.len() < MAX_COUNTED {
            self.more.insert(warning);
        }
    }

    /// Says how many kinds of warnings about the session at `place` are not listed.
    pub(crate) fn finish(self, place: &str, sink: &mut Sink) {
        let count = match self.more.len() {
            0 => return,
            MAX_COUNTED => format!("at least {MAX_COUNTED}"),
            count => count.to_string(),
        };
        sink.warn(place, &format!("{count} more kinds of warnings about this session are not listed"));
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

#[cfg(test)]
mod tests {
    use satchel_importer::Line;

    use super::*;

    #[test]
    fn warnings_that_are_not_listed_are_counted_by_kind() {
        let (mut reports, mut sink) = (Reports::default(), Sink::collecting());
        for number in 0..MAX_WARNINGS + 3 {
            for _ in 0..2 {
                reports.warn(number.to_string(), "a", &mut sink);
            }
        }
        reports.finish("a", &mut sink);
        let lines = sink.into_lines();
        let last = match lines.last() {
            Some(Line::Warning(warning)) => warning.message.as_str(),
            _ => "",
        };
        assert_eq!(lines.len(), MAX_WARNINGS + 1);
        assert_eq!(last, "3 more kinds of warnings about this session are not listed");
    }
}
