//! Times, ranges and enums that many messages share.

use prost_types::Timestamp;
use satchel_proto::{integers::ToUnsigned, v1};
use satchel_store::{TimeRange, UNKNOWN_TIME};

use super::WireError;

/// 0001-01-01T00:00:00Z, in seconds since the Unix epoch.
const FIRST_SECOND: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z, in seconds since the Unix epoch.
const LAST_SECOND: i64 = 253_402_300_799;
const MICROS: i64 = 1_000_000;

/// Converts microseconds since the Unix epoch to the wire.
#[must_use]
pub fn time_to_wire(micros: i64) -> Timestamp {
    let nanos = i32::try_from(micros.rem_euclid(MICROS) * 1_000).unwrap_or(0);
    Timestamp { seconds: micros.div_euclid(MICROS), nanos }
}

/// Reads microseconds since the Unix epoch from the wire.
///
/// # Errors
/// Years before 1 and after 9999, and digits below the microsecond.
pub fn time_from_wire(field: &str, wire: Timestamp) -> Result<i64, WireError> {
    let Timestamp { seconds, nanos } = wire;
    if !(FIRST_SECOND..=LAST_SECOND).contains(&seconds) || !(0..1_000_000_000).contains(&nanos) {
        return Err(WireError::new(field, "is not a time between the years 1 and 9999"));
    }
    if nanos % 1_000 != 0 {
        return Err(WireError::new(field, "has digits below the microsecond"));
    }
    Ok(seconds * MICROS + i64::from(nanos / 1_000))
}

/// Converts the time of a record to the wire; `None` if it is unknown.
#[must_use]
pub fn known_micros_to_wire(micros: i64) -> Option<Timestamp> {
    (micros != UNKNOWN_TIME).then(|| time_to_wire(micros))
}

/// Reads an optional time.
///
/// # Errors
/// As for [`time_from_wire`].
pub fn optional_time_from_wire(field: &str, wire: Option<Timestamp>) -> Result<Option<i64>, WireError> {
    wire.map(|wire| time_from_wire(field, wire)).transpose()
}

/// Reads a range from the wire.
///
/// # Errors
/// A range without ends, and one that ends before it begins.
pub fn range_from_wire(field: &str, wire: Option<v1::TimeRange>) -> Result<TimeRange, WireError> {
    let Some(v1::TimeRange { start, end }) = wire else { return Ok(TimeRange::default()) };
    let in_field = |error: WireError| error.in_field(field);
    let from = optional_time_from_wire("start", start).map_err(in_field)?;
    let until = optional_time_from_wire("end", end).map_err(in_field)?;
    match (from, until) {
        (None, None) => Err(WireError::new(field, "has neither start nor end")),
        (Some(from), Some(until)) if until < from => Err(WireError::new(field, "ends before it begins")),
        _ => Ok(TimeRange { from, until }),
    }
}

/// Largest number of values in one field of a filter.
const MAX_VALUES: usize = 100;
/// Longest value in a filter, in bytes.
const MAX_VALUE_BYTES: usize = 1_024;

/// Reads the values of a filter field.
///
/// # Errors
/// Too many values, an empty value, or one that is too long.
pub fn values_from_wire(field: &str, wire: Vec<String>) -> Result<Vec<String>, WireError> {
    check_count(field, wire.len())?;
    for value in &wire {
        if value.is_empty() {
            return Err(WireError::new(field, "must not hold an empty value"));
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(WireError::new(field, format!("holds a value longer than {MAX_VALUE_BYTES} bytes")));
        }
    }
    Ok(wire)
}

/// Reads the single value of a filter field; an empty text means any value.
///
/// # Errors
/// A value that is too long.
pub fn value_from_wire(field: &str, wire: String) -> Result<Option<String>, WireError> {
    if wire.len() > MAX_VALUE_BYTES {
        return Err(WireError::new(field, format!("is longer than {MAX_VALUE_BYTES} bytes")));
    }
    Ok((!wire.is_empty()).then_some(wire))
}

/// Checks the number of values of a filter field.
///
/// # Errors
/// Too many values.
pub fn check_count(field: &str, count: usize) -> Result<(), WireError> {
    if count > MAX_VALUES {
        return Err(WireError::new(field, format!("has {count} values, at most {MAX_VALUES} are allowed")));
    }
    Ok(())
}

/// Truncates `text` to at most `bytes` bytes, at a character boundary.
#[must_use]
pub fn truncate(mut text: String, bytes: usize) -> String {
    let end = text.floor_char_boundary(bytes);
    text.truncate(end);
    text
}

/// Reads a count.
///
/// # Errors
/// A negative number.
pub fn count_from_wire<T: ToUnsigned<Count = C>, C>(field: &str, wire: T) -> Result<C, WireError>
where
    C: TryFrom<T>,
{
    C::try_from(wire).map_err(|_| WireError::new(field, "is negative"))
}

/// Converts a duration to the wire; one that is out of range becomes zero.
#[must_use]
pub fn duration_to_wire(duration: std::time::Duration) -> prost_types::Duration {
    prost_types::Duration::try_from(duration).unwrap_or_default()
}

/// Converts a duration from the wire; `None` if it is negative or its nanoseconds are not those of a fraction.
///
/// The conversion of `prost_types` negates a negative duration, and panics for the smallest one.
#[must_use]
pub fn duration_from_wire(wire: prost_types::Duration) -> Option<std::time::Duration> {
    let prost_types::Duration { seconds, nanos } = wire;
    let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some(std::time::Duration::new(u64::try_from(seconds).ok()?, nanos))
}

/// Defines both conversions of an enum whose variants have the same meaning on both sides; the wire's zero is refused.
macro_rules! enum_pair {
    ($to:ident, $from:ident, $ours:ty, $wire:ty, [$($variant:ident => $number:ident),+ $(,)?]) => {
        /// Converts the value to the wire.
        #[must_use]
        pub fn $to(ours: $ours) -> i32 {
            match ours {
                $(<$ours>::$variant => <$wire>::$number.into(),)+
            }
        }

        /// Reads the value from the wire.
        ///
        /// # Errors
        /// Zero and unknown numbers.
        pub fn $from(field: &str, wire: i32) -> Result<$ours, $crate::grpc::wire::WireError> {
            match <$wire>::try_from(wire) {
                $(Ok(<$wire>::$number) => Ok(<$ours>::$variant),)+
                _ => Err($crate::grpc::wire::WireError::new(field, format!("holds {wire}, which is not a known value"))),
            }
        }
    };
}
pub(crate) use enum_pair;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grpc::wire::testing::range_to_wire;

    proptest! {
        #[test]
        fn a_time_survives_a_round_trip(micros in FIRST_SECOND * MICROS..=LAST_SECOND * MICROS) {
            prop_assert_eq!(time_from_wire("t", time_to_wire(micros)), Ok(micros));
        }

        #[test]
        fn a_range_survives_a_round_trip(from in proptest::option::of(0..1_000_i64), length in proptest::option::of(0..1_000_i64)) {
            let until = length.map(|length| from.unwrap_or(0) + length);
            let range = TimeRange { from, until };
            prop_assert_eq!(range_from_wire("r", range_to_wire(range)), Ok(range));
        }

        #[test]
        fn any_time_is_parsed_or_refused(seconds in any::<i64>(), nanos in any::<i32>()) {
            if let Ok(micros) = time_from_wire("t", Timestamp { seconds, nanos }) {
                prop_assert_eq!(time_to_wire(micros), Timestamp { seconds, nanos });
            }
        }

        #[test]
        fn a_truncated_text_is_a_prefix(text in ".{0,40}", bytes in 0..60_usize) {
            let short = truncate(text.clone(), bytes);
            prop_assert!(short.len() <= bytes && text.starts_with(&short));
        }
    }

    #[test]
    fn durations_out_of_range_are_refused() {
        let duration = |seconds, nanos| duration_from_wire(prost_types::Duration { seconds, nanos });
        assert_eq!(duration(1, 500_000_000), Some(std::time::Duration::from_millis(1_500)));
        for (seconds, nanos) in [(i64::MIN, i32::MIN), (i64::MIN, 0), (-1, 0), (0, -1), (1, i32::MAX)] {
            assert_eq!(duration(seconds, nanos), None);
        }
    }

    #[test]
    fn invalid_ranges_are_refused() {
        let time = |micros| Some(time_to_wire(micros));
        assert!(range_from_wire("r", Some(v1::TimeRange { start: None, end: None })).is_err());
        assert!(range_from_wire("r", Some(v1::TimeRange { start: time(2), end: time(1) })).is_err());
        let fine = Some(Timestamp { seconds: 0, nanos: 1 });
        let error = range_from_wire("r", Some(v1::TimeRange { start: fine, end: None })).err();
        assert_eq!(error.map(|error| error.field), Some("r.start".to_owned()));
    }

    #[test]
    fn filters_are_bounded() {
        assert!(values_from_wire("f", vec!["a".to_owned(); MAX_VALUES]).is_ok());
        assert!(values_from_wire("f", vec!["a".to_owned(); MAX_VALUES + 1]).is_err());
        assert!(values_from_wire("f", vec![String::new()]).is_err());
        assert!(values_from_wire("f", vec!["a".repeat(MAX_VALUE_BYTES + 1)]).is_err());
        assert_eq!(value_from_wire("f", String::new()), Ok(None));
    }
}
