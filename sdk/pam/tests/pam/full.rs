//! One bundle with every field of the three schemas, and small ones.

use std::collections::BTreeMap;

use satchel_pam::{
    conversation::{
        self, Attachment, AttachmentKind, Citation, Content, Conversation, ConversationHeader,
        ConversationTemporal, ImportMetadata, Message, Part, PartKind, Participant, Provider, Role, ToolCall,
        ToolInput,
    },
    embedding::{Embedding, EmbeddingsDocument, Storage, StorageKind},
    hash::{ContentHash, Sha256Digest},
    memory::{
        Access, AccessGrant, Confidence, DecayModel, ExtractionMethod, Memory, MemoryType, Permission,
        Provenance, Status, Temporal, Visibility,
    },
    raw::RawObject,
    relation::{Relation, RelationType},
    sign::{PublicKey, SigningKey},
    store::{self, IndexEntry, Owner, Signer, StorageReference, StoreHeader},
    time::Timestamp,
};
use serde_json::{Map, Value, json};

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

pub(crate) fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other}"),
    }
}

pub(crate) fn small_memory(id: &str, content: &str) -> Memory {
    Memory {
        id: id.to_owned(),
        memory_type: MemoryType::Fact,
        custom_type: None,
        status: Status::Active,
        content: content.to_owned(),
        content_hash: ContentHash::of(content),
        summary: None,
        tags: Vec::new(),
        confidence: None,
        temporal: Temporal {
            created_at: at("2026-01-01T00:00:00Z"),
            updated_at: None,
            valid_from: None,
            valid_until: None,
            superseded_by: None,
        },
        provenance: Provenance { platform: "claude".to_owned(), ..Provenance::default() },
        access: None,
        embedding_ref: None,
        metadata: Map::new(),
    }
}

pub(crate) fn full_memory() -> Memory {
    let content = "Mira keeps bees on the roof.";
    Memory {
        id: "a-full".to_owned(),
        memory_type: MemoryType::Custom,
        custom_type: Some("hobby".to_owned()),
        status: Status::Superseded,
        content: content.to_owned(),
        content_hash: ContentHash::of(content),
        summary: Some("bees".to_owned()),
        tags: vec!["bees".to_owned(), "roof-top".to_owned()],
        confidence: Some(Confidence {
            initial: Some(1.0),
            current: Some(0.88),
            decay_model: Some(DecayModel::TimeLinear),
            last_reinforced: Some(at("2026-01-03T00:00:00Z")),
        }),
        temporal: Temporal {
            created_at: at("2026-01-01T00:00:00Z"),
            updated_at: Some(at("2026-01-02T00:00:00.5Z")),
            valid_from: Some(at("2026-01-01T00:00:00+02:00")),
            valid_until: Some(at("2027-01-01T00:00:00Z")),
            superseded_by: Some("b-small".to_owned()),
        },
        provenance: Provenance {
            platform: "chatgpt".to_owned(),
            platform_user_id: Some("account-1".to_owned()),
            conversation_ref: Some("conv-1".to_owned()),
            message_ref: Some("m2".to_owned()),
            extraction_method: Some(ExtractionMethod::ApiExport),
            extracted_at: Some(at("2026-01-01T00:00:00Z")),
            extractor: Some("satchel/0.1.0".to_owned()),
        },
        access: Some(Access {
            visibility: Visibility::Shared,
            exportable: true,
            shared_with: vec![AccessGrant {
                entity: "agent".to_owned(),
                permissions: vec![Permission::Read, Permission::Write],
            }],
        }),
        embedding_ref: Some("vector-1".to_owned()),
        metadata: map(json!({
            "language": "en", "domain": "personal", "😀": 1, "\u{fb33}": 2,
            "deep": {"b": [1.5, 1e21, null], "a": {"Z": true}},
        })),
    }
}

pub(crate) fn header() -> StoreHeader {
    StoreHeader {
        spec_uri: Some("https://example.org/spec".to_owned()),
        export_id: Some("e47ac10b-58cc-4372-a567-0e02b2c3d479".to_owned()),
        exported_by: Some("satchel/0.1.0".to_owned()),
        export_date: Some(at("2026-02-15T22:00:00Z")),
        base_export_id: Some("f47ac10b-58cc-4372-a567-0e02b2c3d479".to_owned()),
        since: Some(at("2026-01-15T22:00:00Z")),
        type_registry: Some("https://example.org/types".to_owned()),
        ..StoreHeader::new(Owner {
            id: "550e8400-e29b-41d4-a716-446655440000".to_owned(),
            did: Some(PublicKey::of(&key()).did_key()),
            created_at: Some(at("2025-01-01T00:00:00Z")),
        })
    }
}

pub(crate) fn relation() -> Relation {
    Relation {
        id: "r-1".to_owned(),
        from: "b-small".to_owned(),
        to: "a-full".to_owned(),
        relation_type: RelationType::Supersedes,
        confidence: Some(0.5),
        created_at: at("2026-01-02T00:00:00Z"),
    }
}

pub(crate) fn index_entry() -> IndexEntry {
    IndexEntry {
        id: "conv-1".to_owned(),
        platform: "chatgpt".to_owned(),
        title: Some("Bees".to_owned()),
        message_count: Some(3),
        temporal: conversation_header().temporal,
        tags: vec!["bees".to_owned()],
        derived_memories: vec!["a-full".to_owned()],
        storage: Some(StorageReference::file("conversations/conv-1.json")),
    }
}

/// `SignedFields`, with every field.
pub(crate) fn store() -> Vec<u8> {
    let key = key();
    let mut writer = store::Writer::new(Vec::new(), header()).unwrap();
    writer.memory(&full_memory()).unwrap();
    writer.memory(&small_memory("b-small", "Mira sold the bees.")).unwrap();
    writer.relation(&relation()).unwrap();
    writer.index_entry(&index_entry()).unwrap();
    writer.finish(Some(Signer { key: &key, signed_at: at("2026-02-15T22:00:01Z") })).unwrap().out
}

fn raw(value: &Value) -> RawObject {
    RawObject::parse(value.to_string()).unwrap()
}

pub(crate) fn conversation_header() -> ConversationHeader {
    ConversationHeader {
        id: "conv-1".to_owned(),
        provider: Provider {
            name: "chatgpt".to_owned(),
            conversation_id: Some("c-9".to_owned()),
            account_id: Some("account-1".to_owned()),
            export_format_version: Some("2026-01".to_owned()),
        },
        title: Some("Bees".to_owned()),
        temporal: ConversationTemporal {
            created_at: at("2026-01-01T00:00:00Z"),
            updated_at: Some(at("2026-01-02T00:00:00Z")),
        },
        participants: vec![Participant {
            role: Role::User,
            name: Some("Mira".to_owned()),
            provider_id: Some("u-1".to_owned()),
        }],
        model: Some("gpt-x".to_owned()),
        system_instruction: Some("Be brief.".to_owned()),
        is_archived: true,
        tags: vec!["bees".to_owned()],
        raw_metadata: Some(raw(&json!({"empty": [], "starred": [true, {"a": {}}], "text": "a{[,:\"]}"}))),
        import_metadata: Some(ImportMetadata {
            importer: Some("satchel/0.1.0".to_owned()),
            importer_version: Some("chatgpt-importer/2026.07".to_owned()),
            imported_at: Some(at("2026-02-01T00:00:00Z")),
            source_file: Some("conversations.json".to_owned()),
            source_checksum: Some(Sha256Digest::of(b"")),
        }),
    }
}

fn message(id: &str, role: Role, parent: Option<&str>, children: &[&str]) -> Message {
    Message {
        id: id.to_owned(),
        provider_message_id: None,
        role,
        content: None,
        created_at: at("2026-01-01T00:00:00Z"),
        parent_id: parent.map(str::to_owned),
        children_ids: children.iter().map(|child| (*child).to_owned()).collect(),
        model: None,
        is_thought: false,
        token_count: None,
        attachments: Vec::new(),
        citations: Vec::new(),
        tool_calls: Vec::new(),
        raw_metadata: None,
    }
}

pub(crate) fn messages() -> Vec<Message> {
    let code = Part {
        kind: PartKind::Code,
        text: Some("print()".to_owned()),
        language: Some("python".to_owned()),
        mime_type: Some("text/x-python".to_owned()),
        reference: Some("a.py".to_owned()),
    };
    let call = |input| ToolCall {
        id: Some("t-1".to_owned()),
        name: "search".to_owned(),
        input: Some(input),
        output: Some("nothing".to_owned()),
    };
    vec![
        Message {
            content: Some(Content::text("How are the bees?")),
            ..message("m1", Role::User, None, &["m2", "m3"])
        },
        Message {
            provider_message_id: Some("p2".to_owned()),
            content: Some(Content::multipart(vec![code])),
            model: Some("gpt-x".to_owned()),
            is_thought: true,
            token_count: Some(12),
            attachments: vec![Attachment {
                kind: AttachmentKind::Document,
                name: Some("bees.pdf".to_owned()),
                mime_type: Some("application/pdf".to_owned()),
                size_bytes: Some(1000),
                reference: Some("attachments/x".to_owned()),
                provider_id: Some("file-1".to_owned()),
            }],
            citations: vec![Citation {
                title: Some("Bees".to_owned()),
                url: Some("https://example.org/bees".to_owned()),
                snippet: Some("buzz".to_owned()),
            }],
            tool_calls: vec![
                call(ToolInput::Object(raw(&json!({"q": "bees"})))),
                call(ToolInput::Text("[1]".to_owned())),
            ],
            raw_metadata: Some(raw(&json!({"finish": {"reason": "stop"}}))),
            ..message("m2", Role::Assistant, Some("m1"), &[])
        },
        message("m3", Role::Tool, Some("m1"), &[]),
    ]
}

pub(crate) fn conversation() -> Conversation {
    conversation_header().into_document(messages())
}

pub(crate) fn conversation_file() -> Vec<u8> {
    let header = conversation_header();
    let mut writer = conversation::Writer::new(Vec::new(), &header).unwrap();
    for message in messages() {
        writer.message(&message).unwrap();
    }
    writer.finish().unwrap()
}

pub(crate) fn embeddings() -> EmbeddingsDocument {
    let embedding = |id: &str, memory: &str, vector, storage| Embedding {
        id: id.to_owned(),
        memory_id: memory.to_owned(),
        model: "nomic".to_owned(),
        dimensions: 2,
        created_at: at("2026-01-01T00:00:00Z"),
        vector,
        storage,
    };
    let storage = Storage { kind: StorageKind::VectorDb, reference: "row 1".to_owned() };
    EmbeddingsDocument {
        unknown: BTreeMap::new(),
        ..EmbeddingsDocument::new(vec![
            embedding("vector-1", "a-full", Some(vec![0.5, -1e-7]), None),
            embedding("vector-2", "b-small", None, Some(storage)),
        ])
    }
}
