//! Times as people type and read them.

use jiff::{
    Span, Timestamp, ToSpan as _,
    civil::{Date, DateTime},
    tz::TimeZone,
};
use satchel_proto::v1::TimeRange;

use super::error::CliError;

/// The text for an unknown time of a record.
pub(crate) const UNKNOWN: &str = "time unknown";

/// The current time, and the time zone of the person.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    pub now: Timestamp,
    pub zone: TimeZone,
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

    /// Returns date and time to the minute, in the person's time zone: `2026-03-12 14:02`.
    pub(crate) fn minute(&self, time: Option<&prost_types::Timestamp>) -> String {
        let zoned = time.and_then(timestamp).map(|time| time.to_zoned(self.zone.clone()));
        zoned.map(|time| time.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
    }

    /// Returns the current time for a request.
    pub(crate) fn now_to_wire(&self) -> prost_types::Timestamp {
        to_wire(truncate_to_micros(self.now))
    }

    /// Returns whether a time has passed.
    pub(crate) fn is_past(&self, time: Option<&prost_types::Timestamp>) -> bool {
        time.and_then(timestamp).is_some_and(|time| time <= self.now)
    }

    /// Returns the time of a record in the form for tables, or [`UNKNOWN`].
    pub(crate) fn short_or_unknown(&self, time: Option<&prost_types::Timestamp>) -> String {
        or_unknown(self.short(time))
    }

    /// Returns the time of a record to the minute, or [`UNKNOWN`].
    pub(crate) fn minute_or_unknown(&self, time: Option<&prost_types::Timestamp>) -> String {
        or_unknown(self.minute(time))
    }

    /// Parses `--since` and `--until`; returns `None` if neither is given.
    ///
    /// # Errors
    /// Fails for a text that is not a time, or a range that ends before it starts.
    pub(crate) fn range(
        &self,
        since: Option<&str>,
        until: Option<&str>,
    ) -> Result<Option<TimeRange>, CliError> {
        self.parse_range(("--since", since), ("--until", until))
    }

    /// Parses `--created-since` and `--created-until`; returns `None` if neither is given.
    ///
    /// # Errors
    /// As [`Calendar::range`].
    pub(crate) fn created(
        &self,
        since: Option<&str>,
        until: Option<&str>,
    ) -> Result<Option<TimeRange>, CliError> {
        self.parse_range(("--created-since", since), ("--created-until", until))
    }

    /// Parses two options for the start and the end of a range; returns `None` if neither is given.
    ///
    /// # Errors
    /// As [`Calendar::range`].
    fn parse_range(
        &self,
        (since_option, since): (&str, Option<&str>),
        (until_option, until): (&str, Option<&str>),
    ) -> Result<Option<TimeRange>, CliError> {
        let read =
            |option: &str, text: &str| self.period(text.trim()).ok_or_else(|| invalid_time(option, text));
        let start = since.map(|text| read(since_option, text)).transpose()?.map(|(start, _)| start);
        // A day, month or year is included completely.
        let end = until.map(|text| read(until_option, text)).transpose()?.map(|(_, end)| end);
        if let (Some(start), Some(end)) = (start, end)
            && end <= start
        {
            return Err(CliError::Usage(format!(
                "{until_option} is before {since_option}, so nothing can match"
            )));
        }
        let range = TimeRange {
            start: start.map(truncate_to_micros).map(to_wire),
            end: end.map(truncate_to_micros).map(to_wire),
        };
        Ok((range.start.is_some() || range.end.is_some()).then_some(range))
    }

    /// Parses a span of time, given with an option: `90s`, `5m`, `12h`, `30d`, `6mo`.
    ///
    /// # Errors
    /// Fails for a text that is not a positive span of time.
    pub(crate) fn parse_span(&self, option: &str, text: &str) -> Result<prost_types::Duration, CliError> {
        Ok(span_to_wire(self.micros_until(&self.ahead(option, text)?)))
    }

    /// Parses one time, given with an option.
    ///
    /// # Errors
    /// Fails for a text that is not a time.
    pub(crate) fn parse_instant(&self, option: &str, text: &str) -> Result<prost_types::Timestamp, CliError> {
        let found = self.period(text.trim()).map(|(start, _)| to_wire(truncate_to_micros(start)));
        found.ok_or_else(|| invalid_time(option, text))
    }

    /// Returns the time that is as far ahead as the text says: `90s`, `5m`, `12h`, `30d`, `6mo`.
    ///
    /// # Errors
    /// Fails for a text that is not a positive span of time.
    pub(crate) fn ahead(&self, option: &str, text: &str) -> Result<prost_types::Timestamp, CliError> {
        let span = text.trim().parse::<Span>().ok().filter(|span| span.is_positive());
        let end = span.and_then(|span| self.now.to_zoned(self.zone.clone()).checked_add(span).ok());
        let end = end.ok_or_else(|| {
            CliError::Usage(format!("{option} {text:?} is not a span of time; use 90s, 5m, 12h, 30d or 6mo"))
        })?;
        Ok(to_wire(truncate_to_micros(end.timestamp())))
    }

    /// Returns how long it takes from now until `time`, in microseconds; negative if it has passed.
    pub(crate) fn micros_until(&self, time: &prost_types::Timestamp) -> i64 {
        let time = Timestamp::new(time.seconds, time.nanos).unwrap_or(self.now);
        time.as_microsecond().saturating_sub(truncate_to_micros(self.now).as_microsecond())
    }

    /// Returns the first instant of the period that the text names, and the first instant after it. For an instant,
    /// both are equal.
    fn period(&self, text: &str) -> Option<(Timestamp, Timestamp)> {
        if let Ok(time) = text.parse::<Timestamp>() {
            return Some((time, time));
        }
        if let Some((first, next)) = self.days(&text.to_ascii_lowercase()) {
            return Some((self.midnight(first)?, self.midnight(next)?));
        }
        if let Ok(time) = text.parse::<DateTime>() {
            let time = time.to_zoned(self.zone.clone()).ok()?.timestamp();
            return Some((time, time));
        }
        let back: Span = text.trim_end_matches("ago").trim().parse().ok()?;
        if back.is_negative() || back.is_zero() {
            return None;
        }
        let time = self.now.to_zoned(self.zone.clone()).checked_sub(back).ok()?.timestamp();
        Some((time, time))
    }

    /// Returns the first of the days that the text names, and the first day after them.
    fn days(&self, text: &str) -> Option<(Date, Date)> {
        let today = self.now.to_zoned(self.zone.clone()).date();
        let words: Vec<&str> = text.split_whitespace().collect();
        let unit = |word: &str| match word {
            "day" => Some((today, 1.day())),
            // Weeks begin on Monday.
            "week" => Some((
                today.checked_sub(i64::from(today.weekday().to_monday_zero_offset()).days()).ok()?,
                1.week(),
            )),
            "month" => Some((today.first_of_month(), 1.month())),
            "year" => Some((today.first_of_year(), 1.year())),
            _ => None,
        };
        let (first, length) = match words.as_slice() {
            ["today"] => (today, 1.day()),
            ["yesterday"] => (today.yesterday().ok()?, 1.day()),
            ["this", word] => unit(word)?,
            ["last", word] => {
                let (first, length) = unit(word)?;
                (first.checked_sub(length).ok()?, length)
            }
            [word] => parse_date(word)?,
            _ => return None,
        };
        Some((first, first.checked_add(length).ok()?))
    }

    fn midnight(&self, date: Date) -> Option<Timestamp> {
        date.to_zoned(self.zone.clone()).ok().map(|time| time.timestamp())
    }
}

/// Returns the first day of a year, month or day given in digits, and its length.
fn parse_date(text: &str) -> Option<(Date, Span)> {
    let digits = |part: &str, length: usize| {
        (part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| part.parse().ok())?
    };
    let parts: Vec<&str> = text.split('-').collect();
    match parts.as_slice() {
        [year] => Some((Date::new(digits(year, 4)?, 1, 1).ok()?, 1.year())),
        [year, month] => {
            let month = i8::try_from(digits(month, 2)?).ok()?;
            Some((Date::new(digits(year, 4)?, month, 1).ok()?, 1.month()))
        }
        // A date with a time would also parse as a date, but not the other way round.
        _ if text.contains([':', 't']) => None,
        _ => Some((text.parse().ok()?, 1.day())),
    }
}

fn invalid_time(option: &str, text: &str) -> CliError {
    CliError::Usage(format!(
        "{option} {text:?} is not a valid time; use 2026-03-01, 2026-03, 2026, 2026-03-01T14:00:00Z, today, yesterday, last week, \
         last month, or 12h, 7d, 2w, 3mo, 1y ago"
    ))
}

/// Converts a span of microseconds.
pub(crate) fn span_to_wire(micros: i64) -> prost_types::Duration {
    let nanos = i32::try_from(micros % 1_000_000 * 1_000).unwrap_or_default();
    prost_types::Duration { seconds: micros / 1_000_000, nanos }
}

/// Returns PAM's text form, in UTC: `2026-03-01T14:02:00Z`, with a fraction only if there is one.
pub(crate) fn rfc3339(time: &prost_types::Timestamp) -> Option<String> {
    timestamp(time).map(|time| time.to_string())
}

fn or_unknown(shown: String) -> String {
    if shown.is_empty() { UNKNOWN.to_owned() } else { shown }
}

fn timestamp(time: &prost_types::Timestamp) -> Option<Timestamp> {
    // 1970-01-01 stands for an unknown time.
    Timestamp::new(time.seconds, time.nanos).ok().filter(|time| *time != Timestamp::UNIX_EPOCH)
}

/// Truncates to microseconds, because the wire rejects a finer resolution.
fn truncate_to_micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

fn to_wire(time: Timestamp) -> prost_types::Timestamp {
    let (mut seconds, mut nanos) = (time.as_second(), time.subsec_nanosecond());
    // The wire counts nanoseconds forward in time; jiff counts them away from the epoch.
    if nanos < 0 {
        seconds -= 1;
        nanos += 1_000_000_000;
    }
    prost_types::Timestamp { seconds, nanos }
}

/// Returns a fixed calendar for tests of printed output: noon of 2026-03-12, UTC.
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
    fn a_span_keeps_its_fraction() {
        let span = |text: &str| fixed().parse_span("--settle", text).ok();
        assert_eq!(span("1500ms"), Some(prost_types::Duration { seconds: 1, nanos: 500_000_000 }));
        assert_eq!(span("10m"), Some(prost_types::Duration { seconds: 600, nanos: 0 }));
        for wrong in ["", "10", "-1s", "0s", "soon"] {
            assert_eq!(span(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn table_times_are_short() {
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
    fn times_are_shown_in_the_local_time_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let calendar = Calendar { zone, ..fixed() };
        assert_eq!(calendar.minute(at("2026-03-11T23:30:00Z").as_ref()), "2026-03-12 01:30");
        assert_eq!(rfc3339(&at("2026-03-11T23:30:00.25Z").unwrap()).unwrap(), "2026-03-11T23:30:00.25Z");
    }

    #[test]
    fn typed_times_become_ranges() {
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
    fn named_days_and_partial_dates_cover_whole_periods() {
        let day = |text: &str| Some(format!("{text}T00:00:00Z"));
        // 2026-03-12 is a Thursday.
        for (text, first, next) in [
            ("2025-03", "2025-03-01", "2025-04-01"),
            ("2025", "2025-01-01", "2026-01-01"),
            ("2024-02", "2024-02-01", "2024-03-01"),
            ("today", "2026-03-12", "2026-03-13"),
            ("Yesterday", "2026-03-11", "2026-03-12"),
            ("this week", "2026-03-09", "2026-03-16"),
            ("last week", "2026-03-02", "2026-03-09"),
            ("last month", "2026-02-01", "2026-03-01"),
            ("this month", "2026-03-01", "2026-04-01"),
            (" last  year ", "2025-01-01", "2026-01-01"),
            ("last day", "2026-03-11", "2026-03-12"),
        ] {
            let range = fixed().range(Some(text), Some(text)).unwrap().unwrap();
            let ends = (range.start.as_ref().and_then(rfc3339), range.end.as_ref().and_then(rfc3339));
            assert_eq!(ends, (day(first), day(next)), "{text}");
        }
        // A month begins in the person's time zone.
        let calendar = Calendar { zone: TimeZone::fixed(jiff::tz::offset(2)), ..fixed() };
        let start = calendar.range(Some("2025-03"), None).unwrap().unwrap().start;
        assert_eq!(start.as_ref().and_then(rfc3339).as_deref(), Some("2025-02-28T22:00:00Z"));
    }

    #[test]
    fn an_unknown_time_is_never_shown_as_1970() {
        let epoch = prost_types::Timestamp { seconds: 0, nanos: 0 };
        for time in [None, Some(&epoch)] {
            assert_eq!(fixed().short_or_unknown(time), "time unknown");
            assert_eq!(fixed().minute_or_unknown(time), "time unknown");
        }
        assert_eq!(rfc3339(&epoch), None);
    }

    #[test]
    fn spans_lead_into_the_future() {
        let ahead = |text: &str| fixed().ahead("--for", text).map(|time| rfc3339(&time).unwrap());
        for (text, expected) in [
            ("90s", "2026-03-12T12:01:30Z"),
            ("5m", "2026-03-12T12:05:00Z"),
            (" 12h ", "2026-03-13T00:00:00Z"),
            ("30d", "2026-04-11T12:00:00Z"),
            ("6mo", "2026-09-12T12:00:00Z"),
            ("1h 30m", "2026-03-12T13:30:00Z"),
        ] {
            assert_eq!(ahead(text).unwrap(), expected, "{text}");
        }
        for text in ["", "soon", "0s", "-5m", "5", "5m ago", "99999y"] {
            let error = ahead(text).unwrap_err().to_string();
            assert!(error.starts_with("--for") && error.contains("30d"), "{error}");
        }
        let five = fixed().ahead("--for", "5m").unwrap();
        assert_eq!(fixed().micros_until(&five), 300_000_000);
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in
            ["", "soon", "-7d", "2026-13-01", "7", "2026-13", "20261", "last", "last monday", "9999-12-32"]
        {
            let error = fixed().range(Some(text), None).unwrap_err().to_string();
            assert!(error.contains("--since") && error.contains("2026-03-01"), "{error}");
        }
        assert!(fixed().range(Some("2026-03-02"), Some("2026-03-01")).is_err());
    }
}
