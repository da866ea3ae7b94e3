//! The fields that are known although nothing is made of them.

use satchel_importer::{Fields, Leftover};

use crate::digest::digest;

/// Fields that are kept although nothing else is made of them. They say something about a message and are not a part of the talk, so a
/// text in them is no reason for a warning.
pub(crate) const KEPT: [&str; 18] = [
    "agentId",
    "call_id",
    "description",
    "directories",
    "displayName",
    "id",
    "kind",
    "memoryScratchpad",
    "mimeType",
    "name",
    "projectHash",
    "renderOutputAsMarkdown",
    "resultDisplay",
    "status",
    "timestamp",
    "tokens",
    "type",
    "videoMetadata",
];

/// A digest of the fields that are left, are not known, and hold a text; 0 if there are none.
pub(crate) fn digest_of_unknown(fields: &Fields<'_>) -> u64 {
    let unknown = fields.iter().filter(|(key, value)| {
        let mut rest = Leftover::default();
        rest.note_unknown(key, *value);
        rest.unread().is_some() && !KEPT.contains(key)
    });
    unknown.fold(0, |all, (key, value)| all ^ digest(&format!("{key} {}", value.json())))
}
