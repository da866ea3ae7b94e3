//! Reads the file of one chat, in two passes: first what the conversation needs of its messages, then the messages.

use std::borrow::Cow;

use satchel_importer::{
    Bundle, Content, Conversation, Element, ErrorKind, ImportError, Importer as _, JsonArray, JsonLists,
    Message, RecordKind, Role, Sink,
    address::unsigned_json,
    natural_key, title,
    warnings::{Warnings, shortened},
};

use crate::{
    LmStudio, detect,
    files::{Files, MAX_MISSING},
    header::{Header, LeftOut, MESSAGES},
    ids::Ids,
    layout,
    message::{self, Entry, MAX_LENGTH, Version},
    piece::IdSource,
    reports::NOT_LISTED,
};

/// Characters of a title that is made of the first prompt.
const MAX_TITLE: usize = 120;
/// A file of the program has one list of messages.
const LISTS: [(&str, RecordKind); 1] = [(MESSAGES, RecordKind::Message)];

/// The messages so far.
#[derive(Default)]
struct Thread {
    ids: Ids,
    /// The id of the last message that the person sees.
    last: Option<String>,
}

impl Thread {
    /// The messages of an entry. All versions answer the last message that the person sees before them.
    fn place<'a>(&mut self, entry: &mut Entry<'a>, number: u64) -> Result<Vec<Message<'a>>, ImportError> {
        if self.ids.is_full() {
            return Err(ImportError::malformed("there are too many messages before it"));
        }
        let parent = self.last.clone();
        let numbered = !ascending(&entry.versions);
        let mut messages = Vec::new();
        for (at, version) in std::mem::take(&mut entry.versions).into_iter().enumerate() {
            let ids = self.ids.claim(&version, number);
            if at == entry.selected {
                self.last = ids.last().map(|id| id.text.clone());
            }
            let mut above = parent.clone();
            for (mut piece, id) in version.pieces.into_iter().zip(ids) {
                if let Some(given) = &id.repeats {
                    piece.rest.add_text("stepIdentifier", given);
                }
                let place = Some(at).filter(|_| numbered && matches!(piece.name, IdSource::Version));
                let next = Some(id.text.clone());
                messages.push(piece.finish(id.text, above, place, id.given));
                above = next;
            }
        }
        Ok(messages)
    }
}

/// Whether the times of versions tell their order.
fn ascending(versions: &[Version<'_>]) -> bool {
    let time = |version: &Version<'_>| version.pieces.first().and_then(|piece| piece.time);
    versions.windows(2).all(|pair| match pair {
        [one, next] => time(one).zip(time(next)).is_some_and(|(one, next)| one < next),
        _ => true,
    })
}

/// What the first pass found in the messages.
#[derive(Default)]
struct Facts {
    has_messages: bool,
    /// The first line of the first prompt.
    title: Option<String>,
    /// The first words, for a chat that does not say when it began.
    words: Option<String>,
    model: Option<String>,
    oldest: Option<i64>,
    newest: Option<i64>,
    last: Option<String>,
}

impl Facts {
    fn read(bundle: &Bundle, path: &str) -> Result<Self, ImportError> {
        let (mut facts, mut thread) = (Self::default(), Thread::default());
        let walk = JsonArray::new(path).limit(MAX_LENGTH).pointer("/messages").survey(bundle, |element| {
            match facts.add(&element, &mut thread) {
                Err(error) if error.kind == ErrorKind::Malformed => {}
                result => result?,
            }
            Ok(true)
        });
        match walk {
            Err(error) if error.kind == ErrorKind::NotThisFormat => {}
            result => result?,
        }
        facts.last = thread.last;
        Ok(facts)
    }

    fn add(&mut self, element: &Element<'_>, thread: &mut Thread) -> Result<(), ImportError> {
        let mut entry = message::read(element, None)?;
        for message in thread.place(&mut entry, element.index())? {
            self.has_messages = true;
            self.oldest = [self.oldest, message.created_at].into_iter().flatten().min();
            self.newest = self.newest.max(message.created_at);
            if let Some(model) = message.model {
                self.model = Some(model.into_owned());
            }
            let text = message.content.as_ref().and_then(Content::text);
            let line = text.and_then(|text| title::first_line(&text, MAX_TITLE));
            if self.words.is_none() {
                self.words.clone_from(&line);
            }
            if self.title.is_none() && message.role == Role::User {
                self.title = line;
            }
        }
        Ok(())
    }
}

/// Reads the chat at `path`. `name` gives it the id that it has among all chats.
pub(crate) fn read(
    bundle: &Bundle,
    path: &str,
    files: &Files<'_>,
    name: &mut dyn FnMut(String) -> (String, bool),
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let (header, facts) = (Header::read(bundle, path)?, Facts::read(bundle, path)?);
    if facts.has_messages {
        let known = header.id(path);
        let given = known.is_some();
        let wanted = known.unwrap_or_else(|| natural_key(&[header.name.as_deref(), facts.words.as_deref()]));
        let (id, repeated) = name(wanted);
        if repeated {
            sink.warn(path, "another file has a chat that began at the same time; both are read");
        }
        sink.conversation(&conversation(&header, &facts, &id, given && !repeated, path)?, &[])?;
    } else {
        sink.skip(RecordKind::Conversation, path, "the chat has no messages")?;
    }
    if let Some(field) = &header.unread {
        let field = shortened(field);
        sink.warn(path, &format!("the field {field:?} is unknown and holds text; it is kept"));
    }
    read_messages(bundle, path, &header, &facts, files, sink)?;
    report_files(path, files, sink);
    let others = JsonArray::new(path).limit(MAX_LENGTH);
    others.skip_further(bundle, sink, "a file can have only one chat")
}

fn conversation<'s>(
    header: &'s Header,
    facts: &'s Facts,
    id: &'s str,
    given: bool,
    path: &'s str,
) -> Result<Conversation<'s>, ImportError> {
    let title = header.name.as_deref().or(facts.title.as_deref());
    let made = header.name.is_none() && facts.title.is_some();
    let metadata = header.metadata(layout::location(path).folder, made.then_some("first user message"));
    Ok(Conversation {
        id: id.into(),
        provider_conversation_id: given.then_some(id.into()),
        export_format_version: Some(LmStudio::describe().version_of(detect::FORMAT)?.into()),
        title: title.map(Cow::Borrowed),
        created_at: header.created.or(facts.oldest),
        updated_at: header.updated.or(facts.newest),
        model: header.model.as_deref().or(facts.model.as_deref()).map(Cow::Borrowed),
        system_instruction: header.system.as_deref().map(Cow::Borrowed),
        current: facts.last.as_deref().map(Cow::Borrowed),
        raw_metadata: metadata.map(unsigned_json),
        locator: path.into(),
        ..Conversation::default()
    })
}

fn read_messages(
    bundle: &Bundle,
    path: &str,
    header: &Header,
    facts: &Facts,
    files: &Files<'_>,
    sink: &mut Sink,
) -> Result<(), ImportError> {
    let (mut thread, mut warnings) = (Thread::default(), Warnings::new(NOT_LISTED));
    JsonLists::new(path, &LISTS).each(bundle, sink, |_, element, sink| {
        let mut entry = message::read(&element, Some(files))?;
        let messages = thread.place(&mut entry, element.index())?;
        if !facts.has_messages {
            return Err(ImportError::malformed("the first pass found no messages in the file"));
        }
        entry.findings.report(&element.locator(), &mut warnings, sink)?;
        sink.more_messages(&messages)
    })?;
    if thread.ids.repeated {
        sink.warn(path, "several steps have the same id; the later ones get a number");
    }
    report_left_out(path, &header.left_out, sink);
    Ok(())
}

fn report_left_out(path: &str, left_out: &LeftOut, sink: &mut Sink) {
    for name in &left_out.names {
        sink.warn(path, &format!("the field {name:?} cannot be read or is too long; it is left out"));
    }
    let more = match left_out.more {
        0 => return,
        1 => "one more field".to_owned(),
        count => format!("{count} more fields"),
    };
    sink.warn(path, &format!("{more} cannot be read, or the fields are too many or too long; left out"));
}

fn report_files(path: &str, files: &Files<'_>, sink: &mut Sink) {
    if let Some((count, first)) = files.missing() {
        let count = if count < MAX_MISSING { count.to_string() } else { format!("at least {count}") };
        let message =
            format!("{count} of the files in it are not in the folder user-files, such as {first:?}");
        sink.warn(path, &message);
    }
    for description in files.unreadable() {
        sink.warn(&description, "it does not describe a file; the name of the file is that on disk");
    }
}
