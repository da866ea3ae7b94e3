//! The content of an incremental export, the changes that it cannot express, and when a full export replaces it.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, Options};
use satchel_core::{
    clock::Clock,
    export::{ExportRequest, Exports, Extent, FULL, INCREMENTAL},
    schedule::{Regular, Renewal},
};
use satchel_pam::{
    memory::{Access, Status},
    time::Timestamp,
};
use satchel_store::Change;
use satchel_tests::archive::{Archive, demo, whole};
use serde_json::Value;

use super::history::{History, memory};

const T: i64 = 1_710_000_000_000_000;
const DAY: i64 = 86_400_000_000;

fn store(bundle: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&fs::read(bundle.join("memory-store.json"))?)?)
}

fn manifest(bundle: &Path) -> Result<Value> {
    Ok(serde_json::from_slice(&fs::read(bundle.join("satchel-manifest.json"))?)?)
}

fn ids(list: &Value) -> BTreeSet<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item["id"].as_str().map(str::to_owned)).collect()
}

#[test]
fn nothing_changed_gives_a_valid_export_of_nothing() -> Result<()> {
    let mut history = History::new(1)?;
    history.put(&memory("m", "Keeps bees", T))?;
    let (base, whole) = history.full("full")?;
    let (delta, changes) = history.changes(&base.export_id, "delta")?;
    assert_eq!(
        (delta.export_type.as_str(), delta.memories, delta.relations, delta.conversations),
        (INCREMENTAL, 0, 0, 0)
    );
    assert_eq!(delta.since.as_deref(), Some(base.export_date.as_str()));
    assert_eq!(delta.warnings, Vec::<String>::new());
    let report = verify::path(&changes, &Options { base: Some(whole), ..Options::default() })?;
    assert!(report.valid && report.issues.is_empty(), "{:?}", report.issues);
    let merged = report.merged.context("merged")?;
    assert_eq!(merged.checksum.map(|sum| sum.to_string()), Some(base.checksum));
    Ok(())
}

#[test]
fn a_base_in_any_order_merges_to_the_same() -> Result<()> {
    let mut history = History::new(12)?;
    for id in ["a", "b", "c", "d", "e"] {
        history.put(&memory(id, &format!("Says {id}"), T))?;
    }
    let (base, whole) = history.full("full")?;
    for id in ["0", "b", "cc", "f"] {
        history.put(&memory(id, &format!("Says {id} anew"), T + DAY))?;
    }
    let (_, changes) = history.changes(&base.export_id, "delta")?;
    let options = Options { base: Some(whole.clone()), ..Options::default() };
    let merged = verify::path(&changes, &options)?.merged.context("merged")?;
    let (now, _) = history.full("now")?;
    assert_eq!((merged.memories, merged.checksum.map(|sum| sum.to_string())), (8, Some(now.checksum)));
    let mut shuffled = store(&whole)?;
    shuffled["memories"].as_array_mut().context("memories")?.rotate_left(2);
    fs::write(whole.join("memory-store.json"), shuffled.to_string())?;
    let again = verify::path(&changes, &options)?.merged.context("merged")?;
    assert_eq!(again, merged);
    Ok(())
}

#[test]
fn changes_of_every_status_travel_with_what_belongs_to_them() -> Result<()> {
    let mut history = History::new(2)?;
    for id in ["kept", "edited", "gone"] {
        history.put(&memory(id, id, T))?;
    }
    let (base, _) = history.full("full")?;
    let mut edited = memory("edited", "edited anew", T);
    edited.temporal.updated_at = Some(Timestamp::saturating(T + 5_000_000));
    history.put(&edited)?;
    let mut gone = memory("gone", "gone", T);
    gone.status = Status::Retracted;
    history.put(&gone)?;
    let (delta, changes) = history.changes(&base.export_id, "delta")?;
    let document = store(&changes)?;
    assert_eq!(ids(&document["memories"]), BTreeSet::from(["edited".into(), "gone".into()]));
    assert_eq!(document["memories"][1]["status"], "retracted");
    assert_eq!(
        (document["base_export_id"].as_str(), document["since"].as_str()),
        (Some(base.export_id.as_str()), delta.since.as_deref())
    );
    // The earliest change is that of the retracted memory, whose time did not move.
    assert_eq!(delta.since, Some(Timestamp::saturating(T - 1_000).to_string()));
    let manifest = manifest(&changes)?;
    assert_eq!(
        (&manifest["from_revision"], &manifest["to_revision"]),
        (&(base.revision + 1).into(), &delta.revision.into())
    );
    assert_eq!(manifest["since"], document["since"]);
    Ok(())
}

#[test]
fn a_newer_export_of_a_provider_gives_its_changes_only() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(&folder.path().join("data"))?;
    archive.import(&demo().join("chatgpt-export"))?;
    let (full, delta) = (folder.path().join("full"), folder.path().join("delta.zip"));
    let base = archive.export(&full)?;
    archive.import(&demo().join("claude-export"))?;
    let made = archive.export_changes(None, &delta)?;
    assert_eq!(
        (made.export_type.as_str(), made.base_export_id.as_deref()),
        (INCREMENTAL, Some(base.export_id.as_str()))
    );
    let whole = archive.export(&folder.path().join("whole"))?;
    assert_eq!(made.conversations, whole.conversations - base.conversations);
    assert!(made.memories > 0 && made.memories < whole.memories, "{made:?}");
    let options = Options { base: Some(full), signers: vec![base.signer.clone()], ..Options::default() };
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
fn a_memory_that_turns_private_is_warned_of_and_the_next_export_is_full() -> Result<()> {
    let mut history = History::new(3)?;
    history.put(&memory("open", "open", T))?;
    history.put(&memory("secret", "never leaves", T))?;
    history.put(&private("secret"))?;
    history.full("full")?;
    // A memory that the base never contained does not matter.
    let mut still = private("secret");
    still.tags = vec!["new".into()];
    history.put(&still)?;
    history.put(&private("fresh"))?;
    let delta = history.archive.export_changes(None, &history.folder.path().join("first"))?;
    assert_eq!((delta.export_type.as_str(), delta.memories, delta.withheld), (INCREMENTAL, 0, 2));
    history.put(&private("open"))?;
    let delta = history.archive.export_changes(None, &history.folder.path().join("second"))?;
    assert_eq!((delta.export_type.as_str(), delta.memories, delta.full_next), (INCREMENTAL, 0, true));
    assert!(delta.warnings[0].contains("must not be exported"), "{:?}", delta.warnings);
    let next = history.archive.export_changes(None, &history.folder.path().join("third"))?;
    assert_eq!((next.export_type.as_str(), next.memories), (FULL, 0));
    assert!(next.reason.is_some_and(|reason| reason.contains("could not say")));
    let after = history.archive.export_changes(None, &history.folder.path().join("fourth"))?;
    assert_eq!(after.export_type, INCREMENTAL);
    Ok(())
}

fn private(id: &str) -> satchel_pam::memory::Memory {
    let access = Access { exportable: false, ..Access::default() };
    satchel_pam::memory::Memory { access: Some(access), ..memory(id, "never leaves", T) }
}

#[test]
fn a_memory_that_becomes_public_brings_its_relations() -> Result<()> {
    let mut history = History::new(4)?;
    history.put(&memory("open", "open", T))?;
    history.put(&private("shy"))?;
    let edge = satchel_pam::relation::Relation {
        id: "edge".into(),
        from: "open".into(),
        to: "shy".into(),
        relation_type: satchel_pam::relation::RelationType::RelatedTo,
        confidence: None,
        created_at: Timestamp::saturating(T),
    };
    history.commit(vec![Change::Relation(edge)])?;
    let (base, _) = history.full("full")?;
    assert_eq!(base.relations, 0);
    history.put(&memory("shy", "never leaves", T))?;
    let (delta, changes) = history.changes(&base.export_id, "delta")?;
    assert_eq!((delta.memories, delta.relations), (2, 1), "the relation's other end comes with it");
    history.commit(vec![Change::WithdrawRelation("edge".into())])?;
    let (delta, _) = history.changes(&base.export_id, "later")?;
    assert_eq!((delta.relations, delta.full_next), (0, true));
    assert_eq!(manifest(&history.folder.path().join("later"))?["withdrawn_relations"][0], "edge");
    ensure!(ids(&store(&changes)?["relations"]).contains("edge"), "the earlier one has it");
    Ok(())
}

#[test]
fn a_relation_of_what_must_not_leave_is_not_named_where_it_is_withdrawn() -> Result<()> {
    let mut history = History::new(5)?;
    history.put(&memory("open", "open", T))?;
    history.put(&private("shy"))?;
    history.put(&memory("other", "other", T))?;
    let edge = |id: &str, to: &str| satchel_pam::relation::Relation {
        id: id.into(),
        from: "open".into(),
        to: to.into(),
        relation_type: satchel_pam::relation::RelationType::RelatedTo,
        confidence: None,
        created_at: Timestamp::saturating(T),
    };
    history.commit(vec![Change::Relation(edge("told", "other")), Change::Relation(edge("hidden", "shy"))])?;
    let (base, _) = history.full("full")?;
    history
        .commit(vec![Change::WithdrawRelation("told".into()), Change::WithdrawRelation("hidden".into())])?;
    let (_, changes) = history.changes(&base.export_id, "delta")?;
    assert_eq!(manifest(&changes)?["withdrawn_relations"], serde_json::json!(["told"]));
    Ok(())
}

#[test]
fn a_retraction_that_an_increment_told_and_that_was_taken_back_makes_the_next_export_full() -> Result<()> {
    let mut history = History::new(6)?;
    history.put(&memory("m", "Keeps bees", T))?;
    let (base, _) = history.full("full")?;
    history
        .put(&satchel_pam::memory::Memory { status: Status::Retracted, ..memory("m", "Keeps bees", T) })?;
    history.changes(&base.export_id, "retracted")?;
    let mut again = memory("m", "Keeps bees", T);
    again.temporal.updated_at = Some(Timestamp::saturating(T + 5_000_000));
    history.put(&again)?;
    let (delta, _) = history.changes(&base.export_id, "revived")?;
    assert!(delta.full_next, "{:?}", delta.warnings);
    Ok(())
}

#[test]
fn what_cannot_be_a_base_is_refused_with_its_reason() -> Result<()> {
    let mut history = History::new(5)?;
    history.put(&memory("m", "Keeps bees", T))?;
    let none = history.archive.export_changes(None, &history.folder.path().join("none"))?;
    assert_eq!(none.export_type, FULL);
    assert!(none.reason.is_some_and(|reason| reason.contains("no full export")));
    let (delta, _) = history.changes(&none.export_id, "delta")?;
    for (base, problem) in [("nobody", "is known here"), (delta.export_id.as_str(), "is no full PAM export")]
    {
        let refused = history.changes(base, "refused").err().context("refused")?.to_string();
        assert!(refused.contains(problem), "{refused}");
    }
    assert!(!history.folder.path().join("refused").exists());
    Ok(())
}

/// A clock that always returns the same time.
struct Fixed(i64);

impl Clock for Fixed {
    fn now_micros(&self) -> i64 {
        self.0
    }
}

#[test]
fn an_old_base_and_a_large_change_give_a_full_export() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(&folder.path().join("data"))?;
    let exports = |now: i64| {
        let renewal = Renewal { days: 30, percent: 50 };
        Exports::renewing(archive.store.clone(), Arc::new(Fixed(now)), folder.path().join("keys"), renewal)
    };
    let make = |now: i64, name: &str| {
        let extent = Extent::Incremental { base: None };
        let output = folder.path().join(name);
        exports(now).create(&ExportRequest { extent, ..whole(output) })
    };
    let write = |range: std::ops::Range<usize>| -> Result<()> {
        let changes = range
            .map(|at| Change::Memory(Box::new(memory(&format!("m{at}"), &format!("Statement {at}"), T))))
            .collect();
        archive.store.commit(satchel_store::Batch { changes, ..Default::default() })?;
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
fn a_base_that_does_not_belong_is_found() -> Result<()> {
    let mut history = History::new(6)?;
    history.put(&memory("m", "Keeps bees", T))?;
    let (base, whole) = history.full("full")?;
    let (_, other) = history.full("other")?;
    let (_, changes) = history.changes(&base.export_id, "delta")?;
    let check = |path: &Path, base: &Path| -> Result<Vec<String>> {
        let report = verify::path(path, &Options { base: Some(base.to_owned()), ..Options::default() })?;
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
    let report = verify::path(&changes, &Options { base: Some(whole), ..Options::default() })?;
    assert!(
        !report.valid && report.issues.iter().any(|issue| issue.path.starts_with("base: ")),
        "{report:?}"
    );
    Ok(())
}

#[test]
fn the_daemon_exports_by_its_schedule_and_keeps_what_is_needed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(&folder.path().join("data"))?;
    let backup = folder.path().join("backup");
    let plan =
        Regular { schedule: "daily 03:00".parse()?, folder: backup.clone(), keep: 2, recipients: Vec::new() };
    let day = |day: i64| {
        let (renewal, clock) = (Renewal { days: 2, percent: 50 }, Arc::new(Fixed(T + day * DAY)));
        Exports::renewing(archive.store.clone(), clock, folder.path().join("keys"), renewal).regular(&plan)
    };
    let mut kinds = Vec::new();
    for at in 0..8 {
        archive.store.commit(satchel_store::Batch {
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
        let report = verify::path(&pair[1], &Options { base: Some(pair[0].clone()), ..Options::default() })?;
        ensure!(report.valid, "{:?}", report.issues);
    }
    Ok(())
}

#[test]
fn a_backup_builds_on_nothing_that_is_gone_and_goes_on_after_a_clock_that_ran_ahead() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(&folder.path().join("data"))?;
    let backup = folder.path().join("backup");
    let plan =
        Regular { schedule: "daily 03:00".parse()?, folder: backup.clone(), keep: 2, recipients: Vec::new() };
    let day = |day: i64| {
        let clock = Arc::new(Fixed(T + day * DAY));
        let keys = folder.path().join("keys");
        Exports::renewing(archive.store.clone(), clock, keys, Renewal::default()).regular(&plan)
    };
    let ahead = day(400)?.context("the first")?;
    let now = day(0)?.context("what is made in the future says nothing of today")?;
    ensure!(ahead.export_type == FULL && now.export_type == INCREMENTAL, "{now:?}");
    fs::remove_dir_all(&backup)?;
    let again = day(1)?.context("one is due")?;
    assert_eq!((again.export_type.as_str(), Path::new(&again.path).exists()), (FULL, true));
    Ok(())
}
