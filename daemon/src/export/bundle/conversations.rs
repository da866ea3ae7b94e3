//! The conversations of a bundle: a file for each, the index of them all, and their attachments.

use std::{collections::BTreeSet, io::Write};

use satchel_pam::{
    conversation::{self, ConversationHeader},
    embedding::StorageKind,
    ids,
    store::{IndexEntry, StorageReference},
};
use satchel_store::{ConversationRecord, MemoryOrder, MemoryQuery};

use crate::{
    export::{
        ExportError,
        id::Id,
        job::{Job, PAGE},
        pages,
        target::Target,
    },
    plan::{assemble::Places, body},
};

/// The conversations that were written, in the order of their ids. What the index says of them is read again when it is written:
/// titles, tags and memories of all of them need not be in memory at once.
#[derive(Default)]
pub(super) struct Conversations(Vec<Id>);

impl Conversations {
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.0.binary_search(&Id::from(id)).is_ok()
    }
}

impl Job<'_> {
    pub(super) fn conversations(&self, target: &mut Target) -> Result<Conversations, ExportError> {
        let mut written = Vec::new();
        let Some(query) = self.wanted_conversations() else { return Ok(Conversations::default()) };
        let mut write = |id: &str| {
            let Some(record) = self.store.conversation(id, Some(self.revision))? else {
                return Ok(());
            };
            target.file(&path(id), |out| self.conversation(&record, out))?;
            self.told.on(|progress| progress.conversations += 1);
            written.push(Id::from(id));
            Ok(())
        };
        if let Some(delta) = &self.delta {
            delta.conversations.iter().try_for_each(|id| id.text(&mut write))?;
        } else {
            pages(
                |after| Ok(self.store.conversations(&query, after, PAGE, self.revision)?),
                |summary| write(&summary.id),
            )?;
        }
        written.sort_unstable();
        Ok(Conversations(written))
    }

    fn conversation(&self, record: &ConversationRecord, out: &mut dyn Write) -> Result<(), ExportError> {
        let failed = ExportError::write(&self.request.output);
        let places = Places::of(record);
        let header = self.header_of(record)?;
        let mut writer = conversation::Writer::new(out, &header).map_err(&failed)?;
        for (head, body) in record.heads.iter().zip(self.store.all_bodies(record)) {
            let (_, bytes) = body?;
            let message = places
                .message(head, &bytes)
                .map_err(|_| ExportError::Unencodable { what: "a stored message" })?;
            writer.message(&self.leaving_message(message)).map_err(&failed)?;
        }
        writer.finish().map_err(&failed)?;
        Ok(())
    }

    /// Shows what the index says of each conversation.
    pub(super) fn each_index_entry(
        &self,
        written: &Conversations,
        mut see: impl FnMut(&IndexEntry) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        for id in &written.0 {
            id.text(|id| {
                let Some(record) = self.store.conversation(id, Some(self.revision))? else { return Ok(()) };
                let header = self.header_of(&record)?;
                see(&index_entry(header, record.heads.len() as u64, path(id), self.derived(id)?))
            })?;
        }
        Ok(())
    }

    /// The memories of a conversation that leave, by id.
    fn derived(&self, conversation: &str) -> Result<Vec<String>, ExportError> {
        let query = MemoryQuery {
            conversation: Some(conversation.to_owned()),
            // Of a conversation's list this is the order; any other would look at all of them for each page.
            order: MemoryOrder::UpdatedDescending,
            ..self.request.selection.memories.clone()
        };
        let mut derived = Vec::new();
        pages(
            |after| Ok(self.store.memories(&query, after, PAGE, self.revision)?),
            |record| {
                derived.extend(self.may_leave(&record.memory)?.then_some(record.memory.id));
                Ok(())
            },
        )?;
        derived.sort_unstable();
        Ok(derived)
    }

    /// The bytes of the attachments that the conversations written name.
    pub(super) fn attachments(
        &self,
        target: &mut Target,
        written: &Conversations,
    ) -> Result<(), ExportError> {
        let failed = ExportError::write(&self.request.output);
        let mut done = BTreeSet::new();
        for id in &written.0 {
            let found = id.text(|id| self.store.conversation(id, Some(self.revision)))?;
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

fn index_entry(
    header: ConversationHeader,
    messages: u64,
    path: String,
    derived_memories: Vec<String>,
) -> IndexEntry {
    IndexEntry {
        id: header.id,
        platform: header.provider.name,
        title: header.title,
        message_count: Some(messages),
        temporal: header.temporal,
        tags: header.tags,
        derived_memories,
        storage: Some(StorageReference {
            kind: StorageKind::File,
            reference: path,
            format: Some("json".into()),
        }),
    }
}
