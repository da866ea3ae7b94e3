//! Times of every form that exports hold, as microseconds since the Unix epoch.

use satchel_importer::{JsonError, Leftover, Parser, json::Kind, pam::time::Timestamp};

/// The time that is next in `json`: seconds as a number, or in quotes, or RFC 3339. Null and 0 are no time; anything
/// that is not understood is kept.
pub(crate) fn read<'a>(
    key: &'a str,
    json: &mut Parser<'a>,
    rest: &mut Leftover<'a>,
) -> Result<Option<i64>, JsonError> {
    let kind = json.kind()?;
    let raw = json.raw_value()?;
    let micros = match kind {
        Kind::Null => return Ok(None),
        Kind::Number => seconds(raw),
        Kind::String => Parser::new(raw, json.arena()).string().ok().and_then(text),
        Kind::Bool | Kind::Array | Kind::Object => None,
    };
    if micros.is_none() {
        rest.add_json(key, raw);
    }
    Ok(micros)
}

/// Midnight (UTC) of a date `YYYY-MM-DD`.
pub(crate) fn day(date: &str) -> Option<i64> {
    text(&format!("{date}T00:00:00Z"))
}

fn text(text: &str) -> Option<i64> {
    let timestamp = || Timestamp::parse(text).ok().map(Timestamp::micros);
    seconds(text).or_else(timestamp)
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
