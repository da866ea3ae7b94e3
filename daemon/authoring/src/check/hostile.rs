//! Reads damaged variants of a fixture: each run must succeed or end with an error that the importer reports.

use std::time::Duration;

use satchel_importer::{Detection, ErrorKind};

use super::{
    CheckError, CheckOptions, MemoryFiles,
    mutation::{Mutation, Numbers, mutation},
    output::{Ending, Sandbox, SandboxOutput},
    report::{CheckKind, CheckResult},
};
use crate::run::LineCounts;

/// Faults of one fixture after which no further variants are read.
const MAX_FAULTS: usize = 3;
/// Processor time of a whole run.
const TOTAL: Duration = Duration::from_mins(1);

/// Reads the variants of a fixture.
pub(super) fn check(
    sandbox: &Sandbox<'_>,
    fixture: &str,
    files: &MemoryFiles,
    output: &SandboxOutput,
    options: &CheckOptions,
) -> Result<CheckResult, CheckError> {
    let detections: Vec<&Detection> =
        output.produced.exports.iter().map(|export| &export.detection).collect();
    // Files that are claimed; if there are none, the detection alone is asked.
    let claimed = |path: &str| detections.iter().any(|found| found.files.iter().any(|file| file == path));
    let named: Vec<(&str, &[u8])> = files.all().filter(|(_, bytes)| !bytes.is_empty()).collect();
    let mut targets: Vec<(&str, &[u8])> = named.iter().copied().filter(|(path, _)| claimed(path)).collect();
    if targets.is_empty() {
        targets = named;
    }
    if targets.is_empty() {
        return Ok(CheckResult::not_applicable(CheckKind::Mutations, "its files are empty"));
    }
    let strict = sandbox.with_limits(|limits| (limits.idle, limits.total) = (options.idle, TOTAL));
    let mut numbers = Numbers::of(options.seed, fixture);
    let mut faults = Vec::new();
    for number in 0..options.mutations {
        let (path, bytes) = targets[numbers.below(targets.len())];
        let variant = mutation(number, path, bytes, &mut numbers);
        let found = check_variant(&strict, files, &detections, &variant)?;
        faults.extend(found.into_iter().map(|fault| format!("{variant}: {fault}")));
        if faults.len() >= MAX_FAULTS {
            break;
        }
    }
    Ok(CheckResult::new(CheckKind::Mutations, faults))
}

/// Detects exports in a variant, and reads those found and those of the undamaged fixture.
fn check_variant(
    sandbox: &Sandbox<'_>,
    files: &MemoryFiles,
    detections: &[&Detection],
    variant: &Mutation,
) -> Result<Vec<String>, CheckError> {
    let files = files.with(&variant.file, variant.bytes.clone());
    let mut faults = Vec::new();
    let found = match sandbox.detect(&files, &mut faults)? {
        Ok(found) => found,
        Err(ending) => {
            faults.extend(fault(ending).map(|fault| format!("detect: {fault}")));
            Vec::new()
        }
    };
    let same =
        |one: &Detection, other: &Detection| (&one.format, &one.files) == (&other.format, &other.files);
    let others = found.iter().filter(|one| !detections.iter().any(|other| same(one, other)));
    for detection in detections.iter().copied().chain(others) {
        let (lines, ended) = sandbox.run(&files, detection, None, &mut |_, _| {})?;
        match ended {
            Ok(summary) => {
                // The messages of a conversation that the host leaves out are counted, but not reported.
                let counts = LineCounts::of(&lines);
                let differences = counts.differences(&summary);
                faults.extend(differences.into_iter().filter(|text| !text.contains("skipped messages")));
            }
            Err(ending) => faults.extend(fault(ending)),
        }
    }
    Ok(faults)
}

/// Returns what is wrong with how a call ended.
fn fault(ending: Ending) -> Option<String> {
    match ending {
        Ending::Crashed(crash) => Some(crash),
        Ending::Reported(error) if error.kind == ErrorKind::Internal => {
            Some(format!("the importer reported an internal error: {error}"))
        }
        Ending::Reported(_) => None,
    }
}
