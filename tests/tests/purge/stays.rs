//! An erasure leaves all other records unchanged.

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    hand::{Call, Draft},
    purge::{self, Target},
};
use satchel_pam::{memory::Status, time::Timestamp};
use satchel_tests::archive::Archive;

/// PAM §7.1: a superseded memory cannot become active again.
#[test]
fn what_was_replaced_stays_replaced_when_its_successor_is_erased() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(&folder.path().join("data"))?;
    let call = Call { actor: "owner".into(), ..Call::default() };
    let draft = |text: &str| Draft { content: Some(text.to_owned()), ..Draft::default() };
    let first = |done: satchel_core::ingest::hand::Done| done.memories.first().cloned().context("an id");
    let imports = &archive.imports;
    let old = first(imports.add_memory(&call, &draft("Lives in Oslo"))?)?;
    let new = first(imports.add_memory(&call, &draft("Lives in Bergen"))?)?;
    imports.supersede_memory(&call, &old, "", Err(&new))?;
    let plan = purge::planned(&archive.store, &Target::Memory(new.clone()), Timestamp::EPOCH.micros())?;
    purge::note(&archive.store, &plan.context("something to erase")?.record)?;
    let stands = |archive: &Archive| -> Result<()> {
        let memory = archive.store.memory(&old, None)?.context("the old one")?.memory;
        ensure!(memory.status == Status::Superseded, "{:?}", memory.status);
        ensure!(memory.temporal.superseded_by.is_none(), "what was erased is named");
        Ok(())
    };
    stands(&archive)?;
    // The import makes the store derive everything again.
    let dir = folder.path().join("data");
    archive.close()?;
    let store = super::scene::store(&dir, None)?;
    store.close()?;
    let archive = Archive::open(&dir)?;
    archive.import(&satchel_tests::archive::demo().join("chatgpt-export"))?;
    stands(&archive)
}
