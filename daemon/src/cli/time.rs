//! Times as people type and read them.

use jiff::{
    Span, Timestamp,
    civil::{Date, DateTime},
    tz::TimeZone,
};
use satchel_proto::v1::TimeRange;

use super::error::CliError;

/// Now, and where the person is.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    pub now: Timestamp,
    pub zone: TimeZone,
}

/// Which end of a range a text stands at: a day counts whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Since,
    Until,
}

impl Calendar {
    /// Returns a short form for tables: `just now`, `12 min ago`, `3 h ago`, `yesterday`, `12 Mar`, `12 Mar 2025`.
    pub(crate) fn short(&self, time: Option<&prost_types::Timestamp>) -> String {
        let Some(time) = time.and_then(timestamp) else { return String::new() };
        let (then, now) = (time.to_zoned(self.zone.clone()), self.now.to_zoned(self.zone.clone()));
        let minutes = self.now.duration_since(time).as_secs() / 60;
        let yesterday = now.date().yesterday().ok();
        match minutes {
            0 if time <= self.now => "just now".to_owned(),
            1..60 => format!("{minutes} min ago"),
            60..1_440 if then.date() == now.date() || minutes < 360 => format!("{} h ago", minutes / 60),
            _ if Some(then.date()) == yesterday => "yesterday".to_owned(),
            _ if then.year() == now.year() => then.strftime("%-d %b").to_string(),
            _ => then.strftime("%-d %b %Y").to_string(),
        }
    }

    /// Returns date and time to the minute, where the person is: `2026-03-12 14:02`.
    pub(crate) fn minute(&self, time: Option<&prost_types::Timestamp>) -> String {
        let zoned = time.and_then(timestamp).map(|time| time.to_zoned(self.zone.clone()));
        zoned.map(|time| time.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
    }

    /// Now, for a request.
    pub(crate) fn now_on_the_wire(&self) -> prost_types::Timestamp {
        to_wire(whole_micros(self.now))
    }

    /// Whether a time has come.
    pub(crate) fn passed(&self, time: Option<&prost_types::Timestamp>) -> bool {
        time.and_then(timestamp).is_some_and(|time| time <= self.now)
    }

    /// Reads `--since` and `--until`; none if neither is given.
    ///
    /// # Errors
    /// A text that is no time, or a range that ends before it starts.
    pub(crate) fn range(
        &self,
        since: Option<&str>,
        until: Option<&str>,
    ) -> Result<Option<TimeRange>, CliError> {
        let start = since.map(|text| self.parse(text, End::Since)).transpose()?;
        let end = until.map(|text| self.parse(text, End::Until)).transpose()?;
        if let (Some(start), Some(end)) = (start, end)
            && end <= start
        {
            return Err(CliError::Usage(
                "--until lies before --since; nothing can be between them".to_owned(),
            ));
        }
        let range = TimeRange { start: start.map(to_wire), end: end.map(to_wire) };
        Ok((range.start.is_some() || range.end.is_some()).then_some(range))
    }

    /// Reads one time that an option names.
    ///
    /// # Errors
    /// A text that is no time.
    pub(crate) fn moment(&self, option: &str, text: &str) -> Result<prost_types::Timestamp, CliError> {
        let found = self.instant(text.trim(), End::Since).map(whole_micros).map(to_wire);
        found.ok_or_else(|| {
            CliError::Usage(format!(
                "{option} {text:?} is not a time; write 2026-03-01, 2026-03-01T14:00:00Z, or 12h, 7d, 2w, 3mo, 1y ago"
            ))
        })
    }

    fn parse(&self, text: &str, end: End) -> Result<Timestamp, CliError> {
        let option = if end == End::Since { "--since" } else { "--until" };
        let found = self.instant(text.trim(), end).map(whole_micros);
        found.ok_or_else(|| {
            CliError::Usage(format!(
                "{option} {text:?} is not a time; write 2026-03-01, 2026-03-01T14:00:00Z, or 12h, 7d, 2w, 3mo, 1y ago"
            ))
        })
    }

    fn instant(&self, text: &str, end: End) -> Option<Timestamp> {
        if let Ok(time) = text.parse::<Timestamp>() {
            return Some(time);
        }
        // A date first: a date and time reads as a date too, but not the other way round.
        if let (Ok(date), false) = (text.parse::<Date>(), text.contains([':', 'T', 't'])) {
            let day = if end == End::Until { date.tomorrow().ok()? } else { date };
            return day.to_zoned(self.zone.clone()).ok().map(|time| time.timestamp());
        }
        if let Ok(time) = text.parse::<DateTime>() {
            return time.to_zoned(self.zone.clone()).ok().map(|time| time.timestamp());
        }
        let back: Span = text.trim_end_matches("ago").trim().parse().ok()?;
        if back.is_negative() || back.is_zero() {
            return None;
        }
        self.now.to_zoned(self.zone.clone()).checked_sub(back).ok().map(|time| time.timestamp())
    }
}

/// Returns PAM's text form, in UTC: `2026-03-01T14:02:00Z`, with a fraction only where there is one.
pub(crate) fn rfc3339(time: &prost_types::Timestamp) -> Option<String> {
    timestamp(time).map(|time| time.to_string())
}

fn timestamp(time: &prost_types::Timestamp) -> Option<Timestamp> {
    Timestamp::new(time.seconds, time.nanos).ok()
}

/// Cuts what the wire refuses: it knows microseconds.
fn whole_micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

fn to_wire(time: Timestamp) -> prost_types::Timestamp {
    let (mut seconds, mut nanos) = (time.as_second(), time.subsec_nanosecond());
    // The wire counts nanoseconds forward, jiff away from the epoch.
    if nanos < 0 {
        seconds -= 1;
        nanos += 1_000_000_000;
    }
    prost_types::Timestamp { seconds, nanos }
}

/// A fixed calendar for the tests of what is printed: noon of 2026-03-12, UTC.
#[cfg(test)]
pub(crate) fn fixed() -> Calendar {
    let noon = Timestamp::from_second(1_773_316_800).unwrap_or_default();
    Calendar { now: noon, zone: TimeZone::UTC }
}

#[cfg(test)]
pub(crate) fn at(text: &str) -> Option<prost_types::Timestamp> {
    text.parse::<Timestamp>().ok().map(to_wire)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn times_in_tables_are_short() {
        let show = |text: &str| fixed().short(at(text).as_ref());
        assert_eq!(show("2026-03-12T11:59:30Z"), "just now");
        assert_eq!(show("2026-03-12T11:20:00Z"), "40 min ago");
        assert_eq!(show("2026-03-12T03:00:00Z"), "9 h ago");
        assert_eq!(show("2026-03-11T23:00:00Z"), "yesterday");
        assert_eq!(show("2026-03-11T02:00:00Z"), "yesterday");
        assert_eq!(show("2026-01-05T02:00:00Z"), "5 Jan");
        assert_eq!(show("2024-12-05T02:00:00Z"), "5 Dec 2024");
        assert_eq!(show("2026-03-13T12:00:00Z"), "13 Mar");
        assert_eq!(fixed().short(None), "");
    }

    #[test]
    fn times_are_shown_where_the_person_is() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let calendar = Calendar { zone, ..fixed() };
        assert_eq!(calendar.minute(at("2026-03-11T23:30:00Z").as_ref()), "2026-03-12 01:30");
        assert_eq!(rfc3339(&at("2026-03-11T23:30:00.25Z").unwrap()).unwrap(), "2026-03-11T23:30:00.25Z");
    }

    #[test]
    fn what_people_type_is_a_range() {
        let range = |since, until| {
            let range = fixed().range(since, until).unwrap().unwrap();
            (range.start.as_ref().and_then(rfc3339), range.end.as_ref().and_then(rfc3339))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(range(Some("2026-03-01"), None), (some("2026-03-01T00:00:00Z"), None));
        assert_eq!(range(None, Some("2026-03-01")), (None, some("2026-03-02T00:00:00Z")));
        assert_eq!(range(Some("2026-03-01T14:00"), None).0, some("2026-03-01T14:00:00Z"));
        assert_eq!(range(Some("2026-03-01T14:00:00+02:00"), None).0, some("2026-03-01T12:00:00Z"));
        assert_eq!(range(Some("7d"), None).0, some("2026-03-05T12:00:00Z"));
        assert_eq!(range(Some("2 weeks ago"), None).0, some("2026-02-26T12:00:00Z"));
        assert_eq!(range(Some("3mo"), Some("12h")).0, some("2025-12-12T12:00:00Z"));
        assert_eq!(fixed().range(None, None).unwrap(), None);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "soon", "-7d", "2026-13-01", "7"] {
            let error = fixed().range(Some(text), None).unwrap_err().to_string();
            assert!(error.contains("--since") && error.contains("2026-03-01"), "{error}");
        }
        assert!(fixed().range(Some("2026-03-02"), Some("2026-03-01")).is_err());
    }
}
