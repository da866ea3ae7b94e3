//! PAM normal form: a memory as the official SDK writes it after reading it.
//!
//! Nulls are removed, defaults are added, and timestamps have one form. The SDK's `validate` computes the checksum over this form.
//! The writers of this crate use it, so that both checksums are the same.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    json::tree::{self, Node, Notes, Object},
    time::normal_text,
};

/// Maximum nesting; a deeper value is not changed, and canonical JSON rejects it.
const MAX_DEPTH: usize = 256;

/// Returns the normal form of a memory of a document; a value that is not an object is returned unchanged.
#[must_use]
pub fn normal_form(memory: &Value) -> Value {
    let text = memory.to_string();
    let node = tree::parse(&text, MAX_DEPTH, &mut Notes::default());
    node.map_or_else(|_| memory.clone(), |node| normal_node(node).to_value())
}

/// Returns the normal form of a memory.
pub(crate) fn normal_node(memory: Node<'_>) -> Node<'_> {
    let Node::Object(mut memory) = memory else { return memory };
    drop_nulls(&mut memory);
    set_default(&mut memory, "status", || Node::String(Cow::Borrowed("active")));
    set_default(&mut memory, "tags", || Node::Array(Vec::new()));
    for (key, value) in &mut memory.entries {
        let Node::Object(block) = value else { continue };
        drop_nulls(block);
        match key.as_ref() {
            "temporal" => normalise_times(block, &["created_at", "updated_at", "valid_from", "valid_until"]),
            "provenance" => normalise_times(block, &["extracted_at"]),
            "confidence" => normalise_times(block, &["last_reinforced"]),
            "access" => {
                set_default(block, "visibility", || Node::String(Cow::Borrowed("private")));
                set_default(block, "exportable", || Node::Bool(true));
                set_default(block, "shared_with", || Node::Array(Vec::new()));
            }
            _ => {}
        }
    }
    Node::Object(memory)
}

fn drop_nulls(object: &mut Object<'_>) {
    object.entries.retain(|(_, value)| *value != Node::Null);
}

fn set_default<'a>(object: &mut Object<'a>, key: &'static str, value: impl FnOnce() -> Node<'a>) {
    if object.get(key).is_none() {
        object.entries.push((Cow::Borrowed(key), value()));
    }
}

fn normalise_times(block: &mut Object<'_>, keys: &[&str]) {
    for (key, value) in &mut block.entries {
        if let Node::String(text) = value
            && keys.contains(&key.as_ref())
            && let Some(normal) = normal_text(text)
        {
            *text = Cow::Owned(normal);
        }
    }
}
