//! Who writes: to look something up and commit what follows from it takes the pen. Whoever asks first gets it first, and who
//! waits can be told to wait no longer.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use satchel_source::CancelToken;

/// Between two looks whether somebody who waits is still wanted: a part of the second within which a cancel takes effect.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// One pen, for one at a time.
#[derive(Debug, Default)]
pub(super) struct Pen {
    /// Guards who has it and who waits for it.
    line: Mutex<Line>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Line {
    taken: bool,
    /// The number of the next that comes.
    next: u64,
    waiting: VecDeque<u64>,
}

/// The pen, until this is dropped.
#[derive(Debug)]
pub(super) struct Held<'a>(&'a Pen);

impl Pen {
    /// Waits for the pen behind all that came before; none if `cancel` is raised first.
    pub(super) fn take(&self, cancel: &CancelToken) -> Option<Held<'_>> {
        let mut line = self.line();
        let number = line.next;
        line.next += 1;
        line.waiting.push_back(number);
        while line.taken || line.waiting.front() != Some(&number) {
            if cancel.cancelled() {
                line.waiting.retain(|one| *one != number);
                drop(line);
                // It may have been the first, and the next does not know.
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

    /// Waits until so many stand in line.
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
                    // Told while it is held: the order is that of the pen.
                    assert!(held.is_some() && tell.send(number).is_ok());
                });
                in_line(pen, number + 1);
            }
            drop(held);
            // As an import does between two batches: it gives the pen up, and wants it back at once.
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
