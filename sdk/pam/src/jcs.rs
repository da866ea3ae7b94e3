//! Canonical JSON (RFC 8785, PAM 1.0 §15): the one byte string of a value that is hashed or signed.
//!
//! **Invariant:** equal values have equal bytes, regardless of key order and the text of numbers (test `key_order_is_lost`).

use std::cmp::Ordering;

use serde::Serialize;
use serde_json::Value;

/// Maximum nesting of a value, twice that of [`crate::parse`].
const MAX_DEPTH: usize = 256;
/// The largest integer that every JSON reader preserves: 2^53 - 1.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Why a value has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JcsError {
    /// An integer on which readers do not agree. Written with `.0` or an exponent, it is a double and has a canonical form.
    #[error("integer {0} is beyond 2^53 - 1 and not canonicalisable; write it as a string")]
    Integer(String),
    /// NaN or an infinity.
    #[error("number {0} is not finite")]
    NotFinite(String),
    /// More than 256 levels of nesting.
    #[error("more than {MAX_DEPTH} levels of nesting")]
    Depth,
    /// An implementation of `Serialize` failed.
    #[error("the value does not serialise: {0}")]
    Value(String),
}

/// Writes the canonical bytes of a value.
///
/// `serde_json` reads an integer beyond 64 bits as a float, which has a canonical form; [`crate::parse`] sees the text and rejects
/// it.
///
/// # Errors
/// If a number has no canonical form or the value is nested too deeply.
pub fn to_vec(value: &Value) -> Result<Vec<u8>, JcsError> {
    let mut out = Vec::new();
    write_tree(&mut out, value)?;
    Ok(out)
}

/// Writes the canonical bytes of anything that serialises to JSON.
///
/// # Errors
/// Like [`to_vec`], and if the value does not serialise.
pub fn write<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, JcsError> {
    let value = serde_json::to_value(value).map_err(|problem| JcsError::Value(problem.to_string()))?;
    to_vec(&value)
}

/// A JSON value in any representation.
pub(crate) trait Tree: Sized {
    fn view(&self) -> View<'_, Self>;
}

pub(crate) enum View<'v, T> {
    Null,
    Bool(bool),
    Number(Numeral<'v>),
    String(&'v str),
    Array(&'v [T]),
    Object(Vec<(&'v str, &'v T)>),
}

pub(crate) enum Numeral<'v> {
    /// The text of a JSON number.
    Text(&'v str),
    SignedFields(i64),
    Unsigned(u64),
    Float(f64),
}

impl Tree for Value {
    fn view(&self) -> View<'_, Self> {
        match self {
            Self::Null => View::Null,
            Self::Bool(value) => View::Bool(*value),
            Self::Number(number) => View::Number(match (number.as_i64(), number.as_u64()) {
                (Some(small), _) => Numeral::SignedFields(small),
                (None, Some(large)) => Numeral::Unsigned(large),
                (None, None) => Numeral::Float(number.as_f64().unwrap_or(f64::NAN)),
            }),
            Self::String(text) => View::String(text),
            Self::Array(items) => View::Array(items),
            Self::Object(map) => View::Object(map.iter().map(|(key, value)| (key.as_str(), value)).collect()),
        }
    }
}

pub(crate) fn write_tree<T: Tree>(out: &mut Vec<u8>, value: &T) -> Result<(), JcsError> {
    write_at(out, value, 0)
}

fn write_at<T: Tree>(out: &mut Vec<u8>, value: &T, depth: usize) -> Result<(), JcsError> {
    if depth > MAX_DEPTH {
        return Err(JcsError::Depth);
    }
    match value.view() {
        View::Null => out.extend_from_slice(b"null"),
        View::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        View::Number(number) => write_number(out, &number)?,
        View::String(text) => write_string(out, text),
        View::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                comma(out, index);
                write_at(out, item, depth + 1)?;
            }
            out.push(b']');
        }
        View::Object(entries) => write_entries(out, entries, depth)?,
    }
    Ok(())
}

/// Appends an object with these entries, given in any order.
pub(crate) fn write_object<T: Tree>(out: &mut Vec<u8>, entries: Vec<(&str, &T)>) -> Result<(), JcsError> {
    write_entries(out, entries, 0)
}

fn write_entries<T: Tree>(
    out: &mut Vec<u8>,
    mut entries: Vec<(&str, &T)>,
    depth: usize,
) -> Result<(), JcsError> {
    entries.sort_by(|(left, _), (right, _)| key_order(left, right));
    out.push(b'{');
    for (index, (key, item)) in entries.into_iter().enumerate() {
        comma(out, index);
        write_string(out, key);
        out.push(b':');
        write_at(out, item, depth + 1)?;
    }
    out.push(b'}');
    Ok(())
}

fn comma(out: &mut Vec<u8>, index: usize) {
    if index > 0 {
        out.push(b',');
    }
}

/// Orders keys by UTF-16 code units, which differs from code point order: U+1F600 comes before U+FB33.
fn key_order(left: &str, right: &str) -> Ordering {
    if left.is_ascii() && right.is_ascii() {
        left.cmp(right)
    } else {
        left.encode_utf16().cmp(right.encode_utf16())
    }
}

fn write_number(out: &mut Vec<u8>, number: &Numeral<'_>) -> Result<(), JcsError> {
    match *number {
        Numeral::SignedFields(value) => write_integer(out, value < 0, value.unsigned_abs()),
        Numeral::Unsigned(value) => write_integer(out, false, value),
        Numeral::Float(value) => write_float(out, value),
        Numeral::Text(text) if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) => {
            write_float(out, text.parse().unwrap_or(f64::NAN))
        }
        Numeral::Text(text) => {
            let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
            let value = digits.parse().map_err(|_| JcsError::Integer(text.chars().take(40).collect()))?;
            write_integer(out, negative, value)
        }
    }
}

fn write_integer(out: &mut Vec<u8>, negative: bool, value: u64) -> Result<(), JcsError> {
    let sign = if negative && value != 0 { "-" } else { "" };
    if value > MAX_INTEGER {
        return Err(JcsError::Integer(format!("{sign}{value}")));
    }
    out.extend_from_slice(format!("{sign}{value}").as_bytes());
    Ok(())
}

/// Writes a double like ECMAScript.
pub(crate) fn write_float(out: &mut Vec<u8>, value: f64) -> Result<(), JcsError> {
    if !value.is_finite() {
        return Err(JcsError::NotFinite(value.to_string()));
    }
    out.extend_from_slice(ryu_js::Buffer::new().format_finite(value).as_bytes());
    Ok(())
}

/// Writes a string; only quote, backslash and control characters are escaped.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[start..at]);
        start = at + 1;
        let short = match byte {
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            b'"' | b'\\' => byte,
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}
