//! Files that cannot be imported as they are: damaged, unreadable, or missed because the system lost events.

#![expect(clippy::print_stderr, reason = "a test that cannot run says so")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    time::Instant,
};

use anyhow::Result;
use satchel_tests::nobody;

use crate::play::{LOOK, PATIENCE, Play, at_rest, export, zipped};

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_shown_and_imported_when_it_is_mended() -> Result<()> {
    let play = Play::start().await?;
    let bytes = zipped(1)?;
    let mut damaged = bytes.clone();
    // Damages the compressed bytes; the directory is intact.
    damaged[60] ^= 0xff;
    fs::write(play.at("export.zip"), damaged)?;
    let source = play.until(|source| source.failed_total == 1 && at_rest(source)).await?;
    assert!(!source.failed[0].reason.is_empty());
    let problems = play.problems().await?;
    assert!(problems.iter().any(|one| one.reason == "SOURCE_FAILED" && one.message.contains("export.zip")));
    fs::write(play.at("export.zip"), bytes)?;
    play.imported(1).await?;
    assert_eq!(play.problems().await?, []);
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_a_problem_until_it_may() -> Result<()> {
    if nobody::superuser() {
        return nobody::runs("troubles::what_may_not_be_read_is_a_problem_until_it_may");
    }
    let play = Play::start().await?;
    fs::write(play.at("closed.json"), export(1))?;
    fs::set_permissions(play.at("closed.json"), Permissions::from_mode(0o000))?;
    fs::write(play.at("open.json"), export(2))?;
    play.until(|source| source.imported == 1).await?;
    let end = Instant::now() + PATIENCE;
    while !play.problems().await?.iter().any(|problem| problem.message.contains("closed.json")) {
        assert!(Instant::now() < end, "{:?}", play.source().await?);
        tokio::time::sleep(LOOK).await;
    }
    fs::set_permissions(play.at("closed.json"), Permissions::from_mode(0o600))?;
    play.imported(2).await?;
    assert_eq!(play.problems().await?, []);
    play.daemon.stop().await?;
    Ok(())
}

/// The number of events that the system queues for a watcher; a new watcher uses the value at its creation.
const QUEUE: &str = "/proc/sys/fs/inotify/max_queued_events";

/// A changed system setting, restored at the end.
struct Setting(String);

impl Setting {
    fn to(value: u32) -> std::io::Result<Self> {
        let before = fs::read_to_string(QUEUE)?;
        fs::write(QUEUE, value.to_string())?;
        Ok(Self(before))
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if let Err(error) = fs::write(QUEUE, self.0.trim()) {
            eprintln!("{QUEUE} could not be set back to {}: {error}", self.0.trim());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_system_loses_count_everything_is_looked_at() -> Result<()> {
    let setting = match Setting::to(8) {
        Ok(setting) => setting,
        Err(error) => {
            eprintln!(
                "not run: {QUEUE} cannot be lowered ({error}); root can. `watch::events` has it with a made-up event"
            );
            return Ok(());
        }
    };
    let play = Play::start().await?;
    play.imported(0).await?;
    drop(setting);
    let end = Instant::now() + PATIENCE;
    let mut landed = 0;
    while play.source().await?.overflows == 0 {
        assert!(Instant::now() < end, "the system lost nothing in {landed} arrivals");
        let from = landed;
        landed += 40;
        flood(&play.downloads, from..landed)?;
    }
    play.imported(landed as u64).await?;
    play.completed(landed).await?;
    play.daemon.stop().await?;
    Ok(())
}

/// Writes exports faster than their events can be read: each file is created, written in small pieces, closed and
/// renamed.
fn flood(folder: &Path, numbers: std::ops::Range<usize>) -> Result<()> {
    use std::io::Write;
    for number in numbers {
        let (bytes, on_the_way) = (export(number), folder.join(format!("{number}.part")));
        let mut file = fs::File::create(&on_the_way)?;
        bytes.chunks(4).try_for_each(|piece| file.write_all(piece))?;
        fs::rename(on_the_way, folder.join(format!("conversations-{number:04}.json")))?;
    }
    Ok(())
}
