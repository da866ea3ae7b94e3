//! The write lock: it is held from a look-up until the commit of what follows from it. It is granted in the order of
//! requests, and waiting can be cancelled.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use satchel_source::CancelToken;

/// Interval at which a waiting thread checks for cancellation: a fraction of the second within which a cancel takes
/// effect.
pub(crate) const POLL: Duration = Duration::from_millis(100);

/// The write lock; one holder at a time.
#[derive(Debug, Default)]
pub(crate) struct WriteLock {
    /// Guards the holder and the queue of waiting threads.
    waiters: Mutex<Waiters>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct Waiters {
    locked: bool,
    /// The number of the next thread that joins the queue.
    next: u64,
    queue: VecDeque<u64>,
}

/// A guard for the write lock; dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct WriteGuard<'a>(&'a WriteLock);

impl WriteLock {
    /// Waits for the lock behind all earlier requests; `None` if `cancel` is raised first.
    pub(crate) fn lock(&self, cancel: &CancelToken) -> Option<WriteGuard<'_>> {
        let mut waiters = self.waiters();
        let number = waiters.next;
        waiters.next += 1;
        waiters.queue.push_back(number);
        while waiters.locked || waiters.queue.front() != Some(&number) {
            if cancel.cancelled() {
                waiters.queue.retain(|one| *one != number);
                drop(waiters);
                // The cancelled thread may have been the first in the queue; the next one has to be woken.
                self.released.notify_all();
                return None;
            }
            let waited = self.released.wait_timeout(waiters, POLL);
            waiters = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        waiters.queue.pop_front();
        waiters.locked = true;
        Some(WriteGuard(self))
    }

    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        self.0.waiters().locked = false;
        self.0.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    /// Waits until this many threads are in the queue.
    fn wait_for_queue(lock: &WriteLock, many: usize) {
        while lock.waiters().queue.len() != many {
            thread::yield_now();
        }
    }

    #[test]
    fn a_waiting_thread_gets_the_lock_or_is_cancelled() {
        let (lock, cancel) = (WriteLock::default(), CancelToken::new());
        let held = lock.lock(&cancel);
        thread::scope(|scope| {
            let waits = scope.spawn(|| lock.lock(&cancel).is_some());
            cancel.cancel();
            assert!(waits.join().is_ok_and(|got| !got), "it waits on");
            let patient = scope.spawn(|| lock.lock(&CancelToken::new()).is_some());
            drop(held);
            assert!(patient.join().is_ok_and(|got| got), "it never gets the lock");
        });
        assert!(lock.lock(&cancel).is_some(), "a free lock is refused");
    }

    #[test]
    fn the_lock_is_granted_in_the_order_of_requests() {
        let (lock, never) = (WriteLock::default(), CancelToken::new());
        let (sender, receiver) = mpsc::channel();
        let held = lock.lock(&never);
        thread::scope(|scope| {
            for number in 0..8 {
                let (lock, never, sender) = (&lock, &never, sender.clone());
                scope.spawn(move || {
                    let held = lock.lock(never);
                    // Sent while the lock is held, so that the order of messages is that of the lock.
                    assert!(held.is_some() && sender.send(number).is_ok());
                });
                wait_for_queue(lock, number + 1);
            }
            drop(held);
            // An import does the same between two batches: it releases the lock and requests it again at once.
            let again = lock.lock(&never);
            assert!(again.is_some() && sender.send(8).is_ok());
        });
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn a_cancelled_thread_blocks_no_other() {
        let (lock, cancel) = (WriteLock::default(), CancelToken::new());
        let held = lock.lock(&cancel);
        thread::scope(|scope| {
            let leaves = scope.spawn(|| lock.lock(&cancel).is_some());
            wait_for_queue(&lock, 1);
            let stays = scope.spawn(|| lock.lock(&CancelToken::new()).is_some());
            wait_for_queue(&lock, 2);
            cancel.cancel();
            assert!(leaves.join().is_ok_and(|got| !got));
            drop(held);
            assert!(stays.join().is_ok_and(|got| got));
        });
    }
}
