//! Checks of the items of evidence.

use satchel_pam::{
    memory::MemoryType,
    record::{ConfidenceRecord, Item},
};

use super::{Fault, Notes};

pub(super) fn check(item: &mut Item, notes: &mut Notes) -> Result<(), Fault> {
    if item.content.trim().is_empty() {
        return Err(Fault("it remembers nothing: its content is empty".to_owned()));
    }
    custom_type(item, notes)?;
    notes.optional_id("key", &mut item.key);
    notes.optional_id("scope", &mut item.scope);
    notes.optional_id("superseded_by", &mut item.superseded_by);
    notes.label("embedding_ref", &mut item.embedding_ref);
    notes.tags(&mut item.tags);
    notes.time("created_at", &mut item.created_at);
    notes.time("updated_at", &mut item.updated_at);
    notes.time("valid_from", &mut item.valid_from);
    notes.time("valid_until", &mut item.valid_until);
    if let Some(confidence) = &mut item.confidence {
        let ConfidenceRecord { initial, current, decay_model: _, last_reinforced } = confidence;
        notes.confidence("confidence.initial", initial);
        notes.confidence("confidence.current", current);
        notes.time("confidence.last_reinforced", last_reinforced);
    }
    Ok(())
}

fn custom_type(item: &mut Item, notes: &mut Notes) -> Result<(), Fault> {
    let custom = item.memory_type == MemoryType::Custom;
    let named = item.custom_type.as_ref().is_some_and(|name| !name.trim().is_empty());
    match (custom, named) {
        (true, false) => return Err(Fault("its type is custom, but it does not say which".to_owned())),
        (false, true) => {
            notes.left_out("custom_type", "is set, but the type is not custom");
            item.custom_type = None;
        }
        (false, false) => item.custom_type = None,
        (true, true) => notes.label("custom_type", &mut item.custom_type),
    }
    if custom && item.custom_type.is_none() {
        return Err(Fault("its custom type is too long".to_owned()));
    }
    Ok(())
}
