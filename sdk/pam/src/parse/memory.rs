//! Reads memories.

use serde_json::Value;

use super::{
    MAX_DEPTH,
    fields::Fields,
    path::Path,
    root,
    sink::{Sink, UNKNOWN_KEY, Version, json_issue},
    values::{self, ValueRef},
};
use crate::{
    hash::ContentHash,
    issue::Issue,
    json::tree::{self, Notes},
    memory::{Access, AccessGrant, Confidence, Memory, MemoryType, Provenance, Status, Temporal, Visibility},
};

const KEYS: &[&str] = &[
    "id",
    "type",
    "custom_type",
    "status",
    "content",
    "content_hash",
    "summary",
    "tags",
    "confidence",
    "temporal",
    "provenance",
    "access",
    "embedding_ref",
    "metadata",
];

pub(super) fn read_alone(bytes: &[u8]) -> (Option<Memory>, Vec<Issue>) {
    let mut sink = Sink::default();
    let text = match root::text(bytes, &mut sink) {
        Ok(text) => text,
        Err(issue) => return (None, vec![issue]),
    };
    let mut notes = Notes::default();
    let node = match tree::parse(text, MAX_DEPTH, &mut notes) {
        Ok(node) => node,
        Err(problem) => return (None, vec![json_issue(&problem)]),
    };
    let duplicate_keys = root::report(&notes, 0, &Path::ROOT, &mut sink);
    let value = ValueRef { node: &node, path: &Path::ROOT, rule: "R-4.1" };
    let memory = read(value, &mut sink).filter(|_| !duplicate_keys);
    (memory, sink.finish(Version::Current).0)
}

pub(super) fn read(value: ValueRef<'_>, sink: &mut Sink) -> Option<Memory> {
    let start = sink.unknown_count();
    let memory = read_fields(value, sink);
    let unknown = sink.take_unknown_since(start, value.path);
    let mut memory = memory?;
    if !unknown.is_empty() {
        let kept =
            memory.metadata.entry(UNKNOWN_KEY).or_insert_with(|| Value::Object(serde_json::Map::new()));
        if let Value::Object(kept) = kept {
            kept.extend(unknown);
        }
    }
    Some(memory)
}

fn read_fields(value: ValueRef<'_>, sink: &mut Sink) -> Option<Memory> {
    let mut fields = Fields::open(value, sink, KEYS)?;
    let id = fields.required("id", "R-4.1", values::text);
    let content = fields.required("content", "R-4.1", values::text);
    let temporal = fields.required("temporal", "R-4.1", temporal);
    let provenance = fields.required("provenance", "R-4.1", provenance);
    let known_type = fields.required("type", "R-5.1", values::name::<MemoryType>);
    let named_type = fields.has("type");
    let custom_type = fields.nullable("custom_type", "R-5.3", values::text);
    let content_hash = fields.required("content_hash", "R-6.3", values::digest);
    let (memory_type, custom_type) = match known_type {
        Some(known) => (known, custom_type),
        // A type of a later version becomes a custom type of that name.
        None if named_type => {
            (MemoryType::Custom, custom_type.or_else(|| fields.text("type").map(str::to_owned)))
        }
        None => return None,
    };
    // A memory with a status of a later version is archived: neither in use nor lost.
    let fallback = if fields.has("status") { Status::Archived } else { Status::Active };
    let status = fields.optional("status", "R-7.1", values::name).unwrap_or(fallback);
    let summary = fields.nullable("summary", "R-4.1", values::text);
    let tags = fields.list("tags", "R-4.4", values::text);
    let confidence = fields.optional("confidence", "R-8.1", confidence);
    let access = fields.optional("access", "R-9.1", access);
    let embedding_ref = fields.nullable("embedding_ref", "R-12.2", values::text);
    let metadata = fields.optional("metadata", "R-10.1", values::map).unwrap_or_default();
    let content = content?;
    Some(Memory {
        id: id?,
        memory_type,
        custom_type,
        status,
        // Without a readable hash there is an issue, and the hash is computed from the content.
        content_hash: content_hash
            .map_or_else(|| ContentHash::of(&content), |digest| ContentHash::from_bytes(*digest.as_bytes())),
        content,
        summary,
        tags,
        confidence,
        temporal: temporal?,
        provenance: provenance?,
        access,
        embedding_ref,
        metadata,
    })
}

fn temporal(value: ValueRef<'_>, sink: &mut Sink) -> Option<Temporal> {
    const KEYS: &[&str] = &["created_at", "updated_at", "valid_from", "valid_until", "superseded_by"];
    let mut fields = Fields::open(value, sink, KEYS)?;
    let created_at = fields.required("created_at", "R-4.1", values::time);
    let updated_at = fields.nullable("updated_at", "A-28", values::time);
    let valid_from = fields.nullable("valid_from", "A-28", values::time);
    let valid_until = fields.nullable("valid_until", "A-28", values::time);
    let superseded_by = fields.nullable("superseded_by", "R-7.2", values::text);
    Some(Temporal { created_at: created_at?, updated_at, valid_from, valid_until, superseded_by })
}

fn provenance(value: ValueRef<'_>, sink: &mut Sink) -> Option<Provenance> {
    const KEYS: &[&str] = &[
        "platform",
        "platform_user_id",
        "conversation_ref",
        "message_ref",
        "extraction_method",
        "extracted_at",
        "extractor",
    ];
    let mut fields = Fields::open(value, sink, KEYS)?;
    let platform = fields.required("platform", "R-11.1", values::text);
    let platform_user_id = fields.nullable("platform_user_id", "R-11.5", values::text);
    let conversation_ref = fields.nullable("conversation_ref", "R-14.4", values::text);
    let message_ref = fields.nullable("message_ref", "R-14.4", values::text);
    let extraction_method = fields.nullable("extraction_method", "R-11.4", values::name);
    let extracted_at = fields.nullable("extracted_at", "A-28", values::time);
    let extractor = fields.nullable("extractor", "R-11.4", values::text);
    Some(Provenance {
        platform: platform?,
        platform_user_id,
        conversation_ref,
        message_ref,
        extraction_method,
        extracted_at,
        extractor,
    })
}

fn confidence(value: ValueRef<'_>, sink: &mut Sink) -> Option<Confidence> {
    const KEYS: &[&str] = &["initial", "current", "decay_model", "last_reinforced"];
    let mut fields = Fields::open(value, sink, KEYS)?;
    Some(Confidence {
        initial: fields.optional("initial", "R-8.1", values::number),
        current: fields.optional("current", "R-8.1", values::number),
        decay_model: fields.nullable("decay_model", "R-8.2", values::name),
        last_reinforced: fields.nullable("last_reinforced", "A-28", values::time),
    })
}

fn access(value: ValueRef<'_>, sink: &mut Sink) -> Option<Access> {
    const KEYS: &[&str] = &["visibility", "exportable", "shared_with"];
    let mut fields = Fields::open(value, sink, KEYS)?;
    let stated = fields.has("exportable");
    Some(Access {
        visibility: fields.optional("visibility", "R-9.1", values::name).unwrap_or(Visibility::Private),
        // An unreadable value is no consent.
        exportable: fields.optional("exportable", "R-9.1", values::boolean).unwrap_or(!stated),
        shared_with: fields.list("shared_with", "R-9.1", grant),
    })
}

fn grant(value: ValueRef<'_>, sink: &mut Sink) -> Option<AccessGrant> {
    let mut fields = Fields::open(value, sink, &["entity", "permissions"])?;
    let entity = fields.required("entity", "R-9.1", values::text);
    let permissions =
        fields.required("permissions", "R-9.1", |value, sink| values::list(value, sink, values::name));
    Some(AccessGrant { entity: entity?, permissions: permissions? })
}
