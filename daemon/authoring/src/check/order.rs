//! Imports all fixtures into an empty store, forward and in reverse: the result must be the same.

mod state;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use satchel_core::{
    clock::SystemClock,
    ingest::{
        ImportRequest, Imports, Phase,
        receipt::{Counts, ImportRecord, ImportStatus},
    },
};
use satchel_host::{CodeCache, PluginLimits};
use satchel_importer::testkit::first_difference;
use satchel_pam::record::RecordKind;
use satchel_registry::{Consent, Plugins, PluginsOptions};
use satchel_source::{CancelToken, Limits};
use satchel_store::{OpenOptions, Store};

use self::state::StoredState;
use super::{
    CheckError, CheckProgress,
    report::{CheckKind, CheckResult, FixtureReport, Outcome},
};
use crate::run::LoadedImporter;

/// Interval between two looks at a running import.
const POLL: Duration = Duration::from_millis(2);

/// Imports the fixtures in both orders with no importer but this one, and compares what is stored. The receipts of the
/// first order are compared with what the runs emitted.
pub(super) fn check(
    importer: &LoadedImporter,
    cache: &CodeCache,
    fixtures: &[PathBuf],
    reports: &[FixtureReport],
    cancel: &CancelToken,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<Vec<CheckResult>, CheckError> {
    let crashed =
        |report: &FixtureReport| matches!(report.outcome(CheckKind::Ends), Some(Outcome::Failed(_)));
    if reports.iter().any(crashed) {
        let reason = "the importer crashes on a fixture";
        let result = |kind| CheckResult::not_applicable(kind, reason);
        return Ok(vec![result(CheckKind::Order), result(CheckKind::Receipts)]);
    }
    let folder = tempfile::tempdir().map_err(CheckError::temporary)?;
    let plugins = Arc::new(installed(importer, cache, &folder.path().join("plugins"))?);
    let inputs: Vec<PathBuf> = fixtures.iter().map(|fixture| fixture.join("input")).collect();
    let session = ImportSession { plugins, importer: &importer.package().manifest().name, cancel };
    progress(CheckProgress::Importing { reversed: false });
    let (forward, receipts) = session.import(&folder.path().join("forward"), &inputs)?;
    progress(CheckProgress::Importing { reversed: true });
    let reverse: Vec<PathBuf> = inputs.iter().rev().cloned().collect();
    let (backward, _) = session.import(&folder.path().join("reverse"), &reverse)?;
    let difference = first_difference(&forward.to_json(), &backward.to_json());
    let differs =
        |difference| format!("imported in reverse order, the fixtures give something else: {difference}");
    let faults =
        reports.iter().zip(&receipts).flat_map(|(report, receipts)| receipt_faults(report, receipts));
    Ok(vec![
        CheckResult::new(CheckKind::Order, difference.map(differs).into_iter().collect()),
        CheckResult::new(CheckKind::Receipts, faults.collect()),
    ])
}

/// Installs the importer as its users do.
fn installed(importer: &LoadedImporter, cache: &CodeCache, folder: &Path) -> Result<Plugins, CheckError> {
    let options = PluginsOptions { cache: Some(cache.clone()), compiler: None };
    let plugins = Plugins::open(folder, options);
    let consent = Consent { trust_key: true, unsigned: true, replace_built_in: true, downgrade: true };
    plugins.install(importer.package(), consent, 0).map_err(CheckError::import)?;
    Ok(plugins)
}

/// Imports into one store after the other.
struct ImportSession<'a> {
    plugins: Arc<Plugins>,
    importer: &'a str,
    cancel: &'a CancelToken,
}

impl ImportSession<'_> {
    /// Imports these paths in this order into a new store; returns what is stored, and the receipts for each path.
    fn import(
        &self,
        data_dir: &Path,
        inputs: &[PathBuf],
    ) -> Result<(StoredState, Vec<Vec<ImportRecord>>), CheckError> {
        let store = Store::open(data_dir, OpenOptions::default(), &mut |_| {}).map_err(CheckError::import)?;
        let (plugins, clock) = (Arc::clone(&self.plugins), Arc::new(SystemClock));
        let imports = Imports::new(store.clone(), plugins, clock, Limits::default(), PluginLimits::default())
            .map_err(CheckError::import)?;
        let receipts: Result<Vec<_>, _> =
            inputs.iter().map(|input| self.import_one(&imports, input)).collect();
        let state = StoredState::of(&store, data_dir).map_err(CheckError::Import)?;
        Ok((state, receipts?))
    }

    fn import_one(&self, imports: &Imports, input: &Path) -> Result<Vec<ImportRecord>, CheckError> {
        let request = ImportRequest {
            path: input.to_owned(),
            provider: None,
            plugin: Some(self.importer.to_owned()),
            again: false,
            dry_run: false,
            apply: None,
        };
        let job = imports.start(request).map_err(CheckError::import)?;
        let gone = || CheckError::import("the import is gone");
        let view = imports.subscribe(job).ok_or_else(gone)?;
        loop {
            if self.cancel.cancelled() {
                imports.stop(Duration::ZERO);
                return Err(CheckError::Cancelled);
            }
            let current = view.borrow();
            if current.phase == Phase::Ended {
                return Ok(current.imports.clone());
            }
            drop(current);
            thread::sleep(POLL);
        }
    }
}

/// The counts of one kind of record in a receipt.
type CountsOf = fn(&ImportRecord) -> &Counts;

/// Returns where the receipts of a fixture do not balance, or count other records than its run emitted.
fn receipt_faults(report: &FixtureReport, receipts: &[ImportRecord]) -> Vec<String> {
    let mut faults = Vec::new();
    // Another fixture has the same files, so nothing is read from this one.
    let repeated = receipts.iter().any(|receipt| receipt.status == ImportStatus::Unchanged);
    let kinds: [(&str, Option<RecordKind>, CountsOf); 3] = [
        ("conversations", Some(RecordKind::Conversation), |receipt| &receipt.conversations),
        ("messages", Some(RecordKind::Message), |receipt| &receipt.messages),
        // A memory may be stated by several pieces of evidence, so its count is its own.
        ("memories", None, |receipt| &receipt.memories),
    ];
    for (what, kind, counts) in kinds {
        for receipt in receipts.iter().filter(|receipt| !counts(receipt).balanced()) {
            faults.push(format!(
                "{}: the {what} of the receipt do not add up: {:?}",
                report.name,
                counts(receipt)
            ));
        }
        let imported: u64 = receipts.iter().map(|receipt| counts(receipt).found).sum();
        let emitted = kind.map_or(imported, |kind| report.counts.found(kind));
        if imported != emitted && report.read_to_end && !repeated {
            let reasons: Vec<&str> =
                receipts.iter().filter_map(|receipt| receipt.reason.as_deref()).collect();
            faults.push(format!(
                "{}: the import found {imported} {what}, the run {emitted}; {}",
                report.name,
                reasons.join("; ")
            ));
        }
    }
    faults
}
