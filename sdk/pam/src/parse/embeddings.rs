//! Reads embeddings documents.

use std::io::{self, Read};

use super::{
    EmbeddingsScan, How, LeftOut, Remains,
    fields::Fields,
    json_issue,
    path::Path,
    root::{self, Heading, Item, Part, Walk},
    sink::{Sink, Version},
    store::storage_kind,
    stream::Fault,
    values,
};
use crate::{
    embedding::{Embedding, EmbeddingsDocument, SCHEMA, Storage},
    issue::Issue,
    json::tree::Node,
};

const LISTS: &[&str] = &["embeddings"];

pub(super) fn read(bytes: &[u8], salvage: bool) -> (Option<EmbeddingsDocument>, Vec<Issue>, Remains) {
    let (mut embeddings, mut left_out) = (Vec::new(), Vec::new());
    let how = How { salvage, wanted: &|| true };
    let scan = scan(bytes, how, &mut |_, entry| match entry {
        Ok(embedding) => embeddings.push(embedding),
        Err(entry) => left_out.push(entry),
    });
    // What is in memory can be read.
    let EmbeddingsScan { schema_version, issues, unknown, broken } = scan.ok().flatten().unwrap_or_default();
    let document = schema_version.map(|schema_version| EmbeddingsDocument {
        schema_version,
        unknown,
        ..EmbeddingsDocument::new(embeddings)
    });
    (document, issues, Remains { left_out, broken })
}

/// Reads a document entry by entry; none once that is not wanted any more.
pub(super) fn scan(
    input: impl Read,
    How { salvage, wanted }: How<'_>,
    take: &mut dyn FnMut(usize, Result<Embedding, LeftOut>),
) -> io::Result<Option<EmbeddingsScan>> {
    let mut sink = Sink::default();
    let mut walk = Walk::new(input, LISTS, salvage, &mut sink)?;
    let (mut heading, mut listed) = (Heading::default(), false);
    let filled = fill(&mut walk, (&mut heading, &mut listed), &mut sink, wanted, take);
    if !wanted() {
        return Ok(None);
    }
    let broken = match filled {
        Ok(()) => None,
        Err(Fault::Io(error)) => return Err(error),
        Err(Fault::Json(problem)) => {
            sink.push(json_issue(&problem));
            if !salvage {
                let issues = sink.finish(Version::Ours).0;
                return Ok(Some(EmbeddingsScan { issues, ..EmbeddingsScan::default() }));
            }
            Some(problem)
        }
    };
    let version = heading.judge(SCHEMA, &mut sink);
    if !listed {
        sink.error("R-12.7", &Path::ROOT.key("embeddings"), "is missing");
    }
    let (issues, unknown) = sink.finish(version);
    let whole = version != Version::Foreign && !walk.ambiguous && listed;
    let schema_version = whole.then(|| heading.schema_version.unwrap_or_default());
    Ok(Some(EmbeddingsScan { schema_version, issues, unknown, broken }))
}

fn fill<R: Read>(
    walk: &mut Walk<R>,
    (heading, listed): (&mut Heading, &mut bool),
    sink: &mut Sink,
    wanted: &dyn Fn() -> bool,
    take: &mut dyn FnMut(usize, Result<Embedding, LeftOut>),
) -> Result<(), Fault> {
    let root = Path::ROOT;
    let list = root.key("embeddings");
    while wanted()
        && let Some(part) = walk.next(sink)?
    {
        match part {
            Part::List(_) => *listed = true,
            Part::Item(Item { index, node, twice, .. }) => {
                let read = embedding(&node, &list.index(index), "R-12.7", sink).filter(|_| !twice);
                let left_out = || LeftOut { list: "embeddings", index, reason: sink.reason() };
                take(index, read.ok_or_else(left_out));
            }
            Part::Broken(list, index, problem) => {
                sink.push(json_issue(&problem));
                take(index, Err(LeftOut { list, index, reason: problem.to_string() }));
            }
            Part::Field(key, node) if key == "embeddings" => {
                sink.error("R-12.7", &list, format!("is {}, not a list", node.kind()));
            }
            Part::Field(key, node) => {
                if !heading.take(&key, &node, sink) {
                    root::unknown_field(&key, &node, sink);
                }
            }
        }
    }
    Ok(())
}

fn embedding(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Embedding> {
    const KEYS: &[&str] = &["id", "memory_id", "model", "dimensions", "created_at", "vector", "storage"];
    let mut fields = Fields::open(node, path, rule, sink, KEYS)?;
    let id = fields.required("id", rule, values::text);
    let memory_id = fields.required("memory_id", rule, values::text);
    let model = fields.required("model", rule, values::text);
    let dimensions = fields.required("dimensions", rule, values::small_count);
    let created_at = fields.required("created_at", rule, values::time);
    let vector = fields.nullable("vector", rule, values::numbers);
    let storage = fields.nullable("storage", rule, storage);
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

fn storage(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Storage> {
    let mut fields = Fields::open(node, path, rule, sink, &["type", "ref"])?;
    let kind = storage_kind(&mut fields, rule);
    let reference = fields.required("ref", rule, values::text);
    Some(Storage { kind: kind?, reference: reference? })
}
