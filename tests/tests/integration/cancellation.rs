//! An import can be cancelled in any phase: it ends, leaves complete records behind, and a repeated import completes
//! it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    thread::{self, ThreadId},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    clock::{Clock, SystemClock},
    ingest::{
        ImportRequest, JobView, Phase, WatchedImport,
        receipt::{ImportRecord, ImportStatus},
    },
};
use satchel_source::Limits;
use satchel_tests::{
    generate,
    test_core::{ExportedState, TestCore},
};

/// Number of jobs to start before a test gives up on seeing one in its phase.
const MAX_ATTEMPTS: usize = 40;

/// Returns exports that take a while in every phase: many files to detect, many bytes to hash, many memories to derive.
fn slow_exports(folder: &Path) -> Result<Vec<(PathBuf, Vec<Phase>)>> {
    let (many, memories) = (folder.join("many"), folder.join("memories"));
    for number in 0..150 {
        let part = many.join(format!("part-{number:03}"));
        generate::chatgpt(&part, 2, number)?;
        fs::remove_file(part.join("user.json"))?;
        fs::write(part.join("notes.txt"), "not an export")?;
    }
    let large = folder.join("large");
    generate::chatgpt(&large, 4_000_000, 1)?;
    generate::memu(&memories, 3_000_000, 1)?;
    Ok(vec![
        (many, vec![Phase::Looking]),
        (large.join("conversations.json"), vec![Phase::Hashing, Phase::Reading]),
        (memories, vec![Phase::Settling]),
    ])
}

/// Imports `path` and cancels the job once it is seen in `phase`; returns none if it was never seen there.
fn cancel_in_phase(core: &TestCore, path: &Path, phase: Phase) -> Result<Option<Vec<ImportRecord>>> {
    // A source is hashed before it is read only if it may be a known one.
    let again = phase != Phase::Hashing;
    if !again {
        core.record_source_size(fs::metadata(path)?.len())?;
    }
    let request = ImportRequest {
        path: path.to_owned(),
        provider: None,
        plugin: None,
        again,
        dry_run: false,
        apply: None,
    };
    let job = core.imports.start(request)?;
    let mut view = core.imports.subscribe(job).context("the job")?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let reached = |view: &JobView| view.phase == phase || view.phase == Phase::Ended;
    let seen = runtime.block_on(view.wait_for(reached))?.phase == phase;
    let cancelled = seen && core.imports.cancel(&job.to_string());
    let ended = runtime.block_on(view.wait_for(|view| view.phase == Phase::Ended))?.clone();
    // A source that an earlier try imported completely is recognised after hashing; then the cancel came too late.
    let too_late = ended.imports.iter().any(|import| import.status == ImportStatus::Unchanged);
    Ok((cancelled && !too_late).then_some(ended.imports))
}

/// Checks that every record in `part` is identical in `whole`.
fn assert_complete_records(part: &ExportedState, complete: &ExportedState) {
    for (name, conversation) in &part.conversations {
        assert_eq!(Some(conversation), complete.conversations.get(name), "{name}");
    }
    let ids = |state: &ExportedState| -> Vec<String> {
        state.memories.iter().filter_map(|memory| Some(memory["id"].as_str()?.to_owned())).collect()
    };
    let all = ids(complete);
    assert!(ids(part).iter().all(|id| all.contains(id)), "a memory that the complete import does not have");
}

#[test]
fn an_import_cancelled_in_any_phase_leaves_complete_records_and_the_next_import_completes_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (at, (export, phases)) in slow_exports(folder.path())?.into_iter().enumerate() {
        let complete = TestCore::open(&folder.path().join(format!("whole-{at}")))?;
        complete.import(&export)?;
        let expected = complete.state()?;
        complete.close()?;
        for phase in phases {
            let core = TestCore::open(&folder.path().join(format!("{phase:?}")))?;
            let mut tries = 0;
            let imports = loop {
                tries += 1;
                ensure!(tries <= MAX_ATTEMPTS, "no job was seen in {phase:?}");
                if let Some(imports) = cancel_in_phase(&core, &export, phase)? {
                    break imports;
                }
            };
            // A cancel that arrives after everything was read may come too late.
            let fits = |import: &ImportRecord| match import.status {
                ImportStatus::Cancelled => true,
                ImportStatus::Completed | ImportStatus::CompletedWithSkips => phase == Phase::Settling,
                _ => false,
            };
            assert!(!imports.is_empty() && imports.iter().all(fits), "{phase:?}: {imports:?}");
            assert_complete_records(&core.state()?, &expected);
            core.import(&export)?;
            let completed = core.state()?;
            assert_eq!(completed.conversations, expected.conversations, "{phase:?}");
            assert_eq!(completed.memories.len(), expected.memories.len(), "{phase:?}");
            core.close()?;
        }
    }
    Ok(())
}

#[test]
fn a_cancelled_source_is_not_read_further() -> Result<()> {
    use satchel_source::CancelToken;
    use satchel_source::FileSet as _;
    use satchel_source::{Source, SourceError};
    use std::io::Read as _;
    let folder = tempfile::tempdir()?;
    generate::chatgpt(folder.path(), 1_000, 1)?;
    let (source, cancel) = (Source::at(folder.path())?, CancelToken::new());
    let bundle = source.open_cancellable(&Limits::default(), &cancel)?;
    let mut reader = bundle.open("conversations.json", 0)?;
    reader.read_exact(&mut [0; 16])?;
    cancel.cancel();
    assert!(reader.read(&mut [0; 16]).is_err(), "an open file is read on");
    assert!(bundle.open("user.json", 0)?.read(&mut [0; 16]).is_err(), "another file is read");
    let refused = source.open_cancellable(&Limits::default(), &cancel).err();
    assert!(matches!(refused, Some(SourceError::Cancelled { .. })), "{refused:?}");
    Ok(())
}

/// A clock that blocks every caller on a thread other than the test's, like a read from a network share that does not
/// answer.
#[derive(Default)]
struct BlockingClock {
    /// The thread that never blocks; if it is none, no thread blocks yet.
    test_thread: Mutex<Option<ThreadId>>,
    /// Whether the blocked callers may continue.
    released: Mutex<bool>,
    release_signal: Condvar,
    /// Dropped when a caller blocks, which disconnects the receiver of the test.
    blocked: Mutex<Option<mpsc::Sender<()>>>,
}

impl BlockingClock {
    fn lock<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self) {
        *Self::lock(&self.released) = true;
        self.release_signal.notify_all();
    }
}

impl Clock for BlockingClock {
    fn now_micros(&self) -> i64 {
        let test_thread = *Self::lock(&self.test_thread);
        if test_thread.is_some_and(|test_thread| test_thread != thread::current().id()) {
            // Disconnects the receiver, so that the test no longer waits for a message.
            drop(Self::lock(&self.blocked).take());
            let held = self.release_signal.wait_while(Self::lock(&self.released), |free| !*free);
            drop(held.unwrap_or_else(PoisonError::into_inner));
        }
        SystemClock.now_micros()
    }
}

#[test]
fn a_blocked_job_does_not_delay_the_shutdown() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (export, data) = (folder.path().join("export"), folder.path().join("data"));
    generate::chatgpt(&export, 100_000, 1)?;
    let (clock, (sender, receiver)) = (Arc::new(BlockingClock::default()), mpsc::channel());
    *BlockingClock::lock(&clock.blocked) = Some(sender);
    let core =
        TestCore::with_limits_and_clock(&data, Limits::default(), Arc::clone(&clock) as Arc<dyn Clock>)?;
    *BlockingClock::lock(&clock.test_thread) = Some(thread::current().id());
    let request = ImportRequest {
        path: export.clone(),
        provider: None,
        plugin: None,
        again: false,
        dry_run: false,
        apply: None,
    };
    let job = core.imports.start(request)?;
    let mut view = core.imports.subscribe(job).context("the job")?;
    assert!(receiver.recv().is_err(), "a message was sent");
    assert!(!core.imports.stop(Duration::from_millis(10)), "the shutdown waited for the blocked job");
    // The store is closed while the job hangs; the job writes nothing when it continues.
    core.store.close()?;
    clock.release();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(view.wait_for(|view| view.phase == Phase::Ended))?;
    drop((view, core.imports, core.exports));
    let core = TestCore::open(&data)?;
    assert_eq!(core.state()?.conversations.len(), 0);
    let imports = core.import(&export)?;
    assert!(imports.iter().all(|import| import.conversations.new > 0), "{imports:?}");
    core.close()
}

/// A watched file is left alone if a person cancelled its import. If the daemon's shutdown stopped it, it is due at the
/// next start.
#[test]
fn a_watched_folder_is_not_notified_of_imports_that_the_shutdown_cancelled() -> Result<()> {
    let folder = tempfile::tempdir()?;
    generate::chatgpt(folder.path(), 4_000_000, 1)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    for by_a_person in [true, false] {
        let core = TestCore::open(&folder.path().join(format!("data-{by_a_person}")))?;
        let (sender, receiver) = mpsc::channel();
        let watched = WatchedImport {
            root: folder.path().to_owned(),
            name: "conversations.json".into(),
            session: false,
            providers: Vec::new(),
        };
        let on_end = Box::new(move |view: &JobView, _| drop(sender.send(view.imports.clone())));
        let job = core.imports.start_watched(watched, on_end)?;
        let mut view = core.imports.subscribe(job).context("the job")?;
        let seen = runtime.block_on(view.wait_for(|view| view.phase != Phase::Waiting))?.phase;
        ensure!(seen != Phase::Ended, "the import ended before it was seen");
        if by_a_person {
            ensure!(core.imports.cancel(&job.to_string()), "the import cannot be cancelled");
        } else {
            ensure!(core.imports.stop(Duration::from_mins(1)), "the import does not stop");
        }
        let statuses: Vec<ImportStatus> = receiver.iter().flatten().map(|import| import.status).collect();
        let expected: &[ImportStatus] = if by_a_person { &[ImportStatus::Cancelled] } else { &[] };
        assert_eq!(statuses, expected);
        core.close()?;
    }
    Ok(())
}
