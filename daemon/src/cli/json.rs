//! What `--json` prints: shapes with stable keys. A key may be added, none is renamed or removed.

#![expect(clippy::struct_field_names, clippy::struct_excessive_bools, reason = "the keys of documents")]

pub(crate) mod admin;
pub(crate) mod change;
pub(crate) mod conversation;
pub(crate) mod import;
pub(crate) mod memory;
pub(crate) mod source;

use prost_types::Timestamp;

use super::time;

/// A time as PAM writes it; null where there is none.
pub(crate) fn when(time: Option<&Timestamp>) -> Option<String> {
    time.and_then(time::rfc3339)
}

/// Null for what the wire leaves empty.
pub(crate) fn filled(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
