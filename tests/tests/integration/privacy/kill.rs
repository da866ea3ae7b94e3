//! An encrypted export that is killed leaves nothing that can be read.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::export::ExportRequest;
use satchel_source::envelope::ExportEncryption;
use satchel_tests::test_core::{TestCore, demo_folder, full_export};

/// Set in the child: its folder, the recipient of its export, the failpoint at which it dies, and how many times it passes
/// that failpoint before.
const FOLDER: &str = "SATCHEL_TEST_SEALED_FOLDER";
const RECIPIENT: &str = "SATCHEL_TEST_SEALED_RECIPIENT";
const FAILPOINT: &str = "SATCHEL_TEST_SEALED_PLACE";
const ARRIVALS_BEFORE: &str = "SATCHEL_TEST_SEALED_TIME";
/// Texts that occur in every bundle and in no store.
const PLAINTEXT_MARKERS: [&str; 3] = ["memory-store.json", "portable-ai-memory", "satchel-manifest"];

fn export(folder: &Path, lock: Option<ExportEncryption>, name: &str) -> Result<()> {
    let core = TestCore::open(&folder.join("data"))?;
    let output = folder.join("out").join(name);
    core.export_with(&ExportRequest { lock, attachments: true, ..full_export(output) })?;
    Ok(())
}

/// Not a separate test: it runs in the child process of the test below.
#[test]
fn child_killed_during_export() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return Ok(()) };
    let (failpoint, arrival) = (std::env::var(FAILPOINT)?, std::env::var(ARRIVALS_BEFORE)?.parse::<u64>()?);
    let arrivals = AtomicU64::new(0);
    ensure!(satchel_failpoints::listen(move |reached| {
        if reached == failpoint && arrivals.fetch_add(1, Ordering::Relaxed) == arrival {
            let this = rustix::process::getpid();
            rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap_or_default();
        }
    }));
    export(&folder, ExportEncryption::parse(&[std::env::var(RECIPIENT)?], None)?, "bundle.zip.age")
}

fn run_child_until_killed(folder: &Path, recipient: &str, failpoint: &str, arrival: u64) -> Result<()> {
    let arguments = ["--exact", "privacy::kill::child_killed_during_export", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(FOLDER, folder).env(RECIPIENT, recipient);
    command
        .env(FAILPOINT, failpoint)
        .env(ARRIVALS_BEFORE, arrival.to_string())
        .env("TMPDIR", folder.join("tmp"));
    let output = command.stdin(Stdio::null()).output()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.code().is_none(), "{failpoint}: the child was not killed: {stdout}");
    Ok(())
}

/// Returns the files in the output and the data directory that contain readable parts of a bundle.
fn find_plaintext(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for text in PLAINTEXT_MARKERS {
        for name in ["data", "out"] {
            found.extend(super::files_containing(&folder.join(name), text)?);
        }
    }
    Ok(found)
}

#[test]
fn an_export_killed_at_any_failpoint_leaves_nothing_readable() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    TestCore::open(&folder.join("data"))?.import(&demo_folder().join("chatgpt-export"))?;
    fs::create_dir(folder.join("tmp"))?;
    let recipient = age::x25519::Identity::generate().to_public().to_string();
    let failpoints = [
        ("export started", 0),
        ("export file written", 0),
        ("export file written", 3),
        ("export synced", 0),
        ("export placed", 0),
        ("export recorded", 0),
    ];
    for (failpoint, arrival) in failpoints {
        run_child_until_killed(folder, &recipient, failpoint, arrival)?;
        let left = super::files(&folder.join("out"))?;
        ensure!(left.len() == 1, "{failpoint}: {left:?}");
        // The state after the next start.
        drop(TestCore::open(&folder.join("data"))?);
        ensure!(find_plaintext(folder)?.is_empty(), "{failpoint}: {:?}", find_plaintext(folder)?);
        assert_eq!(fs::read_dir(folder.join("tmp"))?.count(), 0, "{failpoint}");
        fs::remove_file(left.first().context("one file")?)?;
    }
    // The same search finds an export that is not encrypted.
    export(folder, None, "bundle.zip")?;
    assert_eq!(find_plaintext(folder)?, [folder.join("out/bundle.zip"), folder.join("out/bundle.zip")]);
    Ok(())
}
