//! Times of changes in a hybrid clock: close to the wall clock, and never backwards.
//!
//! All times are microseconds since the Unix epoch, UTC. They only break ties between concurrent changes; which change has seen which is
//! in the contexts.

use satchel_pam::time::MAX_MICROS;

/// The least difference between two times of one store: 1 ms, because many programs that read exports drop the microseconds.
pub const STEP_MICROS: i64 = 1_000;

/// How far a time may be after its arrival: 24 hours, more than any mistake about time zones or daylight saving time.
pub const TOLERANCE_MICROS: i64 = 24 * 60 * 60 * 1_000_000;

/// The next time would be after the year 9999, which PAM cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the clock has passed the year 9999")]
pub struct ClockExhausted;

/// The time of the next change: `now`, or 1 ms after `last` if that is later.
///
/// `last` is the latest time that this store has given or has seen, each as [`comparable`] returns it. Otherwise, a store whose
/// clock is years ahead would take all others with it.
///
/// # Errors
/// [`ClockExhausted`] if the time would be after the year 9999.
pub fn next(now: i64, last: i64) -> Result<i64, ClockExhausted> {
    let next = last.saturating_add(STEP_MICROS).max(now);
    if next > MAX_MICROS { Err(ClockExhausted) } else { Ok(next) }
}

/// The time by which a change is compared with others: its own, or that of its arrival if its own is more than 24 hours later. The
/// text of the change keeps its own time.
///
/// **All stores must pass the same `arrival` for the same change**, or they order changes differently and never agree. The
/// time at which a change reached this store is not suitable, since it reaches each store at another time. The first store that
/// receives a change has to write the arrival down in a change of its own, or the time of a change that has seen it is used.
#[must_use]
pub fn comparable(time: i64, arrival: i64) -> i64 {
    if time > arrival.saturating_add(TOLERANCE_MICROS) { arrival } else { time }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_790_000_000_000_000;

    #[test]
    fn the_wall_clock_leads_while_it_runs_forwards() {
        assert_eq!(next(NOON, NOON - STEP_MICROS), Ok(NOON));
        assert_eq!(next(NOON, i64::MIN), Ok(NOON));
    }

    #[test]
    fn a_clock_that_stands_still_or_jumps_back_gives_later_times() {
        assert_eq!(next(NOON, NOON), Ok(NOON + 1_000));
        assert_eq!(next(NOON, NOON - 999), Ok(NOON + 1));
        assert_eq!(next(NOON - 400 * TOLERANCE_MICROS, NOON), Ok(NOON + 1_000));
    }

    #[test]
    fn no_time_is_after_the_year_9999() {
        assert_eq!(next(NOON, MAX_MICROS - STEP_MICROS), Ok(MAX_MICROS));
        assert_eq!(next(NOON, MAX_MICROS - STEP_MICROS + 1), Err(ClockExhausted));
        assert_eq!(next(NOON, i64::MAX), Err(ClockExhausted));
        assert_eq!(next(i64::MAX, NOON), Err(ClockExhausted));
    }

    #[test]
    fn a_time_more_than_a_day_after_its_arrival_counts_as_its_arrival() {
        assert_eq!(comparable(NOON + TOLERANCE_MICROS, NOON), NOON + TOLERANCE_MICROS);
        assert_eq!(comparable(NOON + TOLERANCE_MICROS + 1, NOON), NOON);
        assert_eq!(comparable(NOON - 400 * TOLERANCE_MICROS, NOON), NOON - 400 * TOLERANCE_MICROS);
        assert_eq!(comparable(i64::MAX, i64::MAX), i64::MAX);
    }

    /// Why `arrival` has to be the same everywhere.
    #[test]
    fn different_arrivals_order_two_changes_differently() {
        let (fast, other) = (NOON + 400 * TOLERANCE_MICROS, NOON + TOLERANCE_MICROS);
        assert!(comparable(fast, NOON) < comparable(other, NOON));
        assert!(comparable(fast, fast) > comparable(other, fast));
    }
}
