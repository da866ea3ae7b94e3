//! What one store erased is erased in all of them.

use anyhow::{Context as _, Result, bail, ensure};
use satchel_core::{
    edits::Draft,
    purge::{self, Target},
};
use satchel_source::CancelToken;
use satchel_store::{ConversationQuery, MemoryQuery, OpenOptions, Store};
use satchel_sync::{Frontier, SignedChange};
use satchel_tests::test_core::demo_folder;

use super::{
    Peer,
    peer::{ROUNDS, same},
};

const AT: i64 = 1_800_000_000_000_000;

/// Erases a record, also from the disk.
pub(super) fn erase(peer: Peer, target: &Target) -> Result<Peer> {
    let plan = purge::planned(&peer.core.store, target, AT)?.context("there is something to erase")?;
    purge::record_purge(&peer.core.store, &plan.record)?;
    completed(peer)
}

/// Opens a store anew, which removes what was erased from the disk.
pub(super) fn completed(peer: Peer) -> Result<Peer> {
    let (dir, seed) = (peer.dir.clone(), peer.seed);
    drop(peer.sync);
    let store = peer.core.into_store()?;
    let mut open = || Store::open(&dir, OpenOptions::default(), &mut |_| {});
    purge::complete(&dir, store, None, &mut open)?.close()?;
    Peer::resumed(&dir, seed)
}

/// Sends everything that the store `to` lacks from the store `from`. Some changes may have no payload any more. Returns the number of
/// erasures among them.
pub(super) fn send(peers: &mut Vec<Peer>, from: usize, to: usize) -> Result<u64> {
    let changes = peers[from].changes_after(&peers[to].sync.frontier()?)?;
    take(peers, to, changes)
}

/// Gives changes to a store, and lets it complete erasures.
pub(super) fn take(peers: &mut Vec<Peer>, to: usize, changes: Vec<SignedChange>) -> Result<u64> {
    let (received, mut applied) = peers[to].take(changes)?;
    ensure!(received.refused.is_empty(), "{received:?}");
    let mut erasures = 0;
    loop {
        ensure!(applied.blocked.is_empty() && applied.unknown == 0, "{applied:?}");
        if applied.erasures == 0 {
            return Ok(erasures);
        }
        erasures += applied.erasures;
        let peer = peers.remove(to);
        peers.insert(to, completed(peer)?);
        applied = peers[to].sync.apply(&CancelToken::new())?;
    }
}

/// Exchanges changes until all stores hold the same, and checks that they show the same.
pub(super) fn in_step(peers: &mut Vec<Peer>) -> Result<()> {
    for _ in 0..ROUNDS {
        for from in 0..peers.len() {
            for to in (0..peers.len()).filter(|to| *to != from) {
                send(peers, from, to)?;
            }
        }
        let frontiers: Vec<Frontier> =
            peers.iter().map(|peer| peer.sync.frontier()).collect::<Result<_, _>>()?;
        if frontiers.windows(2).all(|pair| pair[0] == pair[1]) {
            return same(peers);
        }
    }
    bail!("the stores do not come to hold the same")
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

/// Returns whether a store would send a text to others.
pub(super) fn sends(peer: &Peer, text: &str) -> Result<bool> {
    let mut found = false;
    peer.sync.changes_after(&Frontier::new(), None, |change| {
        let payload = String::from_utf8_lossy(change.payload().unwrap_or_default()).into_owned();
        found |= payload.contains(text);
        true
    })?;
    Ok(found)
}

#[test]
fn an_erasure_reaches_the_other_stores_and_their_disks() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut peers = vec![Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    peers[0].import(&demo_folder().join("claude-export"))?;
    let tea = peers[0].add("Drinks oolong tea")?;
    in_step(&mut peers)?;
    let conversation = conversations(&peers[0])?.first().context("a conversation")?.clone();
    let one = erase(peers.remove(0), &Target::Memory(tea.clone()))?;
    let target = Target::Conversation { id: conversation.clone(), keep_memories: false };
    peers.insert(0, erase(one, &target)?);
    let erasures = send(&mut peers, 0, 1)?;
    ensure!(erasures == 2, "{erasures} erasures");
    ensure!(!memories(&peers[1])?.contains(&tea) && !conversations(&peers[1])?.contains(&conversation));
    for peer in &peers {
        ensure!(!sends(peer, "oolong")?, "{} still sends what was erased", peer.dir.display());
    }
    peers.push(Peer::new(dir.path(), 3)?);
    send(&mut peers, 1, 2)?;
    same(&peers)?;
    in_step(&mut peers)
}

#[test]
fn nothing_takes_effect_before_an_erasure_is_completed() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut peers = vec![Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let tea = peers[0].add("Drinks oolong tea")?;
    in_step(&mut peers)?;
    let one = erase(peers.remove(0), &Target::Memory(tea.clone()))?;
    let changes = one.changes_after(&peers[0].sync.frontier()?)?;
    let bees = one.add("Keeps bees")?;
    let later = one.changes_after(&peers[0].sync.frontier()?)?;
    let (_, applied) = peers[0].take(changes)?;
    ensure!(applied.erasures == 1 && !memories(&peers[0])?.contains(&tea), "{applied:?}");
    // The text is on the disk yet, but is not sent.
    ensure!(!sends(&peers[0], "oolong")?);
    let (_, applied) = peers[0].take(later)?;
    ensure!(applied.erasures == 1 && applied.edits == 0, "{applied:?}");
    peers.insert(0, one);
    take(&mut peers, 1, Vec::new())?;
    ensure!(memories(&peers[1])? == [bees]);
    in_step(&mut peers)
}

#[test]
fn what_an_erasure_left_of_a_list_comes_to_a_new_store() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut peers = vec![Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    // A list of all memories at once, and statements with one memory each.
    for export in ["chatgpt-export", "claude-export"] {
        peers[0].core.import(&demo_folder().join(export))?;
    }
    in_step(&mut peers)?;
    let all = memories(&peers[0])?;
    ensure!(all.len() >= 6, "{} memories", all.len());
    // Every second memory, in turns in one store and in the other.
    for (at, memory) in all.iter().step_by(2).enumerate() {
        if memories(&peers[at % 2])?.contains(memory) {
            let peer = peers.remove(at % 2);
            peers.insert(at % 2, erase(peer, &Target::Memory(memory.clone()))?);
        }
    }
    in_step(&mut peers)?;
    ensure!(!memories(&peers[0])?.is_empty());
    peers.push(Peer::new(dir.path(), 3)?);
    send(&mut peers, 1, 2)?;
    same(&peers)
}

#[test]
fn a_memory_with_the_same_text_is_erased_as_well() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut peers = vec![Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let tea = peers[0].add("Drinks tea")?;
    let bees = peers[1].add("Keeps bees")?;
    in_step(&mut peers)?;
    // The first store does not know of it when it erases the text.
    peers[1].edit(&bees, &Draft { content: Some("Drinks tea".to_owned()), ..Draft::default() })?;
    let one = erase(peers.remove(0), &Target::Memory(tea))?;
    peers.insert(0, one);
    in_step(&mut peers)?;
    ensure!(memories(&peers[0])?.is_empty());
    Ok(())
}

#[test]
fn an_edit_of_a_memory_that_was_erased_meanwhile_does_not_bring_it_back() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut peers = vec![Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?];
    let tea = peers[0].add("Drinks tea")?;
    in_step(&mut peers)?;
    peers[1].edit(&tea, &Draft { content: Some("Drinks green tea".to_owned()), ..Draft::default() })?;
    let one = erase(peers.remove(0), &Target::Memory(tea))?;
    peers.insert(0, one);
    in_step(&mut peers)?;
    ensure!(memories(&peers[0])?.is_empty());
    Ok(())
}
