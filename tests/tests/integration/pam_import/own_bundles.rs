//! Our own bundles, and which document wins if two contain the same memory.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use satchel_core::ingest::receipt::ImportStatus;
use satchel_tests::test_core::{ExportedState, demo_folder, only_import};

use super::{
    ImportFixture, assert_balanced, changed_records, conversation, has_warning, memory, memory_store, message,
};

/// Returns the text of a document's memories, byte for byte.
fn read_memories_text(bundle: &Path) -> Result<String> {
    let text = fs::read_to_string(bundle.join("memory-store.json"))?;
    let (_, rest) = text.split_once("\"memories\": ").context("memories")?;
    Ok(rest.split_once("\"relations\": ").context("relations")?.0.to_owned())
}

#[test]
fn our_own_bundle_survives_the_round_trip_byte_for_byte() -> Result<()> {
    let from = ImportFixture::with_demo_exports()?;
    let bundle = from.path("bundle");
    let made = from.core.export(&bundle)?;
    from.core.export(&from.path("bundle.zip"))?;
    for name in ["bundle", "bundle.zip"] {
        let to = ImportFixture::new()?;
        let import = to.import(&from.path(name))?;
        assert_eq!(import.status, ImportStatus::Completed, "{import:?}");
        assert_eq!((import.warnings_found, import.skipped.len()), (0, 0), "{:?}", import.warnings);
        assert_eq!((import.memories.new, import.conversations.new), (made.memories, made.conversations));
        let signed = format!("the checksum fits the memories; signed by {}", made.signer);
        assert_eq!(import.reason.as_deref(), Some(signed.as_str()));
        let again = to.path("again");
        to.core.export(&again)?;
        assert_eq!(read_memories_text(&again)?, read_memories_text(&bundle)?);
        assert_eq!(ExportedState::read(&again)?, ExportedState::read(&bundle)?);
    }
    Ok(())
}

#[test]
fn importing_a_bundle_twice_changes_nothing() -> Result<()> {
    let from = ImportFixture::with_demo_exports()?;
    from.core.export(&from.path("bundle"))?;
    let to = ImportFixture::new()?;
    to.import(&from.path("bundle"))?;
    let (revision, state) = (to.core.store.revision(), to.core.state()?);
    assert_eq!(to.import(&from.path("bundle"))?.status, ImportStatus::Unchanged);
    let third = only_import(to.core.import_again(&from.path("bundle"))?)?;
    assert_balanced(&third)?;
    assert_eq!((changed_records(&third), to.core.store.revision()), (0, revision), "{third:?}");
    assert!(third.memories.unchanged > 0 && third.messages.unchanged > 0);
    assert_eq!(to.core.state()?, state);
    Ok(())
}

#[test]
fn a_bundle_and_the_exports_it_was_made_of_merge_in_either_order() -> Result<()> {
    let from = ImportFixture::with_demo_exports()?;
    let signer = from.core.export(&from.path("bundle"))?.signer;
    let (revision, state) = (from.core.store.revision(), from.core.state()?);
    let again = from.import(&from.path("bundle"))?;
    assert_eq!((changed_records(&again), from.core.store.revision()), (0, revision), "{again:?}");
    let to = ImportFixture::new()?;
    to.core.trust(&signer)?;
    to.import(&from.path("bundle"))?;
    for sample in ["chatgpt-export", "claude-export"] {
        let import = to.import(&demo_folder().join(sample))?;
        assert_eq!(changed_records(&import), 0, "{import:?}");
    }
    assert_eq!(to.core.state()?, state);
    assert_eq!(from.core.state()?, state);
    Ok(())
}

#[test]
fn an_incremental_export_without_its_base_is_refused_with_a_clear_reason() -> Result<()> {
    let fixture = ImportFixture::new()?;
    let mut delta = memory_store(&[memory("m", "Keeps bees")]);
    delta["export_type"] = "incremental".into();
    delta["base_export_id"] = "0b5e1a52-0000-4000-8000-000000000001".into();
    fixture.write("delta/conversations/c.json", &conversation("c", &[message("m", "Hello")]))?;
    fixture.write("delta/memory-store.json", &delta)?;
    let import = fixture.import(&fixture.path("delta"))?;
    assert_eq!(import.status, ImportStatus::Failed);
    let reason = import.reason.unwrap_or_default();
    assert!(reason.contains("incremental") && reason.contains("0b5e1a52"), "{reason}");
    assert_eq!(fixture.core.state()?, ExportedState::default());
    Ok(())
}

#[test]
fn the_later_of_two_versions_wins_in_either_order() -> Result<()> {
    let version = |content: &str, updated: &str| {
        let mut one = memory("m", content);
        one["temporal"]["updated_at"] = updated.into();
        memory_store(&[one])
    };
    let (old, new) = (version("Old", "2026-02-01T00:00:00Z"), version("New", "2026-03-01T00:00:00Z"));
    let mut states = Vec::new();
    for (first, second, updated) in [(&old, &new, 1), (&new, &old, 0)] {
        let fixture = ImportFixture::new()?;
        fixture.import(&fixture.write("first.json", first)?)?;
        let import = fixture.import(&fixture.write("second.json", second)?)?;
        assert_eq!(import.memories.updated, updated, "{import:?}");
        assert_eq!(has_warning(&import, "memory \"m\"", "later or final"), updated == 0);
        states.push(fixture.core.state()?);
    }
    assert_eq!(states[0], states[1]);
    assert_eq!(states[0].memories[0]["content"], "New");
    Ok(())
}
