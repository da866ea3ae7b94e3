//! Timestamps (A-14 to A-16): microseconds since the Unix epoch, with the UTC offset of the text.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

mod civil;
mod text;

#[cfg(feature = "documents")]
pub(crate) use text::from_number;
pub(crate) use text::normal_text;

/// 0001-01-01T00:00:00Z in microseconds.
pub const MIN_MICROS: i64 = -62_135_596_800_000_000;
/// 9999-12-31T23:59:59.999999Z in microseconds.
pub const MAX_MICROS: i64 = 253_402_300_799_999_999;

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
const MICROS_PER_DAY: i64 = 24 * 60 * MICROS_PER_MINUTE;

/// A timestamp of PAM documents: an instant in the years 1 to 9999 with microseconds, and an offset from UTC.
///
/// Equal instants with different offsets are different values, so that a foreign document is written as it was read. The order is
/// by instant first. Compare [`Timestamp::micros`] if only the instant matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    micros: i64,
    /// Minutes east of UTC, within one day.
    offset: i16,
}

/// Why a text or a number is not a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// Not an accepted form.
    #[error("is not a date-time such as 2026-01-31T12:00:00Z")]
    Form,
    /// A month, day, hour, minute, second or offset that does not exist.
    #[error("has a {0} that does not exist")]
    Field(&'static str),
    /// Outside the years 1 to 9999.
    #[error("is outside the years 0001 to 9999")]
    Range,
}

/// How an accepted text differs from RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeNote {
    /// It has no offset; UTC is assumed (A-15).
    Naive,
    /// Another form that the official SDK accepts, such as epoch seconds or a time without seconds (A-14).
    Lenient,
}

impl Timestamp {
    /// 1970-01-01T00:00:00Z, which stands for an unknown time where PAM requires one.
    pub const EPOCH: Self = Self { micros: 0, offset: 0 };

    /// Creates a timestamp from microseconds since the Unix epoch, UTC; none outside the years 1 to 9999.
    #[must_use]
    pub fn from_micros(micros: i64) -> Option<Self> {
        (MIN_MICROS..=MAX_MICROS).contains(&micros).then_some(Self { micros, offset: 0 })
    }

    /// Whether the time is known, that is, not [`Timestamp::EPOCH`].
    #[must_use]
    pub const fn known(self) -> bool {
        self.micros != Self::EPOCH.micros
    }

    /// Midnight UTC of a day; none if the day does not exist or is outside the years 1 to 9999.
    ///
    /// ```
    /// use satchel_pam::time::Timestamp;
    /// let day = Timestamp::of_day(2026, 2, 28).map(|day| day.to_string());
    /// assert_eq!(day.as_deref(), Some("2026-02-28T00:00:00Z"));
    /// assert_eq!(Timestamp::of_day(2026, 2, 29), None);
    /// ```
    #[must_use]
    pub fn of_day(year: i64, month: i64, day: i64) -> Option<Self> {
        if !(1..=9999).contains(&year) {
            return None;
        }
        civil::days(year, month, day).and_then(|days| Self::from_micros(days * MICROS_PER_DAY))
    }

    /// Creates a timestamp from microseconds since the Unix epoch, UTC, clamped to the years 1 to 9999.
    #[must_use]
    pub fn saturating(micros: i64) -> Self {
        Self { micros: micros.clamp(MIN_MICROS, MAX_MICROS), offset: 0 }
    }

    /// Converts epoch seconds, rounded to microseconds half to even like Python's `fromtimestamp` (A-16).
    ///
    /// ChatGPT exports such times, and another rounding would differ from other tools.
    ///
    /// # Errors
    /// [`TimeError::Range`] outside the years 1 to 9999, and for NaN and infinities.
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

    /// Parses RFC 3339 and the other forms that the official SDK accepts. Without an offset, the time is UTC.
    ///
    /// # Errors
    /// If the text has no such form or the time does not exist.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        Self::parse_noting(text).map(|(time, _)| time)
    }

    /// Like [`Timestamp::parse`], and returns how the text differs from RFC 3339.
    ///
    /// # Errors
    /// Like [`Timestamp::parse`].
    pub fn parse_noting(text: &str) -> Result<(Self, Option<TimeNote>), TimeError> {
        text::parse(text)
    }

    /// Microseconds since the Unix epoch, UTC.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.micros
    }

    fn local_micros(self) -> i64 {
        self.micros + i64::from(self.offset) * MICROS_PER_MINUTE
    }
}

/// Writes the normal form: `YYYY-MM-DDTHH:MM:SS`, a fraction of six digits unless it is zero, then `Z` or `±HH:MM`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(text::write(*self, &mut [0; text::MAX_LENGTH]))
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
        serializer.serialize_str(text::write(*self, &mut [0; text::MAX_LENGTH]))
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
