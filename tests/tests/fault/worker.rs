//! The work of the process that is killed.

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::backup::create;
use satchel_pam::hash::ContentHash;
use satchel_store::{Batch, Change, ChangePosition, Revision, Store};
use satchel_tests::test_core::TestCore;
use serde_json::json;

/// Set in the child: the folder of the test, and the number of the round.
pub(crate) const FOLDER: &str = "SATCHEL_TEST_FAULT_FOLDER";
pub(crate) const ROUND: &str = "SATCHEL_TEST_FAULT_ROUND";
/// Number of threads that write records.
pub(crate) const WRITERS: usize = 8;
/// Number of threads that follow the feed.
const FOLLOWERS: usize = 2;

/// Not a separate test: it runs in the child process.
#[test]
fn child_that_is_killed() -> Result<()> {
    let (Some(folder), Ok(round)) = (std::env::var_os(FOLDER), std::env::var(ROUND)) else { return Ok(()) };
    Worker { folder: folder.into(), round: round.parse()? }.run()
}

/// Returns the log of the records that were acknowledged to one writer.
pub(crate) fn log_path(folder: &Path, writer: usize) -> PathBuf {
    folder.join(format!("acknowledged-{writer}"))
}

/// Returns the id of a writer's n-th record.
pub(crate) fn record_id(writer: usize, n: u64) -> String {
    format!("w{writer}-{n}")
}

/// Returns the id of the memory that a writer stores with its n-th record.
pub(crate) fn memory_id(writer: usize, n: u64) -> String {
    format!("m{writer}-{n}")
}

fn memory_change(writer: usize, n: u64) -> Result<Change> {
    let text = format!("Writer {writer} likes the number {n}");
    let memory = json!({
        "id": memory_id(writer, n), "type": "fact", "status": "active", "content": text,
        "content_hash": ContentHash::of(&text).to_string(),
        "temporal": {"created_at": "2026-01-02T03:04:05Z"}, "provenance": {"platform": "chatgpt"},
    });
    Ok(Change::Memory(Box::new(serde_json::from_value(memory)?)))
}

/// Returns the relation from a writer's n-th memory to the one before it; from the first memory to the second.
fn relation_change(writer: usize, n: u64) -> Result<Change> {
    let ends = [n, n.checked_sub(1).unwrap_or(1)].map(|n| memory_id(writer, n));
    let relation = json!({
        "id": record_id(writer, n), "from": ends[0], "to": ends[1], "type": "supports",
        "created_at": "2026-01-02T03:04:05Z",
    });
    Ok(Change::Relation(serde_json::from_value(relation)?))
}

/// Returns the bytes of the attachment that belongs to a writer's n-th record.
pub(crate) fn attachment_bytes(writer: usize, n: u64) -> Vec<u8> {
    record_id(writer, n).repeat(400).into_bytes()
}

struct Worker {
    folder: PathBuf,
    round: u64,
}

impl Worker {
    fn run(&self) -> Result<()> {
        let core = TestCore::open(&self.folder.join("data"))?;
        File::create(self.folder.join(format!("opened-{}", self.round)))?;
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let store = &core.store;
                scope.spawn(move || exit_on_error(self.write(store, writer)));
            }
            for _ in 0..FOLLOWERS {
                scope.spawn(|| exit_on_error(follow_feed(&core.store)));
            }
            scope.spawn(|| exit_on_error(core.import(&self.folder.join("export")).map(drop)));
            scope.spawn(|| exit_on_error(self.export(&core)));
            scope.spawn(|| exit_on_error(self.back_up(&core.store)));
        });
        Ok(())
    }

    /// Stores one record after the other and appends each to the log, with an fsync, before the next one.
    fn write(&self, store: &Store, writer: usize) -> Result<()> {
        let path = log_path(&self.folder, writer);
        let mut n = read_log(&path)?.len() as u64;
        // The record after the last acknowledged one may or may not be stored; writing it again must give the same
        // result.
        let mut log = OpenOptions::new().create(true).append(true).open(&path)?;
        loop {
            if n.is_multiple_of(5) {
                store.blob_put(&mut attachment_bytes(writer, n).as_slice())?;
            }
            let changes = vec![memory_change(writer, n)?, relation_change(writer, n)?];
            let revision = store.commit(Batch { changes, ..Batch::default() })?;
            // One write for each line: a kill leaves either the complete line or one without a newline.
            log.write_all(format!("{n} {}\n", revision.get()).as_bytes())?;
            log.sync_data()?;
            n += 1;
        }
    }

    fn export(&self, core: &TestCore) -> Result<()> {
        for n in 0.. {
            let kind = if n % 2 == 0 { ".zip" } else { "" };
            let name = format!("bundle-{}-{n}{kind}", self.round);
            core.export(&self.folder.join("out").join(name))?;
        }
        Ok(())
    }

    fn back_up(&self, store: &Store) -> Result<()> {
        for n in 0.. {
            let output = self.folder.join("out").join(format!("backup-{}-{n}", self.round));
            create::create(store, &self.folder.join("data"), &output, 1, &mut |_| true)?;
        }
        Ok(())
    }
}

/// Ends the process if a thread fails, because the parent expects the child to live until the kill.
fn exit_on_error(outcome: Result<()>) {
    if let Err(error) = outcome {
        // A closed standard error does not matter: the exit code reports the failure.
        drop(writeln!(std::io::stderr(), "{error:?}"));
        std::process::exit(3);
    }
}

/// Follows the feed and checks that revisions arrive complete, in order and without a gap.
fn follow_feed(store: &Store) -> Result<()> {
    let mut after = ChangePosition::after(Revision::ZERO);
    let mut last = 0;
    loop {
        let changes = store.changes_since(after, 100)?;
        for change in &changes {
            let revision = change.position.revision.get();
            ensure!(revision == last || revision == last + 1, "the feed jumps from {last} to {revision}");
            last = revision;
        }
        match changes.last() {
            Some(change) => after = change.position,
            None => std::thread::yield_now(),
        }
    }
}

/// Reads a log: number and revision of each record. A last line without a newline was not written completely and is
/// removed.
pub(crate) fn read_log(path: &Path) -> Result<Vec<(u64, u64)>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    if whole.len() + 1 < text.len() {
        fs::write(path, format!("{whole}\n"))?;
    }
    let parse = |line: &str| -> Result<(u64, u64)> {
        let (n, revision) = line.split_once(' ').context("a line of the log")?;
        Ok((n.parse()?, revision.parse()?))
    };
    whole.lines().map(parse).collect()
}
