//! The only module that reads the current time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last microsecond of the year 9999, the end of the range of every format that we write.
const MAX_MICROS: i64 = 253_402_300_799_999_999;

/// A clock. Tests use their own.
pub trait Clock: Send + Sync {
    /// Returns microseconds since the Unix epoch.
    fn now_micros(&self) -> i64;
}

/// The system clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => micros(since),
            Err(before) => -micros(before.duration()),
        }
    }
}

/// The clock shows a time that cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the clock of this machine is {}; set it, nothing was changed", if *before { "before the year 1970" } else { "after the year 9999" })]
pub struct ClockError {
    before: bool,
}

/// Refuses a time that PAM or our own formats cannot represent.
///
/// # Errors
/// The time is before 1970 or after 9999.
pub fn check(now_micros: i64) -> Result<i64, ClockError> {
    match now_micros {
        0..=MAX_MICROS => Ok(now_micros),
        _ => Err(ClockError { before: now_micros < 0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_that_can_be_stored_are_accepted() {
        assert_eq!(check(0), Ok(0));
        assert_eq!(check(MAX_MICROS), Ok(MAX_MICROS));
        assert!(check(-1).is_err_and(|error| error.to_string().contains("before the year 1970")));
        assert!(check(MAX_MICROS + 1).is_err_and(|error| error.to_string().contains("after the year 9999")));
        assert!(check(SystemClock.now_micros()).is_ok());
    }
}
