//! Tests of bundles that are merged into another data directory.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    export::{FULL, INCREMENTAL},
    ingest::{
        Apply,
        receipt::{DifferenceKind, DocumentStanding, ImportRecord, ImportStatus},
        undo::{UndoDirection, UndoRequest},
    },
};
use satchel_pam::{embedding::Embedding, memory::Status, time::Timestamp};
use satchel_source::CancelToken;
use satchel_store::Change;
use satchel_tests::test_core::{ExportedState, TestCore, demo_folder};

use super::random_store::{RandomStore, memory, read_memories_text, read_vectors};

const T: i64 = 1_710_000_000_000_000;

fn assert_completed(import: &ImportRecord) -> Result<()> {
    ensure!(import.status == ImportStatus::Completed, "{import:?}");
    Ok(())
}

fn failure_reason(import: ImportRecord) -> Result<String> {
    ensure!(import.status == ImportStatus::Failed, "{import:?}");
    import.reason.context("a reason")
}

/// Returns the memories that a data directory would export, byte for byte.
fn exported_memories_text(core: &TestCore) -> Result<String> {
    let folder = tempfile::tempdir()?;
    core.export(&folder.path().join("bundle"))?;
    read_memories_text(&folder.path().join("bundle"))
}

/// Returns the vectors that a data directory would export.
fn exported_vectors(core: &TestCore) -> Result<BTreeMap<String, Embedding>> {
    let folder = tempfile::tempdir()?;
    core.export(&folder.path().join("bundle"))?;
    read_vectors(&folder.path().join("bundle"))
}

/// Checks the properties of a merge over random histories: a full export recreates the same store; a base and its changes
/// give the full store at the later revision; a second merge of the same bundle changes nothing; an older delta after a
/// newer one changes nothing.
#[test]
fn a_base_and_its_changes_recreate_the_same_store() -> Result<()> {
    for seed in 100..104 {
        let mut exporter = RandomStore::new(seed)?;
        exporter.step()?;
        exporter.step()?;
        let (base, whole) = exporter.export_full("base")?;
        exporter.step()?;
        let (_, early) = exporter.export_changes(&base.export_id, "early")?;
        exporter.step()?;
        let (_, late) = exporter.export_changes(&base.export_id, "late")?;
        let (_, last) = exporter.export_full("last")?;
        let there = TestCore::open(&exporter.folder.path().join("there"))?;
        assert_completed(&there.apply(&whole)?)?;
        assert_eq!(exported_memories_text(&there)?, read_memories_text(&whole)?, "seed {seed}");
        for delta in [&early, &late] {
            assert_completed(&there.apply(delta)?)?;
        }
        assert_eq!(exported_memories_text(&there)?, read_memories_text(&last)?, "seed {seed}");
        assert_eq!(
            there.state()?.relations.len(),
            ExportedState::read(&last)?.relations.len(),
            "seed {seed}"
        );
        assert_eq!(exported_vectors(&there)?, read_vectors(&last)?, "seed {seed}");
        let (revision, state) = (there.store.revision(), there.state()?);
        for again in [&late, &early, &whole, &late] {
            assert_completed(&there.apply(again)?)?;
            assert_eq!(there.state()?, state, "seed {seed}: {again:?}");
            assert_eq!(exported_vectors(&there)?, read_vectors(&last)?, "seed {seed}: {again:?}");
        }
        assert_eq!(there.store.revision(), revision, "seed {seed}: an applied bundle was written again");
        let straight = TestCore::open(&exporter.folder.path().join("straight"))?;
        assert_completed(&straight.apply(&whole)?)?;
        assert_completed(&straight.apply(&late)?)?;
        assert_eq!(exported_memories_text(&straight)?, read_memories_text(&last)?, "seed {seed}");
        assert_eq!(exported_vectors(&straight)?, read_vectors(&last)?, "seed {seed}");
    }
    Ok(())
}

#[test]
fn a_base_and_its_changes_transfer_conversations_and_memories() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = TestCore::open(&folder.path().join("here"))?;
    here.import(&demo_folder().join("chatgpt-export"))?;
    let (full, delta) = (folder.path().join("full"), folder.path().join("delta.zip"));
    here.export(&full)?;
    here.import(&demo_folder().join("claude-export"))?;
    here.export_changes(None, &delta)?;
    let there = TestCore::open(&folder.path().join("there"))?;
    assert_completed(&there.apply(&full)?)?;
    let import = there.apply(&delta)?;
    assert_completed(&import)?;
    ensure!(import.conversations.new > 0 && import.memories.new > 0, "{import:?}");
    assert_eq!(there.state()?, here.state()?);
    assert_eq!(exported_memories_text(&there)?, exported_memories_text(&here)?);
    let listed = there.exports.list(None, 10)?.items;
    let kinds: Vec<_> = listed.iter().filter(|one| one.applied).map(|one| one.export_type.as_str()).collect();
    assert_eq!(kinds, [INCREMENTAL, FULL]);
    Ok(())
}

#[test]
fn changes_without_their_base_and_bundles_of_another_owner_are_refused() -> Result<()> {
    let mut exporter = RandomStore::new(20)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    let (base, whole) = exporter.export_full("full")?;
    exporter.put(&memory("n", "Has a garden", T))?;
    let (_, changes) = exporter.export_changes(&base.export_id, "delta")?;
    let there = TestCore::open(&exporter.folder.path().join("there"))?;
    let refused = failure_reason(there.apply(&changes)?)?;
    ensure!(refused.contains(&base.export_id) && refused.contains("--force"), "{refused}");
    let import = satchel_tests::test_core::only_import(there.import(&changes)?)?;
    ensure!(failure_reason(import)?.contains(&base.export_id));
    assert_eq!(there.state()?, ExportedState::default());
    assert_completed(&there.apply_with(
        &changes,
        false,
        Apply { force: true, any_owner: true, ..Apply::default() },
    )?)?;
    // This store has exported before, so it has an owner of its own.
    let refused = failure_reason(there.apply(&whole)?)?;
    ensure!(refused.contains("owner") && refused.contains("--any-owner"), "{refused}");
    assert_completed(&there.apply_with(&whole, false, Apply { any_owner: true, ..Apply::default() })?)?;
    assert_eq!(there.state()?, exporter.core.state()?);
    Ok(())
}

#[test]
fn a_new_store_adopts_the_owner_of_the_first_applied_export() -> Result<()> {
    let mut exporter = RandomStore::new(21)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    let (_, whole) = exporter.export_full("full")?;
    let there = TestCore::open(&exporter.folder.path().join("there"))?;
    assert_eq!(there.exports.owner()?, None);
    assert_completed(&there.apply(&whole)?)?;
    let owner = exporter.core.exports.owner()?;
    assert_eq!(there.exports.owner()?, owner);
    there.export(&exporter.folder.path().join("own"))?;
    assert_eq!(there.exports.owner()?, owner);
    Ok(())
}

#[test]
fn an_older_version_does_not_replace_a_newer_one_and_a_retraction_is_final() -> Result<()> {
    let version = |content: &str, at: i64, status| {
        let mut one = memory("m", content, T);
        one.temporal.updated_at = Some(Timestamp::saturating(T + at));
        one.status = status;
        one
    };
    let mut exporter = RandomStore::new(22)?;
    let mut bundle = |name: &str, memory: &satchel_pam::memory::Memory| -> Result<_> {
        exporter.put(memory)?;
        Ok(exporter.export_full(name)?.1)
    };
    let old = bundle("old", &version("Old", 1_000_000, Status::Active))?;
    let new = bundle("new", &version("New", 9_000_000, Status::Active))?;
    let retracted = bundle("gone", &version("Gone", 2_000_000, Status::Retracted))?;
    let there = TestCore::open(&exporter.folder.path().join("there"))?;
    let shown = |core: &TestCore| -> Result<String> {
        Ok(core.store.memory("m", None)?.context("a memory")?.memory.content)
    };
    assert_completed(&there.apply(&new)?)?;
    let conflict = there.apply(&old)?;
    ensure!(conflict.warnings.iter().any(|one| one.message.contains("later or final")), "{conflict:?}");
    assert_eq!(shown(&there)?, "New");
    assert_completed(&there.apply(&retracted)?)?;
    assert_eq!(shown(&there)?, "Gone");
    for back in [&new, &old] {
        there.apply(back)?;
        assert_eq!(shown(&there)?, "Gone");
    }
    let versions = there.store.memory_versions("m")?;
    assert_eq!(versions.iter().map(|one| one.memory.content.as_str()).collect::<Vec<_>>(), ["New", "Gone"]);
    Ok(())
}

#[test]
fn a_dry_run_shows_what_would_change_and_stores_nothing() -> Result<()> {
    let mut exporter = RandomStore::new(23)?;
    exporter.put(&memory("kept", "Keeps bees", T))?;
    exporter.put(&memory("old", "Oldest", T - 1_000_000))?;
    let (_, oldest) = exporter.export_full("oldest")?;
    exporter.put(&memory("old", "Old", T))?;
    let (base, whole) = exporter.export_full("full")?;
    let mut changed = memory("old", "New", T);
    changed.temporal.updated_at = Some(Timestamp::saturating(T + 1_000_000));
    exporter.put(&changed)?;
    exporter.put(&memory("fresh", "Has a garden", T))?;
    let (_, changes) = exporter.export_changes(&base.export_id, "delta")?;
    let there = TestCore::open(&exporter.folder.path().join("there"))?;
    assert_completed(&there.apply(&whole)?)?;
    let revision = there.store.revision();
    let dry = there.apply_with(&changes, true, Apply::default())?;
    let differences: Vec<_> =
        dry.differences.iter().map(|one| (one.id.as_str(), one.kind, one.came.1.as_str())).collect();
    assert_eq!(
        differences,
        [("fresh", DifferenceKind::New, "Has a garden"), ("old", DifferenceKind::Changed, "New")]
    );
    assert_eq!(dry.differences[1].held, Some((Status::Active, "Old".to_owned())));
    assert_eq!((there.store.revision(), dry.differences_found), (revision, 2));
    assert_completed(&there.apply(&changes)?)?;
    let older = there.apply_with(&oldest, true, Apply::default())?;
    assert_eq!((older.differences.len(), older.differences[0].kind), (1, DifferenceKind::Kept));
    assert_eq!(older.differences[0].held, Some((Status::Active, "New".to_owned())));
    Ok(())
}

/// Returns a relation between the memories that [`put_relation`] stores.
fn relation(at: i64) -> satchel_pam::relation::Relation {
    satchel_pam::relation::Relation {
        id: "edge".into(),
        from: "one".into(),
        to: "two".into(),
        relation_type: satchel_pam::relation::RelationType::RelatedTo,
        confidence: None,
        created_at: Timestamp::saturating(T + at),
    }
}

/// Stores two memories and a relation between them.
fn put_relation(exporter: &mut RandomStore) -> Result<()> {
    exporter.put(&memory("one", "One", T))?;
    exporter.put(&memory("two", "Two", T))?;
    exporter.commit(vec![Change::Relation(relation(0))])?;
    Ok(())
}

#[test]
fn a_withdrawn_relation_is_withdrawn_where_the_signed_changes_are_applied() -> Result<()> {
    let mut exporter = RandomStore::new(24)?;
    put_relation(&mut exporter)?;
    let (base, whole) = exporter.export_full("full")?;
    exporter.commit(vec![Change::WithdrawRelation("edge".into())])?;
    let (_, without) = exporter.export_changes(&base.export_id, "without")?;
    exporter.commit(vec![Change::Relation(relation(5_000_000))])?;
    let (_, again) = exporter.export_changes(&base.export_id, "again")?;
    let there = TestCore::open(&exporter.folder.path().join("there"))?;
    let relation_exists = |core: &TestCore| -> Result<bool> {
        Ok(core.store.relation("edge", None)?.is_some_and(|record| !record.withdrawn))
    };
    assert_completed(&there.apply(&whole)?)?;
    assert!(relation_exists(&there)?);
    forge_manifest(&without, &exporter.folder.path().join("forged"))?;
    let refused = failure_reason(there.apply(&exporter.folder.path().join("forged"))?)?;
    ensure!(refused.contains("satchel verify") && refused.contains("--force"), "{refused}");
    there.import(&exporter.folder.path().join("forged"))?;
    assert!(relation_exists(&there)?, "unsigned changes withdrew the relation");
    assert_completed(&there.apply(&without)?)?;
    assert!(!relation_exists(&there)?);
    assert_completed(&there.apply(&whole)?)?;
    assert!(!relation_exists(&there)?, "the base restored what was withdrawn");
    assert_completed(&there.apply(&again)?)?;
    assert!(relation_exists(&there)?, "a new relation is missing");
    Ok(())
}

#[test]
fn changes_signed_with_another_key_than_their_base_withdraw_nothing() -> Result<()> {
    let mut exporter = RandomStore::new(27)?;
    put_relation(&mut exporter)?;
    let (base, whole) = exporter.export_full("full")?;
    exporter.commit(vec![Change::WithdrawRelation("edge".into())])?;
    // Anybody can create a key and sign with it.
    fs::remove_dir_all(exporter.folder.path().join("data/keys"))?;
    exporter.core.exports.start_new_identity()?;
    let (_, without) = exporter.export_changes(&base.export_id, "without")?;
    let there = TestCore::open(&exporter.folder.path().join("there"))?;
    assert_completed(&there.apply(&whole)?)?;
    let any = Apply { any_owner: true, ..Apply::default() };
    let warned = there.apply_with(&without, false, any)?;
    ensure!(warned.warnings.iter().any(|one| one.message.contains("signed with another key")), "{warned:?}");
    let stored = there.store.relation("edge", None)?.context("it is stored")?;
    assert!(!stored.withdrawn);
    Ok(())
}

#[test]
fn undoing_an_import_restores_the_relation_that_it_withdrew() -> Result<()> {
    let mut exporter = RandomStore::new(25)?;
    put_relation(&mut exporter)?;
    let (base, whole) = exporter.export_full("full")?;
    exporter.commit(vec![Change::WithdrawRelation("edge".into())])?;
    let (_, without) = exporter.export_changes(&base.export_id, "without")?;
    let there = TestCore::open(&exporter.folder.path().join("there"))?;
    let relation_exists = || -> Result<bool> {
        Ok(there.store.relation("edge", None)?.is_some_and(|record| !record.withdrawn))
    };
    there.apply(&whole)?;
    let import = there.apply(&without)?;
    assert!(!relation_exists()?);
    let request =
        UndoRequest { id: &import.id, direction: UndoDirection::Undo, dry_run: false, expected: None };
    there.imports.undo_or_redo(request, &CancelToken::new())?.context("the import")?;
    assert!(relation_exists()?, "it is still withdrawn after the undo");
    Ok(())
}

#[test]
fn a_version_that_was_exported_again_stays_current() -> Result<()> {
    let mut exporter = RandomStore::new(26)?;
    let (one, other) = (memory("m", "One", T), memory("m", "Other", T));
    let mut bundles = Vec::new();
    for (at, version) in [&one, &other, &one].into_iter().enumerate() {
        exporter.put(version)?;
        bundles.push(exporter.export_full(&format!("full-{at}"))?.1);
    }
    let there = TestCore::open(&exporter.folder.path().join("there"))?;
    for bundle in &bundles {
        there.apply(bundle)?;
    }
    let shown =
        || -> Result<String> { Ok(there.store.memory("m", None)?.context("it is shown")?.memory.content) };
    assert_eq!(shown()?, "One");
    // The undo makes the store derive its memories again from everything that is stored.
    let others = there.import(&demo_folder().join("claude-export"))?;
    super::undone_imports::undo(&there, &others[0].id)?;
    assert_eq!(shown()?, "One");
    Ok(())
}

/// Copies a bundle with a manifest other than the signed one.
fn forge_manifest(bundle: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for name in ["memory-store.json", "satchel-manifest.json", "satchel-manifest.sig"] {
        fs::copy(bundle.join(name), to.join(name))?;
    }
    let manifest = to.join("satchel-manifest.json");
    let text = fs::read_to_string(&manifest)?;
    ensure!(text.contains("\"withdrawn_relations\":[\"edge\"]"), "{text}");
    Ok(fs::write(&manifest, text.replace("\"edge\"", "\"edge\",\"more\""))?)
}

#[test]
fn an_invalid_bundle_is_refused_unless_forced() -> Result<()> {
    let mut exporter = RandomStore::new(25)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    let (_, whole) = exporter.export_full("full")?;
    let store = whole.join("memory-store.json");
    let text = fs::read_to_string(&store)?;
    let there = TestCore::open(&exporter.folder.path().join("there"))?;
    for (from, to, problem) in [
        ("\"tags\": []", "\"tags\": [\"more\"]", "checksum"),
        ("\"export_id\": \"", "\"export_id\": \"0", "signature"),
    ] {
        ensure!(text.contains(from), "{text}");
        fs::write(&store, text.replacen(from, to, 1))?;
        let refused = failure_reason(there.apply(&whole)?)?;
        ensure!(refused.contains(problem), "{refused}");
    }
    assert_eq!(there.store.revision().get(), 0);
    let forced = there.apply_with(&whole, false, Apply { force: true, ..Apply::default() })?;
    assert_completed(&forced)?;
    assert_eq!(forced.standing, Some(DocumentStanding::Forced));
    ensure!(forced.forced.iter().any(|problem| problem.contains("signature")), "{forced:?}");
    Ok(())
}
