//! Random histories in which disks are set back.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{ingest::undo::UndoDirection, purge::Target};
use satchel_tests::{generate::Rng, test_core::demo_folder};

use super::{Peer, begun, erasures, in_step, meet, recordings, set_back, text, texts, with_image};

/// Random histories in which disks are set back again and again.
///
/// All meet before a disk is set back again. Otherwise a change can be lost that others refer to, if the only store that has it is set back
/// as well; and a series can have three branches, of which its author has only one.
struct Group {
    folder: tempfile::TempDir,
    peers: Vec<Peer>,
    rng: Rng,
    imports: Vec<String>,
    /// The memories that somebody added.
    added: BTreeSet<String>,
    steps: Vec<String>,
    /// Whether a store was set back since all have met.
    unsettled: bool,
    /// Whether memories are erased. Then some payloads are in no store any more.
    erases: bool,
}

impl Group {
    fn new(seed: u64, erases: bool) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut peers = vec![begun(folder.path(), 1)?, begun(folder.path(), 2)?, begun(folder.path(), 3)?];
        let added = BTreeSet::from([peers[0].add("Fact 0")?]);
        in_step(&mut peers)?;
        let images = peers.drain(..).map(|peer| {
            let image = image_of(folder.path(), peer.seed);
            with_image(peer, &image)
        });
        let peers = images.collect::<Result<_>>()?;
        let (imports, steps) = (Vec::new(), vec![format!("seed {seed}")]);
        Ok(Self { folder, peers, rng: Rng::new(seed), imports, added, steps, unsettled: false, erases })
    }

    fn below(&mut self, bound: usize) -> Result<usize> {
        Ok(usize::try_from(self.rng.below(bound as u64))?)
    }

    fn step(&mut self) -> Result<()> {
        let at = self.below(self.peers.len())?;
        match self.rng.below(17) {
            16 => self.set_clock(at),
            0 => self.image(at),
            1 | 2 => self.set_back(at),
            3 if self.erases => self.erase(at),
            3 => self.import(at),
            4 => self.undo_import(at),
            5 | 6 => {
                let fact = format!("Fact {}", self.rng.below(1_000_000));
                self.steps.push(format!("{at} adds {fact}"));
                match self.peers[at].add(&fact) {
                    // What was erased cannot be added again.
                    Err(_) if self.erases => {}
                    added => drop(self.added.insert(added?)),
                }
                Ok(())
            }
            7..=10 => self.edit(at),
            11 => {
                let message = format!("Message {}", self.rng.below(1_000_000));
                self.steps.push(format!("{at} records {message}"));
                recordings::record(&self.peers[at], None, &message).map(drop)
            }
            _ => {
                let to = (at + 1 + self.below(self.peers.len() - 1)?) % self.peers.len();
                self.steps.push(format!("{at} meets {to}"));
                meet(&mut self.peers, at, to)
            }
        }
    }

    fn image(&mut self, at: usize) -> Result<()> {
        self.steps.push(format!("an image of {at}"));
        let peer = self.peers.remove(at);
        let image = image_of(self.folder.path(), peer.seed);
        self.peers.insert(at, with_image(peer, &image)?);
        Ok(())
    }

    fn set_back(&mut self, at: usize) -> Result<()> {
        if std::mem::replace(&mut self.unsettled, true) {
            self.steps.push("all meet".to_owned());
            in_step(&mut self.peers)?;
        }
        self.steps.push(format!("{at} is set back"));
        let peer = self.peers.remove(at);
        let image = image_of(self.folder.path(), peer.seed);
        self.peers.insert(at, set_back(peer, &image)?);
        Ok(())
    }

    fn import(&mut self, at: usize) -> Result<()> {
        let name = ["chatgpt-export", "claude-export", "grok-export"][self.below(3)?];
        self.steps.push(format!("{at} imports {name}"));
        for import in self.peers[at].core.import_again(&demo_folder().join(name))? {
            self.imports.push(import.id);
        }
        Ok(())
    }

    /// Somebody sets the clock of a machine, or its battery is empty.
    fn set_clock(&mut self, at: usize) -> Result<()> {
        let days = i64::try_from(self.rng.below(801))? - 400;
        self.steps.push(format!("the clock of {at} is {days} days ahead"));
        self.peers[at].clock.set(days);
        Ok(())
    }

    fn erase(&mut self, at: usize) -> Result<()> {
        let ids = erasures::memories(&self.peers[at])?;
        if ids.is_empty() {
            return Ok(());
        }
        let id = ids[self.below(ids.len())?].clone();
        self.steps.push(format!("{at} erases {id}"));
        self.added.remove(&id);
        let erased = erasures::erase(self.peers.remove(at), &Target::Memory(id))?;
        self.peers.insert(at, erased);
        Ok(())
    }

    fn undo_import(&mut self, at: usize) -> Result<()> {
        if self.imports.is_empty() {
            return Ok(());
        }
        let which = self.below(self.imports.len())?;
        let import = self.imports[which].clone();
        for direction in [UndoDirection::Undo, UndoDirection::Redo] {
            if self.peers[at].undo(&import, direction).is_ok() {
                self.steps.push(format!("{at} {direction:?} {import}"));
                break;
            }
        }
        Ok(())
    }

    fn edit(&mut self, at: usize) -> Result<()> {
        let ids = erasures::memories(&self.peers[at])?;
        if ids.is_empty() {
            return Ok(());
        }
        let id = ids[self.below(ids.len())?].clone();
        let number = self.rng.below(1_000_000);
        if text(&self.peers[at], &id, &format!("Text {number}")).is_ok() {
            self.steps.push(format!("{at} writes {number} to {id}"));
        }
        Ok(())
    }
}

fn image_of(folder: &Path, number: u8) -> PathBuf {
    folder.join(format!("image-{number}"))
}

fn run(seed: u64) -> Result<()> {
    let mut group = Group::new(seed, seed % 2 == 1)?;
    for _ in 0..40 {
        let outcome = group.step();
        outcome.with_context(|| group.steps.join("; "))?;
    }
    let mut written = BTreeSet::new();
    for peer in &group.peers {
        written.extend(texts(peer, &group.added)?);
    }
    in_step(&mut group.peers).with_context(|| group.steps.join("; "))?;
    for peer in &group.peers {
        let lost: Vec<String> = written.difference(&texts(peer, &group.added)?).cloned().collect();
        ensure!(lost.is_empty(), "store {} lost {lost:?}: {}", peer.seed, group.steps.join("; "));
    }
    Ok(())
}

#[test]
fn disks_that_are_set_back_lose_nothing_that_any_store_has() -> Result<()> {
    let seeds = std::env::var("SATCHEL_SYNC_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(6);
    let first = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0_u64);
    (0..seeds).try_for_each(|seed| run(first.wrapping_add(seed)))
}
