//! Documents from unknown producers.

use std::{fs, io::Write as _, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{export::ExportFormat, ingest::ImportRequest};
use satchel_tests::test_core::{ExportedState, demo_folder, only_import};
use serde_json::json;

use super::{ImportFixture, assert_balanced, conversation, has_warning, memory, memory_store, message};

/// Writes a bundle from an unknown producer that uses everything PAM allows.
fn write_foreign_bundle(fixture: &ImportFixture) -> Result<PathBuf> {
    let mut first = memory("note/1", "Keeps bees");
    first["metadata"] = json!({"x-app": {"score": 0.1, "list": [null, 1e21]}});
    first["embedding_ref"] = "e1".into();
    first["provenance"]["conversation_ref"] = "talk-1".into();
    let second = memory("4c1b2f0a-0000-4000-8000-000000000002", "Sells honey");
    let mut document = memory_store(&[first, second]);
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
    fixture.write("foreign/talks/one.json", &talk)?;
    fixture.write_bytes("foreign/media/hive.png", b"not really a picture")?;
    fixture.write(
        "foreign/embeddings.json",
        &json!({
            "schema": "portable-ai-memory-embeddings", "schema_version": "1.0",
            "embeddings": [{"id": "e1", "memory_id": "note/1", "model": "small", "dimensions": 2,
                            "created_at": "2026-01-02T03:04:05Z", "vector": [0.25, -1.5]}],
        }),
    )?;
    fixture.write("foreign/memory-store.json", &document)?;
    Ok(fixture.path("foreign"))
}

#[test]
fn a_foreign_bundle_keeps_its_ids_times_relations_vectors_and_files() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let import = fixture.import(&write_foreign_bundle(&fixture)?)?;
    assert_eq!((import.memories.new, import.messages.new, import.attachments), (2, 3, 1), "{import:?}");
    assert_eq!(
        (import.conversations.found, import.conversations.new, import.conversations.skipped),
        (2, 2, 0),
        "the conversation without its file has its index entry"
    );
    assert!(
        has_warning(&import, "memory-store.json:$.conversations_index[1]", "not there"),
        "{:?}",
        import.warnings
    );
    assert_eq!(import.reason.as_deref(), Some("there is no checksum; not signed"));
    let store = &fixture.core.store;
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
    let fixture = ImportFixture::new()?;
    let lone = fixture.write("mine.json", &memory_store(&[memory("m", "Keeps bees")]))?;
    assert_eq!(fixture.import(&lone)?.memories.new, 1);
    let talk = fixture.write("talk", &conversation("c", &[message("m", "Hello")]))?;
    assert_eq!(fixture.import(&talk)?.messages.new, 1);
    let sorted = format!(
        r#"{{"id":"d","messages":[{}],"provider":{{"name":"elsewhere"}},"raw_metadata":{{"long":"{}"}},"schema":"portable-ai-memory-conversation","schema_version":"1.0","temporal":{{"created_at":"2026-01-02T03:04:05Z"}}}}"#,
        message("m", "Hello"),
        "x".repeat(10_000)
    );
    let late = fixture.write_bytes("late.json", sorted.as_bytes())?;
    assert_eq!(fixture.import(&late)?.conversations.new, 1);
    Ok(())
}

#[test]
fn pam_documents_photos_and_exports_in_one_folder_are_distinguished() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let downloads = fixture.path("foreign");
    write_foreign_bundle(&fixture)?;
    for entry in fs::read_dir(demo_folder().join("chatgpt-export"))? {
        let path = entry?.path();
        fs::copy(&path, downloads.join(path.file_name().context("a name")?))?;
    }
    fixture.write("foreign/other/memory-store.json", &memory_store(&[memory("other", "Another store")]))?;
    fixture.write_bytes("foreign/holiday.jpg", b"\xff\xd8 a photo")?;
    let imports = fixture.core.import(&downloads)?;
    let mut found: Vec<_> = imports.iter().map(|one| (one.provider.as_deref(), one.memories.found)).collect();
    found.sort_unstable();
    let plugin = found.iter().filter(|one| one.0 == Some("chatgpt")).count();
    assert_eq!((found.len(), plugin), (3, 1), "{found:?}");
    assert!(imports.iter().any(|one| has_warning(one, "files", "holiday.jpg")));
    let request = |provider: &str| ImportRequest {
        path: downloads.clone(),
        provider: Some(provider.to_owned()),
        plugin: None,
        again: true,
        dry_run: true,
        apply: None,
    };
    assert_eq!(fixture.core.run(request("pam"))?.len(), 2);
    assert_eq!(fixture.core.run(request("chatgpt"))?.len(), 1);
    Ok(())
}

#[test]
fn a_dry_run_counts_and_stores_nothing() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let request = ImportRequest {
        path: write_foreign_bundle(&fixture)?,
        provider: None,
        plugin: None,
        again: false,
        dry_run: true,
        apply: None,
    };
    let import = only_import(fixture.core.run(request)?)?;
    assert_balanced(&import)?;
    assert_eq!((import.memories.new, import.messages.new), (2, 3), "{import:?}");
    assert_eq!(fixture.core.state()?, ExportedState::default());
    Ok(())
}

#[test]
fn a_bundle_in_a_zip_inside_a_folder_is_one_bundle() -> Result<()> {
    let fixture = ImportFixture::new()?;
    write_foreign_bundle(&fixture)?;
    let folder = fixture.path("downloads");
    fs::create_dir_all(&folder)?;
    let mut zip = zip::ZipWriter::new(fs::File::create(folder.join("pam.zip"))?);
    for name in ["memory-store.json", "embeddings.json", "talks/one.json", "media/hive.png"] {
        zip.start_file(format!("export/{name}"), zip::write::SimpleFileOptions::default())?;
        zip.write_all(&fs::read(fixture.path("foreign").join(name))?)?;
    }
    zip.finish()?;
    let import = fixture.import(&folder)?;
    assert_eq!((import.memories.new, import.messages.new, import.attachments), (2, 3, 1), "{import:?}");
    Ok(())
}

#[test]
fn memories_of_a_pam_document_are_in_the_memu_export() -> Result<()> {
    let fixture = ImportFixture::new()?;
    fixture.import(&write_foreign_bundle(&fixture)?)?;
    fixture.core.export_as(ExportFormat::Memu, &fixture.path("memu"))?;
    let text = fs::read_to_string(fixture.path("memu").join("memories.json"))?;
    ensure!(text.contains("Keeps bees") && text.contains("Sells honey"), "{text}");
    Ok(())
}
