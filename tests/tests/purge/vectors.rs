//! Vectors are made from the words: they are erased with them, including those that are not shown, and do not return.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    purge::Target,
    undo::{Turn, TurnRequest},
};
use satchel_pam::hash::ContentHash;
use satchel_source::CancelToken;
use satchel_tests::archive::{Archive, only};
use serde_json::{Value, json};

use crate::scene::{erase, holding, holding_bytes, none_of, open, whole};

const SECRET: &str = "The safe opens with godwit-lathe-6173";
const STAYS: &str = "Grows tomatoes";
/// The numbers in the vectors of the secret memory: the one that is shown, an older one, and one whose import was
/// undone.
const SHOWN: f64 = 0.731_094_286_157_3;
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
fn bundle(folder: &Path, month: u32, secret: f64) -> Result<PathBuf> {
    let vector = |memory: &str, number: f64, month: u32| {
        json!({"id": format!("v {memory} {month}"), "memory_id": memory, "model": "small", "dimensions": 2,
            "created_at": format!("2026-{month:02}-02T03:04:05Z"), "vector": [number, 0.25]})
    };
    let store = json!({
        "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "someone"},
        "memories": [memory("secret", SECRET), memory("stays", STAYS)], "relations": [], "conversations_index": [],
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
fn forms(number: f64) -> Vec<Vec<u8>> {
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

fn no_number(dir: &Path, what: &str) -> Result<()> {
    for number in [SHOWN, OLDER, UNDONE] {
        for form in forms(number) {
            let found = holding_bytes(dir, &form)?;
            ensure!(found.is_empty(), "{what}: {number} stands in {found:?} as {form:?}");
        }
    }
    none_of(dir, &["godwit-lathe"], what)
}

fn turn(archive: &Archive, id: &str, turn: Turn) -> Result<()> {
    let request = TurnRequest { id, turn, dry_run: false, expected: None };
    archive.imports.turn(request, &CancelToken::new())?.context("there is no such import")?;
    Ok(())
}

/// Returns the first number of the vector that is shown for a memory.
fn shown(archive: &Archive, memory: &str) -> Result<Option<f64>> {
    let vectors = archive.store.embeddings_of(memory)?;
    Ok(vectors.into_iter().find_map(|one| one.embedding.vector?.first().copied()))
}

#[test]
fn vectors_go_with_their_memory_and_no_import_brings_them_back() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let bundles = [(1, OLDER), (3, UNDONE), (2, SHOWN)];
    let bundles = bundles
        .map(|(month, number)| bundle(folder.path(), month, number))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    let archive = open(&dir, None)?;
    let mut imports = Vec::new();
    for bundle in &bundles {
        imports.push(only(archive.import(bundle)?)?.id);
    }
    turn(&archive, &imports[1], Turn::Undo)?;
    ensure!(shown(&archive, "secret")? == Some(SHOWN) && shown(&archive, "stays")? == Some(OTHER));
    archive.close()?;
    for number in [SHOWN, OLDER, UNDONE] {
        ensure!(
            !holding(&dir, &number.to_string())?.is_empty(),
            "the search finds {number} while it is there"
        );
    }
    let plan = erase(&dir, None, &Target::Memory("secret".to_owned()))?;
    ensure!(plan.memories.len() == 1, "{plan:?}");
    no_number(&dir, "after the memory went")?;
    whole(&dir, None)?;
    no_number(&dir, "after a rebuild")?;
    let archive = open(&dir, None)?;
    ensure!(shown(&archive, "secret")?.is_none() && shown(&archive, "stays")? == Some(OTHER));
    let state = archive.state()?;
    turn(&archive, &imports[1], Turn::Redo)?;
    turn(&archive, &imports[2], Turn::Undo)?;
    turn(&archive, &imports[2], Turn::Redo)?;
    for bundle in &bundles {
        let again = only(archive.import_again(bundle)?)?;
        ensure!(again.memories.skipped == 1 && again.memories.balanced(), "{again:?}");
        let told = |one: &&satchel_pam::record::Warning| one.message.contains("erased that for good");
        ensure!(again.warnings.iter().filter(told).count() == 1, "{:?}", again.warnings);
    }
    ensure!(archive.state()? == state, "all of it came again and changed something");
    ensure!(shown(&archive, "secret")?.is_none() && shown(&archive, "stays")? == Some(OTHER));
    archive.close()?;
    no_number(&dir, "after all of it came again")?;
    ensure!(!holding(&dir, &OTHER.to_string())?.is_empty(), "what stays is there");
    whole(&dir, None)
}
