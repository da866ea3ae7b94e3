//! Clocks that jump: revisions still increase, no memory moves back in time, and two machines with different clocks
//! reach the same state.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{clock::Clock, ingest::receipt::ImportStatus};
use satchel_source::Limits;
use satchel_store::{ChangePosition, MemoryQuery, Revision};
use satchel_tests::test_core::{TestCore, demo_folder, only_import};

use crate::rounds;

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;
/// 2026-03-01, and the jumps from it: back an hour (the end of summer time), 400 days back and forth, 1970, before
/// 1970, 2262.
const NOW: i64 = 1_772_323_200_000_000;
const JUMPS: [i64; 8] =
    [NOW, NOW - HOUR, NOW - 400 * DAY, NOW + 400 * DAY, 0, -DAY, i64::MAX / 1_000, NOW + 1_000_000];

struct JumpingClock(AtomicI64);

impl Clock for JumpingClock {
    fn now_micros(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }
}

/// Returns `updated_at` of each memory, by id; `created_at` where it is missing.
fn update_times(core: &TestCore) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut after = None;
    loop {
        let at = core.store.revision();
        let page = core.store.memories(&MemoryQuery::default(), after.as_ref(), 100, at)?;
        for record in page.items {
            let value = serde_json::to_value(&record.memory)?;
            let time = &value["temporal"];
            let text = time["updated_at"].as_str().or(time["created_at"].as_str()).context("a time")?;
            found.insert(record.memory.id, text.to_owned());
        }
        let Some(next) = page.next else { return Ok(found) };
        after = Some(next);
    }
}

#[test]
fn revisions_increase_and_memories_do_not_go_back_in_time_whatever_the_clock_shows() -> Result<()> {
    let exports = ["chatgpt-export", "chatgpt-newer", "claude-export"].map(|name| demo_folder().join(name));
    let exports: Vec<_> = exports.into_iter().filter(|path| path.exists()).collect();
    ensure!(!exports.is_empty(), "no sample exports");
    let steady = tempfile::tempdir()?;
    let steady = TestCore::open(steady.path())?;
    for export in &exports {
        steady.import(export)?;
    }
    for round in 0..rounds(1) {
        let folder = tempfile::tempdir()?;
        let start = usize::try_from(round)? % JUMPS.len();
        let clock = Arc::new(JumpingClock(AtomicI64::new(JUMPS[start])));
        let shared: Arc<dyn Clock> = Arc::<JumpingClock>::clone(&clock);
        let core = TestCore::with_limits_and_clock(folder.path(), Limits::default(), shared)?;
        let mut before = BTreeMap::new();
        let mut revision = Revision::ZERO;
        for (n, jump) in JUMPS.iter().cycle().skip(start).take(JUMPS.len()).enumerate() {
            clock.0.store(*jump, Ordering::Release);
            let export = &exports[n % exports.len()];
            if *jump < 0 {
                // Times before 1970 cannot be written: the import is refused with a reason, and nothing is stored.
                let refused = core.import_again(export).err().context("it was imported")?;
                ensure!(refused.to_string().contains("before the year 1970"), "{refused:#}");
                ensure!(core.store.revision() == revision, "the refused import changed the store");
                continue;
            }
            let import = only_import(core.import_again(export)?)?;
            ensure!(import.status != ImportStatus::Failed, "at {jump}: {:?}", import.reason);
            ensure!(core.store.revision() >= revision, "at {jump} the revision decreased");
            ensure!(n > 0 || core.store.revision() > revision, "nothing was stored");
            revision = core.store.revision();
            let now = update_times(&core)?;
            for (id, time) in &before {
                ensure!(
                    now.get(id).is_some_and(|now| now >= time),
                    "at {jump} memory {id} went back in time"
                );
            }
            before = now;
        }
        let changes = core.store.changes_since(ChangePosition::after(Revision::ZERO), usize::MAX)?;
        let revisions: std::collections::BTreeSet<_> =
            changes.iter().map(|change| change.position.revision).collect();
        ensure!(revisions.len() as u64 == revision.get(), "the feed lacks a revision");
        ensure!(core.state()? == steady.state()?, "the state depends on the clock");
    }
    Ok(())
}
