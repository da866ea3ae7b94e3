//! Laws of incremental exports, checked over random histories.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, VerifyOptions};
use satchel_pam::{merge::State, parse, store::MemoryStore};
use serde_json::Value;

use super::random_store::{RandomStore, read_memories_text, read_vectors};

/// Number of histories in one run.
const SEEDS: u64 = 6;
/// Number of revisions at which each history is exported.
const STEPS: usize = 6;

fn read_document(bundle: &Path) -> Result<MemoryStore> {
    parse::store_reading(&fs::read(bundle.join("memory-store.json"))?).document.context("a memory store")
}

/// For every pair of revisions, the full export at the earlier one merged with the changes up to the later one equals
/// the full export at the later one: byte for byte, including its checksum, with the merge that the specification
/// defines.
#[test]
fn a_base_and_its_changes_equal_the_full_export_of_every_later_revision() -> Result<()> {
    let mut pairs = 0;
    for seed in 0..SEEDS {
        let mut exporter = RandomStore::new(seed)?;
        let mut fulls = Vec::new();
        for step in 0..STEPS {
            exporter.step()?;
            let (full, whole) = exporter.export_full(&format!("full-{step}"))?;
            for (at, (base, base_path)) in fulls.iter().enumerate() {
                let base: &satchel_core::export::ExportRecord = base;
                let (delta, changes) =
                    exporter.export_changes(&base.export_id, &format!("delta-{at}-{step}"))?;
                ensure!(delta.base_export_id.as_ref() == Some(&base.export_id), "{delta:?}");
                let options = VerifyOptions {
                    base: Some(std::path::PathBuf::clone(base_path)),
                    ..VerifyOptions::default()
                };
                let report = verify::path(&changes, &options)?;
                ensure!(report.valid, "seed {seed}, {at} to {step}: {:?}", report.issues);
                let merged = report.merged.context("base and changes match")?;
                let sum = merged.checksum.map(|sum| sum.to_string());
                ensure!(
                    sum.as_deref() == Some(&full.checksum),
                    "seed {seed}, {at} to {step}: {:?}",
                    report.issues
                );
                assert_memories_match(base_path, &changes, &whole)?;
                assert_vectors_match(base_path, &changes, &whole)
                    .with_context(|| format!("seed {seed}, {at} to {step}"))?;
                pairs += 1;
            }
            fulls.push((full, whole));
        }
    }
    assert_eq!(pairs, SEEDS * 15);
    Ok(())
}

fn assert_memories_match(base: &Path, changes: &Path, whole: &Path) -> Result<()> {
    let mut state = State::default();
    state.merge(&read_document(base)?);
    state.merge(&read_document(changes)?);
    let memories = state.memories.into_values().collect();
    let merged = MemoryStore { memories, ..read_document(whole)? };
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("memory-store.json"), merged.to_json()?)?;
    assert_eq!(read_memories_text(folder.path())?, read_memories_text(whole)?);
    Ok(())
}

/// Checks that the merged vectors equal those of the full export: the base without the vectors that the changes list as
/// withdrawn and without those of memories whose text changed, plus the vectors of the changes. A vector belongs to a
/// text (§12).
fn assert_vectors_match(base: &Path, changes: &Path, whole: &Path) -> Result<()> {
    let manifest: Value = serde_json::from_slice(&fs::read(changes.join("satchel-manifest.json"))?)?;
    let mut merged = read_vectors(base)?;
    for withdrawn in manifest["withdrawn_embeddings"].as_array().into_iter().flatten() {
        let memory = withdrawn["memory_id"].as_str().context("a memory")?;
        if merged.get(memory).is_some_and(|vector| withdrawn["model"] == vector.model.as_str()) {
            merged.remove(memory);
        }
    }
    let texts = |document: MemoryStore| -> std::collections::BTreeMap<_, _> {
        document.memories.into_iter().map(|memory| (memory.id, memory.content_hash)).collect()
    };
    let (before, after) = (texts(read_document(base)?), texts(read_document(changes)?));
    merged.retain(|memory, _| after.get(memory).is_none_or(|after| before.get(memory) == Some(after)));
    merged.extend(read_vectors(changes)?);
    assert_eq!(merged, read_vectors(whole)?);
    Ok(())
}
