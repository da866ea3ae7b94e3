//! Our own bundles, and which document wins if two contain the same memory.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use satchel_core::ingest::receipt::ImportStatus;
use satchel_tests::archive::{State, demo, only};

use super::{Place, balanced, changed, conversation, memory, message, store, warned};

/// Returns the text of a document's memories, byte for byte.
fn memories_text(bundle: &Path) -> Result<String> {
    let text = fs::read_to_string(bundle.join("memory-store.json"))?;
    let (_, rest) = text.split_once("\"memories\": ").context("memories")?;
    Ok(rest.split_once("\"relations\": ").context("relations")?.0.to_owned())
}

#[test]
fn our_own_bundle_comes_home_to_the_byte_as_a_folder_and_as_a_zip() -> Result<()> {
    let from = Place::filled()?;
    let bundle = from.path("bundle");
    let made = from.archive.export(&bundle)?;
    from.archive.export(&from.path("bundle.zip"))?;
    for name in ["bundle", "bundle.zip"] {
        let to = Place::new()?;
        let import = to.import(&from.path(name))?;
        assert_eq!(import.status, ImportStatus::Completed, "{import:?}");
        assert_eq!((import.warnings_found, import.skipped.len()), (0, 0), "{:?}", import.warnings);
        assert_eq!((import.memories.new, import.conversations.new), (made.memories, made.conversations));
        let signed = format!("the checksum fits the memories; signed by {}", made.signer);
        assert_eq!(import.reason.as_deref(), Some(signed.as_str()));
        let again = to.path("again");
        to.archive.export(&again)?;
        assert_eq!(memories_text(&again)?, memories_text(&bundle)?);
        assert_eq!(State::of(&again)?, State::of(&bundle)?);
    }
    Ok(())
}

#[test]
fn importing_a_bundle_twice_changes_nothing() -> Result<()> {
    let from = Place::filled()?;
    from.archive.export(&from.path("bundle"))?;
    let to = Place::new()?;
    to.import(&from.path("bundle"))?;
    let (revision, state) = (to.archive.store.revision(), to.archive.state()?);
    assert_eq!(to.import(&from.path("bundle"))?.status, ImportStatus::Unchanged);
    let third = only(to.archive.import_again(&from.path("bundle"))?)?;
    balanced(&third)?;
    assert_eq!((changed(&third), to.archive.store.revision()), (0, revision), "{third:?}");
    assert!(third.memories.unchanged > 0 && third.messages.unchanged > 0);
    assert_eq!(to.archive.state()?, state);
    Ok(())
}

#[test]
fn a_bundle_and_the_exports_it_was_made_of_unite_in_either_order() -> Result<()> {
    let from = Place::filled()?;
    let signer = from.archive.export(&from.path("bundle"))?.signer;
    let (revision, state) = (from.archive.store.revision(), from.archive.state()?);
    let home = from.import(&from.path("bundle"))?;
    assert_eq!((changed(&home), from.archive.store.revision()), (0, revision), "{home:?}");
    let to = Place::new()?;
    to.archive.trust(&signer)?;
    to.import(&from.path("bundle"))?;
    for sample in ["chatgpt-export", "claude-export"] {
        let import = to.import(&demo().join(sample))?;
        assert_eq!(changed(&import), 0, "{import:?}");
    }
    assert_eq!(to.archive.state()?, state);
    assert_eq!(from.archive.state()?, state);
    Ok(())
}

#[test]
fn an_incremental_export_without_its_base_is_refused_with_a_clear_word() -> Result<()> {
    let place = Place::new()?;
    let mut delta = store(&[memory("m", "Keeps bees")]);
    delta["export_type"] = "incremental".into();
    delta["base_export_id"] = "0b5e1a52-0000-4000-8000-000000000001".into();
    place.write("delta/conversations/c.json", &conversation("c", &[message("m", "Hello")]))?;
    place.write("delta/memory-store.json", &delta)?;
    let import = place.import(&place.path("delta"))?;
    assert_eq!(import.status, ImportStatus::Failed);
    let reason = import.reason.unwrap_or_default();
    assert!(reason.contains("incremental") && reason.contains("0b5e1a52"), "{reason}");
    assert_eq!(place.archive.state()?, State::default());
    Ok(())
}

#[test]
fn of_two_versions_of_a_memory_the_later_stands_in_either_order() -> Result<()> {
    let version = |content: &str, updated: &str| {
        let mut one = memory("m", content);
        one["temporal"]["updated_at"] = updated.into();
        store(&[one])
    };
    let (old, new) = (version("Old", "2026-02-01T00:00:00Z"), version("New", "2026-03-01T00:00:00Z"));
    let mut states = Vec::new();
    for (first, second, updated) in [(&old, &new, 1), (&new, &old, 0)] {
        let place = Place::new()?;
        place.import(&place.write("first.json", first)?)?;
        let import = place.import(&place.write("second.json", second)?)?;
        assert_eq!(import.memories.updated, updated, "{import:?}");
        assert_eq!(warned(&import, "memory \"m\"", "later or final"), updated == 0);
        states.push(place.archive.state()?);
    }
    assert_eq!(states[0], states[1]);
    assert_eq!(states[0].memories[0]["content"], "New");
    Ok(())
}
