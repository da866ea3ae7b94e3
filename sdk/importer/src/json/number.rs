//! Numbers, kept as their text until the caller says what they are.

use std::borrow::Cow;

/// A number as it stands in the text, valid JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<'a>(&'a str);

/// Digits of a microsecond behind the decimal point.
const MICRO_DIGITS: usize = 6;
/// Exponents beyond this put every time outside the range.
const MAX_EXPONENT: i64 = 30;

impl<'a> Number<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The text.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// JSON for it: itself, or its text in a string if no double holds it, which readers of JSON refuse.
    pub fn json(self) -> Cow<'a, str> {
        if fits(self.0) { Cow::Borrowed(self.0) } else { Cow::Owned(format!("\"{}\"", self.0)) }
    }

    /// The nearest double; too large ones are infinite.
    pub fn as_f64(self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }

    /// The value, if it is a whole number in range and written as one.
    pub fn as_i64(self) -> Option<i64> {
        self.0.parse().ok()
    }

    /// The value, if it is a whole number in range and written as one.
    pub fn as_u64(self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// Seconds since the Unix epoch as microseconds, exact to the digit and rounded half away from zero; none out of
    /// range. Going by doubles would move times by a microsecond.
    pub fn seconds_as_micros(self) -> Option<i64> {
        let (negative, text) = self.0.strip_prefix('-').map_or((false, self.0), |rest| (true, rest));
        let (decimal, exponent) = match text.split_once(['e', 'E']) {
            Some((decimal, exponent)) => (decimal, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
        let digits = whole.bytes().chain(fraction.bytes()).map(|byte| i64::from(byte - b'0'));
        // The digit at this index, counted from the first, is the first one below a microsecond.
        let shift = exponent.clamp(-MAX_EXPONENT, MAX_EXPONENT);
        let cut = i64::try_from(whole.len() + MICRO_DIGITS).ok()?.checked_add(shift)?;
        let micros = scale(digits, cut)?;
        Some(if negative { -micros } else { micros })
    }
}

/// Whether a double holds it; 309 digits or an exponent are needed to leave the range.
pub(super) fn fits(number: &str) -> bool {
    let suspicious = number.len() > 300 || number.bytes().any(|byte| byte | 0x20 == b'e');
    !suspicious || number.parse::<f64>().is_ok_and(f64::is_finite)
}

/// The first `cut` digits as a number, filled up with zeros, rounded by the digit behind them.
fn scale(digits: impl Iterator<Item = i64>, cut: i64) -> Option<i64> {
    let cut = usize::try_from(cut).ok();
    let mut digits = digits.chain(std::iter::repeat(0));
    let Some(cut) = cut else { return Some(0) };
    let mut value: i64 = 0;
    for digit in digits.by_ref().take(cut) {
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    value.checked_add(i64::from(digits.next().is_some_and(|digit| digit >= 5)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_microseconds_exactly() {
        let micros = |text| Number::new(text).seconds_as_micros();
        assert_eq!(micros("1718000000"), Some(1_718_000_000_000_000));
        assert_eq!(micros("1718000000.123456"), Some(1_718_000_000_123_456));
        assert_eq!(micros("1718000000.1234565"), Some(1_718_000_000_123_457));
        assert_eq!(micros("1718000000.12345649"), Some(1_718_000_000_123_456));
        assert_eq!(micros("-0.5"), Some(-500_000));
        assert_eq!(micros("1.718e9"), Some(1_718_000_000_000_000));
        assert_eq!(micros("17180000000e-1"), Some(1_718_000_000_000_000));
        assert_eq!(micros("5e-7"), Some(1));
        assert_eq!(micros("4e-7"), Some(0));
        assert_eq!(micros("1e-30"), Some(0));
        assert_eq!(micros("1e99"), None);
        assert_eq!(micros("99999999999999999999"), None);
        assert_eq!(micros("1e9999999999999999999999"), None);
    }

    #[test]
    fn whole_numbers_and_doubles() {
        assert_eq!(Number::new("-7").as_i64(), Some(-7));
        assert_eq!(Number::new("7.0").as_i64(), None);
        assert_eq!(Number::new("18446744073709551615").as_u64(), Some(u64::MAX));
        assert!((Number::new("0.1").as_f64() - 0.1).abs() < f64::EPSILON);
    }
}
