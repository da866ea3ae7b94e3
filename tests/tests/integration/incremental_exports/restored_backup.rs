//! After a backup was restored, no incremental export builds on exports made since that backup.

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, VerifyOptions};
use satchel_core::{
    backup::{create, restore},
    export::{FULL, INCREMENTAL},
    vault::UnlockOptions,
};
use satchel_store::{Batch, Change};
use satchel_tests::test_core::TestCore;

use super::random_store::memory;

const T: i64 = 1_710_000_000_000_000;

fn put(core: &TestCore, id: &str) -> Result<()> {
    let changes = vec![Change::Memory(Box::new(memory(id, &format!("Says {id}"), T)))];
    Ok(core.store.commit(Batch { changes, ..Batch::default() }).map(drop)?)
}

#[test]
fn no_incremental_export_builds_on_an_export_newer_than_the_restored_backup() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let here = TestCore::open(&at("data"))?;
    put(&here, "one")?;
    let old = here.export(&at("old"))?;
    create::create(&here.store, &at("data"), &at("backup"), 1, &mut |_| true)?;
    put(&here, "lost")?;
    let new = here.export(&at("new"))?;
    ensure!(new.revision > old.revision && old.export_type == FULL);
    here.close()?;
    restore::restore(&at("backup"), &at("data"), true, &UnlockOptions::default(), &mut |_| true)?;
    let here = TestCore::open(&at("data"))?;
    // Round 0 is before the store reaches that revision again, the others after; the same number is then a different
    // revision.
    for round in 0..3 {
        ensure!((here.store.revision().get() >= new.revision) == (round > 0), "round {round}");
        let error = here.export_changes(Some(&new.export_id), &at("refused")).err().context("refused")?;
        ensure!(format!("{error:#}").contains(&new.export_id), "{error:#}");
        ensure!(!at("refused").exists());
        let (name, base) = (format!("changes-{round}"), Some(old.export_id.clone()));
        let delta = here.export_changes(None, &at(&name))?;
        assert_eq!((delta.export_type.as_str(), &delta.base_export_id), (INCREMENTAL, &base));
        assert_eq!(delta.memories, round);
        let options = VerifyOptions { base: Some(at("old")), strict: true, ..VerifyOptions::default() };
        let report = verify::path(&at(&name), &options)?;
        ensure!(report.valid, "{:?}", report.issues);
        let merged = report.merged.context("merged")?;
        let whole = here.export_changes(Some(&old.export_id), &at(&format!("again-{round}")))?;
        assert_eq!(merged.memories as u64, 1 + whole.memories);
        put(&here, &format!("fresh-{round}"))?;
    }
    // Once applied, the export is known again, but as one made elsewhere; it still cannot be a base.
    here.apply(&at("new"))?;
    let error = here.export_changes(Some(&new.export_id), &at("refused")).err().context("refused")?;
    ensure!(format!("{error:#}").contains("made elsewhere"), "{error:#}");
    here.close()
}
