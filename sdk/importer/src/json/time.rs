//! Reads times in every form that exports use, as microseconds since the Unix epoch, UTC.

use std::borrow::Cow;

use satchel_pam::time::{TimeNote, Timestamp};

use super::{JsonError, Kind, Leftover, Object, Parser, Value};

/// Larger numbers are milliseconds, not seconds; as seconds this is the year 2603.
const MILLISECONDS_ABOVE: f64 = 2e10;
/// Larger numbers are microseconds; as milliseconds this is the year 2603.
const MICROSECONDS_ABOVE: f64 = 2e13;

/// A time in microseconds, and what was assumed about it.
type Time = (i64, Option<TimeNote>);

impl<'a> Leftover<'a> {
    /// Reads a time, in microseconds since the Unix epoch: an RFC 3339 date-time; seconds, milliseconds or microseconds as a number or a
    /// text; or the `{"$date": …}` of BSON. 0, null and the first moment of 1970, which programs write for "none yet", are not times. A date-time without an offset is read as UTC and also kept verbatim;
    /// any other value is kept verbatim.
    pub fn time(&mut self, key: &'a str, json: &mut Parser<'a>) -> Result<Option<i64>, JsonError> {
        let (time, raw) = match json.kind()? {
            Kind::Number => {
                let number = json.number()?;
                (of_number(number.as_str()).map(|micros| (micros, None)), number.json())
            }
            Kind::String => {
                let raw = json.raw_value()?;
                (time_of_text(Parser::new(raw, json.arena()).string()?), Cow::Borrowed(raw))
            }
            Kind::Object => {
                let raw = json.raw_value()?;
                if raw == "{}" {
                    return Ok(None);
                }
                (of_date_object(&Object::parse(raw, json.arena()), json), Cow::Borrowed(raw))
            }
            Kind::Null | Kind::Bool | Kind::Array => return self.keep(key, json).map(|()| None),
        };
        match time {
            None | Some((_, Some(TimeNote::Naive))) => self.add_json(key, &raw),
            Some(_) => self.remove(key),
        }
        Ok(time.map(|(micros, _)| micros))
    }
}

/// Parses a time as [`Leftover::time`] does: in microseconds since the Unix epoch, with a note on what was assumed. None for 0,
/// for the first moment of 1970 in any form, and for other texts.
pub fn time_of_text(text: &str) -> Option<Time> {
    if text.parse::<f64>().is_ok() {
        return of_number(text).map(|micros| (micros, None));
    }
    let time = Timestamp::parse_noting(text).ok().map(|(time, note)| (time.micros(), note));
    time.filter(|(micros, _)| *micros != 0)
}

/// Midnight (UTC) of a date `YYYY-MM-DD`, in microseconds.
pub fn time_of_date(date: &str) -> Option<i64> {
    Timestamp::parse(&format!("{date}T00:00:00Z")).ok().map(Timestamp::micros)
}

/// Rounds as Python does, so that other readers of the export get the same microsecond.
fn of_number(text: &str) -> Option<i64> {
    let number: f64 = text.parse().ok()?;
    let parts = match number.abs() {
        size if size > MICROSECONDS_ABOVE => 1e6,
        size if size > MILLISECONDS_ABOVE => 1e3,
        _ => 1.0,
    };
    of_seconds(number / parts)
}

fn of_seconds(seconds: f64) -> Option<i64> {
    if seconds == 0.0 {
        return None;
    }
    Timestamp::from_epoch_seconds(seconds).ok().map(Timestamp::micros)
}

/// `{"$date": "2025-…Z"}`, `{"$date": 1750537484500}`, `{"$date": {"$numberLong": "1750537484500"}}`; numbers are
/// milliseconds.
fn of_date_object<'a>(object: &Object<'a>, json: &Parser<'a>) -> Option<Time> {
    let millis = |text: &str| of_seconds(text.parse::<f64>().ok()? / 1e3).map(|micros| (micros, None));
    match object.get("$date") {
        Value::Text(text) => time_of_text(text),
        Value::Raw(raw) if raw.starts_with('{') => {
            millis(Object::parse(raw, json.arena()).text("$numberLong")?)
        }
        Value::Raw(raw) => millis(raw),
        Value::Null => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arena;

    #[test]
    fn numbers_and_texts_are_times() {
        let text = |given| time_of_text(given).map(|(micros, _)| micros);
        assert_eq!(text("1750537483.023421"), Some(1_750_537_483_023_421));
        assert_eq!(text("1750537484500"), Some(1_750_537_484_500_000));
        assert_eq!(text("1750537484123.5"), Some(1_750_537_484_123_500));
        assert_eq!(text("1750537484500001"), Some(1_750_537_484_500_001));
        assert_eq!(text("2025-06-21T20:24:44.5Z"), Some(1_750_537_484_500_000));
        assert_eq!(text("2025-06-21T22:24:44.500000+02:00"), Some(1_750_537_484_500_000));
        assert_eq!(time_of_text("2025-06-21T20:24:44"), Some((1_750_537_484_000_000, Some(TimeNote::Naive))));
        let epoch = ["1970-01-01T00:00:00Z", "1970-01-01T01:00:00.000+01:00", "1970-01-01T00:00:00"];
        for none in ["0", "0.0", "NaN", "inf", "yesterday", "", "1e300"].into_iter().chain(epoch) {
            assert_eq!(text(none), None, "{none}");
        }
        assert_eq!(time_of_date("2025-05-02"), Some(1_746_144_000_000_000));
        assert_eq!(time_of_date("2025-13-40"), None);
    }

    #[test]
    fn values_that_are_not_complete_times_are_kept() {
        let arena = Arena::new();
        let time = |value: &str| {
            let text = arena.alloc_str(value);
            let mut rest = Leftover::default();
            let micros = rest.time("t", &mut Parser::new(text, &arena)).expect("it is JSON");
            (micros, rest.into_json().map(Cow::into_owned))
        };
        let noon = Some(1_750_507_200_000_000);
        assert_eq!(time("1750507200"), (noon, None));
        assert_eq!(time("\"2025-06-21T12:00:00Z\""), (noon, None));
        assert_eq!(time("\"2025-06-21 12:00:00Z\""), (noon, None));
        assert_eq!(time("\"2025-06-21T12:00:00\""), (noon, Some(r#"{"t":"2025-06-21T12:00:00"}"#.into())));
        assert_eq!(time(r#"{"$date":{"$numberLong":"1750507200000"}}"#), (noon, None));
        assert_eq!(time(r#"{"$date":1750507200000}"#), (noon, None));
        assert_eq!(time(r#"{"$date":"2025-06-21T12:00:00.000Z"}"#), (noon, None));
        assert_eq!(
            time(r#"{"$date":{"$numberLong":true}}"#),
            (None, Some(r#"{"t":{"$date":{"$numberLong":true}}}"#.into()))
        );
        assert_eq!(time("\"soon\""), (None, Some(r#"{"t":"soon"}"#.into())));
        assert_eq!(time("[1]"), (None, Some(r#"{"t":[1]}"#.into())));
        assert_eq!(time("0"), (None, Some(r#"{"t":0}"#.into())));
        let epoch = "\"1970-01-01T00:00:00Z\"";
        assert_eq!(time(epoch), (None, Some(format!("{{\"t\":{epoch}}}"))));
        assert_eq!(time(&format!("{{\"$date\":{epoch}}}")).0, None);
        assert_eq!(time("null"), (None, None));
    }
}
