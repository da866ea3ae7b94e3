//! Whose turn it is to look something up and commit what follows from it; who waits can be told to wait no longer.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use satchel_host::CancelToken;

/// Between two looks whether somebody who waits is still wanted: a part of the second within which a cancel takes effect.
const LOOK: Duration = Duration::from_millis(100);

/// One turn, for one at a time.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Guards whether it is taken.
    taken: Mutex<bool>,
    free: Condvar,
}

/// The turn, until this is dropped.
#[derive(Debug)]
pub(super) struct Held<'a>(&'a Turns);

impl Turns {
    /// Waits for the turn; none if `cancel` is raised first.
    pub(super) fn take(&self, cancel: &CancelToken) -> Option<Held<'_>> {
        let mut taken = self.taken();
        while *taken {
            if cancel.cancelled() {
                return None;
            }
            let waited = self.free.wait_timeout(taken, LOOK);
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken = true;
        Some(Held(self))
    }

    fn taken(&self) -> MutexGuard<'_, bool> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *self.0.taken() = false;
        self.0.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_gets_the_turn_or_is_let_go() {
        let (turns, cancel) = (Turns::default(), CancelToken::new());
        let held = turns.take(&cancel);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| turns.take(&cancel).is_some());
            cancel.cancel();
            assert!(waits.join().is_ok_and(|got| !got), "it waits on");
            let patient = scope.spawn(|| turns.take(&CancelToken::new()).is_some());
            drop(held);
            assert!(patient.join().is_ok_and(|got| got), "it never gets its turn");
        });
        assert!(turns.take(&cancel).is_some(), "a free turn is refused");
    }
}
