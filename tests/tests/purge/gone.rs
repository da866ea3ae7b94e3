//! No trace of an erased record is on the disk, and all other records are unchanged.

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify;
use satchel_core::{
    export::FULL,
    ingest::purge::{PURGED, Target},
};
use satchel_seal::Seal;
use satchel_store::erased;
use satchel_tests::archive::Archive;

use crate::scene::{
    ATTACHED, EDITED, Ids, REMEMBERED, SAID, STAYS, TITLED, erase, holding, none_of, open, planted, seal,
    whole,
};

/// Checks that only the fact of the erasure remains: the id, the hashes, who erased it, and when.
fn fact_stands(archive: &Archive, ids: &Ids) -> Result<()> {
    let record = archive.store.memory(&ids.memory, None)?.context("the id stays")?;
    ensure!(record.withdrawn && erased(&record.memory), "{record:?}");
    ensure!(record.origin.reason == PURGED && record.origin.actor == "owner", "{:?}", record.origin);
    ensure!(record.origin.at_micros == 1_800_000_000_000_000, "{:?}", record.origin);
    let versions = archive.store.memory_versions(&ids.memory)?;
    ensure!(versions.len() >= 3, "the history stays: {}", versions.len());
    let hashes: Vec<String> = versions.iter().map(|one| one.memory.content_hash.to_string()).collect();
    ensure!(hashes[0] != hashes[1], "each version keeps the hash of what it said: {hashes:?}");
    ensure!(versions.iter().all(|one| one.memory.content.is_empty()), "{versions:?}");
    Ok(())
}

fn a_memory_goes(seal: Option<&Seal>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = planted(folder.path(), seal)?;
    let words = [REMEMBERED, EDITED];
    for word in words.into_iter().filter(|_| seal.is_none()) {
        ensure!(!holding(&dir, word)?.is_empty(), "the search finds {word} while it is there");
    }
    let plan = erase(&dir, seal, &Target::Memory(ids.memory.clone()))?;
    ensure!(plan.memories.len() == 1 && plan.evidence == 1 && plan.words == 1, "{plan:?}");
    ensure!(plan.stay.contains(&ids.conversation), "it is told where the same may stand: {plan:?}");
    // The message to the tool that stored the memory has the same text and remains; the plan reports it.
    let left: &[&str] = if seal.is_none() { &words[1..] } else { &words };
    none_of(&dir, left, "after a memory went")?;
    whole(&dir, seal)?;
    none_of(&dir, left, "after a rebuild")?;
    let archive = open(&dir, seal)?;
    fact_stands(&archive, &ids)?;
    let state = archive.state()?;
    ensure!(state.memories.len() == 1 && state.conversations.len() == 2, "{:?}", state.memories);
    archive.close()
}

fn a_conversation_goes(seal: Option<&Seal>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = planted(folder.path(), seal)?;
    let words = [SAID, REMEMBERED, ATTACHED, EDITED, TITLED];
    for word in words.into_iter().filter(|_| seal.is_none()) {
        ensure!(!holding(&dir, word)?.is_empty(), "the search finds {word} while it is there");
    }
    let archive = open(&dir, seal)?;
    let before = archive.state()?;
    ensure!(archive.store.blobs()?.len() == 1, "the attachment is stored");
    archive.close()?;
    let target = Target::Conversation { id: ids.conversation.clone(), keep_memories: false };
    let plan = erase(&dir, seal, &target)?;
    ensure!(plan.conversations.len() == 1 && plan.memories.len() == 1, "{plan:?}");
    ensure!(plan.record.attachments.len() == 1 && plan.stay.is_empty(), "{plan:?}");
    none_of(&dir, &words, "after a conversation went")?;
    whole(&dir, seal)?;
    none_of(&dir, &words, "after a rebuild")?;
    let archive = open(&dir, seal)?;
    fact_stands(&archive, &ids)?;
    let gone = archive.store.conversation(&ids.conversation, None)?.context("the id stays")?;
    ensure!(gone.withdrawn && gone.heads.is_empty() && gone.header.title.is_none(), "{:?}", gone.header);
    ensure!(archive.store.blobs()?.is_empty(), "the attachment went");
    let after = archive.state()?;
    ensure!(after.conversations.len() == 1 && after.memories.len() == 1, "{:?}", after.memories);
    for (name, conversation) in &after.conversations {
        ensure!(before.conversations.get(name) == Some(conversation), "what stays is as it was");
    }
    ensure!(before.memories.contains(&after.memories[0]), "what stays is as it was");
    if seal.is_none() {
        ensure!(!holding(&dir, STAYS)?.is_empty());
    }
    archive.close()
}

#[test]
fn a_memory_that_is_erased_is_nowhere_on_a_plain_disk() -> Result<()> {
    a_memory_goes(None)
}

#[test]
fn a_memory_that_is_erased_is_nowhere_on_a_sealed_disk() -> Result<()> {
    a_memory_goes(Some(&seal()))
}

#[test]
fn a_conversation_that_is_erased_is_nowhere_on_a_plain_disk() -> Result<()> {
    a_conversation_goes(None)
}

#[test]
fn a_conversation_that_is_erased_is_nowhere_on_a_sealed_disk() -> Result<()> {
    a_conversation_goes(Some(&seal()))
}

#[test]
fn exports_carry_nothing_of_it_and_a_delta_says_that_it_is_gone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = planted(folder.path(), None)?;
    let archive = open(&dir, None)?;
    let base = archive.export(&folder.path().join("base"))?;
    archive.close()?;
    let target = Target::Conversation { id: ids.conversation.clone(), keep_memories: false };
    erase(&dir, None, &target)?;
    let archive = open(&dir, None)?;
    // The export that still contains it may be deleted now: no later export builds on it unless somebody names it.
    let full = archive.export_changes(None, &folder.path().join("full"))?;
    let reason = full.reason.clone().unwrap_or_default();
    ensure!(full.export_type == FULL && reason.contains("erased for good"), "{full:?}");
    let next = archive.export_changes(None, &folder.path().join("next"))?;
    ensure!(next.base_export_id == Some(full.export_id), "one full export is enough: {next:?}");
    let delta = archive.export_changes(Some(&base.export_id), &folder.path().join("delta"))?;
    ensure!(!delta.warnings.is_empty(), "whoever has the base keeps it: {delta:?}");
    archive.close()?;
    for out in ["delta", "full"] {
        none_of(&folder.path().join(out), &[SAID, REMEMBERED, ATTACHED, EDITED, TITLED], out)?;
    }
    ensure!(!holding(&folder.path().join("base"), SAID)?.is_empty(), "what was made before is not reached");
    let base = Some(folder.path().join("base"));
    for (out, base) in [("full", None), ("delta", base)] {
        let options = verify::Options { base, strict: true, ..verify::Options::default() };
        let report = verify::path(&folder.path().join(out), &options)?;
        ensure!(report.valid, "{out}: {:?}", report.issues);
    }
    Ok(())
}
