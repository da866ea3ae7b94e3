//! An erased record does not return: not with the same export, a bundle that contained it, a change by hand, or an undo
//! or redo.

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::{
    hand::{Call, Draft},
    purge::{Target, planned},
    undo::{Turn, TurnRequest},
};
use satchel_source::CancelToken;
use satchel_tests::archive::only;

use crate::scene::{ATTACHED, EDITED, REMEMBERED, SAID, TITLED, erase, none_of, open, planted, whole};

const WORDS: [&str; 5] = [SAID, REMEMBERED, ATTACHED, EDITED, TITLED];

#[test]
fn no_import_and_no_undo_brings_it_back() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = planted(folder.path(), None)?;
    let archive = open(&dir, None)?;
    archive.export_by(&satchel_core::export::ExportRequest {
        attachments: true,
        ..satchel_tests::archive::whole(folder.path().join("bundle"))
    })?;
    let first = archive.imports.list(None, 1)?.items.pop().context("an import")?;
    archive.close()?;
    erase(&dir, None, &Target::Conversation { id: ids.conversation.clone(), keep_memories: false })?;

    let archive = open(&dir, None)?;
    let again = only(archive.import_again(&folder.path().join("export"))?)?;
    ensure!(again.conversations.skipped == 1 && again.conversations.unchanged == 1, "{again:?}");
    ensure!(again.memories.skipped == 1 && again.memories.balanced(), "{again:?}");
    ensure!(
        again.skipped.iter().any(|skip| skip.reason.contains("erased it for good")),
        "{:?}",
        again.skipped
    );
    let digest = archive.store.state_digest();
    archive.import_again(&folder.path().join("export"))?;
    ensure!(archive.store.state_digest() == digest, "an import twice is once");
    let bundle = only(archive.import(&folder.path().join("bundle"))?)?;
    ensure!(bundle.conversations.skipped == 1 && bundle.memories.skipped == 1, "{bundle:?}");
    for turn in [Turn::Undo, Turn::Redo] {
        let request = TurnRequest { id: &first.id, turn, dry_run: false, expected: None };
        archive.imports.turn(request, &CancelToken::new())?.context("the import")?;
    }
    let call = Call { actor: "owner".to_owned(), ..Call::default() };
    let draft = Draft { content: Some(format!("The safe opens with {EDITED}.")), ..Draft::default() };
    let refused = archive.imports.add_memory(&call, &draft).err().context("it is refused")?;
    ensure!(refused.to_string().contains("erased for good"), "{refused}");
    let state = archive.state()?;
    ensure!(state.memories.len() == 1 && state.conversations.len() == 1, "{:?}", state.memories);
    archive.close()?;
    none_of(&dir, &WORDS, "after all of it came again")?;
    whole(&dir, None)
}

#[test]
fn what_is_gone_is_not_erased_twice_and_what_is_unknown_not_at_all() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = planted(folder.path(), None)?;
    let target = Target::Conversation { id: ids.conversation.clone(), keep_memories: true };
    let plan = erase(&dir, None, &target)?;
    ensure!(plan.memories.is_empty() && plan.conversations.len() == 1, "{plan:?}");
    let archive = open(&dir, None)?;
    ensure!(archive.state()?.memories.len() == 2, "the memories are kept");
    ensure!(planned(&archive.store, &target, 1)?.is_none());
    ensure!(planned(&archive.store, &Target::Memory("nobody".to_owned()), 1)?.is_none());
    archive.close()?;
    // The memory that was kept is erased later; then everything is gone.
    erase(&dir, None, &Target::Memory(ids.memory))?;
    none_of(&dir, &WORDS, "after both went")?;
    whole(&dir, None)
}

#[test]
fn what_an_undo_hides_is_erased_with_the_rest() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let ids = planted(folder.path(), None)?;
    let archive = open(&dir, None)?;
    let first = archive.imports.list(None, 1)?.items.pop().context("an import")?;
    let request = TurnRequest { id: &first.id, turn: Turn::Undo, dry_run: false, expected: None };
    archive.imports.turn(request, &CancelToken::new())?.context("the import")?;
    archive.close()?;
    let target = Target::Conversation { id: ids.conversation.clone(), keep_memories: false };
    erase(&dir, None, &target)?;
    none_of(&dir, &WORDS, "after what was hidden was erased")?;
    whole(&dir, None)
}
