//! Times as Takeout writes them into HTML, in the account's language: `Jul 3, 2026, 9:15:00 AM CEST`,
//! `18.04.2026, 17:38:51 MESZ`, `2026. 7. 4. 오전 9:15:00 KST`, `4 de jul. de 2026, 09:15:00 BRT`.
//!
//! The forms are those of CLDR's medium date and time, with the abbreviation of a time zone behind. No language is told
//! beforehand: names of months and halves of the day are looked up in all of them.

use std::borrow::Cow;

use satchel_importer::pam::time::Timestamp;

mod names;

use names::{Half, half, month, offset};

/// A line that is a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct When {
    /// Microseconds since the epoch; none if the month or the calendar is not known.
    pub(crate) micros: Option<i64>,
    /// The line named a time zone that is known.
    pub(crate) zoned: bool,
}

/// Longer lines are no times, in characters.
const LONGEST: usize = 80;
/// Digits of the shortest time: those of a year, a day, an hour and a minute.
const FEWEST_DIGITS: usize = 7;
/// The years that dates may have; Thai ones are of the Buddhist era.
const YEARS: std::ops::RangeInclusive<i64> = 1990..=2199;
const BUDDHIST_ERA: i64 = 543;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// Reads a line that holds a time and nothing else; none if it is something else.
pub(crate) fn read(line: &str) -> Option<When> {
    // Nearly all lines are told by their bytes.
    let few = line.bytes().filter(|byte| may_begin_digit(*byte)).take(FEWEST_DIGITS).count() < FEWEST_DIGITS;
    if line.len() > LONGEST * 4 || few || line.chars().count() > LONGEST || digits(line) < FEWEST_DIGITS {
        return None;
    }
    let line = &without_thai_points(line);
    let pieces = pieces(line);
    let clock = Clock::find(&pieces)?;
    let (before, after) = (pieces.get(..clock.start)?, pieces.get(clock.end..)?);
    let zone = zone(line, &clock);
    let mut date = Date::default();
    before
        .iter()
        .chain(after.iter().filter(|piece| piece.at < zone.start))
        .for_each(|piece| date.take(piece, line.get(piece.at..piece.end).unwrap_or_default()));
    let half = date.half;
    let (year, month, day) = date.read()?;
    let Some(month) = month else { return Some(When { micros: None, zoned: false }) };
    let hour = match half {
        Some(Half::Morning) if clock.hour == 12 => 0,
        Some(Half::Afternoon) if clock.hour < 12 => clock.hour + 12,
        _ => clock.hour,
    };
    let midnight = Timestamp::of_day(year, month, day)?.micros();
    let minutes = hour * 60 + clock.minute - zone.minutes.unwrap_or(0);
    let micros = midnight + (minutes * 60 + clock.second) * MICROS_PER_SECOND;
    Some(When { micros: Some(micros), zoned: zone.minutes.is_some() })
}

/// Thai abbreviations have points inside, which part words elsewhere.
fn without_thai_points(line: &str) -> Cow<'_, str> {
    let thai = |c: char| matches!(c, '\u{e00}'..='\u{e7f}');
    // All of those begin with one byte.
    if !line.as_bytes().contains(&0xe0) || !line.contains(thai) {
        return Cow::Borrowed(line);
    }
    let mut before = ' ';
    let mut keep = |c: char| !(thai(std::mem::replace(&mut before, c)) && c == '.');
    Cow::Owned(line.chars().filter(|c| keep(*c)).collect())
}

/// A number or a word of a line.
#[derive(Debug)]
struct Piece {
    kind: Kind,
    /// Byte offset in the line, and the one behind.
    at: usize,
    end: usize,
    /// What follows.
    next: Option<char>,
}

#[derive(Debug)]
enum Kind {
    Number(i64, usize),
    Word,
}

/// Numbers and words in order; all else parts them.
fn pieces(line: &str) -> Vec<Piece> {
    /// More than most lines have.
    const USUAL: usize = 16;
    let mut found: Vec<Piece> = Vec::with_capacity(USUAL);
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        let follows = found.last().is_some_and(|piece| piece.end == at);
        match (digit(c), found.last_mut().filter(|_| follows)) {
            (Some(digit), Some(Piece { kind: Kind::Number(number, digits), end: last, .. })) => {
                *number = number.saturating_mul(10).saturating_add(digit);
                (*digits, *last) = (*digits + 1, end);
                continue;
            }
            (None, Some(Piece { kind: Kind::Word, end: last, .. })) if in_word(c) => {
                *last = end;
                continue;
            }
            (_, Some(before)) => before.next = Some(c),
            (_, None) => {}
        }
        let kind = digit(c).map(|digit| Kind::Number(digit, 1)).or(in_word(c).then_some(Kind::Word));
        found.extend(kind.map(|kind| Piece { kind, at, end, next: None }));
    }
    found
}

/// Letters and the marks that stand on them; some months are cut with a mark of their own.
fn in_word(c: char) -> bool {
    c.is_alphabetic()
        || matches!(c, '\u{300}'..='\u{36f}' | '\u{93c}'..='\u{94d}' | '\u{e31}'..='\u{e4e}' | '॰')
}

/// Digits of Latin, Arabic, Persian and Devanagari script.
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

/// Whether the first byte of a digit may be this one.
fn may_begin_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, 0xd9 | 0xdb | 0xe0)
}

fn digits(line: &str) -> usize {
    line.chars().filter(|c| digit(*c).is_some()).count()
}

/// The time of day: two or three numbers of which colons (or, in some languages, points) stand between.
struct Clock {
    hour: i64,
    minute: i64,
    second: i64,
    /// Index of its first piece, and the one behind its last.
    start: usize,
    end: usize,
    /// Byte offset behind it.
    at_end: usize,
}

impl Clock {
    fn find(pieces: &[Piece]) -> Option<Self> {
        let colons = |at: usize| Self::at(pieces, at, &[':', '：']);
        let points = |at: usize| Self::at(pieces, at, &['.']);
        let whole = |clock: &Self| clock.end - clock.start == 3;
        let places = 0..pieces.len();
        // A zone may hold a colon, and points part dates as well: three numbers are surer than two, and of points the
        // last ones count.
        places
            .clone()
            .find_map(|at| colons(at).filter(whole))
            .or_else(|| places.clone().rev().find_map(|at| points(at).filter(whole)))
            .or_else(|| places.clone().find_map(colons))
    }

    fn at(pieces: &[Piece], start: usize, between: &[char]) -> Option<Self> {
        let number = |at: usize| match pieces.get(at) {
            Some(Piece { kind: Kind::Number(number, digits), next, end, .. }) if *digits <= 2 => {
                Some((*number, next.is_some_and(|next| between.contains(&next)), *end))
            }
            _ => None,
        };
        let adjoins = |at: usize| {
            pieces.get(at).zip(pieces.get(at + 1)).is_some_and(|(a, b)| b.at <= a.end + '：'.len_utf8())
        };
        let (hour, true, _) = number(start)? else { return None };
        let (minute, more, minute_end) = number(start + 1).filter(|_| adjoins(start))?;
        let second = number(start + 2).filter(|_| more && adjoins(start + 1));
        if hour > 24 || minute > 59 || second.is_some_and(|(second, ..)| second > 60) {
            return None;
        }
        let (end, at_end) = second.map_or((start + 2, minute_end), |(_, _, end)| (start + 3, end));
        let second = second.map_or(0, |(second, ..)| second.min(59));
        Some(Self { hour: hour % 24, minute, second, start, end, at_end })
    }
}

/// The zone behind the time of day.
struct Zone {
    minutes: Option<i64>,
    /// Byte offset at which its text begins.
    start: usize,
}

fn zone(line: &str, clock: &Clock) -> Zone {
    let rest = line.get(clock.at_end..).unwrap_or_default();
    let trimmed = rest.trim_end_matches(|c: char| c.is_whitespace() || c == ')');
    // The last run without white space, brackets around it or not.
    let word = trimmed.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    let start = clock.at_end + trimmed.len() - word.len();
    match offset(word) {
        Some(minutes) if !word.is_empty() => Zone { minutes: Some(minutes), start },
        // A date behind the time has numbers; an unknown zone is capitals alone.
        _ if word.len() >= 2
            && word.bytes().all(|byte| byte.is_ascii_uppercase())
            && half(&word.to_lowercase()).is_none() =>
        {
            Zone { minutes: None, start }
        }
        _ => Zone { minutes: None, start: line.len() },
    }
}

/// What stands around the time of day.
#[derive(Default)]
struct Date {
    /// Each with the number of its digits.
    numbers: Vec<(i64, usize)>,
    month: Option<i64>,
    half: Option<Half>,
    /// The last word, and the one before.
    last: String,
    before: String,
    /// Words that mean nothing here.
    unknown: usize,
}

impl Date {
    fn take(&mut self, piece: &Piece, text: &str) {
        match &piece.kind {
            Kind::Number(number, digits) => self.numbers.push((*number, *digits)),
            Kind::Word => {
                std::mem::swap(&mut self.last, &mut self.before);
                self.last.clear();
                self.last.extend(text.chars().flat_map(char::to_lowercase));
                let word = self.last.as_str();
                if let Some(half) = half(word).or_else(|| names::half_in_two(&self.before, word)) {
                    self.half.get_or_insert(half);
                } else if let Some(month) = month(word).filter(|_| self.month.is_none()) {
                    self.month = Some(month);
                } else if !names::is_filler(word) {
                    self.unknown += 1;
                }
            }
        }
    }

    /// Year, month and day; the month is none where its name is not known.
    fn read(self) -> Option<(i64, Option<i64>, i64)> {
        let numbers = self.numbers;
        let is_year = |(number, digits): &(i64, usize)| {
            *digits == 4 && (YEARS.contains(number) || YEARS.contains(&(number - BUDDHIST_ERA)))
        };
        let years = numbers.iter().filter(|number| is_year(number)).count();
        let year_first = numbers.first().is_some_and(is_year);
        if years != 1 || self.unknown > 1 {
            return None;
        }
        let year = numbers.iter().find(|number| is_year(number)).map(|(number, _)| *number)?;
        let year = if YEARS.contains(&year) { year } else { year - BUDDHIST_ERA };
        let others: Vec<i64> =
            numbers.iter().filter(|number| !is_year(number)).map(|(number, _)| *number).collect();
        let (month, day) = match (self.month, others.as_slice()) {
            (Some(month), [day]) => (Some(month), *day),
            // Vietnamese months have a number behind their word: the day comes before it.
            (None, [first, second]) => {
                if year_first || (*second > 12 && *first <= 12) {
                    (Some(*first), *second)
                } else {
                    (Some(*second), *first)
                }
            }
            (None, [day]) if self.unknown == 1 => (None, *day),
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
        let micros = read(line)?.micros?;
        Timestamp::from_micros(micros).map(|time| time.to_string())
    }

    #[test]
    fn every_language_says_when() {
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
    fn other_lines_are_no_times() {
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
            assert_eq!(read(line), None, "{line}");
        }
    }

    #[test]
    fn what_is_not_known_is_said() {
        let zone = |line| read(line).map(|when| (when.micros.is_some(), when.zoned));
        assert_eq!(zone("Jul 4, 2026, 9:15:07 AM XYZT"), Some((true, false)));
        assert_eq!(zone("Jul 4, 2026, 9:15:07 AM"), Some((true, false)));
        assert_eq!(zone("4 zzz 2026, 09:15:07 CEST"), Some((false, false)));
    }
}
