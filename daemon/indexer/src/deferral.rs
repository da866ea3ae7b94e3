//! When indexing is put off, so that imports get the processor.

use std::time::{Duration, Instant};

/// How long changes wait at most while an import runs.
pub(super) const LONGEST: Duration = Duration::from_mins(1);
/// Time between two looks whether the import has ended.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Puts indexing off while imports run. They and the index need the same processors: side by side both take longer, and whoever reads
/// meanwhile waits.
#[derive(Debug, Default)]
pub(super) struct Deferral {
    /// Since when changes wait.
    since: Option<Instant>,
    /// A search has asked for them.
    awaited: bool,
}

impl Deferral {
    /// Returns whether the changes that are there at `now` wait on. `busy` says whether an import runs, `awaited` whether a search waits.
    /// Once changes do not wait, nothing is put off until [`Deferral::caught_up`].
    pub(super) fn defers(&mut self, busy: bool, awaited: bool, now: Instant) -> bool {
        self.awaited |= awaited;
        if !busy || self.awaited {
            return false;
        }
        let since = *self.since.get_or_insert(now);
        now.saturating_duration_since(since) < LONGEST
    }

    /// Notes that no change waits any more.
    pub(super) fn caught_up(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_wait_for_the_end_of_an_import_but_not_longer_than_a_minute() {
        let (mut deferral, now) = (Deferral::default(), Instant::now());
        assert!(!deferral.defers(false, false, now));
        assert!(deferral.defers(true, false, now));
        assert!(deferral.defers(true, false, now + LONGEST / 2));
        assert!(!deferral.defers(true, false, now + LONGEST), "it has waited long enough");
        assert!(!deferral.defers(true, false, now + LONGEST), "until everything is indexed");
        deferral.caught_up();
        assert!(deferral.defers(true, false, now + LONGEST));
        assert!(!deferral.defers(false, false, now + LONGEST), "the import has ended");
    }

    #[test]
    fn a_search_does_not_wait() {
        let (mut deferral, now) = (Deferral::default(), Instant::now());
        assert!(deferral.defers(true, false, now));
        assert!(!deferral.defers(true, true, now));
        assert!(!deferral.defers(true, false, now), "until everything is indexed");
        deferral.caught_up();
        assert!(deferral.defers(true, false, now), "what comes later waits again");
    }
}
