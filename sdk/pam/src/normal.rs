//! PAM normal form: a memory as the official SDK writes it after reading it.
//!
//! Nulls go, defaults come, timestamps take one form. A checksum over this form is what the SDK's `validate` computes;
//! what we write is in this form already, so both readings agree on it.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    json::tree::{self, Node, Notes, Object},
    time::normal_text,
};

/// Nesting beyond which a value is left as it is; canonical JSON refuses it anyway.
const DEEPEST: usize = 256;

/// The normal form of one memory as it stands in a document; anything but an object stays as it is.
#[must_use]
pub fn normal_form(memory: &Value) -> Value {
    let text = memory.to_string();
    let node = tree::parse(&text, DEEPEST, &mut Notes::default());
    node.map_or_else(|_| memory.clone(), |node| normal_node(node).to_value())
}

/// The normal form of one memory.
pub(crate) fn normal_node(memory: Node<'_>) -> Node<'_> {
    let Node::Object(mut memory) = memory else { return memory };
    drop_nulls(&mut memory);
    default(&mut memory, "status", || Node::String(Cow::Borrowed("active")));
    default(&mut memory, "tags", || Node::Array(Vec::new()));
    for (key, value) in &mut memory.entries {
        let Node::Object(block) = value else { continue };
        drop_nulls(block);
        match key.as_ref() {
            "temporal" => times(block, &["created_at", "updated_at", "valid_from", "valid_until"]),
            "provenance" => times(block, &["extracted_at"]),
            "confidence" => times(block, &["last_reinforced"]),
            "access" => {
                default(block, "visibility", || Node::String(Cow::Borrowed("private")));
                default(block, "exportable", || Node::Bool(true));
                default(block, "shared_with", || Node::Array(Vec::new()));
            }
            _ => {}
        }
    }
    Node::Object(memory)
}

fn drop_nulls(object: &mut Object<'_>) {
    object.entries.retain(|(_, value)| *value != Node::Null);
}

fn default<'a>(object: &mut Object<'a>, key: &'static str, value: impl FnOnce() -> Node<'a>) {
    if object.get(key).is_none() {
        object.entries.push((Cow::Borrowed(key), value()));
    }
}

fn times(block: &mut Object<'_>, keys: &[&str]) {
    for (key, value) in &mut block.entries {
        if let Node::String(text) = value
            && keys.contains(&key.as_ref())
            && let Some(normal) = normal_text(text)
        {
            *text = Cow::Owned(normal);
        }
    }
}
