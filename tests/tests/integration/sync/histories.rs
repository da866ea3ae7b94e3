//! Random histories of three stores that exchange their changes now and then, in part, repeated, and through each other.

use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    edits::{Draft, ReviewDecision},
    ingest::undo::UndoDirection,
    purge::Target,
};
use satchel_pam::memory::Status;
use satchel_store::MemoryQuery;
use satchel_tests::{
    generate::{Rng, chatgpt_short},
    test_core::demo_folder,
};

use super::{Peer, agent_memories, erasures, in_step, peer::owner, recordings};

const STORES: u8 = 3;
const STEPS: usize = 40;

struct Group {
    folder: tempfile::TempDir,
    peers: Vec<Peer>,
    rng: Rng,
    imports: Vec<String>,
    /// Contents that somebody added or wrote, and that were acknowledged.
    steps: Vec<String>,
    /// Whether the owner erases memories and conversations. Then some payloads are in no store any more.
    erases: bool,
}

impl Group {
    fn new(seed: u64, erases: bool) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let peers = (1..=STORES).map(|seed| Peer::new(folder.path(), seed)).collect::<Result<_>>()?;
        Ok(Self {
            folder,
            peers,
            rng: Rng::new(seed),
            imports: Vec::new(),
            steps: vec![format!("seed {seed}")],
            erases,
        })
    }

    fn below(&mut self, bound: usize) -> Result<usize> {
        Ok(usize::try_from(self.rng.below(bound as u64))?)
    }

    fn step(&mut self) -> Result<()> {
        let at = self.below(self.peers.len())?;
        match self.rng.below(19) {
            0 => self.import(at, "chatgpt-export"),
            1 => self.import(at, "claude-export"),
            2 => {
                let seed = self.rng.below(3);
                let path = self.folder.path().join(format!("generated-{seed}"));
                if !path.exists() {
                    chatgpt_short(&path, 30, seed)?;
                }
                self.import_path(at, &path)
            }
            3 | 4 => self.undo_import(at),
            5 | 6 => self.add(at),
            7..=9 => self.edit(at),
            10 => self.record(at),
            11 => self.undo_edit(at),
            12 if self.erases => self.erase(at),
            16 => {
                self.write_as_agent(at);
                Ok(())
            }
            17 => self.review(at),
            18 => self.set_clock(at),
            _ => self.exchange(at),
        }
    }

    fn import(&mut self, at: usize, name: &str) -> Result<()> {
        self.import_path(at, &demo_folder().join(name))
    }

    fn import_path(&mut self, at: usize, path: &std::path::Path) -> Result<()> {
        self.steps.push(format!("{at} imports {}", path.display()));
        for import in self.peers[at].core.import_again(path)? {
            ensure!(import.conversations.balanced() && import.memories.balanced(), "{import:?}");
            self.imports.push(import.id);
        }
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

    fn add(&mut self, at: usize) -> Result<()> {
        let content = format!("Fact {}", self.rng.below(12));
        match self.peers[at].add(&content) {
            // What was erased cannot be added again.
            Err(_) if self.erases => Ok(()),
            outcome => {
                self.steps.push(format!("{at} adds {content}"));
                outcome.map(drop)
            }
        }
    }

    /// Records a new conversation, or continues one.
    fn record(&mut self, at: usize) -> Result<()> {
        let text = format!("Message {}", self.rng.below(1_000));
        let known = erasures::conversations(&self.peers[at])?;
        let id = if self.rng.chance(60) && !known.is_empty() {
            let which = self.below(known.len())?;
            Some(known[which].clone())
        } else {
            None
        };
        // Some imported conversations cannot be continued.
        if let Ok(id) = recordings::record(&self.peers[at], id.as_deref(), &text) {
            self.steps.push(format!("{at} records {text:?} in {id}"));
        }
        Ok(())
    }

    fn write_as_agent(&mut self, at: usize) {
        let content = format!("Guess {}", self.rng.below(12));
        // The owner may have settled or erased it.
        if agent_memories::write(&self.peers[at], &content).is_ok() {
            self.steps.push(format!("an agent of {at} writes {content}"));
        }
    }

    fn review(&mut self, at: usize) -> Result<()> {
        let waiting = agent_memories::waiting(&self.peers[at])?;
        if waiting.is_empty() {
            return Ok(());
        }
        let id = waiting[self.below(waiting.len())?].clone();
        let decision = if self.rng.chance(50) { ReviewDecision::Approve } else { ReviewDecision::Reject };
        if agent_memories::review(&self.peers[at], &id, decision).is_ok() {
            self.steps.push(format!("{at} decides {decision:?} about {id}"));
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
        let conversations = erasures::conversations(&self.peers[at])?;
        let target = if self.rng.chance(30) && !conversations.is_empty() {
            let id = conversations[self.below(conversations.len())?].clone();
            Target::Conversation { id, keep_memories: true }
        } else {
            let Some(id) = self.pick(at)? else { return Ok(()) };
            Target::Memory(id)
        };
        self.steps.push(format!("{at} erases {target:?}"));
        let erased = erasures::erase(self.peers.remove(at), &target)?;
        self.peers.insert(at, erased);
        Ok(())
    }

    fn pick(&mut self, at: usize) -> Result<Option<String>> {
        let store = &self.peers[at].core.store;
        let rows = store.memories(&MemoryQuery::default(), None, 500, store.revision())?.items;
        let ids: Vec<String> = rows.into_iter().map(|row| row.memory.id).collect();
        if ids.is_empty() { Ok(None) } else { Ok(Some(ids[self.below(ids.len())?].clone())) }
    }

    fn edit(&mut self, at: usize) -> Result<()> {
        let Some(id) = self.pick(at)? else { return Ok(()) };
        let number = self.rng.below(100);
        let edits = self.peers[at].core.imports.edits().clone();
        // What PAM does not allow for the memory, such as a change of a retracted one, is refused.
        let (what, done) = match self.rng.below(5) {
            0 => (
                "text",
                edits.edit_memory(
                    &owner(),
                    &id,
                    "",
                    &Draft { content: Some(format!("Text {number}")), ..Draft::default() },
                ),
            ),
            1 => (
                "tags",
                edits.edit_memory(
                    &owner(),
                    &id,
                    "",
                    &Draft { tags: Some(vec![format!("t{number}")]), ..Draft::default() },
                ),
            ),
            2 => (
                "summary",
                edits.edit_memory(
                    &owner(),
                    &id,
                    "",
                    &Draft { summary: Some(Some(format!("S {number}"))), ..Draft::default() },
                ),
            ),
            3 => ("archive", edits.set_memory_status(&owner(), &id, "", Status::Archived)),
            _ => ("retract", edits.set_memory_status(&owner(), &id, "", Status::Retracted)),
        };
        if done.is_ok() {
            self.steps.push(format!("{at} {what} {number} {id}"));
        }
        Ok(())
    }

    fn undo_edit(&mut self, at: usize) -> Result<()> {
        let Some(id) = self.pick(at)? else { return Ok(()) };
        if self.peers[at].core.imports.edits().undo_last_change(&owner(), &id).is_ok() {
            self.steps.push(format!("{at} undoes the last edit of {id}"));
        }
        Ok(())
    }

    /// Sends a part of what another store lacks, some of it twice.
    fn exchange(&mut self, at: usize) -> Result<()> {
        let to = (at + 1 + self.below(self.peers.len() - 1)?) % self.peers.len();
        let mut changes = self.peers[at].changes_after(&self.peers[to].sync.frontier()?)?;
        if self.rng.chance(40) && !changes.is_empty() {
            let end = self.below(changes.len())?;
            changes.truncate(end + 1);
        }
        if self.rng.chance(30) {
            let again = changes.clone();
            changes.extend(again);
        }
        self.steps.push(format!("{at} sends {} changes to {to}", changes.len()));
        if self.erases {
            return erasures::take(&mut self.peers, to, changes).map(drop);
        }
        let (received, applied) = self.peers[to].take(changes)?;
        ensure!(received.refused.is_empty() && applied.blocked.is_empty(), "{received:?} {applied:?}");
        ensure!(applied.missing == 0 && applied.unknown == 0, "{applied:?}");
        Ok(())
    }
}

fn run(seed: u64, erases: bool) -> Result<()> {
    let mut group = Group::new(seed, erases)?;
    for _ in 0..STEPS {
        let outcome = group.step();
        outcome.with_context(|| group.steps.join("; "))?;
    }
    let outcome = if erases { erasures::in_step(&mut group.peers) } else { in_step(&group.peers) };
    outcome.with_context(|| group.steps.join("; "))
}

#[test]
fn stores_come_to_show_the_same_after_any_history() -> Result<()> {
    let seeds = std::env::var("SATCHEL_SYNC_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(6);
    let first = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0_u64);
    (0..seeds).try_for_each(|seed| run(first.wrapping_add(seed), seed % 2 == 1))
}
