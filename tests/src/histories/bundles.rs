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
use satchel_source::envelope::{Keys, Lock};
use satchel_store::{MemoryQuery, TimeRange};

use super::{History, Made};
use crate::archive::{Archive, whole};

impl History {
    /// Sends a bundle to the other data directory and merges one from there.
    pub(super) fn exchange(&mut self) -> Result<()> {
        self.told.push("a bundle goes there and comes back".to_owned());
        let (out, back) = (self.path("out"), self.path("back"));
        self.here.export(&out)?;
        apply(&self.there, &out)?;
        self.there.export(&back)?;
        self.note(back.clone(), None, "there");
        apply(&self.here, &back)
    }

    /// Applies a full export and the changes since it, either in the other data directory or in the one that made them.
    pub(super) fn follow(&mut self) -> Result<()> {
        let Some((id, base)) = self.base()? else { return Ok(()) };
        let changes = self.path("changes");
        self.here.export_changes(Some(&id), &changes)?;
        self.note(changes.clone(), Some(base.clone()), "followed");
        let (to, name) = if self.dice.chance(60) { (&self.there, "there") } else { (&self.here, "here") };
        self.told.push(format!("{} and {} are applied {name}", base.display(), changes.display()));
        apply(to, &base)?;
        apply(to, &changes)
    }

    fn note(&mut self, path: PathBuf, base: Option<PathBuf>, how: &str) {
        let told = format!("{}; {how} to {}", self.told.join("; "), path.display());
        self.made.push(Made { plain: path.clone(), path, base, told, keys: None });
    }

    /// Returns a full export from this history that the ledger still lists as made here.
    fn base(&mut self) -> Result<Option<(String, PathBuf)>> {
        let exports = &self.here.exports;
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
        let at = usize::try_from(self.dice.below(bases.len() as u64))?;
        Ok(Some(bases.swap_remove(at)))
    }

    /// Makes an export of a random kind, as a folder, a ZIP, or an encrypted file.
    pub(super) fn export(&mut self) -> Result<()> {
        let (folder, form) = (self.path("bundle"), self.dice.below(6));
        let path = match form {
            0 => folder.join("bundle.zip"),
            1 => folder.join("bundle.zip.age"),
            _ => folder,
        };
        let (kind, mut request) = (self.dice.below(8), whole(path.clone()));
        let mut base = None;
        match kind {
            0 | 1 => {}
            2 => request.conversations = false,
            3 => request.attachments = true,
            4 | 5 => {
                if let Some((id, path)) = self.base()? {
                    request.extent = Extent::Incremental { base: Some(id) };
                    request.conversations = self.dice.chance(70);
                    base = Some(path);
                }
            }
            _ => {
                request.selection = self.selection();
                request.conversations = self.dice.chance(80);
            }
        }
        let how = format!("{:?} {:?}", request.extent, request.selection);
        let encrypted = form == 1;
        if encrypted {
            request.lock = Lock::parse(&[self.identity.to_public().to_string()], None)?;
        }
        let made = self.here.export_by(&request)?;
        if (kind == 0 || kind == 1) && !encrypted {
            self.bases.push((made.export_id, path.clone()));
        }
        self.note(path, base, &how);
        if encrypted { self.open_latest() } else { Ok(()) }
    }

    /// Writes the content of the latest encrypted file beside it.
    fn open_latest(&mut self) -> Result<()> {
        let latest = self.made.last_mut().context("an export")?;
        latest.plain = latest.path.with_file_name("opened.zip");
        latest.keys = Some(Keys::parse(&[self.identity.to_string().expose_secret().to_owned()], None)?);
        decrypt(&latest.path, &self.identity, &latest.plain)
    }

    fn selection(&mut self) -> Selection {
        let mut memories = MemoryQuery::default();
        match self.dice.below(6) {
            0 => memories.platforms = vec!["chatgpt".into(), "elsewhere".into()],
            1 => memories.types = vec![MemoryType::Fact, MemoryType::Preference],
            2 => memories.statuses = vec![Status::Active],
            3 => memories.statuses = vec![Status::Superseded, Status::Archived],
            4 => memories.updated = TimeRange { from: Some(1_740_000_000_000_000), until: None },
            _ => {}
        }
        Selection { memories, strip: self.dice.chance(50) }
    }
}

/// Applies a bundle like a person who claims it as their own and overrides all objections.
pub(super) fn apply(to: &Archive, path: &Path) -> Result<()> {
    let import = to.apply_by(path, false, Apply { any_owner: true, force: true, ..Apply::default() })?;
    // Records that were purged here are skipped.
    let done = [ImportStatus::Completed, ImportStatus::CompletedWithSkips, ImportStatus::Unchanged];
    ensure!(done.contains(&import.status), "{} is not taken: {import:?}", path.display());
    Ok(())
}

fn decrypt(from: &Path, identity: &age::x25519::Identity, to: &Path) -> Result<()> {
    let opened = age::Decryptor::new_buffered(io::BufReader::new(File::open(from)?))?;
    let mut plain = opened.decrypt(std::iter::once(identity as &dyn age::Identity))?;
    io::copy(&mut plain, &mut File::create_new(to)?)?;
    Ok(())
}
