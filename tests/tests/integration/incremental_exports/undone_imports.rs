//! Undone imports in the store that made an export: an incremental export cannot take their records back elsewhere.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    export::FULL,
    ingest::{
        receipt::ImportStatus,
        undo::{UndoDirection, UndoRequest},
    },
};
use satchel_source::CancelToken;
use satchel_tests::test_core::{TestCore, demo_folder, only_import};

pub(super) fn undo(core: &TestCore, id: &str) -> Result<()> {
    let request = |dry_run, expected| UndoRequest { id, direction: UndoDirection::Undo, dry_run, expected };
    let seen = core.imports.undo_or_redo(request(true, None), &CancelToken::new())?.context("the import")?;
    core.imports
        .undo_or_redo(request(false, Some(seen.records())), &CancelToken::new())?
        .context("the import")?;
    Ok(())
}

fn names(core: &TestCore) -> Result<Vec<String>> {
    Ok(core.state()?.conversations.into_keys().collect())
}

#[test]
fn conversations_undone_by_the_exporter_stay_until_their_import_is_undone_here() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let here = TestCore::open(&at("here"))?;
    only_import(here.import(&demo_folder().join("chatgpt-export"))?)?;
    let remaining = names(&here)?;
    let undone = only_import(here.import(&demo_folder().join("claude-export"))?)?;
    let both = names(&here)?;
    ensure!(both.len() > remaining.len() && undone.conversations.new > 0, "{both:?}");
    here.export(&at("full"))?;
    undo(&here, &undone.id)?;
    let delta = here.export_changes(None, &at("changes"))?;
    ensure!(
        delta.full_next && delta.warnings.iter().any(|warning| warning.contains("taken back")),
        "{delta:?}"
    );
    let there = TestCore::open(&at("there"))?;
    let apply = |path: &Path| -> Result<_> {
        let import = there.apply(path)?;
        ensure!(import.status == ImportStatus::Completed, "{import:?}");
        Ok(import)
    };
    let full = apply(&at("full"))?;
    let applied = apply(&at("changes"))?;
    let named = applied.warnings.iter().filter(|warning| warning.message.contains("imports undo ID"));
    assert_eq!(named.count() as u64, undone.conversations.new, "{:?}", applied.warnings);
    assert_eq!(names(&there)?, both, "an incremental export removed conversations");
    // The fix that the warning names; the records that both contain return with the next full export, which is the next
    // export.
    undo(&there, &full.id)?;
    let next = here.export_changes(None, &at("next"))?;
    assert_eq!(next.export_type, FULL);
    apply(&at("next"))?;
    assert_eq!(names(&there)?, remaining);
    Ok(())
}
