//! An import keeps what a document says beside its records, and about records that did not come with it.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, VerifyOptions};
use satchel_core::ingest::{
    Apply,
    undo::{UndoDirection, UndoRequest},
};
use satchel_source::CancelToken;
use satchel_tests::test_core::{ExportedState, only_import};
use serde_json::{Value, json};

use super::{ImportFixture, conversation, has_warning, memory, memory_store, message};

/// Returns a store whose index lists conversations with various storage: in a database, at an address, without any, and
/// in files.
fn store_with_index() -> Value {
    let mut linked = memory("told", "Keeps bees");
    linked["provenance"]["conversation_ref"] = "base".into();
    let mut document = memory_store(&[linked, memory("hinted", "Sells honey")]);
    let entry = |id: &str, storage: Value| {
        let mut entry = json!({
            "id": id, "platform": "elsewhere", "title": format!("Talk {id}"), "message_count": 12,
            "temporal": {"created_at": "2025-05-01T08:00:00Z", "updated_at": "2025-05-02T08:00:00Z"},
            "tags": ["garden"], "derived_memories": [],
        });
        if !storage.is_null() {
            entry["storage"] = storage;
        }
        entry
    };
    let mut base = entry("base", json!({"type": "database", "ref": "talks/7"}));
    base["derived_memories"] = json!(["hinted", "told"]);
    document["conversations_index"] = json!([
        base,
        entry("web", json!({"type": "uri", "ref": "https://example.org/talk"})),
        entry("bare", Value::Null),
        entry("lost", json!({"type": "file", "ref": "conversations/lost.json"})),
    ]);
    document
}

fn exported_index(fixture: &ImportFixture, name: &str) -> Result<Value> {
    fixture.core.export(&fixture.path(name))?;
    let report = verify::path(&fixture.path(name), &VerifyOptions::default())?;
    ensure!(report.valid, "{:?}", report.issues);
    let store: Value = serde_json::from_slice(&fs::read(fixture.path(name).join("memory-store.json"))?)?;
    Ok(store["conversations_index"].clone())
}

#[test]
fn a_store_without_its_files_keeps_its_index() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let path = fixture.write("alone/memory-store.json", &store_with_index())?;
    let import = fixture.import(&path)?;
    assert_eq!((import.conversations.new, import.conversations.skipped), (4, 0), "{import:?}");
    assert!(has_warning(&import, "$.conversations_index[3]", "not there"), "{:?}", import.warnings);
    let index = exported_index(&fixture, "out")?;
    let entries = index.as_array().context("a list")?;
    assert_eq!(entries.len(), 4);
    for entry in entries {
        assert_eq!(entry["title"], format!("Talk {}", entry["id"].as_str().unwrap_or_default()));
        assert_eq!((&entry["message_count"], &entry["tags"]), (&json!(12), &json!(["garden"])));
        assert_eq!(entry["temporal"], store_with_index()["conversations_index"][0]["temporal"]);
        let in_a_file = entry["storage"]["type"] == "file";
        assert!(!in_a_file, "{entry}");
    }
    assert_eq!(entries[1]["derived_memories"], json!(["hinted", "told"]), "{entries:?}");
    assert!(!fixture.path("out/conversations").exists());
    // Imported into another person's data directory, the index is the same.
    let there = ImportFixture::new()?;
    there.import(&fixture.path("out"))?;
    assert_eq!(exported_index(&there, "again")?, index);
    Ok(())
}

#[test]
fn a_conversation_imported_later_replaces_its_index_entry() -> Result<()> {
    let mut talk = conversation("base", &[message("m1", "Hello"), message("m2", "Bye")]);
    talk["title"] = "The talk itself".into();
    talk["temporal"] = json!({"created_at": "2025-05-01T08:00:00Z"});
    let mut states = Vec::new();
    for first in [true, false] {
        let fixture = ImportFixture::new()?;
        let index = fixture.write("alone/memory-store.json", &store_with_index())?;
        let file = fixture.write("talk/base.json", &talk)?;
        let (one, other) = if first { (&index, &file) } else { (&file, &index) };
        fixture.import(one)?;
        let later = fixture.import(other)?;
        let counts = later.conversations;
        assert_eq!((counts.updated, counts.unchanged), if first { (1, 0) } else { (0, 1) }, "{later:?}");
        let entry = exported_index(&fixture, "out")?[1].clone();
        assert_eq!((&entry["title"], &entry["message_count"]), (&json!("The talk itself"), &json!(2)));
        assert_eq!((&entry["tags"], &entry["storage"]["type"]), (&json!([]), &json!("file")), "{entry}");
        states.push(ExportedState::read(&fixture.path("out"))?);
        if first {
            let request =
                UndoRequest { id: &later.id, direction: UndoDirection::Undo, dry_run: false, expected: None };
            fixture.core.imports.undo_or_redo(request, &CancelToken::new())?.context("the import")?;
            assert_eq!(
                exported_index(&fixture, "undone")?[1]["title"],
                "Talk base",
                "the index entry was not restored"
            );
        }
    }
    assert_eq!(states[0], states[1], "either order");
    Ok(())
}

#[test]
fn vectors_imported_before_their_memories_are_linked_later() -> Result<()> {
    let vectors = json!({
        "schema": "portable-ai-memory-embeddings", "schema_version": "1.0",
        "embeddings": [
            {"id": "e1", "memory_id": "told", "model": "small", "dimensions": 2,
             "created_at": "2026-02-02T03:04:05Z", "vector": [0.25, -1.5]},
            {"id": "e2", "memory_id": "hinted", "model": "small", "dimensions": 3,
             "created_at": "2026-02-02T03:04:05Z", "vector": [0.25]},
        ],
    });
    let mut states = Vec::new();
    for first in [true, false] {
        let fixture = ImportFixture::new()?;
        let memories = fixture.write("store/memory-store.json", &store_with_index())?;
        let file = fixture.write("vectors/embeddings.json", &vectors)?;
        let import = if first { fixture.import(&file)? } else { fixture.import(&memories)? };
        let other = if first { fixture.import(&memories)? } else { fixture.import(&file)? };
        let linked = if first { import } else { other };
        let counts = linked.embeddings;
        assert_eq!((counts.found, counts.new, counts.skipped), (2, 1, 1), "{linked:?}");
        assert!(has_warning(&linked, "embedding \"e2\"", "dimensions"), "{:?}", linked.warnings);
        exported_index(&fixture, "out")?;
        let text = fs::read_to_string(fixture.path("out/embeddings.json"))?;
        assert!(text.contains("\"e1\"") && !text.contains("\"e2\""), "{text}");
        states.push(text);
        let again = only_import(fixture.core.import_again(&file)?)?;
        assert_eq!((again.embeddings.unchanged, again.embeddings.new), (1, 0), "{again:?}");
    }
    assert_eq!(states[0], states[1], "either order");
    Ok(())
}

#[test]
fn parents_by_provider_id_are_resolved_and_missing_ones_follow_the_order() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let mut messages: Vec<Value> =
        (0..10).map(|at| message(&format!("m{at}"), &format!("Line {at}"))).collect();
    for (at, message) in messages.iter_mut().enumerate() {
        message["provider_message_id"] = format!("p{at}").into();
        if at > 0 {
            message["parent_id"] = format!("gone-{at}").into();
        }
    }
    messages[1]["role"] = "human".into();
    messages[4]["parent_id"] = "p1".into();
    let path = fixture.write("talk.json", &conversation("talk", &messages))?;
    let import = fixture.import(&path)?;
    assert!(has_warning(&import, "talk.json", "8 of its messages"), "{:?}", import.warnings);
    assert!(has_warning(&import, "talk.json", "provider_message_id"), "{:?}", import.warnings);
    assert!(has_warning(&import, "talk.json:$.messages[1].role", "human"), "{:?}", import.warnings);
    let talk = fixture.core.store.conversation("talk", None)?.context("the conversation")?;
    let parent = |id: &str| {
        let head = talk.heads.iter().find(|head| head.id == id);
        head.and_then(|head| head.parent.clone()).unwrap_or_default()
    };
    assert_eq!(
        (parent("m0"), parent("m1"), parent("m4"), parent("m5")),
        (String::new(), "m0".into(), "m1".into(), "m4".into())
    );
    assert_eq!(talk.heads.iter().filter(|head| head.parent.is_none()).count(), 1, "one root");
    assert_eq!(talk.heads[1].role, satchel_pam::conversation::Role::User);
    Ok(())
}

#[test]
fn messages_whose_times_contradict_their_order_keep_it_with_a_warning() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let mut messages: Vec<Value> =
        (0..3).map(|at| message(&format!("m{at}"), &format!("Line {at}"))).collect();
    for (message, hour) in messages.iter_mut().zip([9, 11, 10]) {
        message["created_at"] = format!("2026-02-01T{hour:02}:00:00Z").into();
    }
    let import = fixture.import(&fixture.write("talk.json", &conversation("talk", &messages))?)?;
    assert!(has_warning(&import, "talk.json", "another order than their times"), "{:?}", import.warnings);
    let talk = fixture.core.store.conversation("talk", None)?.context("the conversation")?;
    let parents: Vec<Option<&str>> = talk.heads.iter().map(|head| head.parent.as_deref()).collect();
    assert_eq!(parents, [None, Some("m0"), Some("m1")]);
    // Our own export marks it as a line, so there is no second warning.
    fixture.core.export(&fixture.path("out"))?;
    let there = ImportFixture::new()?;
    assert_eq!(there.import(&fixture.path("out"))?.warnings_found, 0);
    Ok(())
}

#[test]
fn a_linear_conversation_stays_without_parents_and_our_metadata_has_its_own_key() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let mut talk = conversation("talk", &[message("a", "One"), message("b", "Two"), message("c", "Three")]);
    talk["raw_metadata"] = json!({"mood": "good", "active_path": "mine"});
    fixture.import(&fixture.write("talk.json", &talk)?)?;
    let exported = |fixture: &ImportFixture, name: &str| -> Result<Value> {
        fixture.core.export(&fixture.path(name))?;
        Ok(serde_json::from_slice(&fs::read(fixture.path(name).join("conversations/talk.json"))?)?)
    };
    let out = exported(&fixture, "out")?;
    for message in out["messages"].as_array().context("messages")? {
        assert!(message["parent_id"].is_null() && message["children_ids"] == json!([]), "{message}");
        let raw = message["raw_metadata"].as_object().context("metadata")?;
        assert_eq!(raw.keys().collect::<Vec<_>>(), ["satchel"], "{message}");
    }
    let raw = out["raw_metadata"].as_object().context("metadata")?;
    let mut keys: Vec<&String> = raw.keys().collect();
    keys.sort();
    assert_eq!(keys, ["active_path", "mood", "satchel"]);
    let there = ImportFixture::new()?;
    let import = there.import(&fixture.path("out"))?;
    assert_eq!(import.warnings_found, 0, "{:?}", import.warnings);
    assert_eq!(exported(&there, "again")?["messages"], out["messages"]);
    let heads = |fixture: &ImportFixture| -> Result<Vec<Option<String>>> {
        let talk = fixture.core.store.conversation("talk", None)?.context("the conversation")?;
        Ok(talk.heads.into_iter().map(|head| head.parent).collect())
    };
    assert_eq!(heads(&there)?, [None, Some("a".to_owned()), Some("b".to_owned())]);
    let (revision, again) = (fixture.core.store.revision(), fixture.import(&fixture.path("out"))?);
    assert_eq!((again.conversations.unchanged, fixture.core.store.revision()), (1, revision), "{again:?}");
    Ok(())
}

#[test]
fn the_header_of_an_applied_document_is_in_our_exports() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let mut document = memory_store(&[memory("m", "Keeps bees")]);
    document["export_id"] = "0b5e1a52-0000-4000-8000-000000000009".into();
    document["spec_uri"] = "https://example.org/pam/1.0".into();
    document["type_registry"] = "https://example.org/types".into();
    document["owner"] =
        json!({"id": "someone", "did": "did:web:example.org", "created_at": "2020-01-01T00:00:00Z"});
    let header = |fixture: &ImportFixture, name: &str| -> Result<Value> {
        fixture.core.export(&fixture.path(name))?;
        Ok(serde_json::from_slice(&fs::read(fixture.path(name).join("memory-store.json"))?)?)
    };
    let path = fixture.write("mine/memory-store.json", &document)?;
    fixture.core.apply_with(&path, false, Apply::default())?;
    let out = header(&fixture, "out")?;
    for key in ["spec_uri", "type_registry", "owner"] {
        assert_eq!(out[key], document[key], "{key}");
    }
    // A document that is only imported counts as untrusted, whatever owner it names.
    let mut forged = document.clone();
    forged["owner"]["did"] = "did:web:evil.example".into();
    forged["type_registry"] = "https://evil.example".into();
    fixture.import(&fixture.write("forged/memory-store.json", &forged)?)?;
    assert_eq!(header(&fixture, "again")?["owner"], document["owner"]);
    Ok(())
}

#[test]
fn a_changed_text_drops_the_vector_of_the_old_one() -> Result<()> {
    let mut original = memory("m", "Keeps bees");
    original["embedding_ref"] = "e1".into();
    let vectors = json!({
        "schema": "portable-ai-memory-embeddings", "schema_version": "1.0",
        "embeddings": [{"id": "e1", "memory_id": "m", "model": "small", "dimensions": 2,
                        "created_at": "2026-02-02T03:04:05Z", "vector": [0.25, -1.5]}],
    });
    let mut changed = memory("m", "Keeps wasps");
    changed["embedding_ref"] = "e1".into();
    changed["temporal"]["updated_at"] = "2026-03-02T03:04:05Z".into();
    let mut whole = memory_store(&[original.clone()]);
    whole["export_id"] = "0b5e1a52-0000-4000-8000-000000000001".into();
    let full = memory_store(&[changed.clone()]);
    let mut delta = full.clone();
    delta["export_type"] = "incremental".into();
    delta["base_export_id"] = whole["export_id"].clone();
    delta["since"] = "2026-02-02T03:04:05Z".into();
    for (old_first, new) in [(true, &full), (false, &full), (true, &delta)] {
        let fixture = ImportFixture::new()?;
        fixture.write("old/memory-store.json", &whole)?;
        fixture.write("old/embeddings.json", &vectors)?;
        fixture.write("new/memory-store.json", new)?;
        let mut order = ["old", "new"];
        if !old_first {
            order.reverse();
        }
        for name in order {
            fixture.import(&fixture.path(name))?;
        }
        fixture.core.export(&fixture.path("out"))?;
        let text = fs::read_to_string(fixture.path("out/memory-store.json"))?;
        assert!(
            text.contains("Keeps wasps") && !text.contains("\"embedding_ref\": \"e1\",\n      \"metadata")
        );
        let vectors = fs::read_to_string(fixture.path("out/embeddings.json")).unwrap_or_default();
        assert!(!vectors.contains("\"e1\""), "a vector of the old text was exported: {vectors}");
        let report = verify::path(&fixture.path("out"), &VerifyOptions::default())?;
        ensure!(
            report.valid && !report.issues.iter().any(|one| one.check.starts_with("R-12")),
            "{:?}",
            report.issues
        );
    }
    Ok(())
}

#[test]
fn verify_reports_self_superseding_memories_and_invalid_languages_and_an_import_repairs_them() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let mut superseded = memory("own", "Keeps bees");
    superseded["status"] = "superseded".into();
    superseded["temporal"]["superseded_by"] = "own".into();
    superseded["metadata"] = json!({"language": "English"});
    let mut spelt = memory("spelt", "Sells honey");
    spelt["metadata"] = json!({"language": "pt_br"});
    spelt["provenance"]["conversation_ref"] = "nowhere".into();
    let path = fixture.write("odd/memory-store.json", &memory_store(&[superseded, spelt]))?;
    let report = verify::path(&path, &VerifyOptions::default())?;
    for (fixture, message) in [
        ("$.memories[0].temporal.superseded_by", "the memory itself"),
        ("$.memories[0].metadata.language", "English"),
        ("$.memories[1].metadata.language", "pt_br"),
        ("$.memories[1].provenance.conversation_ref", "nowhere"),
    ] {
        let found = report.issues.iter().any(|one| one.path == fixture && one.message.contains(message));
        assert!(found, "{fixture}: {:?}", report.issues);
    }
    fixture.import(&path)?;
    let stored = |id: &str| -> Result<_> { Ok(fixture.core.store.memory(id, None)?.context("it")?.memory) };
    let (superseded, spelt) = (stored("own")?, stored("spelt")?);
    assert_eq!((superseded.temporal.superseded_by, superseded.metadata.get("language")), (None, None));
    assert_eq!(superseded.metadata["pam:original"]["metadata.language"], "English");
    assert_eq!(spelt.metadata["language"], "pt-BR");
    let index = exported_index(&fixture, "out")?;
    assert_eq!(index[0]["id"], "nowhere", "a referenced conversation has no index entry");
    Ok(())
}
