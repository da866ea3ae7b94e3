//! A change of many memories that is killed at any step of its commits is applied completely or not at all, and can be
//! undone.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

use anyhow::{Context as _, Result, bail, ensure};
use satchel_core::ingest::hand::{Bulk, Call, Done, RequestKey};
use satchel_pam::{hash::ContentHash, memory::Memory, memory::Status};
use satchel_store::{MemoryOrder, MemoryQuery};
use satchel_tests::archive::{Archive, only};
use serde_json::json;

use crate::{gate::alone, kill::quick};

/// Set in the child: its folder, the place at which it dies, and the number of the arrival there. With no place it
/// survives.
const FOLDER: &str = "SATCHEL_TEST_CHANGING_FOLDER";
const PLACE: &str = "SATCHEL_TEST_CHANGING_PLACE";
const TIME: &str = "SATCHEL_TEST_CHANGING_TIME";
/// Number of memories that change: more than fit into one commit.
const MANY: usize = 500;
/// The steps of a commit at which the child dies.
const STEPS: [&str; 4] = ["commit framed", "database prepared", "database written", "revision published"];
/// The id of the request, the same for the first call and for its repetition after the kill.
const REQUEST: &str = "0d0c0b0a-0000-4000-8000-0000000000aa";

/// Not a separate test: it runs in the child process of the test below.
#[test]
fn child_that_dies_while_it_changes() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return Ok(()) };
    let (place, time) = (std::env::var(PLACE)?, std::env::var(TIME)?.parse::<u64>()?);
    let archive = Archive::open(&folder.join("data"))?;
    let counts = Mutex::new(BTreeMap::<&str, u64>::new());
    let log = folder.join("places");
    // Counts from here on, because opening the store writes too.
    ensure!(satchel_failpoints::listen(move |reached| {
        let Ok(mut counts) = counts.lock() else { return };
        let count = counts.entry(reached).or_default();
        *count += 1;
        if reached == place && *count == time {
            let this = rustix::process::getpid();
            rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap_or_default();
        }
        if place.is_empty() {
            let lines: Vec<String> = counts.iter().map(|(place, times)| format!("{times} {place}")).collect();
            drop(std::fs::write(&log, lines.join("\n")));
        }
    }));
    change(&archive).map(drop)
}

fn change(archive: &Archive) -> Result<Done> {
    let request = Some(RequestKey { id: REQUEST.to_owned(), body: "all".to_owned() });
    let call = Call { actor: "owner".to_owned(), reason: "tidy".to_owned(), request };
    let query = MemoryQuery { tags_all: vec!["old".to_owned()], ..MemoryQuery::default() };
    let bulk = Bulk { query, status: Status::Archived, dry_run: false, expected: Some(MANY as u64) };
    Ok(archive.imports.set_status_of_all(&call, &bulk)?)
}

/// Runs the child; returns true if it was killed.
fn child(folder: &Path, place: &str, time: u64) -> Result<bool> {
    let arguments = ["--exact", "changing::child_that_dies_while_it_changes", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(FOLDER, folder).env(PLACE, place).env(TIME, time.to_string());
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.code().is_some_and(|code| code != 0) {
        bail!("the child failed: {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(!output.status.success())
}

/// Creates a store with memories imported from a document.
fn ground(folder: &Path) -> Result<()> {
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
    let archive = Archive::open(&folder.join("data"))?;
    let import = only(archive.import(&path)?)?;
    ensure!(import.memories.new == MANY as u64, "{import:?}");
    archive.close()
}

fn shown(archive: &Archive) -> Result<Vec<Memory>> {
    let query = MemoryQuery { order: MemoryOrder::IdAscending, ..MemoryQuery::default() };
    let page = archive.store.memories(&query, None, 2 * MANY, archive.store.revision())?;
    Ok(page.items.into_iter().map(|record| record.memory).collect())
}

/// Checks that all memories have either the old or the new state, that the repeated call succeeds, and that its change
/// can be undone.
fn is_whole(folder: &Path, before: &[Memory], place: &str) -> Result<()> {
    let archive = Archive::open(&folder.join("data"))?;
    let report = archive.store.check(true, &mut |_| {})?;
    ensure!(report.clean(), "{report:?}");
    let left = shown(&archive)?;
    let changed = left.iter().filter(|memory| memory.status == Status::Archived).count();
    ensure!(changed == 0 && left == before || changed == MANY, "{changed} of {MANY} are changed");
    // After the fsync the change is durable.
    ensure!(changed == MANY || place == "commit framed", "a change that is durable is gone");
    let revision = archive.store.revision();
    let done = change(&archive)?;
    ensure!(changed == 0 || archive.store.revision() == revision, "it is made twice");
    ensure!(
        (done.matched, shown(&archive)?.iter().all(|memory| memory.status == Status::Archived))
            == (MANY as u64, true)
    );
    let history = archive.store.memory_versions(&before[MANY - 1].id)?;
    let (last, reason) = (history.len(), history.last().map(|version| version.origin.reason.clone()));
    ensure!((last, reason.as_deref()) == (2, Some("tidy")), "{last} versions, the last for {reason:?}");
    archive.imports.undo_change(&Call { actor: "owner".to_owned(), ..Call::default() }, &done.act)?;
    let statuses = |memories: &[Memory]| {
        memories.iter().map(|memory| (memory.id.clone(), memory.status)).collect::<Vec<_>>()
    };
    ensure!(statuses(&shown(&archive)?) == statuses(before), "it is not taken back");
    archive.close()
}

#[test]
fn a_change_of_many_that_is_killed_is_made_whole_or_not_at_all() -> Result<()> {
    let _alone = alone();
    let first = quick()?;
    ground(first.path())?;
    let before = {
        let archive = Archive::open(&first.path().join("data"))?;
        let before = shown(&archive)?;
        archive.close()?;
        before
    };
    let lay = || -> Result<tempfile::TempDir> {
        let folder = quick()?;
        satchel_tests::exports::copy(&first.path().join("data"), &folder.path().join("data"))?;
        Ok(folder)
    };
    let folder = lay()?;
    ensure!(!child(folder.path(), "", 0)?, "it died of itself");
    let log = std::fs::read_to_string(folder.path().join("places"))?;
    let times = |step: &str| log.lines().find_map(|line| line.strip_suffix(step)?.trim().parse::<u64>().ok());
    ensure!(times("commit framed").context("commits")? >= 3, "one commit holds it all: {log}");
    for step in STEPS {
        for time in 1..=times(step).context(step)? {
            let folder = lay()?;
            ensure!(child(folder.path(), step, time)?, "it lives");
            is_whole(folder.path(), &before, step)
                .with_context(|| format!("killed at {step:?}, time {time}"))?;
        }
    }
    Ok(())
}
