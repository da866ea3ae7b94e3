//! Files that cannot be imported as they are: damaged, unreadable, or missed because the system lost events.

#![expect(clippy::print_stderr, reason = "a skipped test prints the reason")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    time::Instant,
};

use anyhow::Result;
use satchel_tests::unprivileged;

use crate::watch::fixture::{POLL_INTERVAL, WAIT_TIMEOUT, WatchFixture, chatgpt_file, chatgpt_zip, idle};

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_reported_and_imported_once_repaired() -> Result<()> {
    let fixture = WatchFixture::start().await?;
    let bytes = chatgpt_zip(1)?;
    let mut damaged = bytes.clone();
    // Damages the compressed bytes; the directory is intact.
    damaged[60] ^= 0xff;
    fs::write(fixture.path("export.zip"), damaged)?;
    let source = fixture.wait_until(|source| source.failed_total == 1 && idle(source)).await?;
    assert!(!source.failed[0].reason.is_empty());
    let problems = fixture.problems().await?;
    assert!(problems.iter().any(|one| one.reason == "SOURCE_FAILED" && one.message.contains("export.zip")));
    fs::write(fixture.path("export.zip"), bytes)?;
    fixture.wait_for_imported(1).await?;
    assert_eq!(fixture.problems().await?, []);
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_file_is_a_problem_until_it_is_readable() -> Result<()> {
    if unprivileged::is_root() {
        return unprivileged::run_test_as_nobody(
            "watch::problems::an_unreadable_file_is_a_problem_until_it_is_readable",
        );
    }
    let fixture = WatchFixture::start().await?;
    fs::write(fixture.path("closed.json"), chatgpt_file(1))?;
    fs::set_permissions(fixture.path("closed.json"), Permissions::from_mode(0o000))?;
    fs::write(fixture.path("open.json"), chatgpt_file(2))?;
    fixture.wait_until(|source| source.imported == 1).await?;
    let end = Instant::now() + WAIT_TIMEOUT;
    while !fixture.problems().await?.iter().any(|problem| problem.message.contains("closed.json")) {
        assert!(Instant::now() < end, "{:?}", fixture.source().await?);
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    fs::set_permissions(fixture.path("closed.json"), Permissions::from_mode(0o600))?;
    fixture.wait_for_imported(2).await?;
    assert_eq!(fixture.problems().await?, []);
    fixture.daemon.stop().await?;
    Ok(())
}

/// The number of events that the system queues for a watcher; a new watcher uses the value at its creation.
const QUEUE_LIMIT_FILE: &str = "/proc/sys/fs/inotify/max_queued_events";

/// A changed system setting, restored at the end.
struct QueueLimitOverride(String);

impl QueueLimitOverride {
    fn set(value: u32) -> std::io::Result<Self> {
        let before = fs::read_to_string(QUEUE_LIMIT_FILE)?;
        fs::write(QUEUE_LIMIT_FILE, value.to_string())?;
        Ok(Self(before))
    }
}

impl Drop for QueueLimitOverride {
    fn drop(&mut self) {
        if let Err(error) = fs::write(QUEUE_LIMIT_FILE, self.0.trim()) {
            eprintln!("{QUEUE_LIMIT_FILE} could not be restored to {}: {error}", self.0.trim());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_events_cause_a_full_rescan() -> Result<()> {
    let setting = match QueueLimitOverride::set(8) {
        Ok(setting) => setting,
        Err(error) => {
            eprintln!(
                "not run: {QUEUE_LIMIT_FILE} cannot be lowered ({error}); root can. `watch::events` tests the same with a simulated event"
            );
            return Ok(());
        }
    };
    let fixture = WatchFixture::start().await?;
    fixture.wait_for_imported(0).await?;
    drop(setting);
    let end = Instant::now() + WAIT_TIMEOUT;
    let mut written = 0;
    while fixture.source().await?.overflows == 0 {
        assert!(Instant::now() < end, "no event was lost in {written} arrivals");
        let from = written;
        written += 40;
        write_many_exports(&fixture.downloads, from..written)?;
    }
    fixture.wait_for_imported(written as u64).await?;
    fixture.assert_completed(written).await?;
    fixture.daemon.stop().await?;
    Ok(())
}

/// Writes exports faster than their events can be read: each file is created, written in small pieces, closed and
/// renamed.
fn write_many_exports(folder: &Path, numbers: std::ops::Range<usize>) -> Result<()> {
    use std::io::Write;
    for number in numbers {
        let (bytes, on_the_way) = (chatgpt_file(number), folder.join(format!("{number}.part")));
        let mut file = fs::File::create(&on_the_way)?;
        bytes.chunks(4).try_for_each(|piece| file.write_all(piece))?;
        fs::rename(on_the_way, folder.join(format!("conversations-{number:04}.json")))?;
    }
    Ok(())
}
