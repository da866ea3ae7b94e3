//! An import keeps what a document says beside its records, and about records that did not come with it.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, Options};
use satchel_core::ingest::{
    Apply,
    undo::{Turn, TurnRequest},
};
use satchel_source::CancelToken;
use satchel_tests::archive::{State, only};
use serde_json::{Value, json};

use super::{Place, conversation, memory, message, store, warned};

/// Returns a store whose index lists conversations with various storage: in a database, at an address, without any, and
/// in files.
fn indexed() -> Value {
    let mut told = memory("told", "Keeps bees");
    told["provenance"]["conversation_ref"] = "base".into();
    let mut document = store(&[told, memory("hinted", "Sells honey")]);
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

fn index_of(place: &Place, name: &str) -> Result<Value> {
    place.archive.export(&place.path(name))?;
    let report = verify::path(&place.path(name), &Options::default())?;
    ensure!(report.valid, "{:?}", report.issues);
    let store: Value = serde_json::from_slice(&fs::read(place.path(name).join("memory-store.json"))?)?;
    Ok(store["conversations_index"].clone())
}

#[test]
fn a_lone_store_loses_nothing_of_its_index() -> Result<()> {
    let place = Place::new()?;
    let path = place.write("alone/memory-store.json", &indexed())?;
    let import = place.import(&path)?;
    assert_eq!((import.conversations.new, import.conversations.skipped), (4, 0), "{import:?}");
    assert!(warned(&import, "$.conversations_index[3]", "not there"), "{:?}", import.warnings);
    let index = index_of(&place, "out")?;
    let entries = index.as_array().context("a list")?;
    assert_eq!(entries.len(), 4);
    for entry in entries {
        assert_eq!(entry["title"], format!("Talk {}", entry["id"].as_str().unwrap_or_default()));
        assert_eq!((&entry["message_count"], &entry["tags"]), (&json!(12), &json!(["garden"])));
        assert_eq!(entry["temporal"], indexed()["conversations_index"][0]["temporal"]);
        let in_a_file = entry["storage"]["type"] == "file";
        assert!(!in_a_file, "{entry}");
    }
    assert_eq!(entries[1]["derived_memories"], json!(["hinted", "told"]), "{entries:?}");
    assert!(!place.path("out/conversations").exists());
    // Imported into another person's data directory, the index is the same.
    let there = Place::new()?;
    there.import(&place.path("out"))?;
    assert_eq!(index_of(&there, "again")?, index);
    Ok(())
}

#[test]
fn a_conversation_that_comes_later_takes_the_place_of_what_its_index_said() -> Result<()> {
    let mut told = conversation("base", &[message("m1", "Hello"), message("m2", "Bye")]);
    told["title"] = "The talk itself".into();
    told["temporal"] = json!({"created_at": "2025-05-01T08:00:00Z"});
    let mut states = Vec::new();
    for first in [true, false] {
        let place = Place::new()?;
        let index = place.write("alone/memory-store.json", &indexed())?;
        let file = place.write("talk/base.json", &told)?;
        let (one, other) = if first { (&index, &file) } else { (&file, &index) };
        place.import(one)?;
        let later = place.import(other)?;
        let counts = later.conversations;
        assert_eq!((counts.updated, counts.unchanged), if first { (1, 0) } else { (0, 1) }, "{later:?}");
        let entry = index_of(&place, "out")?[1].clone();
        assert_eq!((&entry["title"], &entry["message_count"]), (&json!("The talk itself"), &json!(2)));
        assert_eq!((&entry["tags"], &entry["storage"]["type"]), (&json!([]), &json!("file")), "{entry}");
        states.push(State::of(&place.path("out"))?);
        if first {
            let request = TurnRequest { id: &later.id, turn: Turn::Undo, dry_run: false, expected: None };
            place.archive.imports.turn(request, &CancelToken::new())?.context("the import")?;
            assert_eq!(index_of(&place, "undone")?[1]["title"], "Talk base", "the index still says it");
        }
    }
    assert_eq!(states[0], states[1], "either order");
    Ok(())
}

#[test]
fn vectors_that_come_before_their_memories_are_joined_later() -> Result<()> {
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
        let place = Place::new()?;
        let memories = place.write("store/memory-store.json", &indexed())?;
        let file = place.write("vectors/embeddings.json", &vectors)?;
        let import = if first { place.import(&file)? } else { place.import(&memories)? };
        let other = if first { place.import(&memories)? } else { place.import(&file)? };
        let brought = if first { import } else { other };
        let counts = brought.embeddings;
        assert_eq!((counts.found, counts.new, counts.skipped), (2, 1, 1), "{brought:?}");
        assert!(warned(&brought, "embedding \"e2\"", "dimensions"), "{:?}", brought.warnings);
        index_of(&place, "out")?;
        let text = fs::read_to_string(place.path("out/embeddings.json"))?;
        assert!(text.contains("\"e1\"") && !text.contains("\"e2\""), "{text}");
        states.push(text);
        let again = only(place.archive.import_again(&file)?)?;
        assert_eq!((again.embeddings.unchanged, again.embeddings.new), (1, 0), "{again:?}");
    }
    assert_eq!(states[0], states[1], "either order");
    Ok(())
}

#[test]
fn parents_by_the_providers_ids_are_followed_and_lost_ones_give_the_line() -> Result<()> {
    let place = Place::new()?;
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
    let path = place.write("talk.json", &conversation("talk", &messages))?;
    let import = place.import(&path)?;
    assert!(warned(&import, "talk.json", "8 of its messages"), "{:?}", import.warnings);
    assert!(warned(&import, "talk.json", "provider_message_id"), "{:?}", import.warnings);
    assert!(warned(&import, "talk.json:$.messages[1].role", "human"), "{:?}", import.warnings);
    let talk = place.archive.store.conversation("talk", None)?.context("the conversation")?;
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
fn a_line_whose_times_contradict_its_order_is_read_as_it_stands_and_told() -> Result<()> {
    let place = Place::new()?;
    let mut messages: Vec<Value> =
        (0..3).map(|at| message(&format!("m{at}"), &format!("Line {at}"))).collect();
    for (message, hour) in messages.iter_mut().zip([9, 11, 10]) {
        message["created_at"] = format!("2026-02-01T{hour:02}:00:00Z").into();
    }
    let import = place.import(&place.write("talk.json", &conversation("talk", &messages))?)?;
    assert!(warned(&import, "talk.json", "another order than their times"), "{:?}", import.warnings);
    let talk = place.archive.store.conversation("talk", None)?.context("the conversation")?;
    let parents: Vec<Option<&str>> = talk.heads.iter().map(|head| head.parent.as_deref()).collect();
    assert_eq!(parents, [None, Some("m0"), Some("m1")]);
    // Our own export marks it as a line, so there is no second warning.
    place.archive.export(&place.path("out"))?;
    let there = Place::new()?;
    assert_eq!(there.import(&place.path("out"))?.warnings_found, 0);
    Ok(())
}

#[test]
fn a_line_stays_without_parents_and_what_we_add_stands_under_our_key() -> Result<()> {
    let place = Place::new()?;
    let mut talk = conversation("talk", &[message("a", "One"), message("b", "Two"), message("c", "Three")]);
    talk["raw_metadata"] = json!({"mood": "good", "active_path": "mine"});
    place.import(&place.write("talk.json", &talk)?)?;
    let exported = |place: &Place, name: &str| -> Result<Value> {
        place.archive.export(&place.path(name))?;
        Ok(serde_json::from_slice(&fs::read(place.path(name).join("conversations/talk.json"))?)?)
    };
    let out = exported(&place, "out")?;
    for message in out["messages"].as_array().context("messages")? {
        assert!(message["parent_id"].is_null() && message["children_ids"] == json!([]), "{message}");
        let raw = message["raw_metadata"].as_object().context("metadata")?;
        assert_eq!(raw.keys().collect::<Vec<_>>(), ["satchel"], "{message}");
    }
    let raw = out["raw_metadata"].as_object().context("metadata")?;
    let mut keys: Vec<&String> = raw.keys().collect();
    keys.sort();
    assert_eq!(keys, ["active_path", "mood", "satchel"]);
    let there = Place::new()?;
    let import = there.import(&place.path("out"))?;
    assert_eq!(import.warnings_found, 0, "{:?}", import.warnings);
    assert_eq!(exported(&there, "again")?["messages"], out["messages"]);
    let heads = |place: &Place| -> Result<Vec<Option<String>>> {
        let talk = place.archive.store.conversation("talk", None)?.context("the conversation")?;
        Ok(talk.heads.into_iter().map(|head| head.parent).collect())
    };
    assert_eq!(heads(&there)?, [None, Some("a".to_owned()), Some("b".to_owned())]);
    let (revision, home) = (place.archive.store.revision(), place.import(&place.path("out"))?);
    assert_eq!((home.conversations.unchanged, place.archive.store.revision()), (1, revision), "{home:?}");
    Ok(())
}

#[test]
fn what_an_applied_document_says_of_its_owner_stands_in_our_exports() -> Result<()> {
    let place = Place::new()?;
    let mut document = store(&[memory("m", "Keeps bees")]);
    document["export_id"] = "0b5e1a52-0000-4000-8000-000000000009".into();
    document["spec_uri"] = "https://example.org/pam/1.0".into();
    document["type_registry"] = "https://example.org/types".into();
    document["owner"] =
        json!({"id": "someone", "did": "did:web:example.org", "created_at": "2020-01-01T00:00:00Z"});
    let header = |place: &Place, name: &str| -> Result<Value> {
        place.archive.export(&place.path(name))?;
        Ok(serde_json::from_slice(&fs::read(place.path(name).join("memory-store.json"))?)?)
    };
    let path = place.write("mine/memory-store.json", &document)?;
    place.archive.apply_by(&path, false, Apply::default())?;
    let out = header(&place, "out")?;
    for key in ["spec_uri", "type_registry", "owner"] {
        assert_eq!(out[key], document[key], "{key}");
    }
    // A document that is only imported counts as a stranger's, whatever owner it names.
    let mut forged = document.clone();
    forged["owner"]["did"] = "did:web:evil.example".into();
    forged["type_registry"] = "https://evil.example".into();
    place.import(&place.write("forged/memory-store.json", &forged)?)?;
    assert_eq!(header(&place, "again")?["owner"], document["owner"]);
    Ok(())
}

#[test]
fn a_strangers_changed_text_drops_the_vector_of_the_old_one() -> Result<()> {
    let mut told = memory("m", "Keeps bees");
    told["embedding_ref"] = "e1".into();
    let vectors = json!({
        "schema": "portable-ai-memory-embeddings", "schema_version": "1.0",
        "embeddings": [{"id": "e1", "memory_id": "m", "model": "small", "dimensions": 2,
                        "created_at": "2026-02-02T03:04:05Z", "vector": [0.25, -1.5]}],
    });
    let mut changed = memory("m", "Keeps wasps");
    changed["embedding_ref"] = "e1".into();
    changed["temporal"]["updated_at"] = "2026-03-02T03:04:05Z".into();
    let mut whole = store(&[told.clone()]);
    whole["export_id"] = "0b5e1a52-0000-4000-8000-000000000001".into();
    let full = store(&[changed.clone()]);
    let mut delta = full.clone();
    delta["export_type"] = "incremental".into();
    delta["base_export_id"] = whole["export_id"].clone();
    delta["since"] = "2026-02-02T03:04:05Z".into();
    for (old_first, new) in [(true, &full), (false, &full), (true, &delta)] {
        let place = Place::new()?;
        place.write("old/memory-store.json", &whole)?;
        place.write("old/embeddings.json", &vectors)?;
        place.write("new/memory-store.json", new)?;
        let mut order = ["old", "new"];
        if !old_first {
            order.reverse();
        }
        for name in order {
            place.import(&place.path(name))?;
        }
        place.archive.export(&place.path("out"))?;
        let text = fs::read_to_string(place.path("out/memory-store.json"))?;
        assert!(
            text.contains("Keeps wasps") && !text.contains("\"embedding_ref\": \"e1\",\n      \"metadata")
        );
        let vectors = fs::read_to_string(place.path("out/embeddings.json")).unwrap_or_default();
        assert!(!vectors.contains("\"e1\""), "the vector is of another text: {vectors}");
        let report = verify::path(&place.path("out"), &Options::default())?;
        ensure!(
            report.valid && !report.issues.iter().any(|one| one.check.starts_with("R-12")),
            "{:?}",
            report.issues
        );
    }
    Ok(())
}

#[test]
fn verify_finds_a_memory_that_replaces_itself_and_what_is_no_language_and_an_import_puts_them_right()
-> Result<()> {
    let place = Place::new()?;
    let mut own = memory("own", "Keeps bees");
    own["status"] = "superseded".into();
    own["temporal"]["superseded_by"] = "own".into();
    own["metadata"] = json!({"language": "English"});
    let mut spelt = memory("spelt", "Sells honey");
    spelt["metadata"] = json!({"language": "pt_br"});
    spelt["provenance"]["conversation_ref"] = "nowhere".into();
    let path = place.write("odd/memory-store.json", &store(&[own, spelt]))?;
    let report = verify::path(&path, &Options::default())?;
    for (place, message) in [
        ("$.memories[0].temporal.superseded_by", "the memory itself"),
        ("$.memories[0].metadata.language", "English"),
        ("$.memories[1].metadata.language", "pt_br"),
        ("$.memories[1].provenance.conversation_ref", "nowhere"),
    ] {
        let found = report.issues.iter().any(|one| one.path == place && one.message.contains(message));
        assert!(found, "{place}: {:?}", report.issues);
    }
    place.import(&path)?;
    let stored = |id: &str| -> Result<_> { Ok(place.archive.store.memory(id, None)?.context("it")?.memory) };
    let (own, spelt) = (stored("own")?, stored("spelt")?);
    assert_eq!((own.temporal.superseded_by, own.metadata.get("language")), (None, None));
    assert_eq!(own.metadata["pam:original"]["metadata.language"], "English");
    assert_eq!(spelt.metadata["language"], "pt-BR");
    let index = index_of(&place, "out")?;
    assert_eq!(index[0]["id"], "nowhere", "what a memory names has an entry");
    Ok(())
}
