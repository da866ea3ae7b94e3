//! `kill -9` at random moments, repeatedly on one data directory. Everything that was acknowledged stays complete.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify;
use satchel_core::{backup::restore, ingest::receipt::ImportStatus, vault::UnlockOptions};
use satchel_pam::hash::Sha256Digest;
use satchel_store::{ChangePosition, Health, OpenOptions, Revision, Store};
use satchel_tests::{
    generate::{self, GeneratedCounts, Rng},
    test_core::{TestCore, only_import},
};

use crate::{
    rounds,
    worker::{FOLDER, ROUND, WRITERS, attachment_bytes, log_path, memory_id, read_log, record_id},
};

/// A child that is not ready after this time counts as hanging.
const START_TIMEOUT: Duration = Duration::from_mins(2);
/// Latest moment of a kill, in milliseconds after the store was opened.
const LATEST_KILL_MILLIS: u64 = 2_000;

#[test]
fn acknowledged_writes_survive_every_kill() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    fs::create_dir(folder.join("out"))?;
    let counts = generate::chatgpt(&folder.join("export"), 3_000_000, 31)?;
    let mut rng = Rng::new(32);
    let mut seen = Observed::default();
    let kills = rounds(6);
    for round in 0..kills {
        kill_once(folder, round, rng.below(LATEST_KILL_MILLIS))?;
        seen.check_store(folder, round).with_context(|| format!("round {round}"))?;
        // A full export takes longer each time.
        if round.is_multiple_of(3) || round + 1 == kills {
            assert_exported(folder).with_context(|| format!("round {round}"))?;
        }
        check_outputs(folder).with_context(|| format!("round {round}"))?;
    }
    ensure!(seen.records > kills * 10, "only {} records were written in {kills} rounds", seen.records);
    ensure!(seen.outputs > 0 || kills < 3, "no export or backup was ever finished");
    assert_import_completes(folder, counts)
}

/// Runs the child and kills it `millis` milliseconds after it has opened the store.
fn kill_once(folder: &Path, round: u64, millis: u64) -> Result<()> {
    let arguments = ["--exact", "worker::child_that_is_killed", "--test-threads", "1"];
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(FOLDER, folder).env(ROUND, round.to_string());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let began = Instant::now();
    let opened = folder.join(format!("opened-{round}"));
    while !opened.exists() && began.elapsed() < START_TIMEOUT && child.try_wait()?.is_none() {
        std::thread::park_timeout(Duration::from_millis(2));
    }
    // The random moment is the point of the test.
    std::thread::park_timeout(Duration::from_millis(millis));
    let ended = child.try_wait()?;
    child.kill()?;
    let output = child.wait_with_output()?;
    ensure!(
        ended.is_none(),
        "the child ended before it was killed: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// The observations of earlier rounds.
#[derive(Default)]
struct Observed {
    records: u64,
    outputs: u64,
    revision: u64,
    /// Id and version of every record that was ever shown.
    versions: BTreeSet<(String, u64)>,
}

impl Observed {
    fn check_store(&mut self, folder: &Path, round: u64) -> Result<()> {
        let store = Store::open(&folder.join("data"), OpenOptions::default(), &mut |_| {})?;
        ensure!(store.health() == Health::Good, "{:?}", store.health());
        ensure!(store.revision().get() >= self.revision, "the revision decreased");
        self.revision = store.revision().get();
        self.check_acknowledged(folder, &store)?;
        self.check_feed(&store)?;
        let report = store.check(true, &mut |_| {})?;
        ensure!(report.clean(), "{report:?}");
        let digest = store.state_digest();
        store.close()?;
        if round.is_multiple_of(3) {
            let options = OpenOptions { rebuild: true, ..OpenOptions::default() };
            let rebuilt = Store::open(&folder.join("data"), options, &mut |_| {})?;
            ensure!(rebuilt.state_digest() == digest, "the rebuilt state differs");
            rebuilt.close()?;
        }
        for entry in fs::read_dir(folder.join("out"))? {
            // A name that begins with a dot belongs to an unfinished file.
            self.outputs += u64::from(!entry?.file_name().to_string_lossy().starts_with('.'));
        }
        Ok(())
    }

    /// Checks that every line of the logs is in the store with its attachment, and at most one unacknowledged record of
    /// each writer.
    fn check_acknowledged(&mut self, folder: &Path, store: &Store) -> Result<()> {
        let at = store.revision();
        let mut listed = BTreeSet::new();
        let mut after = None;
        loop {
            let page = store.relations(after.as_ref(), 500, at)?;
            let ids = page.items.into_iter().map(|record| record.relation.id);
            // The import adds relations too.
            listed.extend(ids.filter(|id| id.starts_with('w')));
            let Some(next) = page.next else { break };
            after = Some(next);
        }
        let mut logged = 0;
        for writer in 0..WRITERS {
            let log = read_log(&log_path(folder, writer))?;
            for (n, revision) in &log {
                let id = record_id(writer, *n);
                let record = store.relation(&id, None)?.with_context(|| format!("{id} was lost"))?;
                ensure!(record.revision.get() >= *revision && listed.contains(&id), "{id} has changed");
                if n.is_multiple_of(5) {
                    let sha256 = Sha256Digest::of(&attachment_bytes(writer, *n));
                    ensure!(store.blob_open(sha256.as_bytes())?.is_some(), "the attachment of {id} was lost");
                }
            }
            logged += log.len();
            let next = log.len() as u64;
            let more = (next..next + 3).filter(|n| listed.contains(&record_id(writer, *n))).count();
            ensure!(more <= 1, "writer {writer} has {more} unacknowledged records");
            logged += more;
        }
        ensure!(listed.len() == logged, "{} records, {logged} in the logs", listed.len());
        self.records = logged as u64;
        Ok(())
    }

    /// Checks that every version ever seen in the feed is still there, and that the feed has no gap.
    fn check_feed(&mut self, store: &Store) -> Result<()> {
        let changes = store.changes_since(ChangePosition::after(Revision::ZERO), usize::MAX)?;
        let mut last = 0;
        for change in &changes {
            let revision = change.position.revision.get();
            ensure!(revision == last || revision == last + 1, "the feed jumps from {last} to {revision}");
            last = revision;
        }
        ensure!(last == store.revision().get(), "the feed ends at {last}");
        let now: BTreeSet<_> =
            changes.into_iter().map(|change| (change.id, change.position.revision.get())).collect();
        ensure!(
            self.versions.is_subset(&now),
            "versions disappeared: {:?}",
            self.versions.difference(&now).next()
        );
        self.versions = now;
        Ok(())
    }
}

/// Checks that everything acknowledged is in the next full export.
fn assert_exported(folder: &Path) -> Result<()> {
    let core = TestCore::open(&folder.join("data"))?;
    let state = core.state()?;
    core.close()?;
    let ids = |records: &[serde_json::Value]| -> BTreeSet<String> {
        records.iter().filter_map(|record| record["id"].as_str().map(str::to_owned)).collect()
    };
    let (memories, relations) = (ids(&state.memories), ids(&state.relations));
    for writer in 0..WRITERS {
        for (n, _) in read_log(&log_path(folder, writer))? {
            let (memory, relation) = (memory_id(writer, n), record_id(writer, n));
            ensure!(memories.contains(&memory), "{memory} is not in the next full export");
            // The first relation points to a memory that may not exist yet.
            ensure!(n == 0 || relations.contains(&relation), "{relation} is not in the next full export");
        }
    }
    Ok(())
}

/// Checks that every file with its final name is complete: exports verify, and backups restore to the digest that they
/// name. Checked files are removed.
fn check_outputs(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder.join("out"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("bundle-") {
            let options = verify::VerifyOptions { strict: true, ..verify::VerifyOptions::default() };
            let report = verify::path(&path, &options)?;
            ensure!(report.valid, "{name}: {:?}", report.issues);
        } else if name.starts_with("backup-") {
            let restored = folder.join("restored");
            restore::restore(&path, &restored, false, &UnlockOptions::default(), &mut |_| true)
                .with_context(|| name.clone())?;
            fs::remove_dir_all(restored)?;
        } else {
            ensure!(name.starts_with('.'), "{name} is neither complete nor hidden");
        }
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    Ok(())
}

/// Checks that one more import completes the one that was killed repeatedly, with exactly the generated number of
/// conversations, and that further imports change nothing.
fn assert_import_completes(folder: &Path, counts: GeneratedCounts) -> Result<()> {
    let core = TestCore::open(&folder.join("data"))?;
    let import = only_import(core.import(&folder.join("export"))?)?;
    let done = [ImportStatus::Completed, ImportStatus::CompletedWithSkips, ImportStatus::Unchanged];
    ensure!(done.contains(&import.status), "{:?} {:?}", import.status, import.reason);
    let stats = core.store.stats()?;
    ensure!(stats.conversations == counts.conversations, "{} of {counts:?}", stats.conversations);
    let (revision, digest) = (core.store.revision(), core.store.state_digest());
    let again = only_import(core.import(&folder.join("export"))?)?;
    ensure!(again.status == ImportStatus::Unchanged, "{:?}", again.status);
    let forced = only_import(core.import_again(&folder.join("export"))?)?;
    ensure!(done.contains(&forced.status), "{:?}", forced.status);
    ensure!(
        (core.store.revision(), core.store.state_digest()) == (revision, digest),
        "a repeated import changed the store"
    );
    core.close()
}
