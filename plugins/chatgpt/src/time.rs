//! Times of every form that exports hold, as microseconds since the Unix epoch.

use satchel_importer::{
    JsonError, Parser,
    json::Kind,
    pam::time::{TimeNote, Timestamp},
};

use crate::raw::Rest;

/// The time that is next in `json`: seconds as a number, or in quotes, or RFC 3339. Null and 0 are no time; what is
/// not understood, or not in full (a time without its zone), is kept as it stands.
pub(crate) fn read<'a>(
    key: &'a str,
    json: &mut Parser<'a>,
    rest: &mut Rest<'a>,
) -> Result<Option<i64>, JsonError> {
    let (read, raw) = match json.kind()? {
        Kind::Number => {
            let number = json.number()?.as_str();
            (seconds(number).map(|micros| (micros, None)), number)
        }
        Kind::String => {
            let raw = json.raw_value()?;
            (Parser::new(raw, json.arena()).string().ok().and_then(text), raw)
        }
        Kind::Null | Kind::Bool | Kind::Array | Kind::Object => return rest.keep(key, json).map(|()| None),
    };
    if !matches!(read, Some((_, None))) {
        rest.add_json(key, raw);
    }
    Ok(read.map(|(micros, _)| micros))
}

/// Midnight (UTC) of a date `YYYY-MM-DD`.
pub(crate) fn day(date: &str) -> Option<i64> {
    text(&format!("{date}T00:00:00Z")).map(|(micros, _)| micros)
}

/// The time, and what had to be assumed.
fn text(text: &str) -> Option<(i64, Option<TimeNote>)> {
    if text.parse::<f64>().is_ok() {
        return seconds(text).map(|micros| (micros, None));
    }
    Timestamp::parse_noting(text).ok().map(|(time, note)| (time.micros(), note))
}

/// Rounded as Python rounds, so that other readers of the export get the same microsecond.
fn seconds(text: &str) -> Option<i64> {
    let seconds: f64 = text.parse().ok()?;
    if seconds == 0.0 {
        return None;
    }
    Timestamp::from_epoch_seconds(seconds).ok().map(Timestamp::micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_times() {
        let text = |given| text(given).map(|(micros, _)| micros);
        assert_eq!(text("1750537483.023421"), Some(1_750_537_483_023_421));
        assert_eq!(text("2025-06-21T20:24:44.5Z"), Some(1_750_537_484_500_000));
        assert_eq!(text("0"), None);
        assert_eq!(text("NaN"), None);
        assert_eq!(text("inf"), None);
        assert_eq!(text("yesterday"), None);
        assert_eq!(day("2025-05-02"), Some(1_746_144_000_000_000));
        assert_eq!(day("2025-13-40"), None);
    }
}
