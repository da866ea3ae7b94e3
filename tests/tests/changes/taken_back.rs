//! Undone imports in the store that made an export: an incremental export cannot take their records back elsewhere.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    export::FULL,
    ingest::{
        receipt::ImportStatus,
        undo::{Turn, TurnRequest},
    },
};
use satchel_source::CancelToken;
use satchel_tests::archive::{Archive, demo, only};

pub(super) fn undo(archive: &Archive, id: &str) -> Result<()> {
    let request = |dry_run, expected| TurnRequest { id, turn: Turn::Undo, dry_run, expected };
    let seen = archive.imports.turn(request(true, None), &CancelToken::new())?.context("the import")?;
    archive.imports.turn(request(false, Some(seen.records())), &CancelToken::new())?.context("the import")?;
    Ok(())
}

fn names(archive: &Archive) -> Result<Vec<String>> {
    Ok(archive.state()?.conversations.into_keys().collect())
}

#[test]
fn conversations_that_were_taken_back_elsewhere_stay_are_named_and_can_go() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let here = Archive::open(&at("here"))?;
    only(here.import(&demo().join("chatgpt-export"))?)?;
    let kept = names(&here)?;
    let gone = only(here.import(&demo().join("claude-export"))?)?;
    let both = names(&here)?;
    ensure!(both.len() > kept.len() && gone.conversations.new > 0, "{both:?}");
    here.export(&at("full"))?;
    undo(&here, &gone.id)?;
    let delta = here.export_changes(None, &at("changes"))?;
    ensure!(
        delta.full_next && delta.warnings.iter().any(|warning| warning.contains("taken back")),
        "{delta:?}"
    );
    let there = Archive::open(&at("there"))?;
    let apply = |path: &Path| -> Result<_> {
        let import = there.apply(path)?;
        ensure!(import.status == ImportStatus::Completed, "{import:?}");
        Ok(import)
    };
    let full = apply(&at("full"))?;
    let applied = apply(&at("changes"))?;
    let told = applied.warnings.iter().filter(|warning| warning.message.contains("imports undo ID"));
    assert_eq!(told.count() as u64, gone.conversations.new, "{:?}", applied.warnings);
    assert_eq!(names(&there)?, both, "nothing is taken away by an addition");
    // The fix that the warning names; the records that both contain return with the next full export, which is the next
    // export.
    undo(&there, &full.id)?;
    let next = here.export_changes(None, &at("next"))?;
    assert_eq!(next.export_type, FULL);
    apply(&at("next"))?;
    assert_eq!(names(&there)?, kept);
    Ok(())
}
