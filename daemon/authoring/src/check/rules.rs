//! The rules of the interface that the host enforces.

use satchel_importer::{ErrorKind, testkit};

use super::output::SandboxOutput;

/// The host's words for an error without a message.
const NO_REASON: &str = "no reason given";

/// Returns what breaks a rule: claims and records that the host left out or changed, reports without words, and errors
/// that tell nothing.
pub(super) fn breaches(output: &SandboxOutput) -> Vec<String> {
    let claims = output.wrong_claims.iter().map(|claim| format!("detect: {claim}"));
    let records = output.summaries.iter().flatten().flat_map(|summary| {
        summary.breaches.iter().map(|breach| format!("{}: {}", breach.locator, breach.message))
    });
    let lines = output.produced.exports.iter().filter_map(|export| {
        testkit::check_lines(&export.lines).err().map(|flaw| format!("the record at {flaw}"))
    });
    let errors = output.produced.exports.iter().filter_map(|export| {
        let error = export.error.as_ref()?;
        match error.kind {
            ErrorKind::Internal => Some(format!("the run ended with an internal error: {error}")),
            _ if error.message == NO_REASON => Some("the run failed without a reason".to_owned()),
            _ => None,
        }
    });
    claims.chain(records).chain(lines).chain(errors).collect()
}
