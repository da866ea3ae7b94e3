//! The conversations of a bundle: one file each, their index, and their attachments.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use satchel_merge::{body, stub::Facts};
use satchel_pam::{
    conversation::{self, ConversationTemporal},
    ids,
    memory::Memory,
    store::{IndexEntry, StorageReference},
    time::Timestamp,
};
use satchel_store::{ConversationRecord, MemoryOrder, MemoryQuery};

use crate::{
    conversation_record::{MessageTree, index_facts, is_line, is_stub, shown_header},
    export::{ExportError, PAGE, job::ExportJob, pages, record_id::RecordId, target::ExportTarget},
};

/// The conversations of the bundle. Index entries are read from the store again when the index is written, so that the
/// titles, tags and memories of all conversations need not be in memory at once.
#[derive(Default)]
pub(super) struct BundleConversations {
    /// The conversations that were written, ordered by id.
    files: Vec<RecordId>,
    /// The conversations that only the index lists.
    index_only: BTreeMap<RecordId, IndexSource>,
}

/// The source of the index entry of a conversation without a file in the bundle.
enum IndexSource {
    /// The store, which knows the conversation only from an index.
    Stored,
    /// Memories that refer to it. They tell only its platform and the creation time of the earliest of them.
    Memories { platform: String, first: Timestamp },
}

impl BundleConversations {
    pub(super) fn count(&self) -> u64 {
        let stored = self.index_only.values().filter(|listed| matches!(listed, IndexSource::Stored)).count();
        (self.files.len() + stored) as u64
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        let id = RecordId::from(id);
        self.files.binary_search(&id).is_ok() || self.index_only.contains_key(&id)
    }

    /// Records the conversation that a memory of the bundle refers to, so that the index has an entry for it (rule
    ///
    pub(super) fn add_reference(&mut self, memory: &Memory) {
        let Some(id) = memory.provenance.conversation_ref.as_deref().map(RecordId::from) else { return };
        if self.files.binary_search(&id).is_ok() {
            return;
        }
        let created = memory.temporal.created_at;
        let platform = || memory.provenance.platform.clone();
        let listed = self.index_only.entry(id);
        let listed = listed.or_insert_with(|| IndexSource::Memories { platform: platform(), first: created });
        if let IndexSource::Memories { first, .. } = listed {
            *first = created.min(*first);
        }
    }
}

impl ExportJob<'_> {
    pub(super) fn conversations(
        &self,
        target: &mut ExportTarget,
    ) -> Result<BundleConversations, ExportError> {
        let mut written = BundleConversations::default();
        let Some(query) = self.conversation_query() else { return Ok(written) };
        let mut write = |id: &str| {
            let Some(record) = self.store.conversation(id, Some(self.revision))? else {
                return Ok(());
            };
            self.progress.update(|progress| progress.conversations += 1)?;
            if is_stub(&record) {
                written.index_only.insert(RecordId::from(id), IndexSource::Stored);
                return Ok(());
            }
            target.file(&path(id), |out| self.conversation(&record, out))?;
            written.files.push(RecordId::from(id));
            Ok(())
        };
        if let Some(delta) = &self.delta {
            delta.conversations.iter().try_for_each(|id| id.with_text(&mut write))?;
        } else {
            pages(
                |after| Ok(self.store.conversations(&query, after, PAGE, self.revision)?),
                |summary| write(&summary.id),
            )?;
        }
        written.files.sort_unstable();
        Ok(written)
    }

    fn conversation(&self, record: &ConversationRecord, out: &mut dyn Write) -> Result<(), ExportError> {
        let failed = ExportError::write(&self.request.output);
        let (places, line) = (MessageTree::new(record), is_line(record));
        let header = self.exported_header(record)?;
        let mut writer = conversation::Writer::new(out, &header).map_err(&failed)?;
        for (at, body) in self.store.all_bodies(record).enumerate() {
            let (_, bytes) = body?;
            let message = places
                .message(record, at, &bytes)
                .map_err(|_| ExportError::Unencodable { what: "a stored message" })?;
            let mut message = self.redact_message(message)?;
            if line {
                message.parent_id = None;
                message.children_ids.clear();
            }
            writer.message(&message).map_err(&failed)?;
        }
        writer.finish().map_err(&failed)?;
        Ok(())
    }

    /// Passes the index entry of each conversation to `visit`, ordered by id.
    pub(super) fn each_index_entry(
        &self,
        written: &BundleConversations,
        mut visit: impl FnMut(&IndexEntry) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let mut files = written.files.iter().peekable();
        for (id, listed) in &written.index_only {
            while let Some(file) = files.next_if(|file| *file < id) {
                file.with_text(|id| self.entry_of_file(id))?.iter().try_for_each(&mut visit)?;
            }
            visit(&id.with_text(|id| self.entry_without_file(id, listed))?)?;
        }
        files
            .try_for_each(|file| file.with_text(|id| self.entry_of_file(id))?.iter().try_for_each(&mut visit))
    }

    fn entry_of_file(&self, id: &str) -> Result<Option<IndexEntry>, ExportError> {
        let storage = Some(StorageReference::file(path(id)));
        let entry = self.stored_entry(id)?;
        Ok(entry.map(|entry| IndexEntry { storage, ..entry }))
    }

    /// Returns the entry of a conversation without a file in the bundle, as the base describes it. If conversations
    /// were not requested, or there is no base, the entry contains only what the memories themselves say.
    fn entry_without_file(&self, id: &str, listed: &IndexSource) -> Result<IndexEntry, ExportError> {
        let in_store =
            matches!(listed, IndexSource::Stored) || self.delta.is_some() && self.request.conversations;
        if in_store && let Some(entry) = self.stored_entry(id)? {
            return Ok(entry);
        }
        let (platform, created_at) = match listed {
            IndexSource::Memories { platform, first } => (platform.clone(), *first),
            IndexSource::Stored => return Err(ExportError::Unencodable { what: "a conversation" }),
        };
        Ok(IndexEntry {
            id: id.to_owned(),
            platform,
            title: None,
            message_count: None,
            temporal: ConversationTemporal { created_at, updated_at: None },
            tags: Vec::new(),
            derived_memories: self.derived_memory_ids(id, &[])?,
            storage: None,
        })
    }

    /// Returns the index entry of a conversation that is visible in the store.
    fn stored_entry(&self, id: &str) -> Result<Option<IndexEntry>, ExportError> {
        let record = self.store.conversation(id, Some(self.revision))?.filter(|record| !record.withdrawn);
        let Some(record) = record else { return Ok(None) };
        let facts = index_facts(&record);
        let mut header = self.redact_header(shown_header(&record))?;
        let counted = record.heads.len() as u64;
        let (message_count, storage, listed) = match facts {
            Some(Facts { message_count, storage, derived_memories }) => {
                (message_count, storage.filter(|_| !self.request.selection.strip), derived_memories)
            }
            None => (Some(counted), None, Vec::new()),
        };
        let derived_memories = self.derived_memory_ids(id, &listed)?;
        Ok(Some(IndexEntry {
            id: header.id,
            platform: header.provider.name,
            title: header.title.take(),
            message_count,
            temporal: header.temporal,
            tags: header.tags,
            derived_memories,
            storage,
        }))
    }

    /// Returns the ids of a conversation's memories that are in the bundle: those that refer to it, and those that an
    /// index `listed`.
    fn derived_memory_ids(&self, conversation: &str, listed: &[String]) -> Result<Vec<String>, ExportError> {
        let query = MemoryQuery {
            conversation: Some(conversation.to_owned()),
            // The list of a conversation is in this order; any other order would scan the whole list for each page.
            order: MemoryOrder::UpdatedDescending,
            ..self.request.selection.memories.clone()
        };
        let mut derived = Vec::new();
        pages(
            |after| Ok(self.store.memories(&query, after, PAGE, self.revision)?),
            |record| {
                let here = self.covers_memory(&record.memory.id) && self.is_exportable(&record.memory)?;
                derived.extend(here.then_some(record.memory.id));
                Ok(())
            },
        )?;
        for id in listed {
            if self.covers_memory(id) && self.is_exported(id)? {
                derived.push(id.clone());
            }
        }
        derived.sort_unstable();
        derived.dedup();
        Ok(derived)
    }

    /// Returns whether the export covers a memory: a full export covers all, an incremental one those that changed.
    fn covers_memory(&self, memory: &str) -> bool {
        self.delta.as_ref().is_none_or(|delta| delta.memories.contains(&RecordId::from(memory)))
    }

    /// Writes the bytes of the attachments that the written conversations refer to.
    pub(super) fn attachments(
        &self,
        target: &mut ExportTarget,
        written: &BundleConversations,
    ) -> Result<(), ExportError> {
        let failed = ExportError::write(&self.request.output);
        let mut done = BTreeSet::new();
        for id in &written.files {
            let found = id.with_text(|id| self.store.conversation(id, Some(self.revision)))?;
            let Some(record) = found else { continue };
            for body in self.store.all_bodies(&record) {
                let (_, bytes) = body?;
                for hash in body::attachment_hashes(&bytes) {
                    if !done.insert(hash) {
                        continue;
                    }
                    if let Some(mut blob) = self.store.blob_open(hash.as_bytes())? {
                        let path = format!("attachments/{}", hash.to_hex());
                        target.file(&path, |out| std::io::copy(&mut blob, out).map(drop).map_err(&failed))?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn path(id: &str) -> String {
    format!("conversations/{}.json", ids::file_name(id))
}
