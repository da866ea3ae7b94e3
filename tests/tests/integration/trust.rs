//! The trust in a bundle's signer: what `verify` refuses is never applied or imported as the signer's, and untrusted
//! documents change nothing.

mod grpc;
mod trusted_keys;
mod untrusted;
mod verdicts;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use satchel_core::edits::{Draft, EditContext, NewRelation};
use satchel_pam::{
    embedding::Embedding,
    memory::Memory,
    parse,
    relation::RelationType,
    sign::SigningKey,
    store::{self, MemoryStore},
    time::Timestamp,
};
use satchel_store::{Batch, Change, MemoryQuery, Origin};
use satchel_tests::test_core::{TestCore, demo_folder};

fn owner() -> EditContext {
    EditContext { actor: "owner".to_owned(), reason: "by hand".to_owned(), request: None }
}

/// Creates a data directory with memories from providers, one edited by hand, one added by the person, relations,
/// conversations and a vector.
fn core_with_records(dir: &Path) -> Result<TestCore> {
    let core = TestCore::open(dir)?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    core.import(&demo_folder().join("claude-export"))?;
    let ids = ids(&core)?;
    let draft = |text: &str| Draft { content: Some(text.to_owned()), ..Draft::default() };
    core.imports.edits().edit_memory(&owner(), &ids[0], "", &draft("Edited by hand"))?;
    let added = core.imports.edits().add_memory(&owner(), &draft("Added by hand"))?.memories;
    let relation = NewRelation {
        from: added[0].clone(),
        to: ids[1].clone(),
        relation_type: RelationType::RelatedTo,
        confidence: None,
    };
    core.imports.edits().draw_relation(&owner(), &relation)?;
    let vector = Embedding {
        id: "vector".into(),
        memory_id: ids[1].clone(),
        model: "small".into(),
        dimensions: 2,
        created_at: Timestamp::saturating(1_700_000_000_000_000),
        vector: Some(vec![0.5, 0.25]),
        storage: None,
    };
    let origin = Origin { import: None, actor: "owner".into(), reason: "said".into(), at_micros: 0 };
    core.store.commit(Batch { origin, changes: vec![Change::Embedding(vector)] })?;
    Ok(core)
}

/// Returns the ids of all memories.
fn ids(core: &TestCore) -> Result<Vec<String>> {
    let rows = core.store.memories(&MemoryQuery::default(), None, 500, core.store.revision())?.items;
    Ok(rows.into_iter().map(|row| row.memory.id).collect())
}

fn read_store(bundle: &Path) -> Result<MemoryStore> {
    parse::memory_store(&fs::read(bundle.join("memory-store.json"))?).0.context("a memory store")
}

/// Writes `store` as another program would, signed with `key` if there is one.
fn write_store(folder: &Path, mut store: MemoryStore, key: Option<&SigningKey>) -> Result<PathBuf> {
    store.header.exported_by = Some("other-tool/1.0.0".to_owned());
    let signed_at = store.header.export_date.context("a date")?;
    store.memories.sort_by(|one: &Memory, other| one.id.cmp(&other.id));
    let mut writer = store::Writer::new(Vec::new(), store.header)?;
    store.memories.iter().try_for_each(|memory| writer.memory(memory))?;
    store.relations.iter().try_for_each(|relation| writer.relation(relation))?;
    store.conversations_index.iter().try_for_each(|entry| writer.index_entry(entry))?;
    let written = writer.finish(key.map(|key| store::Signer { key, signed_at }))?;
    fs::create_dir_all(folder)?;
    let path = folder.join("memory-store.json");
    fs::write(&path, written.out)?;
    Ok(path)
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().context("a name")?);
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// Returns all files below a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { files.extend(self::files(&path)?) } else { files.push(path) }
    }
    files.sort();
    Ok(files)
}
