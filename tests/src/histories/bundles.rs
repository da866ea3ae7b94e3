//! Exports of every kind, and their effect on other data directories.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use age::secrecy::ExposeSecret as _;
use anyhow::{Context as _, Result, ensure};
use satchel_core::{
    export::{Extent, Selection},
    ingest::{Apply, receipt::ImportStatus},
};
use satchel_pam::memory::{MemoryType, Status};
use satchel_source::envelope::{DecryptionKeys, ExportEncryption};
use satchel_store::{MemoryQuery, TimeRange};

use super::{History, HistoryExport};
use crate::test_core::{TestCore, full_export};

impl History {
    /// Sends a bundle to the other data directory and merges one from there.
    pub(super) fn exchange(&mut self) -> Result<()> {
        self.steps.push("a bundle goes there and comes back".to_owned());
        let (out, back) = (self.new_path("out"), self.new_path("back"));
        self.local.export(&out)?;
        apply(&self.remote, &out)?;
        self.remote.export(&back)?;
        self.record_export(back.clone(), None, "there");
        apply(&self.local, &back)
    }

    /// Applies a full export and the changes since it, either in the other data directory or in the one that made them.
    pub(super) fn apply_base_and_changes(&mut self) -> Result<()> {
        let Some((id, base)) = self.pick_base()? else { return Ok(()) };
        let changes = self.new_path("changes");
        self.local.export_changes(Some(&id), &changes)?;
        self.record_export(changes.clone(), Some(base.clone()), "followed");
        let (to, name) = if self.rng.chance(60) { (&self.remote, "there") } else { (&self.local, "here") };
        self.steps.push(format!("{} and {} are applied {name}", base.display(), changes.display()));
        apply(to, &base)?;
        apply(to, &changes)
    }

    fn record_export(&mut self, path: PathBuf, base: Option<PathBuf>, how: &str) {
        let steps = format!("{}; {how} to {}", self.steps.join("; "), path.display());
        self.exports.push(HistoryExport { plain: path.clone(), path, base, steps, keys: None });
    }

    /// Returns a full export from this history that the ledger still lists as made here.
    fn pick_base(&mut self) -> Result<Option<(String, PathBuf)>> {
        let exports = &self.local.exports;
        let known = |id: &str| exports.get(id).map(|found| found.is_some_and(|export| !export.applied));
        let mut bases = Vec::new();
        for base in &self.bases {
            if known(&base.0)? {
                bases.push(base.clone());
            }
        }
        if bases.is_empty() {
            return Ok(None);
        }
        let at = usize::try_from(self.rng.below(bases.len() as u64))?;
        Ok(Some(bases.swap_remove(at)))
    }

    /// Makes an export of a random kind, as a folder, a ZIP, or an encrypted file.
    pub(super) fn export(&mut self) -> Result<()> {
        let (folder, form) = (self.new_path("bundle"), self.rng.below(6));
        let path = match form {
            0 => folder.join("bundle.zip"),
            1 => folder.join("bundle.zip.age"),
            _ => folder,
        };
        let (kind, mut request) = (self.rng.below(8), full_export(path.clone()));
        let mut base = None;
        match kind {
            0 | 1 => {}
            2 => request.conversations = false,
            3 => request.attachments = true,
            4 | 5 => {
                if let Some((id, path)) = self.pick_base()? {
                    request.extent = Extent::Incremental { base: Some(id) };
                    request.conversations = self.rng.chance(70);
                    base = Some(path);
                }
            }
            _ => {
                request.selection = self.selection();
                request.conversations = self.rng.chance(80);
            }
        }
        let how = format!("{:?} {:?}", request.extent, request.selection);
        let encrypted = form == 1;
        if encrypted {
            request.lock = ExportEncryption::parse(&[self.identity.to_public().to_string()], None)?;
        }
        let made = self.local.export_with(&request)?;
        if (kind == 0 || kind == 1) && !encrypted {
            self.bases.push((made.export_id, path.clone()));
        }
        self.record_export(path, base, &how);
        if encrypted { self.open_latest() } else { Ok(()) }
    }

    /// Writes the content of the latest encrypted file beside it.
    fn open_latest(&mut self) -> Result<()> {
        let latest = self.exports.last_mut().context("an export")?;
        latest.plain = latest.path.with_file_name("opened.zip");
        latest.keys =
            Some(DecryptionKeys::parse(&[self.identity.to_string().expose_secret().to_owned()], None)?);
        decrypt(&latest.path, &self.identity, &latest.plain)
    }

    fn selection(&mut self) -> Selection {
        let mut memories = MemoryQuery::default();
        match self.rng.below(6) {
            0 => memories.platforms = vec!["chatgpt".into(), "elsewhere".into()],
            1 => memories.types = vec![MemoryType::Fact, MemoryType::Preference],
            2 => memories.statuses = vec![Status::Active],
            3 => memories.statuses = vec![Status::Superseded, Status::Archived],
            4 => memories.updated = TimeRange { from: Some(1_740_000_000_000_000), until: None },
            _ => {}
        }
        Selection { memories, strip: self.rng.chance(50) }
    }
}

/// Applies a bundle like a person who claims it as their own and overrides all objections.
pub(super) fn apply(to: &TestCore, path: &Path) -> Result<()> {
    let import = to.apply_with(path, false, Apply { any_owner: true, force: true, ..Apply::default() })?;
    // Records that were purged here are skipped.
    let done = [ImportStatus::Completed, ImportStatus::CompletedWithSkips, ImportStatus::Unchanged];
    ensure!(done.contains(&import.status), "{} was not merged: {import:?}", path.display());
    Ok(())
}

fn decrypt(from: &Path, identity: &age::x25519::Identity, to: &Path) -> Result<()> {
    let opened = age::Decryptor::new_buffered(io::BufReader::new(File::open(from)?))?;
    let mut plain = opened.decrypt(std::iter::once(identity as &dyn age::Identity))?;
    io::copy(&mut plain, &mut File::create_new(to)?)?;
    Ok(())
}
