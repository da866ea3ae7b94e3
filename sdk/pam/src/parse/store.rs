//! Reads memory stores, and what only their text can tell about checksum and signature.

use super::{
    LeftOut, Remains, StoreReading,
    fields::Fields,
    json_issue, memory,
    path::Path,
    raw_memories::RawMemories,
    root::{self, Heading, Part, Walk},
    sink::{Sink, Version},
    values,
};
use crate::{
    conversation::ConversationTemporal,
    embedding::StorageKind,
    json::{JsonError, tree::Node},
    memory::Memory,
    relation::{Relation, RelationType},
    sign::{Literal, Signed},
    store::{
        ExportType, IndexEntry, Integrity, MemoryStore, Owner, SCHEMA, SignatureBlock, StorageReference,
        StoreHeader,
    },
};

const LISTS: &[&str] = &["memories", "relations", "conversations_index"];

#[derive(Default)]
struct Store<'a> {
    heading: Heading,
    owner: Option<Owner>,
    spec_uri: Option<String>,
    export_id: Option<String>,
    exported_by: Option<String>,
    export_date: Option<crate::time::Timestamp>,
    export_type: Option<ExportType>,
    base_export_id: Option<String>,
    since: Option<crate::time::Timestamp>,
    type_registry: Option<String>,
    memories: Option<Vec<Memory>>,
    relations: Vec<Relation>,
    conversations_index: Vec<IndexEntry>,
    integrity: Option<Integrity>,
    signature: Option<SignatureBlock>,
    signed: Signed,
    raw: RawMemories<'a>,
    remains: Remains,
}

pub(super) fn read(bytes: &[u8]) -> StoreReading {
    read_with(bytes, false, &|| true).unwrap_or_default().0
}

pub(super) fn salvage(bytes: &[u8], wanted: &dyn Fn() -> bool) -> Option<(StoreReading, Remains)> {
    read_with(bytes, true, wanted)
}

/// None once it is not wanted any more.
fn read_with(bytes: &[u8], salvage: bool, wanted: &dyn Fn() -> bool) -> Option<(StoreReading, Remains)> {
    let mut sink = Sink::default();
    let refused = |issues| Some((StoreReading { issues, ..StoreReading::default() }, Remains::default()));
    let text = match root::text(bytes, &mut sink) {
        Ok(text) => text,
        Err(issue) => return refused(vec![issue]),
    };
    let mut walk = Walk::new(text, LISTS, salvage);
    let mut store = Store::default();
    let filled = store.fill(&mut walk, &mut sink, wanted);
    if !wanted() {
        return None;
    }
    if let Err(problem) = filled {
        sink.push(json_issue(&problem));
        if !salvage {
            return refused(sink.finish(Version::Ours).0);
        }
        store.remains.broken = Some(problem);
    }
    if salvage {
        // What is missing is among the issues; whose the memories are does not make them less whole.
        store.owner.get_or_insert_default();
        store.memories.get_or_insert_default();
    }
    store.finish(sink, walk.ambiguous, wanted)
}

impl<'a> Store<'a> {
    fn fill(
        &mut self,
        walk: &mut Walk<'a>,
        sink: &mut Sink,
        wanted: &dyn Fn() -> bool,
    ) -> Result<(), JsonError> {
        while wanted()
            && let Some(part) = walk.next(sink)?
        {
            match part {
                Part::List("memories") => self.memories = Some(Vec::new()),
                Part::List(_) => {}
                Part::Item(list, index, node) => self.item(list, index, &node, walk.twice, sink),
                Part::Broken(list, index, problem) => {
                    sink.push(json_issue(&problem));
                    if list == "memories" {
                        self.raw.push(&Node::Null);
                    }
                    self.remains.left_out.push(LeftOut { list, index, reason: problem.to_string() });
                }
                Part::Field(key, node) => {
                    if !self.heading.take(&key, &node, sink) {
                        self.field(&key, &node, sink);
                    }
                }
            }
        }
        Ok(())
    }

    /// `twice`: the item has some key twice, so what it says is open.
    fn item(&mut self, list: &'static str, index: usize, node: &Node<'a>, twice: bool, sink: &mut Sink) {
        let root = Path::ROOT;
        let path = root.key(list);
        let path = path.index(index);
        let known = match list {
            "memories" => {
                self.raw.push(node);
                let memory = memory::read(node, &path, "R-4.1", sink).filter(|_| !twice);
                extend(self.memories.get_or_insert_default(), memory)
            }
            "relations" => {
                extend(&mut self.relations, relation(node, &path, "R-13.1", sink).filter(|_| !twice))
            }
            _ => {
                let entry = index_entry(node, &path, "R-14.3", sink).filter(|_| !twice);
                extend(&mut self.conversations_index, entry)
            }
        };
        if !known {
            self.remains.left_out.push(LeftOut { list, index, reason: sink.reason() });
        }
    }

    fn field(&mut self, key: &str, node: &Node<'_>, sink: &mut Sink) {
        let root = Path::ROOT;
        let path = root.key(key);
        let null = *node == Node::Null;
        match key {
            "spec_uri" if !null => self.spec_uri = values::text(node, &path, "R-3.4", sink),
            "export_id" if !null => {
                self.export_id = values::text(node, &path, "R-3.5", sink);
                self.signed.export_id.clone_from(&self.export_id);
            }
            "exported_by" if !null => self.exported_by = values::text(node, &path, "R-3.6", sink),
            "base_export_id" if !null => self.base_export_id = values::text(node, &path, "R-16.1", sink),
            "since" if !null => self.since = values::time(node, &path, "R-16.1", sink),
            "type_registry" if !null => self.type_registry = values::text(node, &path, "R-19.1", sink),
            "signature" if !null => {
                self.signed.signature = Some(literal(node));
                self.signature = signature(node, &path, "R-18.2", sink);
            }
            "spec_uri" | "export_id" | "exported_by" | "base_export_id" | "since" | "type_registry"
            | "signature" => {}
            "export_date" => {
                self.signed.export_date = string_of(Some(node));
                self.export_date = values::time(node, &path, "R-3.7", sink);
            }
            "export_type" => self.export_type = values::name(node, &path, "R-3.8", sink),
            "owner" => {
                self.signed.owner_id = member(node, "id");
                self.owner = owner(node, &path, "R-3.10", sink);
            }
            "integrity" => {
                self.signed.checksum = member(node, "checksum");
                self.integrity = integrity(node, &path, "R-15.4", sink);
            }
            "memories" | "relations" | "conversations_index" => {
                sink.error(
                    if key == "memories" { "R-3.3" } else { "R-3.9" },
                    &path,
                    format!("is {}, not a list", node.kind()),
                );
            }
            _ => root::unknown_field(key, node, sink),
        }
    }

    fn finish(
        self,
        mut sink: Sink,
        ambiguous: bool,
        wanted: &dyn Fn() -> bool,
    ) -> Option<(StoreReading, Remains)> {
        let version = self.heading.judge(SCHEMA, &mut sink);
        let root = Path::ROOT;
        if self.memories.is_none() {
            sink.error("R-3.3", &root.key("memories"), "is missing");
        }
        if self.owner.is_none() && self.signed.owner_id.is_none() {
            sink.error("R-3.3", &root.key("owner"), "is missing");
        }
        let count = self.raw.count();
        let checksum = self.raw.judge(self.signed.checksum.as_deref(), wanted)?;
        let (issues, unknown) = sink.finish(version);
        let whole = version != Version::Foreign && !ambiguous;
        let document =
            (whole && self.memories.is_some()).then_some(self.owner).flatten().map(|owner| MemoryStore {
                schema_version: self.heading.schema_version.unwrap_or_default(),
                header: StoreHeader {
                    spec_uri: self.spec_uri,
                    export_id: self.export_id,
                    exported_by: self.exported_by,
                    export_date: self.export_date,
                    owner,
                    export_type: self.export_type.unwrap_or_default(),
                    base_export_id: self.base_export_id,
                    since: self.since,
                    type_registry: self.type_registry,
                },
                memories: self.memories.unwrap_or_default(),
                relations: self.relations,
                conversations_index: self.conversations_index,
                integrity: self.integrity,
                signature: self.signature,
                unknown,
            });
        Some((StoreReading { document, issues, signed: self.signed, checksum, count }, self.remains))
    }
}

/// Adds what could be read; false if nothing could.
pub(super) fn extend<T>(list: &mut Vec<T>, record: Option<T>) -> bool {
    let known = record.is_some();
    list.extend(record);
    known
}

pub(super) fn member(node: &Node<'_>, key: &str) -> Option<String> {
    match node {
        Node::Object(object) => string_of(object.get(key)),
        _ => None,
    }
}

fn string_of(node: Option<&Node<'_>>) -> Option<String> {
    match node {
        Some(Node::String(text)) => Some(text.clone().into_owned()),
        _ => None,
    }
}

fn literal(node: &Node<'_>) -> Literal {
    // A block without one of them is a block all the same: it must not count as unsigned.
    let part = |key| member(node, key).unwrap_or_default();
    Literal { algorithm: part("algorithm"), public_key: part("public_key"), value: part("value") }
}

fn owner(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Owner> {
    let mut fields = Fields::open(node, path, rule, sink, &["id", "did", "created_at"])?;
    let id = fields.required("id", "R-3.10", values::text);
    let did = fields.nullable("did", "R-3.11", values::text);
    let created_at = fields.optional("created_at", "R-3.10", values::time);
    Some(Owner { id: id?, did, created_at })
}

fn integrity(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Integrity> {
    let mut fields =
        Fields::open(node, path, rule, sink, &["canonicalization", "checksum", "total_memories"])?;
    let canonicalization = fields.optional("canonicalization", "R-15.1", values::text);
    let checksum = fields.required("checksum", "R-15.4", values::digest);
    let total_memories = fields.required("total_memories", "R-15.4", values::count);
    let mut integrity = Integrity::new(checksum?, total_memories?);
    if let Some(name) = canonicalization {
        integrity.canonicalization = name;
    }
    Some(integrity)
}

fn signature(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<SignatureBlock> {
    const KEYS: &[&str] = &["algorithm", "public_key", "value", "signed_at", "key_id"];
    let mut fields = Fields::open(node, path, rule, sink, KEYS)?;
    let algorithm = fields.required("algorithm", "R-18.2", values::text);
    let public_key = fields.required("public_key", "R-18.2", values::text);
    let value = fields.required("value", "R-18.2", values::text);
    let signed_at = fields.required("signed_at", "R-18.2", values::time);
    let key_id = fields.nullable("key_id", "R-18.6", values::text);
    Some(SignatureBlock {
        algorithm: algorithm?,
        public_key: public_key?,
        value: value?,
        signed_at: signed_at?,
        key_id,
    })
}

fn relation(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<Relation> {
    const KEYS: &[&str] = &["id", "from", "to", "type", "confidence", "created_at"];
    let mut fields = Fields::open(node, path, rule, sink, KEYS)?;
    let id = fields.required("id", rule, values::text);
    let from = fields.required("from", rule, values::text);
    let to = fields.required("to", rule, values::text);
    let known_type = fields.required("type", rule, values::name);
    // A type of a later version still says that they belong together.
    let relation_type = known_type.or(fields.has("type").then_some(RelationType::RelatedTo));
    let confidence = fields.nullable("confidence", rule, values::number);
    let created_at = fields.required("created_at", rule, values::time);
    Some(Relation {
        id: id?,
        from: from?,
        to: to?,
        relation_type: relation_type?,
        confidence,
        created_at: created_at?,
    })
}

fn index_entry(node: &Node<'_>, path: &Path<'_>, rule: &'static str, sink: &mut Sink) -> Option<IndexEntry> {
    const KEYS: &[&str] =
        &["id", "platform", "title", "message_count", "temporal", "tags", "derived_memories", "storage"];
    let mut fields = Fields::open(node, path, rule, sink, KEYS)?;
    let id = fields.required("id", rule, values::text);
    let platform = fields.required("platform", rule, values::text);
    let title = fields.nullable("title", rule, values::text);
    let message_count = fields.nullable("message_count", rule, values::count);
    let temporal = fields.required("temporal", rule, conversation_temporal);
    let tags = fields.optional("tags", rule, values::texts).unwrap_or_default();
    let derived_memories = fields.optional("derived_memories", rule, values::texts).unwrap_or_default();
    let storage = fields.optional("storage", rule, storage_reference);
    Some(IndexEntry {
        id: id?,
        platform: platform?,
        title,
        message_count,
        temporal: temporal?,
        tags,
        derived_memories,
        storage,
    })
}

pub(super) fn conversation_temporal(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<ConversationTemporal> {
    let mut fields = Fields::open(node, path, rule, sink, &["created_at", "updated_at"])?;
    let created_at = fields.required("created_at", rule, values::time);
    let updated_at = fields.nullable("updated_at", rule, values::time);
    Some(ConversationTemporal { created_at: created_at?, updated_at })
}

fn storage_reference(
    node: &Node<'_>,
    path: &Path<'_>,
    rule: &'static str,
    sink: &mut Sink,
) -> Option<StorageReference> {
    let mut fields = Fields::open(node, path, rule, sink, &["type", "ref", "format"])?;
    let kind = storage_kind(&mut fields, rule);
    let reference = fields.required("ref", rule, values::text);
    let format = fields.nullable("format", rule, values::text);
    Some(StorageReference { kind: kind?, reference: reference?, format })
}

/// A kind of a later version is a place somewhere else.
pub(super) fn storage_kind(fields: &mut Fields<'_, '_>, rule: &'static str) -> Option<StorageKind> {
    let known = fields.required("type", rule, values::name);
    known.or(fields.has("type").then_some(StorageKind::Uri))
}
