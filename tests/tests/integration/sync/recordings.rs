//! Conversations that programs record are in all stores.

use anyhow::{Result, ensure};
use satchel_core::recording::{NewConversation, NewMessage, RecordingContext};
use satchel_pam::conversation::{Content, ContentKind, Role};
use satchel_tests::test_core::demo_folder;

use super::{Peer, erasures::conversations, exchange, in_step};

fn message(text: &str) -> NewMessage {
    let content = Content { kind: ContentKind::Text, text: Some(text.to_owned()), parts: Vec::new() };
    let (name, model, client_id) = (String::new(), String::new(), String::new());
    NewMessage { role: Role::User, content, created_at: None, name, model, client_id }
}

/// Records a message in a conversation, or in a new one; returns the id of the conversation.
pub(super) fn record(peer: &Peer, conversation: Option<&str>, text: &str) -> Result<String> {
    let recordings = peer.core.imports.recordings();
    let call = RecordingContext { actor: "owner".to_owned(), ..RecordingContext::default() };
    if let Some(id) = conversation {
        return Ok(recordings.append(&call, id, "", &[message(text)])?.conversation);
    }
    let conversation = NewConversation {
        platform: "local".to_owned(),
        agent_id: "agent".to_owned(),
        user_id: "user".to_owned(),
        title: format!("About {text}"),
        messages: vec![message(text)],
        ..NewConversation::default()
    };
    Ok(recordings.record(&call, &conversation)?.conversation)
}

fn shows(peer: &Peer, text: &str) -> Result<bool> {
    Ok(peer.core.state()?.conversations.values().any(|shown| shown.to_string().contains(text)))
}

#[test]
fn a_recorded_conversation_is_continued_in_both_stores() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let tea = record(&peers[0], None, "oolong")?;
    in_step(&peers)?;
    // At the same time.
    record(&peers[0], Some(&tea), "sencha")?;
    record(&peers[1], Some(&tea), "matcha")?;
    in_step(&peers)?;
    for text in ["oolong", "sencha", "matcha"] {
        ensure!(shows(&peers[0], text)?, "{text} is missing");
    }
    record(&peers[1], Some(&tea), "rooibos")?;
    in_step(&peers)
}

#[test]
fn what_was_recorded_before_the_series_began_comes_too() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::silent(dir.path(), 1)?, Peer::silent(dir.path(), 2)?];
    record(&peers[0], None, "oolong")?;
    peers[0].import(&demo_folder().join("claude-export"))?;
    peers[1].import(&demo_folder().join("claude-export"))?;
    let imported = conversations(&peers[0])?;
    let mut continued = 0;
    for id in &imported {
        continued += u32::from(record(&peers[0], Some(id), &format!("more about {id}")).is_ok());
    }
    ensure!(continued > 1, "{continued} conversations were continued");
    let before = peers[0].core.state()?;
    peers.iter().try_for_each(|peer| peer.begin().map(drop))?;
    ensure!(peers[0].core.state()? == before, "beginning a series changes nothing");
    in_step(&peers)?;
    ensure!(peers[1].core.state()? == before);
    Ok(())
}

#[test]
fn an_imported_conversation_is_continued_before_the_import_is_exchanged() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?, Peer::new(dir.path(), 3)?];
    peers[0].import(&demo_folder().join("claude-export"))?;
    for id in conversations(&peers[0])? {
        // Some kinds of conversations cannot be continued.
        if record(&peers[0], Some(&id), "more of it").is_ok() {
            record(&peers[0], Some(&id), "and still more")?;
        }
    }
    exchange(&peers[0], &peers[1])?;
    exchange(&peers[1], &peers[2])?;
    in_step(&peers)?;
    ensure!(shows(&peers[2], "still more")?);
    Ok(())
}
