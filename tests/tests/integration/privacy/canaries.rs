//! Canaries: texts of memories that must not be exported, searched for in every file of every export.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify;
use satchel_core::export::ExportFormat;
use satchel_pam::{
    embedding::Embedding,
    hash::ContentHash,
    memory::{Access, Memory, MemoryType, Provenance, Status, Temporal},
    relation::{Relation, RelationType},
    time::Timestamp,
};
use satchel_store::{Batch, Change, ConversationQuery, MemoryQuery};
use satchel_tests::test_core::{TestCore, demo_folder};
use serde_json::{Value, json};

use super::files_containing;

const CANARY: &str = "Kanarienvogel 4711 darf nie hinaus";
const SECRET_ID: &str = "0badcafe-canary-memory-id";
const FORMATS: [ExportFormat; 3] = [ExportFormat::Pam, ExportFormat::Memu, ExportFormat::Markdown];

pub(crate) fn memory(id: &str, content: &str) -> Memory {
    Memory {
        id: id.to_owned(),
        memory_type: MemoryType::Fact,
        custom_type: None,
        status: Status::Active,
        content: content.to_owned(),
        content_hash: ContentHash::of(content),
        summary: None,
        tags: Vec::new(),
        confidence: None,
        temporal: Temporal {
            created_at: Timestamp::EPOCH,
            updated_at: None,
            valid_from: None,
            valid_until: None,
            superseded_by: None,
        },
        provenance: Provenance { platform: "elsewhere".to_owned(), ..Provenance::default() },
        access: Some(Access::default()),
        embedding_ref: None,
        metadata: serde_json::Map::new(),
    }
}

fn private_memory(mut memory: Memory) -> Memory {
    memory.access = Some(Access { exportable: false, ..Access::default() });
    memory
}

pub(crate) fn commit(core: &TestCore, changes: Vec<Change>) -> Result<()> {
    core.store.commit(Batch { changes, ..Batch::default() })?;
    Ok(())
}

fn memory_change(memory: Memory) -> Change {
    Change::Memory(Box::new(memory))
}

/// Stores a private memory with everything that can be attached to one.
fn store_canary(core: &TestCore) -> Result<()> {
    let mut secret = private_memory(memory(SECRET_ID, CANARY));
    secret.summary = Some(CANARY.to_owned());
    secret.metadata.insert("note".into(), json!({"deep": [CANARY]}));
    let some = core.store.conversations(&ConversationQuery::default(), None, 1, core.store.revision())?;
    secret.provenance.conversation_ref = some.items.first().map(|one| one.id.clone());
    let mut before = memory("replaced", "It was otherwise once");
    before.status = Status::Superseded;
    before.temporal.superseded_by = Some(SECRET_ID.to_owned());
    let relation = Relation {
        id: "edge to the canary".into(),
        from: SECRET_ID.into(),
        to: "replaced".into(),
        relation_type: RelationType::Supersedes,
        confidence: None,
        created_at: Timestamp::EPOCH,
    };
    let embedding = Embedding {
        id: "vector of the canary".into(),
        memory_id: SECRET_ID.into(),
        model: "model".into(),
        dimensions: 2,
        created_at: Timestamp::EPOCH,
        vector: Some(vec![0.125, 0.25]),
        storage: None,
    };
    commit(
        core,
        vec![
            memory_change(secret),
            memory_change(before),
            Change::Relation(relation),
            Change::Embedding(embedding),
        ],
    )
}

fn assert_no_canary(bundle: &Path) -> Result<()> {
    for trace in [CANARY, SECRET_ID, "edge to the canary", "vector of the canary"] {
        let found = files_containing(bundle, trace)?;
        ensure!(found.is_empty(), "{trace:?} is in {found:?}");
    }
    Ok(())
}

#[test]
fn a_private_memory_and_everything_attached_to_it_is_in_no_full_export() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    store_canary(&core)?;
    for format in FORMATS {
        let bundle = folder.path().join(format!("{format:?}"));
        let made = core.export_as(format, &bundle)?;
        ensure!(made.withheld == 1 && made.memories > 1, "{made:?}");
        assert_no_canary(&bundle)?;
    }
    let report = verify::path(&folder.path().join("Pam"), &verify::VerifyOptions::default())?;
    ensure!(report.valid, "{:?}", report.issues);
    Ok(())
}

#[test]
fn a_private_memory_is_in_no_incremental_export_until_it_becomes_public() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    core.export(&folder.path().join("base"))?;
    store_canary(&core)?;
    let made = core.export_changes(None, &folder.path().join("delta"))?;
    ensure!(made.export_type == "incremental" && made.withheld == 1 && made.memories == 1, "{made:?}");
    assert_no_canary(&folder.path().join("delta"))?;
    let base = core.export(&folder.path().join("second"))?;
    commit(&core, vec![memory_change(memory(SECRET_ID, CANARY))])?;
    core.export_changes(Some(&base.export_id), &folder.path().join("public"))?;
    let text = fs::read_to_string(folder.path().join("public/memory-store.json"))?;
    let store: Value = serde_json::from_str(&text)?;
    let memories = store["memories"].as_array().context("memories")?;
    assert_eq!(memories.len(), 2, "{text}");
    assert_eq!(memories[1]["temporal"]["superseded_by"], SECRET_ID);
    Ok(())
}

#[test]
fn metadata_of_a_memu_list_does_not_reveal_a_private_entry() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let export = folder.path().join("memu");
    fs::create_dir(&export)?;
    let joined = format!("Keeps bees\n{CANARY}");
    let entry = |id: &str, list: Value| {
        json!({"memory_id": id, "agent_id": "agent", "user_id": "user", "created_at": "2025-07-01T10:00:00Z",
            "updated_at": "2025-07-03T09:30:00Z", "profile_content": list, "event_content": ["Moved"],
            "mind_content": "Careful", "extra": {"seen": [joined]}})
    };
    fs::write(
        export.join("memories.json"),
        json!([entry("one", json!(["Keeps bees", CANARY]))]).to_string(),
    )?;
    let row = json!([{"content_id": "c", "memory_id": "one", "content_type": "profile",
        "content_data": ["Keeps bees", CANARY], "content_text": joined, "content_vector": null}]);
    fs::write(export.join("memory_contents.json"), row.to_string())?;
    core.import(&export)?;
    let page = core.store.memories(&MemoryQuery::default(), None, 100, core.store.revision())?;
    let found: Vec<_> = page.items.into_iter().filter(|record| record.memory.content == CANARY).collect();
    ensure!(!found.is_empty(), "the canary is not a memory");
    let bundle = |name: &str| folder.path().join(name);
    for format in FORMATS {
        let before = bundle(&format!("before-{format:?}"));
        core.export_as(format, &before)?;
        ensure!(!files_containing(&before, CANARY)?.is_empty(), "the canary is not found where it may be");
    }
    commit(&core, found.into_iter().map(|record| memory_change(private_memory(record.memory))).collect())?;
    for format in FORMATS {
        let after = bundle(&format!("after-{format:?}"));
        core.export_as(format, &after)?;
        let found = files_containing(&after, CANARY)?;
        ensure!(found.is_empty(), "{format:?}: {found:?}");
        ensure!(!files_containing(&after, "Keeps bees")?.is_empty(), "{format:?} lost the rest");
    }
    Ok(())
}
