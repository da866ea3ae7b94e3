//! Installs a package that has arrived: one at a time, as an operation that can be cancelled.

use std::{
    sync::{Arc, Mutex, MutexGuard, TryLockError},
    time::Duration,
};

use satchel_proto::{
    integers::signed,
    v1::{self, operation::Result as OperationResult},
};
use satchel_registry::{Consent, InstallError, Review, compile::CompileError, package::Package};
use satchel_source::CancelToken;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    earlier::{Reader, read_anew},
    upload::Upload,
};
use crate::grpc::{
    call_state::CallState,
    operation::{OperationReporter, WorkOutcome},
    status::CallError,
    wire::{
        import::import_summary_to_wire,
        plugin::{key_to_wire, manifest_to_wire},
    },
};

/// Held by the package that is compiled and installed, so that two of them do not need twice the memory.
pub(super) type InstallTurn = Arc<Mutex<()>>;

/// Interval between two looks whether it is the turn of an installation that waits.
const TURN_POLL: Duration = Duration::from_millis(50);
/// Earlier imports that a result lists.
const LISTED_IMPORTS: usize = 20;

/// Starts the operation. `permit` is released with the bytes of the package.
pub(super) fn start(
    state: &CallState,
    upload: Upload,
    permit: OwnedSemaphorePermit,
    turn: InstallTurn,
) -> Result<v1::InstallPluginResponse, CallError> {
    let own = state.clone();
    let work = move |reporter: &OperationReporter| {
        let outcome = match wait_for_turn(&turn, reporter.cancel()) {
            Some(_turn) => run(&own, upload, reporter),
            None => Ok(None),
        };
        drop(permit);
        outcome
    };
    let kind = v1::OperationKind::PluginInstall;
    let operation = Some(state.operations.start(&state.clock, kind, work)?);
    Ok(v1::InstallPluginResponse { operation, header: Some(state.header()) })
}

/// Waits until no other package is being installed. Returns `None` if the operation is cancelled before.
fn wait_for_turn<'a>(turn: &'a Mutex<()>, cancel: &CancelToken) -> Option<MutexGuard<'a, ()>> {
    loop {
        match turn.try_lock() {
            Ok(guard) => return Some(guard),
            // An installation that panicked has changed nothing, or everything.
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if cancel.cancelled() => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(TURN_POLL),
        }
    }
}

fn run(state: &CallState, upload: Upload, reporter: &OperationReporter) -> WorkOutcome {
    let Upload { header, bytes } = upload;
    if !reporter.report(in_phase(v1::OperationPhase::Compiling)) {
        return Ok(None);
    }
    let package = Package::read(bytes).map_err(InstallError::from)?;
    let review = match state.plugins.review(&package, &|| reporter.cancel().cancelled()) {
        Err(InstallError::Compile(CompileError::Cancelled)) => return Ok(None),
        review => review?,
    };
    let mut installation = installation_to_wire(state, review)?;
    if !header.validate_only {
        if !reporter.report(in_phase(v1::OperationPhase::Installing)) {
            return Ok(None);
        }
        let consent = consent_from_wire(&header);
        let installed = state.plugins.install(&package, consent, state.clock.now_micros())?;
        installation.installed = true;
        installation.key_trusted = installed.signer.is_some();
        tracing::info!(
            name = installed.manifest.name,
            version = installed.manifest.version,
            sha256 = installed.sha256,
            signer = installation.signer,
            "an importer was installed"
        );
    }
    Ok(Some(OperationResult::PluginInstallation(installation)))
}

fn in_phase(phase: v1::OperationPhase) -> v1::OperationProgress {
    v1::OperationProgress { phase: phase.into(), ..v1::OperationProgress::default() }
}

fn consent_from_wire(header: &v1::InstallPluginHeader) -> Consent {
    let v1::InstallPluginHeader {
        sha256: _,
        validate_only: _,
        trust_key,
        allow_unsigned,
        replace_built_in,
        allow_downgrade,
    } = header;
    Consent {
        trust_key: *trust_key,
        unsigned: *allow_unsigned,
        replace_built_in: *replace_built_in,
        downgrade: *allow_downgrade,
    }
}

fn installation_to_wire(state: &CallState, review: Review) -> Result<v1::PluginInstallation, CallError> {
    let reader = Reader {
        name: &review.manifest.name,
        version: &review.manifest.version,
        replaces: &review.replaces_built_in,
    };
    let outdated = read_anew(state, reader)?;
    let Review {
        manifest,
        sha256,
        bytes,
        signer,
        key_trusted,
        already_installed,
        replaces_version,
        downgrade,
        replaces_built_in,
        similar_to,
    } = review;
    Ok(v1::PluginInstallation {
        manifest: Some(manifest_to_wire(manifest)),
        sha256,
        size_bytes: signed(bytes),
        signer: key_to_wire(signer),
        key_trusted,
        replaces_version: replaces_version.unwrap_or_default(),
        downgrade,
        replaces_built_in,
        similar_to: similar_to.unwrap_or_default(),
        reads_differently: signed(outdated.len() as u64),
        earlier_imports: outdated.into_iter().take(LISTED_IMPORTS).map(import_summary_to_wire).collect(),
        already_installed,
        installed: false,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn an_installation_that_waits_can_be_cancelled() {
        let turn = Mutex::new(());
        let cancel = CancelToken::new();
        let first = wait_for_turn(&turn, &cancel).unwrap();
        cancel.cancel();
        assert!(wait_for_turn(&turn, &cancel).is_none());
        drop(first);
        assert!(wait_for_turn(&turn, &cancel).is_some());
    }
}
