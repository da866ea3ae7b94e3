//! An encrypted export that is killed leaves nothing that can be read.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::export::ExportRequest;
use satchel_source::envelope::Lock;
use satchel_tests::archive::{Archive, demo, whole};

/// Set in the child: its folder, the recipient of its export, the place at which it dies, and how many times it passes
/// that place before.
const FOLDER: &str = "SATCHEL_TEST_SEALED_FOLDER";
const RECIPIENT: &str = "SATCHEL_TEST_SEALED_RECIPIENT";
const PLACE: &str = "SATCHEL_TEST_SEALED_PLACE";
const TIME: &str = "SATCHEL_TEST_SEALED_TIME";
/// Texts that occur in every bundle and in no store.
const PLAIN: [&str; 3] = ["memory-store.json", "portable-ai-memory", "satchel-manifest"];

fn export(folder: &Path, lock: Option<Lock>, name: &str) -> Result<()> {
    let archive = Archive::open(&folder.join("data"))?;
    let output = folder.join("out").join(name);
    archive.export_by(&ExportRequest { lock, attachments: true, ..whole(output) })?;
    Ok(())
}

/// Not a separate test: it runs in the child process of the test below.
#[test]
fn child_that_dies_while_it_exports() -> Result<()> {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return Ok(()) };
    let (place, time) = (std::env::var(PLACE)?, std::env::var(TIME)?.parse::<u64>()?);
    let came = AtomicU64::new(0);
    ensure!(satchel_failpoints::listen(move |reached| {
        if reached == place && came.fetch_add(1, Ordering::Relaxed) == time {
            let this = rustix::process::getpid();
            rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap_or_default();
        }
    }));
    export(&folder, Lock::parse(&[std::env::var(RECIPIENT)?], None)?, "bundle.zip.age")
}

fn killed(folder: &Path, recipient: &str, place: &str, time: u64) -> Result<()> {
    let arguments = ["--exact", "killed::child_that_dies_while_it_exports", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(FOLDER, folder).env(RECIPIENT, recipient);
    command.env(PLACE, place).env(TIME, time.to_string()).env("TMPDIR", folder.join("tmp"));
    let output = command.stdin(Stdio::null()).output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.code().is_none(), "{place}: it was not killed: {told}");
    Ok(())
}

/// Returns the files in the output and the data directory that contain readable parts of a bundle.
fn plain(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for text in PLAIN {
        for place in ["data", "out"] {
            found.extend(super::holding(&folder.join(place), text)?);
        }
    }
    Ok(found)
}

#[test]
fn an_export_killed_at_any_place_leaves_nothing_readable() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    Archive::open(&folder.join("data"))?.import(&demo().join("chatgpt-export"))?;
    fs::create_dir(folder.join("tmp"))?;
    let recipient = age::x25519::Identity::generate().to_public().to_string();
    let places = [
        ("export begun", 0),
        ("export file written", 0),
        ("export file written", 3),
        ("export synced", 0),
        ("export placed", 0),
        ("export recorded", 0),
    ];
    for (place, time) in places {
        killed(folder, &recipient, place, time)?;
        let left = super::files(&folder.join("out"))?;
        ensure!(left.len() == 1, "{place}: {left:?}");
        // The state after the next start.
        drop(Archive::open(&folder.join("data"))?);
        ensure!(plain(folder)?.is_empty(), "{place}: {:?}", plain(folder)?);
        assert_eq!(fs::read_dir(folder.join("tmp"))?.count(), 0, "{place}");
        fs::remove_file(left.first().context("one file")?)?;
    }
    // The same search finds an export that is not encrypted.
    export(folder, None, "bundle.zip")?;
    assert_eq!(plain(folder)?, [folder.join("out/bundle.zip"), folder.join("out/bundle.zip")]);
    Ok(())
}
