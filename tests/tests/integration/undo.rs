//! An import that was undone leaves no trace in what is shown, and a redo restores it completely.

mod exports;
mod grpc;
mod kill;
mod sequences;

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    receipt::{ImportRecord, ImportStatus},
    undo::{UndoDirection, UndoOutcome, UndoRequest},
};
use satchel_source::CancelToken;
use satchel_store::Stats;
use satchel_tests::test_core::{ExportedState, TestCore, only_import};

use self::exports::{TestConversation, write_chatgpt};

/// Undoes or redoes an import.
fn undo_or_redo(core: &TestCore, id: &str, direction: UndoDirection) -> Result<UndoOutcome> {
    let request = UndoRequest { id, direction, dry_run: false, expected: None };
    core.imports.undo_or_redo(request, &CancelToken::new())?.context("there is no such import")
}

fn get_import(core: &TestCore, id: &str) -> Result<ImportRecord> {
    core.imports.get(id)?.context("there is no such import")
}

/// Returns the counts of the store, without its sizes in bytes.
fn store_counts(core: &TestCore) -> Result<Stats> {
    Ok(Stats { journal_bytes: 0, engine_bytes: 0, blob_bytes: 0, ..core.store.stats()? })
}

fn error_text(core: &TestCore, id: &str, way: UndoDirection) -> String {
    undo_or_redo(core, id, way).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn records_of_an_undone_import_are_readable_only_by_id() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let export = write_chatgpt(
        dir.path(),
        "one",
        &[TestConversation::new(1, 3), TestConversation::new(2, 2)],
        &["Keeps bees"],
    )?;
    let import = only_import(core.import(&export)?)?;
    let before = core.state()?;
    ensure!(before.conversations.len() == 3 && !before.memories.is_empty(), "{before:#?}");
    let memory = before.memories[0]["id"].as_str().context("an id")?.to_owned();
    let stats = store_counts(&core)?;
    let outcome = undo_or_redo(&core, &import.id, UndoDirection::Undo)?;
    ensure!(outcome.conversations.withdrawn == 3, "{outcome:?}");
    ensure!(outcome.memories.withdrawn == before.memories.len() as u64, "{outcome:?}");
    ensure!(outcome.import.status == ImportStatus::Undone, "{outcome:?}");
    ensure!(get_import(&core, &import.id)?.reason.unwrap_or_default().contains("imports redo"));
    ensure!(core.state()? == ExportedState::default(), "records are still shown");
    let record = core.store.memory(&memory, None)?.context("the record is readable by id")?;
    ensure!(record.withdrawn && record.version == 2, "{record:?}");
    ensure!(core.store.memory_versions(&memory)?.len() == 2);
    let again = error_text(&core, &import.id, UndoDirection::Undo);
    ensure!(again.contains("undone already") && again.contains("imports redo"), "{again}");
    let outcome = undo_or_redo(&core, &import.id, UndoDirection::Redo)?;
    ensure!(outcome.conversations.restored == 3 && outcome.import.status == import.status, "{outcome:?}");
    ensure!(core.state()? == before, "the redo did not restore the state");
    ensure!(store_counts(&core)? == stats, "the counts differ: {:?}", store_counts(&core)?);
    ensure!(error_text(&core, &import.id, UndoDirection::Redo).contains("not undone"));
    let report = core.store.check(true, &mut |_| {})?;
    ensure!(report.clean(), "{report:?}");
    Ok(())
}

#[test]
fn the_same_file_can_be_imported_again_after_an_undo() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let export = write_chatgpt(dir.path(), "one", &[TestConversation::new(1, 3)], &["Keeps bees"])?;
    let first = only_import(core.import(&export)?)?;
    let before = core.state()?;
    let unchanged = only_import(core.import(&export)?)?;
    ensure!(unchanged.status == ImportStatus::Unchanged);
    let reason = error_text(&core, &unchanged.id, UndoDirection::Undo);
    ensure!(reason.contains(&first.id), "the import to undo is not named: {reason}");
    undo_or_redo(&core, &first.id, UndoDirection::Undo)?;
    let second = only_import(core.import(&export)?)?;
    ensure!(second.status == first.status && second.conversations == first.conversations, "{second:?}");
    ensure!(second.memories == first.memories, "{:?} and {:?}", second.memories, first.memories);
    ensure!(core.state()? == before);
    // Both imports contain the same now: either of them is enough.
    undo_or_redo(&core, &first.id, UndoDirection::Redo)?;
    undo_or_redo(&core, &second.id, UndoDirection::Undo)?;
    ensure!(core.state()? == before);
    undo_or_redo(&core, &first.id, UndoDirection::Undo)?;
    ensure!(core.state()? == ExportedState::default());
    Ok(())
}

#[test]
fn a_dry_run_previews_the_undo_and_a_different_undo_is_refused() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let older = write_chatgpt(
        dir.path(),
        "older",
        &[TestConversation::new(1, 2), TestConversation::new(2, 2)],
        &["Keeps bees"],
    )?;
    let newer = write_chatgpt(
        dir.path(),
        "newer",
        &[TestConversation::new(2, 4), TestConversation::new(3, 2)],
        &["Keeps bees", "Sails"],
    )?;
    only_import(core.import(&older)?)?;
    let import = only_import(core.import(&newer)?)?;
    let (state, revision) = (core.state()?, core.store.revision());
    let request =
        UndoRequest { id: &import.id, direction: UndoDirection::Undo, dry_run: true, expected: None };
    let preview = core.imports.undo_or_redo(request, &CancelToken::new())?.context("an import")?;
    ensure!(core.store.revision() == revision && core.state()? == state, "a dry run wrote");
    ensure!(preview.conversations.withdrawn == 1, "{preview:?}");
    ensure!(preview.conversations.changed >= 1 && preview.memories.withdrawn == 1, "{preview:?}");
    let wrong = UndoRequest { dry_run: false, expected: Some(preview.records() + 1), ..request };
    let refused = core.imports.undo_or_redo(wrong, &CancelToken::new()).err().map(|error| error.to_string());
    ensure!(refused.unwrap_or_default().contains("dry run"), "a different undo than previewed was made");
    ensure!(core.state()? == state);
    let right = UndoRequest { expected: Some(preview.records()), ..wrong };
    let done = core.imports.undo_or_redo(right, &CancelToken::new())?.context("an import")?;
    ensure!(done.records() == preview.records(), "{done:?} is not {preview:?}");
    let alone = TestCore::open(&dir.path().join("alone"))?;
    alone.import(&older)?;
    ensure!(core.state()? == alone.state()?);
    Ok(())
}

#[test]
fn a_cancelled_undo_or_redo_is_completed_by_the_next_start() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let core = TestCore::open(&data)?;
    let export = write_chatgpt(dir.path(), "one", &[TestConversation::new(1, 3)], &["Keeps bees"])?;
    let import = only_import(core.import(&export)?)?;
    let before = core.state()?;
    let cancel = CancelToken::new();
    cancel.cancel();
    let request =
        UndoRequest { id: &import.id, direction: UndoDirection::Undo, dry_run: false, expected: None };
    ensure!(core.imports.undo_or_redo(request, &cancel)?.context("an import")?.cancelled);
    ensure!(core.state()? == before, "the cancelled undo changed the state");
    core.close()?;
    let core = TestCore::open(&data)?;
    ensure!(core.state()? == ExportedState::default(), "the start did not complete the undo");
    let reason = get_import(&core, &import.id)?.reason.unwrap_or_default();
    ensure!(reason.contains("completed at") && reason.contains("by the next start"), "{reason}");
    let request = UndoRequest { direction: UndoDirection::Redo, ..request };
    ensure!(core.imports.undo_or_redo(request, &cancel)?.context("an import")?.cancelled);
    core.close()?;
    let core = TestCore::open(&data)?;
    ensure!(core.state()? == before, "the start did not complete the redo");
    ensure!(get_import(&core, &import.id)?.status == import.status);
    let revision = core.store.revision();
    core.close()?;
    ensure!(TestCore::open(&data)?.store.revision() == revision, "a completed redo was completed again");
    Ok(())
}

#[test]
fn a_cancelled_undo_is_completed_by_the_same_command() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let core = TestCore::open(&dir.path().join("data"))?;
    let talks: Vec<TestConversation> = (1..20).map(|number| TestConversation::new(number, 2)).collect();
    let export = write_chatgpt(dir.path(), "one", &talks, &["Keeps bees"])?;
    let other = write_chatgpt(
        dir.path(),
        "two",
        &[TestConversation::new(1, 1), TestConversation::new(2, 4)],
        &["Sails"],
    )?;
    let import = only_import(core.import(&export)?)?;
    let cancel = CancelToken::new();
    cancel.cancel();
    let request =
        UndoRequest { id: &import.id, direction: UndoDirection::Undo, dry_run: false, expected: None };
    let outcome = core.imports.undo_or_redo(request, &cancel)?.context("an import")?;
    ensure!(outcome.cancelled);
    let reason = get_import(&core, &import.id)?.reason.unwrap_or_default();
    ensure!(reason.contains("has not ended"), "{reason}");
    // An import made meanwhile builds on the records that count, not on those that are still shown.
    core.import(&other)?;
    undo_or_redo(&core, &import.id, UndoDirection::Undo)?;
    let alone = TestCore::open(&dir.path().join("alone"))?;
    alone.import(&other)?;
    ensure!(core.state()? == alone.state()?);
    // The same for a redo that is cancelled halfway.
    let request = UndoRequest { direction: UndoDirection::Redo, ..request };
    ensure!(core.imports.undo_or_redo(request, &cancel)?.context("an import")?.cancelled);
    undo_or_redo(&core, &import.id, UndoDirection::Undo)?;
    ensure!(core.state()? == alone.state()?);
    Ok(())
}
