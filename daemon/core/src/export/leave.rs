//! What of a record leaves with an export, and as what: the one door for memories, relations and conversations of every format.

use satchel_merge::dangling::Dangling;
use satchel_pam::{
    conversation::{ConversationHeader, Message},
    memory::Memory,
    privacy::{self, Identifiers},
};
use satchel_store::{ConversationQuery, ConversationRecord, MemoryQuery};
use serde_json::Value;

use super::{ExportError, identifiers, job::Job, memu, withheld::Texts};
use crate::conversation_record::shown_header;

impl Job<'_> {
    /// Whether a memory of this id is in the export.
    pub(super) fn leaves(&self, id: &str) -> Result<bool, ExportError> {
        let selection = &self.request.selection;
        let record = if selection.filters() {
            let query = MemoryQuery { ids: vec![id.to_owned()], ..selection.memories.clone() };
            self.store.memories(&query, None, 1, self.revision)?.items.pop()
        } else {
            self.store.memory(id, Some(self.revision))?
        };
        match record.filter(|record| !record.withdrawn) {
            Some(record) => self.may_leave(&record.memory),
            None => Ok(false),
        }
    }

    /// Whether a memory that was chosen may stand in an export at all.
    pub(super) fn may_leave(&self, memory: &Memory) -> Result<bool, ExportError> {
        if !memory.exportable() {
            return Ok(false);
        }
        // The text of a whole list is a memory too; it says what its entries say.
        let whole = beside(memory).is_some_and(|beside| beside.get("whole") == Some(&Value::Bool(true)));
        Ok(!whole || !self.texts()?.in_text(&memory.content))
    }

    /// The memory as it leaves: what it names is in the bundle or in its base. `conversation` tells whether one of this id is in the
    /// export.
    pub(super) fn leaving(
        &self,
        mut memory: Memory,
        conversation: impl Fn(&str) -> bool,
    ) -> Result<Memory, ExportError> {
        let mut dangling = Dangling::default();
        if let Some(successor) = memory.temporal.superseded_by.take() {
            if self.leaves(&successor)? {
                memory.temporal.superseded_by = Some(successor);
            } else if !self.known(&successor)? {
                // As in documents of others, which may name what is nowhere.
                dangling.superseded_by = Some(successor);
            }
        }
        if let Some(reference) = memory.embedding_ref.take() {
            if self.embedding_of(&memory.id)?.is_some_and(|embedding| embedding.id == reference) {
                memory.embedding_ref = Some(reference);
            } else {
                dangling.embedding_ref = Some(reference);
            }
        }
        if !self.request.selection.filters() {
            dangling.put(&mut memory);
        }
        let place = &mut memory.provenance;
        if self.request.selection.filters()
            && place.conversation_ref.take_if(|id| !conversation(id)).is_some()
        {
            place.message_ref = None;
        }
        if beside(&memory).is_some() {
            self.texts()?.leave_memory(&mut memory);
        }
        if self.request.selection.strip {
            privacy::strip_memory(&mut memory, self.identifiers()?);
        }
        Ok(memory)
    }

    /// The header of a stored conversation as it leaves.
    pub(super) fn header_of(&self, record: &ConversationRecord) -> Result<ConversationHeader, ExportError> {
        self.leaving_header(self.digests.complete(self.store, &record.origin, shown_header(record))?)
    }

    /// The header of a conversation as it leaves.
    pub(super) fn leaving_header(
        &self,
        mut header: ConversationHeader,
    ) -> Result<ConversationHeader, ExportError> {
        if header.provider.name == memu::PLATFORM {
            self.texts()?.leave_header(&mut header);
        }
        if self.request.selection.strip {
            privacy::strip_conversation_header(&mut header, self.identifiers()?);
        }
        Ok(header)
    }

    /// The message as it leaves.
    pub(super) fn leaving_message(&self, mut message: Message) -> Result<Message, ExportError> {
        if self.request.selection.strip {
            privacy::strip_message(&mut message, self.identifiers()?);
        }
        Ok(message)
    }

    /// By what people are known elsewhere; read once, and only for what is stripped.
    fn identifiers(&self) -> Result<&Identifiers, ExportError> {
        if let Some(identifiers) = self.identifiers.get() {
            return Ok(identifiers);
        }
        let identifiers = identifiers::of(self.store, self.revision)?;
        Ok(self.identifiers.get_or_init(|| identifiers))
    }

    /// Which conversations are in a full export; none: no conversations at all.
    pub(super) fn wanted_conversations(&self) -> Option<ConversationQuery> {
        self.request.selection.conversations().filter(|_| self.request.conversations)
    }

    /// What must not leave; read once, and only where something may hold it.
    pub(super) fn texts(&self) -> Result<&Texts, ExportError> {
        if let Some(texts) = self.private.get() {
            return Ok(texts);
        }
        let texts = Texts::of(self.store, self.revision)?;
        Ok(self.private.get_or_init(|| texts))
    }

    /// Whether the store shows a memory, or showed one that was erased for good since: that is named nowhere any more.
    fn known(&self, id: &str) -> Result<bool, ExportError> {
        let found = self.store.memory(id, Some(self.revision))?;
        Ok(found.is_some_and(|record| !record.withdrawn || satchel_store::erased(&record.memory)))
    }
}

/// What an importer of lists kept beside a memory.
fn beside(memory: &Memory) -> Option<&Value> {
    memory.metadata.get(memu::PLATFORM)
}
