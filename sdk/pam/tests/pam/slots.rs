//! Every field of the three schemas has a slot in the records that importers fill, or is derived by the host.

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{
    conversation::{AttachmentKind, ContentKind, PartKind, Role},
    embedding::{Storage, StorageKind},
    memory::{DecayModel, ExtractionMethod, MemoryType, Permission, Status, Visibility},
    raw::RawObject,
    record::{
        AttachmentRecord, Claim, ConfidenceRecord, ConversationRecord, EmbeddingRecord, Evidence, Item,
        MessageRecord, RelationRecord, Source,
    },
    relation::RelationType,
    store::ExportType,
};
use serde_json::{Value, json};

use crate::full;

/// Where a field of a schema comes from.
enum Slot {
    /// JSON pointer into the full record of that name.
    Record(&'static str, &'static str),
    /// Not an importer's business; why.
    Host(&'static str),
}
use Slot::{Host, Record};

/// Every field of the schemas, as `definition.field`.
#[rustfmt::skip]
const SLOTS: &[(&str, Slot)] = &[
    ("MemoryObject.id", Host("derived from hash, type and scope")),
    ("MemoryObject.type", Record("item", "/memory_type")),
    ("MemoryObject.custom_type", Record("item", "/custom_type")),
    ("MemoryObject.status", Record("item", "/status")),
    ("MemoryObject.content", Record("item", "/content")),
    ("MemoryObject.content_hash", Host("computed from the content")),
    ("MemoryObject.summary", Record("item", "/summary")),
    ("MemoryObject.tags", Record("item", "/tags")),
    ("MemoryObject.confidence", Record("item", "/confidence")),
    ("MemoryObject.temporal", Host("its fields have slots")),
    ("MemoryObject.provenance", Host("its fields have slots")),
    ("MemoryObject.access", Record("item", "/access")),
    ("MemoryObject.embedding_ref", Record("item", "/embedding_ref")),
    ("MemoryObject.metadata", Record("item", "/metadata")),
    ("ConfidenceBlock.initial", Record("item", "/confidence/initial")),
    ("ConfidenceBlock.current", Record("item", "/confidence/current")),
    ("ConfidenceBlock.decay_model", Record("item", "/confidence/decay_model")),
    ("ConfidenceBlock.last_reinforced", Record("item", "/confidence/last_reinforced")),
    ("TemporalBlock.created_at", Record("item", "/created_at")),
    ("TemporalBlock.updated_at", Record("item", "/updated_at")),
    ("TemporalBlock.valid_from", Record("item", "/valid_from")),
    ("TemporalBlock.valid_until", Record("item", "/valid_until")),
    ("TemporalBlock.superseded_by", Record("item", "/superseded_by")),
    ("ProvenanceBlock.platform", Host("the plugin's description")),
    ("ProvenanceBlock.platform_user_id", Record("evidence", "/account")),
    ("ProvenanceBlock.conversation_ref", Record("evidence", "/conversation")),
    ("ProvenanceBlock.message_ref", Record("evidence", "/message")),
    ("ProvenanceBlock.extraction_method", Record("evidence", "/extraction_method")),
    ("ProvenanceBlock.extracted_at", Record("evidence", "/at")),
    ("ProvenanceBlock.extractor", Host("the plugin's name and version")),
    ("AccessBlock.visibility", Record("item", "/access/visibility")),
    ("AccessBlock.exportable", Record("item", "/access/exportable")),
    ("AccessBlock.shared_with", Record("item", "/access/shared_with")),
    ("AccessGrant.entity", Record("item", "/access/shared_with/0/entity")),
    ("AccessGrant.permissions", Record("item", "/access/shared_with/0/permissions")),
    ("MetadataBlock.language", Record("item", "/metadata/language")),
    ("MetadataBlock.domain", Record("item", "/metadata/domain")),
    ("RelationObject.id", Host("derived from ends and type")),
    ("RelationObject.from", Record("relation", "/source")),
    ("RelationObject.to", Record("relation", "/target")),
    ("RelationObject.type", Record("relation", "/relation_type")),
    ("RelationObject.confidence", Record("relation", "/confidence")),
    ("RelationObject.created_at", Record("relation", "/created_at")),
    ("EmbeddingObject.id", Host("derived from memory and model")),
    ("EmbeddingObject.memory_id", Record("embedding", "/memory")),
    ("EmbeddingObject.model", Record("embedding", "/model")),
    ("EmbeddingObject.dimensions", Record("embedding", "/dimensions")),
    ("EmbeddingObject.created_at", Record("embedding", "/created_at")),
    ("EmbeddingObject.vector", Record("embedding", "/vector")),
    ("EmbeddingObject.storage", Record("embedding", "/storage")),
    ("EmbeddingObject.storage.type", Record("embedding", "/storage/type")),
    ("EmbeddingObject.storage.ref", Record("embedding", "/storage/ref")),
    ("conversation.schema", Host("a constant")),
    ("conversation.schema_version", Host("a constant")),
    ("conversation.id", Record("conversation", "/id")),
    ("conversation.provider", Host("its fields have slots")),
    ("conversation.title", Record("conversation", "/title")),
    ("conversation.temporal", Host("its fields have slots")),
    ("conversation.temporal.created_at", Record("conversation", "/created_at")),
    ("conversation.temporal.updated_at", Record("conversation", "/updated_at")),
    ("conversation.participants", Record("conversation", "/participants")),
    ("conversation.messages", Record("conversation", "/messages")),
    ("conversation.model", Record("conversation", "/model")),
    ("conversation.system_instruction", Record("conversation", "/system_instruction")),
    ("conversation.is_archived", Record("conversation", "/is_archived")),
    ("conversation.tags", Record("conversation", "/tags")),
    ("conversation.raw_metadata", Record("conversation", "/raw_metadata")),
    ("conversation.import_metadata", Host("the host reads the source and keeps the plugin's version")),
    ("ProviderInfo.name", Host("the plugin's description")),
    ("ProviderInfo.conversation_id", Record("conversation", "/provider_conversation_id")),
    ("ProviderInfo.account_id", Record("conversation", "/account")),
    ("ProviderInfo.export_format_version", Record("conversation", "/export_format_version")),
    ("Participant.role", Record("conversation", "/participants/0/role")),
    ("Participant.name", Record("conversation", "/participants/0/name")),
    ("Participant.provider_id", Record("conversation", "/participants/0/provider_id")),
    ("Message.id", Record("message", "/id")),
    ("Message.provider_message_id", Record("message", "/provider_message_id")),
    ("Message.role", Record("message", "/role")),
    ("Message.content", Record("message", "/content")),
    ("Message.created_at", Record("message", "/created_at")),
    ("Message.parent_id", Record("message", "/parent")),
    ("Message.children_ids", Host("rebuilt from the parents")),
    ("Message.model", Record("message", "/model")),
    ("Message.is_thought", Record("message", "/is_thought")),
    ("Message.token_count", Record("message", "/token_count")),
    ("Message.attachments", Record("message", "/attachments")),
    ("Message.citations", Record("message", "/citations")),
    ("Message.tool_calls", Record("message", "/tool_calls")),
    ("Message.raw_metadata", Record("message", "/raw_metadata")),
    ("MessageContent.type", Record("message", "/content/type")),
    ("MessageContent.text", Record("message", "/content/text")),
    ("MessageContent.parts", Record("message", "/content/parts")),
    ("ContentPart.type", Record("message", "/content/parts/0/type")),
    ("ContentPart.text", Record("message", "/content/parts/0/text")),
    ("ContentPart.language", Record("message", "/content/parts/0/language")),
    ("ContentPart.mime_type", Record("message", "/content/parts/0/mime_type")),
    ("ContentPart.ref", Record("message", "/content/parts/0/ref")),
    ("Attachment.type", Record("message", "/attachments/0/type")),
    ("Attachment.name", Record("message", "/attachments/0/name")),
    ("Attachment.mime_type", Record("message", "/attachments/0/mime_type")),
    ("Attachment.size_bytes", Record("message", "/attachments/0/size_bytes")),
    ("Attachment.ref", Record("message", "/attachments/0/ref")),
    ("Attachment.provider_id", Record("message", "/attachments/0/provider_id")),
    ("Citation.title", Record("message", "/citations/0/title")),
    ("Citation.url", Record("message", "/citations/0/url")),
    ("Citation.snippet", Record("message", "/citations/0/snippet")),
    ("ToolCall.id", Record("message", "/tool_calls/0/id")),
    ("ToolCall.name", Record("message", "/tool_calls/0/name")),
    ("ToolCall.input", Record("message", "/tool_calls/0/input")),
    ("ToolCall.output", Record("message", "/tool_calls/0/output")),
    ("ImportMetadata.importer", Host("the plugin's name and version")),
    ("ImportMetadata.importer_version", Host("the plugin's description")),
    ("ImportMetadata.imported_at", Host("the host's clock")),
    ("ImportMetadata.source_file", Host("the host opened it")),
    ("ImportMetadata.source_checksum", Host("the host hashed it")),
    ("embeddings.schema", Host("a constant")),
    ("embeddings.schema_version", Host("a constant")),
    ("embeddings.embeddings", Host("one record each")),
    ("store.schema", Host("a constant")),
    ("store.schema_version", Host("a constant")),
    ("store.spec_uri", Host("the export's")),
    ("store.export_id", Host("the export's")),
    ("store.exported_by", Host("the export's")),
    ("store.export_date", Host("the export's")),
    ("store.owner", Host("the store's")),
    ("store.memories", Host("one item each")),
    ("store.relations", Host("one record each")),
    ("store.conversations_index", Host("built from the conversations")),
    ("store.integrity", Host("computed")),
    ("store.export_type", Host("the export's")),
    ("store.base_export_id", Host("the export's")),
    ("store.since", Host("the export's")),
    ("store.type_registry", Host("the export's")),
    ("store.signature", Host("computed")),
    ("Owner.id", Host("the store's")),
    ("Owner.did", Host("the signing key's")),
    ("Owner.created_at", Host("the store's")),
    ("ConversationIndexEntry.id", Host("the conversation's")),
    ("ConversationIndexEntry.platform", Host("the conversation's")),
    ("ConversationIndexEntry.title", Host("the conversation's")),
    ("ConversationIndexEntry.message_count", Host("counted")),
    ("ConversationIndexEntry.temporal", Host("the conversation's")),
    ("ConversationIndexEntry.temporal.created_at", Host("the conversation's")),
    ("ConversationIndexEntry.temporal.updated_at", Host("the conversation's")),
    ("ConversationIndexEntry.tags", Host("the conversation's")),
    ("ConversationIndexEntry.derived_memories", Host("from the memories' provenance")),
    ("ConversationIndexEntry.storage", Host("the export's")),
    ("StorageReference.type", Host("the export's")),
    ("StorageReference.ref", Host("the export's")),
    ("StorageReference.format", Host("the export's")),
    ("SignatureBlock.algorithm", Host("computed")),
    ("SignatureBlock.public_key", Host("computed")),
    ("SignatureBlock.value", Host("computed")),
    ("SignatureBlock.signed_at", Host("computed")),
    ("SignatureBlock.key_id", Host("computed")),
    ("IntegrityBlock.canonicalization", Host("a constant")),
    ("IntegrityBlock.checksum", Host("computed")),
    ("IntegrityBlock.total_memories", Host("computed")),
];

fn schemas() -> [(&'static str, Value); 3] {
    let parse = |text| serde_json::from_str(text).unwrap();
    [
        ("store", parse(include_str!("../../schemas/portable-ai-memory.schema.json"))),
        ("conversation", parse(include_str!("../../schemas/portable-ai-memory-conversation.schema.json"))),
        ("embeddings", parse(include_str!("../../schemas/portable-ai-memory-embeddings.schema.json"))),
    ]
}

/// Collects `definition.field` for each property below a definition, and the names that each field allows.
fn walk(
    name: &str,
    schema: &Value,
    fields: &mut BTreeSet<String>,
    names: &mut BTreeMap<String, BTreeSet<String>>,
) {
    for list in [schema.get("enum"), schema.pointer("/items/enum")].into_iter().flatten() {
        let texts = list.as_array().unwrap().iter().filter_map(Value::as_str).map(str::to_owned);
        names.insert(name.to_owned(), texts.collect());
    }
    for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let field = format!("{name}.{key}");
        walk(&field, property, fields, names);
        fields.insert(field);
    }
}

fn collect() -> (BTreeSet<String>, BTreeMap<String, BTreeSet<String>>) {
    let (mut fields, mut names) = (BTreeSet::new(), BTreeMap::new());
    for (root, schema) in schemas() {
        walk(root, &schema, &mut fields, &mut names);
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            walk(name, definition, &mut fields, &mut names);
        }
    }
    (fields, names)
}

/// Records with every field set; a field added to a record fails to compile here.
fn records() -> BTreeMap<&'static str, Value> {
    let mut memory = full::full_memory();
    let raw = |value: Value| RawObject::parse(value.to_string()).ok();
    let item = Item {
        key: Some("k".into()),
        content: memory.content.clone(),
        memory_type: memory.memory_type,
        custom_type: memory.custom_type.take(),
        status: Some(memory.status),
        scope: Some("project:1".into()),
        summary: memory.summary.take(),
        tags: memory.tags,
        confidence: Some(ConfidenceRecord {
            initial: Some(1.0),
            current: Some(0.5),
            decay_model: Some(DecayModel::None),
            last_reinforced: Some(1),
        }),
        created_at: Some(1),
        updated_at: Some(1),
        valid_from: Some(1),
        valid_until: Some(1),
        superseded_by: Some("l".into()),
        access: memory.access.take(),
        embedding_ref: Some("e".into()),
        metadata: raw(json!({"language": "en", "domain": "personal"})),
    };
    let evidence = Evidence {
        id: "e".into(),
        claim: Claim::Statement(item.clone()),
        at: Some(1),
        account: Some("a".into()),
        conversation: Some("c".into()),
        message: Some("m".into()),
        extraction_method: ExtractionMethod::Manual,
        locator: "memories.json[0]".into(),
    };
    let storage = Some(Storage { kind: StorageKind::Uri, reference: "x".into() });
    let relation = RelationRecord {
        source: "k".into(),
        target: "l".into(),
        relation_type: RelationType::Extends,
        confidence: Some(1.0),
        created_at: Some(1),
    };
    let embedding = EmbeddingRecord {
        memory: "k".into(),
        model: "m".into(),
        dimensions: 1,
        created_at: Some(1),
        vector: Some(vec![1.0]),
        storage,
    };
    let conversation = conversation_record();
    let message = serde_json::to_value(&conversation.messages[0]).unwrap();
    let value = |value: Result<Value, serde_json::Error>| value.unwrap();
    [
        ("item", value(serde_json::to_value(item))),
        ("evidence", value(serde_json::to_value(evidence))),
        ("relation", value(serde_json::to_value(relation))),
        ("embedding", value(serde_json::to_value(embedding))),
        ("conversation", value(serde_json::to_value(conversation))),
        ("message", message),
    ]
    .into()
}

fn conversation_record() -> ConversationRecord {
    let header = full::conversation_header();
    let full = full::messages().remove(1);
    let mut content = full.content.unwrap();
    content.text = Some("also".into());
    let message = MessageRecord {
        id: full.id,
        provider_message_id: full.provider_message_id,
        role: full.role,
        content: Some(content),
        created_at: Some(1),
        parent: full.parent_id,
        model: full.model,
        is_thought: full.is_thought,
        token_count: full.token_count,
        attachments: full
            .attachments
            .into_iter()
            .map(|attachment| AttachmentRecord { attachment, source: Some(Source::Path("bees.pdf".into())) })
            .collect(),
        citations: full.citations,
        tool_calls: full.tool_calls,
        raw_metadata: full.raw_metadata,
    };
    ConversationRecord {
        id: header.id,
        provider_conversation_id: header.provider.conversation_id,
        account: header.provider.account_id,
        export_format_version: header.provider.export_format_version,
        title: header.title,
        created_at: Some(1),
        updated_at: Some(1),
        participants: header.participants,
        model: header.model,
        system_instruction: header.system_instruction,
        is_archived: true,
        tags: header.tags,
        current: Some("m2".into()),
        raw_metadata: header.raw_metadata,
        locator: "conversations.json[0]".into(),
        messages: vec![message],
    }
}

#[test]
fn every_field_of_the_schemas_has_a_slot() {
    let (fields, _) = collect();
    let listed: BTreeSet<String> = SLOTS.iter().map(|(field, _)| (*field).to_owned()).collect();
    assert_eq!(listed.len(), SLOTS.len(), "a field stands twice");
    let missing: Vec<_> = fields.difference(&listed).collect();
    let unknown: Vec<_> = listed.difference(&fields).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "without a slot: {missing:?}; in no schema: {unknown:?}"
    );
}

#[test]
fn every_slot_is_in_its_record() {
    let records = records();
    for (field, slot) in SLOTS {
        match slot {
            Record(record, pointer) => {
                let found = records[record].pointer(pointer).is_some_and(|value| !value.is_null());
                assert!(found, "{field}: {record} has no {pointer}");
            }
            Host(reason) => assert!(!reason.is_empty(), "{field}"),
        }
    }
}

#[test]
fn records_come_back_as_they_were() {
    let record = conversation_record();
    let line = satchel_pam::record::Line::Conversation(Box::new(record));
    let text = serde_json::to_string(&line).unwrap();
    assert_eq!(serde_json::from_str::<satchel_pam::record::Line>(&text).unwrap(), line);
}

#[test]
fn every_name_of_the_schemas_is_ours() {
    let texts = |all: Vec<&str>| -> BTreeSet<String> { all.into_iter().map(str::to_owned).collect() };
    macro_rules! ours {
        ($($kind:ty),+) => {
            [$(texts(<$kind>::ALL.iter().map(|one| one.as_str()).collect())),+]
        };
    }
    let mut ours: Vec<BTreeSet<String>> = ours!(
        MemoryType,
        Status,
        DecayModel,
        ExtractionMethod,
        Visibility,
        Permission,
        RelationType,
        StorageKind,
        ExportType,
        Role,
        ContentKind,
        PartKind,
        AttachmentKind
    )
    .into();
    ours.push(texts(vec!["Ed25519", "ES256", "ES384", "RS256", "RS384", "RS512"]));
    ours.push(texts(vec!["RFC8785"]));
    let (_, names) = collect();
    for (field, texts) in &names {
        assert!(ours.contains(texts), "{field}: {texts:?}");
    }
    for texts in &ours {
        assert!(names.values().any(|theirs| theirs == texts), "{texts:?} is in no schema");
    }
}
