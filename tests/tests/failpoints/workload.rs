//! The work of a process that is killed at a failpoint: an import, an undo and a redo, exports, a backup.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use satchel_core::{
    backup::create,
    ingest::undo::{UndoDirection, UndoRequest},
};
use satchel_source::CancelToken;
use satchel_tests::test_core::{TestCore, only_import};

/// The work that a process does when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KilledWorkload {
    Import,
    Undo,
    Export,
    Backup,
}

impl KilledWorkload {
    pub(crate) const ALL: [Self; 4] = [Self::Import, Self::Undo, Self::Export, Self::Backup];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Import => "import",
            Self::Undo => "undo",
            Self::Export => "export",
            Self::Backup => "backup",
        }
    }

    /// Returns the failpoints that only this workload reaches, so that a renamed failpoint is noticed.
    pub(crate) fn failpoints(self) -> &'static [&'static str] {
        match self {
            Self::Import => &[
                "import listed",
                "import read",
                "derivation started",
                "memories stored",
                "memories derived",
                "source hashed",
                "import concluded",
                "receipt stored",
                "source recorded",
            ],
            Self::Undo => &[
                "undo recorded",
                "undo of conversations stored",
                "undo of memories stored",
                "undo done",
                "undo confirmed",
            ],
            Self::Export => &[
                "export started",
                "export file written",
                "export synced",
                "export placed",
                "export folder synced",
                "export recorded",
            ],
            Self::Backup => &[
                "backup started",
                "backup pinned",
                "backup file copied",
                "backup synced",
                "backup placed",
                "backup folder synced",
            ],
        }
    }

    /// Runs the workload in the data directory of `folder`.
    pub(crate) fn run(self, folder: &Path) -> Result<()> {
        let core = TestCore::open(&folder.join("data"))?;
        let out = folder.join("out");
        match self {
            Self::Import => drop(only_import(core.import(&folder.join("memories"))?)?),
            Self::Undo => {
                let import = fs::read_to_string(folder.join("undone"))?;
                for direction in [UndoDirection::Undo, UndoDirection::Redo] {
                    let request = UndoRequest { id: &import, direction, dry_run: false, expected: None };
                    core.imports.undo_or_redo(request, &CancelToken::new())?.context("the import")?;
                }
            }
            Self::Export => {
                for name in ["bundle", "bundle.zip"] {
                    core.export(&out.join(name))?;
                }
                core.export_changes(None, &out.join("changes.zip"))?;
            }
            Self::Backup => {
                let output = out.join("backup");
                create::create(&core.store, &folder.join("data"), &output, 1, &mut |_| true)?;
            }
        }
        core.close()
    }
}

/// The exports and data directories from which the workloads start.
pub(crate) struct WorkloadFixture {
    pub(crate) folder: PathBuf,
    /// The id of the import that is undone.
    pub(crate) undone_import: String,
}

impl WorkloadFixture {
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        satchel_tests::generate::chatgpt(&folder.join("talks"), 60_000, 71)?;
        satchel_tests::generate::memu(&folder.join("memories"), 60_000, 72)?;
        let core = TestCore::open(&folder.join("before/data"))?;
        only_import(core.import(&folder.join("talks"))?)?;
        core.close()?;
        satchel_tests::samples::copy(&folder.join("before/data"), &folder.join("after/data"))?;
        let core = TestCore::open(&folder.join("after/data"))?;
        let undone = only_import(core.import(&folder.join("memories"))?)?.id;
        core.close()?;
        Ok(Self { folder: folder.to_owned(), undone_import: undone })
    }

    /// Copies the data for one process.
    pub(crate) fn copy_to(&self, workload: KilledWorkload, target: &Path) -> Result<()> {
        let from = if workload == KilledWorkload::Import { "before" } else { "after" };
        satchel_tests::samples::copy(&self.folder.join(from).join("data"), &target.join("data"))?;
        fs::create_dir(target.join("out"))?;
        fs::write(target.join("undone"), &self.undone_import)?;
        Ok(std::os::unix::fs::symlink(self.folder.join("memories"), target.join("memories"))?)
    }
}
