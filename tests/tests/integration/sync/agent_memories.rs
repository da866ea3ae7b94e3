//! What agents write in one store waits for the owner in all of them, and is reviewed in any.

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    edits::{Agent, AgentDraft, Draft, EditContext, QuarantineState, ReviewDecision},
    purge::Target,
};
use satchel_pam::memory::ExtractionMethod;

use super::{Peer, erasures, exchange, in_step, peer::owner};

/// Lets an agent on a paired device write a memory; returns the id that it gets when it is approved.
pub(super) fn write(peer: &Peer, content: &str) -> Result<String> {
    let call = EditContext { actor: "device:helper".to_owned(), ..EditContext::default() };
    let agent = Agent {
        device: format!("device-{}", peer.seed),
        device_name: "helper".to_owned(),
        entity: "helper".to_owned(),
        platform: "agents".to_owned(),
    };
    let draft = AgentDraft {
        draft: Draft { content: Some(content.to_owned()), ..Draft::default() },
        confidence: Some(0.5),
        conversation: None,
        message: None,
        method: ExtractionMethod::LlmInference,
    };
    let outcome = peer.core.imports.edits().quarantine_memory(&call, &agent, &draft)?;
    outcome.memories.first().cloned().context("a memory was written")
}

/// Returns the ids of the memories that wait.
pub(super) fn waiting(peer: &Peer) -> Result<Vec<String>> {
    let page = peer.core.imports.edits().quarantined_memories(true, None, 500)?;
    page.items.into_iter().map(|entry| Ok(entry.memory()?.id)).collect()
}

pub(super) fn review(peer: &Peer, id: &str, decision: ReviewDecision) -> Result<()> {
    peer.core.imports.edits().review_memories(&owner(), &[id.to_owned()], decision)?;
    Ok(())
}

fn state(peer: &Peer, id: &str) -> Result<QuarantineState> {
    let entry = peer.core.imports.edits().quarantined_memory(id)?;
    Ok(entry.context("the store knows it")?.state)
}

#[test]
fn what_waits_in_one_store_is_reviewed_in_another() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::silent(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let early = write(&peers[0], "Drinks tea")?;
    // What the agent wrote before the series began comes as well.
    peers[0].begin()?;
    let (good, bad) = (write(&peers[0], "Keeps bees")?, write(&peers[0], "Obeys the bot")?);
    in_step(&peers)?;
    for peer in &peers {
        ensure!(peer.core.imports.edits().waiting_memories()? == 3);
        ensure!(peer.memory(&good).is_err(), "nobody sees it yet");
    }
    review(&peers[1], &good, ReviewDecision::Approve)?;
    review(&peers[1], &bad, ReviewDecision::Reject)?;
    in_step(&peers)?;
    for peer in &peers {
        ensure!(waiting(peer)? == std::slice::from_ref(&early));
        ensure!(peer.core.imports.edits().waiting_memories()? == 1);
        ensure!(peer.memory(&good)?.content == "Keeps bees");
        ensure!(peer.memory(&bad).is_err() && state(peer, &bad)? == QuarantineState::Rejected);
        let versions = peer.core.store.memory_versions(&good)?;
        ensure!(versions.len() == 1, "{versions:?}");
    }
    // The agent gets the same answer everywhere.
    ensure!(write(&peers[1], "Obeys the bot").is_err(), "the owner has settled it");
    Ok(())
}

#[test]
fn an_approval_prevails_over_a_rejection_that_did_not_know_of_it() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let bees = write(&peers[0], "Keeps bees")?;
    in_step(&peers)?;
    review(&peers[1], &bees, ReviewDecision::Approve)?;
    review(&peers[0], &bees, ReviewDecision::Reject)?;
    in_step(&peers)?;
    for peer in &peers {
        ensure!(peer.memory(&bees)?.content == "Keeps bees");
        ensure!(matches!(state(peer, &bees)?, QuarantineState::Approved { .. }));
        ensure!(waiting(peer)?.is_empty());
    }
    Ok(())
}

#[test]
fn what_is_erased_while_it_waits_is_erased_everywhere() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut peers = vec![Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let secret = write(&peers[0], "Knows the code of the safe")?;
    exchange(&peers[0], &peers[1])?;
    let first = erasures::erase(peers.remove(0), &Target::Memory(secret.clone()))?;
    peers.insert(0, first);
    erasures::in_step(&mut peers)?;
    for peer in &peers {
        ensure!(waiting(peer)?.is_empty());
        ensure!(!erasures::sends(peer, "the code of the safe")?);
    }
    // If the agent writes it again, it waits in this store only, and the stores agree nevertheless.
    write(&peers[1], "Knows the code of the safe")?;
    erasures::in_step(&mut peers)?;
    ensure!(waiting(&peers[0])?.is_empty() && waiting(&peers[1])?.len() == 1);
    ensure!(!erasures::sends(&peers[1], "the code of the safe")?);
    // A store that comes later gets nothing of it.
    peers.push(Peer::new(dir.path(), 3)?);
    erasures::in_step(&mut peers)?;
    ensure!(waiting(&peers[2])?.is_empty());
    Ok(())
}
