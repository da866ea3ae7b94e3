//! An erasure that is interrupted at any failpoint is completed by the next start.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

use anyhow::{Context as _, Result, bail, ensure};
use satchel_core::{
    purge::{self, Target, planned},
    residue::{self, Removal},
};

use crate::purge::fixture::{
    IN_ATTACHMENT, IN_EDIT, IN_MEMORY, IN_MESSAGE, IN_TITLE, assert_erased, assert_store_intact,
    create_with_secrets as plant, erase, files_containing, open_core, open_store,
};

const FOLDER: &str = "SATCHEL_TEST_PURGE_FOLDER";
const CONVERSATION: &str = "SATCHEL_TEST_PURGE_CONVERSATION";
const FAILPOINT: &str = "SATCHEL_TEST_PURGE_PLACE";
const ARRIVAL: &str = "SATCHEL_TEST_PURGE_TIME";
const SECRETS: [&str; 5] = [IN_MESSAGE, IN_MEMORY, IN_ATTACHMENT, IN_EDIT, IN_TITLE];
/// Every failpoint of an erasure, and the number of the arrival there at which the process dies.
const FAILPOINTS: [(&str, u64); 15] = [
    ("purge recorded", 1),
    ("purge started", 1),
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
    ("erasures synced", 1),
    ("purge done", 1),
];

/// Not a separate test: it runs in the child process of the test below.
#[test]
fn child_killed_during_erasure() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return Ok(()) };
    let (failpoint, arrival) = (std::env::var(FAILPOINT)?, std::env::var(ARRIVAL)?.parse::<u64>()?);
    let counts = Mutex::new(BTreeMap::<&str, u64>::new());
    ensure!(satchel_failpoints::listen(move |reached| {
        let Ok(mut counts) = counts.lock() else { return };
        let count = counts.entry(reached).or_default();
        *count += 1;
        if reached == failpoint && *count == arrival {
            let this = rustix::process::getpid();
            rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap_or_default();
        }
    }));
    let target = Target::Conversation { id: std::env::var(CONVERSATION)?, keep_memories: false };
    erase(&folder.join("data"), None, &target).map(drop)
}

/// Checks which residue is reported for the failpoint of the interruption, and that nothing needed for the completion
/// may be removed: all removable residue is removed here, as a repair would do.
fn check_residue(dir: &Path, failpoint: &str) -> Result<()> {
    let found = residue::find(dir)?;
    let open_at =
        |name: &str| found.iter().any(|one| one.path.ends_with(name) && one.removal == Removal::NextOpen);
    let expected = match failpoint {
        "purge started" | "purge written" | "purge built" => (true, false),
        "purge ready" => (false, true),
        // The folder itself is removed last.
        "piece replaced" | "erasures synced" => (false, dir.join("purging").exists()),
        _ => (false, false),
    };
    ensure!((open_at("purging.new"), open_at("purging")) == expected, "{found:?}");
    for leftover in found.iter().filter(|one| one.removal == Removal::Safe) {
        residue::remove(leftover)?;
    }
    Ok(())
}

fn run_child_until_killed(
    folder: &Path,
    conversation: &str,
    (failpoint, arrival): (&str, u64),
) -> Result<()> {
    let arguments = ["--exact", "purge::kill::child_killed_during_erasure", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(FOLDER, folder).env(CONVERSATION, conversation);
    let output =
        command.env(FAILPOINT, failpoint).env(ARRIVAL, arrival.to_string()).stdin(Stdio::null()).output()?;
    if output.status.code().is_some() {
        bail!("the child was not killed, or failed: {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(())
}

#[test]
fn an_erasure_killed_at_any_failpoint_is_completed_by_the_next_start() -> Result<()> {
    let origin = tempfile::tempdir()?;
    let ids = plant(origin.path(), None)?;
    let reference = tempfile::tempdir()?;
    satchel_tests::samples::copy(&origin.path().join("data"), &reference.path().join("data"))?;
    let target = Target::Conversation { id: ids.conversation.clone(), keep_memories: false };
    erase(&reference.path().join("data"), None, &target)?;
    let core = open_core(&reference.path().join("data"), None)?;
    let expected = core.state()?;
    core.close()?;
    for (failpoint, arrival) in FAILPOINTS {
        let folder = tempfile::tempdir()?;
        let dir = folder.path().join("data");
        satchel_tests::samples::copy(&origin.path().join("data"), &dir)?;
        let what = format!("killed at {failpoint:?}, time {arrival}");
        run_child_until_killed(folder.path(), &ids.conversation, (failpoint, arrival))
            .with_context(|| what.clone())?;
        if failpoint == "purge written" {
            ensure!(
                !files_containing(&dir, IN_MESSAGE)?.is_empty(),
                "{what}: the old store was removed before the new one was complete"
            );
        }
        check_residue(&dir, failpoint).with_context(|| what.clone())?;
        let core = open_core(&dir, None).with_context(|| what.clone())?;
        ensure!(core.state()? == expected, "{what}: the state differs");
        core.close()?;
        assert_erased(&dir, &SECRETS, &what)?;
        assert_store_intact(&dir, None).with_context(|| what.clone())?;
    }
    Ok(())
}

#[test]
fn an_erasure_that_cannot_be_completed_waits_until_it_can() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = plant(folder.path(), None)?;
    let target = Target::Conversation { id: ids.conversation, keep_memories: false };
    let opened = open_store(&dir, None)?;
    let plan = planned(&opened, &target, 1_800_000_000_000_000)?.context("there is something to erase")?;
    purge::record_purge(&opened, &plan.record)?;
    opened.close()?;
    let (journal, there) = (dir.join("journal"), folder.path().join("there"));
    std::fs::rename(&journal, &there)?;
    std::os::unix::fs::symlink(&there, &journal)?;
    let opened = open_store(&dir, None)?;
    let before = opened.revision();
    opened.close()?;
    let again = open_store(&dir, None)?;
    ensure!(again.revision() == before, "each start records the erasure again");
    again.close()?;
    ensure!(!files_containing(&there, IN_MESSAGE)?.is_empty(), "the linked journal was changed");
    std::fs::remove_file(&journal)?;
    std::fs::rename(&there, &journal)?;
    open_store(&dir, None)?.close()?;
    assert_erased(&dir, &SECRETS, "after the link was removed")?;
    assert_store_intact(&dir, None)
}
