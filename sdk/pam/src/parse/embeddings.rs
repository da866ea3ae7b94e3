//! Reads embeddings documents.

use std::io::{self, Read};

use super::{
    EmbeddingsScan, ScanOptions, UnreadableEntry,
    fields::Fields,
    path::Path,
    root::{self, Event, Heading, Item, RootWalk},
    sink::{Sink, Version},
    store::storage_kind,
    stream::StreamError,
    values::{self, ValueRef},
};
use crate::{
    embedding::{Embedding, EmbeddingsDocument, SCHEMA, Storage},
    issue::Issue,
};

const LISTS: &[&str] = &["embeddings"];

pub(super) fn read(bytes: &[u8]) -> (Option<EmbeddingsDocument>, Vec<Issue>) {
    let mut embeddings = Vec::new();
    let options = ScanOptions { salvage: false, keep_going: &|| true };
    let scan = scan(bytes, options, &mut |_, entry| embeddings.extend(entry.ok()));
    // Reading from memory does not fail.
    let EmbeddingsScan { schema_version, issues, unknown, .. } = scan.ok().flatten().unwrap_or_default();
    let document = schema_version.map(|schema_version| EmbeddingsDocument {
        schema_version,
        unknown,
        ..EmbeddingsDocument::new(embeddings)
    });
    (document, issues)
}

/// Reads a document entry by entry; none if `keep_going` ends it.
pub(super) fn scan(
    input: impl Read,
    options: ScanOptions<'_>,
    take: &mut dyn FnMut(usize, Result<Embedding, UnreadableEntry>),
) -> io::Result<Option<EmbeddingsScan>> {
    let mut sink = Sink::default();
    let mut walk = RootWalk::new(input, LISTS, options.salvage, &mut sink)?;
    let (mut heading, mut has_list) = (Heading::default(), false);
    let filled = fill(&mut walk, (&mut heading, &mut has_list), &mut sink, options.keep_going, take);
    if !(options.keep_going)() {
        return Ok(None);
    }
    let broken = filled.err().map(|error| error.report(&mut sink)).transpose()?;
    if broken.is_some() && !options.salvage {
        let issues = sink.finish(Version::Current).0;
        return Ok(Some(EmbeddingsScan { issues, ..EmbeddingsScan::default() }));
    }
    let version = heading.check(SCHEMA, &mut sink);
    if !has_list {
        sink.error("R-12.7", &Path::ROOT.key("embeddings"), "is missing");
    }
    let (issues, unknown) = sink.finish(version);
    let readable = version != Version::Unsupported && !walk.duplicate_keys && has_list;
    let schema_version = readable.then(|| heading.schema_version.unwrap_or_default());
    Ok(Some(EmbeddingsScan { schema_version, issues, unknown, broken }))
}

fn fill<R: Read>(
    walk: &mut RootWalk<R>,
    (heading, has_list): (&mut Heading, &mut bool),
    sink: &mut Sink,
    keep_going: &dyn Fn() -> bool,
    take: &mut dyn FnMut(usize, Result<Embedding, UnreadableEntry>),
) -> Result<(), StreamError> {
    let root = Path::ROOT;
    let list = root.key("embeddings");
    while keep_going()
        && let Some(event) = walk.next(sink)?
    {
        match event {
            Event::List(_) => *has_list = true,
            Event::Item(Item { index, node, duplicate_key, .. }) => {
                let value = ValueRef { node: &node, path: &list.index(index), rule: "R-12.7" };
                let read = embedding(value, sink).filter(|_| !duplicate_key);
                let unreadable = || UnreadableEntry { list: "embeddings", index, reason: sink.reason() };
                take(index, read.ok_or_else(unreadable));
            }
            Event::Broken(list, index, problem) => {
                sink.push_json(&problem);
                take(index, Err(UnreadableEntry { list, index, reason: problem.to_string() }));
            }
            Event::Field(key, node) if key == "embeddings" => {
                sink.error("R-12.7", &list, format!("is {}, not a list", node.kind()));
            }
            Event::Field(key, node) => {
                if !heading.take(&key, &node, sink) {
                    root::unknown_field(&key, &node, sink);
                }
            }
        }
    }
    Ok(())
}

fn embedding(value: ValueRef<'_>, sink: &mut Sink) -> Option<Embedding> {
    const KEYS: &[&str] = &["id", "memory_id", "model", "dimensions", "created_at", "vector", "storage"];
    let mut fields = Fields::open(value, sink, KEYS)?;
    let id = fields.required("id", value.rule, values::text);
    let memory_id = fields.required("memory_id", value.rule, values::text);
    let model = fields.required("model", value.rule, values::text);
    let dimensions = fields.required("dimensions", value.rule, values::small_count);
    let created_at = fields.required("created_at", value.rule, values::time);
    let vector =
        fields.nullable("vector", value.rule, |value, sink| values::list(value, sink, values::number));
    let storage = fields.nullable("storage", value.rule, storage);
    Some(Embedding {
        id: id?,
        memory_id: memory_id?,
        model: model?,
        dimensions: dimensions?,
        created_at: created_at?,
        vector,
        storage,
    })
}

fn storage(value: ValueRef<'_>, sink: &mut Sink) -> Option<Storage> {
    let mut fields = Fields::open(value, sink, &["type", "ref"])?;
    let kind = storage_kind(&mut fields, value.rule);
    let reference = fields.required("ref", value.rule, values::text);
    Some(Storage { kind: kind?, reference: reference? })
}
