//! A cancel takes effect while memories are derived and while an import waits for the write lock.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    ImportRequest, JobView, Phase,
    receipt::{ImportRecord, ImportStatus},
};
use satchel_tests::{generate, test_core::TestCore};
use tokio::sync::watch;

use crate::gate::{self, Gate};

pub(crate) fn start_import(core: &TestCore, path: &Path) -> Result<(String, watch::Receiver<JobView>)> {
    let path = path.to_owned();
    let request =
        ImportRequest { path, provider: None, plugin: None, again: false, dry_run: false, apply: None };
    let job = core.imports.start(request)?;
    Ok((job.to_string(), core.imports.subscribe(job).context("the job")?))
}

pub(crate) fn wait_until_ended(view: &mut watch::Receiver<JobView>) -> Result<ImportRecord> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let end = view.wait_for(|view| view.phase == Phase::Ended);
    let patience = std::time::Duration::from_mins(2);
    let ended = runtime.block_on(async { tokio::time::timeout(patience, end).await })?;
    ended?.imports.first().cloned().context("an import")
}

pub(crate) fn write_memu_export(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("memories");
    generate::memu(&path, 40_000, 5)?;
    Ok(path)
}

/// Writes a document with `count` memories; 3,000 of them need more changes than fit into one batch.
fn write_document(folder: &Path, count: usize) -> Result<PathBuf> {
    let memory = |number: usize| {
        let content = format!("The garden has a row of plants with the number {number}.");
        serde_json::json!({
            "id": format!("{number:08x}-0000-4000-8000-000000000000"), "type": "fact", "status": "active", "tags": [],
            "content_hash": satchel_pam::hash::ContentHash::of(&content).to_string(), "content": content,
            "temporal": {"created_at": "2026-01-02T03:04:05Z"}, "provenance": {"platform": "chatgpt"},
        })
    };
    let memories: Vec<_> = (0..count).map(memory).collect();
    let store = serde_json::json!({
        "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "somebody"}, "memories": memories,
    });
    let path = folder.join("memory-store.json");
    std::fs::write(&path, store.to_string())?;
    Ok(path)
}

#[test]
fn an_import_is_cancelled_while_memories_are_derived() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = write_document(folder.path(), 3_000)?;
    let whole = TestCore::open(&folder.path().join("whole"))?;
    let alone = gate::exclusive();
    whole.import(&export)?;
    drop(alone);
    // Before any memory is stored, and between two batches.
    for failpoint in ["derivation started", "memories stored"] {
        let gate = Gate::at(failpoint, 1);
        let core = TestCore::open(&folder.path().join(failpoint))?;
        let (job, mut view) = start_import(&core, &export)?;
        gate.wait_for_thread()?;
        ensure!(core.imports.cancel(&job), "no such job runs");
        gate.open();
        let import = wait_until_ended(&mut view)?;
        ensure!(import.status == ImportStatus::Cancelled, "{failpoint}: {import:?}");
        ensure!(core.state()? != whole.state()?, "{failpoint}: the import was not cancelled");
        let completed = core.import(&export)?;
        ensure!(completed.iter().all(|import| import.status == ImportStatus::Completed), "{completed:?}");
        ensure!(core.state()? == whole.state()?, "{failpoint}: the next import does not complete it");
        drop(gate);
    }
    Ok(())
}

#[test]
fn an_import_is_cancelled_while_it_waits_for_the_write_lock() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (export, other) = (write_memu_export(folder.path())?, folder.path().join("other"));
    generate::chatgpt(&other, 20_000, 6)?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let gate = Gate::at("derivation started", 1);
    let (_, mut first) = start_import(&core, &export)?;
    gate.wait_for_thread()?;
    let (job, mut second) = start_import(&core, &other)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(second.wait_for(|view| view.phase == Phase::Reading))?;
    ensure!(core.imports.cancel(&job), "no such job runs");
    let import = wait_until_ended(&mut second)?;
    ensure!(import.status == ImportStatus::Cancelled, "{import:?}");
    ensure!(first.borrow().phase == Phase::Settling, "the first import was not blocked");
    gate.open();
    ensure!(wait_until_ended(&mut first)?.status == ImportStatus::Completed);
    drop(gate);
    core.close()
}
