//! Times in the tables.

use satchel_importer::{json::time_of_text, pam::time::TimeNote};

/// A time in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time {
    /// Microseconds since the Unix epoch, UTC.
    pub(crate) micros: i64,
    /// The text has no offset and is read as UTC.
    pub(crate) naive: bool,
}

/// Reads `2026-02-17T14:36:11` or, month first, `2/17/2026 2:36:11 PM`, each with or without an offset; `AM` and `PM` are
/// optional. A bare number is not a time: its unit is unknown.
pub(crate) fn parse(text: &str) -> Option<Time> {
    let text = text.trim();
    if text.contains('/') {
        return american(text);
    }
    let dated = text.contains('-') && text.contains(':');
    dated.then(|| iso(text)).flatten()
}

fn iso(text: &str) -> Option<Time> {
    let (micros, note) = time_of_text(text)?;
    Some(Time { micros, naive: note == Some(TimeNote::Naive) })
}

fn american(text: &str) -> Option<Time> {
    let mut words = text.split_ascii_whitespace();
    let mut date = words.next()?.splitn(3, '/').map(number);
    let (month, day, year) = (date.next()??, date.next()??, date.next()??);
    let clock = words.next()?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut parts = clock.split(':').map(number);
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    if parts.next().is_some() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (mut hour, mut offset) = (hour, "");
    for word in words {
        match word.to_ascii_uppercase().as_str() {
            "AM" | "PM" if !(1..=12).contains(&hour) => return None,
            "AM" => hour %= 12,
            "PM" => hour = hour % 12 + 12,
            _ if offset.is_empty() => offset = word,
            _ => return None,
        }
    }
    iso(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction}{offset}"))
}

fn number(text: &str) -> Option<u32> {
    (text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let naive = Some(Time { micros: 1_771_338_971_000_000, naive: true });
        let exact = Some(Time { micros: 1_771_338_971_000_000, naive: false });
        assert_eq!(parse("2026-02-17T14:36:11"), naive);
        assert_eq!(parse(" 2026-02-17 14:36:11"), naive);
        assert_eq!(parse("2026-02-17T14:36:11Z"), exact);
        assert_eq!(parse("2026-02-17T16:36:11+02:00"), exact);
        assert_eq!(parse("2/17/2026 14:36:11 +00:00"), exact);
        assert_eq!(parse("2/17/2026 16:36:11 +02:00"), exact);
        assert_eq!(parse("02/17/2026 2:36:11 PM"), naive);
        assert_eq!(parse("2/17/2026 2:36:11.0 pm +00:00"), exact);
        let midnight = parse("2/17/2026 12:05:00 AM +00:00");
        assert_eq!(midnight, parse("2026-02-17T00:05:00Z"));
        assert_eq!(parse("2/17/2026 12:05 PM +00:00"), parse("2026-02-17T12:05:00Z"));
    }

    #[test]
    fn other_texts_are_not_times() {
        for text in [
            "",
            "soon",
            "1771338971",
            "17/2/2026 14:36:11",
            "2/17/2026",
            "2/17/2026 14:36:11 x y",
            "2/30/2026 1:00:00",
            "2/17/2026 13:00:00 PM",
            "2026-02-17",
            "1/2/3/4 5:6:7",
            "a/b/c d:e:f",
            "2/17/2026 1:2:3:4",
            "2/17/2026 1:2:3.x",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
