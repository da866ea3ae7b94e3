//! A process killed during an import loses nothing that it had confirmed, and a repeated import completes the work.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use satchel_core::ingest::receipt::ImportStatus;
use satchel_tests::{
    generate::{self, Rng},
    test_core::{ExportedState, TestCore, only_import},
};

/// Set in the child: the data directory, and the export to import into it.
const DATA: &str = "SATCHEL_TEST_KILL_DATA";
const EXPORT: &str = "SATCHEL_TEST_KILL_EXPORT";
const ROUNDS: u64 = 20;

/// Not a separate test: it runs in the child process of the test below.
#[test]
fn child_that_imports() -> Result<()> {
    if let (Some(data), Some(export)) = (std::env::var_os(DATA), std::env::var_os(EXPORT)) {
        TestCore::open(Path::new(&data))?.import(Path::new(&export))?;
    }
    Ok(())
}

fn spawn_child(data: &Path, export: &Path) -> Result<std::process::Child> {
    let arguments = ["--exact", "child_that_imports", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(DATA, data).env(EXPORT, export).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command.spawn()?)
}

fn import_uninterrupted(folder: &Path, export: &Path) -> Result<(ExportedState, Duration)> {
    let data = folder.join("whole");
    // The first run fills the cache of compiled importers, the second measures the time of an import.
    ensure!(spawn_child(&data, export)?.wait()?.success(), "the child cannot import at all");
    let start = Instant::now();
    ensure!(spawn_child(&folder.join("timed"), export)?.wait()?.success(), "the child cannot import at all");
    Ok((TestCore::open(&data)?.state()?, start.elapsed()))
}

#[test]
fn an_import_killed_at_any_moment_is_completed_by_importing_again() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let export: PathBuf = folder.path().join("export");
    generate::chatgpt(&export, 5_000_000, 21)?;
    let (expected, usual) = import_uninterrupted(folder.path(), &export)?;
    let mut rng = Rng::new(22);
    let mut interrupted = 0;
    for round in 0..ROUNDS {
        let data = folder.path().join(format!("killed-{round}"));
        let mut victim = spawn_child(&data, &export)?;
        // The random moment is the point of the test: anywhere between the start and the end of a usual run.
        let moment = usual.mul_f64(f64::from(u32::try_from(rng.below(1_000))?) / 1_000.0);
        std::thread::park_timeout(moment);
        victim.kill()?;
        victim.wait()?;
        let core = TestCore::open(&data)?;
        let left = core.imports.list(None, 10)?.items;
        interrupted += left.iter().filter(|import| import.status == ImportStatus::Failed).count();
        ensure!(
            left.iter().all(|import| import.status != ImportStatus::Running),
            "round {round}: an import is listed as running"
        );
        let confirmed = core.store.revision();
        let import = only_import(core.import(&export)?)?;
        ensure!(core.store.revision() >= confirmed, "round {round}: the revision decreased");
        ensure!(
            matches!(
                import.status,
                ImportStatus::Completed | ImportStatus::CompletedWithSkips | ImportStatus::Unchanged
            ),
            "round {round}: {:?} {:?}",
            import.status,
            import.reason
        );
        ensure!(core.state()? == expected, "round {round}: the state differs after a kill");
    }
    ensure!(interrupted > 0, "no kill interrupted an import");
    Ok(())
}

#[test]
fn the_error_for_a_second_process_names_the_lock_holder() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let _held = TestCore::open(&data)?;
    let refused = TestCore::open(&data).err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(
        refused.contains(&std::process::id().to_string()),
        "the message does not name the holder: {refused:?}"
    );
    Ok(())
}
