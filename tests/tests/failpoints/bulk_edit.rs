//! A change of many memories that is killed at any step of its commits is applied completely or not at all, and can be
//! undone.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

use anyhow::{Context as _, Result, bail, ensure};
use satchel_core::edits::{BulkStatusChange, EditContext, EditOutcome, RequestKey};
use satchel_pam::{hash::ContentHash, memory::Memory, memory::Status};
use satchel_store::{MemoryOrder, MemoryQuery};
use satchel_tests::test_core::{TestCore, only_import};
use serde_json::json;

use crate::{gate::exclusive, kill::memory_tempdir};

/// Set in the child: its folder, the failpoint at which it dies, and the number of the arrival there. Without a failpoint it
/// survives.
const FOLDER: &str = "SATCHEL_TEST_CHANGING_FOLDER";
const FAILPOINT: &str = "SATCHEL_TEST_CHANGING_PLACE";
const ARRIVAL: &str = "SATCHEL_TEST_CHANGING_TIME";
/// Number of memories that change: more than fit into one commit.
const MANY: usize = 500;
/// The steps of a commit at which the child dies.
const STEPS: [&str; 4] = ["commit framed", "database prepared", "database written", "revision published"];
/// The id of the request, the same for the first call and for its repetition after the kill.
const REQUEST: &str = "0d0c0b0a-0000-4000-8000-0000000000aa";

/// Not a separate test: it runs in the child process of the test below.
#[test]
fn child_killed_during_bulk_edit() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return Ok(()) };
    let (failpoint, arrival) = (std::env::var(FAILPOINT)?, std::env::var(ARRIVAL)?.parse::<u64>()?);
    let core = TestCore::open(&folder.join("data"))?;
    let counts = Mutex::new(BTreeMap::<&str, u64>::new());
    let log = folder.join("failpoints");
    // Counts from here on, because opening the store writes too.
    ensure!(satchel_failpoints::listen(move |reached| {
        let Ok(mut counts) = counts.lock() else { return };
        let count = counts.entry(reached).or_default();
        *count += 1;
        if reached == failpoint && *count == arrival {
            let this = rustix::process::getpid();
            rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap_or_default();
        }
        if failpoint.is_empty() {
            let lines: Vec<String> =
                counts.iter().map(|(failpoint, times)| format!("{times} {failpoint}")).collect();
            drop(std::fs::write(&log, lines.join("\n")));
        }
    }));
    archive_all(&core).map(drop)
}

fn archive_all(core: &TestCore) -> Result<EditOutcome> {
    let request = Some(RequestKey { id: REQUEST.to_owned(), body: "all".to_owned() });
    let call = EditContext { actor: "owner".to_owned(), reason: "tidy".to_owned(), request };
    let query = MemoryQuery { tags_all: vec!["old".to_owned()], ..MemoryQuery::default() };
    let bulk =
        BulkStatusChange { query, status: Status::Archived, dry_run: false, expected: Some(MANY as u64) };
    Ok(core.imports.edits().set_status_of_all(&call, &bulk)?)
}

/// Runs the child; returns true if it was killed.
fn run_child(folder: &Path, failpoint: &str, arrival: u64) -> Result<bool> {
    let arguments = ["--exact", "bulk_edit::child_killed_during_bulk_edit", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(FOLDER, folder).env(FAILPOINT, failpoint).env(ARRIVAL, arrival.to_string());
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.code().is_some_and(|code| code != 0) {
        bail!("the child failed: {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(!output.status.success())
}

/// Creates a store with memories imported from a document.
fn create_store(folder: &Path) -> Result<()> {
    let memories: Vec<_> = (0..MANY).map(|number| {
        let content = format!("Fact {number}");
        json!({
            "id": format!("{number:08x}-0000-4000-8000-000000000000"), "type": "fact", "status": "active", "content": content,
            "content_hash": ContentHash::of(&content).to_string(), "tags": ["old"],
            "temporal": {"created_at": "2024-01-01T00:00:00Z"},
            "provenance": {"platform": "chatgpt", "extraction_method": "api_export"},
        })
    }).collect();
    let document = json!({
        "schema": "portable-ai-memory", "schema_version": "1.0",
        "owner": {"id": "0d0c0b0a-0000-4000-8000-000000000001"}, "memories": memories,
    });
    let path = folder.join("memory-store.json");
    std::fs::write(&path, document.to_string())?;
    let core = TestCore::open(&folder.join("data"))?;
    let import = only_import(core.import(&path)?)?;
    ensure!(import.memories.new == MANY as u64, "{import:?}");
    core.close()
}

fn visible_memories(core: &TestCore) -> Result<Vec<Memory>> {
    let query = MemoryQuery { order: MemoryOrder::IdAscending, ..MemoryQuery::default() };
    let page = core.store.memories(&query, None, 2 * MANY, core.store.revision())?;
    Ok(page.items.into_iter().map(|record| record.memory).collect())
}

/// Checks that all memories have either the old or the new state, that the repeated call succeeds, and that its change
/// can be undone.
fn assert_applied_or_not(folder: &Path, before: &[Memory], failpoint: &str) -> Result<()> {
    let core = TestCore::open(&folder.join("data"))?;
    let report = core.store.check(true, &mut |_| {})?;
    ensure!(report.clean(), "{report:?}");
    let left = visible_memories(&core)?;
    let changed = left.iter().filter(|memory| memory.status == Status::Archived).count();
    ensure!(changed == 0 && left == before || changed == MANY, "{changed} of {MANY} are changed");
    // After the fsync the change is durable.
    ensure!(changed == MANY || failpoint == "commit framed", "a durable change was lost");
    let revision = core.store.revision();
    let done = archive_all(&core)?;
    ensure!(changed == 0 || core.store.revision() == revision, "the change was applied twice");
    ensure!(
        (done.matched, visible_memories(&core)?.iter().all(|memory| memory.status == Status::Archived))
            == (MANY as u64, true)
    );
    let history = core.store.memory_versions(&before[MANY - 1].id)?;
    let (last, reason) = (history.len(), history.last().map(|version| version.origin.reason.clone()));
    ensure!((last, reason.as_deref()) == (2, Some("tidy")), "{last} versions, the last for {reason:?}");
    core.imports
        .edits()
        .undo_change(&EditContext { actor: "owner".to_owned(), ..EditContext::default() }, &done.act)?;
    let statuses = |memories: &[Memory]| {
        memories.iter().map(|memory| (memory.id.clone(), memory.status)).collect::<Vec<_>>()
    };
    ensure!(statuses(&visible_memories(&core)?) == statuses(before), "the change was not undone");
    core.close()
}

#[test]
fn a_killed_bulk_edit_is_applied_completely_or_not_at_all() -> Result<()> {
    let _alone = exclusive();
    let first = memory_tempdir()?;
    create_store(first.path())?;
    let before = {
        let core = TestCore::open(&first.path().join("data"))?;
        let before = visible_memories(&core)?;
        core.close()?;
        before
    };
    let copy_store = || -> Result<tempfile::TempDir> {
        let folder = memory_tempdir()?;
        satchel_tests::samples::copy(&first.path().join("data"), &folder.path().join("data"))?;
        Ok(folder)
    };
    let folder = copy_store()?;
    ensure!(!run_child(folder.path(), "", 0)?, "the child died by itself");
    let log = std::fs::read_to_string(folder.path().join("failpoints"))?;
    let times = |step: &str| log.lines().find_map(|line| line.strip_suffix(step)?.trim().parse::<u64>().ok());
    ensure!(times("commit framed").context("commits")? >= 3, "a single commit contains everything: {log}");
    for step in STEPS {
        for arrival in 1..=times(step).context(step)? {
            let folder = copy_store()?;
            ensure!(run_child(folder.path(), step, arrival)?, "the child was not killed");
            assert_applied_or_not(folder.path(), &before, step)
                .with_context(|| format!("killed at {step:?}, time {arrival}"))?;
        }
    }
    Ok(())
}
