//! Withdrawn vectors: an incremental export lists them, and a store that applies it withdraws them.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, Options};
use satchel_core::{
    export::{FULL, INCREMENTAL},
    ingest::{
        hand::{Call, Draft},
        receipt::{ImportRecord, ImportStatus},
        undo::{Turn, TurnRequest},
    },
};
use satchel_pam::memory::{Access, Memory};
use satchel_source::CancelToken;
use satchel_store::Change;
use satchel_tests::archive::{Archive, only};
use serde_json::{Value, json};

use super::history::{History, memory, vector, vectors_of};

const T: i64 = 1_710_000_000_000_000;

fn withdrawn(bundle: &Path) -> Result<Value> {
    let manifest: Value = serde_json::from_slice(&fs::read(bundle.join("satchel-manifest.json"))?)?;
    Ok(manifest["withdrawn_embeddings"].clone())
}

fn withdraw(memory: &str, model: &str) -> Change {
    Change::WithdrawEmbedding { memory: memory.into(), model: model.into() }
}

/// Returns the first number of the vector that is shown for a memory.
fn shown(archive: &Archive, memory: &str) -> Result<Option<f64>> {
    let vectors = archive.store.embeddings_of(memory)?;
    Ok(vectors.into_iter().find_map(|one| one.embedding.vector?.first().copied()))
}

fn apply(archive: &Archive, bundle: &Path) -> Result<ImportRecord> {
    let import = archive.apply(bundle)?;
    ensure!(import.status == ImportStatus::Completed, "{import:?}");
    Ok(import)
}

fn turn(archive: &Archive, import: &ImportRecord, turn: Turn) -> Result<()> {
    let request = TurnRequest { id: &import.id, turn, dry_run: false, expected: None };
    archive.imports.turn(request, &CancelToken::new())?.context("the import")?;
    Ok(())
}

#[test]
fn a_vector_that_was_withdrawn_is_listed_and_the_next_export_is_full() -> Result<()> {
    let mut history = History::new(40)?;
    history.put(&memory("m", "Keeps bees", T))?;
    history.put(&memory("shy", "Keeps bees in secret", T))?;
    history.commit(vec![
        Change::Embedding(vector("m", "small", 0.5, T)),
        Change::Embedding(vector("shy", "small", 0.5, T)),
    ])?;
    let (base, _) = history.full("full")?;
    let access = Access { exportable: false, ..Access::default() };
    history.put(&Memory { access: Some(access), ..memory("shy", "Keeps bees in secret", T) })?;
    let (before, _) = history.changes(&base.export_id, "before")?;
    history.commit(vec![withdraw("m", "small"), withdraw("shy", "small")])?;
    let (delta, changes) = history.changes(&base.export_id, "changes")?;
    assert_eq!(withdrawn(&changes)?, json!([{"memory_id": "m", "model": "small"}]));
    let told: Vec<_> = delta.warnings.iter().filter(|one| !before.warnings.contains(one)).collect();
    ensure!(matches!(told[..], [one] if one.contains("1 relations, conversations or vectors")), "{told:?}");
    let report = verify::path(&changes, &Options::default())?;
    ensure!(report.valid, "{:?}", report.issues);
    let next = history.archive.export_changes(None, &history.folder.path().join("next"))?;
    assert_eq!(next.export_type, FULL);
    Ok(())
}

#[test]
fn a_vector_alone_that_was_withdrawn_makes_the_next_export_full() -> Result<()> {
    let mut history = History::new(41)?;
    history.put(&memory("m", "Keeps bees", T))?;
    history.commit(vec![Change::Embedding(vector("m", "small", 0.5, T))])?;
    history.full("full")?;
    let next = |name: &str| history.archive.export_changes(None, &history.folder.path().join(name));
    ensure!(next("nothing")?.export_type == INCREMENTAL && !next("more")?.full_next);
    history.commit(vec![withdraw("m", "small")])?;
    ensure!(next("withdrawn")?.full_next, "nobody is told");
    let full = next("full again")?;
    assert_eq!((full.export_type.as_str(), full.full_next), (FULL, false));
    Ok(())
}

#[test]
fn a_withdrawn_vector_goes_elsewhere_too_stays_away_and_comes_with_what_brings_it_later() -> Result<()> {
    let mut history = History::new(42)?;
    history.put(&memory("m", "Keeps bees", T))?;
    history.commit(vec![Change::Embedding(vector("m", "small", 0.5, T))])?;
    let (base, whole) = history.full("full")?;
    history.commit(vec![withdraw("m", "small")])?;
    let (_, without) = history.changes(&base.export_id, "without")?;
    // The identical vector again, as after an import that was undone and redone.
    history.commit(vec![Change::Embedding(vector("m", "small", 0.5, T))])?;
    let (_, again) = history.changes(&base.export_id, "again")?;
    let there = Archive::open(&history.folder.path().join("there"))?;
    apply(&there, &whole)?;
    assert_eq!(shown(&there, "m")?, Some(0.5));
    let taken = apply(&there, &without)?;
    assert_eq!(shown(&there, "m")?, None);
    turn(&there, &taken, Turn::Undo)?;
    assert_eq!(shown(&there, "m")?, Some(0.5), "nothing that counts takes it back any more");
    turn(&there, &taken, Turn::Redo)?;
    assert_eq!(shown(&there, "m")?, None);
    apply(&there, &whole)?;
    assert_eq!(shown(&there, "m")?, None, "the base does not bring it back");
    apply(&there, &again)?;
    assert_eq!(shown(&there, "m")?, Some(0.5), "told again later, it stands");
    let revision = there.store.revision();
    for bundle in [&without, &again, &whole, &without] {
        apply(&there, bundle)?;
        assert_eq!(shown(&there, "m")?, Some(0.5), "{bundle:?}");
    }
    assert_eq!(there.store.revision(), revision, "nothing was to be written");
    Ok(())
}

#[test]
fn a_vector_that_only_a_later_export_brought_goes_with_its_import() -> Result<()> {
    let mut history = History::new(43)?;
    history.put(&memory("m", "Keeps bees", T))?;
    let (base, whole) = history.full("full")?;
    history.commit(vec![Change::Embedding(vector("m", "small", 0.5, T))])?;
    history.commit(vec![withdraw("m", "small")])?;
    let (_, without) = history.changes(&base.export_id, "without")?;
    history.commit(vec![Change::Embedding(vector("m", "small", 0.5, T))])?;
    let (_, again) = history.changes(&base.export_id, "again")?;
    let there = Archive::open(&history.folder.path().join("there"))?;
    apply(&there, &whole)?;
    apply(&there, &without)?;
    let brought = apply(&there, &again)?;
    assert_eq!(shown(&there, "m")?, Some(0.5));
    turn(&there, &brought, Turn::Undo)?;
    assert_eq!(shown(&there, "m")?, None);
    Ok(())
}

#[test]
fn of_several_models_the_newest_vector_leaves() -> Result<()> {
    let mut history = History::new(44)?;
    history.put(&memory("m", "Keeps bees", T))?;
    history.put(&memory("n", "Has a garden", T))?;
    history.commit(vec![
        Change::Embedding(vector("m", "large", 0.25, T + 2)),
        Change::Embedding(vector("m", "small", 0.5, T + 1)),
        Change::Embedding(vector("n", "small", 0.75, T)),
    ])?;
    let (base, whole) = history.full("full")?;
    let models = |bundle: &Path| -> Result<Vec<_>> {
        Ok(vectors_of(bundle)?.into_values().map(|one| (one.memory_id, one.model)).collect())
    };
    let pair = |memory: &str, model: &str| (memory.to_owned(), model.to_owned());
    assert_eq!(models(&whole)?, [pair("m", "large"), pair("n", "small")]);
    let report = verify::path(&whole, &Options::default())?;
    ensure!(report.valid, "{:?}", report.issues);
    history.commit(vec![withdraw("m", "large")])?;
    let (_, changes) = history.changes(&base.export_id, "changes")?;
    assert_eq!(models(&changes)?, [pair("m", "small")]);
    let there = Archive::open(&history.folder.path().join("there"))?;
    apply(&there, &whole)?;
    apply(&there, &changes)?;
    assert_eq!(shown(&there, "m")?, Some(0.5));
    Ok(())
}

#[test]
fn a_vector_of_what_a_memory_said_before_an_edit_comes_again_when_the_edit_is_undone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = Archive::open(&folder.path().join("here"))?;
    let mut history = History::new(45)?;
    history.put(&memory("m", "Keeps bees", T))?;
    history.commit(vec![Change::Embedding(vector("m", "small", 0.5, T))])?;
    let (_, bundle) = history.full("full")?;
    only(here.import(&bundle)?)?;
    let owner = Call { actor: "owner".into(), ..Call::default() };
    let draft = Draft { content: Some("Keeps wasps".into()), ..Draft::default() };
    let edit = here.imports.edit_memory(&owner, "m", "", &draft)?;
    let full = folder.path().join("full");
    let base = here.export(&full)?;
    assert_eq!(vectors_of(&full)?.len(), 0, "it is not of what the memory says");
    here.imports.undo_change(&owner, &edit.act)?;
    let (whole, changes) = (folder.path().join("whole"), folder.path().join("changes"));
    here.export(&whole)?;
    here.export_changes(Some(&base.export_id), &changes)?;
    assert_eq!(vectors_of(&whole)?.len(), 1);
    assert_eq!(vectors_of(&changes)?, vectors_of(&whole)?);
    Ok(())
}
