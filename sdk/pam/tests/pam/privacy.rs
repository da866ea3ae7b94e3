//! Canaries: a planted identifier is in nothing that leaves.

use std::collections::BTreeSet;

use satchel_pam::{
    conversation::{Conversation, Writer},
    memory::{Access, Memory},
    parse, privacy, validate,
};
use serde_json::{Value, json};

use crate::full;

const OWNER: &str = "5d2f1c3a-8b7e-4f60-9a1d-2c3b4a5d6e7f";
const CANARY: &str = "canary.lea@example.org";

/// JSON pointers of all strings.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, &format!("{at}/{index}"), found));
        }
        Value::String(_) => found.push(at.to_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Puts the canary into each string of a document by itself; answers where it survived, without indices.
fn survivors(bytes: &[u8], strip: impl Fn(&[u8]) -> Option<Vec<u8>>) -> BTreeSet<String> {
    let document: Value = serde_json::from_slice(bytes).unwrap();
    let mut found = Vec::new();
    places(&document, "", &mut found);
    let mut survivors = BTreeSet::new();
    for place in found {
        let mut planted = document.clone();
        *planted.pointer_mut(&place).unwrap() = CANARY.into();
        let Some(written) = strip(planted.to_string().as_bytes()) else { continue };
        if String::from_utf8(written).unwrap().contains(CANARY) {
            let names = place.split('/').filter(|part| part.parse::<usize>().is_err());
            survivors.insert(names.collect::<Vec<_>>().join("/"));
        }
    }
    survivors
}

fn strip_store(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut store = parse::memory_store(bytes).0?;
    privacy::strip_store(&mut store, OWNER);
    Some(store.to_json().unwrap())
}

fn written(conversation: &Conversation) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &conversation.header).unwrap();
    conversation.messages.iter().for_each(|message| writer.message(message).unwrap());
    writer.finish().unwrap()
}

fn strip_conversation(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut conversation = parse::conversation(bytes).0?;
    privacy::strip_conversation(&mut conversation);
    Some(written(&conversation))
}

/// What a person said, and ids of records, by which a bundle holds together: no identifier belongs there.
#[test]
fn an_address_in_a_store_survives_only_in_content_and_ids_of_records() {
    let kept = [
        "/spec_uri",
        "/export_id",
        "/exported_by",
        "/base_export_id",
        "/type_registry",
        "/memories/id",
        "/memories/custom_type",
        "/memories/content",
        "/memories/summary",
        "/memories/embedding_ref",
        "/memories/temporal/superseded_by",
        "/memories/provenance/platform",
        "/memories/provenance/conversation_ref",
        "/memories/provenance/message_ref",
        "/memories/provenance/extractor",
        "/relations/id",
        "/relations/from",
        "/relations/to",
        "/conversations_index/id",
        "/conversations_index/platform",
        "/conversations_index/derived_memories",
        "/conversations_index/storage/format",
    ];
    let found = survivors(&full::store(), strip_store);
    // An unknown type is read as a custom one of that name.
    let kept: BTreeSet<String> = kept.into_iter().chain(["/memories/type"]).map(str::to_owned).collect();
    assert_eq!(found, kept);
}

#[test]
fn an_address_in_a_conversation_survives_only_in_what_was_said_and_in_ids_of_records() {
    let kept = [
        "/id",
        "/provider/name",
        "/provider/export_format_version",
        "/model",
        "/system_instruction",
        "/import_metadata/importer",
        "/import_metadata/importer_version",
        "/messages/id",
        "/messages/parent_id",
        "/messages/children_ids",
        "/messages/model",
        "/messages/content/text",
        "/messages/content/parts/text",
        "/messages/content/parts/language",
        "/messages/content/parts/mime_type",
        "/messages/attachments/mime_type",
        "/messages/citations/snippet",
        "/messages/tool_calls/name",
        "/messages/tool_calls/input",
        "/messages/tool_calls/input/q",
        "/messages/tool_calls/output",
    ];
    let found = survivors(&full::conversation_file(), strip_conversation);
    assert_eq!(found, kept.map(str::to_owned).into());
}

#[test]
fn accounts_and_names_of_people_go_whatever_they_look_like() {
    let mut document: Value = serde_json::from_slice(&full::conversation_file()).unwrap();
    document["provider"]["account_id"] = "user-CANARY".into();
    document["participants"] = json!([
        {"role": "user", "name": "Lea CANARY", "provider_id": "u-CANARY"},
        {"role": "assistant", "name": "Helper", "provider_id": "g-CANARY"},
    ]);
    document["import_metadata"]["source_file"] = "CANARY-2026.zip".into();
    document["raw_metadata"] = json!({"hidden": true, "author": "CANARY", "deep": [{"user": "CANARY"}]});
    document["messages"][0]["raw_metadata"] = json!({"author": {"name": "CANARY"}});
    let mut conversation = parse::conversation(document.to_string().as_bytes()).0.unwrap();
    assert_eq!(privacy::strip_conversation(&mut conversation), 9);
    let text = String::from_utf8(written(&conversation)).unwrap();
    assert!(!text.contains("CANARY") && text.contains("Helper"), "{text}");
    assert_eq!(conversation.header.raw_metadata.as_ref().unwrap().as_str(), "{\"hidden\":true}");
    assert_eq!(conversation.messages[0].raw_metadata, None);
    assert_eq!(privacy::strip_conversation(&mut conversation), 0);
}

#[test]
fn people_go_from_titles_names_of_files_ids_and_addresses_and_what_was_said_stays() {
    const ACCOUNT: &str = "6f1eaa10-0000-4000-8000-0000000000ab";
    let mut document: Value = serde_json::from_slice(&full::conversation_file()).unwrap();
    document["provider"] =
        json!({"name": "grok", "account_id": ACCOUNT, "conversation_id": format!("c-{ACCOUNT}")});
    document["participants"] = json!([{"role": "user", "name": "Ines Brandt", "provider_id": ACCOUNT}]);
    document["title"] = "A letter of ines brandt".into();
    document["tags"] = json!(["ines-brandt", "letters"]);
    document["messages"] = json!([{
        "id": "m", "role": "assistant", "created_at": "2026-01-01T00:00:00Z",
        "provider_message_id": format!("{ACCOUNT}/1"),
        "content": {"type": "multipart", "parts": [
            {"type": "text", "text": format!("Ines Brandt, see https://assets.example.com/users/{ACCOUNT}/a")},
            {"type": "image", "ref": format!("https://assets.example.com/users/{ACCOUNT}/a")},
        ]},
        "attachments": [
            {"type": "image", "name": "Ines%20Brandt.png", "ref": "attachments/0a", "provider_id": format!("users_{ACCOUNT}_a")},
            {"type": "file", "name": "rye.pdf"},
        ],
        "citations": [{"title": "Rye", "url": format!("https://example.com/{ACCOUNT}")}, {"title": "Ines Brandt"}],
        "tool_calls": [{"name": "open", "input": {"path": format!("/home/{ACCOUNT}")}, "output": format!("of {ACCOUNT}")}],
    }]);
    let mut conversation = parse::conversation(document.to_string().as_bytes()).0.unwrap();
    privacy::strip_conversation(&mut conversation);
    let text = written(&conversation);
    assert_eq!(parse::conversation(&text).1, []);
    let stripped: Value = serde_json::from_slice(&text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains(ACCOUNT), "{text}");
    assert_eq!(text.to_lowercase().matches("ines").count(), 1, "what was said stays: {text}");
    let message = &stripped["messages"][0];
    let said = "Ines Brandt, see https://assets.example.com/users/account/a";
    assert_eq!(message["content"]["parts"][0]["text"], said);
    assert_eq!((stripped.get("title"), &stripped["tags"]), (None, &json!(["letters"])));
    assert_eq!(message["attachments"][0]["ref"], "attachments/0a");
    assert_eq!(message["attachments"][1]["name"], "rye.pdf");
    assert_eq!(message["citations"], json!([{"title": "Rye"}]));
    assert_eq!(message["tool_calls"][0]["input"], json!({"path": "/home/account"}));
    assert_eq!(privacy::strip_conversation(&mut conversation), 0);
}

#[test]
fn a_memory_loses_its_account_and_keeps_what_it_says() {
    let mut memory: Memory = full::full_memory();
    memory.provenance.platform_user_id = Some("CANARY".to_owned());
    let Value::Object(metadata) = json!({
        "language": "de", "x_crm": "CANARY", "pam:unknown": {"status": "CANARY"},
        "satchel": {
            "scope": "work", "evidence_count": 2,
            "evidence": [{"id": "e", "account": "CANARY", "platform": "claude", "last": {"account": "CANARY"}}],
        },
    }) else {
        unreachable!()
    };
    memory.metadata = metadata;
    let before = memory.clone();
    assert_eq!(privacy::strip_memory(&mut memory, &privacy::Identifiers::default()), 5);
    assert!(!serde_json::to_string(&memory).unwrap().contains("CANARY"));
    assert_eq!((&memory.content, memory.content_hash), (&before.content, before.content_hash));
    assert_eq!(
        memory.metadata["satchel"]["evidence"],
        json!([{"id": "e", "platform": "claude", "last": {}}])
    );
    assert_eq!(memory.metadata["language"], "de");
    assert_eq!(memory.access, before.access);
}

#[test]
fn an_owner_whose_id_is_an_address_gets_another_and_any_other_stays() {
    let (mut store, _) = parse::memory_store(&full::store());
    let store = store.as_mut().unwrap();
    let before = store.header.owner.clone();
    privacy::strip_store(store, OWNER);
    assert_eq!(store.header.owner, before);
    assert!(store.integrity.is_none() && store.signature.is_none());
    store.header.owner.id = "Lea@Example.org".to_owned();
    store.header.owner.did = Some("did:web:example.org:lea%40example.org".to_owned());
    assert_eq!(privacy::strip_owner(&mut store.header.owner, OWNER), 2);
    assert_eq!((store.header.owner.id.as_str(), &store.header.owner.did), (OWNER, &None));
}

#[test]
fn what_is_stripped_is_still_a_valid_document() {
    let stripped = strip_store(&full::store()).unwrap();
    let (store, issues) = parse::memory_store(&stripped);
    assert_eq!(issues, []);
    let broken: Vec<_> = validate::memory_store(&store.unwrap())
        .into_iter()
        .filter(|issue| issue.severity == satchel_pam::issue::Severity::Error)
        .collect();
    assert_eq!(broken, []);
    let conversation = strip_conversation(&full::conversation_file()).unwrap();
    assert_eq!(parse::conversation(&conversation).1, []);
}

#[test]
fn nothing_of_a_memory_that_must_not_leave_is_left() {
    let (store, _) = parse::memory_store(&full::store());
    let (mut store, mut embeddings) = (store.unwrap(), full::embeddings());
    let withheld = store.memories.iter_mut().find(|memory| memory.id == "b-small").unwrap();
    withheld.access = Some(Access { exportable: false, ..Access::default() });
    withheld.content = CANARY.to_owned();
    store.conversations_index[0].derived_memories.push("b-small".to_owned());
    let found = privacy::withhold(&mut store, Some(&mut embeddings));
    let expected = privacy::Withheld { memories: 1, relations: 1, mentions: 2, embeddings: 1 };
    assert_eq!(found, expected);
    let text = String::from_utf8(store.to_json().unwrap()).unwrap() + &json!(embeddings).to_string();
    assert!(!text.contains(CANARY) && !text.contains("b-small"), "{text}");
    assert_eq!(privacy::withhold(&mut store, None), privacy::Withheld::default());
}
