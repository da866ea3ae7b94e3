//! Reads memory stores, and the facts about checksum and signature that only their text shows.

use std::io::{self, Read};

use super::{
    SalvageReport, ScanOptions, StoreEntry, StoreReading, StoreRoot, StoreScan, TextSource, UnreadableEntry,
    checksum::MemoriesChecksum,
    conversation,
    fields::Fields,
    memory,
    path::Path,
    root::{self, Event, Heading, Item, RootWalk},
    sink::{Sink, Version},
    stream::{BYTE_ORDER_MARK, StreamError},
    values::{self, ValueRef},
};
use crate::{
    embedding::StorageKind,
    json::{JsonError, tree::Node},
    relation::{Relation, RelationType},
    sign::{SignatureFields, SignedFields},
    store::{
        IndexEntry, Integrity, MemoryStore, Owner, SCHEMA, SignatureBlock, StorageReference, StoreHeader,
    },
};

const LISTS: &[&str] = &["memories", "relations", "conversations_index"];

/// The root of a store while it is read.
#[derive(Default)]
struct Root {
    heading: Heading,
    /// The header without its owner.
    header: StoreHeader,
    owner: Option<Owner>,
    /// Whether the list `memories` is present.
    has_memories: bool,
    integrity: Option<Integrity>,
    signature: Option<SignatureBlock>,
    signed: SignedFields,
    memories: MemoriesChecksum,
    broken: Option<JsonError>,
}

/// Reads a store that is held in memory.
pub(super) fn read(bytes: &[u8], salvage: bool) -> (StoreReading, SalvageReport) {
    let (mut memories, mut relations, mut conversations_index) = (Vec::new(), Vec::new(), Vec::new());
    let mut unreadable = Vec::new();
    let options = ScanOptions { salvage, keep_going: &|| true };
    let scan = scan(&bytes, options, &mut |_, entry| match entry {
        StoreEntry::Memory(memory) => memories.push(*memory),
        StoreEntry::Relation(relation) => relations.push(relation),
        StoreEntry::Conversation(entry) => conversations_index.push(entry),
        StoreEntry::Unreadable(entry) => unreadable.push(entry),
    });
    // Reading from memory does not fail.
    let StoreScan { root, issues, signed, checksum, count, broken } = scan.ok().flatten().unwrap_or_default();
    let document = root.map(|root| {
        let StoreRoot { schema_version, header, integrity, signature, unknown } = root;
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
    (StoreReading { document, issues, signed, checksum, count }, SalvageReport { unreadable, broken })
}

/// Reads a store entry by entry; none if `keep_going` ends it.
pub(super) fn scan(
    text: &dyn TextSource,
    ScanOptions { salvage, keep_going }: ScanOptions<'_>,
    take: &mut dyn FnMut(usize, StoreEntry),
) -> io::Result<Option<StoreScan>> {
    let mut sink = Sink::default();
    let mut walk = RootWalk::new(text.reader()?, LISTS, salvage, &mut sink)?;
    let skipped = if walk.has_bom() { BYTE_ORDER_MARK.len() } else { 0 };
    let mut root = Root::default();
    let filled = root.fill(&mut walk, &mut sink, keep_going, take);
    if !keep_going() {
        return Ok(None);
    }
    root.broken = filled.err().map(|error| error.report(&mut sink)).transpose()?;
    if salvage {
        // Missing fields are among the issues, and memories are readable without them.
        root.owner.get_or_insert_default();
        root.has_memories = true;
    } else if root.broken.is_some() {
        let issues = sink.finish(Version::Current).0;
        return Ok(Some(StoreScan { issues, ..StoreScan::default() }));
    }
    root.finish(sink, walk.duplicate_keys, (text, skipped), keep_going)
}

impl Root {
    fn fill<R: Read>(
        &mut self,
        walk: &mut RootWalk<R>,
        sink: &mut Sink,
        keep_going: &dyn Fn() -> bool,
        take: &mut dyn FnMut(usize, StoreEntry),
    ) -> Result<(), StreamError> {
        while keep_going()
            && let Some(event) = walk.next(sink)?
        {
            match event {
                Event::List("memories") => self.has_memories = true,
                Event::List(_) => {}
                Event::Item(item) => take(item.index, self.item(item, sink)),
                Event::Broken(list, index, problem) => {
                    sink.push_json(&problem);
                    if list == "memories" {
                        self.memories.push_broken();
                    }
                    let reason = problem.to_string();
                    take(index, StoreEntry::Unreadable(UnreadableEntry { list, index, reason }));
                }
                Event::Field(key, node) => {
                    if !self.heading.take(&key, &node, sink) {
                        self.field(&key, &node, sink);
                    }
                }
            }
        }
        Ok(())
    }

    fn item(&mut self, item: Item<'_>, sink: &mut Sink) -> StoreEntry {
        let Item { list, index, node, offset, duplicate_key } = item;
        let root = Path::ROOT;
        let path = root.key(list);
        let path = path.index(index);
        let value = |rule| ValueRef { node: &node, path: &path, rule };
        let entry = match list {
            "memories" => {
                self.memories.push(&node, offset);
                if duplicate_key {
                    self.memories.refuse_duplicate_keys();
                }
                memory::read(value("R-4.1"), sink).map(|memory| StoreEntry::Memory(Box::new(memory)))
            }
            "relations" => relation(value("R-13.1"), sink).map(StoreEntry::Relation),
            _ => index_entry(value("R-14.3"), sink).map(StoreEntry::Conversation),
        };
        entry
            .filter(|_| !duplicate_key)
            .unwrap_or_else(|| StoreEntry::Unreadable(UnreadableEntry { list, index, reason: sink.reason() }))
    }

    fn field(&mut self, key: &str, node: &Node<'_>, sink: &mut Sink) {
        let root = Path::ROOT;
        let path = root.key(key);
        let value = |rule| ValueRef { node, path: &path, rule };
        let null = *node == Node::Null;
        let header = &mut self.header;
        match key {
            "spec_uri" if !null => header.spec_uri = values::text(value("R-3.4"), sink),
            "export_id" if !null => {
                header.export_id = values::text(value("R-3.5"), sink);
                self.signed.export_id.clone_from(&header.export_id);
            }
            "exported_by" if !null => header.exported_by = values::text(value("R-3.6"), sink),
            "base_export_id" if !null => header.base_export_id = values::text(value("R-16.1"), sink),
            "since" if !null => header.since = values::time(value("R-16.1"), sink),
            "type_registry" if !null => header.type_registry = values::text(value("R-19.1"), sink),
            "signature" if !null => {
                self.signed.signature = Some(signature_fields(node));
                self.signature = signature(value("R-18.2"), sink);
            }
            "spec_uri" | "export_id" | "exported_by" | "base_export_id" | "since" | "type_registry"
            | "signature" => {}
            "export_date" => {
                self.signed.export_date = node.as_str().map(str::to_owned);
                header.export_date = values::time(value("R-3.7"), sink);
            }
            "export_type" => header.export_type = values::name(value("R-3.8"), sink).unwrap_or_default(),
            "owner" => {
                self.signed.owner_id = node.member("id").map(str::to_owned);
                self.owner = owner(value("R-3.10"), sink);
            }
            "integrity" => {
                self.signed.checksum = node.member("checksum").map(str::to_owned);
                self.integrity = integrity(value("R-15.4"), sink);
            }
            "memories" | "relations" | "conversations_index" => {
                let rule = if key == "memories" { "R-3.3" } else { "R-3.9" };
                sink.error(rule, &path, format!("is {}, not a list", node.kind()));
            }
            _ => root::unknown_field(key, node, sink),
        }
    }

    fn finish(
        self,
        mut sink: Sink,
        duplicate_keys: bool,
        text: (&dyn TextSource, usize),
        keep_going: &dyn Fn() -> bool,
    ) -> io::Result<Option<StoreScan>> {
        let version = self.heading.check(SCHEMA, &mut sink);
        let path = Path::ROOT;
        if !self.has_memories {
            sink.error("R-3.3", &path.key("memories"), "is missing");
        }
        if self.owner.is_none() && self.signed.owner_id.is_none() {
            sink.error("R-3.3", &path.key("owner"), "is missing");
        }
        let count = self.memories.count();
        let Some(checksum) = self.memories.compare(self.signed.checksum.as_deref(), text, keep_going)? else {
            return Ok(None);
        };
        let (issues, unknown) = sink.finish(version);
        let readable = version != Version::Unsupported && !duplicate_keys && self.has_memories;
        let root = self.owner.filter(|_| readable).map(|owner| StoreRoot {
            schema_version: self.heading.schema_version.unwrap_or_default(),
            header: StoreHeader { owner, ..self.header },
            integrity: self.integrity,
            signature: self.signature,
            unknown,
        });
        Ok(Some(StoreScan { root, issues, signed: self.signed, checksum, count, broken: self.broken }))
    }
}

/// The strings of a signature block. A block that lacks one of them still counts: the document must not pass as unsigned.
fn signature_fields(node: &Node<'_>) -> SignatureFields {
    let field = |key| node.member(key).unwrap_or_default().to_owned();
    SignatureFields { algorithm: field("algorithm"), public_key: field("public_key"), value: field("value") }
}

fn owner(value: ValueRef<'_>, sink: &mut Sink) -> Option<Owner> {
    let mut fields = Fields::open(value, sink, &["id", "did", "created_at"])?;
    let id = fields.required("id", "R-3.10", values::text);
    let did = fields.nullable("did", "R-3.11", values::text);
    let created_at = fields.optional("created_at", "R-3.10", values::time);
    Some(Owner { id: id?, did, created_at })
}

fn integrity(value: ValueRef<'_>, sink: &mut Sink) -> Option<Integrity> {
    let mut fields = Fields::open(value, sink, &["canonicalization", "checksum", "total_memories"])?;
    let canonicalization = fields.optional("canonicalization", "R-15.1", values::text);
    let checksum = fields.required("checksum", "R-15.4", values::digest);
    let total_memories = fields.required("total_memories", "R-15.4", values::count);
    let mut integrity = Integrity::new(checksum?, total_memories?);
    if let Some(name) = canonicalization {
        integrity.canonicalization = name;
    }
    Some(integrity)
}

fn signature(value: ValueRef<'_>, sink: &mut Sink) -> Option<SignatureBlock> {
    const KEYS: &[&str] = &["algorithm", "public_key", "value", "signed_at", "key_id"];
    let mut fields = Fields::open(value, sink, KEYS)?;
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

fn relation(value: ValueRef<'_>, sink: &mut Sink) -> Option<Relation> {
    const KEYS: &[&str] = &["id", "from", "to", "type", "confidence", "created_at"];
    let mut fields = Fields::open(value, sink, KEYS)?;
    let id = fields.required("id", value.rule, values::text);
    let from = fields.required("from", value.rule, values::text);
    let to = fields.required("to", value.rule, values::text);
    let known_type = fields.required("type", value.rule, values::name);
    // A type of a later version still says that the two are related.
    let relation_type = known_type.or(fields.has("type").then_some(RelationType::RelatedTo));
    let confidence = fields.nullable("confidence", value.rule, values::number);
    let created_at = fields.required("created_at", value.rule, values::time);
    Some(Relation {
        id: id?,
        from: from?,
        to: to?,
        relation_type: relation_type?,
        confidence,
        created_at: created_at?,
    })
}

fn index_entry(value: ValueRef<'_>, sink: &mut Sink) -> Option<IndexEntry> {
    const KEYS: &[&str] =
        &["id", "platform", "title", "message_count", "temporal", "tags", "derived_memories", "storage"];
    let mut fields = Fields::open(value, sink, KEYS)?;
    let id = fields.required("id", value.rule, values::text);
    let platform = fields.required("platform", value.rule, values::text);
    let title = fields.nullable("title", value.rule, values::text);
    let message_count = fields.nullable("message_count", value.rule, values::count);
    let temporal = fields.required("temporal", value.rule, conversation::temporal);
    let tags = fields.list("tags", value.rule, values::text);
    let derived_memories = fields.list("derived_memories", value.rule, values::text);
    let storage = fields.optional("storage", value.rule, storage_reference);
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

fn storage_reference(value: ValueRef<'_>, sink: &mut Sink) -> Option<StorageReference> {
    let mut fields = Fields::open(value, sink, &["type", "ref", "format"])?;
    let kind = storage_kind(&mut fields, value.rule);
    let reference = fields.required("ref", value.rule, values::text);
    let format = fields.nullable("format", value.rule, values::text);
    Some(StorageReference { kind: kind?, reference: reference?, format })
}

/// Reads the kind of a storage; a kind of a later version is read as `uri`.
pub(super) fn storage_kind(fields: &mut Fields<'_>, rule: &'static str) -> Option<StorageKind> {
    let known = fields.required("type", rule, values::name);
    known.or(fields.has("type").then_some(StorageKind::Uri))
}
