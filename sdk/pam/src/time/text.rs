//! The text of timestamps: the normal form, and the forms that the official SDK accepts.

use super::{MICROS_PER_DAY, MICROS_PER_MINUTE, MICROS_PER_SECOND, TimeError, TimeNote, Timestamp, civil};

/// Length of `YYYY-MM-DDTHH:MM:SS.ffffff±HH:MM` in bytes.
pub(super) const MAX_LENGTH: usize = 32;
/// A larger number counts milliseconds, not seconds, like in pydantic.
const MILLISECONDS_ABOVE: f64 = 2e10;

pub(super) fn parse(text: &str) -> Result<(Timestamp, Option<TimeNote>), TimeError> {
    let bytes = text.as_bytes();
    if bytes.get(4) != Some(&b'-') {
        return parse_number(text);
    }
    let mut cursor = Cursor { bytes, at: 0, lenient: false };
    let days = cursor.date()?;
    if cursor.done() {
        return Ok((finish(days * MICROS_PER_DAY, 0)?, Some(TimeNote::Naive)));
    }
    match cursor.next() {
        Some(b'T') => {}
        Some(b't' | b' ' | b'_') => cursor.lenient = true,
        _ => return Err(TimeError::Form),
    }
    let time = cursor.time()?;
    let offset = cursor.offset()?;
    if !cursor.done() {
        return Err(TimeError::Form);
    }
    let note = match offset {
        None => Some(TimeNote::Naive),
        Some(_) => cursor.lenient.then_some(TimeNote::Lenient),
    };
    Ok((finish(days * MICROS_PER_DAY + time, offset.unwrap_or(0))?, note))
}

/// Parses epoch seconds, or milliseconds if the number is large.
fn parse_number(text: &str) -> Result<(Timestamp, Option<TimeNote>), TimeError> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+'));
    if !plain || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(TimeError::Form);
    }
    let number: f64 = text.parse().map_err(|_| TimeError::Form)?;
    Ok((from_number(number)?, Some(TimeNote::Lenient)))
}

/// Converts a number in place of a date-time: epoch seconds, or milliseconds if it is large. Like in pydantic, microseconds are
/// rounded half up, unlike in [`Timestamp::from_epoch_seconds`].
pub(crate) fn from_number(number: f64) -> Result<Timestamp, TimeError> {
    const BOUND: f64 = 1e15;
    let per_second = if number.abs() <= MILLISECONDS_ABOVE { 1.0 } else { 1e3 };
    if number.is_nan() || number.abs() > BOUND {
        return Err(TimeError::Range);
    }
    let seconds = (number / per_second).floor();
    let micros = ((number - seconds * per_second) * (1e6 / per_second)).round();
    #[expect(clippy::cast_possible_truncation, reason = "bounded above, and both are whole")]
    Timestamp::from_micros(seconds as i64 * MICROS_PER_SECOND + micros as i64).ok_or(TimeError::Range)
}

fn finish(local: i64, offset: i16) -> Result<Timestamp, TimeError> {
    let utc =
        Timestamp::from_micros(local - i64::from(offset) * MICROS_PER_MINUTE).ok_or(TimeError::Range)?;
    Ok(Timestamp { offset, ..utc })
}

/// The text that the official SDK writes after reading `text`: the normal form, without offset if `text` has none.
pub(crate) fn normal_text(text: &str) -> Option<String> {
    let (time, note) = parse(text).ok()?;
    let mut normal = time.to_string();
    if note == Some(TimeNote::Naive) {
        normal.pop();
    }
    Some(normal)
}

pub(super) fn write(time: Timestamp, buffer: &mut [u8; MAX_LENGTH]) -> &str {
    let local = time.local_micros();
    let (year, month, day) = civil::date(local.div_euclid(MICROS_PER_DAY));
    let of_day = local.rem_euclid(MICROS_PER_DAY);
    let (seconds, fraction) = (of_day / MICROS_PER_SECOND, of_day % MICROS_PER_SECOND);
    let mut out = TextWriter { buffer, at: 0 };
    out.digits(year, 4);
    out.parts(b'-', [month, day]);
    out.byte(b'T');
    out.digits(seconds / 3_600, 2);
    out.parts(b':', [seconds / 60 % 60, seconds % 60]);
    if fraction != 0 {
        out.byte(b'.');
        out.digits(fraction, 6);
    }
    if time.offset == 0 {
        out.byte(b'Z');
    } else {
        let offset = i64::from(time.offset.unsigned_abs());
        out.byte(if time.offset < 0 { b'-' } else { b'+' });
        out.digits(offset / 60, 2);
        out.parts(b':', [offset % 60]);
    }
    let end = out.at;
    str::from_utf8(&buffer[..end]).unwrap_or_default()
}

struct TextWriter<'a> {
    buffer: &'a mut [u8; MAX_LENGTH],
    at: usize,
}

impl TextWriter<'_> {
    fn byte(&mut self, byte: u8) {
        self.buffer[self.at] = byte;
        self.at += 1;
    }

    fn digits(&mut self, mut value: i64, width: usize) {
        for place in (self.at..self.at + width).rev() {
            self.buffer[place] = b'0' + u8::try_from(value % 10).unwrap_or(0);
            value /= 10;
        }
        self.at += width;
    }

    fn parts<const N: usize>(&mut self, separator: u8, values: [i64; N]) {
        for value in values {
            self.byte(separator);
            self.digits(value, 2);
        }
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    lenient: bool,
}

impl Cursor<'_> {
    fn done(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, wanted: u8) -> Result<(), TimeError> {
        if self.next() == Some(wanted) { Ok(()) } else { Err(TimeError::Form) }
    }

    fn number(&mut self, width: usize) -> Result<i64, TimeError> {
        let mut value = 0;
        for _ in 0..width {
            match self.next() {
                Some(digit @ b'0'..=b'9') => value = value * 10 + i64::from(digit - b'0'),
                _ => return Err(TimeError::Form),
            }
        }
        Ok(value)
    }

    fn bounded(&mut self, limit: i64, name: &'static str) -> Result<i64, TimeError> {
        let value = self.number(2)?;
        if value < limit { Ok(value) } else { Err(TimeError::Field(name)) }
    }

    fn date(&mut self) -> Result<i64, TimeError> {
        let year = self.number(4)?;
        self.expect(b'-')?;
        let month = self.number(2)?;
        self.expect(b'-')?;
        let day = self.number(2)?;
        if year == 0 {
            return Err(TimeError::Range);
        }
        civil::days(year, month, day).ok_or(TimeError::Field("day"))
    }

    /// Microseconds of the day.
    fn time(&mut self) -> Result<i64, TimeError> {
        let hour = self.bounded(24, "hour")?;
        self.expect(b':')?;
        let minute = self.bounded(60, "minute")?;
        let mut micros = (hour * 60 + minute) * MICROS_PER_MINUTE;
        if self.peek() != Some(b':') {
            self.lenient = true;
            return Ok(micros);
        }
        self.at += 1;
        // No leap seconds, like Python's datetime.
        micros += self.bounded(60, "second")? * MICROS_PER_SECOND;
        if let Some(mark @ (b'.' | b',')) = self.peek() {
            self.lenient |= mark == b',';
            self.at += 1;
            micros += self.fraction()?;
        }
        Ok(micros)
    }

    /// Microseconds; further digits are ignored.
    fn fraction(&mut self) -> Result<i64, TimeError> {
        let start = self.at;
        let (mut micros, mut unit) = (0, 100_000);
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            micros += i64::from(digit - b'0') * unit;
            unit /= 10;
            self.at += 1;
        }
        if self.at == start { Err(TimeError::Form) } else { Ok(micros) }
    }

    /// Minutes east of UTC; none if the text ends here.
    fn offset(&mut self) -> Result<Option<i16>, TimeError> {
        let sign = match self.next() {
            None => return Ok(None),
            Some(b'Z') => return Ok(Some(0)),
            Some(b'z') => {
                self.lenient = true;
                return Ok(Some(0));
            }
            Some(b'+') => 1,
            Some(b'-') => -1,
            // The typographic minus, U+2212.
            Some(0xe2) if self.bytes[self.at..].starts_with(&[0x88, 0x92]) => {
                self.at += 2;
                self.lenient = true;
                -1
            }
            Some(_) => return Err(TimeError::Form),
        };
        let hours = self.bounded(24, "offset")?;
        if self.peek() == Some(b':') {
            self.at += 1;
        } else {
            self.lenient = true;
        }
        let minutes = self.bounded(60, "offset")?;
        i16::try_from(sign * (hours * 60 + minutes)).map(Some).map_err(|_| TimeError::Field("offset"))
    }
}
