//! Documents from unknown producers.

use std::{fs, io::Write as _, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{export::Format, ingest::ImportRequest};
use satchel_tests::archive::{State, demo, only};
use serde_json::json;

use super::{Place, balanced, conversation, memory, message, store, warned};

/// Writes a bundle from an unknown producer that uses everything PAM allows.
fn foreign(place: &Place) -> Result<PathBuf> {
    let mut first = memory("note/1", "Keeps bees");
    first["metadata"] = json!({"x-app": {"score": 0.1, "list": [null, 1e21]}});
    first["embedding_ref"] = "e1".into();
    first["provenance"]["conversation_ref"] = "talk-1".into();
    let second = memory("4c1b2f0a-0000-4000-8000-000000000002", "Sells honey");
    let mut document = store(&[first, second]);
    document["relations"] = json!([{
        "id": "edge 1", "from": "4c1b2f0a-0000-4000-8000-000000000002", "to": "note/1", "type": "extends",
        "confidence": 0.5, "created_at": "2026-01-02T03:04:05Z",
    }]);
    document["conversations_index"] = json!([
        {"id": "talk-1", "platform": "elsewhere", "temporal": {"created_at": "2026-01-02T03:04:05Z"},
         "storage": {"type": "file", "ref": "talks/one.json"}},
        {"id": "talk-2", "platform": "elsewhere", "temporal": {"created_at": "2026-01-02T03:04:05Z"},
         "storage": {"type": "file", "ref": "talks/lost.json"}},
    ]);
    let mut picture = message("m2", "and a picture");
    picture["attachments"] = json!([{"type": "image", "name": "hive.png", "ref": "media/hive.png"}]);
    let talk = conversation("talk-1", &[message("m1", "Hello"), picture, message("m3", "Bye")]);
    place.write("foreign/talks/one.json", &talk)?;
    place.write_bytes("foreign/media/hive.png", b"not really a picture")?;
    place.write(
        "foreign/embeddings.json",
        &json!({
            "schema": "portable-ai-memory-embeddings", "schema_version": "1.0",
            "embeddings": [{"id": "e1", "memory_id": "note/1", "model": "small", "dimensions": 2,
                            "created_at": "2026-01-02T03:04:05Z", "vector": [0.25, -1.5]}],
        }),
    )?;
    place.write("foreign/memory-store.json", &document)?;
    Ok(place.path("foreign"))
}

#[test]
fn a_strangers_bundle_keeps_its_ids_times_edges_vectors_and_files() -> Result<()> {
    let place = Place::new()?;
    let import = place.import(&foreign(&place)?)?;
    assert_eq!((import.memories.new, import.messages.new, import.attachments), (2, 3, 1), "{import:?}");
    assert_eq!(
        (import.conversations.found, import.conversations.new, import.conversations.skipped),
        (2, 2, 0),
        "the one without its file is known by the index"
    );
    assert!(
        warned(&import, "memory-store.json:$.conversations_index[1]", "not there"),
        "{:?}",
        import.warnings
    );
    assert_eq!(import.reason.as_deref(), Some("there is no checksum; not signed"));
    let store = &place.archive.store;
    let stored = store.memory("note/1", None)?.context("the memory")?.memory;
    assert_eq!(stored.temporal.created_at.to_string(), "2026-01-02T03:04:05+02:00");
    assert_eq!(stored.metadata["x-app"], json!({"score": 0.1, "list": [null, 1e21]}));
    assert_eq!(store.relation("edge 1", None)?.context("the edge")?.relation.confidence, Some(0.5));
    let vector = store.embedding("note/1", "small")?.context("the vector")?.embedding;
    assert_eq!((vector.id.as_str(), vector.vector), ("e1", Some(vec![0.25, -1.5])));
    let talk = store.conversation("talk-1", None)?.context("the conversation")?;
    let line: Vec<_> = talk.heads.iter().map(|head| (head.id.as_str(), head.parent.as_deref())).collect();
    assert_eq!(line, [("m1", None), ("m2", Some("m1")), ("m3", Some("m2"))]);
    let bodies: Vec<_> = store.all_bodies(&talk).collect::<Result<_, _>>()?;
    assert!(String::from_utf8_lossy(&bodies[1].1).contains("\"ref\":\"attachments/"));
    Ok(())
}

#[test]
fn single_documents_are_imported_under_any_name() -> Result<()> {
    let place = Place::new()?;
    let lone = place.write("mine.json", &store(&[memory("m", "Keeps bees")]))?;
    assert_eq!(place.import(&lone)?.memories.new, 1);
    let talk = place.write("talk", &conversation("c", &[message("m", "Hello")]))?;
    assert_eq!(place.import(&talk)?.messages.new, 1);
    let sorted = format!(
        r#"{{"id":"d","messages":[{}],"provider":{{"name":"elsewhere"}},"raw_metadata":{{"long":"{}"}},"schema":"portable-ai-memory-conversation","schema_version":"1.0","temporal":{{"created_at":"2026-01-02T03:04:05Z"}}}}"#,
        message("m", "Hello"),
        "x".repeat(10_000)
    );
    let late = place.write_bytes("late.json", sorted.as_bytes())?;
    assert_eq!(place.import(&late)?.conversations.new, 1);
    Ok(())
}

#[test]
fn pam_documents_photos_and_exports_in_one_folder_are_told_apart() -> Result<()> {
    let place = Place::new()?;
    let downloads = place.path("foreign");
    foreign(&place)?;
    for entry in fs::read_dir(demo().join("chatgpt-export"))? {
        let path = entry?.path();
        fs::copy(&path, downloads.join(path.file_name().context("a name")?))?;
    }
    place.write("foreign/other/memory-store.json", &store(&[memory("other", "Another store")]))?;
    place.write_bytes("foreign/holiday.jpg", b"\xff\xd8 a photo")?;
    let imports = place.archive.import(&downloads)?;
    let mut who: Vec<_> = imports.iter().map(|one| (one.provider.as_deref(), one.memories.found)).collect();
    who.sort_unstable();
    let plugin = who.iter().filter(|one| one.0 == Some("chatgpt")).count();
    assert_eq!((who.len(), plugin), (3, 1), "{who:?}");
    assert!(imports.iter().any(|one| warned(one, "files", "holiday.jpg")));
    let request = |provider: &str| ImportRequest {
        path: downloads.clone(),
        provider: Some(provider.to_owned()),
        again: true,
        dry_run: true,
        apply: None,
    };
    assert_eq!(place.archive.run(request("pam"))?.len(), 2);
    assert_eq!(place.archive.run(request("chatgpt"))?.len(), 1);
    Ok(())
}

#[test]
fn a_dry_run_counts_and_stores_nothing() -> Result<()> {
    let place = Place::new()?;
    let request =
        ImportRequest { path: foreign(&place)?, provider: None, again: false, dry_run: true, apply: None };
    let import = only(place.archive.run(request)?)?;
    balanced(&import)?;
    assert_eq!((import.memories.new, import.messages.new), (2, 3), "{import:?}");
    assert_eq!(place.archive.state()?, State::default());
    Ok(())
}

#[test]
fn a_bundle_in_a_zip_inside_a_folder_is_one_bundle() -> Result<()> {
    let place = Place::new()?;
    foreign(&place)?;
    let folder = place.path("downloads");
    fs::create_dir_all(&folder)?;
    let mut zip = zip::ZipWriter::new(fs::File::create(folder.join("pam.zip"))?);
    for name in ["memory-store.json", "embeddings.json", "talks/one.json", "media/hive.png"] {
        zip.start_file(format!("export/{name}"), zip::write::SimpleFileOptions::default())?;
        zip.write_all(&fs::read(place.path("foreign").join(name))?)?;
    }
    zip.finish()?;
    let import = place.import(&folder)?;
    assert_eq!((import.memories.new, import.messages.new, import.attachments), (2, 3, 1), "{import:?}");
    Ok(())
}

#[test]
fn what_a_document_brought_stands_in_the_view_of_memu_too() -> Result<()> {
    let place = Place::new()?;
    place.import(&foreign(&place)?)?;
    place.archive.export_as(Format::Memu, &place.path("memu"))?;
    let text = fs::read_to_string(place.path("memu").join("memories.json"))?;
    ensure!(text.contains("Keeps bees") && text.contains("Sells honey"), "{text}");
    Ok(())
}
