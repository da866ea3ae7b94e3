//! Sources that do not answer: a read from a dead share may never return. Others get the place of such a job, people are told,
//! and a cancel ends it for all others, while its thread is left behind.

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
    queue::{Job, Jobs},
};

/// How long a source may be silent before others get the place of its job: disks that wake up take some ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a source of a job that was cancelled may be silent: a cancel takes effect within a second.
const LET_GO: Duration = Duration::from_millis(400);
/// Between two looks, while jobs run.
const LOOK: Duration = Duration::from_millis(200);
/// Places that are lent at once: each is a job more in memory when its source answers again.
const MOST_LENT: usize = 4;

/// A job whose source does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silent {
    /// The job.
    pub job: Uuid,
    /// What it reads.
    pub path: PathBuf,
    /// For how long.
    pub time: Duration,
}

pub(super) fn patience() -> AtomicU64 {
    AtomicU64::new(millis(PATIENCE))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Imports {
    /// How long a source may be silent before others get the place of its job, and people are told.
    pub fn set_patience(&self, patience: Duration) {
        self.0.patience.store(millis(patience), Ordering::Relaxed);
    }

    /// The jobs whose sources do not answer for too long.
    pub fn silent(&self) -> Vec<Silent> {
        let patience = self.0.patience();
        let silent = |(id, job): (&Uuid, &Job)| {
            let time = job.task.as_ref().and_then(|_| job.pulse.silent_for())?;
            let path = job.request.path.clone();
            (time >= patience).then_some(Silent { job: *id, path, time })
        };
        self.0.jobs().all.iter().filter_map(silent).collect()
    }

    /// Looks after the jobs as long as any runs.
    pub(super) fn oversee(&self, jobs: &mut Jobs) {
        if std::mem::replace(&mut jobs.overseen, true) {
            return;
        }
        // It must not keep the store open.
        let inner: Weak<Inner> = Arc::downgrade(&self.0);
        thread::spawn(move || {
            loop {
                thread::sleep(LOOK);
                let Some(inner) = inner.upgrade() else { return };
                if !Self(inner).look_after() {
                    return;
                }
            }
        });
    }

    /// False: none runs any more.
    fn look_after(&self) -> bool {
        let patience = self.0.patience();
        let mut jobs = self.0.jobs();
        let Jobs { all, running, overseen, .. } = &mut *jobs;
        let mut lent =
            all.values().filter(|job| job.task.is_some() && job.lent.load(Ordering::Relaxed)).count();
        let mut let_go = Vec::new();
        let mut any = false;
        for job in all.values_mut() {
            let Some(task) = &job.task else { continue };
            any = true;
            let Some(silent) = job.pulse.silent_for() else { continue };
            let left = job.cancel.cancelled() && silent >= LET_GO;
            if left {
                let_go.push(Arc::clone(task));
            }
            if (left || silent >= patience && lent < MOST_LENT) && !job.lent.swap(true, Ordering::Relaxed) {
                *running -= 1;
                lent += 1;
            }
            if left {
                job.task = None;
            }
        }
        *overseen = any;
        drop(jobs);
        for task in let_go {
            task.let_go();
            task.tell_end();
        }
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
    use crate::ingest::{pen, run::IDLE};

    /// The longest ways from a cancel to the end of its job: a source that does not answer is let go at the look after that; who
    /// waits for the pen, or for records that do not come, looks up in between.
    #[test]
    fn a_cancel_takes_effect_within_a_second() {
        let second = Duration::from_secs(1);
        // The receipt of a job that is let go is that of what it had stored: it stores that before.
        assert!(2 * IDLE <= LET_GO);
        assert!(LET_GO + 2 * LOOK < second && pen::LOOK + IDLE < second && crate::plugins::LOOK < second);
    }
}
