//! Stores that give another one only a part of what they have.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use satchel_core::{ingest::undo::UndoDirection, purge::Target, sync::PayloadRange};
use satchel_source::CancelToken;
use satchel_store::Revision;
use satchel_sync::Counter;
use satchel_tests::{generate::Rng, test_core::demo_folder};

use super::{
    Peer, erasures, exchange,
    part::{
        Part, changes, for_seeds, full, give, give_payloads, included, shown, take, with_rows, write_list,
    },
    peer::{ROUNDS, same},
    recordings,
};

#[test]
fn a_part_that_has_everything_is_the_same_as_the_whole() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two, three) = (full(dir.path())?, Peer::new(dir.path(), 2)?, Peer::new(dir.path(), 3)?);
    give(&one, &two, &Part::default())?;
    exchange(&one, &three)?;
    ensure!(one.core.state()? == two.core.state()?);
    ensure!(two.core.state()? == three.core.state()?);
    Ok(())
}

#[test]
fn only_payloads_about_the_part_are_sent() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let one = full(dir.path())?;
    let all = one.core.state()?;
    for (seed, platform) in [(2, "chatgpt"), (3, "claude")] {
        let (two, part) = (Peer::new(dir.path(), seed)?, Part::of_platform(platform));
        let sent = give(&one, &two, &part)?;
        let expected = included(&one, &part)?;
        ensure!(included(&two, &Part::default())? == expected && !expected.is_empty());
        let conversations = two.core.state()?.conversations;
        let of_platform: Vec<_> = all
            .conversations
            .iter()
            .filter(|(_, conversation)| conversation["provider"]["name"] == platform)
            .collect();
        ensure!(conversations.iter().eq(of_platform) && !conversations.is_empty());
        // Nothing of the others is on the wire.
        let others = shown(&one)?.into_iter().filter(|memory| !part.includes(memory));
        let others: BTreeSet<String> = others.map(|memory| memory.content).collect();
        ensure!(!others.is_empty());
        for change in &sent {
            let text = String::from_utf8_lossy(change.payload().unwrap_or_default()).into_owned();
            let found = others.iter().find(|content| text.contains(content.as_str()));
            ensure!(found.is_none(), "{found:?} is in {text}");
        }
        ensure!(two.sync.frontier()? == one.sync.frontier()?.join(&two.sync.frontier()?)?);
        ensure!(give_payloads(&one, &two, &part)? == 0, "it got all of its part at once");
        // Another store that gets everything asks for the rest.
        ensure!(give_payloads(&one, &two, &Part::default())? > 0);
        ensure!(two.core.state()?.memories == all.memories);
        ensure!(two.core.state()?.conversations == all.conversations);
    }
    Ok(())
}

#[test]
fn what_comes_into_the_part_later_is_sent_with_its_history() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let part = Part::tagged("work");
    let bees = one.add("Keeps bees")?;
    one.tag(&bees, &["home"])?;
    give(&one, &two, &part)?;
    ensure!(shown(&two)?.is_empty());
    let before = one.core.store.revision();
    ensure!(!one.sync.part_moves(&part, Revision::ZERO)?.included, "nothing of it is in the part");
    one.tag(&bees, &["home", "work"])?;
    ensure!(one.sync.part_moves(&part, before)?.included);
    give(&one, &two, &part)?;
    ensure!(give_payloads(&one, &two, &part)? == 2, "the memory, and its first tags");
    ensure!(shown(&two)? == shown(&one)?);
    let after = one.core.store.revision();
    one.tag(&bees, &["work"])?;
    ensure!(!one.sync.part_moves(&part, after)?.included, "it was in the part before");
    // What the other store makes of it comes back, and on to a third one.
    give(&one, &two, &part)?;
    two.tag(&bees, &["hobby", "work"])?;
    exchange(&two, &one)?;
    ensure!(one.memory(&bees)?.tags == ["hobby", "work"]);
    Ok(())
}

#[test]
fn a_third_store_gets_the_rest_from_the_one_that_has_it() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let one = full(dir.path())?;
    let (two, three) = (Peer::new(dir.path(), 2)?, Peer::new(dir.path(), 3)?);
    give(&one, &two, &Part::of_platform("claude"))?;
    give(&two, &three, &Part::default())?;
    ensure!(three.core.state()?.memories == two.core.state()?.memories);
    ensure!(give_payloads(&one, &three, &Part::default())? > 0);
    ensure!(three.core.state()? == one.core.state()?);
    Ok(())
}

#[test]
fn a_list_comes_only_as_a_whole() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let part = Part::tagged("work");
    one.import(&write_list(
        &dir.path().join("list"),
        &["Keeps bees.", "Sells honey.", "Is shy.", "Has a van."],
    )?)?;
    let ids: Vec<String> = shown(&one)?.into_iter().map(|memory| memory.id).collect();
    ensure!(ids.len() == 4);
    one.tag(&ids[0], &["work"])?;
    one.tag(&ids[1], &["work"])?;
    give(&one, &two, &part)?;
    ensure!(give_payloads(&one, &two, &part)? == 0 && shown(&two)?.is_empty());
    let before = one.core.store.revision();
    one.tag(&ids[2], &["work"])?;
    give(&one, &two, &part)?;
    ensure!(shown(&two)?.is_empty(), "one of them is not in the part");
    // An erasure of the last one completes it.
    one = erasures::erase(one, &Target::Memory(ids[3].clone()))?;
    ensure!(one.sync.part_moves(&part, before)?.included);
    let sent = changes(&one, &two, &part)?;
    let mut peers = vec![one, two];
    erasures::take(&mut peers, 1, sent)?;
    ensure!(give_payloads(&peers[0], &peers[1], &part)? > 0);
    ensure!(shown(&peers[1])? == shown(&peers[0])? && shown(&peers[0])?.len() == 3);
    Ok(())
}

#[test]
fn what_has_not_taken_effect_is_not_offered() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let three = Peer::new(dir.path(), 3)?;
    let part = Part { denied: vec!["private"], ..Part::default() };
    let secret = one.add("Is in love")?;
    one.tag(&secret, &["private"])?;
    two.sync.receive(one.changes_after(&two.sync.frontier()?)?)?;
    for change in give(&two, &three, &part)? {
        ensure!(Some(change.change().origin) == two.sync.origin()?, "the tag is not known here yet");
    }
    let origin = one.sync.origin()?.context("a series")?;
    let (first, last) = (Counter::FIRST, Counter::new(3).context("a counter")?);
    let mut sent = 0;
    two.sync.payloads(&[PayloadRange { origin, first, last }], Some(&part), &|| true, |_| {
        sent += 1;
        true
    })?;
    ensure!(sent == 0, "not if it is asked for, either");
    two.sync.apply(&CancelToken::new())?;
    give(&two, &three, &part)?;
    give_payloads(&two, &three, &part)?;
    ensure!(shown(&two)?.len() == 1 && shown(&three)?.is_empty());
    ensure!(three.sync.frontier()?.head(one.sync.origin()?.context("a series")?).is_some());
    Ok(())
}

#[test]
fn what_an_import_brought_to_a_relay_later_is_announced() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let (three, part) = (Peer::new(dir.path(), 3)?, Part::tagged("work"));
    one.import(&write_list(&dir.path().join("list"), &["Keeps bees."])?)?;
    give(&one, &two, &part)?;
    give(&two, &three, &part)?;
    let before = two.core.store.revision();
    let bees = shown(&one)?.remove(0).id;
    one.tag(&bees, &["work"])?;
    give(&one, &two, &part)?;
    give_payloads(&one, &two, &part)?;
    ensure!(shown(&two)?.len() == 1 && two.sync.part_moves(&part, before)?.included);
    give(&two, &three, &part)?;
    ensure!(give_payloads(&two, &three, &part)? > 0);
    ensure!(shown(&three)? == shown(&one)?);
    Ok(())
}

#[test]
fn rows_are_in_the_part_in_which_their_conversation_is() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (with_rows(dir.path())?, Peer::new(dir.path(), 2)?);
    let part = Part::of_platform("gemini");
    give(&one, &two, &part)?;
    let of_gemini = |peer: &Peer| {
        let conversations = peer.core.state()?.conversations.into_values();
        let shown = conversations.filter(|shown| shown["provider"]["name"] == "gemini");
        Ok::<_, anyhow::Error>(shown.collect::<Vec<_>>())
    };
    ensure!(of_gemini(&two)? == of_gemini(&one)? && of_gemini(&one)?.len() == 1);
    ensure!(two.core.state()?.conversations.len() == 1);
    // On to a third one, which gets what it gets from a store that has received it.
    let three = Peer::new(dir.path(), 3)?;
    give(&two, &three, &part)?;
    ensure!(of_gemini(&three)? == of_gemini(&one)?);
    Ok(())
}

#[test]
fn payloads_that_came_before_a_stop_take_effect_later() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (full(dir.path())?, Peer::new(dir.path(), 2)?);
    give(&one, &two, &Part::of_platform("claude"))?;
    ensure!(!two.sync.has_unapplied()?);
    let (missing, mut sent) = (two.sync.missing_payloads()?, Vec::new());
    one.sync.payloads(&missing, None, &|| true, |change| {
        sent.push(change);
        true
    })?;
    two.sync.receive(sent)?;
    let two = two.reopened()?;
    ensure!(two.sync.has_unapplied()?);
    two.sync.apply(&CancelToken::new())?;
    ensure!(!two.sync.has_unapplied()? && two.core.state()? == one.core.state()?);
    Ok(())
}

#[test]
fn nothing_more_is_read_for_a_reader_that_is_gone() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (one, two) = (full(dir.path())?, Peer::new(dir.path(), 2)?);
    give(&one, &two, &Part::of_platform("claude"))?;
    let asked = std::cell::Cell::new(0);
    let wanted = || {
        asked.set(asked.get() + 1);
        asked.get() < 3
    };
    one.sync.payloads(&two.sync.missing_payloads()?, Some(&Part::tagged("none")), &wanted, |_| true)?;
    ensure!(asked.get() == 3, "{}", asked.get());
    Ok(())
}

#[test]
fn an_erasure_reaches_stores_that_have_a_part() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let (bees, cats) = (one.add("Keeps bees")?, one.add("Keeps cats")?);
    one.tag(&bees, &["work"])?;
    let part = Part::tagged("work");
    give(&one, &two, &part)?;
    ensure!(shown(&two)?.len() == 1);
    for id in [bees, cats] {
        one = erasures::erase(one, &Target::Memory(id))?;
    }
    let changes = changes(&one, &two, &part)?;
    let mut peers = vec![one, two];
    ensure!(erasures::take(&mut peers, 1, changes)? == 2);
    ensure!(shown(&peers[1])?.is_empty());
    ensure!(give_payloads(&peers[0], &peers[1], &Part::default())? == 0, "nobody has them");
    Ok(())
}

/// Random edits in two stores, of which one gets a part that grows and shrinks.
#[test]
fn a_store_has_at_least_what_is_in_its_part() -> Result<()> {
    for_seeds(12, random_history)
}

fn random_history(seed: u64) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut rng = Rng::new(seed);
    let (one, two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let part = match rng.below(3) {
        0 => Part::tagged("work"),
        1 => Part { denied: vec!["private"], ..Part::default() },
        _ => Part { platforms: vec!["chatgpt", "satchel"], denied: vec!["private"], ..Part::default() },
    };
    let mut imports: Vec<String> = Vec::new();
    let mut ever = BTreeSet::new();
    for _ in 0..40 {
        let memories = shown(&one)?;
        let which = usize::try_from(rng.below(memories.len().max(1) as u64))?;
        match rng.below(8) {
            0 => {
                let name = if rng.chance(50) { "chatgpt-export" } else { "claude-export" };
                imports
                    .extend(one.core.import_again(&demo_folder().join(name))?.into_iter().map(|one| one.id));
            }
            1 if !imports.is_empty() => {
                let import = &imports[usize::try_from(rng.below(imports.len() as u64))?];
                let undone = one.undo(import, UndoDirection::Undo);
                if undone.is_err() {
                    one.undo(import, UndoDirection::Redo)?;
                }
            }
            2 => {
                one.add(&format!("Fact {}", rng.below(20)))?;
            }
            3..=5 if !memories.is_empty() => {
                let tags: &[&str] =
                    [&["work"][..], &["home"], &["private", "work"], &[]][usize::try_from(rng.below(4))?];
                one.tag(&memories[which].id, tags)?;
            }
            _ => {
                ever.extend(included(&one, &part)?.into_iter().map(|memory| memory.id));
                give(&one, &two, &part)?;
                give_payloads(&one, &two, &part)?;
            }
        }
        ever.extend(included(&one, &part)?.into_iter().map(|memory| memory.id));
    }
    for _ in 0..ROUNDS {
        give(&one, &two, &part)?;
        give_payloads(&one, &two, &part)?;
    }
    // It has everything of the part, as it is shown here, and nothing that never was in it.
    let (theirs, expected) = (included(&two, &Part::default())?, included(&one, &part)?);
    for memory in &expected {
        let found = theirs.iter().find(|other| other.id == memory.id);
        ensure!(found == Some(memory), "{memory:#?}\n{found:#?}");
    }
    for memory in &theirs {
        ensure!(ever.contains(&memory.id), "{memory:#?} was never in the part");
    }
    // With the rest, it shows the same.
    give_payloads(&one, &two, &Part::default())?;
    ensure!(two.core.state()? == one.core.state()?);
    Ok(())
}

/// Three stores that change and give each other now a part and now everything come to show the same once they give everything.
#[test]
fn stores_that_gave_each_other_parts_come_to_show_the_same() -> Result<()> {
    for_seeds(10, random_group)
}

fn random_group(seed: u64) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut rng = Rng::new(seed);
    let peers = [Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?, Peer::new(dir.path(), 3)?];
    let parts = [
        Part::tagged("work"),
        Part { denied: vec!["private"], ..Part::default() },
        Part::of_platform("claude"),
        Part::default(),
    ];
    let mut imports: Vec<String> = Vec::new();
    for _ in 0..60 {
        let below = |rng: &mut Rng, bound: usize| usize::try_from(rng.below(bound as u64));
        let (at, to) = (below(&mut rng, 3)?, below(&mut rng, 3)?);
        let peer = &peers[at];
        let memories = shown(peer)?;
        match rng.below(9) {
            0 => {
                let name = if rng.chance(50) { "chatgpt-export" } else { "claude-export" };
                let path = demo_folder().join(name);
                imports.extend(peer.core.import_again(&path)?.into_iter().map(|import| import.id));
            }
            1 if !imports.is_empty() => {
                let import = &imports[below(&mut rng, imports.len())?];
                // It may not have come, or be undone already.
                drop(
                    peer.undo(import, UndoDirection::Undo)
                        .or_else(|_| peer.undo(import, UndoDirection::Redo)),
                );
            }
            2 => drop(peer.add(&format!("Fact {}", rng.below(20)))?),
            3 if !memories.is_empty() => {
                let tags: &[&str] = [&["work"][..], &["private", "work"], &[]][below(&mut rng, 3)?];
                peer.tag(&memories[below(&mut rng, memories.len())?].id, tags)?;
            }
            4 => drop(recordings::record(peer, None, &format!("Message {}", rng.below(1_000)))?),
            _ if at != to => {
                let part = &parts[below(&mut rng, parts.len())?];
                give(peer, &peers[to], part)?;
                if rng.chance(50) {
                    give_payloads(peer, &peers[to], part)?;
                }
            }
            _ => {}
        }
    }
    for _ in 0..ROUNDS {
        for from in &peers {
            for to in peers.iter().filter(|to| to.seed != from.seed) {
                take(to, &from.changes_after(&to.sync.frontier()?)?)?;
                let (missing, mut sent) = (to.sync.missing_payloads()?, Vec::new());
                from.sync.payloads(&missing, None, &|| true, |change| {
                    sent.push(change);
                    true
                })?;
                take(to, &sent)?;
            }
        }
        if peers.windows(2).all(|pair| pair[0].sync.frontier().ok() == pair[1].sync.frontier().ok()) {
            break;
        }
    }
    for peer in &peers {
        ensure!(!peer.sync.lacks_payloads()?, "{:?}", peer.sync.missing_payloads()?);
    }
    same(&peers)
}
