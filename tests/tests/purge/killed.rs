//! An erasure that is interrupted at any place is completed by the next start.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

use anyhow::{Context as _, Result, bail, ensure};
use satchel_core::{
    ingest::purge::{self, Target, planned},
    leftovers::{self, Way},
};

use crate::scene::{
    ATTACHED, EDITED, REMEMBERED, SAID, TITLED, erase, holding, none_of, open, planted as plant, store, whole,
};

const FOLDER: &str = "SATCHEL_TEST_PURGE_FOLDER";
const CONVERSATION: &str = "SATCHEL_TEST_PURGE_CONVERSATION";
const PLACE: &str = "SATCHEL_TEST_PURGE_PLACE";
const TIME: &str = "SATCHEL_TEST_PURGE_TIME";
const WORDS: [&str; 5] = [SAID, REMEMBERED, ATTACHED, EDITED, TITLED];
/// Every failpoint of an erasure, and the number of the arrival there at which the process dies.
const PLACES: [(&str, u64); 15] = [
    ("purge noted", 1),
    ("purge begun", 1),
    ("purge written", 1),
    ("purge built", 1),
    ("purge ready", 1),
    ("piece replaced", 1),
    ("piece replaced", 2),
    ("piece replaced", 3),
    ("piece replaced", 4),
    ("piece replaced", 5),
    ("piece replaced", 6),
    ("piece replaced", 7),
    ("piece replaced", 8),
    ("gone synced", 1),
    ("purge done", 1),
];

/// Not a separate test: it runs in the child process of the test below.
#[test]
fn child_that_dies_while_it_erases() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return Ok(()) };
    let (place, time) = (std::env::var(PLACE)?, std::env::var(TIME)?.parse::<u64>()?);
    let counts = Mutex::new(BTreeMap::<&str, u64>::new());
    ensure!(satchel_failpoints::listen(move |reached| {
        let Ok(mut counts) = counts.lock() else { return };
        let count = counts.entry(reached).or_default();
        *count += 1;
        if reached == place && *count == time {
            let this = rustix::process::getpid();
            rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap_or_default();
        }
    }));
    let target = Target::Conversation { id: std::env::var(CONVERSATION)?, keep_memories: false };
    erase(&folder.join("data"), None, &target).map(drop)
}

/// Checks which leftovers are reported for the place of the interruption, and that nothing needed for the completion
/// may be removed: all removable leftovers are removed here, as a repair would do.
fn harmless(dir: &Path, place: &str) -> Result<()> {
    let found = leftovers::find(dir)?;
    let told = |name: &str| found.iter().any(|one| one.path.ends_with(name) && one.way == Way::Open);
    let expected = match place {
        "purge begun" | "purge written" | "purge built" => (true, false),
        "purge ready" => (false, true),
        // The folder itself is removed last.
        "piece replaced" | "gone synced" => (false, dir.join("purging").exists()),
        _ => (false, false),
    };
    ensure!((told("purging.new"), told("purging")) == expected, "{found:?}");
    for leftover in found.iter().filter(|one| one.way == Way::Remove) {
        leftovers::remove(leftover)?;
    }
    Ok(())
}

fn die(folder: &Path, conversation: &str, (place, time): (&str, u64)) -> Result<()> {
    let arguments = ["--exact", "killed::child_that_dies_while_it_erases", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(FOLDER, folder).env(CONVERSATION, conversation);
    let output = command.env(PLACE, place).env(TIME, time.to_string()).stdin(Stdio::null()).output()?;
    if output.status.code().is_some() {
        bail!("it lives, or failed: {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(())
}

#[test]
fn an_erasure_that_is_killed_at_any_place_is_completed_by_the_next_start() -> Result<()> {
    let origin = tempfile::tempdir()?;
    let ids = plant(origin.path(), None)?;
    let reference = tempfile::tempdir()?;
    satchel_tests::exports::copy(&origin.path().join("data"), &reference.path().join("data"))?;
    let target = Target::Conversation { id: ids.conversation.clone(), keep_memories: false };
    erase(&reference.path().join("data"), None, &target)?;
    let archive = open(&reference.path().join("data"), None)?;
    let expected = archive.state()?;
    archive.close()?;
    for (place, time) in PLACES {
        let folder = tempfile::tempdir()?;
        let dir = folder.path().join("data");
        satchel_tests::exports::copy(&origin.path().join("data"), &dir)?;
        let what = format!("killed at {place:?}, time {time}");
        die(folder.path(), &ids.conversation, (place, time)).with_context(|| what.clone())?;
        if place == "purge written" {
            ensure!(
                !holding(&dir, SAID)?.is_empty(),
                "{what}: the old store stands until the new one is whole"
            );
        }
        harmless(&dir, place).with_context(|| what.clone())?;
        let archive = open(&dir, None).with_context(|| what.clone())?;
        ensure!(archive.state()? == expected, "{what}: another state");
        archive.close()?;
        none_of(&dir, &WORDS, &what)?;
        whole(&dir, None).with_context(|| what.clone())?;
    }
    Ok(())
}

#[test]
fn an_erasure_that_cannot_be_completed_waits_until_it_can() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = plant(folder.path(), None)?;
    let target = Target::Conversation { id: ids.conversation, keep_memories: false };
    let opened = store(&dir, None)?;
    let plan = planned(&opened, &target, 1_800_000_000_000_000)?.context("there is something to erase")?;
    purge::note(&opened, &plan.record)?;
    opened.close()?;
    let (journal, there) = (dir.join("journal"), folder.path().join("there"));
    std::fs::rename(&journal, &there)?;
    std::os::unix::fs::symlink(&there, &journal)?;
    let opened = store(&dir, None)?;
    let before = opened.revision();
    opened.close()?;
    let again = store(&dir, None)?;
    ensure!(again.revision() == before, "each start notes it again");
    again.close()?;
    ensure!(!holding(&there, SAID)?.is_empty(), "only the link went");
    std::fs::remove_file(&journal)?;
    std::fs::rename(&there, &journal)?;
    store(&dir, None)?.close()?;
    none_of(&dir, &WORDS, "after the link went")?;
    whole(&dir, None)
}
