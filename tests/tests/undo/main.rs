//! An import that was undone leaves no trace in what is shown, and a redo restores it completely.

mod calls;
mod exports;
mod kill;
mod orders;

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    receipt::{ImportRecord, ImportStatus},
    undo::{Outcome, Turn, TurnRequest},
};
use satchel_source::CancelToken;
use satchel_store::Stats;
use satchel_tests::archive::{Archive, State, only};

use self::exports::{Talk, chatgpt};

/// Undoes or redoes an import.
fn turn(archive: &Archive, id: &str, turn: Turn) -> Result<Outcome> {
    let request = TurnRequest { id, turn, dry_run: false, expected: None };
    archive.imports.turn(request, &CancelToken::new())?.context("there is no such import")
}

fn get(archive: &Archive, id: &str) -> Result<ImportRecord> {
    archive.imports.get(id)?.context("there is no such import")
}

/// Returns the counts of the store, without its sizes in bytes.
fn counts(archive: &Archive) -> Result<Stats> {
    Ok(Stats { journal_bytes: 0, engine_bytes: 0, blob_bytes: 0, ..archive.store.stats()? })
}

fn refusal(archive: &Archive, id: &str, way: Turn) -> String {
    turn(archive, id, way).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn an_undone_import_says_so_and_its_records_are_readable_by_id_only() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    let export = chatgpt(dir.path(), "one", &[Talk::of(1, 3), Talk::of(2, 2)], &["Keeps bees"])?;
    let import = only(archive.import(&export)?)?;
    let whole = archive.state()?;
    ensure!(whole.conversations.len() == 3 && !whole.memories.is_empty(), "{whole:#?}");
    let memory = whole.memories[0]["id"].as_str().context("an id")?.to_owned();
    let stats = counts(&archive)?;
    let outcome = turn(&archive, &import.id, Turn::Undo)?;
    ensure!(outcome.conversations.withdrawn == 3, "{outcome:?}");
    ensure!(outcome.memories.withdrawn == whole.memories.len() as u64, "{outcome:?}");
    ensure!(outcome.import.status == ImportStatus::Undone, "{outcome:?}");
    ensure!(get(&archive, &import.id)?.reason.unwrap_or_default().contains("imports redo"));
    ensure!(archive.state()? == State::default(), "something is still shown");
    let record = archive.store.memory(&memory, None)?.context("it stays readable")?;
    ensure!(record.withdrawn && record.version == 2, "{record:?}");
    ensure!(archive.store.memory_versions(&memory)?.len() == 2);
    let again = refusal(&archive, &import.id, Turn::Undo);
    ensure!(again.contains("undone already") && again.contains("imports redo"), "{again}");
    let outcome = turn(&archive, &import.id, Turn::Redo)?;
    ensure!(outcome.conversations.restored == 3 && outcome.import.status == import.status, "{outcome:?}");
    ensure!(archive.state()? == whole, "it did not come back whole");
    ensure!(counts(&archive)? == stats, "the counts differ: {:?}", counts(&archive)?);
    ensure!(refusal(&archive, &import.id, Turn::Redo).contains("not undone"));
    let report = archive.store.check(true, &mut |_| {})?;
    ensure!(report.clean(), "{report:?}");
    Ok(())
}

#[test]
fn the_same_file_is_imported_anew_after_an_undo() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    let export = chatgpt(dir.path(), "one", &[Talk::of(1, 3)], &["Keeps bees"])?;
    let first = only(archive.import(&export)?)?;
    let whole = archive.state()?;
    let unchanged = only(archive.import(&export)?)?;
    ensure!(unchanged.status == ImportStatus::Unchanged);
    let reason = refusal(&archive, &unchanged.id, Turn::Undo);
    ensure!(reason.contains(&first.id), "the one to undo is not named: {reason}");
    turn(&archive, &first.id, Turn::Undo)?;
    let second = only(archive.import(&export)?)?;
    ensure!(second.status == first.status && second.conversations == first.conversations, "{second:?}");
    ensure!(second.memories == first.memories, "{:?} and {:?}", second.memories, first.memories);
    ensure!(archive.state()? == whole);
    // Both imports contain the same now: either of them is enough.
    turn(&archive, &first.id, Turn::Redo)?;
    turn(&archive, &second.id, Turn::Undo)?;
    ensure!(archive.state()? == whole);
    turn(&archive, &first.id, Turn::Undo)?;
    ensure!(archive.state()? == State::default());
    Ok(())
}

#[test]
fn a_dry_run_tells_what_an_undo_then_does_and_no_other_is_done() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    let older = chatgpt(dir.path(), "older", &[Talk::of(1, 2), Talk::of(2, 2)], &["Keeps bees"])?;
    let newer = chatgpt(dir.path(), "newer", &[Talk::of(2, 4), Talk::of(3, 2)], &["Keeps bees", "Sails"])?;
    only(archive.import(&older)?)?;
    let import = only(archive.import(&newer)?)?;
    let (state, revision) = (archive.state()?, archive.store.revision());
    let request = TurnRequest { id: &import.id, turn: Turn::Undo, dry_run: true, expected: None };
    let preview = archive.imports.turn(request, &CancelToken::new())?.context("an import")?;
    ensure!(archive.store.revision() == revision && archive.state()? == state, "a dry run wrote");
    ensure!(preview.conversations.withdrawn == 1, "{preview:?}");
    ensure!(preview.conversations.changed >= 1 && preview.memories.withdrawn == 1, "{preview:?}");
    let wrong = TurnRequest { dry_run: false, expected: Some(preview.records() + 1), ..request };
    let refused = archive.imports.turn(wrong, &CancelToken::new()).err().map(|error| error.to_string());
    ensure!(refused.unwrap_or_default().contains("dry run"), "another undo than was shown was done");
    ensure!(archive.state()? == state);
    let right = TurnRequest { expected: Some(preview.records()), ..wrong };
    let done = archive.imports.turn(right, &CancelToken::new())?.context("an import")?;
    ensure!(done.records() == preview.records(), "{done:?} is not {preview:?}");
    let alone = Archive::open(&dir.path().join("alone"))?;
    alone.import(&older)?;
    ensure!(archive.state()? == alone.state()?);
    Ok(())
}

#[test]
fn an_undo_that_was_stopped_and_a_way_back_are_completed_by_the_next_start() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let data = dir.path().join("data");
    let archive = Archive::open(&data)?;
    let export = chatgpt(dir.path(), "one", &[Talk::of(1, 3)], &["Keeps bees"])?;
    let import = only(archive.import(&export)?)?;
    let whole = archive.state()?;
    let cancel = CancelToken::new();
    cancel.cancel();
    let request = TurnRequest { id: &import.id, turn: Turn::Undo, dry_run: false, expected: None };
    ensure!(archive.imports.turn(request, &cancel)?.context("an import")?.cancelled);
    ensure!(archive.state()? == whole, "something was done");
    archive.close()?;
    let archive = Archive::open(&data)?;
    ensure!(archive.state()? == State::default(), "the start does not complete it");
    let reason = get(&archive, &import.id)?.reason.unwrap_or_default();
    ensure!(reason.contains("completed at") && reason.contains("by the next start"), "{reason}");
    let request = TurnRequest { turn: Turn::Redo, ..request };
    ensure!(archive.imports.turn(request, &cancel)?.context("an import")?.cancelled);
    archive.close()?;
    let archive = Archive::open(&data)?;
    ensure!(archive.state()? == whole, "the start does not complete the way back");
    ensure!(get(&archive, &import.id)?.status == import.status);
    let revision = archive.store.revision();
    archive.close()?;
    ensure!(Archive::open(&data)?.store.revision() == revision, "it is completed again and again");
    Ok(())
}

#[test]
fn an_undo_that_was_stopped_is_completed_by_the_same_command() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let archive = Archive::open(&dir.path().join("data"))?;
    let talks: Vec<Talk> = (1..20).map(|number| Talk::of(number, 2)).collect();
    let export = chatgpt(dir.path(), "one", &talks, &["Keeps bees"])?;
    let other = chatgpt(dir.path(), "two", &[Talk::of(1, 1), Talk::of(2, 4)], &["Sails"])?;
    let import = only(archive.import(&export)?)?;
    let cancel = CancelToken::new();
    cancel.cancel();
    let request = TurnRequest { id: &import.id, turn: Turn::Undo, dry_run: false, expected: None };
    let outcome = archive.imports.turn(request, &cancel)?.context("an import")?;
    ensure!(outcome.cancelled);
    let reason = get(&archive, &import.id)?.reason.unwrap_or_default();
    ensure!(reason.contains("has not ended"), "{reason}");
    // An import made meanwhile builds on the records that count, not on those that are still shown.
    archive.import(&other)?;
    turn(&archive, &import.id, Turn::Undo)?;
    let alone = Archive::open(&dir.path().join("alone"))?;
    alone.import(&other)?;
    ensure!(archive.state()? == alone.state()?);
    // The same for a redo that is cancelled halfway.
    let request = TurnRequest { turn: Turn::Redo, ..request };
    ensure!(archive.imports.turn(request, &cancel)?.context("an import")?.cancelled);
    turn(&archive, &import.id, Turn::Undo)?;
    ensure!(archive.state()? == alone.state()?);
    Ok(())
}
