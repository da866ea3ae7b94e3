//! Conversations that the index of a memory store lists without a readable file.

use satchel_merge::{document::repair, stub};
use satchel_pam::{
    conversation::{ConversationHeader, Provider},
    embedding::StorageKind,
    record::RecordKind,
    store::IndexEntry,
};
use satchel_source::FileSet as _;

use super::DocumentImport;
use crate::ingest::{erased, error::IngestError, normalise::NormalisedConversation, records::ImportItem};

/// Approximate bytes that an entry occupies in memory, without its texts.
const WEIGHT: usize = 512;

impl DocumentImport<'_, '_, '_> {
    /// Stores the index entries of conversations that were not read from files.
    pub(super) fn listed(&mut self) -> Result<(), IngestError> {
        let Some(store) = self.run.files.store.clone() else { return Ok(()) };
        let read = self.index(&store, |reading, at, entry| {
            if reading.conversations.contains(&entry.id) || reading.says_nothing(&entry) {
                return Ok(());
            }
            reading.entry(format!("{store}:$.conversations_index[{at}]"), entry)
        })?;
        match read {
            Ok(()) => Ok(()),
            Err(error) => self.skip(RecordKind::File, store, format!("it cannot be read again: {error}")),
        }
    }

    /// Returns whether an entry says no more than the memories that refer to the conversation; it is in the index only
    /// because of them.
    fn says_nothing(&self, entry: &IndexEntry) -> bool {
        let IndexEntry {
            id,
            platform: _,
            title,
            message_count,
            temporal,
            tags,
            derived_memories: _,
            storage,
        } = entry;
        title.is_none()
            && message_count.is_none()
            && tags.is_empty()
            && storage.is_none()
            && temporal.updated_at.is_none()
            && self.named.get(id) == Some(&temporal.created_at)
    }

    fn entry(&mut self, locator: String, mut entry: IndexEntry) -> Result<(), IngestError> {
        if let Some(storage) = entry.storage.take_if(|storage| storage.kind == StorageKind::File) {
            let files = self.run.files;
            let file = format!("{}{}", files.root, storage.reference);
            if self.given.contains(&file) {
                // The file holds a conversation other than the one in the index.
                return Ok(());
            }
            let there = self.run.bundle.list().iter().any(|one| one.path == file);
            let problem = if files.conversations.contains(&file) {
                "cannot be read"
            } else if there {
                "is no PAM conversation"
            } else {
                "is not there"
            };
            let message =
                format!("its file {file:?} {problem}; what the index says of the conversation is kept");
            self.warn(locator.clone(), message);
        }
        if let Err(reason) = self.taken.claim("conversation", &entry.id) {
            return self.skip(RecordKind::Conversation, locator, reason);
        }
        if self.purged.contains_conversation(&entry.id) {
            return self.skip(RecordKind::Conversation, locator, erased::REASON.to_owned());
        }
        let mut header = header_of(&entry);
        for note in repair::header(&mut header) {
            self.warn(locator.clone(), note);
        }
        let weight = WEIGHT + entry.title.as_ref().map_or(0, String::len) + 40 * entry.derived_memories.len();
        let id = entry.id.clone();
        let report = stub::report(entry, header.tags, header.raw_metadata);
        let platform = header.provider.name;
        let nodes = Vec::new();
        let untrusted = self.deferred.untrusted.clone();
        let conversation = NormalisedConversation {
            id,
            platform,
            import: None,
            foreign: true,
            untrusted,
            report,
            nodes,
            weight,
        };
        self.writer.write(ImportItem::Conversation(Box::new(conversation)), self.record)
    }
}

/// Converts the entry to the header of a conversation.
fn header_of(entry: &IndexEntry) -> ConversationHeader {
    ConversationHeader {
        id: entry.id.clone(),
        provider: Provider {
            name: entry.platform.clone(),
            conversation_id: None,
            account_id: None,
            export_format_version: None,
        },
        title: None,
        temporal: entry.temporal,
        participants: Vec::new(),
        model: None,
        system_instruction: None,
        is_archived: false,
        tags: entry.tags.clone(),
        raw_metadata: None,
        import_metadata: None,
    }
}
