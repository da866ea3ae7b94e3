//! The output of `--json`: documents with stable keys. Keys may be added, but are never renamed or removed.

#![expect(clippy::struct_field_names, clippy::struct_excessive_bools, reason = "the keys of documents")]

pub(crate) mod admin;
pub(crate) mod change;
pub(crate) mod conversation;
pub(crate) mod import;
pub(crate) mod memory;
pub(crate) mod source;

use prost_types::Timestamp;

use super::time;

/// Returns a time as PAM writes it; null if there is none.
pub(crate) fn timestamp(time: Option<&Timestamp>) -> Option<String> {
    time.and_then(time::rfc3339)
}

/// Returns null for a field that is empty on the wire.
pub(crate) fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
