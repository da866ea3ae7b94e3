//! Timestamps: microseconds since the Unix epoch, with the offset that the text had.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

mod civil;
mod text;

/// 0001-01-01T00:00:00Z in microseconds.
pub const MIN_MICROS: i64 = -62_135_596_800_000_000;
/// 9999-12-31T23:59:59.999999Z in microseconds.
pub const MAX_MICROS: i64 = 253_402_300_799_999_999;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
const MICROS_PER_DAY: i64 = 24 * 60 * MICROS_PER_MINUTE;

/// A time as PAM documents hold it: an instant of the years 1 to 9999 with microseconds, and an offset from UTC.
///
/// Two texts of the same instant with different offsets are different values, so that a foreign document is written
/// as it was read; order is by instant first. Compare [`Timestamp::micros`] where only the instant counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    micros: i64,
    /// Minutes east of UTC, within one day.
    offset: i16,
}

/// Why a text or a number is no timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// Not a form that PAM readers accept.
    #[error("is not a date-time such as 2026-01-31T12:00:00Z")]
    Form,
    /// A month, day, hour, minute, second or offset that does not exist.
    #[error("has a {0} that does not exist")]
    Field(&'static str),
    /// Outside the years 1 to 9999.
    #[error("is outside the years 0001 to 9999")]
    Range,
}

/// How a text differed from RFC 3339, though it was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeNote {
    /// It had no offset; UTC was assumed.
    Naive,
    /// Another form that readers in the field accept: a date alone, epoch seconds or milliseconds, no seconds, …
    Lenient,
}

impl Timestamp {
    /// 1970-01-01T00:00:00Z, which stands where nobody knows the time: PAM requires one.
    pub const EPOCH: Self = Self { micros: 0, offset: 0 };

    /// Microseconds since the Unix epoch, UTC; none outside the years 1 to 9999.
    #[must_use]
    pub fn from_micros(micros: i64) -> Option<Self> {
        (MIN_MICROS..=MAX_MICROS).contains(&micros).then_some(Self { micros, offset: 0 })
    }

    /// Whether this is a time and not [`Timestamp::EPOCH`], which stands for one that nobody knows.
    #[must_use]
    pub const fn known(self) -> bool {
        self.micros != Self::EPOCH.micros
    }

    /// Midnight, UTC, of a day; none if the calendar has no such day in the years 1 to 9999.
    ///
    /// ```
    /// use satchel_pam::time::Timestamp;
    /// let day = Timestamp::of_day(2026, 2, 28).map(|day| day.to_string());
    /// assert_eq!(day.as_deref(), Some("2026-02-28T00:00:00Z"));
    /// assert_eq!(Timestamp::of_day(2026, 2, 29), None);
    /// ```
    #[must_use]
    pub fn of_day(year: i64, month: i64, day: i64) -> Option<Self> {
        let years = (1..=9999).contains(&year);
        years
            .then(|| civil::days(year, month, day))
            .flatten()
            .and_then(|days| Self::from_micros(days * MICROS_PER_DAY))
    }

    /// Microseconds since the Unix epoch, UTC, moved into the years 1 to 9999.
    #[must_use]
    pub fn saturating(micros: i64) -> Self {
        Self { micros: micros.clamp(MIN_MICROS, MAX_MICROS), offset: 0 }
    }

    /// Epoch seconds as floating point, rounded to microseconds half to even, as Python's `fromtimestamp` does.
    ///
    /// Exports of ChatGPT hold their times so; another rounding gives other bytes than the tools in the field.
    ///
    /// # Errors
    /// [`TimeError::Range`] outside the years 1 to 9999, also for NaN and infinities.
    pub fn from_epoch_seconds(seconds: f64) -> Result<Self, TimeError> {
        const BOUND: f64 = 1e12;
        if seconds.is_nan() || seconds.abs() > BOUND {
            return Err(TimeError::Range);
        }
        let micros = (seconds.fract() * 1e6).round_ties_even();
        #[expect(clippy::cast_possible_truncation, reason = "bounded above, and both are whole")]
        let (seconds, micros) = (seconds.trunc() as i64, micros as i64);
        Self::from_micros(seconds * MICROS_PER_SECOND + micros).ok_or(TimeError::Range)
    }

    /// Reads a PAM timestamp: RFC 3339, and the looser forms that the official SDK reads; without offset it is UTC.
    ///
    /// # Errors
    /// If the text is no such form, or names a time that does not exist.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        Self::parse_noting(text).map(|(time, _)| time)
    }

    /// Like [`Timestamp::parse`], and says how the text differed from RFC 3339.
    ///
    /// # Errors
    /// As [`Timestamp::parse`].
    pub fn parse_noting(text: &str) -> Result<(Self, Option<TimeNote>), TimeError> {
        text::parse(text)
    }

    /// Microseconds since the Unix epoch, UTC.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.micros
    }

    /// Minutes east of UTC; 0 is written as `Z`.
    #[must_use]
    pub const fn offset_minutes(self) -> i16 {
        self.offset
    }

    /// The same instant in UTC.
    #[must_use]
    pub const fn to_utc(self) -> Self {
        Self { micros: self.micros, offset: 0 }
    }

    fn local_micros(self) -> i64 {
        self.micros + i64::from(self.offset) * MICROS_PER_MINUTE
    }
}

/// The normal form: `YYYY-MM-DDTHH:MM:SS`, six digits of fraction unless all are zero, then `Z` or `±HH:MM`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(text::write(*self, &mut [0; text::LONGEST]))
    }
}

impl FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        Self::parse(text)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text::write(*self, &mut [0; text::LONGEST]))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Timestamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a date-time")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                Timestamp::parse(text).map_err(|problem| E::custom(format_args!("{text:?} {problem}")))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

pub(crate) use text::{from_number, normal_text};
