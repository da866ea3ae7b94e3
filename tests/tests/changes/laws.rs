//! Laws of incremental exports, checked over random histories.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, Options};
use satchel_pam::{merge::State, parse, store::MemoryStore};
use serde_json::Value;

use super::history::{History, memories_text, vectors_of};

/// Number of histories in one run.
const SEEDS: u64 = 6;
/// Number of revisions at which each history is exported.
const STEPS: usize = 6;

fn document(bundle: &Path) -> Result<MemoryStore> {
    parse::store_reading(&fs::read(bundle.join("memory-store.json"))?).document.context("a memory store")
}

/// For every pair of revisions, the full export at the earlier one merged with the changes up to the later one equals
/// the full export at the later one: byte for byte, including its checksum, with the merge that the specification
/// defines.
#[test]
fn a_base_and_its_changes_are_the_whole_of_every_later_revision() -> Result<()> {
    let mut pairs = 0;
    for seed in 0..SEEDS {
        let mut history = History::new(seed)?;
        let mut fulls = Vec::new();
        for step in 0..STEPS {
            history.step()?;
            let (full, whole) = history.full(&format!("full-{step}"))?;
            for (at, (base, base_path)) in fulls.iter().enumerate() {
                let base: &satchel_core::export::ExportRecord = base;
                let (delta, changes) = history.changes(&base.export_id, &format!("delta-{at}-{step}"))?;
                ensure!(delta.base_export_id.as_ref() == Some(&base.export_id), "{delta:?}");
                let options =
                    Options { base: Some(std::path::PathBuf::clone(base_path)), ..Options::default() };
                let report = verify::path(&changes, &options)?;
                ensure!(report.valid, "seed {seed}, {at} to {step}: {:?}", report.issues);
                let merged = report.merged.context("the two fit")?;
                let sum = merged.checksum.map(|sum| sum.to_string());
                ensure!(
                    sum.as_deref() == Some(&full.checksum),
                    "seed {seed}, {at} to {step}: {:?}",
                    report.issues
                );
                same_text(base_path, &changes, &whole)?;
                same_vectors(base_path, &changes, &whole)
                    .with_context(|| format!("seed {seed}, {at} to {step}"))?;
                pairs += 1;
            }
            fulls.push((full, whole));
        }
    }
    assert_eq!(pairs, SEEDS * 15);
    Ok(())
}

fn same_text(base: &Path, changes: &Path, whole: &Path) -> Result<()> {
    let mut state = State::default();
    state.merge(&document(base)?);
    state.merge(&document(changes)?);
    let memories = state.memories.into_values().collect();
    let merged = MemoryStore { memories, ..document(whole)? };
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("memory-store.json"), merged.to_json()?)?;
    assert_eq!(memories_text(folder.path())?, memories_text(whole)?);
    Ok(())
}

/// Checks that the merged vectors equal those of the full export: the base without the vectors that the changes list as
/// withdrawn and without those of memories whose text changed, plus the vectors of the changes. A vector belongs to a
/// text (§12).
fn same_vectors(base: &Path, changes: &Path, whole: &Path) -> Result<()> {
    let manifest: Value = serde_json::from_slice(&fs::read(changes.join("satchel-manifest.json"))?)?;
    let mut merged = vectors_of(base)?;
    for gone in manifest["withdrawn_embeddings"].as_array().into_iter().flatten() {
        let memory = gone["memory_id"].as_str().context("a memory")?;
        if merged.get(memory).is_some_and(|vector| gone["model"] == vector.model.as_str()) {
            merged.remove(memory);
        }
    }
    let texts = |document: MemoryStore| -> std::collections::BTreeMap<_, _> {
        document.memories.into_iter().map(|memory| (memory.id, memory.content_hash)).collect()
    };
    let (before, after) = (texts(document(base)?), texts(document(changes)?));
    merged.retain(|memory, _| after.get(memory).is_none_or(|after| before.get(memory) == Some(after)));
    merged.extend(vectors_of(changes)?);
    assert_eq!(merged, vectors_of(whole)?);
    Ok(())
}
