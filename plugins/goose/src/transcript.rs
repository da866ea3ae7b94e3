//! Emits a session and its messages, and reads the files that have one message in each line.

use satchel_importer::{
    Bundle, Element, Fields, ImportError, JsonArray, Message, RecordKind, Sink, order, unless_malformed,
    warnings::{Warnings, shortened},
};

use crate::{
    artifacts::Artifacts,
    detect,
    ids::{self, Ids},
    layout,
    message::Record,
    piece::Piece,
    reports::{self, NOT_LISTED},
    session::{Facts, Session, SessionNames, is_header},
};

/// Bytes of one message. A guest has 128 MiB for it, its decoded texts and its files.
pub(crate) const MAX_LENGTH: usize = 16 * 1024 * 1024;
/// Messages that are emitted at once.
const AT_ONCE: usize = 256;

/// Reads the file at `path`, in two passes: first the session, then its messages.
pub(crate) fn read(bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    let lines = JsonArray::new(path).lines().limit(MAX_LENGTH).kind(RecordKind::Message);
    let (mut session, mut facts) = (Session::default(), Facts::default());
    lines.survey(bundle, |element| {
        if let Some(fields) = unless_malformed(fields_of(&element))? {
            if element.index() == 0 && is_header(&fields) {
                session = unless_malformed(Session::read(&fields))?.unwrap_or_default();
            } else if let Some(record) = unless_malformed(Record::read(fields, false))? {
                facts.add(&record);
            }
        }
        Ok(true)
    })?;
    session.keep_id();
    // The program knows the session by the name of its file. An id inside of the file would be one of another program.
    let id = layout::session_id(path);
    let names = SessionNames { id: &id, key: id.clone() };
    let mut transcript = Transcript::begin(&session, &facts, &names, detect::LINES, path, sink)?;
    lines.each(bundle, sink, |element, sink| {
        let fields = fields_of(&element)?;
        if element.index() == 0 && is_header(&fields) {
            // The first pass has read the session.
            return Ok(());
        }
        transcript.add(fields, &element.locator(), None, sink)
    })?;
    Ok(())
}

/// The fields of an element, which must be an object.
pub(crate) fn fields_of<'a>(element: &Element<'a>) -> Result<Fields<'a>, ImportError> {
    if element.text().len() > MAX_LENGTH {
        return Err(ImportError::malformed(format!("it is longer than {MAX_LENGTH} bytes")));
    }
    if !element.text().starts_with('{') {
        return Err(ImportError::malformed("it is not an object"));
    }
    let mut json = element.parser();
    let fields = Fields::read(&mut json)?;
    json.end()?;
    Ok(fields)
}

/// A session whose messages are emitted, each of which follows the one before it.
pub(crate) struct Transcript {
    ids: Ids,
    last: Option<String>,
    warnings: Warnings,
}

impl Transcript {
    /// Emits the session, and reports what is wrong with it.
    pub(crate) fn begin(
        session: &Session,
        facts: &Facts,
        names: &SessionNames<'_>,
        format: &str,
        place: &str,
        sink: &mut Sink,
    ) -> Result<Self, ImportError> {
        if facts.has_messages {
            sink.conversation(&session.conversation(names, facts, format, place)?, &[])?;
        } else {
            sink.skip(RecordKind::Conversation, place, "the session has no messages")?;
        }
        for field in &session.left_out {
            sink.warn(
                place,
                &format!("the session's field {field:?} is too long or cannot be read; it is left out"),
            );
        }
        if session.left_out_count > session.left_out.len() {
            let problem = format!("{} fields of the session in all are left out", session.left_out_count);
            sink.warn(place, &problem);
        }
        if let Some(field) = &session.unread {
            sink.warn(place, &format!("the session's field {:?} is unknown; it is kept", shortened(field)));
        }
        if facts.unsorted {
            sink.warn(place, order::KEPT);
        }
        Ok(Self { ids: Ids::default(), last: None, warnings: Warnings::new(NOT_LISTED) })
    }

    /// Emits a message.
    pub(crate) fn add(
        &mut self,
        fields: Fields<'_>,
        place: &str,
        artifacts: Option<&mut Artifacts>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let mut record = Record::read(fields, true)?;
        let id = self.ids.claim(&record.key, record.pieces.len());
        let id = id.ok_or_else(|| ImportError::malformed("the session has more messages than fit"))?;
        reports::report(&record, place, &mut self.warnings, sink)?;
        if let Some(artifacts) = artifacts {
            artifacts.attach(&mut record.pieces);
        }
        self.emit(record.pieces, &id, sink)
    }

    /// Warns of something in a message; of each kind once.
    pub(crate) fn warn(&mut self, place: &str, warning: String, sink: &mut Sink) {
        self.warnings.warn(place, warning, sink);
    }

    /// Emits the pieces, some at a time, because there may be many.
    fn emit(&mut self, pieces: Vec<Piece<'_>>, id: &str, sink: &mut Sink) -> Result<(), ImportError> {
        let mut pieces = pieces.into_iter().enumerate().peekable();
        while pieces.peek().is_some() {
            let mut messages: Vec<Message<'_>> = Vec::new();
            for (at, piece) in pieces.by_ref().take(AT_ONCE) {
                let before = messages.last().map(|before| &*before.id).or(self.last.as_deref());
                let message = piece.finish(ids::of_piece(id, at), before);
                messages.push(message);
            }
            sink.more_messages(&messages)?;
            self.last = messages.pop().map(|message| message.id.into_owned());
        }
        Ok(())
    }
}
