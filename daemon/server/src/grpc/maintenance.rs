//! The long-running operations of `AdminService`: backups and checks of the store.

use satchel_core::{
    backup::{
        BackupProgress,
        create::{self, BackupError},
    },
    integrity::{self, IntegrityFinding, IntegrityReport},
};
use satchel_proto::{
    integers::signed,
    v1::{self, operation::Result as OperationResult},
};
use satchel_store::{CheckProgress, StoreError};

use super::{
    call_state::CallState,
    operation::{OperationReporter, WorkOutcome, bytes_progress},
};

/// Writes a backup.
pub(super) fn back_up(state: &CallState, output: &str, reporter: &OperationReporter) -> WorkOutcome {
    let now = state.clock.now_micros();
    let mut report = |BackupProgress { done, total }| reporter.report(bytes_progress(done, total));
    match create::create(&state.store, &state.data_dir, output.as_ref(), now, &mut report) {
        Ok(backup) => Ok(Some(OperationResult::Backup(backup_to_wire(backup)))),
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
pub(super) fn verify(state: &CallState, reporter: &OperationReporter) -> WorkOutcome {
    let idle = || state.imports.active().is_empty();
    let mut report = |CheckProgress { done, total }| {
        let proceed = reporter.report(bytes_progress(done, total));
        if proceed { Ok(()) } else { Err(StoreError::Cancelled) }
    };
    match integrity::check_while(&state.store, &idle, &mut report) {
        Ok(report) => Ok(Some(OperationResult::StoreCheck(integrity_report_to_wire(report)))),
        Err(StoreError::Cancelled) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn integrity_report_to_wire(report: IntegrityReport) -> v1::StoreCheck {
    let IntegrityReport { frames, records, files, findings, orphans } = report;
    let problems = findings
        .into_iter()
        .map(|IntegrityFinding { reason, message, fix }| v1::Problem {
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
