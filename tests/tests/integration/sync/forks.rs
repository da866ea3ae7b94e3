//! Series with two branches: a disk that was set back, or copied, and went on in both states.

mod histories;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use satchel_core::{edits::Draft, ingest::undo::UndoDirection, sync::Received};
use satchel_source::CancelToken;
use satchel_sync::{Author, Continuation, Frontier, Head, Kind, OriginId, SignedChange, SigningKey};
use satchel_tests::{samples::copy, test_core::demo_folder};

use super::{
    Peer, erasures,
    peer::{ROUNDS, same},
    recordings,
};

/// Creates a store whose series has a key of its own in the data directory.
fn begun(folder: &Path, number: u8) -> Result<Peer> {
    let peer = Peer::silent(folder, number)?;
    peer.sync.ensure_begun(&peer.dir)?;
    Ok(peer)
}

/// Closes a store, copies its data directory to `image`, and opens it again.
fn with_image(peer: Peer, image: &Path) -> Result<Peer> {
    let (dir, number) = (peer.dir.clone(), peer.seed);
    drop(peer.sync);
    peer.core.close()?;
    if image.exists() {
        std::fs::remove_dir_all(image)?;
    }
    copy(&dir, image)?;
    Peer::resumed(&dir, number)
}

/// Returns the store with the data directory that is in an image.
fn set_back(peer: Peer, image: &Path) -> Result<Peer> {
    let (mut dir, number) = (peer.dir.clone(), peer.seed);
    drop(peer.sync);
    peer.core.close()?;
    std::fs::remove_dir_all(&dir)?;
    while dir.exists() || dir == peer.dir {
        dir.as_mut_os_string().push("+");
    }
    copy(image, &dir)?;
    Peer::resumed(&dir, number)
}

/// Stores changes as the daemon does.
fn receive(to: &Peer, changes: &[SignedChange]) -> Result<Received> {
    let again = |to: &Peer| Ok(to.sync.receive(changes.iter().cloned())?);
    match to.sync.receive(changes.iter().cloned()) {
        Err(error) if error.rolled_back() => {
            to.sync.renew_origin(&to.dir)?;
            again(to)
        }
        Err(error) => Err(error.into()),
        Ok(received) => match &received.own_fork {
            Some(proof) if to.sync.mend_fork(&to.dir, proof)?.is_some() => again(to),
            _ => Ok(received),
        },
    }
}

/// Lets changes take effect as the daemon does.
fn apply(peers: &mut Vec<Peer>, at: usize) -> Result<()> {
    loop {
        let applied = peers[at].sync.apply(&CancelToken::new())?;
        ensure!(applied.unknown == 0, "{applied:?}");
        if applied.erasures > 0 {
            let peer = peers.remove(at);
            peers.insert(at, erasures::completed(peer)?);
        } else if applied.repeated == 0 || !peers[at].sync.drop_repeated(&peers[at].dir)? {
            return Ok(());
        }
    }
}

fn with_head(frontier: &Frontier, origin: OriginId, head: Head) -> Result<Frontier> {
    let mut changed = Frontier::new();
    for (of, known) in frontier.heads() {
        changed.advance(of, if of == origin { head } else { known })?;
    }
    Ok(changed)
}

/// Sends what the store `to` lacks, and the other branch of its own series if that has two.
fn meet(peers: &mut Vec<Peer>, from: usize, to: usize) -> Result<()> {
    let [sender, receiver] = [&peers[from], &peers[to]];
    if sender.sync.frontier()? == receiver.sync.frontier()?
        && sender.sync.origin()? == receiver.sync.origin()?
    {
        receiver.sync.renew_origin(&receiver.dir)?;
    }
    receive(receiver, &sender.changes_after(&receiver.sync.frontier()?)?)?;
    apply(peers, to)?;
    let [sender, receiver] = [&peers[from].sync, &peers[to].sync];
    let (own, theirs) = (receiver.origin()?.context("a series")?, receiver.frontier()?);
    let (Some(ours), Some(head)) = (sender.frontier()?.head(own), theirs.head(own)) else { return Ok(()) };
    let mut counter = ours.counter.min(head.counter).get();
    while sender.head_at(own, counter)? != receiver.head_at(own, counter)? {
        counter -= 1;
    }
    let common = receiver.head_at(own, counter)?.context("the genesis is common")?;
    if common != ours && common != head {
        receive(&peers[to], &peers[from].changes_after(&with_head(&theirs, own, common)?)?)?;
        apply(peers, to)?;
    }
    Ok(())
}

fn in_step(peers: &mut Vec<Peer>) -> Result<()> {
    for _ in 0..ROUNDS {
        for from in 0..peers.len() {
            for to in (0..peers.len()).filter(|to| *to != from) {
                meet(peers, from, to)?;
            }
        }
        let frontiers: Vec<Frontier> =
            peers.iter().map(|peer| peer.sync.frontier()).collect::<Result<_, _>>()?;
        let waits: Vec<bool> =
            peers.iter().map(|peer| peer.sync.has_unapplied()).collect::<Result<_, _>>()?;
        if frontiers.windows(2).all(|pair| pair[0] == pair[1]) && !waits.contains(&true) {
            return same(peers);
        }
    }
    bail!("the stores do not come to hold the same")
}

/// Returns all texts that these memories ever had in a store.
fn texts<'a>(peer: &Peer, ids: impl IntoIterator<Item = &'a String>) -> Result<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    for id in ids {
        let versions = peer.core.store.memory_versions(id)?;
        texts.extend(versions.into_iter().map(|version| version.memory.content));
    }
    Ok(texts)
}

fn text(peer: &Peer, id: &str, text: &str) -> Result<String> {
    peer.edit(id, &Draft { content: Some(text.to_owned()), ..Draft::default() })
}

/// Three stores in step: the first one, whose image is in the folder that is returned, and two others.
fn three(folder: &Path) -> Result<(Vec<Peer>, PathBuf, String)> {
    let mut peers = vec![begun(folder, 1)?, begun(folder, 2)?, begun(folder, 3)?];
    let tea = peers[0].add("Drinks tea")?;
    peers[0].import(&demo_folder().join("claude-export"))?;
    in_step(&mut peers)?;
    let image = folder.join("image");
    let first = peers.remove(0);
    peers.insert(0, with_image(first, &image)?);
    Ok((peers, image, tea))
}

#[test]
fn a_store_that_was_set_back_and_changed_is_united_with_what_it_had_sent() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut peers, image, tea) = three(dir.path())?;
    text(&peers[0], &tea, "Drinks green tea")?;
    let lost = peers[0].add("Written before the disk was set back")?;
    peers[0].import(&demo_folder().join("chatgpt-export"))?;
    meet(&mut peers, 0, 1)?;
    let earlier = peers[0].sync.origin()?;

    let first = peers.remove(0);
    peers.insert(0, set_back(first, &image)?);
    ensure!(peers[0].sync.origin()? == earlier, "it does not know yet");
    let kept = peers[0].add("Written after the disk was set back")?;
    for edit in ["Drinks mate", "Drinks yerba mate"] {
        text(&peers[0], &tea, edit)?;
    }
    let import = peers[0].import(&demo_folder().join("grok-export"))?;
    peers[0].undo(&import.id, UndoDirection::Undo)?;
    recordings::record(&peers[0], None, "oolong")?;
    in_step(&mut peers)?;

    ensure!(peers[0].sync.origin()? != earlier, "it goes on with a new series");
    for peer in &peers {
        for id in [&lost, &kept] {
            peer.memory(id)?;
        }
        let all = texts(peer, [&tea])?;
        for text in ["Drinks tea", "Drinks green tea", "Drinks mate", "Drinks yerba mate"] {
            ensure!(all.contains(text), "{text}: {all:?}");
        }
        // Of the own branch, only the last edit is left; it does not know of the one before the disk was set back.
        let conflicts = peer.sync.conflicts()?;
        let values: Vec<usize> = conflicts.iter().map(|conflict| conflict.values.len()).collect();
        ensure!(values == [2], "{conflicts:?}");
    }
    // An edit that has seen both settles it everywhere.
    text(&peers[0], &tea, "Drinks water")?;
    peers[0].undo(&import.id, UndoDirection::Redo)?;
    in_step(&mut peers)?;
    for peer in &peers {
        ensure!(peer.memory(&tea)?.content == "Drinks water");
        ensure!(peer.sync.conflicts()?.is_empty());
    }
    let mut peers: Vec<Peer> = peers.into_iter().map(Peer::reopened).collect::<Result<_>>()?;
    peers[0].add("Goes on after a restart")?;
    in_step(&mut peers)?;

    // As if the power had failed before the new key was on the disk.
    let united = peers[0].sync.origin()?;
    std::fs::copy(image.join("peers/series.json"), peers[0].dir.join("peers/series.json"))?;
    let first = peers.remove(0).reopened()?;
    peers.insert(0, first);
    ensure!(peers[0].sync.origin()? != united, "a new series, as the key is of another one");
    peers[0].add("Goes on with another key")?;
    in_step(&mut peers)
}

/// Only the key of a series can give up a branch of it.
#[test]
fn nobody_else_has_a_branch_dropped() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let peer = begun(dir.path(), 1)?;
    let tea = peer.add("Drinks tea")?;
    let own = peer.sync.origin()?.context("a series")?;
    let head = |counter| peer.sync.head_at(own, counter)?.context("a change");
    let (base, hash) = (head(1)?, head(2)?.hash);

    let key = SigningKey::from_bytes(&[77; 32]);
    let mut seen = Frontier::new();
    seen.advance(own, head(2)?)?;
    let (mut author, genesis) = Author::begin(key.clone(), [7; 16], &seen)?;
    let by = author.series().origin();
    let invented = Continuation::sign(&key, own, base, vec![hash], by);
    let change = author.append(Kind(12), [&[0; 16][..], &invented.encode()].concat(), &seen)?;
    let before = peer.sync.frontier()?.head(own);
    peer.sync.receive([genesis, change])?;
    let applied = peer.sync.apply(&CancelToken::new())?;
    let reason = &applied.blocked.first().context("it is refused")?.reason;
    ensure!(reason.contains("without the signature of its key"), "{reason}");
    ensure!(!peer.sync.drop_repeated(&peer.dir)?);
    ensure!(peer.sync.frontier()?.head(own) == before && peer.memory(&tea)?.content == "Drinks tea");
    Ok(())
}

#[test]
fn others_that_have_the_branch_drop_it_and_lose_nothing() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut peers, image, tea) = three(dir.path())?;
    text(&peers[0], &tea, "Drinks green tea")?;
    meet(&mut peers, 0, 1)?;
    let first = peers.remove(0);
    peers.insert(0, set_back(first, &image)?);
    for edit in ["Drinks mate", "Drinks yerba mate", "Drinks mate again"] {
        text(&peers[0], &tea, edit)?;
    }
    peers[0].import(&demo_folder().join("grok-export"))?;
    // The third store has seen this branch, and goes on from there.
    meet(&mut peers, 0, 2)?;
    let seen = peers[2].sync.origin()?;
    text(&peers[2], &tea, "Drinks coffee")?;
    peers[2].tag(&tea, &["kitchen"])?;
    // While the last change that repeats the branch has not come, the branch stays, and the person is told what waits.
    meet(&mut peers, 1, 0)?;
    let own = peers[0].sync.origin()?.context("a new series")?;
    let mut changes = peers[0].changes_after(&peers[2].sync.frontier()?)?;
    let last = changes.iter().rposition(|change| change.change().origin == own).context("the new series")?;
    changes.remove(last);
    receive(&peers[2], &changes)?;
    let applied = peers[2].sync.apply(&CancelToken::new())?;
    ensure!(applied.repeated > 0 && !peers[2].sync.drop_repeated(&peers[2].dir)?, "{applied:?}");
    let blocked = applied.blocked.iter().find(|blocked| blocked.origin == own).context("it waits")?;
    ensure!(blocked.reason.contains("repeats changes"), "{blocked:?}");
    in_step(&mut peers)?;
    ensure!(peers[2].sync.origin()? != seen, "the series that refers to the branch has ended");
    for peer in &peers {
        let all = texts(peer, [&tea])?;
        for text in ["Drinks green tea", "Drinks mate", "Drinks yerba mate", "Drinks coffee"] {
            ensure!(all.contains(text), "{text}: {all:?}");
        }
        let conflicts = peer.sync.conflicts()?;
        ensure!(conflicts.len() == 1 && conflicts[0].values.len() == 2, "{conflicts:?}");
        ensure!(peer.memory(&tea)?.tags == ["kitchen"]);
    }
    Ok(())
}

#[test]
fn two_copies_that_both_went_on_are_united() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut peers, image, tea) = three(dir.path())?;
    let other = dir.path().join("store-4");
    copy(&image, &other)?;
    peers.push(Peer::resumed(&other, 4)?);
    ensure!(peers[0].sync.origin()? == peers[3].sync.origin()?);
    text(&peers[0], &tea, "Drinks green tea")?;
    text(&peers[3], &tea, "Drinks mate")?;
    peers[3].import(&demo_folder().join("chatgpt-export"))?;
    peers[0].import(&demo_folder().join("chatgpt-export"))?;
    in_step(&mut peers)?;
    ensure!(peers[0].sync.origin()? != peers[3].sync.origin()?);
    for peer in &peers {
        let all = texts(peer, [&tea])?;
        ensure!(all.contains("Drinks green tea") && all.contains("Drinks mate"), "{all:?}");
    }
    Ok(())
}
