//! Vectors that were computed by other programs: the official SDK, `rfc8785`, Python's `uuid`.

use satchel_pam::{
    checksum,
    hash::{ContentHash, Sha256Digest},
    ids, jcs,
    normal::normal_form,
    parse::{self, ChecksumStatus},
    sign::{self, Payload, PublicKey, SignatureCheck, SignatureFields, SignedFields, SigningKey},
    text,
    time::Timestamp,
};
use serde_json::{Value, json};
use uuid::Uuid;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../vectors/vectors.json")).unwrap()
}

fn own() -> Value {
    serde_json::from_str(include_str!("../../vectors/ids.json")).unwrap()
}

fn list<'v>(vectors: &'v Value, name: &str) -> &'v [Value] {
    let list = vectors[name].as_array().unwrap();
    assert!(!list.is_empty(), "{name}");
    list
}

/// Characters that came after the Unicode version of the vectors.
const NEWER: [&str; 2] = [
    "Garay capital U+10D50 (Unicode 16) not lowered by py3.11",
    "U+0295 before sigma (py3.11 differs from Rust std)",
];

#[test]
fn content_hashes() {
    for case in list(&vectors(), "content_hash") {
        let name = case["name"].as_str().unwrap();
        let content = case["content"].as_str().unwrap();
        if NEWER.contains(&name) {
            assert_ne!(ContentHash::of(content).to_string(), case["content_hash"], "{name}");
            continue;
        }
        assert_eq!(ContentHash::of(content).to_string(), case["content_hash"], "{name}");
        if let Some(normalised) = case["normalized"].as_str() {
            assert_eq!(text::normalise(content), normalised, "{name}");
        }
    }
}

#[test]
fn newer_characters_give_a_warning_not_an_error() {
    for case in list(&vectors(), "content_hash") {
        let name = case["name"].as_str().unwrap();
        let document = json!({
            "id": "m", "type": "fact", "content": case["content"], "content_hash": case["content_hash"],
            "temporal": {"created_at": "2026-01-01T00:00:00Z"}, "provenance": {"platform": "claude"},
        });
        let (memory, _) = parse::memory(document.to_string().as_bytes());
        let issues = satchel_pam::validate::memory(&memory.unwrap(), "$");
        let rules: Vec<&str> =
            issues.iter().map(|issue| issue.rule).filter(|rule| *rule != "R-4.3").collect();
        let expected: &[&str] = if NEWER.contains(&name) { &["A-7"] } else { &[] };
        assert_eq!(rules, expected, "{name}");
    }
}

#[test]
fn canonical_json() {
    for case in list(&vectors(), "jcs") {
        let value: Value = serde_json::from_str(case["value_json"].as_str().unwrap()).unwrap();
        let bytes = jcs::to_vec(&value).unwrap();
        assert_eq!(str::from_utf8(&bytes).unwrap(), case["canonical"], "{}", case["name"]);
        assert_eq!(Sha256Digest::of(&bytes).to_hex(), case["sha256"], "{}", case["name"]);
    }
}

#[test]
fn canonical_numbers() {
    for case in list(&vectors(), "jcs_number_tokens") {
        let token = case["token"].as_str().unwrap();
        let expected = case["canonical"].as_str().unwrap();
        let found = serde_json::from_str::<Value>(token)
            .map_err(drop)
            .and_then(|value| jcs::to_vec(&value).map_err(drop));
        match found {
            Ok(bytes) => assert_eq!(str::from_utf8(&bytes).unwrap(), expected, "{token}"),
            Err(()) => assert!(expected.starts_with("ERROR"), "{token}"),
        }
    }
}

/// A store around these memories, with this checksum; and what reading it finds.
fn reading(memories: &Value, checksum: &str) -> ChecksumStatus {
    let store = json!({
        "schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "o"}, "memories": memories,
        "integrity": {"checksum": checksum, "total_memories": memories.as_array().unwrap().len()},
    });
    parse::store_reading(store.to_string().as_bytes()).checksum
}

#[test]
fn checksums() {
    for case in list(&vectors(), "checksum") {
        let name = case["name"].as_str().unwrap();
        let memories = case["memories"].as_array().unwrap();
        let raw = case["raw_checksum_spec"].as_str().unwrap();
        let normal: Vec<Value> = memories.iter().map(normal_form).collect();
        if raw.starts_with("ERROR") {
            assert!(checksum::of_values(memories).is_err(), "{name}");
            assert!(matches!(reading(&case["memories"], raw), ChecksumStatus::NotCanonical(_)), "{name}");
            continue;
        }
        let sdk = case["sdk_validate_checksum"].as_str().unwrap();
        assert_eq!(checksum::of_values(memories).unwrap().to_string(), raw, "{name}");
        assert_eq!(checksum::of_values(&normal).unwrap().to_string(), sdk, "{name}");
        if let Some(expected) = case["sdk_normal_form"].as_array() {
            assert_eq!(jcs::write(&normal).unwrap(), jcs::write(expected).unwrap(), "{name}");
        }
        assert_eq!(reading(&case["memories"], raw), ChecksumStatus::Spec, "{name}");
        let expected = if raw == sdk { ChecksumStatus::Spec } else { ChecksumStatus::SdkNormalForm };
        assert_eq!(reading(&case["memories"], sdk), expected, "{name}");
        let other = Sha256Digest::of(b"").to_string();
        assert!(matches!(reading(&case["memories"], &other), ChecksumStatus::Mismatch { .. }), "{name}");
    }
}

#[test]
fn memories_read_and_written_have_the_sdks_checksum() {
    for case in list(&vectors(), "checksum") {
        let name = case["name"].as_str().unwrap();
        let memories = case["memories"].as_array().unwrap();
        let read: Vec<_> =
            memories.iter().map(|memory| parse::memory(memory.to_string().as_bytes()).0.unwrap()).collect();
        match checksum::of_memories(&read) {
            Ok(checksum) => assert_eq!(checksum.to_string(), case["sdk_validate_checksum"], "{name}"),
            Err(_) => assert!(case["sdk_validate_checksum"].as_str().unwrap().starts_with("ERROR"), "{name}"),
        }
    }
}

#[test]
fn constants() {
    let vectors = vectors();
    let constants = &vectors["constants"];
    assert_eq!(checksum::of_memories(&[]).unwrap().to_string(), constants["checksum_of_empty_memories"]);
    assert_eq!(Sha256Digest::of(b"").to_string(), constants["sha256_of_empty_string"]);
}

#[test]
fn the_official_example_fits_the_specification() {
    let vectors = vectors();
    let example = include_bytes!("../../examples/example-memory-store.json");
    assert_eq!(parse::store_reading(example).checksum, ChecksumStatus::Spec);
    let document: Value = serde_json::from_slice(example).unwrap();
    let normal: Vec<Value> = document["memories"].as_array().unwrap().iter().map(normal_form).collect();
    let computed = checksum::of_values(&normal).unwrap().to_string();
    assert_eq!(computed, vectors["official_example_store"]["sdk_validate_checksum"]);
}

#[test]
fn timestamps() {
    for case in list(&vectors(), "timestamp_normal_form") {
        let expected = case["sdk_output"].as_str().unwrap();
        // Through a document, since the SDK takes numbers too.
        let document = json!({
            "id": "m", "type": "fact", "content": "x", "content_hash": ContentHash::of("x").to_string(),
            "temporal": {"created_at": case["input"]}, "provenance": {"platform": "claude"},
        });
        let (memory, issues) = parse::memory(document.to_string().as_bytes());
        if expected == "REJECTED" {
            assert!(memory.is_none() && !issues.is_empty(), "{case}");
            continue;
        }
        let written = memory.unwrap_or_else(|| panic!("{case}: {issues:?}")).temporal.created_at.to_string();
        let naive = !expected.ends_with('Z') && !expected[10..].contains(['+', '-']);
        assert_eq!(written, if naive { format!("{expected}Z") } else { expected.to_owned() }, "{case}");
        if case["input"].is_string() {
            assert_eq!(normal_form(&document)["temporal"]["created_at"], expected, "{case}");
        }
    }
}

#[test]
fn timestamps_of_every_form() {
    let vectors: Value = serde_json::from_str(include_str!("../../vectors/timestamps.json")).unwrap();
    for case in list(&vectors, "text") {
        let (text, expected) = (case[0].as_str().unwrap(), case[1].as_str().unwrap());
        let document = json!({"temporal": {"created_at": text}});
        match Timestamp::parse(text) {
            Ok(_) => assert_eq!(normal_form(&document)["temporal"]["created_at"], expected, "{text:?}"),
            Err(_) => assert_eq!(expected, "REJECTED", "{text:?}"),
        }
    }
    for case in list(&vectors, "number") {
        let document = json!({"temporal": {"created_at": case[0]}, "id": "m", "type": "fact", "content": "x",
            "content_hash": ContentHash::of("x").to_string(), "provenance": {"platform": "claude"}});
        let memory = parse::memory(document.to_string().as_bytes()).0;
        let found = memory.map_or("REJECTED".to_owned(), |memory| memory.temporal.created_at.to_string());
        assert_eq!(found, case[1], "{case}");
    }
}

#[test]
fn epoch_seconds() {
    for case in list(&vectors(), "chatgpt_epoch") {
        let seconds: f64 = case["epoch_json"].as_str().unwrap().parse().unwrap();
        assert_eq!(Timestamp::from_epoch_seconds(seconds).unwrap().to_string(), case["sdk_output"], "{case}");
    }
    for case in list(&vectors(), "grok_bson") {
        let millis: i64 = case["numberLong"].as_str().unwrap().parse().unwrap();
        assert_eq!(Timestamp::from_micros(millis * 1000).unwrap().to_string(), case["sdk_output"], "{case}");
    }
}

#[test]
fn signatures() {
    for case in list(&vectors(), "signature") {
        let text = |key: &str| case[key].as_str().unwrap();
        let part = |key: &str| case["payload"][key].as_str().unwrap();
        let payload = Payload {
            checksum: part("checksum"),
            export_id: part("export_id"),
            export_date: part("export_date"),
            owner_id: part("owner_id"),
        };
        assert_eq!(str::from_utf8(&payload.to_bytes()).unwrap(), text("canonical"));
        let seed = (0..32).map(|at| u8::from_str_radix(&text("seed_hex")[at * 2..at * 2 + 2], 16).unwrap());
        let key = SigningKey::from_bytes(&seed.collect::<Vec<u8>>().try_into().unwrap());
        let block = sign::sign(&key, &payload, Timestamp::EPOCH);
        assert_eq!(block.value, text("value_unpadded"));
        assert_eq!(block.public_key, text("public_key_multibase"));
        assert_eq!(block.key_id.unwrap(), text("key_id"));
        assert_eq!(PublicKey::of(&key).did_key(), text("did"));
        for form in ["public_key_multibase", "public_key_base58_raw", "did", "key_id"] {
            for value in ["value_unpadded", "value_appendix_d_padded"] {
                let signed = SignedFields {
                    checksum: Some(part("checksum").to_owned()),
                    export_id: Some(part("export_id").to_owned()),
                    export_date: Some(part("export_date").to_owned()),
                    owner_id: Some(part("owner_id").to_owned()),
                    signature: Some(SignatureFields {
                        algorithm: "Ed25519".to_owned(),
                        public_key: text(form).to_owned(),
                        value: text(value).to_owned(),
                    }),
                };
                assert_eq!(
                    sign::verify(&signed),
                    SignatureCheck::Valid { key: PublicKey::of(&key) },
                    "{form} {value}"
                );
            }
        }
    }
}

#[test]
fn ids_never_change() {
    let own = own();
    assert_eq!(ids::NAMESPACE.to_string(), own["namespace"]);
    let uuid = |case: &Value, key: &str| Uuid::parse_str(case[key].as_str().unwrap()).unwrap();
    for case in list(&own, "conversation") {
        let id = ids::conversation_id(
            case["platform"].as_str().unwrap(),
            case["account"].as_str(),
            case["key"].as_str().unwrap(),
        );
        assert_eq!(id, uuid(case, "id"));
    }
    for case in list(&own, "message") {
        assert_eq!(
            ids::message_id(uuid(case, "conversation"), case["node"].as_str().unwrap()),
            uuid(case, "id")
        );
    }
    for case in list(&own, "memory") {
        let hash = ContentHash::of(case["content"].as_str().unwrap());
        let memory_type = case["type"].as_str().unwrap().parse().unwrap();
        let id = ids::memory_id(&hash, memory_type, case["custom_type"].as_str(), case["scope"].as_str());
        assert_eq!(id, uuid(case, "id"));
    }
    for case in list(&own, "relation") {
        let relation_type = case["type"].as_str().unwrap().parse().unwrap();
        let id =
            ids::relation_id(case["from"].as_str().unwrap(), case["to"].as_str().unwrap(), relation_type);
        assert_eq!(id, uuid(case, "id"));
    }
    for case in list(&own, "evidence") {
        let id = ids::evidence_id(
            case["platform"].as_str().unwrap(),
            case["account"].as_str(),
            case["key"].as_str().unwrap(),
        );
        assert_eq!(id, uuid(case, "id"));
    }
    for case in list(&own, "embedding") {
        assert_eq!(
            ids::embedding_id(case["memory"].as_str().unwrap(), case["model"].as_str().unwrap()),
            uuid(case, "id")
        );
    }
}

#[test]
fn file_names_are_safe_on_every_file_system() {
    for case in list(&own(), "file_name") {
        assert_eq!(ids::file_name(case["id"].as_str().unwrap()), case["name"], "{case}");
    }
}
