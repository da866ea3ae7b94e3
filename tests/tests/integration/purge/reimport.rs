//! An erased record does not return: not with the same export, a bundle that contained it, a change by hand, or an undo
//! or redo.

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    edits::{Draft, EditContext},
    ingest::undo::{UndoDirection, UndoRequest},
    purge::{Target, planned},
};
use satchel_source::CancelToken;
use satchel_tests::test_core::only_import;

use crate::purge::fixture::{
    IN_ATTACHMENT, IN_EDIT, IN_MEMORY, IN_MESSAGE, IN_TITLE, assert_erased, assert_store_intact,
    create_with_secrets, erase, open_core,
};

const SECRETS: [&str; 5] = [IN_MESSAGE, IN_MEMORY, IN_ATTACHMENT, IN_EDIT, IN_TITLE];

#[test]
fn no_import_edit_or_undo_restores_an_erased_record() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = create_with_secrets(folder.path(), None)?;
    let core = open_core(&dir, None)?;
    core.export_with(&satchel_core::export::ExportRequest {
        attachments: true,
        ..satchel_tests::test_core::full_export(folder.path().join("bundle"))
    })?;
    let first = core.imports.list(None, 1)?.items.pop().context("an import")?;
    core.close()?;
    erase(&dir, None, &Target::Conversation { id: ids.conversation.clone(), keep_memories: false })?;

    let core = open_core(&dir, None)?;
    let again = only_import(core.import_again(&folder.path().join("export"))?)?;
    ensure!(again.conversations.skipped == 1 && again.conversations.unchanged == 1, "{again:?}");
    ensure!(again.memories.skipped == 1 && again.memories.balanced(), "{again:?}");
    ensure!(
        again.skipped.iter().any(|skip| skip.reason.contains("erased it for good")),
        "{:?}",
        again.skipped
    );
    let digest = core.store.state_digest();
    core.import_again(&folder.path().join("export"))?;
    ensure!(core.store.state_digest() == digest, "a repeated import changed the store");
    let bundle = only_import(core.import(&folder.path().join("bundle"))?)?;
    ensure!(bundle.conversations.skipped == 1 && bundle.memories.skipped == 1, "{bundle:?}");
    for direction in [UndoDirection::Undo, UndoDirection::Redo] {
        let request = UndoRequest { id: &first.id, direction, dry_run: false, expected: None };
        core.imports.undo_or_redo(request, &CancelToken::new())?.context("the import")?;
    }
    let call = EditContext { actor: "owner".to_owned(), ..EditContext::default() };
    let draft = Draft { content: Some(format!("The safe opens with {IN_EDIT}.")), ..Draft::default() };
    let refused = core.imports.edits().add_memory(&call, &draft).err().context("the call is refused")?;
    ensure!(refused.to_string().contains("erased for good"), "{refused}");
    let state = core.state()?;
    ensure!(state.memories.len() == 1 && state.conversations.len() == 1, "{:?}", state.memories);
    core.close()?;
    assert_erased(&dir, &SECRETS, "after everything was imported again")?;
    assert_store_intact(&dir, None)
}

#[test]
fn erased_and_unknown_records_are_not_erased_again() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = create_with_secrets(folder.path(), None)?;
    let target = Target::Conversation { id: ids.conversation.clone(), keep_memories: true };
    let plan = erase(&dir, None, &target)?;
    ensure!(plan.memories.is_empty() && plan.conversations.len() == 1, "{plan:?}");
    let core = open_core(&dir, None)?;
    ensure!(core.state()?.memories.len() == 2, "the memories were erased too");
    ensure!(planned(&core.store, &target, 1)?.is_none());
    ensure!(planned(&core.store, &Target::Memory("nobody".to_owned()), 1)?.is_none());
    core.close()?;
    // The memory that was kept is erased later; then everything is gone.
    erase(&dir, None, &Target::Memory(ids.memory))?;
    assert_erased(&dir, &SECRETS, "after both were erased")?;
    assert_store_intact(&dir, None)
}

#[test]
fn records_hidden_by_an_undo_are_erased_too() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = create_with_secrets(folder.path(), None)?;
    let core = open_core(&dir, None)?;
    let first = core.imports.list(None, 1)?.items.pop().context("an import")?;
    let request =
        UndoRequest { id: &first.id, direction: UndoDirection::Undo, dry_run: false, expected: None };
    core.imports.undo_or_redo(request, &CancelToken::new())?.context("the import")?;
    core.close()?;
    let target = Target::Conversation { id: ids.conversation.clone(), keep_memories: false };
    erase(&dir, None, &target)?;
    assert_erased(&dir, &SECRETS, "after hidden records were erased")?;
    assert_store_intact(&dir, None)
}
