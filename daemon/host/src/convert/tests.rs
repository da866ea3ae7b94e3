//! Tests that every field of a WIT record is converted to the right place.

use serde_json::{Value, json};

use super::*;
use crate::bindings::satchel::importer::types as wit;

#[expect(clippy::unnecessary_wraps, reason = "optional fields want it")]
fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn message_of_everything() -> wit::Message {
    wit::Message {
        id: "m2".to_owned(),
        provider_message_id: text("pm2"),
        role: wit::Role::Assistant,
        content: Some(wit::Content {
            kind: wit::ContentKind::Multipart,
            text: text("whole"),
            parts: vec![wit::ContentPart {
                kind: wit::PartKind::Code,
                text: text("fn"),
                language: text("rust"),
                mime_type: text("text/x-rust"),
                ref_: text("part"),
            }],
        }),
        created_at: Some(7),
        parent: text("m1"),
        model: text("big"),
        is_thought: true,
        token_count: Some(9),
        attachments: vec![wit::Attachment {
            kind: wit::AttachmentKind::Document,
            name: text("a.pdf"),
            mime_type: text("application/pdf"),
            size_bytes: Some(3),
            ref_: text("blob"),
            provider_id: text("file-1"),
            source: Some(wit::Source::Bytes(vec![1, 2, 3])),
        }],
        citations: vec![wit::Citation { title: text("t"), url: text("u"), snippet: text("s") }],
        tool_calls: vec![wit::ToolCall {
            id: text("call"),
            name: "search".to_owned(),
            input: Some(wit::ToolInput::Object("{\"q\":1}".to_owned())),
            output: text("found"),
        }],
        raw_metadata: text("{\"x\":1.0}"),
    }
}

fn as_json(record: &impl serde::Serialize) -> Value {
    serde_json::to_value(record).unwrap_or_default()
}

#[test]
fn a_message_keeps_every_field() {
    let mut notes = RecordNotes::default();
    let record = message(message_of_everything(), &mut notes);
    let wanted = json!({
        "id": "m2", "provider_message_id": "pm2", "role": "assistant",
        "content": {"type": "multipart", "text": "whole", "parts": [
            {"type": "code", "text": "fn", "language": "rust", "mime_type": "text/x-rust", "ref": "part"}]},
        "created_at": 7, "parent": "m1", "model": "big", "is_thought": true, "token_count": 9,
        "attachments": [{"type": "document", "name": "a.pdf", "mime_type": "application/pdf", "size_bytes": 3,
            "ref": "blob", "provider_id": "file-1", "source": {"bytes": [1, 2, 3]}}],
        "citations": [{"title": "t", "url": "u", "snippet": "s"}],
        "tool_calls": [{"id": "call", "name": "search", "input": {"q": 1}, "output": "found"}],
        "raw_metadata": {"x": 1.0},
    });
    assert_eq!(as_json(&record), wanted);
    assert!(notes.is_empty());
}

#[test]
fn text_that_is_not_a_json_object_is_left_out_with_a_note() {
    let mut wit = message_of_everything();
    wit.raw_metadata = text("[1]");
    wit.tool_calls[0].input =
        Some(wit::ToolInput::Object(format!("{}{}", "{\"a\":".repeat(200), "}".repeat(200))));
    let mut notes = RecordNotes::default();
    let record = message(wit, &mut notes);
    assert_eq!(record.raw_metadata, None);
    assert_eq!(record.tool_calls[0].input, None);
    assert!(!notes.is_empty());
}

#[test]
fn duplicate_keys_in_raw_metadata_are_noted() {
    let mut wit = message_of_everything();
    wit.raw_metadata = text("{\"x\":1,\"y\":{\"z\":1,\"z\":2}}");
    let mut notes = RecordNotes::default();
    let record = message(wit, &mut notes);
    assert_eq!(as_json(&record)["raw_metadata"], json!({"x": 1, "y": {"z": 2}}));
    let messages = notes.into_messages();
    assert_eq!(messages, ["an object in raw_metadata gives a key twice; the last value is read"]);
}

#[test]
fn a_conversation_keeps_every_field() {
    let wit = wit::Conversation {
        id: "c".to_owned(),
        provider_conversation_id: text("pc"),
        account: text("acc"),
        export_format_version: text("v"),
        title: text("Bread"),
        created_at: Some(1),
        updated_at: Some(2),
        participants: vec![wit::Participant {
            role: wit::Role::User,
            name: text("Ada"),
            provider_id: text("p"),
        }],
        model: text("big"),
        system_instruction: text("be kind"),
        is_archived: true,
        tags: vec!["work".to_owned()],
        current: text("m2"),
        raw_metadata: text("{}"),
        locator: "a.json[0]".to_owned(),
    };
    let wanted = json!({
        "id": "c", "provider_conversation_id": "pc", "account": "acc", "export_format_version": "v",
        "title": "Bread", "created_at": 1, "updated_at": 2,
        "participants": [{"role": "user", "name": "Ada", "provider_id": "p"}],
        "model": "big", "system_instruction": "be kind", "is_archived": true, "tags": ["work"], "current": "m2",
        "raw_metadata": {}, "locator": "a.json[0]", "messages": [],
    });
    assert_eq!(as_json(&conversation(wit, &mut RecordNotes::default())), wanted);
}

fn item_of_everything() -> wit::Item {
    wit::Item {
        key: text("k"),
        content: "likes tea".to_owned(),
        memory_type: wit::MemoryType::Custom,
        custom_type: text("taste"),
        status: Some(wit::MemoryStatus::Archived),
        scope: text("project:1"),
        summary: text("tea"),
        tags: vec!["t".to_owned()],
        confidence: Some(wit::Confidence {
            initial: Some(0.25),
            current: Some(0.5),
            decay_model: Some(wit::DecayModel::TimeLinear),
            last_reinforced: Some(3),
        }),
        created_at: Some(7),
        updated_at: Some(4),
        valid_from: Some(5),
        valid_until: Some(6),
        superseded_by: text("k2"),
        access: Some(wit::Access {
            visibility: wit::Visibility::Shared,
            exportable: false,
            shared_with: vec![wit::AccessGrant {
                entity: "bob".to_owned(),
                permissions: vec![wit::Permission::Read, wit::Permission::Delete],
            }],
        }),
        embedding_ref: text("e"),
        metadata: text("{\"n\":1}"),
    }
}

fn item_json() -> Value {
    json!({
        "key": "k", "content": "likes tea", "memory_type": "custom", "custom_type": "taste", "status": "archived",
        "scope": "project:1", "summary": "tea", "tags": ["t"],
        "confidence": {"initial": 0.25, "current": 0.5, "decay_model": "time_linear", "last_reinforced": 3},
        "created_at": 7, "updated_at": 4, "valid_from": 5, "valid_until": 6, "superseded_by": "k2",
        "access": {"visibility": "shared", "exportable": false,
            "shared_with": [{"entity": "bob", "permissions": ["read", "delete"]}]},
        "embedding_ref": "e", "metadata": {"n": 1},
    })
}

fn evidence_of(claim: wit::Claim) -> Value {
    let wit = wit::Evidence {
        id: "e".to_owned(),
        claim,
        at: Some(1),
        account: text("acc"),
        conversation: text("c"),
        message: text("m"),
        extraction_method: wit::ExtractionMethod::LlmInference,
        locator: "l".to_owned(),
    };
    as_json(&evidence(wit, &mut RecordNotes::default()))
}

#[test]
fn evidence_keeps_every_field() {
    let wanted = json!({
        "id": "e", "claim": {"statement": item_json()}, "at": 1, "account": "acc", "conversation": "c",
        "message": "m", "extraction_method": "llm_inference", "locator": "l",
    });
    assert_eq!(evidence_of(wit::Claim::Statement(item_of_everything())), wanted);
}

#[test]
fn the_other_claims_keep_their_fields() {
    let snapshot = wit::Snapshot { series: "s".to_owned(), items: vec![item_of_everything()] };
    let claim = &evidence_of(wit::Claim::Snapshot(snapshot))["claim"];
    assert_eq!(*claim, json!({"snapshot": {"series": "s", "items": [item_json()]}}));
    let edit = |edit| {
        let logged = wit::LoggedEdit { log: "g".to_owned(), sequence: 8, edit };
        evidence_of(wit::Claim::Edit(logged))["claim"]["edit"].clone()
    };
    let added = edit(wit::Edit::Add(item_of_everything()));
    assert_eq!(added, json!({"log": "g", "sequence": 8, "edit": {"add": item_json()}}));
    let replaced = edit(wit::Edit::Replace(wit::Replacement {
        line: Some(2),
        target: text("old"),
        item: item_of_everything(),
    }));
    assert_eq!(replaced["edit"], json!({"replace": {"line": 2, "target": "old", "item": item_json()}}));
    let removed = edit(wit::Edit::Remove(wit::Removal { line: Some(2), target: text("old") }));
    assert_eq!(removed["edit"], json!({"remove": {"line": 2, "target": "old"}}));
}

#[test]
fn relations_and_embeddings_keep_every_field() {
    let wit = wit::Relation {
        source: "a".to_owned(),
        target: "b".to_owned(),
        relation_type: wit::RelationType::DerivedFrom,
        confidence: Some(0.5),
        created_at: Some(1),
    };
    let wanted = json!({
        "source": "a", "target": "b", "relation_type": "derived_from", "confidence": 0.5, "created_at": 1,
    });
    assert_eq!(as_json(&relation(wit)), wanted);
    let wit = wit::Embedding {
        memory: "k".to_owned(),
        model: "m".to_owned(),
        dimensions: 2,
        created_at: Some(1),
        vector: Some(vec![0.5, 1.0]),
        storage: Some(wit::Storage { kind: wit::StorageKind::VectorDb, ref_: "r".to_owned() }),
    };
    let wanted = json!({
        "memory": "k", "model": "m", "dimensions": 2, "created_at": 1, "vector": [0.5, 1.0],
        "storage": {"type": "vector_db", "ref": "r"},
    });
    assert_eq!(as_json(&embedding(wit)), wanted);
}
