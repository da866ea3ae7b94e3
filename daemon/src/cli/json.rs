//! The output of `--json`: documents with stable keys. Keys may be added, but are never renamed or removed.

#![expect(clippy::struct_field_names, clippy::struct_excessive_bools, reason = "the keys of documents")]

/// Defines a document from rows of a field, its type, and its value in a message of the contract.
macro_rules! document {
    ($(#[$meta:meta])* $name:ident<$life:lifetime> from $source:ident: $wire:ty {
        $($(#[$attribute:meta])* $field:ident: $type:ty = $value:expr,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Serialize)]
        pub(crate) struct $name<$life> {
            $($(#[$attribute])* pub $field: $type,)+
        }

        impl<$life> $name<$life> {
            pub(crate) fn new($source: &$life $wire) -> Self {
                Self { $($field: $value,)+ }
            }
        }
    };
}

pub(crate) mod admin;
pub(crate) mod attachment;
pub(crate) mod change;
pub(crate) mod conversation;
pub(crate) mod device;
pub(crate) mod import;
pub(crate) mod links;
pub(crate) mod memory;
pub(crate) mod peer;
pub(crate) mod plugin;
pub(crate) mod review;
pub(crate) mod search;
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
