//! A turn of `conversations[]`: question, answer and sources in one object.

use std::borrow::Cow;

use satchel_importer::{
    Arena,
    json::{Object, Value, items},
};

use super::{Turn, block, keep, time};

pub(super) fn read<'a>(index: usize, fields: &Object<'a>, arena: &'a Arena) -> Turn<'a> {
    let mut it = Turn { index, ..Turn::default() };
    for (key, value) in fields.fields() {
        match (key, value) {
            ("uuid", Value::Text(text)) if !text.is_empty() => it.uuid = Some(text),
            ("query", Value::Text(text)) => it.query = Some(text),
            ("answer", Value::Text(text)) => it.answer = Some(Cow::Borrowed(text)),
            ("model", Value::Text(text)) if !text.is_empty() => it.model = Some(text),
            ("timestamp", value) => it.created = time(&mut it.rest, key, value),
            ("sources", Value::Raw(raw)) if raw.starts_with('[') => {
                let mut incomplete = false;
                for item in items(raw, arena) {
                    incomplete |= !block::add_source(item, &mut it.citations, arena);
                }
                if incomplete {
                    it.rest.add_json(key, raw);
                }
            }
            (key, value) => keep(&mut it.rest, key, value),
        }
    }
    it.set_candidates(fields);
    it
}
