//! The thread of one watched folder.

use std::{
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use satchel_source::names;

use super::{
    WatchInner,
    mailbox::Mailbox,
    notifier::{Notifier, SystemNotifier},
    queue::FolderImportQueue,
    scan::{OsFolder, SessionFolder},
    settle::MonotonicTime,
    spec::WatchSpec,
    verdicts::LedgerVerdicts,
    watcher::{FolderDependencies, FolderStatus, FolderWatcher, WatchProblem, WatchState},
};

/// Shortest time between two inspections that are caused by events; a growing file causes thousands of events.
const MIN_INSPECTION_GAP: Duration = Duration::from_millis(250);
/// An inspection that takes longer is reported as a problem: a lost share can block it for minutes, or for ever.
const STALL_TIME: Duration = Duration::from_secs(30);

/// The thread of one watched folder; it ends when this is dropped.
pub(super) struct FolderThread {
    mailbox: Arc<Mailbox>,
    shared: Arc<ThreadStatus>,
    root: PathBuf,
}

#[derive(Default)]
struct ThreadStatus {
    /// Guards the status shown to users, and whether the thread has ended.
    state: Mutex<(FolderStatus, bool)>,
    ended: Condvar,
    /// Guards the start time of the current inspection, if one runs.
    inspection_start: Mutex<Option<Instant>>,
}

impl FolderThread {
    pub(super) fn start(inner: &WatchInner, spec: &WatchSpec) -> Self {
        let mailbox = Arc::new(Mailbox::default());
        let shared = Arc::new(ThreadStatus::default());
        let (dependencies, min_gap) = dependencies(inner, spec, &mailbox);
        let start = inner.start;
        let (thread_mailbox, thread_shared) = (Arc::clone(&mailbox), Arc::clone(&shared));
        thread::spawn(move || {
            let (root, health_check) = (dependencies.root.clone(), dependencies.intervals.health_check);
            let work = AssertUnwindSafe(|| {
                watch(FolderWatcher::new(dependencies), &thread_mailbox, &thread_shared, start, min_gap);
            });
            if panic::catch_unwind(work).is_err() {
                tracing::error!(folder = %root.display(), "the watcher of a folder panicked");
                thread_shared.publish(FolderStatus {
                    state: WatchState::Broken,
                    problems: vec![panic_problem(&root, start.elapsed() + health_check)],
                    ..FolderStatus::default()
                });
            }
            thread_shared.mark_ended();
        });
        Self { mailbox, shared, root: spec.path.clone() }
    }

    pub(super) fn rescan(&self) {
        self.mailbox.rescan();
    }

    pub(super) fn stop(&self) {
        self.mailbox.stop();
    }

    /// Waits until the thread has ended. Returns false on timeout.
    pub(super) fn wait_for_end(&self, timeout: Duration) -> bool {
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.shared.ended.wait_timeout_while(state, timeout, |(_, ended)| !*ended);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    pub(super) fn status(&self) -> FolderStatus {
        let mut status = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        let inspection_start = *self.shared.inspection_start.lock().unwrap_or_else(PoisonError::into_inner);
        status.problems.extend(inspection_start.and_then(|since| stall_problem(&self.root, since.elapsed())));
        status
    }
}

impl Drop for FolderThread {
    fn drop(&mut self) {
        self.mailbox.stop();
    }
}

impl ThreadStatus {
    fn publish(&self, status: FolderStatus) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = status;
    }

    fn set_inspection_start(&self, since: Option<Instant>) {
        *self.inspection_start.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    fn mark_ended(&self) {
        self.set_inspection_start(None);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.ended.notify_all();
    }
}

/// Returns a problem if an inspection takes too long.
fn stall_problem(root: &Path, time: Duration) -> Option<WatchProblem> {
    (time >= STALL_TIME).then(|| WatchProblem {
        message: format!(
            "the watched folder {:?} has not responded for {} seconds; other folders are not affected",
            names::shown(root.as_os_str()),
            time.as_secs()
        ),
        fix: "check its disk or network; watching resumes by itself".to_owned(),
        tries: 1,
        next_try: MonotonicTime::ZERO,
    })
}

fn dependencies(
    inner: &WatchInner,
    spec: &WatchSpec,
    mailbox: &Arc<Mailbox>,
) -> (FolderDependencies, Duration) {
    let intervals = spec.intervals(&inner.intervals);
    let min_gap = MIN_INSPECTION_GAP.min(intervals.quiet / 4);
    let (root, grows) = (spec.folder().to_owned(), spec.grows());
    let notifier_factory = {
        let (root, sessions, mailbox) = (root.clone(), spec.sessions, Arc::clone(mailbox));
        Box::new(move || {
            let notifier = SystemNotifier::new(root.clone(), sessions, Arc::clone(&mailbox))?;
            Ok(Box::new(notifier) as Box<dyn Notifier>)
        })
    };
    let (start, clock, stopping) = (inner.start, Arc::clone(&inner.clock), Arc::clone(mailbox));
    let folder = OsFolder::new(&root, spec.recursive, &spec.patterns(), &inner.data_dir);
    let folder = folder.with_only(spec.file());
    let folder_dependencies = FolderDependencies {
        fs: if spec.sessions { Box::new(SessionFolder(folder)) } else { Box::new(folder) },
        notifier_factory,
        queue: Box::new(FolderImportQueue {
            imports: inner.imports.clone(),
            root: root.clone(),
            sessions: grows,
            providers: spec.providers.clone(),
            mailbox: Arc::clone(mailbox),
        }),
        verdicts: Box::new(LedgerVerdicts::new(inner.store.clone(), &root)),
        wall_clock: Box::new(move || clock.now_micros()),
        clock: Box::new(move || start.elapsed()),
        stopping: Box::new(move || stopping.stopping()),
        root,
        intervals,
        sessions: grows,
        poll: spec.poll,
    };
    (folder_dependencies, min_gap)
}

fn watch(
    mut watcher: FolderWatcher,
    mailbox: &Mailbox,
    shared: &ThreadStatus,
    start: Instant,
    min_gap: Duration,
) {
    loop {
        let (now, next) = (start.elapsed(), watcher.next());
        let max_wait = next.saturating_sub(now);
        // Work that is due does not wait; events do, so that they are collected.
        let pending = mailbox.wait(min_gap.min(max_wait), max_wait);
        if pending.stop {
            return;
        }
        shared.set_inspection_start(Some(Instant::now()));
        watcher.step(pending);
        shared.set_inspection_start(None);
        shared.publish(watcher.status());
    }
}

fn panic_problem(root: &Path, next: MonotonicTime) -> WatchProblem {
    WatchProblem {
        message: format!(
            "the watcher of {:?} stopped because of an internal error",
            root.display().to_string()
        ),
        fix: "please report this, and restart the daemon".to_owned(),
        tries: 1,
        next_try: next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a folder whose inspection started `time` ago.
    fn inspecting_for(time: Duration) -> FolderThread {
        let shared = Arc::new(ThreadStatus::default());
        shared.set_inspection_start(Instant::now().checked_sub(time));
        FolderThread { mailbox: Arc::default(), shared, root: "/net/dead share".into() }
    }

    #[test]
    fn an_inspection_that_stalls_is_reported_until_it_ends() {
        assert_eq!(inspecting_for(Duration::ZERO).status().problems, []);
        let folder = inspecting_for(STALL_TIME + Duration::from_secs(5));
        let problems = folder.status().problems;
        let reported = problems.first().map(|problem| (problem.message.as_str(), problem.fix.as_str()));
        let (message, fix) = reported.unwrap_or_default();
        assert!(message.contains("\"/net/dead share\" has not responded for 35 seconds"), "{message:?}");
        assert!(fix.contains("check its disk or network"), "{fix:?}");
        folder.shared.set_inspection_start(None);
        assert_eq!(folder.status().problems, []);
    }
}
