//! Reads memory stores, and what only their text can tell about checksum and signature.

use std::io::{self, Read};

use super::{
    How, LeftOut, Remains, StoreEntry, StoreFrame, StoreReading, StoreScan, Text,
    fields::Fields,
    json_issue, memory,
    path::Path,
    raw_memories::RawMemories,
    root::{self, Heading, Item, Part, Walk},
    sink::{Sink, Version},
    stream::{BYTE_ORDER_MARK, Fault},
    values,
};
use crate::{
    conversation::ConversationTemporal,
    embedding::StorageKind,
    json::{JsonError, tree::Node},
    relation::{Relation, RelationType},
    sign::{Literal, Signed},
    store::{
        ExportType, IndexEntry, Integrity, MemoryStore, Owner, SCHEMA, SignatureBlock, StorageReference,
        StoreHeader,
    },
};

const LISTS: &[&str] = &["memories", "relations", "conversations_index"];

/// The root of a store, as it is read.
#[derive(Default)]
struct Root {
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
    /// The list `memories` stands there.
    listed: bool,
    integrity: Option<Integrity>,
    signature: Option<SignatureBlock>,
    signed: Signed,
    raw: RawMemories,
    broken: Option<JsonError>,
}

/// Reads a store that is held in memory.
pub(super) fn read(
    bytes: &[u8],
    salvage: bool,
    wanted: &dyn Fn() -> bool,
) -> Option<(StoreReading, Remains)> {
    let (mut memories, mut relations, mut conversations_index) = (Vec::new(), Vec::new(), Vec::new());
    let mut left_out = Vec::new();
    let how = How { salvage, wanted };
    let scan = scan(&bytes, how, &mut |_, entry| match entry {
        StoreEntry::Memory(memory) => memories.push(*memory),
        StoreEntry::Relation(relation) => relations.push(relation),
        StoreEntry::Conversation(entry) => conversations_index.push(entry),
        StoreEntry::LeftOut(entry) => left_out.push(entry),
    });
    // What is in memory can be read.
    let StoreScan { frame, issues, signed, checksum, count, broken } = scan.ok().flatten()?;
    let remains = Remains { left_out, broken };
    let document = frame.map(|frame| {
        let StoreFrame { schema_version, header, integrity, signature, unknown } = frame;
        MemoryStore {
            schema_version,
            header,
            memories,
            relations,
            conversations_index,
            integrity,
            signature,
            unknown,
        }
    });
    Some((StoreReading { document, issues, signed, checksum, count }, remains))
}

/// Reads a store entry by entry; none once that is not wanted any more.
pub(super) fn scan(
    text: &dyn Text,
    How { salvage, wanted }: How<'_>,
    take: &mut dyn FnMut(usize, StoreEntry),
) -> io::Result<Option<StoreScan>> {
    let mut sink = Sink::default();
    let mut walk = Walk::new(text.reader()?, LISTS, salvage, &mut sink)?;
    let skipped = if walk.marked() { BYTE_ORDER_MARK.len() } else { 0 };
    let mut root = Root::default();
    let filled = root.fill(&mut walk, &mut sink, wanted, take);
    if !wanted() {
        return Ok(None);
    }
    match filled {
        Ok(()) => {}
        Err(Fault::Io(error)) => return Err(error),
        Err(Fault::Json(problem)) => {
            sink.push(json_issue(&problem));
            if !salvage {
                let issues = sink.finish(Version::Ours).0;
                return Ok(Some(StoreScan { issues, ..StoreScan::default() }));
            }
            root.broken = Some(problem);
        }
    }
    if salvage {
        // What is missing is among the issues; whose the memories are does not make them less whole.
        root.owner.get_or_insert_default();
        root.listed = true;
    }
    root.finish(sink, walk.ambiguous, (text, skipped), wanted)
}

impl Root {
    fn fill<R: Read>(
        &mut self,
        walk: &mut Walk<R>,
        sink: &mut Sink,
        wanted: &dyn Fn() -> bool,
        take: &mut dyn FnMut(usize, StoreEntry),
    ) -> Result<(), Fault> {
        while wanted()
            && let Some(part) = walk.next(sink)?
        {
            match part {
                Part::List("memories") => self.listed = true,
                Part::List(_) => {}
                Part::Item(item) => {
                    let index = item.index;
                    take(index, self.item(item, sink));
                }
                Part::Broken(list, index, problem) => {
                    sink.push(json_issue(&problem));
                    if list == "memories" {
                        self.raw.push_broken();
                    }
                    take(index, StoreEntry::LeftOut(LeftOut { list, index, reason: problem.to_string() }));
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

    fn item(&mut self, item: Item<'_>, sink: &mut Sink) -> StoreEntry {
        let Item { list, index, node, offset, twice } = item;
        let root = Path::ROOT;
        let path = root.key(list);
        let path = path.index(index);
        let entry = match list {
            "memories" => {
                self.raw.push(&node, offset);
                if twice {
                    self.raw.refuse_duplicate_keys();
                }
                memory::read(&node, &path, "R-4.1", sink).map(|memory| StoreEntry::Memory(Box::new(memory)))
            }
            "relations" => relation(&node, &path, "R-13.1", sink).map(StoreEntry::Relation),
            _ => index_entry(&node, &path, "R-14.3", sink).map(StoreEntry::Conversation),
        };
        entry
            .filter(|_| !twice)
            .unwrap_or_else(|| StoreEntry::LeftOut(LeftOut { list, index, reason: sink.reason() }))
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
        text: (&dyn Text, usize),
        wanted: &dyn Fn() -> bool,
    ) -> io::Result<Option<StoreScan>> {
        let version = self.heading.judge(SCHEMA, &mut sink);
        let root = Path::ROOT;
        if !self.listed {
            sink.error("R-3.3", &root.key("memories"), "is missing");
        }
        if self.owner.is_none() && self.signed.owner_id.is_none() {
            sink.error("R-3.3", &root.key("owner"), "is missing");
        }
        let count = self.raw.count();
        let Some(checksum) = self.raw.judge(self.signed.checksum.as_deref(), text, wanted)? else {
            return Ok(None);
        };
        let (issues, unknown) = sink.finish(version);
        let whole = version != Version::Foreign && !ambiguous && self.listed;
        let frame = self.owner.filter(|_| whole).map(|owner| StoreFrame {
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
            integrity: self.integrity,
            signature: self.signature,
            unknown,
        });
        Ok(Some(StoreScan { frame, issues, signed: self.signed, checksum, count, broken: self.broken }))
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
