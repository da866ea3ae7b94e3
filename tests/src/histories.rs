//! Random histories of a data directory: everything that a person can do with it, documents from strangers full of
//! dangling references, and exports of every kind in between.

mod bundles;
mod by_hand;
mod moved;
mod stranger;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use satchel_core::ingest::{
    purge::{self, Target},
    undo::{Turn, TurnRequest},
};
use satchel_source::{CancelToken, envelope::Keys};
use satchel_store::{ConversationQuery, MemoryQuery};

use crate::{
    archive::{Archive, demo},
    generate::{Dice, chatgpt_short},
};

/// An export that was written during a history.
pub struct Made {
    /// A folder, a ZIP, or an encrypted file.
    pub path: PathBuf,
    /// The unencrypted folder or ZIP: `path` itself, or its content if `path` is encrypted.
    pub plain: PathBuf,
    /// The keys that decrypt `path`, if it is encrypted.
    pub keys: Option<Keys>,
    /// The full export on which an incremental export builds.
    pub base: Option<PathBuf>,
    /// The steps before the export and the request for it, for error messages.
    pub told: String,
}

/// A data directory with a history, and a second one with which it exchanges bundles.
pub struct History {
    folder: PathBuf,
    here: Archive,
    there: Archive,
    dice: Dice,
    made: Vec<Made>,
    /// Full exports of `here`, by id.
    bases: Vec<(String, PathBuf)>,
    imports: Vec<String>,
    backups: Vec<PathBuf>,
    /// The recipient of encrypted exports.
    identity: age::x25519::Identity,
    told: Vec<String>,
    count: usize,
}

impl History {
    /// Creates an empty data directory in `folder`.
    ///
    /// # Errors
    /// If a store cannot be opened.
    pub fn new(folder: &Path, seed: u64) -> Result<Self> {
        Ok(Self {
            folder: folder.to_owned(),
            here: Archive::open(&folder.join("here"))?,
            there: Archive::open(&folder.join("there"))?,
            dice: Dice::new(seed),
            made: Vec::new(),
            bases: Vec::new(),
            imports: Vec::new(),
            backups: Vec::new(),
            identity: age::x25519::Identity::generate(),
            told: vec![format!("seed {seed}")],
            count: 0,
        })
    }

    /// Runs `steps` random steps, each followed by an export; returns the exports.
    ///
    /// # Errors
    /// If an action fails that a person is allowed to do.
    pub fn run(mut self, steps: usize) -> Result<Vec<Made>> {
        for _ in 0..steps {
            self.step().with_context(|| self.told.join("; "))?;
            self.export().with_context(|| self.told.join("; "))?;
        }
        Ok(self.made)
    }

    fn path(&mut self, name: &str) -> PathBuf {
        self.count += 1;
        self.folder.join(format!("{name}-{}", self.count))
    }

    fn step(&mut self) -> Result<()> {
        match self.dice.below(22) {
            0 => self.import_sample("chatgpt-export"),
            1 => self.import_sample("claude-export"),
            2 => {
                let (path, seed) = (self.path("generated"), self.dice.throw());
                chatgpt_short(&path, 20_000, seed)?;
                self.import(&path)
            }
            3..=6 => {
                let path = self.stranger(false)?;
                self.import(&path)
            }
            7 => {
                let path = self.stranger(true)?;
                self.told.push("a stranger's changes are applied".to_owned());
                bundles::apply(&self.here, &path)
            }
            8 | 9 => self.purge(),
            10 => self.turn(),
            11 => self.exchange(),
            12 | 13 => self.follow(),
            14 => self.rotate_key(),
            15 | 16 => self.back_up_or_restore(),
            17 => self.erase(),
            _ => self.by_hand(),
        }
    }

    fn import_sample(&mut self, name: &str) -> Result<()> {
        self.import(&demo().join(name))
    }

    fn import(&mut self, path: &Path) -> Result<()> {
        self.told.push(format!("import {}", path.display()));
        for import in self.here.import_again(path)? {
            anyhow::ensure!(import.conversations.balanced() && import.memories.balanced(), "{import:?}");
            anyhow::ensure!(import.embeddings.balanced(), "{import:?}");
            self.imports.push(import.id);
        }
        Ok(())
    }

    /// Returns a random memory of any status.
    fn memory(&mut self) -> Result<Option<String>> {
        let at = self.here.store.revision();
        let rows = self.here.store.memories(&MemoryQuery::default(), None, 500, at)?.items;
        if rows.is_empty() {
            return Ok(None);
        }
        let at = usize::try_from(self.dice.below(rows.len() as u64))?;
        Ok(Some(rows[at].memory.id.clone()))
    }

    fn purge(&mut self) -> Result<()> {
        let target = if self.dice.chance(60) {
            let Some(id) = self.memory()? else { return Ok(()) };
            Target::Memory(id)
        } else {
            let at = self.here.store.revision();
            let rows = self.here.store.conversations(&ConversationQuery::default(), None, 100, at)?.items;
            let Some(row) = rows.first() else { return Ok(()) };
            Target::Conversation { id: row.id.clone(), keep_memories: self.dice.chance(50) }
        };
        self.told.push(format!("purge {target:?}"));
        if let Some(plan) = purge::planned(&self.here.store, &target, 1_800_000_000_000_000)? {
            purge::note(&self.here.store, &plan.record)?;
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<()> {
        if self.imports.is_empty() {
            return Ok(());
        }
        let at = usize::try_from(self.dice.below(self.imports.len() as u64))?;
        let id = self.imports[at].clone();
        for turn in [Turn::Undo, Turn::Redo] {
            let request = TurnRequest { id: &id, turn, dry_run: false, expected: None };
            if self.here.imports.turn(request, &CancelToken::new()).is_ok() {
                self.told.push(format!("{turn:?} {id}"));
                break;
            }
        }
        Ok(())
    }
}
