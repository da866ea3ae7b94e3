//! Vectors are made from the words: they are erased with them, including those that are not shown, and do not return.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    ingest::undo::{UndoDirection, UndoRequest},
    purge::Target,
};
use satchel_pam::hash::ContentHash;
use satchel_source::CancelToken;
use satchel_tests::test_core::{TestCore, only_import};
use serde_json::{Value, json};

use crate::purge::fixture::{
    assert_erased, assert_store_intact, erase, files_containing, files_containing_bytes, open_core,
};

const SECRET: &str = "The safe opens with godwit-lathe-6173";
const OTHER_CONTENT: &str = "Grows tomatoes";
/// The numbers in the vectors of the secret memory: the one that is shown, an older one, and one whose import was
/// undone.
const VISIBLE: f64 = 0.731_094_286_157_3;
const OLDER: f64 = 0.518_273_649_102_7;
const UNDONE: f64 = 0.296_410_573_882_1;
/// The number in the vector of the memory that stays.
const OTHER: f64 = 0.173_205_080_756_8;

fn memory(id: &str, content: &str) -> Value {
    json!({
        "id": id, "type": "fact", "status": "active", "content": content,
        "content_hash": ContentHash::of(content).to_string(), "tags": [],
        "temporal": {"created_at": "2026-01-02T03:04:05Z"}, "provenance": {"platform": "elsewhere"},
    })
}

/// Writes a bundle with both memories and a vector of each, made in `month`.
fn write_bundle(folder: &Path, month: u32, secret: f64) -> Result<PathBuf> {
    let vector = |memory: &str, number: f64, month: u32| {
        json!({"id": format!("v {memory} {month}"), "memory_id": memory, "model": "small", "dimensions": 2,
            "created_at": format!("2026-{month:02}-02T03:04:05Z"), "vector": [number, 0.25]})
    };
    let store = json!({
        "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "someone"},
        "memories": [memory("secret", SECRET), memory("stays", OTHER_CONTENT)], "relations": [], "conversations_index": [],
    });
    let vectors = json!({
        "schema": "portable-ai-memory-embeddings", "schema_version": "1.0",
        "embeddings": [vector("secret", secret, month), vector("stays", OTHER, 1)],
    });
    let folder = folder.join(format!("bundle-{month}"));
    fs::create_dir(&folder)?;
    fs::write(folder.join("memory-store.json"), serde_json::to_vec(&store)?)?;
    fs::write(folder.join("embeddings.json"), serde_json::to_vec(&vectors)?)?;
    Ok(folder)
}

/// Returns every form in which a number may be stored on a disk.
fn stored_forms(number: f64) -> Vec<Vec<u8>> {
    #[expect(clippy::cast_possible_truncation, reason = "a shorter form of the same number")]
    let short = number as f32;
    vec![
        number.to_string().into_bytes(),
        short.to_string().into_bytes(),
        number.to_le_bytes().to_vec(),
        number.to_be_bytes().to_vec(),
        short.to_le_bytes().to_vec(),
        short.to_be_bytes().to_vec(),
    ]
}

fn assert_vectors_erased(dir: &Path, what: &str) -> Result<()> {
    for number in [VISIBLE, OLDER, UNDONE] {
        for form in stored_forms(number) {
            let found = files_containing_bytes(dir, &form)?;
            ensure!(found.is_empty(), "{what}: {number} is in {found:?} as {form:?}");
        }
    }
    assert_erased(dir, &["godwit-lathe"], what)
}

fn undo_or_redo(core: &TestCore, id: &str, direction: UndoDirection) -> Result<()> {
    let request = UndoRequest { id, direction, dry_run: false, expected: None };
    core.imports.undo_or_redo(request, &CancelToken::new())?.context("there is no such import")?;
    Ok(())
}

/// Returns the first number of the vector that is shown for a memory.
fn visible_value(core: &TestCore, memory: &str) -> Result<Option<f64>> {
    let vectors = core.store.embeddings_of(memory)?;
    Ok(vectors.into_iter().find_map(|one| one.embedding.vector?.first().copied()))
}

#[test]
fn vectors_are_erased_with_their_memory_and_no_import_restores_them() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let bundles = [(1, OLDER), (3, UNDONE), (2, VISIBLE)];
    let bundles = bundles
        .map(|(month, number)| write_bundle(folder.path(), month, number))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    let core = open_core(&dir, None)?;
    let mut imports = Vec::new();
    for bundle in &bundles {
        imports.push(only_import(core.import(bundle)?)?.id);
    }
    undo_or_redo(&core, &imports[1], UndoDirection::Undo)?;
    ensure!(
        visible_value(&core, "secret")? == Some(VISIBLE) && visible_value(&core, "stays")? == Some(OTHER)
    );
    core.close()?;
    for number in [VISIBLE, OLDER, UNDONE] {
        ensure!(
            !files_containing(&dir, &number.to_string())?.is_empty(),
            "the search does not find {number} before the erasure"
        );
    }
    let plan = erase(&dir, None, &Target::Memory("secret".to_owned()))?;
    ensure!(plan.memories.len() == 1, "{plan:?}");
    assert_vectors_erased(&dir, "after the memory was erased")?;
    assert_store_intact(&dir, None)?;
    assert_vectors_erased(&dir, "after a rebuild")?;
    let core = open_core(&dir, None)?;
    ensure!(visible_value(&core, "secret")?.is_none() && visible_value(&core, "stays")? == Some(OTHER));
    let state = core.state()?;
    undo_or_redo(&core, &imports[1], UndoDirection::Redo)?;
    undo_or_redo(&core, &imports[2], UndoDirection::Undo)?;
    undo_or_redo(&core, &imports[2], UndoDirection::Redo)?;
    for bundle in &bundles {
        let again = only_import(core.import_again(bundle)?)?;
        ensure!(again.memories.skipped == 1 && again.memories.balanced(), "{again:?}");
        let about_erasure =
            |one: &&satchel_pam::record::Warning| one.message.contains("erased that for good");
        ensure!(again.warnings.iter().filter(about_erasure).count() == 1, "{:?}", again.warnings);
    }
    ensure!(core.state()? == state, "repeated imports changed the state");
    ensure!(visible_value(&core, "secret")?.is_none() && visible_value(&core, "stays")? == Some(OTHER));
    core.close()?;
    assert_vectors_erased(&dir, "after everything was imported again")?;
    ensure!(!files_containing(&dir, &OTHER.to_string())?.is_empty(), "the other vector was erased");
    assert_store_intact(&dir, None)
}
