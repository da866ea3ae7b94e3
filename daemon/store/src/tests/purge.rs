//! Erased content is in no frame, no value and no file, and everything else is unchanged.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use super::{
    fixture::{Model, TestRng, open_real, seal, sealed, show_all},
    sealed::{PLANTED, planted, readable},
};
use crate::{
    Eraser, Health, Ledger, OpaqueEntry, StoreError,
    disk::{Disk, OsDisk},
    erased,
    journal::{Acknowledged, frame::FrameKind, segments::Segments},
    purge::purge,
};

/// Erases the whole planted memory and conversation.
pub(super) struct EraseAll {
    memory: String,
    conversation: String,
    visited: usize,
    pub(super) attachments: BTreeSet<[u8; 32]>,
}

impl Eraser for EraseAll {
    fn erases_memory(&self, id: &str, _: &str) -> bool {
        id == self.memory
    }

    fn erases_vectors(&self, memory: &str) -> bool {
        memory == self.memory
    }

    fn erases_conversation(&self, id: &str) -> bool {
        id == self.conversation
    }

    fn visit(&mut self, _: OpaqueEntry<'_>) {
        self.visited += 1;
    }

    fn redact(&self, text: OpaqueEntry<'_>) -> Result<Option<Vec<u8>>, StoreError> {
        let has = |bytes: &[u8]| bytes.windows(PLANTED.len()).any(|window| window == PLANTED.as_bytes());
        Ok(match text {
            OpaqueEntry::Evidence { json, .. } => has(json).then(|| b"{}".to_vec()),
            OpaqueEntry::Entry { ledger: Ledger::Import, value, .. } => has(value).then(Vec::new),
            OpaqueEntry::Issues(value) => has(value).then(|| b"[]".to_vec()),
            OpaqueEntry::Entry { .. } | OpaqueEntry::ErasedMemory(_) => None,
        })
    }

    fn redact_reason(&self, _: &str) -> String {
        String::new()
    }

    fn attachments(&self) -> &BTreeSet<[u8; 32]> {
        &self.attachments
    }
}

/// Plants the content to be erased, without the actor's name, which an erasure does not remove.
pub(super) fn make_planted(dir: &Path) -> (Model, EraseAll) {
    let (store, _) = open_real(dir, "boot").unwrap();
    let (mut model, mut rng) = (Model::default(), TestRng(8));
    let blob = store.blob_put(&mut PLANTED.as_bytes()).unwrap();
    for _ in 0..6 {
        store.commit(model.batch(&mut rng)).unwrap();
    }
    let shown = show_all(&store).unwrap();
    let mut batch = planted();
    "owner".clone_into(&mut batch.origin.actor);
    let (mut memory, mut conversation) = (String::new(), String::new());
    for change in &mut batch.changes {
        match change {
            crate::Change::Memory(one) => {
                one.id = format!("the {}", one.id);
                memory.clone_from(&one.id);
            }
            crate::Change::Conversation(one) => {
                one.header.id = format!("the {}", one.header.id);
                conversation.clone_from(&one.header.id);
            }
            _ => {}
        }
    }
    store.commit(batch).unwrap();
    store.close().unwrap();
    (shown, EraseAll { memory, conversation, visited: 0, attachments: BTreeSet::from([blob.sha256]) })
}

/// Returns whether an unpacked frame of the journal contains the planted words.
pub(super) fn planted_in_journal(dir: &Path) -> bool {
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let journal = Segments::list(&disk, dir.join("journal"), seal()).unwrap().unwrap();
    let mut found = false;
    let outcome = journal.scan(Segments::beginning(), 0, Acknowledged::default(), &mut |visit| {
        if visit.header.kind != FrameKind::Seal {
            let bytes = visit.unpack().unwrap();
            found |= bytes.windows(PLANTED.len()).any(|window| window == PLANTED.as_bytes());
        }
        Ok(())
    });
    assert!(outcome.unwrap().damage.is_empty());
    found
}

fn check_purge_erases_all(sealed: bool) {
    let dir = tempfile::tempdir().unwrap();
    let (before, mut all) = make_planted(dir.path());
    assert!(planted_in_journal(dir.path()), "the search finds what is there");
    assert!(sealed || readable(dir.path()).len() > 2);
    let erased_blobs = purge(dir.path(), seal().as_ref(), &mut all, &mut |_| {}).unwrap();
    assert_eq!(erased_blobs.len(), 1);
    assert!(all.visited > 2);
    assert!(!planted_in_journal(dir.path()));
    assert_eq!(readable(dir.path()), Vec::<std::path::PathBuf>::new());
    let (store, events) = open_real(dir.path(), "boot").unwrap();
    assert_eq!(events.len(), 1, "the database came along: {events:?}");
    assert_eq!(store.health(), Health::Good);
    assert!(store.check(true, &mut |_| {}).unwrap().clean());
    assert!(store.blobs().unwrap().is_empty());
    let memory = store.memory(&all.memory, None).unwrap().unwrap();
    assert!(erased(&memory.memory) && memory.origin.reason.is_empty(), "{memory:?}");
    let conversation = store.conversation(&all.conversation, None).unwrap().unwrap();
    assert!(conversation.heads.is_empty() && conversation.header.title.is_none());
    let mut after = show_all(&store).unwrap();
    after.memories.remove(&all.memory);
    after.conversations.remove(&all.conversation);
    assert_eq!(after.memories, before.memories);
    assert_eq!(after.conversations, before.conversations);
}

#[test]
fn erased_content_is_in_no_frame_of_a_plain_store() {
    check_purge_erases_all(false);
}

#[test]
fn erased_content_is_in_no_frame_of_a_sealed_store() {
    sealed(|| check_purge_erases_all(true));
}

#[test]
fn an_incomplete_erasure_is_discarded() {
    let dir = tempfile::tempdir().unwrap();
    make_planted(dir.path());
    let half = dir.path().join("purging.new/journal");
    fs::create_dir_all(&half).unwrap();
    fs::write(half.join("00000001.seg"), "half").unwrap();
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    assert_eq!(store.health(), Health::Good);
    assert!(!dir.path().join("purging.new").exists());
}

#[test]
fn a_store_in_use_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut all) = make_planted(dir.path());
    let (store, _) = open_real(dir.path(), "boot").unwrap();
    let refused = purge(dir.path(), None, &mut all, &mut |_| {});
    assert!(matches!(refused, Err(StoreError::Locked { .. })), "{refused:?}");
    drop(store);
    assert!(planted_in_journal(dir.path()));
}
