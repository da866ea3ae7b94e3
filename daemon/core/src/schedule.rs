//! When exports are due that the daemon makes by itself, and when a full one is.
//!
//! Pure: the caller has the clock. Times are of UTC, so that a day is a day whatever the clocks of summer do.

use std::{fmt, path::PathBuf, str::FromStr};

/// Microseconds of a minute.
const MINUTE: i64 = 60_000_000;
/// Microseconds of an hour.
const HOUR: i64 = 60 * MINUTE;
/// Microseconds of a day.
const DAY: i64 = 24 * HOUR;
/// Days from a Monday to the epoch, which was a Thursday.
const THURSDAY: i64 = 3;

/// What the daemon exports by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regular {
    /// When.
    pub schedule: Schedule,
    /// Where to; the folder is made if it is not there.
    pub folder: PathBuf,
    /// How many full exports stay, each with its newest increment.
    pub keep: usize,
    /// The age recipients that they are encrypted to; none: they are plain.
    pub recipients: Vec<String>,
}

/// When an incremental export that names no base becomes a full one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// Days after which a base is too old.
    pub days: u32,
    /// Share of the base, in percent of its memories and conversations, past which a delta is too large.
    pub percent: u32,
}

impl Default for Renewal {
    fn default() -> Self {
        Self { days: 30, percent: 50 }
    }
}

/// When exports are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// After so many hours.
    Every { hours: u32 },
    /// Each day at so many minutes after midnight, UTC.
    Daily { minute: u32 },
    /// Each Monday at so many minutes after midnight, UTC.
    Weekly { minute: u32 },
}

/// A text that is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no schedule; write \"daily\", \"daily 03:00\", \"weekly\", \"weekly 03:00\" or \"every 6h\"; times are of UTC"
)]
pub struct NoSchedule(String);

impl FromStr for Schedule {
    type Err = NoSchedule;

    fn from_str(text: &str) -> Result<Self, NoSchedule> {
        let wrong = || NoSchedule(text.to_owned());
        let (word, rest) = text.split_once(' ').map_or((text, None), |(word, rest)| (word, Some(rest)));
        let minute = || rest.map_or(Some(0), minute_of_day).ok_or_else(wrong);
        match word {
            "daily" => Ok(Self::Daily { minute: minute()? }),
            "weekly" => Ok(Self::Weekly { minute: minute()? }),
            "every" => {
                let hours = rest.and_then(|rest| rest.strip_suffix('h')).and_then(|hours| hours.parse().ok());
                Ok(Self::Every {
                    hours: hours.filter(|hours| (1..=8_760).contains(hours)).ok_or_else(wrong)?,
                })
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every { hours } => write!(f, "every {hours}h"),
            Self::Daily { minute } => write!(f, "daily {:02}:{:02}", minute / 60, minute % 60),
            Self::Weekly { minute } => write!(f, "weekly {:02}:{:02}", minute / 60, minute % 60),
        }
    }
}

fn minute_of_day(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}

impl Schedule {
    /// Whether one is due at `now`, if the last was made at `last`: one that was missed, as the machine slept, is made late, and
    /// once.
    #[must_use]
    pub fn due(self, last: Option<i64>, now: i64) -> bool {
        let Some(last) = last else { return true };
        let turn =
            |length: i64, offset: i64| (now - offset).div_euclid(length) > (last - offset).div_euclid(length);
        match self {
            Self::Every { hours } => now - last >= i64::from(hours) * HOUR,
            Self::Daily { minute } => turn(DAY, i64::from(minute) * MINUTE),
            Self::Weekly { minute } => turn(7 * DAY, i64::from(minute) * MINUTE - THURSDAY * DAY),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        satchel_pam::time::Timestamp::parse(text).unwrap().micros()
    }

    #[test]
    fn schedules_are_read_and_shown() {
        for text in ["daily 03:00", "weekly 23:59", "every 6h"] {
            assert_eq!(text.parse::<Schedule>().unwrap().to_string(), text);
        }
        assert_eq!("daily".parse::<Schedule>().unwrap(), Schedule::Daily { minute: 0 });
        for text in [
            "",
            "hourly",
            "daily 24:00",
            "daily 3",
            "every",
            "every 0h",
            "every 6",
            "weekly 03:60",
            "every -1h",
        ] {
            assert!(text.parse::<Schedule>().is_err(), "{text}");
        }
    }

    #[test]
    fn one_is_due_when_its_time_has_come_and_only_once() {
        let daily: Schedule = "daily 03:00".parse().unwrap();
        let last = at("2026-03-12T03:00:05Z");
        assert!(daily.due(None, last));
        for (now, due) in [
            ("2026-03-12T04:00:00Z", false),
            ("2026-03-13T02:59:59Z", false),
            ("2026-03-13T03:00:00Z", true),
            ("2026-03-20T00:00:00Z", true),
        ] {
            assert_eq!(daily.due(Some(last), at(now)), due, "{now}");
        }
        // 2026-03-16 is a Monday.
        let weekly: Schedule = "weekly 03:00".parse().unwrap();
        assert!(!weekly.due(Some(last), at("2026-03-16T02:59:59Z")));
        assert!(weekly.due(Some(last), at("2026-03-16T03:00:00Z")));
        let often: Schedule = "every 6h".parse().unwrap();
        assert!(!often.due(Some(last), at("2026-03-12T09:00:04Z")));
        assert!(often.due(Some(last), at("2026-03-12T09:00:05Z")));
    }
}
