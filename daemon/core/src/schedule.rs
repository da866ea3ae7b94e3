//! Decides when scheduled exports are due, and when a full export is due.
//!
//! Pure: the caller provides the time. All times are UTC, so that daylight saving time does not affect the length of a
//! day.

use std::{fmt, path::PathBuf, str::FromStr};

/// Microseconds in a minute.
const MINUTE: i64 = 60_000_000;
/// Microseconds in an hour.
const HOUR: i64 = 60 * MINUTE;
/// Microseconds in a day.
const DAY: i64 = 24 * HOUR;
/// Days from Monday to Thursday, the weekday of the epoch.
const THURSDAY: i64 = 3;

/// The exports that the daemon makes by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledExports {
    /// When exports are made.
    pub schedule: Schedule,
    /// The output folder; it is created if it does not exist.
    pub folder: PathBuf,
    /// Number of full exports to keep, each with its newest incremental export.
    pub keep: usize,
    /// The age recipients to encrypt for. If empty, the exports are not encrypted.
    pub recipients: Vec<String>,
}

/// When an incremental export without a named base becomes a full one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalPolicy {
    /// Days after which a base is too old.
    pub days: u32,
    /// Share of the base, in percent of its memories and conversations, above which a delta is too large.
    pub percent: u32,
}

impl Default for RenewalPolicy {
    fn default() -> Self {
        Self { days: 30, percent: 50 }
    }
}

/// When exports are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Every given number of hours.
    Every { hours: u32 },
    /// Every day, this many minutes after midnight UTC.
    Daily { minute: u32 },
    /// Every Monday, this many minutes after midnight UTC.
    Weekly { minute: u32 },
}

/// A text that is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a schedule; write \"daily\", \"daily 03:00\", \"weekly\", \"weekly 03:00\" or \"every 6h\"; times are in UTC"
)]
pub struct InvalidSchedule(String);

impl FromStr for Schedule {
    type Err = InvalidSchedule;

    fn from_str(text: &str) -> Result<Self, InvalidSchedule> {
        let wrong = || InvalidSchedule(text.to_owned());
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
    /// Returns whether an export is due at `now`, given the time `last` of the last one. An export that was missed, for
    /// example because the machine was asleep, is made late, and only once.
    #[must_use]
    pub fn is_due(self, last: Option<i64>, now: i64) -> bool {
        let Some(last) = last else { return true };
        let passed =
            |length: i64, offset: i64| (now - offset).div_euclid(length) > (last - offset).div_euclid(length);
        match self {
            Self::Every { hours } => now - last >= i64::from(hours) * HOUR,
            Self::Daily { minute } => passed(DAY, i64::from(minute) * MINUTE),
            Self::Weekly { minute } => passed(7 * DAY, i64::from(minute) * MINUTE - THURSDAY * DAY),
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
    fn an_export_is_due_once_per_period() {
        let daily: Schedule = "daily 03:00".parse().unwrap();
        let last = at("2026-03-12T03:00:05Z");
        assert!(daily.is_due(None, last));
        for (now, due) in [
            ("2026-03-12T04:00:00Z", false),
            ("2026-03-13T02:59:59Z", false),
            ("2026-03-13T03:00:00Z", true),
            ("2026-03-20T00:00:00Z", true),
        ] {
            assert_eq!(daily.is_due(Some(last), at(now)), due, "{now}");
        }
        // 2026-03-16 is a Monday.
        let weekly: Schedule = "weekly 03:00".parse().unwrap();
        assert!(!weekly.is_due(Some(last), at("2026-03-16T02:59:59Z")));
        assert!(weekly.is_due(Some(last), at("2026-03-16T03:00:00Z")));
        let often: Schedule = "every 6h".parse().unwrap();
        assert!(!often.is_due(Some(last), at("2026-03-12T09:00:04Z")));
        assert!(often.is_due(Some(last), at("2026-03-12T09:00:05Z")));
    }
}
