//! One call of a plugin's sink, sent from the plugin's thread to the thread that checks it.

use satchel_pam::record::{AccountRecord, Skip, Warning};

use crate::{
    bindings::satchel::importer::types as wit,
    collect::{RecordCollector, RecordNotes, size_estimate},
    convert,
    error::PluginError,
};

/// Bytes charged for a call in addition to its content, so that an endless series of empty calls ends too.
const CALL_COST: usize = 64;

/// A call as the plugin made it, not yet checked.
pub(crate) enum SinkCall {
    Conversation(Box<wit::Conversation>, Vec<wit::Message>),
    Messages(Vec<wit::Message>),
    Evidence(Vec<wit::Evidence>),
    Relations(Vec<wit::Relation>),
    Embeddings(Vec<wit::Embedding>),
    /// JSON Lines.
    Json(Vec<u8>),
    Account(AccountRecord),
    Skip(Skip),
    Warning(Warning),
    /// A piece of the source begins.
    PieceStarted,
    /// The piece is unchanged; the value is the result that the caller stored for it.
    PieceUnchanged(Vec<u8>),
    /// The records emitted since the piece began follow from its content and the note.
    PieceNoted {
        digest: [u8; 32],
        note: Vec<u8>,
    },
    /// Progress in bytes: `done` by the host's count, `total` as the plugin states it.
    Progress {
        done: u64,
        total: Option<u64>,
    },
}

impl SinkCall {
    /// Returns the size in bytes, never zero.
    pub(crate) fn size_estimate(&self) -> usize {
        CALL_COST
            + match self {
                Self::Conversation(record, messages) => {
                    size_estimate::conversation(record) + size_estimate::messages(messages)
                }
                Self::Messages(messages) => size_estimate::messages(messages),
                Self::Evidence(records) => records.iter().map(size_estimate::evidence).sum(),
                Self::Relations(records) => records.iter().map(size_estimate::relation).sum(),
                Self::Embeddings(records) => records.iter().map(size_estimate::embedding).sum(),
                Self::Json(lines) => lines.len(),
                Self::Account(AccountRecord { id, name, locator }) => {
                    id.len() + name.as_deref().map_or(0, str::len) + locator.len()
                }
                Self::Skip(Skip { kind: _, locator, reason }) => locator.len() + reason.len(),
                Self::Warning(Warning { locator, message }) => locator.len() + message.len(),
                Self::PieceUnchanged(bytes) | Self::PieceNoted { note: bytes, .. } => bytes.len(),
                Self::PieceStarted | Self::Progress { .. } => 0,
            }
    }

    /// Converts the call into checked records.
    pub(crate) fn collect(self, collector: &mut RecordCollector<'_>) {
        match self {
            Self::Conversation(record, messages) => {
                let size = size_estimate::conversation(&record);
                let mut notes = RecordNotes::default();
                let record = convert::conversation(*record, &mut notes);
                collector.conversation(record, notes, size);
                collect_messages(messages, collector);
            }
            Self::Messages(messages) => collect_messages(messages, collector),
            Self::Evidence(records) => {
                collector.evidence(records.into_iter().map(|record| {
                    let mut notes = RecordNotes::default();
                    (convert::evidence(record, &mut notes), notes)
                }));
            }
            Self::Relations(records) => collector.relations(records.into_iter().map(convert::relation)),
            Self::Embeddings(records) => collector.embeddings(records.into_iter().map(convert::embedding)),
            Self::Json(lines) => collector.json_lines(&lines),
            Self::Account(account) => collector.account(account),
            Self::Skip(skip) => collector.skip(skip),
            Self::Warning(warning) => collector.warn(warning),
            Self::PieceStarted => collector.begin_piece(),
            Self::PieceUnchanged(result) => collector.piece_unchanged(result),
            Self::PieceNoted { digest, note } => collector.piece_noted(digest, note),
            Self::Progress { done, total } => collector.progress(done, total),
        }
    }
}

fn collect_messages(messages: Vec<wit::Message>, collector: &mut RecordCollector<'_>) {
    for message in messages {
        let size = size_estimate::message(&message);
        let mut notes = RecordNotes::default();
        let record = convert::message(message, &mut notes);
        collector.message(record, notes, size);
    }
}

/// A limit on the bytes that one run emits.
pub(crate) struct Meter {
    spent: u64,
    budget: u64,
}

impl Meter {
    pub(crate) fn new(budget: u64) -> Self {
        Self { spent: 0, budget }
    }

    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), PluginError> {
        self.spent = self.spent.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if self.spent > self.budget { Err(PluginError::TooMuchEmitted(self.budget)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emitted_bytes_are_bounded() {
        let mut meter = Meter::new(10_000);
        let skip = || {
            SinkCall::Skip(Skip {
                kind: satchel_pam::record::RecordKind::Message,
                locator: "l".repeat(500),
                reason: "r".repeat(436),
            })
        };
        let charged = (0..20).take_while(|_| meter.charge(skip().size_estimate()).is_ok()).count();
        assert_eq!(charged, 10);
        assert_eq!(meter.charge(0), Err(PluginError::TooMuchEmitted(10_000)));
    }

    #[test]
    fn empty_calls_are_bounded_too() {
        for empty in [
            SinkCall::Progress { done: 0, total: None },
            SinkCall::Evidence(Vec::new()),
            SinkCall::Json(Vec::new()),
        ] {
            let mut meter = Meter::new(10_000);
            assert!((0..1_000).any(|_| meter.charge(empty.size_estimate()).is_err()));
        }
    }
}
