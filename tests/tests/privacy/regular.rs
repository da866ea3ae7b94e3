//! Encrypted exports that nobody asked for each time: those of a schedule.

use std::{fs, path::Path, sync::Arc};

use age::secrecy::ExposeSecret as _;
use anyhow::{Context as _, Result, ensure};
use satchel_daemon::{
    clock::Clock,
    envelope::Keys,
    export::{Exports, FULL, INCREMENTAL},
    ingest::{Apply, ImportRequest, hand},
    schedule::{Regular, Renewal},
    verify::{self, Options},
};
use satchel_tests::archive::{Archive, demo};

/// 2026-01-01, in microseconds.
const T: i64 = 1_767_225_600_000_000;
const DAY: i64 = 24 * 3_600 * 1_000_000;

struct Fixed(i64);

impl Clock for Fixed {
    fn now_micros(&self) -> i64 {
        self.0
    }
}

fn apply(path: &Path) -> ImportRequest {
    let apply = Some(Apply::default());
    ImportRequest { path: path.to_owned(), provider: None, again: false, dry_run: false, apply }
}

#[test]
fn exports_of_a_schedule_are_encrypted_to_whom_it_says_and_open_together() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let here = Archive::open(&folder.path().join("data"))?;
    here.import(&demo().join("chatgpt-export"))?;
    let identity = age::x25519::Identity::generate();
    let backup = folder.path().join("backup");
    let plan = |recipients| -> Result<Regular> {
        Ok(Regular { schedule: "daily".parse()?, folder: backup.clone(), keep: 5, recipients })
    };
    let to = plan(vec![identity.to_public().to_string()])?;
    let day = |day: i64, plan: &Regular| {
        let clock = Arc::new(Fixed(T + day * DAY));
        let keys = folder.path().join("keys");
        let made = Exports::renewing(here.store.clone(), clock, keys, Renewal::default()).regular(plan);
        made?.context("one is due")
    };
    let full = day(0, &to)?;
    let draft = hand::Draft { content: Some("Keeps geese".into()), ..hand::Draft::default() };
    here.imports.add_memory(&hand::Call { actor: "owner".into(), ..hand::Call::default() }, &draft)?;
    let delta = day(1, &to)?;
    assert_eq!((full.export_type.as_str(), delta.export_type.as_str()), (FULL, INCREMENTAL));
    for made in [&full, &delta] {
        ensure!(made.encrypted && made.path.ends_with(".zip.age"), "{made:?}");
        ensure!(fs::read(&made.path)?.starts_with(b"age-encryption.org/v1\n"));
    }
    ensure!(super::holding(&backup, "geese")?.is_empty(), "nothing of it can be read");
    let keys = || Keys::parse(&[identity.to_string().expose_secret().to_owned()], None);
    let options = Options { base: Some((&full.path).into()), strict: true, ..Options::default() };
    let locked = verify::path(Path::new(&delta.path), &options).err().context("it is locked")?;
    ensure!(format!("{:#}", anyhow::Error::from(locked)).contains("--identity FILE"));
    let report = verify::path(Path::new(&delta.path), &Options { keys: Some(keys()?), ..options })?;
    ensure!(report.valid, "{:?}", report.issues);
    let there = Archive::open(&folder.path().join("there"))?;
    for made in [&full, &delta] {
        there.run_with(apply(Path::new(&made.path)), Some(keys()?))?;
    }
    assert_eq!(there.state()?.memories, here.state()?.memories);
    // What was plain must not be needed for what is encrypted, nor the other way round.
    let plain = day(2, &plan(Vec::new())?)?;
    assert_eq!((plain.export_type.as_str(), plain.encrypted), (FULL, false));
    assert_eq!(day(3, &to)?.base_export_id, Some(full.export_id));
    Ok(())
}
