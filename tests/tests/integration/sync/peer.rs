//! A store that exchanges changes with others in the same process.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use anyhow::{Context as _, Result, bail, ensure};
use satchel_core::{
    clock::{Clock, SystemClock},
    edits::{Draft, EditContext},
    ingest::{
        receipt::ImportRecord,
        undo::{UndoDirection, UndoRequest},
    },
    sync::{Applied, Received, Sync},
};
use satchel_source::{CancelToken, Limits};
use satchel_sync::{Frontier, OriginId, SignedChange, SigningKey};
use satchel_tests::test_core::{TestCore, only_import};

/// Rounds after which a group of stores must be in step.
pub(super) const ROUNDS: usize = 10;

/// The system clock, set wrong by some microseconds.
#[derive(Default)]
pub(super) struct WrongClock(AtomicI64);

impl WrongClock {
    /// Sets by how many days the clock is ahead.
    pub(super) fn set(&self, days: i64) {
        self.0.store(days * 24 * 60 * 60 * 1_000_000, Ordering::Relaxed);
    }
}

impl Clock for WrongClock {
    fn now_micros(&self) -> i64 {
        SystemClock.now_micros() + self.0.load(Ordering::Relaxed)
    }
}

pub(super) struct Peer {
    pub(super) dir: PathBuf,
    /// Right after each start.
    pub(super) clock: Arc<WrongClock>,
    pub(super) core: TestCore,
    pub(super) sync: Sync,
    pub(super) seed: u8,
}

impl Peer {
    /// Creates a store in `folder` that has no series yet.
    pub(super) fn silent(folder: &Path, seed: u8) -> Result<Self> {
        Self::open(&folder.join(format!("store-{seed}")), seed)
    }

    /// Creates a store in `folder` with a series of its own.
    pub(super) fn new(folder: &Path, seed: u8) -> Result<Self> {
        let peer = Self::silent(folder, seed)?;
        peer.begin()?;
        Ok(peer)
    }

    /// Opens a data directory.
    pub(super) fn open(dir: &Path, seed: u8) -> Result<Self> {
        let clock = Arc::<WrongClock>::default();
        let core = TestCore::with_limits_and_clock(dir, Limits::default(), Arc::clone(&clock) as _)?;
        let sync = Sync::new(&core.imports);
        Ok(Self { dir: dir.to_owned(), clock, core, sync, seed })
    }

    /// Begins the series.
    pub(super) fn begin(&self) -> Result<OriginId> {
        Ok(self.sync.begin(self.key(), [self.seed; 16])?)
    }

    pub(super) fn key(&self) -> SigningKey {
        SigningKey::from_bytes(&[self.seed; 32])
    }

    /// Closes the store, and opens it again with the key of its series.
    pub(super) fn reopened(self) -> Result<Self> {
        let (dir, seed) = (self.dir.clone(), self.seed);
        drop(self.sync);
        self.core.close()?;
        Self::resumed(&dir, seed)
    }

    /// Opens a data directory, with the key of the series that is in it, or that of the seed.
    pub(super) fn resumed(dir: &Path, seed: u8) -> Result<Self> {
        let peer = Self::open(dir, seed)?;
        if dir.join("peers/series.json").exists() {
            peer.sync.resume(dir)?;
        } else {
            peer.sync.unlock(peer.key())?;
        }
        Ok(peer)
    }

    /// Returns the changes that a store with this frontier lacks.
    pub(super) fn changes_after(&self, theirs: &Frontier) -> Result<Vec<SignedChange>> {
        self.sync.record_history()?;
        let mut changes = Vec::new();
        self.sync.changes_after(theirs, None, |change| {
            changes.push(change);
            true
        })?;
        Ok(changes)
    }

    /// Takes changes, and lets them take effect.
    pub(super) fn take(&self, changes: Vec<SignedChange>) -> Result<(Received, Applied)> {
        let received = self.sync.receive(changes)?;
        Ok((received, self.sync.apply(&CancelToken::new())?))
    }

    pub(super) fn import(&self, path: &Path) -> Result<ImportRecord> {
        only_import(self.core.import(path)?)
    }

    /// Adds a memory; returns its id.
    pub(super) fn add(&self, content: &str) -> Result<String> {
        let draft = Draft { content: Some(content.to_owned()), ..Draft::default() };
        let outcome = self.core.imports.edits().add_memory(&owner(), &draft)?;
        outcome.memories.first().cloned().context("a memory was added")
    }

    /// Sets the tags of a memory.
    pub(super) fn tag(&self, id: &str, tags: &[&str]) -> Result<String> {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        self.edit(id, &Draft { tags: Some(tags), ..Draft::default() })
    }

    /// Changes a memory; returns the id of the edit.
    pub(super) fn edit(&self, id: &str, draft: &Draft) -> Result<String> {
        Ok(self.core.imports.edits().edit_memory(&owner(), id, "", draft)?.act)
    }

    /// Undoes or redoes an import.
    pub(super) fn undo(&self, import: &str, direction: UndoDirection) -> Result<()> {
        let request = UndoRequest { id: import, direction, dry_run: false, expected: None };
        self.core.imports.undo_or_redo(request, &CancelToken::new())?.context("there is such an import")?;
        Ok(())
    }

    /// Returns the memory as it is shown.
    pub(super) fn memory(&self, id: &str) -> Result<satchel_pam::memory::Memory> {
        let record = self.core.store.memory(id, None)?.filter(|record| !record.withdrawn);
        Ok(record.context("the memory is shown")?.memory)
    }
}

pub(super) fn owner() -> EditContext {
    EditContext { actor: "owner".to_owned(), ..EditContext::default() }
}

/// Sends everything that `to` lacks from one store to another one. Nothing may be refused, blocked or missing.
pub(super) fn exchange(from: &Peer, to: &Peer) -> Result<(Received, Applied)> {
    let changes = from.changes_after(&to.sync.frontier()?)?;
    let (received, applied) = to.take(changes)?;
    ensure!(received.refused.is_empty(), "{received:?}");
    ensure!(applied.blocked.is_empty() && applied.missing == 0 && applied.unknown == 0, "{applied:?}");
    Ok((received, applied))
}

/// Exchanges changes until all stores hold the same, and checks that they show the same.
pub(super) fn in_step(peers: &[Peer]) -> Result<()> {
    for _ in 0..ROUNDS {
        for from in peers {
            for to in peers.iter().filter(|to| to.dir != from.dir) {
                exchange(from, to)?;
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

/// Checks that all stores show the same, and that none of them is damaged.
pub(super) fn same(peers: &[Peer]) -> Result<()> {
    let first = peers.first().context("there are stores")?;
    let expected = first.core.state()?;
    for peer in peers {
        let state = peer.core.state()?;
        let (id, other) = (peer.dir.display(), first.dir.display());
        ensure!(
            state.memories == expected.memories,
            "memories of {id} and {other} differ:\n{:#?}\n{:#?}",
            state.memories,
            expected.memories
        );
        ensure!(state.relations == expected.relations, "relations of {id} and {other} differ");
        ensure!(state.conversations == expected.conversations, "conversations of {id} and {other} differ");
        let (digest, first_digest) = (peer.sync.state_digest()?, first.sync.state_digest()?);
        ensure!(digest == first_digest, "digests of {id} and {other} differ: {digest:?} {first_digest:?}");
        let report = peer.core.store.check(true, &mut |_| {})?;
        ensure!(report.clean(), "{report:?}");
    }
    Ok(())
}
