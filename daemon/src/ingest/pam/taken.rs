//! Conversations that were taken back where a document comes from.
//!
//! One goes here too where nobody else ever said anything of it, only the base of the document, or other changes since that, and
//! where no memory that stays came of it. All others stay and are told: what is shown follows from all that imports said, and one
//! export takes back no other's word.

use std::collections::BTreeSet;

use satchel_store::{ConversationRecord, MemoryQuery};
use uuid::Uuid;

use super::Reading;
use crate::{
    ingest::{IngestError, write::conversation::withdrawal_of},
    lineage::{
        self, Family, Key,
        taken::{Read, Taken, said_by},
    },
};

/// Why a conversation of an older document does not come.
const OUTDATED: &str = "a later export of the same store took it back here";
const KEPT: &str = "it was taken back where the export was made, and stays here, as not only its base told of it, or a memory came of it; `satchel imports undo ID` of what brought it takes it back here too";
const GONE: &str = "it was taken back where the export was made, and is here too; `satchel imports undo ID` of this import brings it back";

/// One that is shown here.
struct Listed {
    id: String,
    stored: ConversationRecord,
    /// What was said of it; none: it cannot be told who said it.
    keys: Option<Vec<Key>>,
}

impl Reading<'_, '_, '_> {
    /// Follows, or tells of, the conversations that were taken back there and are shown here. Those whose messages the documents
    /// have in another conversation have become part of that by now.
    pub(super) fn taken_back(&mut self) -> Result<(), IngestError> {
        let undone = std::mem::take(&mut self.undone);
        if undone.is_empty() {
            return Ok(());
        }
        self.writer.flush(self.record)?;
        // Nobody writes between the look at them and the commit.
        self.writer.hold()?;
        let mut listed = Vec::new();
        for (name, id) in undone {
            listed.extend(self.listed(id)?.map(|one| (name.clone(), one)));
        }
        let all: BTreeSet<Key> =
            listed.iter().flat_map(|(_, one)| one.keys.iter().flatten().copied()).collect();
        let said = said_by(self.run.store, &all, &self.writer.undone)?;
        for (name, one) in listed {
            let said: Option<BTreeSet<Uuid>> = one
                .keys
                .as_ref()
                .map(|keys| keys.iter().filter_map(|key| said.get(key)).flatten().copied().collect());
            let goes = self.only_of_the_base(said)? && !self.named(&one.id)?;
            self.warn(
                format!("{name}: conversation {:?}", one.id),
                if goes { GONE } else { KEPT }.to_owned(),
            );
            if goes && !self.run.dry_run {
                self.take(one)?;
            }
        }
        self.writer.flush(self.record)
    }

    /// Why a conversation of this document does not come, if a later one took it back.
    pub(super) fn outdated(&self, id: &str) -> Result<Option<String>, IngestError> {
        let store = self.run.store;
        let Some(taken) = Taken::of(store, id)? else { return Ok(None) };
        let stands = taken.stands(store.conversation(id, None)?.as_ref())
            && !lineage::undone(store)?.contains(&taken.import);
        Ok((stands && self.exported <= taken.exported).then(|| OUTDATED.to_owned()))
    }

    fn listed(&self, id: String) -> Result<Option<Listed>, IngestError> {
        let store = self.run.store;
        let Some(stored) = store.conversation(&id, None)?.filter(|stored| !stored.withdrawn) else {
            return Ok(None);
        };
        let family = Family::of(store, &id, Some(&stored))?;
        // Rows may have come to other conversations, and go with the exports that had them.
        let keys = (!family.of_rows() && family.moved.is_none())
            .then(|| family.parts.iter().map(lineage::Part::key).collect::<Option<Vec<_>>>())
            .flatten();
        Ok(Some(Listed { id, stored, keys }))
    }

    /// Whether all who said something are imports of this document's base, or of changes since that.
    fn only_of_the_base(&self, said: Option<BTreeSet<Uuid>>) -> Result<bool, IngestError> {
        let base = self.tail.applied.as_ref().and_then(|applied| applied.record.base_export_id.as_deref());
        let (Some(base), Some(said)) = (base, said.filter(|said| !said.is_empty())) else { return Ok(false) };
        for import in said {
            if !Read::of(self.run.store, import)?.is_some_and(|read| read.builds_on(base)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a memory came of it that stays: an export would name what it does not hold.
    fn named(&self, id: &str) -> Result<bool, IngestError> {
        let store = self.run.store;
        let query = MemoryQuery { conversation: Some(id.to_owned()), ..MemoryQuery::default() };
        let shown = store.memories(&query, None, 1, store.revision())?;
        let came =
            |memory: &satchel_pam::memory::Memory| memory.provenance.conversation_ref.as_deref() == Some(id);
        Ok(!shown.items.is_empty() || self.writer.documents.iter().any(|document| came(&document.memory)))
    }

    /// Takes it back. What was said of it is said by this import too, so that an undo of it finds the conversation.
    fn take(&mut self, one: Listed) -> Result<(), IngestError> {
        let Some(import) = self.writer.origin.import else { return Ok(()) };
        for key in one.keys.into_iter().flatten() {
            self.writer.says(key);
        }
        let taken = Taken { import, exported: self.exported };
        self.writer.add(taken.change(&one.id)?, self.record)?;
        self.writer.add(withdrawal_of(one.stored), self.record)
    }

    /// Notes which document this import reads.
    pub(super) fn note_document(&mut self) -> Result<(), IngestError> {
        let (Some(import), Some(applied)) = (self.writer.origin.import, &self.tail.applied) else {
            return Ok(());
        };
        if self.run.dry_run {
            return Ok(());
        }
        let record = &applied.record;
        let read = Read { export: record.export_id.clone(), base: record.base_export_id.clone() };
        self.writer.add(read.change(import)?, self.record)
    }
}
