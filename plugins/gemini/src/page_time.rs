//! Parses the times of HTML pages, which are in the account's language: `Jul 3, 2026, 9:15:00 AM CEST`,
//! `18.04.2026, 17:38:51 MESZ`, `2026. 7. 4. 오전 9:15:00 KST`, `4 de jul. de 2026, 09:15:00 BRT`.
//!
//! The formats are CLDR's medium date and time, followed by the abbreviation of a time zone. The language is not known, so
//! names of months and day periods are looked up in all languages.

use std::borrow::Cow;

use satchel_importer::pam::time::Timestamp;

mod names;

use names::{DayPeriod, day_period, month, zone_offset};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageTime {
    /// Microseconds since the epoch; `None` if the month or the calendar is unknown.
    pub(crate) micros: Option<i64>,
    /// The line has a known time zone. Otherwise UTC is assumed.
    pub(crate) zone_known: bool,
}

/// The longest line that is parsed, in characters.
const MAX_LINE: usize = 80;
/// Digits of the shortest time: year, day, hour and minute.
const MIN_DIGITS: usize = 7;
/// The years that dates may have. Thai dates are of the Buddhist era.
const YEARS: std::ops::RangeInclusive<i64> = 1990..=2199;
const BUDDHIST_ERA: i64 = 543;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// Parses a line that is a time and nothing else. Returns `None` for any other line.
pub(crate) fn parse(line: &str) -> Option<PageTime> {
    // The bytes alone exclude nearly all lines.
    let few = line.bytes().filter(|byte| may_begin_digit(*byte)).take(MIN_DIGITS).count() < MIN_DIGITS;
    let digits = || line.chars().filter(|c| digit(*c).is_some()).count();
    if line.len() > MAX_LINE * 4 || few || line.chars().count() > MAX_LINE || digits() < MIN_DIGITS {
        return None;
    }
    let line = &without_thai_points(line);
    let tokens = tokenize(line);
    let clock = TimeOfDay::find(&tokens)?;
    let (before, after) = (tokens.get(..clock.start)?, tokens.get(clock.end..)?);
    let zone = zone(line, &clock);
    let mut date = DateParts::default();
    before
        .iter()
        .chain(after.iter().filter(|token| token.start < zone.start))
        .for_each(|token| date.add(token, line.get(token.start..token.end).unwrap_or_default()));
    let period = date.period;
    let (year, month, day) = date.resolve()?;
    let Some(month) = month else { return Some(PageTime { micros: None, zone_known: false }) };
    let hour = match period {
        Some(DayPeriod::Am) if clock.hour == 12 => 0,
        Some(DayPeriod::Pm) if clock.hour < 12 => clock.hour + 12,
        _ => clock.hour,
    };
    let midnight = Timestamp::of_day(year, month, day)?.micros();
    let minutes = hour * 60 + clock.minute - zone.minutes.unwrap_or(0);
    let micros = midnight + (minutes * 60 + clock.second) * MICROS_PER_SECOND;
    Some(PageTime { micros: Some(micros), zone_known: zone.minutes.is_some() })
}

/// Removes the points inside Thai abbreviations. In other scripts, points separate words.
fn without_thai_points(line: &str) -> Cow<'_, str> {
    let thai = |c: char| matches!(c, '\u{e00}'..='\u{e7f}');
    // Every Thai character begins with this byte in UTF-8.
    if !line.as_bytes().contains(&0xe0) || !line.contains(thai) {
        return Cow::Borrowed(line);
    }
    let mut before = ' ';
    let mut keep = |c: char| !(thai(std::mem::replace(&mut before, c)) && c == '.');
    Cow::Owned(line.chars().filter(|c| keep(*c)).collect())
}

/// A number or a word of a line.
#[derive(Debug)]
struct Token {
    kind: TokenKind,
    /// Byte offsets in the line.
    start: usize,
    end: usize,
    /// The character that follows.
    next: Option<char>,
}

#[derive(Debug)]
enum TokenKind {
    /// The value and the number of digits.
    Number(i64, usize),
    Word,
}

/// The numbers and words of a line, in order. All other characters are separators.
fn tokenize(line: &str) -> Vec<Token> {
    /// More tokens than most lines have.
    const CAPACITY: usize = 16;
    let mut found: Vec<Token> = Vec::with_capacity(CAPACITY);
    for (start, c) in line.char_indices() {
        let end = start + c.len_utf8();
        let follows = found.last().is_some_and(|token| token.end == start);
        match (digit(c), found.last_mut().filter(|_| follows)) {
            (Some(digit), Some(Token { kind: TokenKind::Number(number, digits), end: last, .. })) => {
                *number = number.saturating_mul(10).saturating_add(digit);
                (*digits, *last) = (*digits + 1, end);
                continue;
            }
            (None, Some(Token { kind: TokenKind::Word, end: last, .. })) if in_word(c) => {
                *last = end;
                continue;
            }
            (_, Some(before)) => before.next = Some(c),
            (_, None) => {}
        }
        let kind = match digit(c) {
            Some(digit) => TokenKind::Number(digit, 1),
            None if in_word(c) => TokenKind::Word,
            None => continue,
        };
        found.push(Token { kind, start, end, next: None });
    }
    found
}

/// Whether `c` is a letter, a combining mark or the Devanagari sign of abbreviation.
fn in_word(c: char) -> bool {
    c.is_alphabetic()
        || matches!(c, '\u{300}'..='\u{36f}' | '\u{93c}'..='\u{94d}' | '\u{e31}'..='\u{e4e}' | '॰')
}

/// The value of a Latin, Arabic, Persian or Devanagari digit.
fn digit(c: char) -> Option<i64> {
    let zero = match c {
        '0'..='9' => '0',
        '٠'..='٩' => '٠',
        '۰'..='۹' => '۰',
        '०'..='९' => '०',
        _ => return None,
    };
    Some(i64::from(u32::from(c) - u32::from(zero)))
}

/// Whether a digit may begin with the byte.
fn may_begin_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, 0xd9 | 0xdb | 0xe0)
}

/// The time of day: two or three numbers with colons (in some languages points) between them.
struct TimeOfDay {
    hour: i64,
    minute: i64,
    second: i64,
    /// Range of its tokens.
    start: usize,
    end: usize,
    /// Byte offset behind it.
    byte_end: usize,
}

impl TimeOfDay {
    fn find(tokens: &[Token]) -> Option<Self> {
        let colons = |at: usize| Self::at(tokens, at, &[':', '：']);
        let points = |at: usize| Self::at(tokens, at, &['.']);
        let has_seconds = |time: &Self| time.end - time.start == 3;
        let mut starts = 0..tokens.len();
        // A zone may contain a colon, and dates contain points. So a time with seconds is preferred, and the last one of
        // those with points.
        starts
            .clone()
            .find_map(|at| colons(at).filter(has_seconds))
            .or_else(|| starts.clone().rev().find_map(|at| points(at).filter(has_seconds)))
            .or_else(|| starts.find_map(colons))
    }

    fn at(tokens: &[Token], start: usize, separators: &[char]) -> Option<Self> {
        let number = |at: usize| match tokens.get(at) {
            Some(Token { kind: TokenKind::Number(number, digits), next, end, .. }) if *digits <= 2 => {
                Some((*number, next.is_some_and(|next| separators.contains(&next)), *end))
            }
            _ => None,
        };
        let adjoins = |at: usize| {
            tokens.get(at).zip(tokens.get(at + 1)).is_some_and(|(a, b)| b.start <= a.end + '：'.len_utf8())
        };
        let (hour, true, _) = number(start)? else { return None };
        let (minute, more, minute_end) = number(start + 1).filter(|_| adjoins(start))?;
        let second = number(start + 2).filter(|_| more && adjoins(start + 1));
        if hour > 24 || minute > 59 || second.is_some_and(|(second, ..)| second > 60) {
            return None;
        }
        let (end, byte_end) = second.map_or((start + 2, minute_end), |(_, _, end)| (start + 3, end));
        let second = second.map_or(0, |(second, ..)| second.min(59));
        Some(Self { hour: hour % 24, minute, second, start, end, byte_end })
    }
}

/// The zone behind the time of day.
struct Zone {
    minutes: Option<i64>,
    /// Byte offset at which its text begins.
    start: usize,
}

fn zone(line: &str, clock: &TimeOfDay) -> Zone {
    let rest = line.get(clock.byte_end..).unwrap_or_default();
    let trimmed = rest.trim_end_matches(|c: char| c.is_whitespace() || c == ')');
    // The last word, with or without brackets.
    let word = trimmed.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    let start = clock.byte_end + trimmed.len() - word.len();
    match zone_offset(word) {
        Some(minutes) if !word.is_empty() => Zone { minutes: Some(minutes), start },
        // An unknown zone consists of capitals. A date behind the time has numbers.
        _ if word.len() >= 2
            && word.bytes().all(|byte| byte.is_ascii_uppercase())
            && day_period(&word.to_lowercase()).is_none() =>
        {
            Zone { minutes: None, start }
        }
        _ => Zone { minutes: None, start: line.len() },
    }
}

/// The numbers and words around the time of day.
#[derive(Default)]
struct DateParts {
    /// Each with its number of digits.
    numbers: Vec<(i64, usize)>,
    month: Option<i64>,
    period: Option<DayPeriod>,
    /// The last word, and the one before.
    last: String,
    before: String,
    unknown_words: usize,
}

impl DateParts {
    fn add(&mut self, token: &Token, text: &str) {
        match &token.kind {
            TokenKind::Number(number, digits) => self.numbers.push((*number, *digits)),
            TokenKind::Word => {
                std::mem::swap(&mut self.last, &mut self.before);
                self.last.clear();
                self.last.extend(text.chars().flat_map(char::to_lowercase));
                let word = self.last.as_str();
                if let Some(period) =
                    day_period(word).or_else(|| names::day_period_of_two(&self.before, word))
                {
                    self.period.get_or_insert(period);
                } else if let Some(month) = month(word).filter(|_| self.month.is_none()) {
                    self.month = Some(month);
                } else if !names::is_filler(word) {
                    self.unknown_words += 1;
                }
            }
        }
    }

    /// Year, month and day. The month is `None` if its name is unknown.
    fn resolve(self) -> Option<(i64, Option<i64>, i64)> {
        let numbers = self.numbers;
        let is_year = |(number, digits): &(i64, usize)| {
            *digits == 4 && (YEARS.contains(number) || YEARS.contains(&(number - BUDDHIST_ERA)))
        };
        let years = numbers.iter().filter(|number| is_year(number)).count();
        let year_first = numbers.first().is_some_and(is_year);
        if years != 1 || self.unknown_words > 1 {
            return None;
        }
        let year = numbers.iter().find(|number| is_year(number)).map(|(number, _)| *number)?;
        let year = if YEARS.contains(&year) { year } else { year - BUDDHIST_ERA };
        let others: Vec<i64> =
            numbers.iter().filter(|number| !is_year(number)).map(|(number, _)| *number).collect();
        let (month, day) = match (self.month, others.as_slice()) {
            (Some(month), [day]) => (Some(month), *day),
            // Vietnamese months are numbers behind a word, with the day before it.
            (None, [first, second]) => {
                if year_first || (*second > 12 && *first <= 12) {
                    (Some(*first), *second)
                } else {
                    (Some(*second), *first)
                }
            }
            (None, [day]) if self.unknown_words == 1 => (None, *day),
            _ => return None,
        };
        let exists = (1..=31).contains(&day) && month.is_none_or(|month| (1..=12).contains(&month));
        exists.then_some((year, month, day))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(line: &str) -> Option<String> {
        let micros = parse(line)?.micros?;
        Timestamp::from_micros(micros).map(|time| time.to_string())
    }

    #[test]
    fn times_of_all_languages_are_parsed() {
        for line in [
            "Jul 4, 2026, 9:15:07 AM CEST",
            "Jul 4, 2026, 9:15:07\u{202f}AM CEST",
            "Jul\u{a0}4,\u{a0}2026, 7:15:07 AM UTC",
            "Jul 4, 2026, 12:45:07 PM GMT+05:30",
            "Jul 4, 2026, 3:15:07 AM EDT",
            "4 Jul 2026, 08:15:07 BST",
            "04.07.2026, 09:15:07 MESZ",
            "4 juli 2026 09:15:07 CEST",
            "4. jul. 2026 09.15.07 CEST",
            "4.7.2026 klo 9.15.07 UTC+2",
            "4 juil. 2026, 09:15:07 CEST",
            "4 jul 2026, 9:15:07 CEST",
            "4 de jul. de 2026, 04:15:07 BRT",
            "4 lug 2026, 09:15:07 CEST",
            "4 lip 2026, 09:15:07 CEST",
            "4. 7. 2026 9:15:07 SELČ",
            "4 июл. 2026 г., 10:15:07 MSK",
            "4 лип. 2026 р., 10:15:07 EEST",
            "4 Tem 2026 10:15:07 TRT",
            "2026/07/04 16:15:07 JST",
            "2026. 7. 4. 오후 4:15:07 KST",
            "2026年7月4日 15:15:07 GMT+08:00",
            "2026年7月4日 下午3:15:07 [GMT+8]",
            "04\u{200f}/07\u{200f}/2026، 10:15:07 ص GMT+3",
            "٤ يوليو ٢٠٢٦، ١٠:١٥:٠٧ ص GMT+3",
            "4 ביולי 2026, 10:15:07 IDT",
            "4 जुल॰ 2026, 12:45:07 pm GMT+5:30",
            "4 ก.ค. 2569 14:15:07 ICT",
            "14:15:07 4 thg 7, 2026 GMT+7",
            "4 Jul 2026 14.15.07 WIB",
            "2026. júl. 4. 9:15:07 CEST",
            "4 iul. 2026, 10:15:07 EEST",
            "4 Ιουλ 2026, 10:15:07 π.μ. EEST",
            "4.07.2026 г., 10:15:07 ч. EEST",
        ] {
            assert_eq!(utc(line).as_deref(), Some("2026-07-04T07:15:07Z"), "{line}");
        }
    }

    #[test]
    fn other_lines_are_not_times() {
        for line in [
            "",
            "Prompted What is 9:15 in 2026?",
            "at 9:15:00 we meet, 4 of us in 2026 and the others",
            "Attached 1 file.",
            "9:15:00",
            "Jul 4, 2026",
            "1.2.3",
            "99:99:99 4 Jul 2026",
            "32 Jul 2026, 09:15:07",
            "4 Jul 2026 5 Aug 2027 09:15:00 UTC",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn unknown_zones_and_months_are_reported() {
        let zone = |line| parse(line).map(|time| (time.micros.is_some(), time.zone_known));
        assert_eq!(zone("Jul 4, 2026, 9:15:07 AM XYZT"), Some((true, false)));
        assert_eq!(zone("Jul 4, 2026, 9:15:07 AM"), Some((true, false)));
        assert_eq!(zone("4 zzz 2026, 09:15:07 CEST"), Some((false, false)));
    }
}
