//! Random histories in which things leave the part that a store gets, and come back.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use satchel_core::ingest::undo::UndoDirection;
use satchel_tests::{generate::Rng, test_core::demo_folder};

use super::{
    Peer,
    part::{Part, conversations_of, for_seeds, give, give_payloads, shown},
    peer::same,
    recordings::record,
    revocations::{as_new, take_back},
};

/// A store that gets a part, from which things are taken back, shows what a new one shows that is given the same.
#[test]
fn a_store_has_exactly_its_part() -> Result<()> {
    for_seeds(8, random_history)
}

fn random_history(seed: u64) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut rng = Rng::new(seed);
    let (one, mut two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let parts = [
        Part::tagged("work"),
        Part { denied: vec!["private"], ..Part::default() },
        Part { platforms: vec!["chatgpt", "satchel"], ..Part::default() },
        Part::default(),
    ];
    let below = |rng: &mut Rng, bound: usize| usize::try_from(rng.below(bound as u64));
    let mut part = &parts[below(&mut rng, 4)?];
    let mut imports: Vec<String> = Vec::new();
    for _ in 0..30 {
        let memories = shown(&one)?;
        match rng.below(9) {
            0 => {
                let name = if rng.chance(50) { "chatgpt-export" } else { "claude-export" };
                let path = demo_folder().join(name);
                imports.extend(one.core.import_again(&path)?.into_iter().map(|import| import.id));
            }
            1 if !imports.is_empty() => {
                let import = &imports[below(&mut rng, imports.len())?];
                let undone = one.undo(import, UndoDirection::Undo);
                undone.or_else(|_| one.undo(import, UndoDirection::Redo))?;
            }
            2 => drop(one.add(&format!("Fact {}", rng.below(20)))?),
            3 | 4 if !memories.is_empty() => {
                let tags: &[&str] =
                    [&["work"][..], &["home"], &["private", "work"], &[]][below(&mut rng, 4)?];
                one.tag(&memories[below(&mut rng, memories.len())?].id, tags)?;
            }
            5 => drop(record(&one, None, &format!("Message {}", rng.below(1_000)))?),
            6 => part = &parts[below(&mut rng, 4)?],
            _ => {
                give(&one, &two, part)?;
                give_payloads(&one, &two, part)?;
                (two, _) = take_back(&one, two, part)?;
                as_new(&one, &two, part).with_context(|| format!("{:?} {:?}", part.tags, part.denied))?;
            }
        }
    }
    give(&one, &two, &Part::default())?;
    give_payloads(&one, &two, &Part::default())?;
    ensure!(two.core.state()? == one.core.state()?);
    Ok(())
}

/// Both stores change. What was made in the one from which things are taken back stays there, and in the end both show the same.
#[test]
fn stores_that_change_and_take_back_come_to_show_the_same() -> Result<()> {
    for_seeds(8, random_pair)
}

fn random_pair(seed: u64) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut rng = Rng::new(seed);
    let (one, mut two) = (Peer::new(dir.path(), 1)?, Peer::new(dir.path(), 2)?);
    let parts = [
        Part::tagged("work"),
        Part { denied: vec!["private"], ..Part::default() },
        Part { platforms: vec!["chatgpt", "satchel"], ..Part::default() },
    ];
    let below = |rng: &mut Rng, bound: usize| usize::try_from(rng.below(bound as u64));
    let mut part = &parts[below(&mut rng, 3)?];
    // Memories and conversations that the second store has made or changed itself.
    let (mut own_memories, mut own_conversations) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..40 {
        let here = rng.chance(50);
        let peer = if here { &two } else { &one };
        let memories = shown(peer)?;
        match rng.below(10) {
            0 => {
                let platform = if rng.chance(50) { "chatgpt" } else { "claude" };
                let path = demo_folder().join(format!("{platform}-export"));
                if rng.chance(50) {
                    peer.core.import_again(&path)?;
                } else {
                    peer.core.import(&path)?;
                }
                if here {
                    let all =
                        shown(&two)?.into_iter().filter(|memory| memory.provenance.platform == platform);
                    own_memories.extend(all.map(|memory| memory.id));
                    let all = conversations_of(&two.core.state()?, platform);
                    own_conversations.extend(all.into_iter().map(|(id, _)| id));
                }
            }
            1 => {
                let id = peer.add(&format!("Fact {}", rng.below(20)))?;
                // What is there already is not made again.
                let is_new = memories.iter().all(|memory| memory.id != id);
                own_memories.extend((here && is_new).then_some(id));
            }
            2..=4 if !memories.is_empty() => {
                let tags: &[&str] =
                    [&["work"][..], &["home"], &["private", "work"], &[]][below(&mut rng, 4)?];
                let memory = &memories[below(&mut rng, memories.len())?];
                peer.tag(&memory.id, tags)?;
                own_memories.extend((here && memory.tags != tags).then(|| memory.id.clone()));
            }
            5 => part = &parts[below(&mut rng, 3)?],
            6 => exchange_lacking(&two, &one)?,
            _ => {
                give(&one, &two, part)?;
                give_payloads(&one, &two, part)?;
                (two, _) = take_back(&one, two, part)?;
                let memories: BTreeSet<String> = shown(&two)?.into_iter().map(|memory| memory.id).collect();
                let lost: Vec<&String> = own_memories.difference(&memories).collect();
                ensure!(lost.is_empty(), "{lost:?}");
                let conversations: BTreeSet<String> = two.core.state()?.conversations.into_keys().collect();
                ensure!(own_conversations.is_subset(&conversations));
            }
        }
    }
    for _ in 0..3 {
        exchange_lacking(&two, &one)?;
        give(&one, &two, &Part::default())?;
        give_payloads(&one, &two, &Part::default())?;
    }
    same(&[one, two])
}

/// Sends all changes, and the payloads that `to` lacks. Some may have none.
fn exchange_lacking(from: &Peer, to: &Peer) -> Result<()> {
    give(from, to, &Part::default())?;
    give_payloads(from, to, &Part::default())?;
    Ok(())
}
