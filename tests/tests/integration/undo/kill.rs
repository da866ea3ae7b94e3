//! A process killed during an undo leaves nothing that the next start does not complete.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{receipt::ImportStatus, undo::UndoDirection};
use satchel_tests::{
    generate::{self, Rng},
    samples::copy,
    test_core::{ExportedState, TestCore, only_import},
};

use super::{
    exports::{TestConversation, write_chatgpt},
    undo_or_redo,
};

/// Set in the child: the data directory, and the import to undo in it.
const DATA: &str = "SATCHEL_TEST_UNDO_DATA";
const IMPORT: &str = "SATCHEL_TEST_UNDO_IMPORT";
const ROUNDS: u64 = 10;
/// Upper limit of rounds until one kill has interrupted an undo: on a busy machine a run may take a very different time
/// than the measured one.
const MAX_ROUNDS: u64 = 100;

/// Not a separate test: it runs in the child process of the test below.
#[test]
fn child_that_undoes() -> Result<()> {
    if let (Some(data), Ok(import)) = (std::env::var_os(DATA), std::env::var(IMPORT)) {
        undo_or_redo(&TestCore::open(Path::new(&data))?, &import, UndoDirection::Undo)?;
    }
    Ok(())
}

fn spawn_child(data: &Path, import: &str) -> Result<Child> {
    let arguments = ["--exact", "undo::kill::child_that_undoes", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(DATA, data).env(IMPORT, import).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command.spawn()?)
}

#[test]
fn an_undo_killed_at_any_moment_is_completed_by_the_next_start() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export = folder.path().join("export");
    generate::chatgpt(&export, 2_000_000, 31)?;
    let other = write_chatgpt(folder.path(), "other", &[TestConversation::new(1, 3)], &["Keeps bees"])?;
    let data = folder.path().join("data");
    let core = TestCore::open(&data)?;
    let import = only_import(core.import(&export)?)?.id;
    core.import(&other)?;
    core.close()?;
    let alone = TestCore::open(&folder.path().join("alone"))?;
    alone.import(&other)?;
    let expected: ExportedState = alone.state()?;
    let timed = folder.path().join("timed");
    copy(&data, &timed)?;
    let start = Instant::now();
    ensure!(spawn_child(&timed, &import)?.wait()?.success(), "the child cannot undo at all");
    let usual = start.elapsed();
    let (mut rng, mut interrupted) = (Rng::new(32), 0);
    for round in 0..MAX_ROUNDS {
        if round >= ROUNDS && interrupted > 0 {
            break;
        }
        let data = folder.path().join(format!("killed-{round}"));
        copy(&folder.path().join("data"), &data)?;
        let mut victim = spawn_child(&data, &import)?;
        // The random moment is the point of the test: anywhere between the start and the end of a usual run.
        std::thread::park_timeout(usual.mul_f64(f64::from(u32::try_from(rng.below(1_000))?) / 1_000.0));
        victim.kill()?;
        victim.wait()?;
        let core = TestCore::open(&data)?;
        let found = core.imports.get(&import)?.context("the import is gone")?;
        let reason = found.reason.clone().unwrap_or_default();
        if found.status == ImportStatus::Undone {
            ensure!(reason.contains("brings it back"), "round {round}: the undo was not completed: {reason}");
            interrupted += u64::from(reason.contains("by the next start"));
        } else {
            // The kill came before anything of the undo was written.
            undo_or_redo(&core, &import, UndoDirection::Undo)?;
        }
        ensure!(core.state()? == expected, "round {round}: the state differs after a kill");
    }
    ensure!(interrupted > 0, "no kill interrupted an undo");
    Ok(())
}
