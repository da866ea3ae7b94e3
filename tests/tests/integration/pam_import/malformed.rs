//! Documents that are malformed, truncated, modified or malicious.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, VerifyOptions};
use satchel_core::ingest::receipt::ImportStatus;
use satchel_pam::{hash::ContentHash, record::RecordKind};
use serde_json::{Value, json};

use super::{ImportFixture, conversation, has_skip, has_warning, memory, memory_store, message};

#[test]
fn a_malformed_record_is_skipped_with_its_path_and_the_rest_is_imported() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let mut no_hash_of_ours = memory("hash", "Wrong hash");
    no_hash_of_ours["content_hash"] = format!("sha256:{}", "0".repeat(64)).into();
    let mut no_content = memory("empty", "");
    no_content["content_hash"] = ContentHash::of("").to_string().into();
    let mut no_time = memory("time", "No time");
    no_time["temporal"] = json!({"created_at": "yesterday"});
    let mut document = memory_store(&[
        memory("good", "Good"),
        json!(7),
        no_time,
        no_content,
        no_hash_of_ours,
        memory("good", "Good"),
        memory("good", "Another with the same id"),
        memory("last", "Last"),
    ]);
    document["relations"] = json!([
        {"id": "r1", "from": "good", "to": "last", "type": "supports", "created_at": "2026-01-02T03:04:05Z"},
        {"id": "r2", "from": "good", "to": "nobody", "type": "supports", "created_at": "2026-01-02T03:04:05Z"},
        {"id": "r3", "from": "good"},
    ]);
    document["integrity"] = json!({"checksum": format!("sha256:{}", "1".repeat(64)), "total_memories": 3});
    fixture.write("bundle/memory-store.json", &document)?;
    let mut odd = conversation(
        "odd",
        &[message("m1", "One"), json!({"id": "m2"}), message("m1", "Twice"), message("m3", "Three")],
    );
    odd["provider"]["name"] = "Some Place".into();
    fixture.write("bundle/conversations/odd.json", &odd)?;
    let cut = format!(
        r#"{{"schema":"portable-ai-memory-conversation","schema_version":"1.0","id":"cut","provider":{{"name":"elsewhere"}},"temporal":{{"created_at":"2026-01-02T03:04:05Z"}},"messages":[{},{{"id":"m2","#,
        message("m1", "One")
    );
    fixture.write_bytes("bundle/conversations/cut.json", cut.as_bytes())?;
    let mut nameless = conversation("x", &[message("m", "Hello")]);
    nameless.as_object_mut().context("an object")?.remove("id");
    fixture.write("bundle/conversations/nameless.json", &nameless)?;

    let import = fixture.import(&fixture.path("bundle"))?;
    assert_eq!(import.status, ImportStatus::CompletedWithSkips);
    let counts = import.memories;
    assert_eq!((counts.found, counts.new, counts.skipped), (8, 4, 4), "{:?}", import.skipped);
    let counts = import.conversations;
    assert_eq!((counts.found, counts.new, counts.skipped), (3, 2, 1), "{:?}", import.skipped);
    for (kind, locator, reason) in [
        (RecordKind::Memory, "memory-store.json:$.memories[1]", "not an object"),
        (RecordKind::Memory, "memory-store.json:$.memories[2]", "$.memories[2].temporal.created_at"),
        (RecordKind::Memory, "memory-store.json:$.memories[3]", "content is empty"),
        (RecordKind::Memory, "memory-store.json:$.memories[5]", "the first is kept"),
        (RecordKind::Message, "odd.json:$.messages[1]", "$.messages[1].role is missing"),
        (RecordKind::Message, "odd.json:$.messages[2]", "the first is kept"),
        (RecordKind::Conversation, "nameless.json", "$.id is missing"),
        (RecordKind::File, &format!("cut.json:{}", cut.len()), "cut off"),
    ] {
        assert!(has_skip(&import, kind, locator, reason), "{locator}: {:#?}", import.skipped);
    }
    for (locator, message) in [
        ("$.memories[4]", "content_hash was"),
        ("$.memories[6]", "another memory has the id"),
        ("relation \"r2\"", "no memory \"nobody\""),
        ("$.relations[2]", "is missing"),
        ("$.integrity.checksum", "an entry is not an object"),
        ("$.integrity.total_memories", "is 3, but there are 8"),
        ("odd.json", "provider.name was"),
    ] {
        assert!(has_warning(&import, locator, message), "{locator}: {:#?}", import.warnings);
    }
    let bundle = fixture.path("out");
    fixture.core.export(&bundle)?;
    let report = verify::path(&bundle, &VerifyOptions::default())?;
    ensure!(report.valid, "the repaired documents are not valid: {:?}", report.issues);
    Ok(())
}

#[test]
fn a_changed_signature_or_memory_gives_a_warning_and_is_imported() -> Result<()> {
    let from = ImportFixture::with_demo_exports()?;
    let bundle = from.path("bundle");
    from.core.export(&bundle)?;
    let text = fs::read_to_string(bundle.join("memory-store.json"))?;
    for (part, replacement, locator, message) in [
        ("\"export_id\": \"", "\"export_id\": \"0", "$.signature", "not valid"),
        ("\"tags\": []", "\"tags\": [\"x\"]", "$.integrity.checksum", "not those that were exported"),
    ] {
        ensure!(text.contains(part), "nothing to change");
        let to = ImportFixture::new()?;
        let path = to.write_bytes("memory-store.json", text.replacen(part, replacement, 1).as_bytes())?;
        let import = to.import(&path)?;
        assert!(has_warning(&import, locator, message), "{part}: {:?}", import.warnings);
        assert!(import.memories.new > 0);
    }
    Ok(())
}

#[test]
fn complete_memories_of_a_truncated_store_are_imported_and_the_full_store_completes_them() -> Result<()> {
    let memories: Vec<Value> = (0..20).map(|n| memory(&format!("m{n}"), &format!("Fact {n}"))).collect();
    let text = format!(
        r#"{{"schema":"portable-ai-memory","schema_version":"1.0","owner":{{"id":"someone"}},"memories":{}}}"#,
        Value::Array(memories)
    );
    let text = text.as_bytes();
    let fixture = ImportFixture::new()?;
    let mut before = 0;
    for end in (80..text.len()).step_by(211) {
        let path = fixture.write_bytes("cut.json", &text[..end])?;
        let import = fixture.import(&path)?;
        assert_eq!(import.status, ImportStatus::CompletedWithSkips, "cut at {end}: {import:?}");
        assert!(
            has_skip(&import, RecordKind::File, &format!("cut.json:{end}"), "cut off"),
            "{:?}",
            import.skipped
        );
        let known = import.memories.new + import.memories.unchanged;
        assert!(known >= before && known == import.memories.found, "cut at {end}: {import:?}");
        before = known;
    }
    let whole = fixture.import(&fixture.write_bytes("whole.json", text)?)?;
    assert_eq!((whole.memories.found, whole.skipped.len()), (20, 0));
    assert_eq!(fixture.core.state()?.memories.len(), 20);
    Ok(())
}

/// Returns the UUID that has the same key as `id`.
fn id_with_equal_key(id: &str) -> Result<String> {
    let key = satchel_store::record_key(id);
    let hex = format!("{:032x}", u128::from_be_bytes(key));
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    let uuid = parts.join("-");
    ensure!(satchel_store::record_key(&uuid) == key, "the twin has the key");
    Ok(uuid)
}

#[test]
fn hostile_documents_do_not_affect_others() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let long = "x".repeat(5_000);
    let mut odd = memory("odd", "Odd");
    odd["summary"] = long.as_str().into();
    let text = memory_store(&[
        memory("first", "First"),
        json!("DEEP"),
        memory(&long, "An endless id"),
        memory(&id_with_equal_key("first")?, "The twin of the first"),
        odd,
        memory("last", "Last"),
    ])
    .to_string()
    .replace("\"DEEP\"", &deep);
    fixture.write_bytes("hostile/memory-store.json", text.as_bytes())?;
    let many: Vec<Value> = (0..20_000)
        .map(|n| {
            let mut one = message(&format!("n{n}"), "x");
            one["parent_id"] = format!("n{}", (n + 1) % 20_000).into();
            one
        })
        .collect();
    fixture.write("hostile/conversations/circle.json", &conversation("circle", &many))?;
    fixture.write("hostile/conversations/long.json", &conversation(&long, &[message("m", "x")]))?;
    fixture.write(
        "hostile/conversations/twin.json",
        &conversation(&id_with_equal_key("circle")?, &[message("m", "x")]),
    )?;
    fixture.write(
        "hostile/conversations/ids.json",
        &conversation("ids", &[message(&long, "x"), message("m", "x")]),
    )?;
    // The store remembers under such a name what an import brought.
    let reserved = "parts 0a1b2c3d-0000-4000-8000-00000000e777 0";
    fixture
        .write("hostile/conversations/reserved.json", &conversation(reserved, &[message("reserved", "x")]))?;
    fixture.write_bytes(
        "hostile/conversations/garbage.json",
        b"{\"schema\":\"portable-ai-memory-conversation\",\x00\xff",
    )?;
    fixture.write(
        "hostile/conversations/two.json",
        &json!({"schema": "portable-ai-memory-conversation", "schema_version": "2.0"}),
    )?;
    fixture.write("hostile/conversations/good.json", &conversation("good", &[message("m", "x")]))?;
    let import = fixture.import(&fixture.path("hostile"))?;
    assert_eq!(import.status, ImportStatus::CompletedWithSkips, "{:?}", import.reason);
    assert_eq!((import.memories.found, import.memories.new), (6, 3), "{:#?}", import.skipped);
    assert_eq!((import.conversations.found, import.conversations.new), (8, 3), "{:#?}", import.skipped);
    let locator = format!("{reserved:?}");
    ensure!(has_skip(&import, RecordKind::Conversation, &locator, "reserved"), "{:#?}", import.skipped);
    assert!(
        has_skip(&import, RecordKind::Memory, "$.memories[1]", "levels of nesting"),
        "{:#?}",
        import.skipped
    );
    for id in ["first", "odd", "last"] {
        ensure!(fixture.core.store.memory(id, None)?.is_some(), "{id} is missing");
    }
    ensure!(fixture.core.store.conversation("good", None)?.is_some());
    // A twin that arrives later collides with the stored memory.
    let late = fixture
        .write("late.json", &memory_store(&[memory(&id_with_equal_key("last")?, "The twin of the last")]))?;
    let import = fixture.import(&late)?;
    assert_eq!((import.memories.found, import.memories.skipped), (1, 1), "{import:?}");
    fixture.core.export(&fixture.path("out"))?;
    let report = verify::path(&fixture.path("out"), &VerifyOptions::default())?;
    ensure!(report.valid, "{:?}", report.issues);
    Ok(())
}
