//! Records that name or share something with an erased one: receipts, attachments of others, versions of documents.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::purge::Target;
use satchel_pam::hash::ContentHash;
use satchel_store::{Durability, Ledger, LedgerWrite};
use satchel_tests::archive::only;
use serde_json::{Value, json};

use crate::scene::{ATTACHED, TITLED, conversation, erase, holding, ids, none_of, open, planted, whole};

/// A warning of the import itself, which contains no word of the erased record.
const OWN: &str = "a warning that names nothing";

#[test]
fn receipts_and_issues_name_neither_the_title_nor_a_file_of_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let planted = planted(folder.path(), None)?;
    let archive = open(&dir, None)?;
    let import = archive.imports.list(None, 1)?.items.pop().context("an import")?.id;
    let entry = archive.store.ledger_get(Ledger::Import, &import)?.context("its receipt")?;
    let mut receipt: Value = serde_json::from_slice(&entry.value)?;
    receipt["warnings"] = json!([
        {"locator": format!("conversation \"About {TITLED}\""), "message": "it is odd"},
        {"locator": "conversations.json", "message": format!("{ATTACHED}.txt is odd")},
        {"locator": "conversations.json", "message": OWN},
    ]);
    receipt["warnings_found"] = json!(3);
    let (id, at_micros, value) = (entry.id, entry.at_micros, serde_json::to_vec(&receipt)?);
    let write = LedgerWrite::Entry { ledger: Ledger::Import, id, at_micros, value };
    archive.store.put_ledger(write, Durability::Now)?;
    let issues = json!([
        {"kind": "file", "locator": format!("{ATTACHED}.txt"), "reason": "it is odd"},
        {"kind": "conversation", "locator": format!("About {TITLED}"), "reason": OWN},
    ]);
    let write = LedgerWrite::Issues { import: import.parse()?, page: 0, value: serde_json::to_vec(&issues)? };
    archive.store.put_ledger(write, Durability::Now)?;
    archive.close()?;
    let target = Target::Conversation { id: planted.conversation, keep_memories: false };
    erase(&dir, None, &target)?;
    none_of(&dir, &[TITLED, ATTACHED], "after the conversation went")?;
    let archive = open(&dir, None)?;
    let receipt = archive.imports.get(&import)?.context("the receipt stays")?;
    ensure!(receipt.conversations.new == 2 && receipt.warnings.len() == 3, "{receipt:?}");
    ensure!(receipt.warnings[2].message == OWN, "what names nothing stays: {:?}", receipt.warnings);
    let issues: Value =
        serde_json::from_slice(&archive.store.issues(import.parse()?, 0)?.context("issues")?)?;
    ensure!(issues[1]["reason"] == OWN && issues[0]["locator"] != "", "{issues}");
    archive.close()?;
    whole(&dir, None)
}

/// Writes two conversations that show the same file.
fn sharing(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let name = format!("{ATTACHED}.txt");
    let files =
        json!({"attachments": [{"id": "file-AbC", "name": name, "size": 60, "mimeType": "text/plain"}]});
    let (one, other) = ("6811d5b0-aaaa-8000-8000-00000000000a", "6811d5b0-bbbb-8000-8000-00000000000b");
    let safe = conversation(one, TITLED, "the safe", "The safe is green.", &files);
    let garden = conversation(other, "Garden", "the garden", "The garden is green.", &files);
    fs::write(folder.join("conversations.json"), serde_json::to_vec(&json!([safe, garden]))?)?;
    fs::write(folder.join(format!("file-AbC-{name}")), format!("a note that says {ATTACHED}\n"))?;
    Ok(())
}

#[test]
fn an_attachment_stays_as_long_as_another_conversation_has_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    sharing(&folder.path().join("export"))?;
    let archive = open(&dir, None)?;
    archive.import(&folder.path().join("export"))?;
    let blobs = archive.store.blobs()?;
    ensure!(blobs.len() == 1, "both have one file");
    let first = ids(&archive)?.conversation;
    let before = archive.state()?;
    archive.close()?;
    let target = Target::Conversation { id: first, keep_memories: false };
    let plan = erase(&dir, None, &target)?;
    ensure!(plan.record.attachments.len() == 1, "{plan:?}");
    let archive = open(&dir, None)?;
    ensure!(archive.store.blobs()? == blobs, "the other has it still");
    let state = archive.state()?;
    let (name, other) = state.conversations.iter().next().context("the other stays")?;
    ensure!(before.conversations.get(name) == Some(other) && state.conversations.len() == 1);
    let at = archive.store.revision();
    let shown = archive.store.conversations(&satchel_store::ConversationQuery::default(), None, 2, at)?;
    let second = shown.items.into_iter().next().context("the other is shown")?.id;
    archive.close()?;
    whole(&dir, None)?;
    ensure!(!holding(&dir, ATTACHED)?.is_empty());
    let target = Target::Conversation { id: second, keep_memories: false };
    erase(&dir, None, &target)?;
    none_of(&dir, &[ATTACHED, TITLED], "after the last that had it went")?;
    let archive = open(&dir, None)?;
    ensure!(archive.store.blobs()?.is_empty());
    archive.close()?;
    whole(&dir, None)
}

#[test]
fn every_version_that_documents_brought_goes() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let words = ["curlew-forge-4410", "dunlin-forge-4411"];
    let archive = open(&dir, None)?;
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
        archive.import(&path)?;
        documents.push(path);
    }
    ensure!(archive.state()?.memories.len() == 1, "they are versions of one memory");
    archive.close()?;
    for word in words {
        ensure!(!holding(&dir, word)?.is_empty(), "the search finds {word} while it is there");
    }
    let plan = erase(&dir, None, &Target::Memory("m".to_owned()))?;
    ensure!(plan.evidence == 2, "both documents said something: {plan:?}");
    none_of(&dir, &words, "after the memory went")?;
    let archive = open(&dir, None)?;
    for document in &documents {
        let again = only(archive.import_again(document)?)?;
        ensure!(again.memories.skipped == 1 && again.memories.balanced(), "{again:?}");
    }
    ensure!(archive.state()?.memories.is_empty());
    archive.close()?;
    none_of(&dir, &words, "after both came again")?;
    whole(&dir, None)
}
