//! The value that a column has in rows from before it was added to its table.

use super::{Value, sql::Token};

/// What SQLite makes of a value that is stored in a column, by the column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Affinity {
    Integer,
    Text,
    /// Nothing.
    Blob,
    Real,
    Numeric,
}

impl Affinity {
    /// The affinity of a type, in capital letters: rules 1 to 5 of <https://www.sqlite.org/datatype3.html>, in their order.
    pub(super) fn of(kind: &str) -> Self {
        let has = |parts: &[&str]| parts.iter().any(|part| kind.contains(part));
        if has(&["INT"]) {
            Self::Integer
        } else if has(&["CHAR", "CLOB", "TEXT"]) {
            Self::Text
        } else if kind.is_empty() || has(&["BLOB"]) {
            Self::Blob
        } else if has(&["REAL", "FLOA", "DOUB"]) {
            Self::Real
        } else {
            Self::Numeric
        }
    }
}

/// The value that a column's definition gives behind `DEFAULT`. Only constants can be added to a table that has rows; an expression is not
/// evaluated.
pub(super) fn value(definition: &[Token], affinity: Affinity) -> Value {
    let is_default =
        |at: &usize| definition[*at].is("DEFAULT") && (*at == 0 || !definition[*at - 1].is("SET"));
    let Some(at) = (0..definition.len()).rev().find(is_default) else { return Value::Null };
    let constant = &definition[at + 1..];
    let open = constant.iter().take_while(|token| **token == Token::Mark('(')).count();
    let constant = &constant[open..];
    let (sign, constant) = match constant.first() {
        Some(Token::Mark('-')) => ("-", &constant[1..]),
        Some(Token::Mark('+')) => ("", &constant[1..]),
        _ => ("", constant),
    };
    let (value, length) = match constant {
        [Token::Text(text) | Token::Name(text), ..] => (stored(text, affinity), 1),
        [Token::Number(digits), ..] => (number(&format!("{sign}{digits}"), affinity), 1),
        [word, Token::Text(digits), ..] if word.is("X") => (blob(digits), 2),
        [word, ..] if word.is("TRUE") => (Value::Integer(1), 1),
        [word, ..] if word.is("FALSE") => (Value::Integer(0), 1),
        [Token::Word(word), ..] if open == 0 && !is_keyword(word) => (stored(word, affinity), 1),
        _ => (Value::Null, 1),
    };
    let whole = open == 0 || constant.get(length) == Some(&Token::Mark(')'));
    if whole { value } else { Value::Null }
}

/// Whether a word is a value of its own, and not a text without quotes.
fn is_keyword(word: &str) -> bool {
    ["NULL", "CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP"]
        .iter()
        .any(|keyword| word.eq_ignore_ascii_case(keyword))
}

/// A text as a column stores it: as a number if it is one and the column is for numbers.
fn stored(text: &str, affinity: Affinity) -> Value {
    let trimmed = text.trim_matches(|c: char| matches!(c, ' ' | '\t'..='\r'));
    let is_decimal =
        trimmed.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    let number = match affinity {
        Affinity::Text | Affinity::Blob => None,
        _ if is_decimal => parsed(trimmed, affinity),
        _ => None,
    };
    number.unwrap_or_else(|| Value::Text(text.to_owned()))
}

fn number(digits: &str, affinity: Affinity) -> Value {
    if affinity == Affinity::Text {
        return Value::Text(digits.to_owned());
    }
    hexadecimal(digits).or_else(|| parsed(digits, affinity)).unwrap_or(Value::Null)
}

/// A decimal number: a whole one as such, unless the column is for others.
fn parsed(digits: &str, affinity: Affinity) -> Option<Value> {
    if let Some(whole) = digits.parse().ok().filter(|_| affinity != Affinity::Real) {
        return Some(Value::Integer(whole));
    }
    let number: f64 = digits.parse().ok()?;
    // 2^63, from which on a number is no integer.
    let fits = number.fract() == 0.0 && number.abs() < 9_223_372_036_854_775_808.0;
    let fits = fits && matches!(affinity, Affinity::Integer | Affinity::Numeric);
    #[expect(clippy::cast_possible_truncation, reason = "it is a whole number that fits")]
    Some(if fits { Value::Integer(number as i64) } else { Value::Real(number) })
}

/// A number such as `0x1F`, whose digits are the bits of an integer.
fn hexadecimal(text: &str) -> Option<Value> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let digits = digits.strip_prefix("0x").or(digits.strip_prefix("0X"))?;
    let number = u64::from_str_radix(digits, 16).ok()?.cast_signed();
    Some(Value::Integer(if negative { number.wrapping_neg() } else { number }))
}

fn blob(digits: &str) -> Value {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect::<Option<_>>().map_or(Value::Null, Value::Blob)
}
