//! How long the worker waits after an error.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

/// Longest wait that a server may ask for. A larger value is a mistake, or worse.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);
/// Doublings after which the wait is at its maximum in any case, and further ones would overflow.
const MAX_DOUBLINGS: u32 = 20;

/// Waits that double with each error in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first error.
    pub first: Duration,
    /// The longest wait, unless the server asks for a longer one.
    pub max: Duration,
}

/// A second, then up to five minutes.
impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), max: Duration::from_mins(5) }
    }
}

impl Backoff {
    /// Returns the wait after so many errors in a row: a random part of the second half of the doubled time, so that several
    /// machines do not try again at the same moment. It is at least what the server asked for, up to an hour.
    pub(crate) fn delay(self, errors: u32, retry_after: Option<Duration>) -> Duration {
        let doublings = errors.saturating_sub(1).min(MAX_DOUBLINGS);
        let whole = self.first.saturating_mul(1 << doublings).min(self.max);
        let thousandths = u32::try_from(RandomState::new().hash_one(0) % 1_000).unwrap_or_default();
        let delay = whole / 2 + whole / 2 * thousandths / 1_000;
        delay.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_maximum() {
        let backoff = Backoff::default();
        for (errors, seconds) in [(1, 1), (2, 2), (5, 16), (9, 256), (10, 300), (u32::MAX, 300)] {
            let whole = Duration::from_secs(seconds);
            let delay = backoff.delay(errors, None);
            assert!(delay >= whole / 2 && delay <= whole, "{errors}: {delay:?}");
        }
    }

    #[test]
    fn the_server_can_ask_for_a_longer_wait_but_not_for_any() {
        let backoff = Backoff::default();
        assert_eq!(backoff.delay(1, Some(Duration::from_mins(15))), Duration::from_mins(15));
        assert_eq!(backoff.delay(1, Some(Duration::MAX)), Duration::from_hours(1));
        assert!(backoff.delay(10, Some(Duration::from_secs(1))) >= Duration::from_secs(150));
    }
}
