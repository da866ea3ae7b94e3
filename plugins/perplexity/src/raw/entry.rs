//! A turn of the shape `entries[]`, as the site's own interface answers: the answer stands in blocks.

use satchel_importer::{
    Arena, Leftover, address,
    json::{Object, Value, items},
};

use super::{Turn, block, keep, time};

/// Whoever holds it may write to the thread.
const SECRET: &str = "read_write_token";

pub(super) fn read<'a>(place: usize, fields: &Object<'a>, arena: &'a Arena) -> Turn<'a> {
    let mut it = Turn { place, ..Turn::default() };
    let mut backend = None;
    for (key, value) in fields.fields() {
        match (key, value) {
            (SECRET, _) => {}
            ("uuid", Value::Text(text)) if !text.is_empty() => it.uuid = Some(text),
            ("backend_uuid", Value::Text(text)) if !text.is_empty() => backend = Some(text),
            ("context_uuid", Value::Text(text)) if !text.is_empty() => it.thread = Some(text),
            ("thread_url_slug", Value::Text(text)) if !text.is_empty() => it.slug = Some(text),
            ("thread_title", Value::Text(text)) if !text.is_empty() => it.title = Some(text),
            ("query_str", Value::Text(text)) => it.query = Some(text),
            ("display_model", Value::Text(text)) if !text.is_empty() => it.model = Some(text),
            ("entry_created_datetime", value) => it.created = time(&mut it.rest, key, value),
            ("entry_updated_datetime", value) => {
                // The thread's own time may be another one.
                it.updated = time(&mut Leftover::default(), key, value);
                keep(&mut it.rest, key, value);
            }
            ("attachments", Value::Raw(raw)) if raw.starts_with('[') => attach(raw, &mut it, arena),
            ("blocks", Value::Raw(raw)) if raw.starts_with('[') => {
                let blocks = block::read(raw, arena);
                (it.answer, it.citations) = (blocks.answer, blocks.citations);
                if let Some(kept) = blocks.kept {
                    it.rest.add_json(key, &kept);
                }
            }
            (key, value) => keep(&mut it.rest, key, value),
        }
    }
    match (it.uuid, backend) {
        (Some(_), Some(backend)) => it.rest.add_text("backend_uuid", backend),
        (uuid, backend) => it.uuid = uuid.or(backend),
    }
    if it.created.is_none() {
        it.created = it.updated.or_else(|| {
            fields
                .text("updated_datetime")
                .and_then(|text| Some(satchel_importer::json::time_of_text(text)?.0))
        });
    }
    it
}

fn attach<'a>(raw: &'a str, turn: &mut Turn<'a>, arena: &'a Arena) {
    let items = items(raw, arena);
    let addresses: Vec<&str> =
        items.iter().filter_map(|item| item.text()).filter(|text| address::is_uri(text)).collect();
    if addresses.len() < items.len() {
        turn.rest.add_json("attachments", raw);
    }
    turn.attachments = addresses;
}
