//! What one store erased is erased in all of them.

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    edits::Draft,
    purge::{self, Target},
};
use satchel_store::{ConversationQuery, MemoryQuery, OpenOptions, Store};
use satchel_sync::Frontier;
use satchel_tests::test_core::demo_folder;

use super::{Peer, exchange, in_step, peer::same};

const AT: i64 = 1_800_000_000_000_000;

/// Erases a record, but not yet from the disk.
pub(super) fn erase(peer: &Peer, target: &Target) -> Result<()> {
    let plan = purge::planned(&peer.core.store, target, AT)?.context("there is something to erase")?;
    Ok(purge::record_purge(&peer.core.store, &plan.record)?)
}

/// Returns the ids of all memories that are shown.
pub(super) fn memories(peer: &Peer) -> Result<Vec<String>> {
    let store = &peer.core.store;
    let page = store.memories(&MemoryQuery::default(), None, 1_000, store.revision())?;
    Ok(page.items.into_iter().map(|record| record.memory.id).collect())
}

pub(super) fn conversations(peer: &Peer) -> Result<Vec<String>> {
    let store = &peer.core.store;
    let page = store.conversations(&ConversationQuery::default(), None, 1_000, store.revision())?;
    Ok(page.items.into_iter().map(|summary| summary.id).collect())
}

/// Opens a store anew, which removes what was erased from the disk.
fn reopened(peer: Peer, seed: u8) -> Result<Peer> {
    let dir = peer.dir.clone();
    drop(peer.sync);
    let store = peer.core.into_store()?;
    let mut open = || Store::open(&dir, OpenOptions::default(), &mut |_| {});
    purge::complete(&dir, store, None, &mut open)?.close()?;
    let peer = Peer::open(&dir, seed)?;
    peer.sync.unlock(peer.key())?;
    Ok(peer)
}

/// Returns whether a store would send a text to others.
fn sends(peer: &Peer, text: &str) -> Result<bool> {
    let mut found = false;
    peer.sync.changes_after(&Frontier::new(), |change| {
        let payload = String::from_utf8_lossy(change.payload().unwrap_or_default()).into_owned();
        found |= payload.contains(text);
        true
    })?;
    Ok(found)
}

#[test]
fn an_erasure_reaches_the_other_stores_and_their_disks() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    peers[0].import(&demo_folder().join("claude-export"))?;
    let tea = peers[0].add("Drinks oolong tea")?;
    in_step(&peers)?;
    let conversation = conversations(&peers[0])?.first().context("a conversation")?.clone();
    erase(&peers[0], &Target::Memory(tea.clone()))?;
    erase(&peers[0], &Target::Conversation { id: conversation.clone(), keep_memories: false })?;
    let (_, applied) = exchange_all(&peers[0], &peers[1])?;
    ensure!(applied.erasures == 2, "{applied:?}");
    ensure!(!memories(&peers[1])?.contains(&tea) && !conversations(&peers[1])?.contains(&conversation));
    for peer in &peers {
        ensure!(!sends(peer, "oolong")?, "{} still sends what was erased", peer.dir.display());
    }
    let [one, two] = peers;
    let peers = [reopened(one, 1)?, reopened(two, 2)?, Peer::new(dir.path(), 3)?];
    ensure!(!sends(&peers[1], "oolong")?);
    exchange_all(&peers[1], &peers[2])?;
    same(&peers)?;
    for _ in 0..2 {
        for (from, to) in [(0, 1), (1, 2), (2, 0), (1, 0)] {
            exchange_all(&peers[from], &peers[to])?;
        }
    }
    same(&peers)
}

/// Exchanges changes of which some have no payload any more.
pub(super) fn exchange_all(
    from: &Peer,
    to: &Peer,
) -> Result<(satchel_core::sync::Received, satchel_core::sync::Applied)> {
    let (received, applied) = to.take(from.changes_after(&to.sync.frontier()?)?)?;
    ensure!(received.refused.is_empty() && applied.blocked.is_empty(), "{received:?} {applied:?}");
    Ok((received, applied))
}

#[test]
fn what_an_erasure_left_of_a_list_comes_to_a_new_store() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    for sample in satchel_tests::samples::samples()? {
        peers[0].core.import(&sample.input)?;
    }
    in_step(&peers)?;
    let all = memories(&peers[0])?;
    ensure!(all.len() > 10, "{} memories", all.len());
    // Every third memory, in turns in one store and in the other.
    for (at, memory) in all.iter().step_by(3).enumerate() {
        let peer = &peers[at % 2];
        if memories(peer)?.contains(memory) {
            erase(peer, &Target::Memory(memory.clone()))?;
        }
    }
    for _ in 0..2 {
        exchange_all(&peers[0], &peers[1])?;
        exchange_all(&peers[1], &peers[0])?;
    }
    same(&peers)?;
    let [one, two] = peers;
    let peers = [reopened(one, 1)?, reopened(two, 2)?];
    same(&peers)?;
    for _ in 0..2 {
        exchange_all(&peers[0], &peers[1])?;
        exchange_all(&peers[1], &peers[0])?;
    }
    let [one, two] = peers;
    let peers = [one, two, Peer::new(dir.path(), 3)?];
    exchange_all(&peers[1], &peers[2])?;
    same(&peers)
}

#[test]
fn a_memory_with_the_same_text_is_erased_as_well() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let tea = peers[0].add("Drinks tea")?;
    let bees = peers[1].add("Keeps bees")?;
    in_step(&peers)?;
    // The first store does not know of it when it erases the text.
    peers[1].edit(&bees, &Draft { content: Some("Drinks tea".to_owned()), ..Draft::default() })?;
    erase(&peers[0], &Target::Memory(tea.clone()))?;
    for _ in 0..2 {
        exchange_all(&peers[0], &peers[1])?;
        exchange_all(&peers[1], &peers[0])?;
    }
    let left = [memories(&peers[0])?, memories(&peers[1])?];
    ensure!(left == [Vec::<String>::new(), Vec::new()], "{left:?}, erased {tea}, edited {bees}");
    same(&peers)
}

#[test]
fn an_edit_of_a_memory_that_was_erased_meanwhile_does_not_bring_it_back() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let tea = peers[0].add("Drinks tea")?;
    in_step(&peers)?;
    peers[1].edit(&tea, &Draft { content: Some("Drinks green tea".to_owned()), ..Draft::default() })?;
    erase(&peers[0], &Target::Memory(tea))?;
    for _ in 0..2 {
        exchange_all(&peers[0], &peers[1])?;
        exchange_all(&peers[1], &peers[0])?;
    }
    ensure!(memories(&peers[0])?.is_empty() && memories(&peers[1])?.is_empty());
    exchange(&peers[0], &peers[1])?;
    same(&peers)
}
