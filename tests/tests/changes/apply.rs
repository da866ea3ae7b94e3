//! Tests of bundles that are merged into another data directory.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    export::{FULL, INCREMENTAL},
    ingest::{
        Apply,
        receipt::{DifferenceKind, ImportRecord, ImportStatus, Standing},
        undo::{Turn, TurnRequest},
    },
};
use satchel_pam::{embedding::Embedding, memory::Status, time::Timestamp};
use satchel_source::CancelToken;
use satchel_store::Change;
use satchel_tests::archive::{Archive, State, demo};

use super::history::{History, memories_text, memory, vectors_of};

const T: i64 = 1_710_000_000_000_000;

fn done(import: &ImportRecord) -> Result<()> {
    ensure!(import.status == ImportStatus::Completed, "{import:?}");
    Ok(())
}

fn reason(import: ImportRecord) -> Result<String> {
    ensure!(import.status == ImportStatus::Failed, "{import:?}");
    import.reason.context("a reason")
}

/// Returns the memories that a data directory would export, byte for byte.
fn text(archive: &Archive) -> Result<String> {
    let folder = tempfile::tempdir()?;
    archive.export(&folder.path().join("bundle"))?;
    memories_text(&folder.path().join("bundle"))
}

/// Returns the vectors that a data directory would export.
fn vectors(archive: &Archive) -> Result<BTreeMap<String, Embedding>> {
    let folder = tempfile::tempdir()?;
    archive.export(&folder.path().join("bundle"))?;
    vectors_of(&folder.path().join("bundle"))
}

/// Checks the laws of a merge over random histories: a full export recreates the same store; a base and its changes
/// give the full store at the later revision; a second merge of the same bundle changes nothing; an older delta after a
/// newer one changes nothing.
#[test]
fn a_base_and_its_changes_make_the_same_store_elsewhere() -> Result<()> {
    for seed in 100..104 {
        let mut history = History::new(seed)?;
        history.step()?;
        history.step()?;
        let (base, whole) = history.full("base")?;
        history.step()?;
        let (_, early) = history.changes(&base.export_id, "early")?;
        history.step()?;
        let (_, late) = history.changes(&base.export_id, "late")?;
        let (_, last) = history.full("last")?;
        let there = Archive::open(&history.folder.path().join("there"))?;
        done(&there.apply(&whole)?)?;
        assert_eq!(text(&there)?, memories_text(&whole)?, "seed {seed}");
        for delta in [&early, &late] {
            done(&there.apply(delta)?)?;
        }
        assert_eq!(text(&there)?, memories_text(&last)?, "seed {seed}");
        assert_eq!(there.state()?.relations.len(), State::of(&last)?.relations.len(), "seed {seed}");
        assert_eq!(vectors(&there)?, vectors_of(&last)?, "seed {seed}");
        let (revision, state) = (there.store.revision(), there.state()?);
        for again in [&late, &early, &whole, &late] {
            done(&there.apply(again)?)?;
            assert_eq!(there.state()?, state, "seed {seed}: {again:?}");
            assert_eq!(vectors(&there)?, vectors_of(&last)?, "seed {seed}: {again:?}");
        }
        assert_eq!(there.store.revision(), revision, "seed {seed}: nothing was to be written");
        let straight = Archive::open(&history.folder.path().join("straight"))?;
        done(&straight.apply(&whole)?)?;
        done(&straight.apply(&late)?)?;
        assert_eq!(text(&straight)?, memories_text(&last)?, "seed {seed}");
        assert_eq!(vectors(&straight)?, vectors_of(&last)?, "seed {seed}");
    }
    Ok(())
}

#[test]
fn conversations_and_memories_of_a_provider_travel_by_a_base_and_its_changes() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = Archive::open(&folder.path().join("here"))?;
    here.import(&demo().join("chatgpt-export"))?;
    let (full, delta) = (folder.path().join("full"), folder.path().join("delta.zip"));
    here.export(&full)?;
    here.import(&demo().join("claude-export"))?;
    here.export_changes(None, &delta)?;
    let there = Archive::open(&folder.path().join("there"))?;
    done(&there.apply(&full)?)?;
    let import = there.apply(&delta)?;
    done(&import)?;
    ensure!(import.conversations.new > 0 && import.memories.new > 0, "{import:?}");
    assert_eq!(there.state()?, here.state()?);
    assert_eq!(text(&there)?, text(&here)?);
    let listed = there.exports.list(None, 10)?.items;
    let kinds: Vec<_> = listed.iter().filter(|one| one.applied).map(|one| one.export_type.as_str()).collect();
    assert_eq!(kinds, [INCREMENTAL, FULL]);
    Ok(())
}

#[test]
fn changes_are_refused_without_their_base_and_so_is_another_owner() -> Result<()> {
    let mut history = History::new(20)?;
    history.put(&memory("m", "Keeps bees", T))?;
    let (base, whole) = history.full("full")?;
    history.put(&memory("n", "Has a garden", T))?;
    let (_, changes) = history.changes(&base.export_id, "delta")?;
    let there = Archive::open(&history.folder.path().join("there"))?;
    let refused = reason(there.apply(&changes)?)?;
    ensure!(refused.contains(&base.export_id) && refused.contains("--force"), "{refused}");
    let import = satchel_tests::archive::only(there.import(&changes)?)?;
    ensure!(reason(import)?.contains(&base.export_id));
    assert_eq!(there.state()?, State::default());
    done(&there.apply_by(&changes, false, Apply { force: true, any_owner: true, ..Apply::default() })?)?;
    // This store has exported before, so it has an owner of its own.
    let refused = reason(there.apply(&whole)?)?;
    ensure!(refused.contains("owner") && refused.contains("--any-owner"), "{refused}");
    done(&there.apply_by(&whole, false, Apply { any_owner: true, ..Apply::default() })?)?;
    assert_eq!(there.state()?, history.archive.state()?);
    Ok(())
}

#[test]
fn a_new_store_takes_the_owner_of_the_first_export_that_is_applied() -> Result<()> {
    let mut history = History::new(21)?;
    history.put(&memory("m", "Keeps bees", T))?;
    let (_, whole) = history.full("full")?;
    let there = Archive::open(&history.folder.path().join("there"))?;
    assert_eq!(there.exports.owner()?, None);
    done(&there.apply(&whole)?)?;
    let owner = history.archive.exports.owner()?;
    assert_eq!(there.exports.owner()?, owner);
    there.export(&history.folder.path().join("own"))?;
    assert_eq!(there.exports.owner()?, owner);
    Ok(())
}

#[test]
fn an_older_version_is_kept_beside_the_newer_and_a_retraction_is_final() -> Result<()> {
    let version = |content: &str, at: i64, status| {
        let mut one = memory("m", content, T);
        one.temporal.updated_at = Some(Timestamp::saturating(T + at));
        one.status = status;
        one
    };
    let mut history = History::new(22)?;
    let mut bundle = |name: &str, memory: &satchel_pam::memory::Memory| -> Result<_> {
        history.put(memory)?;
        Ok(history.full(name)?.1)
    };
    let old = bundle("old", &version("Old", 1_000_000, Status::Active))?;
    let new = bundle("new", &version("New", 9_000_000, Status::Active))?;
    let gone = bundle("gone", &version("Gone", 2_000_000, Status::Retracted))?;
    let there = Archive::open(&history.folder.path().join("there"))?;
    let shown = |archive: &Archive| -> Result<String> {
        Ok(archive.store.memory("m", None)?.context("a memory")?.memory.content)
    };
    done(&there.apply(&new)?)?;
    let conflict = there.apply(&old)?;
    ensure!(conflict.warnings.iter().any(|one| one.message.contains("later or final")), "{conflict:?}");
    assert_eq!(shown(&there)?, "New");
    done(&there.apply(&gone)?)?;
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
    let mut history = History::new(23)?;
    history.put(&memory("kept", "Keeps bees", T))?;
    history.put(&memory("old", "Oldest", T - 1_000_000))?;
    let (_, oldest) = history.full("oldest")?;
    history.put(&memory("old", "Old", T))?;
    let (base, whole) = history.full("full")?;
    let mut changed = memory("old", "New", T);
    changed.temporal.updated_at = Some(Timestamp::saturating(T + 1_000_000));
    history.put(&changed)?;
    history.put(&memory("fresh", "Has a garden", T))?;
    let (_, changes) = history.changes(&base.export_id, "delta")?;
    let there = Archive::open(&history.folder.path().join("there"))?;
    done(&there.apply(&whole)?)?;
    let revision = there.store.revision();
    let dry = there.apply_by(&changes, true, Apply::default())?;
    let told: Vec<_> =
        dry.differences.iter().map(|one| (one.id.as_str(), one.kind, one.came.1.as_str())).collect();
    assert_eq!(
        told,
        [("fresh", DifferenceKind::New, "Has a garden"), ("old", DifferenceKind::Changed, "New")]
    );
    assert_eq!(dry.differences[1].held, Some((Status::Active, "Old".to_owned())));
    assert_eq!((there.store.revision(), dry.differences_found), (revision, 2));
    done(&there.apply(&changes)?)?;
    let kept = there.apply_by(&oldest, true, Apply::default())?;
    assert_eq!((kept.differences.len(), kept.differences[0].kind), (1, DifferenceKind::Kept));
    assert_eq!(kept.differences[0].held, Some((Status::Active, "New".to_owned())));
    Ok(())
}

/// Returns a relation between the memories that [`draw`] stores.
fn edge(at: i64) -> satchel_pam::relation::Relation {
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
fn draw(history: &mut History) -> Result<()> {
    history.put(&memory("one", "One", T))?;
    history.put(&memory("two", "Two", T))?;
    history.commit(vec![Change::Relation(edge(0))])?;
    Ok(())
}

#[test]
fn a_withdrawn_relation_is_withdrawn_elsewhere_too_if_the_manifest_is_signed() -> Result<()> {
    let mut history = History::new(24)?;
    draw(&mut history)?;
    let (base, whole) = history.full("full")?;
    history.commit(vec![Change::WithdrawRelation("edge".into())])?;
    let (_, without) = history.changes(&base.export_id, "without")?;
    history.commit(vec![Change::Relation(edge(5_000_000))])?;
    let (_, again) = history.changes(&base.export_id, "again")?;
    let there = Archive::open(&history.folder.path().join("there"))?;
    let stands = |archive: &Archive| -> Result<bool> {
        Ok(archive.store.relation("edge", None)?.is_some_and(|record| !record.withdrawn))
    };
    done(&there.apply(&whole)?)?;
    assert!(stands(&there)?);
    forged(&without, &history.folder.path().join("forged"))?;
    let refused = reason(there.apply(&history.folder.path().join("forged"))?)?;
    ensure!(refused.contains("satchel verify") && refused.contains("--force"), "{refused}");
    there.import(&history.folder.path().join("forged"))?;
    assert!(stands(&there)?, "an unsigned word takes nothing back");
    done(&there.apply(&without)?)?;
    assert!(!stands(&there)?);
    done(&there.apply(&whole)?)?;
    assert!(!stands(&there)?, "the base does not bring it back");
    done(&there.apply(&again)?)?;
    assert!(stands(&there)?, "drawn anew, it stands");
    Ok(())
}

#[test]
fn changes_by_another_key_than_that_of_their_base_take_nothing_back() -> Result<()> {
    let mut history = History::new(27)?;
    draw(&mut history)?;
    let (base, whole) = history.full("full")?;
    history.commit(vec![Change::WithdrawRelation("edge".into())])?;
    // Anybody can create a key and sign with it.
    fs::remove_dir_all(history.folder.path().join("data/keys"))?;
    history.archive.exports.begin_identity()?;
    let (_, without) = history.changes(&base.export_id, "without")?;
    let there = Archive::open(&history.folder.path().join("there"))?;
    done(&there.apply(&whole)?)?;
    let any = Apply { any_owner: true, ..Apply::default() };
    let warned = there.apply_by(&without, false, any)?;
    ensure!(warned.warnings.iter().any(|one| one.message.contains("signed with another key")), "{warned:?}");
    let stored = there.store.relation("edge", None)?.context("it is stored")?;
    assert!(!stored.withdrawn);
    Ok(())
}

#[test]
fn a_relation_that_an_import_took_back_stands_again_when_that_is_undone() -> Result<()> {
    let mut history = History::new(25)?;
    draw(&mut history)?;
    let (base, whole) = history.full("full")?;
    history.commit(vec![Change::WithdrawRelation("edge".into())])?;
    let (_, without) = history.changes(&base.export_id, "without")?;
    let there = Archive::open(&history.folder.path().join("there"))?;
    let stands = || -> Result<bool> {
        Ok(there.store.relation("edge", None)?.is_some_and(|record| !record.withdrawn))
    };
    there.apply(&whole)?;
    let import = there.apply(&without)?;
    assert!(!stands()?);
    let request = TurnRequest { id: &import.id, turn: Turn::Undo, dry_run: false, expected: None };
    there.imports.turn(request, &CancelToken::new())?.context("the import")?;
    assert!(stands()?, "nothing that counts takes it back any more");
    Ok(())
}

#[test]
fn a_version_that_was_exported_once_more_stays_shown() -> Result<()> {
    let mut history = History::new(26)?;
    let (one, other) = (memory("m", "One", T), memory("m", "Other", T));
    let mut bundles = Vec::new();
    for (at, version) in [&one, &other, &one].into_iter().enumerate() {
        history.put(version)?;
        bundles.push(history.full(&format!("full-{at}"))?.1);
    }
    let there = Archive::open(&history.folder.path().join("there"))?;
    for bundle in &bundles {
        there.apply(bundle)?;
    }
    let shown =
        || -> Result<String> { Ok(there.store.memory("m", None)?.context("it is shown")?.memory.content) };
    assert_eq!(shown()?, "One");
    // The undo makes the store derive its memories again from everything that is stored.
    let others = there.import(&demo().join("claude-export"))?;
    super::taken_back::undo(&there, &others[0].id)?;
    assert_eq!(shown()?, "One");
    Ok(())
}

/// Copies a bundle with a manifest other than the signed one.
fn forged(bundle: &Path, to: &Path) -> Result<()> {
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
fn a_bundle_that_does_not_hold_is_refused_unless_it_is_wanted() -> Result<()> {
    let mut history = History::new(25)?;
    history.put(&memory("m", "Keeps bees", T))?;
    let (_, whole) = history.full("full")?;
    let store = whole.join("memory-store.json");
    let text = fs::read_to_string(&store)?;
    let there = Archive::open(&history.folder.path().join("there"))?;
    for (from, to, problem) in [
        ("\"tags\": []", "\"tags\": [\"more\"]", "checksum"),
        ("\"export_id\": \"", "\"export_id\": \"0", "signature"),
    ] {
        ensure!(text.contains(from), "{text}");
        fs::write(&store, text.replacen(from, to, 1))?;
        let refused = reason(there.apply(&whole)?)?;
        ensure!(refused.contains(problem), "{refused}");
    }
    assert_eq!(there.store.revision().get(), 0);
    let forced = there.apply_by(&whole, false, Apply { force: true, ..Apply::default() })?;
    done(&forced)?;
    assert_eq!(forced.standing, Some(Standing::Forced));
    ensure!(forced.forced.iter().any(|problem| problem.contains("signature")), "{forced:?}");
    Ok(())
}
