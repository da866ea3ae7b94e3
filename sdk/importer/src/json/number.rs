//! Numbers, which keep their text until the caller chooses a type.

use std::borrow::Cow;

/// A JSON number as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number<'a>(&'a str);

impl<'a> Number<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The text of the number.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// Its JSON text; a JSON string with it if it is out of the range of a double, because other parsers refuse such numbers.
    pub fn json(self) -> Cow<'a, str> {
        if fits(self.0) { Cow::Borrowed(self.0) } else { Cow::Owned(format!("\"{}\"", self.0)) }
    }

    /// The nearest double; infinite if it is out of range.
    pub fn as_f64(self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }

    /// The value, if it is in range and written as an integer.
    pub fn as_i64(self) -> Option<i64> {
        self.0.parse().ok()
    }

    /// The value, if it is in range and written as an integer.
    pub fn as_u64(self) -> Option<u64> {
        self.0.parse().ok()
    }
}

/// Whether it is in the range of a double. A number out of range has at least 309 digits or an exponent.
pub(super) fn fits(number: &str) -> bool {
    let suspicious = number.len() > 300 || number.bytes().any(|byte| byte | 0x20 == b'e');
    !suspicious || number.parse::<f64>().is_ok_and(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_and_doubles() {
        assert_eq!(Number::new("-7").as_i64(), Some(-7));
        assert_eq!(Number::new("7.0").as_i64(), None);
        assert_eq!(Number::new("18446744073709551615").as_u64(), Some(u64::MAX));
        assert!((Number::new("0.1").as_f64() - 0.1).abs() < f64::EPSILON);
    }
}
