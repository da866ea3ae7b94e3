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
    archive::{Archive, State},
    generate,
};

/// Number of jobs to start before a test gives up on seeing one in its phase.
const TRIES: usize = 40;

/// Returns exports that take a while in every phase: many files to detect, many bytes to hash, many memories to derive.
fn exports(folder: &Path) -> Result<Vec<(PathBuf, Vec<Phase>)>> {
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
fn stopped(archive: &Archive, path: &Path, phase: Phase) -> Result<Option<Vec<ImportRecord>>> {
    // A source is hashed before it is read only if it may be a known one.
    let again = phase != Phase::Hashing;
    if !again {
        archive.note_size(fs::metadata(path)?.len())?;
    }
    let request = ImportRequest { path: path.to_owned(), provider: None, again, dry_run: false, apply: None };
    let job = archive.imports.start(request)?;
    let mut view = archive.imports.subscribe(job).context("the job")?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let met = |view: &JobView| view.phase == phase || view.phase == Phase::Ended;
    let seen = runtime.block_on(view.wait_for(met))?.phase == phase;
    let asked = seen && archive.imports.cancel(&job.to_string());
    let ended = runtime.block_on(view.wait_for(|view| view.phase == Phase::Ended))?.clone();
    // A source that an earlier try imported completely is recognised after hashing; then the cancel came too late.
    let late = ended.imports.iter().any(|import| import.status == ImportStatus::Unchanged);
    Ok((asked && !late).then_some(ended.imports))
}

/// Checks that every record in `part` is identical in `whole`.
fn whole_records(part: &State, whole: &State) {
    for (name, conversation) in &part.conversations {
        assert_eq!(Some(conversation), whole.conversations.get(name), "{name}");
    }
    let ids = |state: &State| -> Vec<String> {
        state.memories.iter().filter_map(|memory| Some(memory["id"].as_str()?.to_owned())).collect()
    };
    let all = ids(whole);
    assert!(ids(part).iter().all(|id| all.contains(id)), "a memory of nowhere");
}

#[test]
fn an_import_stopped_in_any_phase_leaves_whole_records_and_is_completed_by_the_next() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (at, (export, phases)) in exports(folder.path())?.into_iter().enumerate() {
        let whole = Archive::open(&folder.path().join(format!("whole-{at}")))?;
        whole.import(&export)?;
        let expected = whole.state()?;
        whole.close()?;
        for phase in phases {
            let archive = Archive::open(&folder.path().join(format!("{phase:?}")))?;
            let mut tries = 0;
            let imports = loop {
                tries += 1;
                ensure!(tries <= TRIES, "no job was met in {phase:?}");
                if let Some(imports) = stopped(&archive, &export, phase)? {
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
            whole_records(&archive.state()?, &expected);
            archive.import(&export)?;
            let completed = archive.state()?;
            assert_eq!(completed.conversations, expected.conversations, "{phase:?}");
            assert_eq!(completed.memories.len(), expected.memories.len(), "{phase:?}");
            archive.close()?;
        }
    }
    Ok(())
}

#[test]
fn a_source_that_is_stopped_is_read_no_further() -> Result<()> {
    use satchel_source::CancelToken;
    use satchel_source::Files as _;
    use satchel_source::{Source, SourceError};
    use std::io::Read as _;
    let folder = tempfile::tempdir()?;
    generate::chatgpt(folder.path(), 1_000, 1)?;
    let (source, cancel) = (Source::at(folder.path())?, CancelToken::new());
    let bundle = source.open_until(&Limits::default(), &cancel)?;
    let mut reader = bundle.open("conversations.json", 0)?;
    reader.read_exact(&mut [0; 16])?;
    cancel.cancel();
    assert!(reader.read(&mut [0; 16]).is_err(), "an open file is read on");
    assert!(bundle.open("user.json", 0)?.read(&mut [0; 16]).is_err(), "another file is read");
    let refused = source.open_until(&Limits::default(), &cancel).err();
    assert!(matches!(refused, Some(SourceError::Stopped { .. })), "{refused:?}");
    Ok(())
}

/// A clock that blocks every caller on a thread other than the test's, like a read from a network share that does not
/// answer.
#[derive(Default)]
struct Hanging {
    /// The thread that never blocks; if it is none, no thread blocks yet.
    own: Mutex<Option<ThreadId>>,
    /// Whether the blocked callers may continue.
    free: Mutex<bool>,
    freed: Condvar,
    /// Dropped when a caller blocks, which disconnects the receiver of the test.
    hangs: Mutex<Option<mpsc::Sender<()>>>,
}

impl Hanging {
    fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free(&self) {
        *Self::locked(&self.free) = true;
        self.freed.notify_all();
    }
}

impl Clock for Hanging {
    fn now_micros(&self) -> i64 {
        let own = *Self::locked(&self.own);
        if own.is_some_and(|own| own != thread::current().id()) {
            // Disconnects the receiver, so that the test no longer waits for a message.
            drop(Self::locked(&self.hangs).take());
            let held = self.freed.wait_while(Self::locked(&self.free), |free| !*free);
            drop(held.unwrap_or_else(PoisonError::into_inner));
        }
        SystemClock.now_micros()
    }
}

#[test]
fn a_job_that_hangs_does_not_hold_the_stop() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (export, data) = (folder.path().join("export"), folder.path().join("data"));
    generate::chatgpt(&export, 100_000, 1)?;
    let (clock, (tell, told)) = (Arc::new(Hanging::default()), mpsc::channel());
    *Hanging::locked(&clock.hangs) = Some(tell);
    let archive = Archive::with(&data, Limits::default(), Arc::clone(&clock) as Arc<dyn Clock>)?;
    *Hanging::locked(&clock.own) = Some(thread::current().id());
    let request =
        ImportRequest { path: export.clone(), provider: None, again: false, dry_run: false, apply: None };
    let job = archive.imports.start(request)?;
    let mut view = archive.imports.subscribe(job).context("the job")?;
    assert!(told.recv().is_err(), "nothing is ever sent");
    assert!(!archive.imports.stop(Duration::from_millis(10)), "it hangs, and was waited for");
    // The store is closed while the job hangs; the job writes nothing when it continues.
    archive.store.close()?;
    clock.free();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(view.wait_for(|view| view.phase == Phase::Ended))?;
    drop((view, archive.imports, archive.exports));
    let archive = Archive::open(&data)?;
    assert_eq!(archive.state()?.conversations.len(), 0);
    let imports = archive.import(&export)?;
    assert!(imports.iter().all(|import| import.conversations.new > 0), "{imports:?}");
    archive.close()
}

/// A watched file is left alone if a person cancelled its import. If the daemon's shutdown stopped it, it is due at the
/// next start.
#[test]
fn a_watched_folder_does_not_hear_of_what_the_daemons_end_stopped() -> Result<()> {
    let folder = tempfile::tempdir()?;
    generate::chatgpt(folder.path(), 4_000_000, 1)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    for by_a_person in [true, false] {
        let archive = Archive::open(&folder.path().join(format!("data-{by_a_person}")))?;
        let (told, heard) = mpsc::channel();
        let watched = WatchedImport {
            root: folder.path().to_owned(),
            name: "conversations.json".into(),
            providers: Vec::new(),
        };
        let on_end = Box::new(move |view: &JobView, _| drop(told.send(view.imports.clone())));
        let job = archive.imports.start_watched(watched, on_end)?;
        let mut view = archive.imports.subscribe(job).context("the job")?;
        let seen = runtime.block_on(view.wait_for(|view| view.phase != Phase::Waiting))?.phase;
        ensure!(seen != Phase::Ended, "the import was over at once");
        if by_a_person {
            ensure!(archive.imports.cancel(&job.to_string()), "it cannot be stopped");
        } else {
            ensure!(archive.imports.stop(Duration::from_mins(1)), "it does not stop");
        }
        let heard: Vec<ImportStatus> = heard.iter().flatten().map(|import| import.status).collect();
        let expected: &[ImportStatus] = if by_a_person { &[ImportStatus::Cancelled] } else { &[] };
        assert_eq!(heard, expected);
        archive.close()?;
    }
    Ok(())
}
