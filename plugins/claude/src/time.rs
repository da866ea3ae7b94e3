//! Times of every form that exports hold, as microseconds since the Unix epoch.

use satchel_importer::{JsonError, Leftover, Parser, json::Kind, pam::time::Timestamp};

/// The time that is next in `json`: a date-time, or seconds. Null and 0 are no time; what is not understood is kept.
pub(crate) fn read<'a>(
    key: &'a str,
    json: &mut Parser<'a>,
    rest: &mut Leftover<'a>,
) -> Result<Option<i64>, JsonError> {
    if json.kind()? == Kind::String {
        let text = json.string()?;
        let micros = parse(text);
        if micros.is_none() {
            rest.add_text(key, text);
        }
        return Ok(micros);
    }
    // A number that is no time is 0, which says nothing.
    Ok(rest.number(key, json)?.and_then(|number| parse(number.as_str())))
}

/// The time that `text` names.
pub(crate) fn parse(text: &str) -> Option<i64> {
    Timestamp::parse(text).ok().map(Timestamp::micros).filter(|micros| *micros != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_offset() {
        assert_eq!(parse("2025-06-21T20:24:44.5Z"), Some(1_750_537_484_500_000));
        assert_eq!(parse("2025-06-21T22:24:44.500000+02:00"), Some(1_750_537_484_500_000));
        assert_eq!(parse("1750537484.5"), Some(1_750_537_484_500_000));
        assert_eq!(parse("0"), None);
        assert_eq!(parse("yesterday"), None);
    }
}
