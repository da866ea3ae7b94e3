//! The job queue: requests of users and of watched folders take turns, so that neither has to wait behind the other.

use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use satchel_source::{CancelToken, Heartbeat, envelope::DecryptionKeys};
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    receipt::ImportRecord,
    request::{ImportRequest, WAITING, WatchedImport},
};
use crate::uploads::UploadedFile;

/// The same limit for all watched folders together; they hold back further jobs themselves.
pub(super) const WATCHED_WAITING: usize = 256;
/// Ended jobs whose outcome can still be watched; the ledger of imports has all of them.
const REMEMBERED: usize = 200;

/// Called with the final state of a job, and with whether its source changed while it was read.
pub type OnEnd = Box<dyn FnOnce(&JobView, bool) + Send>;

/// Ends a running job whose source does not answer.
pub(super) type Abandon = Arc<dyn Fn() + Send + Sync>;

/// The phase that a job is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The job is queued behind others.
    Waiting,
    /// The source is being opened, and its importer chosen.
    Looking,
    /// The bytes of the source are being hashed.
    Hashing,
    /// Records are being read and stored.
    Reading,
    /// Memories are being derived.
    Settling,
    /// The job has ended.
    Ended,
}

/// A snapshot of the state of a job.
#[derive(Clone, Debug)]
pub struct JobView {
    pub id: Uuid,
    pub path: PathBuf,
    pub phase: Phase,
    /// When the job was requested, in microseconds since the Unix epoch.
    pub created_at: i64,
    /// When the job ended, in microseconds since the Unix epoch.
    pub finished_at: Option<i64>,
    /// Bytes processed in this phase.
    pub done: u64,
    /// Total bytes of this phase.
    pub total: u64,
    /// One record for each export found so far; the last import may still be running.
    pub imports: Vec<ImportRecord>,
}

impl JobView {
    /// Returns the view of a job that has just been requested.
    pub(super) fn waiting(id: Uuid, path: PathBuf, created_at: i64) -> Self {
        let imports = Vec::new();
        Self { id, path, phase: Phase::Waiting, created_at, finished_at: None, done: 0, total: 0, imports }
    }

    pub(super) fn end(&mut self, now: i64) {
        self.phase = Phase::Ended;
        self.finished_at = Some(now);
    }
}

/// A job that is running, waiting or ended.
pub(super) struct Job {
    pub(super) request: ImportRequest,
    /// Taken when the job begins, as the job is remembered for longer than its keys should be.
    pub(super) keys: Option<DecryptionKeys>,
    pub(super) watched: Option<WatchedImport>,
    /// The bytes, if they were uploaded. Taken when the job begins.
    pub(super) uploaded: Option<UploadedFile>,
    pub(super) on_end: Option<OnEnd>,
    pub(super) cancel: CancelToken,
    pub(super) view: watch::Sender<JobView>,
    /// Tracks for how long the source has not answered.
    pub(super) heartbeat: Heartbeat,
    /// Ends the job for its subscribers and leaves its thread behind; `None` while the job does not run.
    pub(super) abandon: Option<Abandon>,
    /// Whether the job's slot was given to others because its source does not answer. Changed only under the lock of
    /// all jobs.
    pub(super) slot_released: Arc<AtomicBool>,
}

impl Job {
    pub(super) fn new(request: ImportRequest, view: watch::Sender<JobView>) -> Self {
        Self {
            request,
            keys: None,
            watched: None,
            uploaded: None,
            on_end: None,
            cancel: CancelToken::new(),
            view,
            heartbeat: Heartbeat::default(),
            abandon: None,
            slot_released: Arc::default(),
        }
    }
}

#[derive(Default)]
pub(super) struct JobQueue {
    pub(super) running: usize,
    /// No new jobs are begun.
    pub(super) stopping: bool,
    /// Whether a thread supervises sources that do not answer.
    pub(super) supervised: bool,
    pub(super) all: BTreeMap<Uuid, Job>,
    asked: VecDeque<Uuid>,
    watched: VecDeque<Uuid>,
    /// Whether the last job begun came from a watched folder.
    last_watched: bool,
    order: VecDeque<Uuid>,
}

impl JobQueue {
    /// Queues a job; returns false if too many are waiting.
    pub(super) fn add(&mut self, id: Uuid, job: Job) -> bool {
        let (lane, most) = match job.watched {
            Some(_) => (&mut self.watched, WATCHED_WAITING),
            None => (&mut self.asked, WAITING),
        };
        if lane.len() >= most {
            return false;
        }
        lane.push_back(id);
        self.all.insert(id, job);
        self.order.push_back(id);
        self.forget_old();
        true
    }

    /// Removes and returns the next job to run: the lanes take turns.
    pub(super) fn next(&mut self) -> Option<Uuid> {
        let watched = self.asked.is_empty() || (!self.last_watched && !self.watched.is_empty());
        let lane = if watched { &mut self.watched } else { &mut self.asked };
        let id = lane.pop_front()?;
        self.last_watched = watched;
        Some(id)
    }

    /// Removes all waiting jobs from the queue.
    pub(super) fn clear_waiting(&mut self) {
        self.asked.clear();
        self.watched.clear();
    }

    /// Forgets the oldest ended jobs. Active jobs are kept, so that they can be followed and cancelled; they are few,
    /// and are passed over.
    fn forget_old(&mut self) {
        let (mut at, keep) = (0, REMEMBERED + self.asked.len() + self.watched.len());
        while self.order.len() > keep && at < self.order.len() {
            let job = self.all.get(&self.order[at]);
            if job.is_some_and(|job| job.view.borrow().phase != Phase::Ended) {
                at += 1;
            } else if let Some(id) = self.order.remove(at) {
                self.all.remove(&id);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn job(id: Uuid, watched: bool, phase: Phase) -> Job {
        let request = ImportRequest {
            path: "/a".into(),
            provider: None,
            plugin: None,
            again: false,
            dry_run: false,
            apply: None,
        };
        let watched = watched.then(|| WatchedImport {
            root: "/".into(),
            name: "a".into(),
            session: false,
            providers: Vec::new(),
        });
        let view = watch::Sender::new(JobView { phase, ..JobView::waiting(id, "/a".into(), 0) });
        Job { watched, ..Job::new(request, view) }
    }

    #[test]
    fn people_and_folders_take_turns() {
        let mut jobs = JobQueue::default();
        for at in 0..6_u128 {
            let id = Uuid::from_u128(at);
            assert!(jobs.add(id, job(id, at < 4, Phase::Waiting)));
        }
        let order: Vec<u128> = std::iter::from_fn(|| jobs.next()).map(|id| id.as_u128()).collect();
        assert_eq!(order, [0, 4, 1, 5, 2, 3]);
    }

    #[test]
    fn each_lane_has_its_own_bound() {
        let mut jobs = JobQueue::default();
        let mut add = |watched: bool| {
            let id = Uuid::new_v4();
            jobs.add(id, job(id, watched, Phase::Waiting))
        };
        assert!((0..WATCHED_WAITING).all(|_| add(true)));
        assert!(!add(true));
        assert!((0..WAITING).all(|_| add(false)));
        assert!(!add(false));
    }

    #[test]
    fn a_long_job_is_not_forgotten_while_it_runs() {
        let mut jobs = JobQueue::default();
        let long = Uuid::from_u128(1);
        assert!(jobs.add(long, job(long, false, Phase::Reading)));
        assert_eq!(jobs.next(), Some(long));
        for _ in 0..3 * REMEMBERED {
            let id = Uuid::new_v4();
            assert!(jobs.add(id, job(id, true, Phase::Ended)));
            jobs.next().unwrap();
        }
        assert!(jobs.all.contains_key(&long));
        assert!(jobs.all.len() <= REMEMBERED + 1, "{}", jobs.all.len());
    }
}
