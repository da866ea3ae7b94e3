//! What a program recorded is erased like everything else: in a conversation of its own, in one that an import contains
//! too, and in one whose export was imported beside it.

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    purge::Target,
    recording::{NewConversation, NewMessage, RecordingContext, RecordingError},
    request::RequestKey,
};
use satchel_pam::conversation::{Content, ContentKind, Role};
use satchel_tests::test_core::TestCore;

use crate::purge::fixture::{
    IN_MESSAGE, IN_TITLE, assert_erased, assert_store_intact, create_with_secrets, erase, files_containing,
    open_core,
};

/// Occurs in what is recorded.
const RECORDED: &str = "walrus-kettle-2218";

fn message() -> NewMessage {
    NewMessage {
        role: Role::User,
        content: Content {
            kind: ContentKind::Text,
            text: Some(format!("the safe is behind {RECORDED}")),
            parts: Vec::new(),
        },
        created_at: None,
        name: RECORDED.to_owned(),
        model: String::new(),
        client_id: String::new(),
    }
}

/// Returns a call with a request id, whose answer is kept.
fn call(id: u128) -> RecordingContext {
    let key = RequestKey { id: uuid::Uuid::from_u128(id).to_string(), body: "00".to_owned() };
    RecordingContext { actor: "owner".to_owned(), device: Some("device".to_owned()), request: Some(key) }
}

fn append(core: &TestCore, at: u128, id: &str) -> Result<()> {
    core.imports.recordings().append(&call(at), id, "", &[message()])?;
    Ok(())
}

fn target(id: &str) -> Target {
    Target::Conversation { id: id.to_owned(), keep_memories: false }
}

#[test]
fn a_recorded_conversation_is_erased_although_its_export_was_imported() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let core = open_core(&dir, None)?;
    let signers = core.exports.clone();
    core.imports.know_signers(move || signers.public_keys());
    let conversation = NewConversation {
        platform: "my-chat".to_owned(),
        agent_id: RECORDED.to_owned(),
        user_id: "user".to_owned(),
        session_id: RECORDED.to_owned(),
        title: RECORDED.to_owned(),
        messages: vec![message()],
        ..NewConversation::default()
    };
    let id = core.imports.recordings().record(&call(1), &conversation)?.conversation;
    append(&core, 2, &id)?;
    let bundle = folder.path().join("bundle");
    core.export(&bundle)?;
    core.import(&bundle)?;
    append(&core, 3, &id)?;
    append(&core, 4, &id)?;
    core.close()?;
    ensure!(!files_containing(&dir, RECORDED)?.is_empty(), "the search finds it before");
    erase(&dir, None, &target(&id))?;
    assert_erased(&dir, &[RECORDED], "after the conversation was erased")?;
    assert_store_intact(&dir, None)?;
    let core = open_core(&dir, None)?;
    let refused = core.imports.recordings().append(&call(5), &id, "", &[message()]);
    ensure!(matches!(refused, Err(RecordingError::NoConversation(_))), "{refused:?}");
    core.import_again(&bundle)?;
    ensure!(core.store.conversation(&id, None)?.context("a record")?.withdrawn, "it does not come back");
    Ok(())
}

#[test]
fn messages_appended_to_an_imported_conversation_are_erased_with_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path().join("data");
    let id = create_with_secrets(folder.path(), None)?.conversation;
    let core = open_core(&dir, None)?;
    append(&core, 1, &id)?;
    append(&core, 2, &id)?;
    core.close()?;
    erase(&dir, None, &target(&id))?;
    assert_erased(&dir, &[RECORDED, IN_MESSAGE, IN_TITLE], "after the conversation was erased")?;
    assert_store_intact(&dir, None)
}
