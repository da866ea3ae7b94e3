//! The conversation that is being collected.

use satchel_pam::record::{ConversationRecord, MessageRecord, RecordKind, Skip};

use super::check::Fault;

/// A conversation that may still receive messages.
pub(super) struct Pending {
    record: ConversationRecord,
    weight: usize,
    max_weight: usize,
    /// The reason for refusing the conversation. If set, its messages are only counted.
    refused: Option<String>,
    dropped: u64,
}

/// A conversation that is left out.
pub(super) struct Refused {
    pub(super) skip: Skip,
    /// Number of messages that were dropped with it.
    pub(super) messages: u64,
}

impl Pending {
    pub(super) fn new(record: ConversationRecord, weight: usize, max_weight: usize) -> Self {
        let mut pending = Self { record, weight, max_weight, refused: None, dropped: 0 };
        pending.refuse_if_too_large();
        pending
    }

    pub(super) fn refused(locator: String, fault: Fault) -> Self {
        let Fault(reason) = fault;
        let record = ConversationRecord { locator, ..ConversationRecord::default() };
        Self { record, weight: 0, max_weight: usize::MAX, refused: Some(reason), dropped: 0 }
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

    pub(super) fn add(&mut self, message: MessageRecord, weight: usize) {
        self.weight = self.weight.saturating_add(weight);
        self.record.messages.push(message);
        self.refuse_if_too_large();
    }

    /// Returns the conversation, unless it is left out.
    pub(super) fn finish(self) -> Result<ConversationRecord, Refused> {
        let Self { record, weight: _, max_weight: _, refused, dropped } = self;
        match refused {
            None => Ok(record),
            Some(reason) => {
                let skip = Skip {
                    kind: RecordKind::Conversation,
                    locator: record.locator,
                    reason: format!("{reason}; its {dropped} messages went with it"),
                };
                Err(Refused { skip, messages: dropped })
            }
        }
    }

    fn refuse_if_too_large(&mut self) {
        if self.weight > self.max_weight {
            self.refused = Some(format!("the conversation takes more than {} bytes", self.max_weight));
            self.dropped = self.record.messages.len() as u64;
            self.record.messages = Vec::new();
        }
    }
}
