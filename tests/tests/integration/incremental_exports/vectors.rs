//! Withdrawn vectors: an incremental export lists them, and a store that applies it withdraws them.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, VerifyOptions};
use satchel_core::{
    edits::{Draft, EditContext},
    export::{FULL, INCREMENTAL},
    ingest::{
        receipt::{ImportRecord, ImportStatus},
        undo::{UndoDirection, UndoRequest},
    },
};
use satchel_pam::memory::{Access, Memory};
use satchel_source::CancelToken;
use satchel_store::Change;
use satchel_tests::test_core::{TestCore, only_import};
use serde_json::{Value, json};

use super::random_store::{RandomStore, memory, read_vectors, vector};

const T: i64 = 1_710_000_000_000_000;

fn withdrawn_vectors(bundle: &Path) -> Result<Value> {
    let manifest: Value = serde_json::from_slice(&fs::read(bundle.join("satchel-manifest.json"))?)?;
    Ok(manifest["withdrawn_embeddings"].clone())
}

fn withdraw(memory: &str, model: &str) -> Change {
    Change::WithdrawEmbedding { memory: memory.into(), model: model.into() }
}

/// Returns the first number of the vector that is shown for a memory.
fn visible_value(core: &TestCore, memory: &str) -> Result<Option<f64>> {
    let vectors = core.store.embeddings_of(memory)?;
    Ok(vectors.into_iter().find_map(|one| one.embedding.vector?.first().copied()))
}

fn apply(core: &TestCore, bundle: &Path) -> Result<ImportRecord> {
    let import = core.apply(bundle)?;
    ensure!(import.status == ImportStatus::Completed, "{import:?}");
    Ok(import)
}

fn undo_or_redo(core: &TestCore, import: &ImportRecord, turn: UndoDirection) -> Result<()> {
    let request = UndoRequest { id: &import.id, direction: turn, dry_run: false, expected: None };
    core.imports.undo_or_redo(request, &CancelToken::new())?.context("the import")?;
    Ok(())
}

#[test]
fn a_withdrawn_vector_is_listed_and_the_next_export_is_full() -> Result<()> {
    let mut exporter = RandomStore::new(40)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    exporter.put(&memory("shy", "Keeps bees in secret", T))?;
    exporter.commit(vec![
        Change::Embedding(vector("m", "small", 0.5, T)),
        Change::Embedding(vector("shy", "small", 0.5, T)),
    ])?;
    let (base, _) = exporter.export_full("full")?;
    let access = Access { exportable: false, ..Access::default() };
    exporter.put(&Memory { access: Some(access), ..memory("shy", "Keeps bees in secret", T) })?;
    let (before, _) = exporter.export_changes(&base.export_id, "before")?;
    exporter.commit(vec![withdraw("m", "small"), withdraw("shy", "small")])?;
    let (delta, changes) = exporter.export_changes(&base.export_id, "changes")?;
    assert_eq!(withdrawn_vectors(&changes)?, json!([{"memory_id": "m", "model": "small"}]));
    let new_warnings: Vec<_> = delta.warnings.iter().filter(|one| !before.warnings.contains(one)).collect();
    ensure!(
        matches!(new_warnings[..], [one] if one.contains("1 relations, conversations or vectors")),
        "{new_warnings:?}"
    );
    let report = verify::path(&changes, &VerifyOptions::default())?;
    ensure!(report.valid, "{:?}", report.issues);
    let next = exporter.core.export_changes(None, &exporter.folder.path().join("next"))?;
    assert_eq!(next.export_type, FULL);
    Ok(())
}

#[test]
fn withdrawing_only_a_vector_makes_the_next_export_full() -> Result<()> {
    let mut exporter = RandomStore::new(41)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    exporter.commit(vec![Change::Embedding(vector("m", "small", 0.5, T))])?;
    exporter.export_full("full")?;
    let next = |name: &str| exporter.core.export_changes(None, &exporter.folder.path().join(name));
    ensure!(next("nothing")?.export_type == INCREMENTAL && !next("more")?.full_next);
    exporter.commit(vec![withdraw("m", "small")])?;
    ensure!(next("withdrawn")?.full_next, "the next export is not full");
    let full = next("full again")?;
    assert_eq!((full.export_type.as_str(), full.full_next), (FULL, false));
    Ok(())
}

#[test]
fn a_withdrawn_vector_is_withdrawn_where_the_changes_are_applied_until_later_changes_contain_it() -> Result<()>
{
    let mut exporter = RandomStore::new(42)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    exporter.commit(vec![Change::Embedding(vector("m", "small", 0.5, T))])?;
    let (base, whole) = exporter.export_full("full")?;
    exporter.commit(vec![withdraw("m", "small")])?;
    let (_, without) = exporter.export_changes(&base.export_id, "without")?;
    // The identical vector again, as after an import that was undone and redone.
    exporter.commit(vec![Change::Embedding(vector("m", "small", 0.5, T))])?;
    let (_, again) = exporter.export_changes(&base.export_id, "again")?;
    let there = TestCore::open(&exporter.folder.path().join("there"))?;
    apply(&there, &whole)?;
    assert_eq!(visible_value(&there, "m")?, Some(0.5));
    let applied = apply(&there, &without)?;
    assert_eq!(visible_value(&there, "m")?, None);
    undo_or_redo(&there, &applied, UndoDirection::Undo)?;
    assert_eq!(visible_value(&there, "m")?, Some(0.5), "it is still withdrawn after the undo");
    undo_or_redo(&there, &applied, UndoDirection::Redo)?;
    assert_eq!(visible_value(&there, "m")?, None);
    apply(&there, &whole)?;
    assert_eq!(visible_value(&there, "m")?, None, "the base restored what was withdrawn");
    apply(&there, &again)?;
    assert_eq!(visible_value(&there, "m")?, Some(0.5), "later changes did not restore it");
    let revision = there.store.revision();
    for bundle in [&without, &again, &whole, &without] {
        apply(&there, bundle)?;
        assert_eq!(visible_value(&there, "m")?, Some(0.5), "{bundle:?}");
    }
    assert_eq!(there.store.revision(), revision, "an applied bundle was written again");
    Ok(())
}

#[test]
fn a_vector_from_one_import_disappears_when_that_import_is_undone() -> Result<()> {
    let mut exporter = RandomStore::new(43)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    let (base, whole) = exporter.export_full("full")?;
    exporter.commit(vec![Change::Embedding(vector("m", "small", 0.5, T))])?;
    exporter.commit(vec![withdraw("m", "small")])?;
    let (_, without) = exporter.export_changes(&base.export_id, "without")?;
    exporter.commit(vec![Change::Embedding(vector("m", "small", 0.5, T))])?;
    let (_, again) = exporter.export_changes(&base.export_id, "again")?;
    let there = TestCore::open(&exporter.folder.path().join("there"))?;
    apply(&there, &whole)?;
    apply(&there, &without)?;
    let applied = apply(&there, &again)?;
    assert_eq!(visible_value(&there, "m")?, Some(0.5));
    undo_or_redo(&there, &applied, UndoDirection::Undo)?;
    assert_eq!(visible_value(&there, "m")?, None);
    Ok(())
}

#[test]
fn the_newest_vector_of_several_models_is_exported() -> Result<()> {
    let mut exporter = RandomStore::new(44)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    exporter.put(&memory("n", "Has a garden", T))?;
    exporter.commit(vec![
        Change::Embedding(vector("m", "large", 0.25, T + 2)),
        Change::Embedding(vector("m", "small", 0.5, T + 1)),
        Change::Embedding(vector("n", "small", 0.75, T)),
    ])?;
    let (base, whole) = exporter.export_full("full")?;
    let models = |bundle: &Path| -> Result<Vec<_>> {
        Ok(read_vectors(bundle)?.into_values().map(|one| (one.memory_id, one.model)).collect())
    };
    let pair = |memory: &str, model: &str| (memory.to_owned(), model.to_owned());
    assert_eq!(models(&whole)?, [pair("m", "large"), pair("n", "small")]);
    let report = verify::path(&whole, &VerifyOptions::default())?;
    ensure!(report.valid, "{:?}", report.issues);
    exporter.commit(vec![withdraw("m", "large")])?;
    let (_, changes) = exporter.export_changes(&base.export_id, "changes")?;
    assert_eq!(models(&changes)?, [pair("m", "small")]);
    let there = TestCore::open(&exporter.folder.path().join("there"))?;
    apply(&there, &whole)?;
    apply(&there, &changes)?;
    assert_eq!(visible_value(&there, "m")?, Some(0.5));
    Ok(())
}

#[test]
fn a_vector_of_the_text_before_an_edit_is_exported_again_when_the_edit_is_undone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = TestCore::open(&folder.path().join("here"))?;
    let mut exporter = RandomStore::new(45)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    exporter.commit(vec![Change::Embedding(vector("m", "small", 0.5, T))])?;
    let (_, bundle) = exporter.export_full("full")?;
    only_import(here.import(&bundle)?)?;
    let owner = EditContext { actor: "owner".into(), ..EditContext::default() };
    let draft = Draft { content: Some("Keeps wasps".into()), ..Draft::default() };
    let edit = here.imports.edits().edit_memory(&owner, "m", "", &draft)?;
    let full = folder.path().join("full");
    let base = here.export(&full)?;
    assert_eq!(read_vectors(&full)?.len(), 0, "the vector does not belong to the current text");
    here.imports.edits().undo_change(&owner, &edit.act)?;
    let (whole, changes) = (folder.path().join("whole"), folder.path().join("changes"));
    here.export(&whole)?;
    here.export_changes(Some(&base.export_id), &changes)?;
    assert_eq!(read_vectors(&whole)?.len(), 1);
    assert_eq!(read_vectors(&changes)?, read_vectors(&whole)?);
    Ok(())
}
