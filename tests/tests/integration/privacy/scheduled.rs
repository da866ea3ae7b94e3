//! Encrypted exports that run on a schedule, without a request for each.

use std::{fs, path::Path, sync::Arc};

use age::secrecy::ExposeSecret as _;
use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, VerifyOptions};
use satchel_core::{
    clock::Clock,
    edits,
    export::{ExportRequest, Exports, FULL, INCREMENTAL},
    ingest::{Apply, ImportRequest},
    schedule::{RenewalPolicy, ScheduledExports},
};
use satchel_source::envelope::{DecryptionKeys, ExportEncryption};
use satchel_tests::test_core::{TestCore, demo_folder, full_export};

/// 2026-01-01, in microseconds since the Unix epoch.
const START_MICROS: i64 = 1_767_225_600_000_000;
const DAY: i64 = 24 * 3_600 * 1_000_000;

struct FixedClock(i64);

impl Clock for FixedClock {
    fn now_micros(&self) -> i64 {
        self.0
    }
}

fn apply_request(path: &Path) -> ImportRequest {
    let apply = Some(Apply::default());
    ImportRequest { path: path.to_owned(), provider: None, plugin: None, again: false, dry_run: false, apply }
}

#[test]
fn scheduled_exports_are_encrypted_to_their_recipients_and_merge() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = TestCore::open(&folder.path().join("data"))?;
    here.import(&demo_folder().join("chatgpt-export"))?;
    let identity = age::x25519::Identity::generate();
    let backup = folder.path().join("backup");
    let plan = |recipients| -> Result<ScheduledExports> {
        Ok(ScheduledExports { schedule: "daily".parse()?, folder: backup.clone(), keep: 5, recipients })
    };
    let to = plan(vec![identity.to_public().to_string()])?;
    let day = |day: i64, plan: &ScheduledExports| {
        let clock = Arc::new(FixedClock(START_MICROS + day * DAY));
        let keys = folder.path().join("data/keys");
        let made = Exports::with_renewal(here.store.clone(), clock, keys, RenewalPolicy::default())
            .run_schedule(plan);
        made?.context("one is due")
    };
    let full = day(0, &to)?;
    let draft = edits::Draft { content: Some("Keeps geese".into()), ..edits::Draft::default() };
    here.imports
        .edits()
        .add_memory(&edits::EditContext { actor: "owner".into(), ..edits::EditContext::default() }, &draft)?;
    let delta = day(1, &to)?;
    assert_eq!((full.export_type.as_str(), delta.export_type.as_str()), (FULL, INCREMENTAL));
    for made in [&full, &delta] {
        ensure!(made.encrypted && made.path.ends_with(".zip.age"), "{made:?}");
        ensure!(fs::read(&made.path)?.starts_with(b"age-encryption.org/v1\n"));
    }
    ensure!(super::files_containing(&backup, "geese")?.is_empty(), "a scheduled export is readable");
    let keys = || DecryptionKeys::parse(&[identity.to_string().expose_secret().to_owned()], None);
    let options = VerifyOptions { base: Some((&full.path).into()), strict: true, ..VerifyOptions::default() };
    let locked = verify::path(Path::new(&delta.path), &options).err().context("the bundle is encrypted")?;
    ensure!(format!("{:#}", anyhow::Error::from(locked)).contains("--identity FILE"));
    let report = verify::path(Path::new(&delta.path), &VerifyOptions { keys: Some(keys()?), ..options })?;
    ensure!(report.valid, "{:?}", report.issues);
    let there = TestCore::open(&folder.path().join("there"))?;
    for made in [&full, &delta] {
        there.run_with_keys(apply_request(Path::new(&made.path)), Some(keys()?))?;
    }
    assert_eq!(there.state()?.memories, here.state()?.memories);
    // An encrypted export must not depend on a plain one, nor the other way round.
    let plain = day(2, &plan(Vec::new())?)?;
    assert_eq!((plain.export_type.as_str(), plain.encrypted), (FULL, false));
    assert_eq!(day(3, &to)?.base_export_id, Some(full.export_id));
    Ok(())
}

#[test]
fn a_scheduled_incremental_export_needs_a_base_with_the_same_recipients() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = TestCore::open(&folder.path().join("data"))?;
    here.import(&demo_folder().join("chatgpt-export"))?;
    let (lost, own, other) = (recipient(), recipient(), recipient());
    let backup = folder.path().join("backup");
    let exports = |day: i64| {
        let (clock, keys) = (Arc::new(FixedClock(START_MICROS + day * DAY)), folder.path().join("keys"));
        Exports::with_renewal(here.store.clone(), clock, keys, RenewalPolicy::default())
    };
    let day = |day: i64, to: &[&String]| {
        let recipients = to.iter().map(ToString::to_string).collect();
        let plan =
            ScheduledExports { schedule: "daily".parse()?, folder: backup.clone(), keep: 5, recipients };
        exports(day).run_schedule(&plan)?.context("one is due")
    };
    let before = day(0, &[&lost])?;
    let since = day(1, &[&own])?;
    ensure!(since.export_type == FULL && since.reason.is_some(), "the base has another recipient: {since:?}");
    assert_eq!(day(2, &[&own])?.base_export_id, Some(since.export_id.clone()));
    assert_eq!(day(3, &[&lost])?.base_export_id, Some(before.export_id));
    // An export by hand that no key of the schedule can open.
    let lock = ExportEncryption::parse(&[], Some("correct horse battery".into()))?;
    let by_passphrase =
        exports(4).create(&ExportRequest { lock, ..full_export(folder.path().join("own.zip.age")) })?;
    assert_eq!(day(5, &[&own])?.base_export_id, Some(since.export_id));
    ensure!(by_passphrase.encrypted && by_passphrase.recipients.is_none());
    // The same recipients in another order are the same set of recipients.
    let both = day(6, &[&own, &other])?;
    assert_eq!(both.export_type, FULL);
    assert_eq!(day(7, &[&other, &own])?.base_export_id, Some(both.export_id));
    Ok(())
}

fn recipient() -> String {
    age::x25519::Identity::generate().to_public().to_string()
}
