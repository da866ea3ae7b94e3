//! Canaries: texts of memories that must not be exported, searched for in every file of every export.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify;
use satchel_core::export::Format;
use satchel_pam::{
    embedding::Embedding,
    hash::ContentHash,
    memory::{Access, Memory, MemoryType, Provenance, Status, Temporal},
    relation::{Relation, RelationType},
    time::Timestamp,
};
use satchel_store::{Batch, Change, ConversationQuery, MemoryQuery};
use satchel_tests::archive::{Archive, demo};
use serde_json::{Value, json};

use super::holding;

const CANARY: &str = "Kanarienvogel 4711 darf nie hinaus";
const SECRET_ID: &str = "0badcafe-canary-memory-id";
const FORMATS: [Format; 3] = [Format::Pam, Format::Memu, Format::Markdown];

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

fn private(mut memory: Memory) -> Memory {
    memory.access = Some(Access { exportable: false, ..Access::default() });
    memory
}

pub(crate) fn commit(archive: &Archive, changes: Vec<Change>) -> Result<()> {
    archive.store.commit(Batch { changes, ..Batch::default() })?;
    Ok(())
}

fn put(memory: Memory) -> Change {
    Change::Memory(Box::new(memory))
}

/// Stores a private memory with everything that can be attached to one.
fn plant(archive: &Archive) -> Result<()> {
    let mut secret = private(memory(SECRET_ID, CANARY));
    secret.summary = Some(CANARY.to_owned());
    secret.metadata.insert("note".into(), json!({"deep": [CANARY]}));
    let some =
        archive.store.conversations(&ConversationQuery::default(), None, 1, archive.store.revision())?;
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
    commit(archive, vec![put(secret), put(before), Change::Relation(relation), Change::Embedding(embedding)])
}

fn clean(bundle: &Path) -> Result<()> {
    for trace in [CANARY, SECRET_ID, "edge to the canary", "vector of the canary"] {
        let found = holding(bundle, trace)?;
        ensure!(found.is_empty(), "{trace:?} stands in {found:?}");
    }
    Ok(())
}

#[test]
fn a_private_memory_and_all_that_hangs_on_it_is_in_no_full_export() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(&folder.path().join("data"))?;
    archive.import(&demo().join("chatgpt-export"))?;
    plant(&archive)?;
    for format in FORMATS {
        let bundle = folder.path().join(format!("{format:?}"));
        let made = archive.export_as(format, &bundle)?;
        ensure!(made.withheld == 1 && made.memories > 1, "{made:?}");
        clean(&bundle)?;
    }
    let report = verify::path(&folder.path().join("Pam"), &verify::Options::default())?;
    ensure!(report.valid, "{:?}", report.issues);
    Ok(())
}

#[test]
fn a_private_memory_is_in_no_increment_and_one_that_becomes_public_brings_what_it_replaced() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(&folder.path().join("data"))?;
    archive.import(&demo().join("chatgpt-export"))?;
    archive.export(&folder.path().join("base"))?;
    plant(&archive)?;
    let made = archive.export_changes(None, &folder.path().join("delta"))?;
    ensure!(made.export_type == "incremental" && made.withheld == 1 && made.memories == 1, "{made:?}");
    clean(&folder.path().join("delta"))?;
    let base = archive.export(&folder.path().join("second"))?;
    commit(&archive, vec![put(memory(SECRET_ID, CANARY))])?;
    archive.export_changes(Some(&base.export_id), &folder.path().join("public"))?;
    let text = fs::read_to_string(folder.path().join("public/memory-store.json"))?;
    let store: Value = serde_json::from_str(&text)?;
    let memories = store["memories"].as_array().context("memories")?;
    assert_eq!(memories.len(), 2, "{text}");
    assert_eq!(memories[1]["temporal"]["superseded_by"], SECRET_ID);
    Ok(())
}

#[test]
fn what_memu_kept_beside_a_list_does_not_tell_what_one_entry_must_not() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(&folder.path().join("data"))?;
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
    archive.import(&export)?;
    let page = archive.store.memories(&MemoryQuery::default(), None, 100, archive.store.revision())?;
    let found: Vec<_> = page.items.into_iter().filter(|record| record.memory.content == CANARY).collect();
    ensure!(!found.is_empty(), "the canary is a memory");
    let bundle = |name: &str| folder.path().join(name);
    for format in FORMATS {
        let before = bundle(&format!("before-{format:?}"));
        archive.export_as(format, &before)?;
        ensure!(!holding(&before, CANARY)?.is_empty(), "it is found where it may stand");
    }
    commit(&archive, found.into_iter().map(|record| put(private(record.memory))).collect())?;
    for format in FORMATS {
        let after = bundle(&format!("after-{format:?}"));
        archive.export_as(format, &after)?;
        let found = holding(&after, CANARY)?;
        ensure!(found.is_empty(), "{format:?}: {found:?}");
        ensure!(!holding(&after, "Keeps bees")?.is_empty(), "{format:?} lost the rest");
    }
    Ok(())
}
