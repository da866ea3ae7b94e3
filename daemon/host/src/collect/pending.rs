//! The conversation that is being collected.

use satchel_pam::record::{ConversationRecord, MessageRecord, RecordKind, Skip};

use super::check::Rejection;

/// A conversation that may still receive messages.
pub(super) struct PendingConversation {
    record: ConversationRecord,
    size: usize,
    max_size: usize,
    /// The reason for refusing the conversation. If set, its messages are only counted.
    refused: Option<String>,
    dropped: u64,
}

/// A conversation that is left out.
pub(super) struct SkippedConversation {
    pub(super) skip: Skip,
    /// Number of messages that were dropped with it.
    pub(super) messages: u64,
}

impl PendingConversation {
    pub(super) fn new(record: ConversationRecord, size: usize, max_size: usize) -> Self {
        let mut pending = Self { record, size, max_size, refused: None, dropped: 0 };
        pending.refuse_if_too_large();
        pending
    }

    pub(super) fn refused(locator: String, rejection: Rejection) -> Self {
        let Rejection(reason) = rejection;
        let record = ConversationRecord { locator, ..ConversationRecord::default() };
        Self { record, size: 0, max_size: usize::MAX, refused: Some(reason), dropped: 0 }
    }

    pub(super) fn locator(&self) -> &str {
        &self.record.locator
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    pub(super) fn drop_message(&mut self) {
        self.dropped += 1;
    }

    pub(super) fn add(&mut self, message: MessageRecord, size: usize) {
        self.size = self.size.saturating_add(size);
        self.record.messages.push(message);
        self.refuse_if_too_large();
    }

    /// Returns the conversation, unless it is left out.
    pub(super) fn finish(self) -> Result<ConversationRecord, SkippedConversation> {
        let Self { record, size: _, max_size: _, refused, dropped } = self;
        match refused {
            None => Ok(record),
            Some(reason) => {
                let skip = Skip {
                    kind: RecordKind::Conversation,
                    locator: record.locator,
                    reason: format!("{reason}; its {dropped} messages were skipped with it"),
                };
                Err(SkippedConversation { skip, messages: dropped })
            }
        }
    }

    fn refuse_if_too_large(&mut self) {
        if self.size > self.max_size {
            self.refused = Some(format!("the conversation takes more than {} bytes", self.max_size));
            self.dropped = self.record.messages.len() as u64;
            self.record.messages = Vec::new();
        }
    }
}
