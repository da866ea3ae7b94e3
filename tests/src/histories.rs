//! Random histories of a data directory: everything that a person can do with it, untrusted documents full of
//! dangling references, and exports of every kind in between.

mod bundles;
mod edits;
mod maintenance;
mod untrusted;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use satchel_core::{
    ingest::undo::{UndoDirection, UndoRequest},
    purge::{self, Target},
};
use satchel_source::{CancelToken, envelope::DecryptionKeys};
use satchel_store::{ConversationQuery, MemoryQuery};

use crate::{
    generate::{Rng, chatgpt_short},
    test_core::{TestCore, demo_folder},
};

/// An export that was written during a history.
pub struct HistoryExport {
    /// A folder, a ZIP, or an encrypted file.
    pub path: PathBuf,
    /// The unencrypted folder or ZIP: `path` itself, or its content if `path` is encrypted.
    pub plain: PathBuf,
    /// The keys that decrypt `path`, if it is encrypted.
    pub keys: Option<DecryptionKeys>,
    /// The full export on which an incremental export builds.
    pub base: Option<PathBuf>,
    /// The steps before the export and the request for it, for error messages.
    pub steps: String,
}

/// A data directory with a history, and a second one with which it exchanges bundles.
pub struct History {
    folder: PathBuf,
    local: TestCore,
    remote: TestCore,
    rng: Rng,
    exports: Vec<HistoryExport>,
    /// Full exports of `here`, by id.
    bases: Vec<(String, PathBuf)>,
    imports: Vec<String>,
    backups: Vec<PathBuf>,
    /// The recipient of encrypted exports.
    identity: age::x25519::Identity,
    steps: Vec<String>,
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
            local: TestCore::open(&folder.join("here"))?,
            remote: TestCore::open(&folder.join("there"))?,
            rng: Rng::new(seed),
            exports: Vec::new(),
            bases: Vec::new(),
            imports: Vec::new(),
            backups: Vec::new(),
            identity: age::x25519::Identity::generate(),
            steps: vec![format!("seed {seed}")],
            count: 0,
        })
    }

    /// Runs `steps` random steps, each followed by an export; returns the exports.
    ///
    /// # Errors
    /// If an action fails that a person is allowed to do.
    pub fn run(mut self, steps: usize) -> Result<Vec<HistoryExport>> {
        for _ in 0..steps {
            self.step().with_context(|| self.steps.join("; "))?;
            self.export().with_context(|| self.steps.join("; "))?;
        }
        Ok(self.exports)
    }

    fn new_path(&mut self, name: &str) -> PathBuf {
        self.count += 1;
        self.folder.join(format!("{name}-{}", self.count))
    }

    fn step(&mut self) -> Result<()> {
        match self.rng.below(22) {
            0 => self.import_sample("chatgpt-export"),
            1 => self.import_sample("claude-export"),
            2 => {
                let (path, seed) = (self.new_path("generated"), self.rng.next_u64());
                chatgpt_short(&path, 20_000, seed)?;
                self.import(&path)
            }
            3..=6 => {
                let path = self.write_untrusted_document(false)?;
                self.import(&path)
            }
            7 => {
                let path = self.write_untrusted_document(true)?;
                self.steps.push("a stranger's changes are applied".to_owned());
                bundles::apply(&self.local, &path)
            }
            8 | 9 => self.purge(),
            10 => self.undo_or_redo(),
            11 => self.exchange(),
            12 | 13 => self.apply_base_and_changes(),
            14 => self.rotate_key(),
            15 | 16 => self.back_up_or_restore(),
            17 => self.erase(),
            _ => self.edit(),
        }
    }

    fn import_sample(&mut self, name: &str) -> Result<()> {
        self.import(&demo_folder().join(name))
    }

    fn import(&mut self, path: &Path) -> Result<()> {
        self.steps.push(format!("import {}", path.display()));
        for import in self.local.import_again(path)? {
            anyhow::ensure!(import.conversations.balanced() && import.memories.balanced(), "{import:?}");
            anyhow::ensure!(import.embeddings.balanced(), "{import:?}");
            self.imports.push(import.id);
        }
        Ok(())
    }

    /// Returns a random memory of any status.
    fn pick_memory(&mut self) -> Result<Option<String>> {
        let at = self.local.store.revision();
        let rows = self.local.store.memories(&MemoryQuery::default(), None, 500, at)?.items;
        if rows.is_empty() {
            return Ok(None);
        }
        let at = usize::try_from(self.rng.below(rows.len() as u64))?;
        Ok(Some(rows[at].memory.id.clone()))
    }

    fn purge(&mut self) -> Result<()> {
        let target = if self.rng.chance(60) {
            let Some(id) = self.pick_memory()? else { return Ok(()) };
            Target::Memory(id)
        } else {
            let at = self.local.store.revision();
            let rows = self.local.store.conversations(&ConversationQuery::default(), None, 100, at)?.items;
            let Some(row) = rows.first() else { return Ok(()) };
            Target::Conversation { id: row.id.clone(), keep_memories: self.rng.chance(50) }
        };
        self.steps.push(format!("purge {target:?}"));
        if let Some(plan) = purge::planned(&self.local.store, &target, 1_800_000_000_000_000)? {
            purge::record_purge(&self.local.store, &plan.record)?;
        }
        Ok(())
    }

    fn undo_or_redo(&mut self) -> Result<()> {
        if self.imports.is_empty() {
            return Ok(());
        }
        let at = usize::try_from(self.rng.below(self.imports.len() as u64))?;
        let id = self.imports[at].clone();
        for direction in [UndoDirection::Undo, UndoDirection::Redo] {
            let request = UndoRequest { id: &id, direction, dry_run: false, expected: None };
            if self.local.imports.undo_or_redo(request, &CancelToken::new()).is_ok() {
                self.steps.push(format!("{direction:?} {id}"));
                break;
            }
        }
        Ok(())
    }
}
