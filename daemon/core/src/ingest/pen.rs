//! The commit lock: it is held from a look-up until the commit of what follows from it. It is granted in the order of
//! requests, and waiting can be cancelled.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use satchel_source::CancelToken;

/// Interval at which a waiting thread checks for cancellation: a fraction of the second within which a cancel takes
/// effect.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// The commit lock; one holder at a time.
#[derive(Debug, Default)]
pub(super) struct Pen {
    /// Guards the holder and the queue of waiting threads.
    line: Mutex<Line>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Line {
    taken: bool,
    /// The number of the next thread that joins the queue.
    next: u64,
    waiting: VecDeque<u64>,
}

/// A guard for the commit lock; dropping it releases the lock.
#[derive(Debug)]
pub(super) struct Held<'a>(&'a Pen);

impl Pen {
    /// Waits for the lock behind all earlier requests; `None` if `cancel` is raised first.
    pub(super) fn take(&self, cancel: &CancelToken) -> Option<Held<'_>> {
        let mut line = self.line();
        let number = line.next;
        line.next += 1;
        line.waiting.push_back(number);
        while line.taken || line.waiting.front() != Some(&number) {
            if cancel.cancelled() {
                line.waiting.retain(|one| *one != number);
                drop(line);
                // The cancelled thread may have been the first in the queue; the next one has to be woken.
                self.moved.notify_all();
                return None;
            }
            let waited = self.moved.wait_timeout(line, LOOK);
            line = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        line.waiting.pop_front();
        line.taken = true;
        Some(Held(self))
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.line().taken = false;
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    /// Waits until this many threads are in the queue.
    fn in_line(pen: &Pen, many: usize) {
        while pen.line().waiting.len() != many {
            thread::yield_now();
        }
    }

    #[test]
    fn who_waits_gets_the_pen_or_is_let_go() {
        let (pen, cancel) = (Pen::default(), CancelToken::new());
        let held = pen.take(&cancel);
        thread::scope(|scope| {
            let waits = scope.spawn(|| pen.take(&cancel).is_some());
            cancel.cancel();
            assert!(waits.join().is_ok_and(|got| !got), "it waits on");
            let patient = scope.spawn(|| pen.take(&CancelToken::new()).is_some());
            drop(held);
            assert!(patient.join().is_ok_and(|got| got), "it never gets the pen");
        });
        assert!(pen.take(&cancel).is_some(), "a free pen is refused");
    }

    #[test]
    fn who_came_first_writes_first_and_who_gives_it_up_stands_behind() {
        let (pen, never) = (Pen::default(), CancelToken::new());
        let (tell, told) = mpsc::channel();
        let held = pen.take(&never);
        thread::scope(|scope| {
            for number in 0..8 {
                let (pen, never, tell) = (&pen, &never, tell.clone());
                scope.spawn(move || {
                    let held = pen.take(never);
                    // Sent while the lock is held, so that the order of messages is that of the lock.
                    assert!(held.is_some() && tell.send(number).is_ok());
                });
                in_line(pen, number + 1);
            }
            drop(held);
            // An import does the same between two batches: it releases the lock and requests it again at once.
            let again = pen.take(&never);
            assert!(again.is_some() && tell.send(8).is_ok());
        });
        drop(tell);
        assert_eq!(told.iter().collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn who_leaves_the_line_holds_nobody_up() {
        let (pen, cancel) = (Pen::default(), CancelToken::new());
        let held = pen.take(&cancel);
        thread::scope(|scope| {
            let leaves = scope.spawn(|| pen.take(&cancel).is_some());
            in_line(&pen, 1);
            let stays = scope.spawn(|| pen.take(&CancelToken::new()).is_some());
            in_line(&pen, 2);
            cancel.cancel();
            assert!(leaves.join().is_ok_and(|got| !got));
            drop(held);
            assert!(stays.join().is_ok_and(|got| got));
        });
    }
}
