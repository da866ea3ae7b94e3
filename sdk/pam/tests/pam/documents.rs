//! What the writers write, judged by the official schemas, by our own reader, and byte by byte.

use jsonschema::Validator;
use satchel_pam::{
    conversation::ConversationHeader,
    parse,
    store::{self, Owner, Signer, StoreHeader, WriteError},
    validate,
};
use serde_json::Value;

use crate::full;

fn schema(text: &str) -> Validator {
    jsonschema::validator_for(&serde_json::from_str::<Value>(text).unwrap()).unwrap()
}

fn store_schema() -> Validator {
    schema(include_str!("../../schemas/portable-ai-memory.schema.json"))
}

fn conversation_schema() -> Validator {
    schema(include_str!("../../schemas/portable-ai-memory-conversation.schema.json"))
}

fn embeddings_schema() -> Validator {
    schema(include_str!("../../schemas/portable-ai-memory-embeddings.schema.json"))
}

fn assert_fits(schema: &Validator, bytes: &[u8]) {
    let document: Value = serde_json::from_slice(bytes).unwrap();
    let problems: Vec<String> =
        schema.iter_errors(&document).map(|one| format!("{one} at {}", one.instance_path())).collect();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn what_is_written_fits_the_official_schemas() {
    assert_fits(&store_schema(), &full::store());
    assert_fits(&conversation_schema(), &full::conversation_file());
    assert_fits(&embeddings_schema(), &full::embeddings().to_json().unwrap());
    let empty =
        store::Writer::new(Vec::new(), StoreHeader::new(Owner { id: "o".into(), ..Owner::default() }))
            .unwrap();
    assert_fits(&store_schema(), &empty.finish(None).unwrap().out);
    let header =
        ConversationHeader { raw_metadata: None, import_metadata: None, ..full::conversation_header() };
    assert_fits(&conversation_schema(), &header.into_document(Vec::new()).to_json());
}

#[test]
fn the_schemas_can_tell() {
    let text = String::from_utf8(full::store()).unwrap().replace("\"b-small\"", "5");
    assert!(!store_schema().is_valid(&serde_json::from_str(&text).unwrap()));
}

#[test]
fn a_full_bundle_breaks_no_rule() {
    let conversation = full::conversation_file();
    let embeddings = full::embeddings().to_json().unwrap();
    let report = validate::bundle(
        &full::store(),
        [("conversations/conv-1.json", conversation.as_slice())],
        Some(&embeddings),
    );
    assert_eq!(report.issues, []);
    assert!(report.valid());
}

#[test]
fn documents_come_back_as_they_were() {
    let bytes = full::store();
    let (store, issues) = parse::memory_store(&bytes);
    let store = store.unwrap();
    assert_eq!(issues, []);
    assert_eq!(store.header, full::header());
    assert_eq!(store.memories[0], full::full_memory());
    assert_eq!(store.relations, [full::relation()]);
    assert_eq!(store.conversations_index, [full::index_entry()]);
    assert_eq!(store.to_json().unwrap(), bytes);

    let (conversation, issues) = parse::conversation(&full::conversation_file());
    assert_eq!(issues, []);
    let conversation = conversation.unwrap();
    assert_eq!(conversation.header.id, full::conversation().header.id);
    assert_eq!(conversation.to_json(), full::conversation_file());
    // White space inside raw objects is ours; the rest is the same.
    assert_eq!(conversation.messages[0], full::messages()[0]);

    let written = full::embeddings().to_json().unwrap();
    let (embeddings, issues) = parse::embeddings(&written);
    assert_eq!(issues, []);
    assert_eq!(embeddings.unwrap(), full::embeddings());
}

#[test]
fn official_examples_are_read() {
    let store = include_bytes!("../../examples/example-memory-store.json");
    let conversation: &[u8] = include_bytes!("../../examples/example-conversation.json");
    let embeddings = include_bytes!("../../examples/example-embeddings.json");
    let report = validate::bundle(store, [("conversations/conv-001.json", conversation)], Some(embeddings));
    let found: Vec<(&str, &str)> =
        report.issues.iter().map(|issue| (issue.rule, issue.path.as_str())).collect();
    // Its signature is for show, and two of its three conversations are not there.
    let expected = [
        ("R-18.7", "$.signature"),
        ("R-2.1", "$.conversations_index[1].storage.ref"),
        ("R-2.1", "$.conversations_index[2].storage.ref"),
    ];
    assert_eq!(found, expected);
    assert_eq!(report.checksum, parse::ChecksumStatus::Spec);
    assert_eq!(report.counts.memories, 5);
}

#[test]
fn files_are_laid_out_like_the_official_sdks() {
    let header = ConversationHeader { participants: Vec::new(), ..full::conversation_header() };
    let text = String::from_utf8(header.into_document(vec![full::messages().remove(0)]).to_json()).unwrap();
    let expected = r#"{
  "schema": "portable-ai-memory-conversation",
  "schema_version": "1.0",
  "id": "conv-1",
  "provider": {
    "name": "chatgpt",
    "conversation_id": "c-9",
    "account_id": "account-1",
    "export_format_version": "2026-01"
  },
  "title": "Bees",
  "temporal": {
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-02T00:00:00Z"
  },
  "participants": [],
  "messages": [
    {
      "id": "m1",
      "role": "user",
      "content": {
        "type": "text",
        "text": "How are the bees?",
        "parts": []
      },
      "created_at": "2026-01-01T00:00:00Z",
      "children_ids": [
        "m2",
        "m3"
      ],
      "is_thought": false,
      "attachments": [],
      "citations": [],
      "tool_calls": [],
      "raw_metadata": {}
    }
  ],
  "model": "gpt-x",
  "system_instruction": "Be brief.",
  "is_archived": true,
  "tags": [
    "bees"
  ],
  "raw_metadata": {
    "empty": [],
    "starred": [
      true,
      {
        "a": {}
      }
    ],
    "text": "a{[,:\"]}"
  },
  "import_metadata": {
    "importer": "satchel/0.1.0",
    "importer_version": "chatgpt-importer/2026.07",
    "imported_at": "2026-02-01T00:00:00Z",
    "source_file": "conversations.json",
    "source_checksum": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
}
"#;
    assert_eq!(text, expected);
}

#[test]
fn a_store_is_written_in_normal_form() {
    let text = String::from_utf8(full::store()).unwrap();
    assert!(!text.contains(": null") && text.ends_with("}\n"));
    let document: Value = serde_json::from_str(&text).unwrap();
    for memory in document["memories"].as_array().unwrap() {
        assert_eq!(satchel_pam::normal::normal_form(memory), *memory);
    }
}

#[test]
fn the_stores_writer_refuses_what_would_be_wrong() {
    let writer = || store::Writer::new(Vec::new(), full::header()).unwrap();
    let memory = |id| full::small_memory(id, "x");
    let mut unordered = writer();
    unordered.memory(&memory("b")).unwrap();
    assert!(matches!(unordered.memory(&memory("a")), Err(WriteError::Checksum(_))));
    let mut late = writer();
    late.relation(&full::relation()).unwrap();
    assert!(matches!(late.memory(&memory("a")), Err(WriteError::Order(_))));
    late.index_entry(&full::index_entry()).unwrap();
    assert!(matches!(late.relation(&full::relation()), Err(WriteError::Order(_))));
    let mut withheld = memory("a");
    withheld.access = Some(satchel_pam::memory::Access { exportable: false, ..Default::default() });
    assert!(matches!(writer().memory(&withheld), Err(WriteError::NotExportable(_))));
    let mut large = memory("a");
    large.metadata.insert("n".to_owned(), (1_u64 << 53).into());
    assert!(matches!(writer().memory(&large), Err(WriteError::Checksum(_))));
    let key = full::key();
    let signer = |at| Some(Signer { key: &key, signed_at: full::at(at) });
    assert!(matches!(writer().finish(signer("2026-02-15T21:59:59Z")), Err(WriteError::SignedBefore)));
    let unnamed = StoreHeader { export_id: None, ..full::header() };
    let unnamed = store::Writer::new(Vec::new(), unnamed).unwrap();
    assert!(matches!(
        unnamed.finish(signer("2026-02-15T22:00:00Z")),
        Err(WriteError::Unsignable("export_id"))
    ));
}
