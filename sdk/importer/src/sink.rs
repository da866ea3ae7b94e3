//! Where records go.

use crate::{
    AccountRecord, Content, Conversation, EmbeddingRecord, Evidence, ImportError, Message, RecordKind,
    RelationRecord, backend, pam::unread,
};

/// Text and metadata of messages that cross the sandbox in one call, in bytes. The host takes 64 MiB a call; smaller
/// batches keep the memory of both sides small.
const BATCH: usize = 4 * 1024 * 1024;

/// Takes what an importer finds. Each call may answer [`crate::ErrorKind::Cancelled`]: hand it on with `?`.
pub struct Sink {
    target: backend::Target,
    /// Where the conversation stood that was emitted last.
    locator: String,
}

impl Sink {
    pub(crate) fn new(target: backend::Target) -> Self {
        Self { target, locator: String::new() }
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn into_target(self) -> backend::Target {
        self.target
    }

    /// A conversation with its messages, or with the first of them; the rest follow by [`Sink::more_messages`]. It is
    /// complete when the next one begins or the run ends. Large ones are split here.
    pub fn conversation(
        &mut self,
        conversation: &Conversation,
        messages: &[Message],
    ) -> Result<(), ImportError> {
        let (first, rest) = messages.split_at(batch(messages));
        self.locator.clear();
        self.locator.push_str(&conversation.locator);
        self.target.conversation(conversation, first)?;
        self.warn_of_unread(first);
        self.more_messages(rest)
    }

    /// More messages of the conversation emitted last.
    pub fn more_messages(&mut self, mut messages: &[Message]) -> Result<(), ImportError> {
        while !messages.is_empty() {
            let (next, rest) = messages.split_at(batch(messages));
            self.target.more_messages(next)?;
            self.warn_of_unread(next);
            messages = rest;
        }
        Ok(())
    }

    fn warn_of_unread(&mut self, messages: &[Message]) {
        for message in messages {
            if let Some(field) = &message.unread {
                self.target.warn(&format!("{}#{}", self.locator, message.id), &unread::in_field(field));
            }
        }
    }

    /// What the export says about memories.
    pub fn evidence(&mut self, evidence: &[Evidence]) -> Result<(), ImportError> {
        self.target.evidence(evidence)
    }

    /// Edges between items, by their keys.
    pub fn relations(&mut self, relations: &[RelationRecord]) -> Result<(), ImportError> {
        self.target.relations(relations)
    }

    /// Vectors of items, by their keys.
    pub fn embeddings(&mut self, embeddings: &[EmbeddingRecord]) -> Result<(), ImportError> {
        self.target.embeddings(embeddings)
    }

    /// An account whose export it is, where the files say so beside the records. The host keeps it with the import: never make a
    /// conversation of it, and never take mail addresses or telephone numbers.
    pub fn account(&mut self, account: &AccountRecord) -> Result<(), ImportError> {
        self.target.account(account)
    }

    /// A record of the source that is not emitted, and why; it is counted as found and skipped.
    pub fn skip(&mut self, kind: RecordKind, locator: &str, reason: &str) -> Result<(), ImportError> {
        self.target.skip(kind, locator, reason)
    }

    /// Something that was read otherwise than it stood.
    pub fn warn(&mut self, locator: &str, message: &str) {
        self.target.warn(locator, message);
    }

    /// Emits what `read` gives of `piece`, unless an earlier run did: where that left a note that still `holds`, the
    /// records of the piece count as found and unchanged, and `read` is not called.
    ///
    /// `read` answers the note: all that was looked at beside the piece, so that `holds` can tell whether reading it
    /// again would emit the same. None: nothing is to be remembered.
    pub fn remembering(
        &mut self,
        piece: &[u8],
        holds: impl FnOnce(&[u8]) -> bool,
        read: impl FnOnce(&mut Self) -> Result<Option<Vec<u8>>, ImportError>,
    ) -> Result<(), ImportError> {
        if self.target.recall(piece).is_some_and(|note| holds(&note)) {
            return self.target.again();
        }
        match read(self)? {
            Some(note) => self.target.note(&note),
            None => Ok(()),
        }
    }

    /// Bytes read so far, of the total if it is known. [`crate::JsonArray`] calls it by itself.
    pub fn progress(&mut self, done: u64, total: Option<u64>) -> Result<(), ImportError> {
        self.target.progress(done, total)
    }
}

/// How many of `messages` make one batch: at least one, if there is one.
fn batch(messages: &[Message]) -> usize {
    let mut bytes = 0;
    for (index, message) in messages.iter().enumerate() {
        bytes += weight(message);
        if bytes > BATCH && index > 0 {
            return index;
        }
    }
    messages.len()
}

/// About how many bytes a message brings; only what can be large is counted.
fn weight(message: &Message) -> usize {
    let length = |text: &Option<std::borrow::Cow<str>>| text.as_ref().map_or(0, |text| text.len());
    let content = match &message.content {
        Some(Content::Text(text)) => text.len(),
        Some(Content::Multipart(parts)) => parts.iter().map(|part| length(&part.text) + 64).sum(),
        None => 0,
    };
    let calls: usize =
        message.tool_calls.iter().map(|call| length(&call.output) + input_weight(call) + 64).sum();
    let citations: usize = message.citations.iter().map(|citation| length(&citation.snippet) + 64).sum();
    let attachments: usize = message.attachments.iter().map(attachment_weight).sum();
    256 + content + calls + citations + attachments + length(&message.raw_metadata)
}

fn input_weight(call: &crate::ToolCall) -> usize {
    match &call.input {
        Some(crate::ToolInput::Text(text) | crate::ToolInput::Object(text)) => text.len(),
        None => 0,
    }
}

fn attachment_weight(attachment: &crate::Attachment) -> usize {
    match &attachment.source {
        Some(crate::Source::Bytes(bytes)) => bytes.len() + 128,
        _ => 128,
    }
}
