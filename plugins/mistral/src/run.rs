//! Reads one export: each chat in two passes, first its order, then its messages.

use std::collections::BTreeSet;

use satchel_importer::{
    Bundle, Conversation, Element, ImportError, Importer as _, JsonArray, RecordKind, Sink, Summary,
    natural_key,
};

use crate::{
    Mistral, detect,
    layout::{self, Folders},
    map,
    order::{Chat, FileOrder, MAX_CHATS, Position},
    raw,
};

/// Reads all that detection claimed for `format`.
pub(crate) fn run(format: &str, bundle: &Bundle, sink: &mut Sink) -> Result<Summary, ImportError> {
    let version = Mistral::describe().version_of(format)?;
    let chats = detect::chats(bundle);
    if chats.is_empty() {
        return Err(ImportError::not_this_format("none of the files is a chat"));
    }
    let mut used = BTreeSet::new();
    for path in chats {
        let order = FileOrder::read(bundle, path)?;
        ChatFile { bundle, path, version, order: &order }.read(&mut used, sink)?;
    }
    for entry in bundle.entries() {
        if layout::is_attached(&entry.path) && !used.contains(&entry.path) {
            sink.skip(RecordKind::File, &entry.path, "no message names this file")?;
        }
    }
    Ok(bundle.summary())
}

/// Reads the file of a chat.
struct ChatFile<'r> {
    bundle: &'r Bundle,
    path: &'r str,
    version: &'static str,
    order: &'r FileOrder,
}

impl ChatFile<'_> {
    fn read(&self, used: &mut BTreeSet<String>, sink: &mut Sink) -> Result<(), ImportError> {
        if let Some(first) = self.order.chats.first() {
            self.begin(first, sink)?;
        }
        JsonArray::new(self.path).kind(RecordKind::Message).each(self.bundle, sink, |element, sink| {
            match self.order.position(element.index()) {
                Some(Position::At { chat: 0, at }) => self.message(&element, 0, at, used, sink),
                // The pass of its chat reads it.
                Some(Position::At { .. }) => Ok(()),
                Some(Position::Repeated) => {
                    Err(ImportError::malformed("another message of the chat has the same id"))
                }
                Some(Position::BeyondLimit) => Err(ImportError::malformed(format!(
                    "the file holds more messages than fit, or more than {MAX_CHATS} chats"
                ))),
                None => Err(not_a_message(&element)),
            }
        })?;
        for (number, chat) in self.order.chats.iter().enumerate().skip(1) {
            self.begin(chat, sink)?;
            JsonArray::new(self.path).survey(self.bundle, |element| {
                match self.order.position(element.index()) {
                    Some(Position::At { chat, at }) if chat == number => {
                        self.message(&element, chat, at, used, sink)?;
                    }
                    _ => {}
                }
                Ok(true)
            })?;
        }
        if self.order.chats.is_empty() {
            sink.skip(RecordKind::Conversation, self.path, "the chat holds no messages")?;
        }
        Ok(())
    }

    /// Emits a chat; its messages follow one by one, each with its parent, in the order of the file.
    fn begin(&self, chat: &Chat, sink: &mut Sink) -> Result<(), ImportError> {
        let fallback = || natural_key(&[Some(layout::stem(self.path))]);
        sink.conversation(
            &Conversation {
                id: chat.id.clone().unwrap_or_else(fallback).into(),
                provider_conversation_id: chat.id.as_deref().map(Into::into),
                export_format_version: Some(self.version.into()),
                title: chat.title.as_deref().map(Into::into),
                created_at: chat.created,
                updated_at: chat.updated,
                current: chat.messages.last().map(|last| last.id.as_str().into()),
                raw_metadata: chat.title.is_some().then(|| r#"{"title_source":"first user message"}"#.into()),
                locator: self.path.into(),
                ..Conversation::default()
            },
            &[],
        )
    }

    fn message(
        &self,
        element: &Element<'_>,
        chat: usize,
        at: usize,
        used: &mut BTreeSet<String>,
        sink: &mut Sink,
    ) -> Result<(), ImportError> {
        let Some(chat) = self.order.chats.get(chat) else { return Ok(()) };
        let Some(entry) = chat.messages.get(at) else { return Ok(()) };
        let raw = raw::Message::read(&mut element.parser())?
            .ok_or_else(|| ImportError::malformed("it is not an object"))?;
        let before = at.checked_sub(1).and_then(|before| chat.messages.get(before));
        let folders = Folders::new(self.bundle, self.path, chat.id.as_deref().or(raw.chat));
        let mapped =
            map::message(raw, &entry.id, before.map(|before| before.id.as_str()), &folders, element.arena());
        if let Some(warning) = mapped.warning {
            sink.warn(&element.locator(), warning);
        }
        used.extend(mapped.files.iter().map(ToString::to_string));
        sink.more_messages(&[mapped.message])
    }
}

/// Why an element is not a message.
fn not_a_message(element: &Element<'_>) -> ImportError {
    match raw::Message::read(&mut element.parser()) {
        Err(error) => error.into(),
        Ok(_) if element.text().trim() == "null" => ImportError::malformed("it is null"),
        Ok(_) => ImportError::malformed("it is not an object"),
    }
}
