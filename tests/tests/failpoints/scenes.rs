//! The work of a process that is killed at a failpoint: an import, an undo and a redo, exports, a backup.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use satchel_core::{
    backup::create,
    ingest::undo::{Turn, TurnRequest},
};
use satchel_source::CancelToken;
use satchel_tests::archive::{Archive, only};

/// A way in which data moves through the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scene {
    Import,
    Undo,
    Export,
    Backup,
}

impl Scene {
    pub(crate) const ALL: [Self; 4] = [Self::Import, Self::Undo, Self::Export, Self::Backup];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Import => "import",
            Self::Undo => "undo",
            Self::Export => "export",
            Self::Backup => "backup",
        }
    }

    /// Returns the places that only this scene reaches, so that a renamed place is noticed.
    pub(crate) fn places(self) -> &'static [&'static str] {
        match self {
            Self::Import => &[
                "import listed",
                "import read",
                "settling begun",
                "memories stored",
                "memories settled",
                "source hashed",
                "import concluded",
                "receipt stored",
                "source remembered",
            ],
            Self::Undo => &[
                "undo noted",
                "undo of conversations stored",
                "undo of memories stored",
                "undo done",
                "undo confirmed",
            ],
            Self::Export => &[
                "export begun",
                "export file written",
                "export synced",
                "export placed",
                "export folder synced",
                "export recorded",
            ],
            Self::Backup => &[
                "backup begun",
                "backup pinned",
                "backup file copied",
                "backup synced",
                "backup placed",
                "backup folder synced",
            ],
        }
    }

    /// Runs the scene in the data directory of `folder`.
    pub(crate) fn play(self, folder: &Path) -> Result<()> {
        let archive = Archive::open(&folder.join("data"))?;
        let out = folder.join("out");
        match self {
            Self::Import => drop(only(archive.import(&folder.join("memories"))?)?),
            Self::Undo => {
                let import = fs::read_to_string(folder.join("undone"))?;
                for way in [Turn::Undo, Turn::Redo] {
                    let request = TurnRequest { id: &import, turn: way, dry_run: false, expected: None };
                    archive.imports.turn(request, &CancelToken::new())?.context("the import")?;
                }
            }
            Self::Export => {
                for name in ["bundle", "bundle.zip"] {
                    archive.export(&out.join(name))?;
                }
                archive.export_changes(None, &out.join("changes.zip"))?;
            }
            Self::Backup => {
                let output = out.join("backup");
                create::create(&archive.store, &folder.join("data"), &output, 1, &mut |_| true)?;
            }
        }
        archive.close()
    }
}

/// The exports and data directories from which the scenes start.
pub(crate) struct Ground {
    pub(crate) folder: PathBuf,
    /// The id of the import that is undone.
    pub(crate) undone: String,
}

impl Ground {
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        satchel_tests::generate::chatgpt(&folder.join("talks"), 60_000, 71)?;
        satchel_tests::generate::memu(&folder.join("memories"), 60_000, 72)?;
        let archive = Archive::open(&folder.join("before/data"))?;
        only(archive.import(&folder.join("talks"))?)?;
        archive.close()?;
        satchel_tests::exports::copy(&folder.join("before/data"), &folder.join("after/data"))?;
        let archive = Archive::open(&folder.join("after/data"))?;
        let undone = only(archive.import(&folder.join("memories"))?)?.id;
        archive.close()?;
        Ok(Self { folder: folder.to_owned(), undone })
    }

    /// Copies the data for one process.
    pub(crate) fn lay(&self, scene: Scene, place: &Path) -> Result<()> {
        let from = if scene == Scene::Import { "before" } else { "after" };
        satchel_tests::exports::copy(&self.folder.join(from).join("data"), &place.join("data"))?;
        fs::create_dir(place.join("out"))?;
        fs::write(place.join("undone"), &self.undone)?;
        Ok(std::os::unix::fs::symlink(self.folder.join("memories"), place.join("memories"))?)
    }
}
