//! The content of an incremental export, the changes that it cannot express, and when a full export replaces it.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, VerifyOptions};
use satchel_core::{
    clock::Clock,
    export::{ExportRequest, Exports, Extent, FULL, INCREMENTAL},
    schedule::{RenewalPolicy, ScheduledExports},
};
use satchel_pam::{
    memory::{Access, Status},
    time::Timestamp,
};
use satchel_store::Change;
use satchel_tests::test_core::{TestCore, demo_folder, full_export};
use serde_json::Value;

use super::random_store::{RandomStore, memory};

const T: i64 = 1_710_000_000_000_000;
const DAY: i64 = 86_400_000_000;

fn read_store(bundle: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&fs::read(bundle.join("memory-store.json"))?)?)
}

fn read_manifest(bundle: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&fs::read(bundle.join("satchel-manifest.json"))?)?)
}

fn ids(list: &Value) -> BTreeSet<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item["id"].as_str().map(str::to_owned)).collect()
}

#[test]
fn without_changes_an_incremental_export_is_empty_and_valid() -> Result<()> {
    let mut exporter = RandomStore::new(1)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    let (base, whole) = exporter.export_full("full")?;
    let (delta, changes) = exporter.export_changes(&base.export_id, "delta")?;
    assert_eq!(
        (delta.export_type.as_str(), delta.memories, delta.relations, delta.conversations),
        (INCREMENTAL, 0, 0, 0)
    );
    assert_eq!(delta.since.as_deref(), Some(base.export_date.as_str()));
    assert_eq!(delta.warnings, Vec::<String>::new());
    let report = verify::path(&changes, &VerifyOptions { base: Some(whole), ..VerifyOptions::default() })?;
    assert!(report.valid && report.issues.is_empty(), "{:?}", report.issues);
    let merged = report.merged.context("merged")?;
    assert_eq!(merged.checksum.map(|sum| sum.to_string()), Some(base.checksum));
    Ok(())
}

#[test]
fn the_order_of_memories_in_the_base_does_not_matter() -> Result<()> {
    let mut exporter = RandomStore::new(12)?;
    for id in ["a", "b", "c", "d", "e"] {
        exporter.put(&memory(id, &format!("Says {id}"), T))?;
    }
    let (base, whole) = exporter.export_full("full")?;
    for id in ["0", "b", "cc", "f"] {
        exporter.put(&memory(id, &format!("Says {id} anew"), T + DAY))?;
    }
    let (_, changes) = exporter.export_changes(&base.export_id, "delta")?;
    let options = VerifyOptions { base: Some(whole.clone()), ..VerifyOptions::default() };
    let merged = verify::path(&changes, &options)?.merged.context("merged")?;
    let (now, _) = exporter.export_full("now")?;
    assert_eq!((merged.memories, merged.checksum.map(|sum| sum.to_string())), (8, Some(now.checksum)));
    let mut shuffled = read_store(&whole)?;
    shuffled["memories"].as_array_mut().context("memories")?.rotate_left(2);
    fs::write(whole.join("memory-store.json"), shuffled.to_string())?;
    let again = verify::path(&changes, &options)?.merged.context("merged")?;
    assert_eq!(again, merged);
    Ok(())
}

#[test]
fn changed_memories_of_every_status_are_exported() -> Result<()> {
    let mut exporter = RandomStore::new(2)?;
    for id in ["kept", "edited", "gone"] {
        exporter.put(&memory(id, id, T))?;
    }
    let (base, _) = exporter.export_full("full")?;
    let mut edited = memory("edited", "edited anew", T);
    edited.temporal.updated_at = Some(Timestamp::saturating(T + 5_000_000));
    exporter.put(&edited)?;
    let mut retracted = memory("gone", "gone", T);
    retracted.status = Status::Retracted;
    exporter.put(&retracted)?;
    let (delta, changes) = exporter.export_changes(&base.export_id, "delta")?;
    let document = read_store(&changes)?;
    assert_eq!(ids(&document["memories"]), BTreeSet::from(["edited".into(), "gone".into()]));
    assert_eq!(document["memories"][1]["status"], "retracted");
    assert_eq!(
        (document["base_export_id"].as_str(), document["since"].as_str()),
        (Some(base.export_id.as_str()), delta.since.as_deref())
    );
    // The earliest change is that of the retracted memory, whose time did not move.
    assert_eq!(delta.since, Some(Timestamp::saturating(T - 1_000).to_string()));
    let manifest = read_manifest(&changes)?;
    assert_eq!(
        (&manifest["from_revision"], &manifest["to_revision"]),
        (&(base.revision + 1).into(), &delta.revision.into())
    );
    assert_eq!(manifest["since"], document["since"]);
    Ok(())
}

#[test]
fn an_incremental_export_contains_only_what_a_later_import_changed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    let (full, delta) = (folder.path().join("full"), folder.path().join("delta.zip"));
    let base = core.export(&full)?;
    core.import(&demo_folder().join("claude-export"))?;
    let made = core.export_changes(None, &delta)?;
    assert_eq!(
        (made.export_type.as_str(), made.base_export_id.as_deref()),
        (INCREMENTAL, Some(base.export_id.as_str()))
    );
    let whole = core.export(&folder.path().join("whole"))?;
    assert_eq!(made.conversations, whole.conversations - base.conversations);
    assert!(made.memories > 0 && made.memories < whole.memories, "{made:?}");
    let options =
        VerifyOptions { base: Some(full), signers: vec![base.signer.clone()], ..VerifyOptions::default() };
    let report = verify::path(&delta, &options)?;
    assert!(report.valid, "{:?}", report.issues);
    let merged = report.merged.context("merged")?;
    assert_eq!(
        (merged.memories, merged.checksum.map(|sum| sum.to_string())),
        (whole.memories, Some(whole.checksum))
    );
    Ok(())
}

#[test]
fn a_memory_that_becomes_private_gives_a_warning_and_makes_the_next_export_full() -> Result<()> {
    let mut exporter = RandomStore::new(3)?;
    exporter.put(&memory("open", "open", T))?;
    exporter.put(&memory("secret", "never leaves", T))?;
    exporter.put(&private_memory("secret"))?;
    exporter.export_full("full")?;
    // A memory that the base never contained does not matter.
    let mut still = private_memory("secret");
    still.tags = vec!["new".into()];
    exporter.put(&still)?;
    exporter.put(&private_memory("fresh"))?;
    let delta = exporter.core.export_changes(None, &exporter.folder.path().join("first"))?;
    assert_eq!((delta.export_type.as_str(), delta.memories, delta.withheld), (INCREMENTAL, 0, 2));
    exporter.put(&private_memory("open"))?;
    let delta = exporter.core.export_changes(None, &exporter.folder.path().join("second"))?;
    assert_eq!((delta.export_type.as_str(), delta.memories, delta.full_next), (INCREMENTAL, 0, true));
    assert!(delta.warnings[0].contains("must not be exported"), "{:?}", delta.warnings);
    let next = exporter.core.export_changes(None, &exporter.folder.path().join("third"))?;
    assert_eq!((next.export_type.as_str(), next.memories), (FULL, 0));
    assert!(next.reason.is_some_and(|reason| reason.contains("could not express")));
    let after = exporter.core.export_changes(None, &exporter.folder.path().join("fourth"))?;
    assert_eq!(after.export_type, INCREMENTAL);
    Ok(())
}

fn private_memory(id: &str) -> satchel_pam::memory::Memory {
    let access = Access { exportable: false, ..Access::default() };
    satchel_pam::memory::Memory { access: Some(access), ..memory(id, "never leaves", T) }
}

#[test]
fn a_memory_that_becomes_public_is_exported_with_its_relations() -> Result<()> {
    let mut exporter = RandomStore::new(4)?;
    exporter.put(&memory("open", "open", T))?;
    exporter.put(&private_memory("shy"))?;
    let edge = satchel_pam::relation::Relation {
        id: "edge".into(),
        from: "open".into(),
        to: "shy".into(),
        relation_type: satchel_pam::relation::RelationType::RelatedTo,
        confidence: None,
        created_at: Timestamp::saturating(T),
    };
    exporter.commit(vec![Change::Relation(edge)])?;
    let (base, _) = exporter.export_full("full")?;
    assert_eq!(base.relations, 0);
    exporter.put(&memory("shy", "never leaves", T))?;
    let (delta, changes) = exporter.export_changes(&base.export_id, "delta")?;
    assert_eq!(
        (delta.memories, delta.relations),
        (2, 1),
        "the memory at the relation's other end is exported too"
    );
    exporter.commit(vec![Change::WithdrawRelation("edge".into())])?;
    let (delta, _) = exporter.export_changes(&base.export_id, "later")?;
    assert_eq!((delta.relations, delta.full_next), (0, true));
    assert_eq!(read_manifest(&exporter.folder.path().join("later"))?["withdrawn_relations"][0], "edge");
    ensure!(
        ids(&read_store(&changes)?["relations"]).contains("edge"),
        "the earlier export lacks the relation"
    );
    Ok(())
}

#[test]
fn withdrawn_relations_of_private_memories_are_not_listed() -> Result<()> {
    let mut exporter = RandomStore::new(5)?;
    exporter.put(&memory("open", "open", T))?;
    exporter.put(&private_memory("shy"))?;
    exporter.put(&memory("other", "other", T))?;
    let edge = |id: &str, to: &str| satchel_pam::relation::Relation {
        id: id.into(),
        from: "open".into(),
        to: to.into(),
        relation_type: satchel_pam::relation::RelationType::RelatedTo,
        confidence: None,
        created_at: Timestamp::saturating(T),
    };
    exporter
        .commit(vec![Change::Relation(edge("told", "other")), Change::Relation(edge("hidden", "shy"))])?;
    let (base, _) = exporter.export_full("full")?;
    exporter
        .commit(vec![Change::WithdrawRelation("told".into()), Change::WithdrawRelation("hidden".into())])?;
    let (_, changes) = exporter.export_changes(&base.export_id, "delta")?;
    assert_eq!(read_manifest(&changes)?["withdrawn_relations"], serde_json::json!(["told"]));
    Ok(())
}

#[test]
fn reverting_an_exported_retraction_makes_the_next_export_full() -> Result<()> {
    let mut exporter = RandomStore::new(6)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    let (base, _) = exporter.export_full("full")?;
    exporter
        .put(&satchel_pam::memory::Memory { status: Status::Retracted, ..memory("m", "Keeps bees", T) })?;
    exporter.export_changes(&base.export_id, "retracted")?;
    let mut again = memory("m", "Keeps bees", T);
    again.temporal.updated_at = Some(Timestamp::saturating(T + 5_000_000));
    exporter.put(&again)?;
    let (delta, _) = exporter.export_changes(&base.export_id, "revived")?;
    assert!(delta.full_next, "{:?}", delta.warnings);
    Ok(())
}

#[test]
fn unusable_bases_are_refused_with_their_reason() -> Result<()> {
    let mut exporter = RandomStore::new(5)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    let none = exporter.core.export_changes(None, &exporter.folder.path().join("none"))?;
    assert_eq!(none.export_type, FULL);
    assert!(none.reason.is_some_and(|reason| reason.contains("no full export")));
    let (delta, _) = exporter.export_changes(&none.export_id, "delta")?;
    for (base, problem) in [("nobody", "is known here"), (delta.export_id.as_str(), "is no full PAM export")]
    {
        let refused = exporter.export_changes(base, "refused").err().context("refused")?.to_string();
        assert!(refused.contains(problem), "{refused}");
    }
    assert!(!exporter.folder.path().join("refused").exists());
    Ok(())
}

/// A clock that always returns the same time.
struct FixedClock(i64);

impl Clock for FixedClock {
    fn now_micros(&self) -> i64 {
        self.0
    }
}

#[test]
fn an_old_base_and_a_large_change_give_a_full_export() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let exports = |now: i64| {
        let renewal = RenewalPolicy { days: 30, percent: 50 };
        Exports::with_renewal(
            core.store.clone(),
            Arc::new(FixedClock(now)),
            folder.path().join("keys"),
            renewal,
        )
    };
    let make = |now: i64, name: &str| {
        let extent = Extent::Incremental { base: None };
        let output = folder.path().join(name);
        exports(now).create(&ExportRequest { extent, ..full_export(output) })
    };
    let write = |range: std::ops::Range<usize>| -> Result<()> {
        let changes = range
            .map(|at| Change::Memory(Box::new(memory(&format!("m{at}"), &format!("Statement {at}"), T))))
            .collect();
        core.store.commit(satchel_store::Batch { changes, ..Default::default() })?;
        Ok(())
    };
    write(0..2_500)?;
    assert_eq!(make(T, "one")?.export_type, FULL);
    write(2_500..3_700)?;
    assert_eq!(make(T + 30 * DAY, "two")?.export_type, INCREMENTAL);
    let old = make(T + 31 * DAY, "three")?;
    assert_eq!(old.export_type, FULL);
    assert!(old.reason.is_some_and(|reason| reason.contains("30 days")));
    write(3_700..5_700)?;
    let large = make(T + 32 * DAY, "four")?;
    assert_eq!(large.export_type, FULL);
    assert!(large.reason.is_some_and(|reason| reason.contains("50 %")));
    Ok(())
}

#[test]
fn verify_detects_a_wrong_base() -> Result<()> {
    let mut exporter = RandomStore::new(6)?;
    exporter.put(&memory("m", "Keeps bees", T))?;
    let (base, whole) = exporter.export_full("full")?;
    let (_, other) = exporter.export_full("other")?;
    let (_, changes) = exporter.export_changes(&base.export_id, "delta")?;
    let check = |path: &Path, base: &Path| -> Result<Vec<String>> {
        let report =
            verify::path(path, &VerifyOptions { base: Some(base.to_owned()), ..VerifyOptions::default() })?;
        ensure!(report.merged.is_none() && !report.valid, "{report:?}");
        Ok(report.issues.into_iter().map(|issue| format!("{} {}", issue.path, issue.message)).collect())
    };
    let found = check(&changes, &other)?;
    assert!(found.iter().any(|line| line.contains("$.base_export_id is ")), "{found:?}");
    let found = check(&changes, &changes)?;
    assert!(found.iter().any(|line| line.contains("not a full one")), "{found:?}");
    let found = check(&other, &whole)?;
    assert!(found.iter().any(|line| line.contains("needs no base")), "{found:?}");
    let text = fs::read_to_string(whole.join("memory-store.json"))?;
    fs::write(whole.join("memory-store.json"), text.replacen("Keeps bees", "Keeps cats", 1))?;
    let report = verify::path(&changes, &VerifyOptions { base: Some(whole), ..VerifyOptions::default() })?;
    assert!(
        !report.valid && report.issues.iter().any(|issue| issue.path.starts_with("base: ")),
        "{report:?}"
    );
    Ok(())
}

#[test]
fn scheduled_exports_are_made_when_due_and_old_ones_are_pruned() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let backup = folder.path().join("backup");
    let plan = ScheduledExports {
        schedule: "daily 03:00".parse()?,
        folder: backup.clone(),
        keep: 2,
        recipients: Vec::new(),
    };
    let day = |day: i64| {
        let (renewal, clock) = (RenewalPolicy { days: 2, percent: 50 }, Arc::new(FixedClock(T + day * DAY)));
        Exports::with_renewal(core.store.clone(), clock, folder.path().join("keys"), renewal)
            .run_schedule(&plan)
    };
    let mut kinds = Vec::new();
    for at in 0..8 {
        core.store.commit(satchel_store::Batch {
            changes: vec![Change::Memory(Box::new(memory(&format!("m{at}"), "Keeps bees", T)))],
            ..Default::default()
        })?;
        kinds.push(day(at)?.context("one is due")?.export_type);
        ensure!(day(at)?.is_none(), "one a day is enough");
    }
    let (full, delta) = (FULL, INCREMENTAL);
    assert_eq!(kinds, [full, delta, delta, full, delta, delta, full, delta]);
    let mut left: Vec<_> = fs::read_dir(&backup)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    left.sort();
    assert_eq!(left.len(), 4, "{left:?}");
    for pair in left.chunks(2) {
        let report = verify::path(
            &pair[1],
            &VerifyOptions { base: Some(pair[0].clone()), ..VerifyOptions::default() },
        )?;
        ensure!(report.valid, "{:?}", report.issues);
    }
    Ok(())
}

#[test]
fn scheduled_exports_need_an_existing_base_and_survive_a_clock_that_ran_ahead() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    let backup = folder.path().join("backup");
    let plan = ScheduledExports {
        schedule: "daily 03:00".parse()?,
        folder: backup.clone(),
        keep: 2,
        recipients: Vec::new(),
    };
    let day = |day: i64| {
        let clock = Arc::new(FixedClock(T + day * DAY));
        let keys = folder.path().join("keys");
        Exports::with_renewal(core.store.clone(), clock, keys, RenewalPolicy::default()).run_schedule(&plan)
    };
    let ahead = day(400)?.context("the first")?;
    let now = day(0)?.context("an export dated in the future does not count as today's")?;
    ensure!(ahead.export_type == FULL && now.export_type == INCREMENTAL, "{now:?}");
    fs::remove_dir_all(&backup)?;
    let again = day(1)?.context("one is due")?;
    assert_eq!((again.export_type.as_str(), Path::new(&again.path).exists()), (FULL, true));
    Ok(())
}
