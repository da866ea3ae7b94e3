//! The sink: takes the records that an importer emits.

use std::borrow::Cow;

use crate::{
    AccountRecord, Attachment, Content, Conversation, EmbeddingRecord, Evidence, ImportError, Message,
    RecordKind, RelationRecord, Source, ToolCall, ToolInput, backend, pam::unread,
};

/// Bytes of messages that leave the sandbox in one call. The host accepts 64 MiB; smaller batches save memory on both
/// sides.
const MAX_BATCH: usize = 4 * 1024 * 1024;

/// Takes the records that an importer emits.
///
/// # Errors
/// Every call may return [`crate::ErrorKind::Cancelled`] because the host asks the run to stop; propagate it with `?`.
pub struct Sink {
    target: backend::Target,
    /// The locator of the conversation that was emitted last.
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

    /// Emits a conversation with all its messages, or with the first ones; the rest follow through
    /// [`Sink::more_messages`]. The conversation is complete when the next one is emitted or the run ends. There is no limit
    /// on the messages in one call.
    pub fn conversation(
        &mut self,
        conversation: &Conversation,
        messages: &[Message],
    ) -> Result<(), ImportError> {
        let (first, rest) = messages.split_at(batch_length(messages));
        self.locator.clear();
        self.locator.push_str(&conversation.locator);
        self.target.conversation(conversation, first)?;
        self.warn_of_unread(first);
        self.more_messages(rest)
    }

    /// Emits more messages of the conversation that was emitted last.
    pub fn more_messages(&mut self, mut messages: &[Message]) -> Result<(), ImportError> {
        while !messages.is_empty() {
            let (next, rest) = messages.split_at(batch_length(messages));
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

    /// Emits what the export says about memories.
    pub fn evidence(&mut self, evidence: &[Evidence]) -> Result<(), ImportError> {
        self.target.evidence(evidence)
    }

    /// Emits relations between memory items, which are named by their keys.
    pub fn relations(&mut self, relations: &[RelationRecord]) -> Result<(), ImportError> {
        self.target.relations(relations)
    }

    /// Emits embeddings of memory items, which are named by their keys.
    pub fn embeddings(&mut self, embeddings: &[EmbeddingRecord]) -> Result<(), ImportError> {
        self.target.embeddings(embeddings)
    }

    /// Emits the account that the export belongs to, if a file states it outside the records. The host stores it with the import.
    /// It must not contain email addresses or telephone numbers.
    pub fn account(&mut self, account: &AccountRecord) -> Result<(), ImportError> {
        self.target.account(account)
    }

    /// Reports a record of the export that is not emitted, and the reason. It is counted as found and skipped.
    pub fn skip(&mut self, kind: RecordKind, locator: &str, reason: &str) -> Result<(), ImportError> {
        self.target.skip(kind, locator, reason)
    }

    /// Reports that something was imported differently from how the export has it.
    pub fn warn(&mut self, locator: &str, message: &str) {
        self.target.warn(locator, message);
    }

    /// Calls `read` to emit the records of `piece`, unless an earlier run has emitted them. If that run read a piece with
    /// the same bytes and its note still `holds`, the records count as found and unchanged, and `read` is not called.
    ///
    /// `read` returns the note: everything that the records depend on besides the piece, in at most 64 KiB. `holds` compares
    /// it with the current state. If `read` returns `None`, nothing is remembered. The host does not remember a piece
    /// with a skip, a warning, an account, a relation, an embedding, or evidence without a time.
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

    /// Reports the bytes read so far, and the total if it is known. [`crate::JsonArray`] does this itself.
    pub fn progress(&mut self, done: u64, total: Option<u64>) -> Result<(), ImportError> {
        self.target.progress(done, total)
    }
}

/// How many of `messages` make the next batch; at least one if there are any.
fn batch_length(messages: &[Message]) -> usize {
    let mut bytes = 0;
    for (index, message) in messages.iter().enumerate() {
        bytes += size_estimate(message);
        if bytes > MAX_BATCH && index > 0 {
            return index;
        }
    }
    messages.len()
}

/// About how many bytes a message has; counts only fields that can be large.
fn size_estimate(message: &Message) -> usize {
    let length = |text: &Option<Cow<str>>| text.as_ref().map_or(0, |text| text.len());
    let content = match &message.content {
        Some(Content::Text(text)) => text.len(),
        Some(Content::Multipart(parts)) => parts.iter().map(|part| length(&part.text) + 64).sum(),
        None => 0,
    };
    let input = |call: &ToolCall| match &call.input {
        Some(ToolInput::Text(text) | ToolInput::Object(text)) => text.len(),
        None => 0,
    };
    let calls: usize = message.tool_calls.iter().map(|call| length(&call.output) + input(call) + 64).sum();
    let citations: usize = message.citations.iter().map(|citation| length(&citation.snippet) + 64).sum();
    let attachment = |attachment: &Attachment| match &attachment.source {
        Some(Source::Bytes(bytes)) => bytes.len() + 128,
        _ => 128,
    };
    let attachments: usize = message.attachments.iter().map(attachment).sum();
    256 + content + calls + citations + attachments + length(&message.raw_metadata)
}
