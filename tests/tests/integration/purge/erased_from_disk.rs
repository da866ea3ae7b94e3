//! No trace of an erased record is on the disk, and all other records are unchanged.

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify;
use satchel_core::{
    export::FULL,
    purge::{PURGED, Target},
};
use satchel_seal::Seal;
use satchel_store::erased;
use satchel_tests::test_core::TestCore;

use crate::purge::fixture::{
    IN_ATTACHMENT, IN_EDIT, IN_MEMORY, IN_MESSAGE, IN_TITLE, NOT_ERASED, SecretIds, assert_erased,
    assert_store_intact, create_with_secrets, erase, files_containing, open_core, seal,
};

/// Checks that only the fact of the erasure remains: the id, the hashes, who erased it, and when.
fn assert_erasure_recorded(core: &TestCore, ids: &SecretIds) -> Result<()> {
    let record = core.store.memory(&ids.memory, None)?.context("the record stays under its id")?;
    ensure!(record.withdrawn && erased(&record.memory), "{record:?}");
    ensure!(record.origin.reason == PURGED && record.origin.actor == "owner", "{:?}", record.origin);
    ensure!(record.origin.at_micros == 1_800_000_000_000_000, "{:?}", record.origin);
    let versions = core.store.memory_versions(&ids.memory)?;
    ensure!(versions.len() >= 3, "the history was lost: {}", versions.len());
    let hashes: Vec<String> = versions.iter().map(|one| one.memory.content_hash.to_string()).collect();
    ensure!(hashes[0] != hashes[1], "the versions have lost their hashes: {hashes:?}");
    ensure!(versions.iter().all(|one| one.memory.content.is_empty()), "{versions:?}");
    Ok(())
}

fn erase_memory_and_check(seal: Option<&Seal>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = create_with_secrets(folder.path(), seal)?;
    let words = [IN_MEMORY, IN_EDIT];
    for word in words.into_iter().filter(|_| seal.is_none()) {
        ensure!(
            !files_containing(&dir, word)?.is_empty(),
            "the search does not find {word} before the erasure"
        );
    }
    let plan = erase(&dir, seal, &Target::Memory(ids.memory.clone()))?;
    ensure!(plan.memories.len() == 1 && plan.evidence == 1 && plan.edits == 1, "{plan:?}");
    ensure!(
        plan.stay.contains(&ids.conversation),
        "the plan does not name the conversation with the same text: {plan:?}"
    );
    // The message to the tool that stored the memory has the same text and remains; the plan reports it.
    let left: &[&str] = if seal.is_none() { &words[1..] } else { &words };
    assert_erased(&dir, left, "after a memory was erased")?;
    assert_store_intact(&dir, seal)?;
    assert_erased(&dir, left, "after a rebuild")?;
    let core = open_core(&dir, seal)?;
    assert_erasure_recorded(&core, &ids)?;
    let state = core.state()?;
    ensure!(state.memories.len() == 1 && state.conversations.len() == 2, "{:?}", state.memories);
    core.close()
}

fn erase_conversation_and_check(seal: Option<&Seal>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = create_with_secrets(folder.path(), seal)?;
    let words = [IN_MESSAGE, IN_MEMORY, IN_ATTACHMENT, IN_EDIT, IN_TITLE];
    for word in words.into_iter().filter(|_| seal.is_none()) {
        ensure!(
            !files_containing(&dir, word)?.is_empty(),
            "the search does not find {word} before the erasure"
        );
    }
    let core = open_core(&dir, seal)?;
    let before = core.state()?;
    ensure!(core.store.blobs()?.len() == 1, "the attachment was not stored");
    core.close()?;
    let target = Target::Conversation { id: ids.conversation.clone(), keep_memories: false };
    let plan = erase(&dir, seal, &target)?;
    ensure!(plan.conversations.len() == 1 && plan.memories.len() == 1, "{plan:?}");
    ensure!(plan.record.attachments.len() == 1 && plan.stay.is_empty(), "{plan:?}");
    assert_erased(&dir, &words, "after a conversation was erased")?;
    assert_store_intact(&dir, seal)?;
    assert_erased(&dir, &words, "after a rebuild")?;
    let core = open_core(&dir, seal)?;
    assert_erasure_recorded(&core, &ids)?;
    let erased =
        core.store.conversation(&ids.conversation, None)?.context("the record stays under its id")?;
    ensure!(
        erased.withdrawn && erased.heads.is_empty() && erased.header.title.is_none(),
        "{:?}",
        erased.header
    );
    ensure!(core.store.blobs()?.is_empty(), "the attachment was not erased");
    let after = core.state()?;
    ensure!(after.conversations.len() == 1 && after.memories.len() == 1, "{:?}", after.memories);
    for (name, conversation) in &after.conversations {
        ensure!(
            before.conversations.get(name) == Some(conversation),
            "a record that was not erased has changed"
        );
    }
    ensure!(before.memories.contains(&after.memories[0]), "a record that was not erased has changed");
    if seal.is_none() {
        ensure!(!files_containing(&dir, NOT_ERASED)?.is_empty());
    }
    core.close()
}

#[test]
fn an_erased_memory_is_nowhere_in_a_plain_store() -> Result<()> {
    erase_memory_and_check(None)
}

#[test]
fn an_erased_memory_is_nowhere_in_an_encrypted_store() -> Result<()> {
    erase_memory_and_check(Some(&seal()))
}

#[test]
fn an_erased_conversation_is_nowhere_in_a_plain_store() -> Result<()> {
    erase_conversation_and_check(None)
}

#[test]
fn an_erased_conversation_is_nowhere_in_an_encrypted_store() -> Result<()> {
    erase_conversation_and_check(Some(&seal()))
}

#[test]
fn exports_contain_nothing_erased_and_an_incremental_export_warns() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = create_with_secrets(folder.path(), None)?;
    let core = open_core(&dir, None)?;
    let base = core.export(&folder.path().join("base"))?;
    core.close()?;
    let target = Target::Conversation { id: ids.conversation.clone(), keep_memories: false };
    erase(&dir, None, &target)?;
    let core = open_core(&dir, None)?;
    // The export that still contains it may be deleted now: no later export builds on it unless somebody names it.
    let full = core.export_changes(None, &folder.path().join("full"))?;
    let reason = full.reason.clone().unwrap_or_default();
    ensure!(full.export_type == FULL && reason.contains("permanently erased"), "{full:?}");
    let next = core.export_changes(None, &folder.path().join("next"))?;
    ensure!(next.base_export_id == Some(full.export_id), "a second full export was made: {next:?}");
    let delta = core.export_changes(Some(&base.export_id), &folder.path().join("delta"))?;
    ensure!(!delta.warnings.is_empty(), "no warning that the base contains erased records: {delta:?}");
    core.close()?;
    for out in ["delta", "full"] {
        assert_erased(
            &folder.path().join(out),
            &[IN_MESSAGE, IN_MEMORY, IN_ATTACHMENT, IN_EDIT, IN_TITLE],
            out,
        )?;
    }
    ensure!(
        !files_containing(&folder.path().join("base"), IN_MESSAGE)?.is_empty(),
        "the earlier export no longer contains the record"
    );
    let base = Some(folder.path().join("base"));
    for (out, base) in [("full", None), ("delta", base)] {
        let options = verify::VerifyOptions { base, strict: true, ..verify::VerifyOptions::default() };
        let report = verify::path(&folder.path().join(out), &options)?;
        ensure!(report.valid, "{out}: {:?}", report.issues);
    }
    Ok(())
}
