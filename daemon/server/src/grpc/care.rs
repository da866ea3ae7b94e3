//! The long-running operations of `AdminService`: backups and checks of the store.

use satchel_core::{
    backup::{
        Progress,
        create::{self, BackupError},
    },
    examine::{self, Examined, Finding},
};
use satchel_proto::{
    signed::signed,
    v1::{self, operation::Result as Reached},
};
use satchel_store::{CheckProgress, StoreError};

use super::{
    Core,
    operation::{Outcome, Reporter, bytes},
};

/// Writes a backup.
pub(super) fn back_up(core: &Core, output: &str, reporter: &Reporter) -> Outcome {
    let now = core.clock.now_micros();
    let mut report = |Progress { done, total }| reporter.report(bytes(done, total));
    match create::create(&core.store, &core.data_dir, output.as_ref(), now, &mut report) {
        Ok(backup) => Ok(Some(Reached::Backup(backup_to_wire(backup)))),
        Err(BackupError::Cancelled) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn backup_to_wire(backup: create::Backup) -> v1::Backup {
    let create::Backup { path, revision, digest, bytes, files, left_out } = backup;
    v1::Backup {
        path: path.to_string_lossy().into_owned(),
        revision: signed(revision),
        size_bytes: signed(bytes),
        files: signed(files),
        digest,
        left_out,
    }
}

/// Checks the store.
pub(super) fn verify(core: &Core, reporter: &Reporter) -> Outcome {
    let idle = || core.imports.active().is_empty();
    let mut report = |CheckProgress { done, total }| {
        let goes_on = reporter.report(bytes(done, total));
        if goes_on { Ok(()) } else { Err(StoreError::Cancelled) }
    };
    match examine::examine_while(&core.store, &idle, &mut report) {
        Ok(examined) => Ok(Some(Reached::StoreCheck(examined_to_wire(examined)))),
        Err(StoreError::Cancelled) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn examined_to_wire(examined: Examined) -> v1::StoreCheck {
    let Examined { frames, records, files, findings, orphans } = examined;
    let problems = findings
        .into_iter()
        .map(|Finding { reason, message, fix }| v1::Problem {
            reason: reason.to_owned(),
            message,
            fix: fix.to_owned(),
        })
        .collect();
    v1::StoreCheck {
        frames: signed(frames),
        records: signed(records),
        files: signed(files),
        problems,
        orphans: signed(orphans.len() as u64),
    }
}
