//! Dates in queries.

use jiff::{Span, Timestamp, ToSpan as _, civil::Date, tz::TimeZone};

/// What dates mean: the present, and the time zone of the person.
#[derive(Clone, Debug)]
pub struct Calendar {
    /// The present.
    pub now: Timestamp,
    /// In which days begin.
    pub zone: TimeZone,
}

impl Calendar {
    /// Returns the first moment of what a text names, and the first one after it, in microseconds since the Unix epoch.
    pub(super) fn range(&self, text: &str) -> Option<(i64, i64)> {
        let today = self.now.to_zoned(self.zone.clone()).date();
        let (first, after) = match text {
            // The shortest time there is.
            "now" => return Some((self.now.as_microsecond(), self.now.as_microsecond() + 1)),
            "today" => (today, today.tomorrow().ok()?),
            "yesterday" => (today.yesterday().ok()?, today),
            text => match ago(text) {
                // A span names a day: what is after it is after its beginning.
                Some(span) => {
                    let day = today.checked_sub(span).ok()?;
                    (day, day.tomorrow().ok()?)
                }
                None => written(text)?,
            },
        };
        Some((self.micros(first)?, self.micros(after)?))
    }

    fn micros(&self, date: Date) -> Option<i64> {
        Some(date.to_zoned(self.zone.clone()).ok()?.timestamp().as_microsecond())
    }
}

/// Returns the span of `30d`, `2w`, `6m` or `1y`.
fn ago(text: &str) -> Option<Span> {
    let unit = text.chars().next_back()?;
    let count: i32 = text.strip_suffix(unit)?.parse().ok().filter(|count| (0..=10_000).contains(count))?;
    match unit {
        'd' => Some(count.days()),
        'w' => Some(count.weeks()),
        'm' => Some(count.months()),
        'y' => Some(count.years()),
        _ => None,
    }
}

/// Returns the days of `2025`, `2025-06` or `2025-06-15`.
fn written(text: &str) -> Option<(Date, Date)> {
    let mut numbers = text.splitn(3, '-');
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let year: i16 = numbers.next().filter(|year| year.len() == 4 && digits(year))?.parse().ok()?;
    let mut next = || match numbers.next() {
        None => Some(None),
        Some(text) => (text.len() <= 2 && digits(text)).then(|| text.parse::<i8>().ok()).flatten().map(Some),
    };
    let (month, day) = (next()?, next()?);
    let first = Date::new(year, month.unwrap_or(1), day.unwrap_or(1)).ok()?;
    let length = match (month, day) {
        (None, _) => 1.year(),
        (_, None) => 1.month(),
        _ => 1.day(),
    };
    Some((first, first.checked_add(length).ok()?))
}
