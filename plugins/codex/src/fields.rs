//! How the fields of objects are read, and which of them are known although nothing is made of them.

use satchel_importer::{Fields, json::FieldReader};

/// Real objects have tens of fields, and real lists tens of items.
pub(crate) const FIELD_READER: FieldReader = FieldReader::new().max_members(10_000);
/// Fields that are known and kept as they are. They may hold natural language without being a text of the conversation.
pub(crate) const KEPT: [&str; 31] = [
    "action",
    "author",
    "call_id",
    "client_id",
    "codex_error_info",
    "completed_at_ms",
    "content_item_kinds",
    "detail",
    "duration_ms",
    "end_turn",
    "execution",
    "id",
    "image_details",
    "internal_chat_message_metadata_passthrough",
    "kind",
    "local_images",
    "memory_citation",
    "metadata",
    "name",
    "namespace",
    "other_recipients",
    "phase",
    "recipient",
    "revised_prompt",
    "role",
    "status",
    "success",
    "text_elements",
    "tools",
    "turn_id",
    "type",
];

/// Takes the id at `key`. An empty one is removed.
pub(crate) fn take_id<'a>(fields: &mut Fields<'a>, key: &str) -> Option<&'a str> {
    fields.remove_text(key, "");
    fields.take_id(key)
}
