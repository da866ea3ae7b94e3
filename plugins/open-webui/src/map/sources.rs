//! Sources of an answer: pages and pieces of documents that the program searched. `[1]` in the text counts them.

use std::borrow::Cow;

use satchel_importer::{
    Arena, Citation, Leftover,
    address::{is_uri, unsigned},
    json::{Object, Value, items},
};

/// Pieces of sources of one message that become citations; the metadata keeps the others.
const MAX_CITATIONS: usize = 1_000;

/// The citations of a list of sources, one for each piece of a document. What remains of the list is kept in `rest`.
pub(super) fn read<'a>(
    key: &'a str,
    list: Value<'a>,
    rest: &mut Leftover<'a>,
    arena: &'a Arena,
) -> Vec<Citation<'a>> {
    let Some(raw) = list.raw().filter(|raw| raw.starts_with('[')) else {
        if list != Value::Null {
            rest.add_json(key, &list.json());
        }
        return Vec::new();
    };
    let (mut citations, mut remaining) = (Vec::new(), Vec::new());
    for item in items(raw, arena) {
        remaining.push(add(item, arena, &mut citations));
    }
    if remaining.iter().any(|rest| rest != "{}") {
        rest.add_json(key, &format!("[{}]", remaining.join(",")));
    }
    citations
}

/// Adds the citations of one source and returns what remains of it as JSON text.
fn add<'a>(item: Value<'a>, arena: &'a Arena, citations: &mut Vec<Citation<'a>>) -> Cow<'a, str> {
    let Some(raw) = item.raw().filter(|raw| raw.starts_with('{')) else { return item.json() };
    let fields = Object::parse(raw, arena);
    let source = fields.object("source", arena);
    let metadata: Vec<Object<'a>> = fields.objects("metadata", arena);
    let pieces: Vec<Value<'a>> = fields.items("document", arena);
    let readable = pieces.iter().all(|piece| piece.text().is_some());
    if !readable || citations.len() + pieces.len() > MAX_CITATIONS {
        return raw.into();
    }
    let nothing = Object::default();
    for (at, piece) in pieces.iter().enumerate() {
        let metadata = metadata.get(at).unwrap_or(&nothing);
        citations.extend(citation(&fields, &source, metadata, piece.nonempty_text()));
    }
    if pieces.is_empty() && citations.len() < MAX_CITATIONS {
        citations.extend(citation(&fields, &source, metadata.first().unwrap_or(&nothing), None));
    }
    let mut rest = Leftover::default();
    for (key, value) in fields.fields().filter(|(key, _)| *key != "document") {
        if !matches!(value, Value::Null | Value::Raw("{}" | "[]")) {
            rest.add_json(key, &value.json());
        }
    }
    rest.into_json().unwrap_or("{}".into())
}

fn citation<'a>(
    item: &Object<'a>,
    source: &Object<'a>,
    metadata: &Object<'a>,
    snippet: Option<&'a str>,
) -> Option<Citation<'a>> {
    let name = metadata.text("name").or_else(|| metadata.text("title"));
    let title =
        name.or_else(|| source.text("name")).or_else(|| source.text("title")).or_else(|| item.text("title"));
    let named = [
        metadata.text("source_url"),
        metadata.text("url"),
        metadata.text("source"),
        source.text("url"),
        source.text("name"),
        source.text("id"),
        item.text("url"),
    ];
    let url = named.into_iter().flatten().find(|url| url.starts_with("http") && is_uri(url)).map(unsigned);
    let known = title.is_some() || url.is_some() || snippet.is_some();
    known.then(|| Citation { title: title.map(Cow::Borrowed), url, snippet: snippet.map(Cow::Borrowed) })
}
