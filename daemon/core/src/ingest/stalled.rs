//! Sources that do not answer: a read from a lost network share may never return. The slot of such a job is given to
//! others, the condition is reported, and a cancel ends the job for its subscribers, while its thread is left behind.

use std::{
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use uuid::Uuid;

use super::{
    Imports, Inner,
    queue::{Job, JobQueue},
};

/// How long a source may fail to answer before the slot of its job is given to others. Disks take some ten seconds to
/// wake up.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the source of a cancelled job may fail to answer: a cancel takes effect within a second.
const ABANDON_AFTER: Duration = Duration::from_millis(400);
/// Interval between two checks, while jobs run.
const SUPERVISION_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of slots given to others at the same time: each is one more job in memory when its source answers
/// again.
const MOST_LENT: usize = 4;

/// A job whose source does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StalledJob {
    /// The id of the job.
    pub job: Uuid,
    /// The path that it reads.
    pub path: PathBuf,
    /// The time for which the source has not answered.
    pub time: Duration,
}

pub(super) fn patience() -> AtomicU64 {
    AtomicU64::new(millis(PATIENCE))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Imports {
    /// Sets how long a source may fail to answer before the slot of its job is given to others and the job is reported.
    pub fn set_patience(&self, patience: Duration) {
        self.0.patience.store(millis(patience), Ordering::Relaxed);
    }

    /// Returns the jobs whose sources have not answered for too long.
    pub fn stalled(&self) -> Vec<StalledJob> {
        let patience = self.0.patience();
        let silent = |(id, job): (&Uuid, &Job)| {
            let time = job.abandon.as_ref().and_then(|_| job.heartbeat.stalled_for())?;
            let path = job.request.path.clone();
            (time >= patience).then_some(StalledJob { job: *id, path, time })
        };
        self.0.jobs().all.iter().filter_map(silent).collect()
    }

    /// Supervises the jobs as long as any runs.
    pub(super) fn supervise(&self, jobs: &mut JobQueue) {
        if std::mem::replace(&mut jobs.supervised, true) {
            return;
        }
        // The thread must not keep the store open.
        let inner: Weak<Inner> = Arc::downgrade(&self.0);
        thread::spawn(move || {
            loop {
                thread::sleep(SUPERVISION_INTERVAL);
                let Some(inner) = inner.upgrade() else { return };
                if !Self(inner).check_jobs() {
                    return;
                }
            }
        });
    }

    /// Checks all jobs once; returns false if none is running any more.
    fn check_jobs(&self) -> bool {
        let patience = self.0.patience();
        let mut jobs = self.0.jobs();
        let JobQueue { all, running, supervised: overseen, .. } = &mut *jobs;
        let mut lent = all
            .values()
            .filter(|job| job.abandon.is_some() && job.slot_released.load(Ordering::Relaxed))
            .count();
        let mut abandoned = Vec::new();
        let mut any = false;
        for job in all.values_mut() {
            let Some(abandon) = &job.abandon else { continue };
            any = true;
            let Some(silent) = job.heartbeat.stalled_for() else { continue };
            let left = job.cancel.cancelled() && silent >= ABANDON_AFTER;
            if left {
                abandoned.push(Arc::clone(abandon));
            }
            if (left || silent >= patience && lent < MOST_LENT)
                && !job.slot_released.swap(true, Ordering::Relaxed)
            {
                *running -= 1;
                lent += 1;
            }
            if left {
                job.abandon = None;
            }
        }
        *overseen = any;
        drop(jobs);
        abandoned.iter().for_each(|abandon| abandon());
        self.0.idle.notify_all();
        self.start_next();
        any
    }
}

impl Inner {
    fn patience(&self) -> Duration {
        Duration::from_millis(self.patience.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ingest::records::IDLE, write_lock};

    /// Checks the longest times from a cancel to the end of its job. A source that does not answer is abandoned at the
    /// next check; threads that wait for the write lock, or for records, check for cancellation at intervals.
    #[test]
    fn a_cancel_takes_effect_within_a_second() {
        let second = Duration::from_secs(1);
        // The receipt of an abandoned job counts what the job has stored, so the open batch must be committed before.
        assert!(2 * IDLE <= ABANDON_AFTER);
        assert!(
            ABANDON_AFTER + 2 * SUPERVISION_INTERVAL < second
                && write_lock::POLL + IDLE < second
                && satchel_registry::CANCEL_POLL < second
        );
    }
}
