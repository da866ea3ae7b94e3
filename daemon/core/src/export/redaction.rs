//! Decides which parts of a record are exported, for memories, relations and conversations in every format.

use satchel_merge::dangling::DanglingRefs;
use satchel_pam::{
    conversation::{ConversationHeader, Message},
    memory::Memory,
    privacy::{self, Identifiers},
};
use satchel_store::{ConversationQuery, ConversationRecord, MemoryQuery};
use serde_json::Value;

use super::{ExportError, identifiers, job::ExportJob, memu, private_texts::PrivateTexts};
use crate::conversation_record::shown_header;

impl ExportJob<'_> {
    /// Returns whether the memory with this id is in the export.
    pub(super) fn is_exported(&self, id: &str) -> Result<bool, ExportError> {
        let selection = &self.request.selection;
        let record = if selection.filters() {
            let query = MemoryQuery { ids: vec![id.to_owned()], ..selection.memories.clone() };
            self.store.memories(&query, None, 1, self.revision)?.items.pop()
        } else {
            self.store.memory(id, Some(self.revision))?
        };
        match record.filter(|record| !record.withdrawn) {
            Some(record) => self.is_exportable(&record.memory),
            None => Ok(false),
        }
    }

    /// Returns whether a selected memory may be exported at all.
    pub(super) fn is_exportable(&self, memory: &Memory) -> Result<bool, ExportError> {
        if !memory.exportable() {
            return Ok(false);
        }
        // The text of a whole list is a memory too, and it repeats what its entries say.
        let whole_list =
            list_metadata(memory).is_some_and(|metadata| metadata.get("whole") == Some(&Value::Bool(true)));
        Ok(!whole_list || !self.private_texts()?.occur_in(&memory.content))
    }

    /// Returns the memory as it is exported: everything it refers to is in the bundle or in its base. `conversation`
    /// returns whether the conversation with an id is in the export.
    pub(super) fn redact_memory(
        &self,
        mut memory: Memory,
        conversation: impl Fn(&str) -> bool,
    ) -> Result<Memory, ExportError> {
        let mut dangling = DanglingRefs::default();
        if let Some(successor) = memory.temporal.superseded_by.take() {
            if self.is_exported(&successor)? {
                memory.temporal.superseded_by = Some(successor);
            } else if !self.was_stored(&successor)? {
                // Documents from other programs may contain references to records that do not exist anywhere.
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
            dangling.store_in(&mut memory);
        }
        let place = &mut memory.provenance;
        if self.request.selection.filters()
            && place.conversation_ref.take_if(|id| !conversation(id)).is_some()
        {
            place.message_ref = None;
        }
        if list_metadata(&memory).is_some() {
            self.private_texts()?.redact_memory_texts(&mut memory);
        }
        if self.request.selection.strip {
            privacy::strip_memory(&mut memory, self.identifiers()?);
        }
        Ok(memory)
    }

    /// Returns the header of a stored conversation as it is exported.
    pub(super) fn exported_header(
        &self,
        record: &ConversationRecord,
    ) -> Result<ConversationHeader, ExportError> {
        self.redact_header(self.digests.add_source_digest(
            self.store,
            &record.origin,
            shown_header(record),
        )?)
    }

    /// Returns the header of a conversation as it is exported.
    pub(super) fn redact_header(
        &self,
        mut header: ConversationHeader,
    ) -> Result<ConversationHeader, ExportError> {
        if header.provider.name == memu::PLATFORM {
            self.private_texts()?.redact_header_texts(&mut header);
        }
        if self.request.selection.strip {
            privacy::strip_conversation_header(&mut header, self.identifiers()?);
        }
        Ok(header)
    }

    /// Returns the message as it is exported.
    pub(super) fn redact_message(&self, mut message: Message) -> Result<Message, ExportError> {
        if self.request.selection.strip {
            privacy::strip_message(&mut message, self.identifiers()?);
        }
        Ok(message)
    }

    /// Returns the identifiers that people are known by elsewhere. They are loaded once, and only for a stripped
    /// export.
    fn identifiers(&self) -> Result<&Identifiers, ExportError> {
        if let Some(identifiers) = self.identifiers.get() {
            return Ok(identifiers);
        }
        let identifiers = identifiers::collect(self.store, self.revision)?;
        Ok(self.identifiers.get_or_init(|| identifiers))
    }

    /// Returns which conversations are in a full export, or `None` if there are none.
    pub(super) fn conversation_query(&self) -> Option<ConversationQuery> {
        self.request.selection.conversations().filter(|_| self.request.conversations)
    }

    /// Returns the texts that must not be exported. They are loaded once, and only when some data may contain them.
    pub(super) fn private_texts(&self) -> Result<&PrivateTexts, ExportError> {
        if let Some(texts) = self.private_texts.get() {
            return Ok(texts);
        }
        let texts = PrivateTexts::load(self.store, self.revision)?;
        Ok(self.private_texts.get_or_init(|| texts))
    }

    /// Returns whether the store shows a memory, or showed one that was permanently erased since; nothing refers to an
    /// erased memory any more.
    fn was_stored(&self, id: &str) -> Result<bool, ExportError> {
        let found = self.store.memory(id, Some(self.revision))?;
        Ok(found.is_some_and(|record| !record.withdrawn || satchel_store::erased(&record.memory)))
    }
}

/// Returns the metadata that an importer of lists keeps with a memory.
fn list_metadata(memory: &Memory) -> Option<&Value> {
    memory.metadata.get(memu::PLATFORM)
}
