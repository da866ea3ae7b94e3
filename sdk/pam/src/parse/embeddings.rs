//! Reads embeddings documents.

use super::{
    LeftOut, Remains,
    fields::Fields,
    json_issue,
    path::Path,
    root::{self, Heading, Part, Walk},
    sink::{Sink, Version},
    store::{extend, storage_kind},
    values,
};
use crate::{
    embedding::{Embedding, EmbeddingsDocument, SCHEMA, Storage},
    issue::Issue,
    json::{JsonError, tree::Node},
};

const LISTS: &[&str] = &["embeddings"];

#[derive(Default)]
struct Document {
    heading: Heading,
    embeddings: Option<Vec<Embedding>>,
    remains: Remains,
}

pub(super) fn read(bytes: &[u8]) -> (Option<EmbeddingsDocument>, Vec<Issue>) {
    let (document, issues, _) = read_with(bytes, false);
    (document, issues)
}

pub(super) fn salvage(bytes: &[u8]) -> (Option<EmbeddingsDocument>, Vec<Issue>, Remains) {
    read_with(bytes, true)
}

fn read_with(bytes: &[u8], salvage: bool) -> (Option<EmbeddingsDocument>, Vec<Issue>, Remains) {
    let mut sink = Sink::default();
    let text = match root::text(bytes, &mut sink) {
        Ok(text) => text,
        Err(issue) => return (None, vec![issue], Remains::default()),
    };
    let mut walk = Walk::new(text, LISTS, salvage);
    let mut document = Document::default();
    if let Err(problem) = document.fill(&mut walk, &mut sink) {
        sink.push(json_issue(&problem));
        if !salvage {
            return (None, sink.finish(Version::Ours).0, Remains::default());
        }
        document.remains.broken = Some(problem);
    }
    document.finish(sink, walk.ambiguous)
}

impl Document {
    fn fill(&mut self, walk: &mut Walk<'_>, sink: &mut Sink) -> Result<(), JsonError> {
        let root = Path::ROOT;
        let list = root.key("embeddings");
        while let Some(part) = walk.next(sink)? {
            match part {
                Part::List(_) => self.embeddings = Some(Vec::new()),
                Part::Item(_, index, node) => {
                    let embedding = embedding(&node, &list.index(index), "R-12.7", sink);
                    let embedding = embedding.filter(|_| !walk.twice);
                    if !extend(self.embeddings.get_or_insert_default(), embedding) {
                        let reason = sink.reason();
                        self.remains.left_out.push(LeftOut { list: "embeddings", index, reason });
                    }
                }
                Part::Broken(list, index, problem) => {
                    sink.push(json_issue(&problem));
                    self.remains.left_out.push(LeftOut { list, index, reason: problem.to_string() });
                }
                Part::Field(key, node) if key == "embeddings" => {
                    sink.error("R-12.7", &list, format!("is {}, not a list", node.kind()));
                }
                Part::Field(key, node) => {
                    if !self.heading.take(&key, &node, sink) {
                        root::unknown_field(&key, &node, sink);
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(self, mut sink: Sink, ambiguous: bool) -> (Option<EmbeddingsDocument>, Vec<Issue>, Remains) {
        let version = self.heading.judge(SCHEMA, &mut sink);
        if self.embeddings.is_none() {
            sink.error("R-12.7", &Path::ROOT.key("embeddings"), "is missing");
        }
        let (issues, unknown) = sink.finish(version);
        let whole = version != Version::Foreign && !ambiguous;
        let document = self.embeddings.filter(|_| whole).map(|embeddings| EmbeddingsDocument {
            schema_version: self.heading.schema_version.unwrap_or_default(),
            unknown,
            ..EmbeddingsDocument::new(embeddings)
        });
        (document, issues, self.remains)
    }
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
