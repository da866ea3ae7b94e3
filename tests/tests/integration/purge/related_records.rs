//! Records that name or share something with an erased one: receipts, attachments of others, versions of documents,
//! superseded memories.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    edits::{Draft, EditContext, EditOutcome},
    purge::{self, Target},
};
use satchel_pam::{hash::ContentHash, memory::Status, time::Timestamp};
use satchel_store::{Durability, Ledger, LedgerWrite};
use satchel_tests::test_core::{TestCore, demo_folder, only_import};
use serde_json::{Value, json};

use crate::purge::fixture::{
    IN_ATTACHMENT, IN_TITLE, assert_erased, assert_store_intact, conversation, create_with_secrets, erase,
    files_containing, find_secret_ids, open_core, open_store,
};

/// A warning of the import itself, which contains no word of the erased record.
const NEUTRAL_WARNING: &str = "a warning without names";

#[test]
fn receipts_and_issues_do_not_name_an_erased_title_or_file() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let secret_ids = create_with_secrets(folder.path(), None)?;
    let core = open_core(&dir, None)?;
    let import = core.imports.list(None, 1)?.items.pop().context("an import")?.id;
    let entry = core.store.ledger_get(Ledger::Import, &import)?.context("its receipt")?;
    let mut receipt: Value = serde_json::from_slice(&entry.value)?;
    receipt["warnings"] = json!([
        {"locator": format!("conversation \"About {IN_TITLE}\""), "message": "it is odd"},
        {"locator": "conversations.json", "message": format!("{IN_ATTACHMENT}.txt is odd")},
        {"locator": "conversations.json", "message": NEUTRAL_WARNING},
    ]);
    receipt["warnings_found"] = json!(3);
    let (id, at_micros, value) = (entry.id, entry.at_micros, serde_json::to_vec(&receipt)?);
    let write = LedgerWrite::Entry { ledger: Ledger::Import, id, at_micros, value };
    core.store.put_ledger(write, Durability::Now)?;
    let issues = json!([
        {"kind": "file", "locator": format!("{IN_ATTACHMENT}.txt"), "reason": "it is odd"},
        {"kind": "conversation", "locator": format!("About {IN_TITLE}"), "reason": NEUTRAL_WARNING},
    ]);
    let write = LedgerWrite::Issues { import: import.parse()?, page: 0, value: serde_json::to_vec(&issues)? };
    core.store.put_ledger(write, Durability::Now)?;
    core.close()?;
    let target = Target::Conversation { id: secret_ids.conversation, keep_memories: false };
    erase(&dir, None, &target)?;
    assert_erased(&dir, &[IN_TITLE, IN_ATTACHMENT], "after the conversation was erased")?;
    let core = open_core(&dir, None)?;
    let receipt = core.imports.get(&import)?.context("the receipt stays")?;
    ensure!(receipt.conversations.new == 2 && receipt.warnings.len() == 3, "{receipt:?}");
    ensure!(
        receipt.warnings[2].message == NEUTRAL_WARNING,
        "an unrelated warning was erased: {:?}",
        receipt.warnings
    );
    let issues: Value = serde_json::from_slice(&core.store.issues(import.parse()?, 0)?.context("issues")?)?;
    ensure!(issues[1]["reason"] == NEUTRAL_WARNING && issues[0]["locator"] != "", "{issues}");
    core.close()?;
    assert_store_intact(&dir, None)
}

/// Writes two conversations that show the same file.
fn write_shared_attachment(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let name = format!("{IN_ATTACHMENT}.txt");
    let files =
        json!({"attachments": [{"id": "file-AbC", "name": name, "size": 60, "mimeType": "text/plain"}]});
    let (one, other) = ("6811d5b0-aaaa-8000-8000-00000000000a", "6811d5b0-bbbb-8000-8000-00000000000b");
    let safe = conversation(one, IN_TITLE, "the safe", "The safe is green.", &files);
    let garden = conversation(other, "Garden", "the garden", "The garden is green.", &files);
    fs::write(folder.join("conversations.json"), serde_json::to_vec(&json!([safe, garden]))?)?;
    fs::write(folder.join(format!("file-AbC-{name}")), format!("a note that says {IN_ATTACHMENT}\n"))?;
    Ok(())
}

#[test]
fn an_attachment_stays_while_another_conversation_uses_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    write_shared_attachment(&folder.path().join("export"))?;
    let core = open_core(&dir, None)?;
    core.import(&folder.path().join("export"))?;
    let blobs = core.store.blobs()?;
    ensure!(blobs.len() == 1, "the attachment is not shared");
    let first = find_secret_ids(&core)?.conversation;
    let before = core.state()?;
    core.close()?;
    let target = Target::Conversation { id: first, keep_memories: false };
    let plan = erase(&dir, None, &target)?;
    ensure!(plan.record.attachments.len() == 1, "{plan:?}");
    let core = open_core(&dir, None)?;
    ensure!(core.store.blobs()? == blobs, "the shared attachment was erased");
    let state = core.state()?;
    let (name, other) = state.conversations.iter().next().context("the other conversation")?;
    ensure!(before.conversations.get(name) == Some(other) && state.conversations.len() == 1);
    let at = core.store.revision();
    let shown = core.store.conversations(&satchel_store::ConversationQuery::default(), None, 2, at)?;
    let second = shown.items.into_iter().next().context("the other is shown")?.id;
    core.close()?;
    assert_store_intact(&dir, None)?;
    ensure!(!files_containing(&dir, IN_ATTACHMENT)?.is_empty());
    let target = Target::Conversation { id: second, keep_memories: false };
    erase(&dir, None, &target)?;
    assert_erased(&dir, &[IN_ATTACHMENT, IN_TITLE], "after the last conversation with it was erased")?;
    let core = open_core(&dir, None)?;
    ensure!(core.store.blobs()?.is_empty());
    core.close()?;
    assert_store_intact(&dir, None)
}

#[test]
fn every_version_from_pam_documents_is_erased() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let words = ["curlew-forge-4410", "dunlin-forge-4411"];
    let core = open_core(&dir, None)?;
    let mut documents = Vec::new();
    for (month, word) in [(2, words[0]), (3, words[1])] {
        let content = format!("The safe opens with {word}");
        let document = json!({
            "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "someone"},
            "relations": [], "conversations_index": [],
            "memories": [{
                "id": "m", "type": "fact", "status": "active", "content": content, "tags": [],
                "content_hash": ContentHash::of(&content).to_string(), "provenance": {"platform": "elsewhere"},
                "temporal": {"created_at": "2026-01-02T03:04:05Z", "updated_at": format!("2026-{month:02}-01T00:00:00Z")},
            }],
        });
        let path = folder.path().join(format!("{month}.json"));
        fs::write(&path, serde_json::to_vec(&document)?)?;
        core.import(&path)?;
        documents.push(path);
    }
    ensure!(core.state()?.memories.len() == 1, "the documents are not versions of one memory");
    core.close()?;
    for word in words {
        ensure!(
            !files_containing(&dir, word)?.is_empty(),
            "the search does not find {word} before the erasure"
        );
    }
    let plan = erase(&dir, None, &Target::Memory("m".to_owned()))?;
    ensure!(plan.evidence == 2, "the evidence of both documents is not erased: {plan:?}");
    assert_erased(&dir, &words, "after the memory was erased")?;
    let core = open_core(&dir, None)?;
    for document in &documents {
        let again = only_import(core.import_again(document)?)?;
        ensure!(again.memories.skipped == 1 && again.memories.balanced(), "{again:?}");
    }
    ensure!(core.state()?.memories.is_empty());
    core.close()?;
    assert_erased(&dir, &words, "after both were imported again")?;
    assert_store_intact(&dir, None)
}

/// PAM §7.1: a superseded memory cannot become active again.
#[test]
fn a_superseded_memory_stays_superseded_when_its_successor_is_erased() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let call = EditContext { actor: "owner".into(), ..EditContext::default() };
    let draft = |text: &str| Draft { content: Some(text.to_owned()), ..Draft::default() };
    let first = |done: EditOutcome| done.memories.first().cloned().context("an id");
    let imports = &core.imports;
    let old = first(imports.edits().add_memory(&call, &draft("Lives in Oslo"))?)?;
    let new = first(imports.edits().add_memory(&call, &draft("Lives in Bergen"))?)?;
    imports.edits().supersede_memory(&call, &old, "", Err(&new))?;
    let plan = purge::planned(&core.store, &Target::Memory(new.clone()), Timestamp::EPOCH.micros())?;
    purge::record_purge(&core.store, &plan.context("something to erase")?.record)?;
    let assert_superseded = |core: &TestCore| -> Result<()> {
        let memory = core.store.memory(&old, None)?.context("the old one")?.memory;
        ensure!(memory.status == Status::Superseded, "{:?}", memory.status);
        ensure!(memory.temporal.superseded_by.is_none(), "the erased memory is still referenced");
        Ok(())
    };
    assert_superseded(&core)?;
    // The import makes the store derive everything again.
    let dir = folder.path().join("data");
    core.close()?;
    let store = open_store(&dir, None)?;
    store.close()?;
    let core = TestCore::open(&dir)?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    assert_superseded(&core)
}
