//! Reads one thread, in two passes: first the order of the messages, then the messages.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{
    Arena, Bundle, Conversation, Element, ErrorKind, ImportError, Importer as _, JsonArray, JsonLists,
    Message, RecordKind, Role, Sink,
    address::unsigned_json,
    natural_key, order as times, title,
    warnings::{Warnings, shortened},
};

use crate::{
    Jan, detect,
    fields::FIELD_READER,
    file::{Files, MAX_MISSING},
    header::Header,
    message::{self, Link, MAX_LENGTH, Record},
    order::{self, Entry, Order},
    piece::Common,
    reports::{Findings, NOT_LISTED},
};

/// Messages of a thread. Those beyond are skipped.
const MAX_MESSAGES: usize = 100_000;
/// Messages with those that are the same as an earlier one: each has a place in memory.
const MAX_PLACES: usize = 2 * MAX_MESSAGES;
/// Bytes of all ids of a thread, with those that name other messages. They are in memory several times.
const MAX_ID_BYTES: usize = 16 * 1024 * 1024;
/// Characters of a title that is made of the first prompt.
const MAX_TITLE: usize = 120;
const REPEATED: &str = "an earlier message is the same";
const TOO_MANY: &str = "there are too many messages before it";

/// Where the messages of a thread are.
#[derive(Clone, Copy)]
pub(crate) enum Messages<'p> {
    /// One on each line.
    Lines(&'p str),
    /// In the list of an export.
    Export(&'p str),
}

impl<'p> Messages<'p> {
    fn list(self) -> JsonArray<'p> {
        match self {
            Self::Lines(path) => JsonArray::new(path).lines(),
            Self::Export(path) => JsonArray::new(path).pointer("/messages"),
        }
        .limit(MAX_LENGTH)
        .kind(RecordKind::Message)
    }
}

/// What the first pass found.
#[derive(Default)]
struct Survey {
    entries: Vec<Entry>,
    /// For each message, by its element and its number in it, the entry, or why there is none.
    places: BTreeMap<(u64, usize), Result<usize, &'static str>>,
    /// The first message that does not fit.
    full_at: Option<(u64, usize)>,
    /// Bytes of the ids.
    bytes: usize,
    /// Digests of the messages with each id, and how often the id was wanted.
    seen: BTreeMap<String, (String, usize)>,
    repeats_ids: bool,
    thread: Option<String>,
    /// The first line of the first prompt.
    title: Option<String>,
    model: Option<String>,
}

impl Survey {
    fn read(bundle: &Bundle, messages: Messages<'_>) -> Result<Self, ImportError> {
        let mut survey = Self::default();
        let walk = messages.list().survey(bundle, |element| {
            for (at, text) in message::split(element.text(), element.arena()).into_iter().enumerate() {
                if let Ok(record) = message::read(text, element.arena(), None) {
                    survey.add(&record, text, (element.index(), at));
                }
            }
            Ok(survey.full_at.is_none())
        });
        match walk {
            Err(error) if error.kind == ErrorKind::NotThisFormat => {}
            result => result?,
        }
        Ok(survey)
    }

    fn add(&mut self, record: &Record<'_>, text: &str, place: (u64, usize)) {
        if self.full_at.is_some() || self.is_full() {
            self.full_at.get_or_insert(place);
            return;
        }
        let id = match self.claim(record, text) {
            Ok(id) => id,
            Err(reason) => {
                self.places.insert(place, Err(reason));
                return;
            }
        };
        self.places.insert(place, Ok(self.entries.len()));
        if self.thread.is_none() {
            self.thread = record.thread.map(ToOwned::to_owned);
        }
        if let Some(model) = record.model.filter(|_| record.role == Role::Assistant) {
            self.model = Some(model.to_owned());
        }
        if self.title.is_none() && record.role == Role::User {
            let mut texts = record.pieces.iter().flat_map(|piece| &piece.texts);
            self.title = texts.find_map(|text| title::first_line(text, MAX_TITLE));
        }
        let last_piece = record.pieces.last().map_or_else(|| id.clone(), |piece| piece.id(&id));
        let named = match &record.link {
            Link::Parent(key) => key.len(),
            Link::Absent | Link::Root => 0,
        };
        let child = record.active_child.as_ref().map_or(0, String::len);
        self.bytes += id.len() + last_piece.len() + named + child;
        self.entries.push(Entry {
            given: record.given && id == record.key,
            id,
            link: record.link.clone(),
            active_child: record.active_child.clone(),
            by_user: record.role == Role::User,
            time: record.time,
            last_piece,
        });
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= MAX_MESSAGES || self.places.len() >= MAX_PLACES || self.bytes >= MAX_ID_BYTES
    }

    /// The id of a message. One that an earlier message has gets a number.
    fn claim(&mut self, record: &Record<'_>, text: &str) -> Result<String, &'static str> {
        let digest = natural_key(&[Some(text)]);
        let Some((first, count)) = self.seen.get_mut(&record.key) else {
            self.seen.insert(record.key.clone(), (digest, 1));
            return Ok(record.key.clone());
        };
        if *first == digest && !record.of_words {
            return Err(REPEATED);
        }
        self.repeats_ids |= !record.of_words;
        // No id of a message has this character, so each number is free.
        *count += 1;
        Ok(format!("{}~{count}", record.key))
    }

    /// The oldest and the newest time of a message.
    fn span(&self) -> (Option<i64>, Option<i64>) {
        let times = || self.entries.iter().filter_map(|entry| entry.time);
        (times().min(), times().max())
    }
}

/// A thread that is read.
pub(crate) struct Thread<'t> {
    pub(crate) header: Header,
    pub(crate) messages: Option<Messages<'t>>,
    /// The name of its folder.
    pub(crate) name: &'t str,
    pub(crate) locator: &'t str,
    pub(crate) format: &'static str,
}

impl Thread<'_> {
    /// Reads the messages. `name` gives the thread the id that it has among all threads.
    pub(crate) fn read(
        &self,
        bundle: &Bundle,
        files: &Files<'_>,
        name: &mut dyn FnMut(String) -> (String, bool),
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        if let Some(field) = &self.header.unread {
            let field = shortened(field);
            sink.warn(self.locator, &format!("the field {field:?} is unknown and holds text; it is kept"));
        }
        let Some(messages) = self.messages else {
            return sink.skip(RecordKind::Conversation, self.locator, "the thread has no messages");
        };
        let survey = Survey::read(bundle, messages)?;
        let order = order::of(&survey.entries, self.header.active_root.as_deref());
        if survey.entries.is_empty() {
            sink.skip(RecordKind::Conversation, self.locator, "the thread has no messages")?;
        } else {
            let (id, given) = self.id(&survey);
            let (id, repeated) = name(id);
            if repeated {
                sink.warn(self.locator, "another file has a thread with the same id; both are read");
            }
            sink.conversation(&self.conversation(&survey, &order, &id, given && !repeated)?, &[])?;
            self.warn(&survey, &order, sink);
        }
        emit(bundle, messages, &survey, &order, files, sink)?;
        self.report_left_out(sink);
        self.report_files(files, sink);
        Ok(())
    }

    /// The id of the thread, and whether the program gave it.
    fn id(&self, survey: &Survey) -> (String, bool) {
        let named = self.header.id.as_ref().or(survey.thread.as_ref());
        if let Some(id) = named {
            return (message::key_of(id), true);
        }
        if self.format == detect::THREADS && !self.name.is_empty() {
            return (message::key_of(self.name), true);
        }
        // An export has no id; its first message does not change.
        let first = survey.entries.first().map(|entry| entry.id.as_str());
        (natural_key(&[first]), false)
    }

    fn conversation<'s>(
        &'s self,
        survey: &'s Survey,
        order: &'s Order,
        id: &'s str,
        given: bool,
    ) -> Result<Conversation<'s>, ImportError> {
        let header = &self.header;
        let (oldest, newest) = survey.span();
        let mut more = Vec::new();
        if header.title.is_none() && survey.title.is_some() {
            more.push(("title_source", "first user message"));
        }
        if self.format == detect::EXPORT {
            more.push(("grouped_by", "export"));
        }
        let title = header.title.as_deref().or(survey.title.as_deref());
        Ok(Conversation {
            id: id.into(),
            provider_conversation_id: given.then_some(id.into()),
            export_format_version: Some(Jan::describe().version_of(self.format)?.into()),
            title: title.map(Cow::Borrowed),
            // The program writes the time of the last change as the first one, too.
            created_at: [header.created, oldest].into_iter().flatten().min(),
            updated_at: header.updated.or(newest),
            model: header.model.as_deref().or(survey.model.as_deref()).map(Cow::Borrowed),
            system_instruction: header.system.as_deref().map(Cow::Borrowed),
            current: order.current.as_deref().map(Cow::Borrowed),
            raw_metadata: header.metadata(&more).map(unsigned_json),
            locator: self.locator.into(),
            ..Conversation::default()
        })
    }

    fn warn(&self, survey: &Survey, order: &Order, sink: &mut Sink) {
        let warnings = [
            (survey.repeats_ids, "several messages have the same id; the later ones get a number"),
            (order.has_cycles, "messages answer each other in a circle; it is cut at its first message"),
            (
                order.detached,
                "an answer does not say which prompt it answers; it follows the last one before it",
            ),
            (order.contradicts, times::KEPT),
        ];
        for (_, warning) in warnings.iter().filter(|(applies, _)| *applies) {
            sink.warn(self.locator, warning);
        }
    }

    fn report_left_out(&self, sink: &mut Sink) {
        for name in &self.header.left_out {
            let message = format!(
                "the field {name:?} cannot be read, or is longer than 4 MiB or than fits; it is left out"
            );
            sink.warn(self.locator, &message);
        }
        let more = self.header.more_left_out;
        if more > 0 {
            sink.warn(self.locator, &format!("{more} more fields are left out for the same reasons"));
        }
    }

    fn report_files(&self, files: &Files<'_>, sink: &mut Sink) {
        let missing = files.missing.borrow();
        if let Some(first) = missing.first() {
            let first = shortened(first);
            let count = if missing.len() < MAX_MISSING {
                missing.len().to_string()
            } else {
                format!("at least {MAX_MISSING}")
            };
            let message =
                format!("files of its messages that are not in its folder: {count}, such as {first:?}");
            sink.warn(self.locator, &message);
        }
        let unreadable = files.unreadable.get();
        if unreadable > 0 {
            let message = format!(
                "files in its messages that cannot be decoded, or are or have addresses that are too long: {unreadable}"
            );
            sink.warn(self.locator, &message);
        }
    }
}

/// Emits the messages, in the second pass.
fn emit(
    bundle: &Bundle,
    messages: Messages<'_>,
    survey: &Survey,
    order: &Order,
    files: &Files<'_>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let mut warnings = Warnings::new(NOT_LISTED);
    let each = |element: Element<'_>, sink: &mut Sink| {
        // Reports keys that are repeated.
        let (Ok(_) | Err(_)) = FIELD_READER.read(&mut element.parser());
        let texts = message::split(element.text(), element.arena());
        for (at, text) in texts.iter().enumerate() {
            let (place, key) = (place_of(&element, at), (element.index(), at));
            match emit_one(text, element.arena(), survey, order, key, files) {
                Ok((findings, emitted)) => {
                    findings.report(&place, &mut warnings, sink)?;
                    sink.more_messages(&emitted)?;
                }
                Err(error) if error.kind == ErrorKind::Malformed => {
                    sink.skip(RecordKind::Message, &place, &error.message)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    match messages {
        Messages::Lines(_) => messages.list().each(bundle, sink, each).map(|_| ()),
        Messages::Export(path) => {
            let (mut each, list) = (each, [("messages", RecordKind::Message)]);
            JsonLists::new(path, &list).each(bundle, sink, |_, element, sink| each(element, sink)).map(|_| ())
        }
    }
}

fn place_of(element: &Element<'_>, at: usize) -> String {
    let place = element.locator();
    if at == 0 { place } else { format!("{place}#{at}") }
}

fn emit_one<'a>(
    text: &'a str,
    arena: &'a Arena,
    survey: &Survey,
    order: &Order,
    place: (u64, usize),
    files: &Files<'_>,
) -> Result<(Findings, Vec<Message<'a>>), ImportError> {
    let record = message::read(text, arena, Some(files))?;
    let at = match survey.places.get(&place) {
        Some(Ok(at)) => *at,
        Some(Err(reason)) => return Err(ImportError::malformed(*reason)),
        None if survey.full_at.is_some_and(|full| place >= full) => {
            return Err(ImportError::malformed(TOO_MANY));
        }
        None => return Err(ImportError::malformed("the first pass could not read it")),
    };
    let entry = survey.entries.get(at).ok_or_else(|| ImportError::internal("a message has no place"))?;
    let common = Common { id: &entry.id, given: entry.given, time: record.time, model: record.model };
    let mut above = order.parents.get(at).cloned().flatten();
    let mut emitted = Vec::with_capacity(record.pieces.len());
    for (number, mut piece) in record.pieces.into_iter().enumerate() {
        if number == 0 && record.given && !entry.given {
            piece.rest.add_text("id", &record.key);
        }
        let id = piece.id(&entry.id);
        let version = order.numbers.get(&at).copied().filter(|_| number == 0);
        emitted.push(piece.finish(&common, above.take(), version));
        above = Some(id);
    }
    Ok((record.findings, emitted))
}

/// Reports what stands behind an export.
pub(crate) fn report_others(bundle: &Bundle, path: &str, sink: &mut Sink) -> Result<(), ImportError> {
    JsonArray::new(path).limit(MAX_LENGTH).skip_further(bundle, sink, "a file can have only one thread")
}
