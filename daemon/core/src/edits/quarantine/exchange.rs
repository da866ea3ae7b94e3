//! What agents wrote in other stores, and what the owner decided there.

use std::cmp::Ordering;

use satchel_source::CancelToken;
use satchel_store::{Batch, Change, Ledger, LedgerWrite, Origin};

use super::{EditError, Edits, MAX_BYTES, QuarantineState, QuarantinedMemory, new_memory, stored};
use crate::{edits::Transaction, provenance::PurgedData, series::payload::AgentMemoryPayload};

/// Names in an entry, in bytes all together: those of the agent, the reasons and the reviewer.
const MAX_NAMES_BYTES: usize = 64 << 10;

impl QuarantinedMemory {
    /// Returns why a store does not take this entry from another one; `None` if it does. An entry has the id that its memory gets.
    pub(crate) fn refusal(&self, id: &str) -> Option<String> {
        let size = self.encode().map_or(usize::MAX, |bytes| bytes.len());
        if size > MAX_BYTES + MAX_NAMES_BYTES {
            return Some(format!("what an agent wrote takes {size} bytes"));
        }
        match new_memory(&self.evidence) {
            Ok(memory) if memory.id == id => None,
            Ok(_) => Some("what an agent wrote has the id of another memory".to_owned()),
            Err(error) => Some(format!("what an agent wrote is no memory: {error}")),
        }
    }

    /// Returns whether something like it was erased.
    pub(crate) fn is_erased(&self, purged: &PurgedData) -> bool {
        purged.redact_stored(&mut self.evidence.clone())
    }

    /// Compares two states of an entry; the greater one is what both stores come to. An approval cannot be taken back, and prevails over a
    /// rejection, which prevails over no decision. An approval that made a memory prevails over one that found an equal one. Otherwise, the
    /// later one of two decisions prevails.
    fn order(&self, other: &Self) -> Ordering {
        let rank = |entry: &Self| match entry.state {
            QuarantineState::Waiting => 0,
            QuarantineState::Rejected => 1,
            QuarantineState::Approved { existed: true, .. } => 2,
            QuarantineState::Approved { existed: false, .. } => 3,
        };
        let at = |entry: &Self| entry.reviewer.as_ref().map(|reviewer| reviewer.at);
        let text = |entry: &Self| serde_json::to_vec(entry).unwrap_or_default();
        let known = rank(self).cmp(&rank(other)).then_with(|| at(self).cmp(&at(other)));
        known.then_with(|| text(self).cmp(&text(other)))
    }
}

impl Transaction<'_> {
    /// Appends the state of a memory that an agent wrote to the store's own series. What was erased, and an agent writes again, stays in this
    /// store, because no other one would take it.
    pub(super) fn announce(&self, id: &str, entry: &QuarantinedMemory) -> Result<(), EditError> {
        if entry.is_erased(&PurgedData::load(self.store)?) {
            return Ok(());
        }
        self.append(&AgentMemoryPayload { id: id.to_owned(), entry: entry.clone() }.into())
    }
}

impl Edits {
    /// Takes the state of a memory that an agent wrote from another store, and writes `entries` in the same commit. Durable when this
    /// returns.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) fn merge_agent_memory(
        &self,
        actor: &str,
        payload: AgentMemoryPayload,
        mut entries: Vec<Change>,
    ) -> Result<(), EditError> {
        let AgentMemoryPayload { id, entry } = payload;
        let _guard = self.write_lock.lock(&CancelToken::new());
        let known = stored(&self.store, &id)?;
        let erased = entry.is_erased(&PurgedData::load(&self.store)?);
        if !erased && known.as_ref().is_none_or(|known| known.order(&entry).is_lt()) {
            let waits = entry.state == QuarantineState::Waiting;
            if !waits && known.is_some_and(|known| known.state == QuarantineState::Waiting) {
                let (ledger, at_micros, value) = (Ledger::Quarantine, entry.written_at(), Vec::new());
                let id = id.clone();
                entries.push(Change::Ledger(LedgerWrite::Entry { ledger, id, at_micros, value }));
            }
            entries.push(entry.put(if waits { Ledger::Quarantine } else { Ledger::Review }, &id)?);
        }
        let at_micros = self.clock.now_micros();
        let origin = Origin { actor: actor.to_owned(), at_micros, ..Origin::default() };
        let outcome = self.store.commit(Batch { origin, changes: entries });
        self.waiting.forget();
        outcome?;
        Ok(())
    }
}
