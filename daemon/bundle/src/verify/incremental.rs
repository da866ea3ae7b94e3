//! Checks whether an incremental bundle and its base belong together, and merges them.

mod content;

use content::IncrementalChanges;
use satchel_pam::{
    hash::Sha256Digest,
    issue::{Issue, Severity},
    sign::{PublicKey, SignatureCheck},
    store::{ExportType, StoreHeader},
    validate,
};

use super::{VerifyError, valid_key};
use crate::manifest::BundleSelection;
pub(super) use content::StoreContent;

/// The name of the check in findings.
const CHECK: &str = "base";

/// The result of merging a base and the changes since it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedStore {
    /// Number of memories in the result.
    pub memories: u64,
    /// Checksum of the result (PAM 1.0 §16.3 rule 4); `None` if one of the memories has no canonical form.
    pub checksum: Option<Sha256Digest>,
}

/// Compares the store `delta` with `base`, and merges them if both can be read.
pub(super) fn check(
    (of_base, of_delta): (&validate::Report, &validate::Report),
    (base, delta): (&StoreContent, &StoreContent),
    selection: Option<&BundleSelection>,
    predecessors: &[PublicKey],
) -> Result<(Option<MergedStore>, Vec<Issue>), VerifyError> {
    let mut issues = Vec::new();
    signers(&of_base.signature, &of_delta.signature, predecessors, &mut issues);
    let (changed, changes) = IncrementalChanges::of(delta)?;
    let (whole, known, merged) = base.merge_with(&changes)?;
    let (Some(whole), Some(changed)) = (whole, changed) else {
        issues.push(base_issue("$", "cannot be compared, as one of the two memory stores cannot be read"));
        return Ok((None, issues));
    };
    if let Some(selection) = selection {
        let message = format!("the base is {}: nothing builds on it", selection.describe());
        issues.push(base_issue("$", &message));
    }
    headers(&whole, &changed, &mut issues);
    if !issues.iter().all(|issue| issue.severity == Severity::Warning) {
        return Ok((None, issues));
    }
    issues.extend(delta.check_references(&known.with(&changes))?);
    let (merged, conflicts) = merged;
    issues.extend(conflicts);
    Ok((Some(merged), issues))
}

fn headers(base: &StoreHeader, delta: &StoreHeader, issues: &mut Vec<Issue>) {
    if delta.export_type != ExportType::Incremental {
        issues.push(base_issue("$.export_type", "is full: the bundle needs no base"));
        return;
    }
    if base.export_type != ExportType::Full {
        issues
            .push(base_issue("$.base_export_id", "the base is an incremental export itself, not a full one"));
    }
    if delta.base_export_id.is_none() || delta.base_export_id != base.export_id {
        let named = |id: &Option<String>| id.clone().unwrap_or_else(|| "none".to_owned());
        let message =
            format!("is {}, and the base given is {}", named(&delta.base_export_id), named(&base.export_id));
        issues.push(base_issue("$.base_export_id", &message));
    }
    if delta.owner.id != base.owner.id {
        issues.push(base_issue("$.owner.id", "is another person's than the base's"));
    }
    let Some(base_date) = base.export_date else { return };
    if delta.export_date.is_some_and(|date| date.micros() < base_date.micros()) {
        issues.push(base_issue("$.export_date", "is before the base's"));
    }
    if delta.since.is_some_and(|since| since.micros() > base_date.micros()) {
        let message = "is after the base's date: what changed in between may be missing";
        issues.push(Issue::warning(CHECK, "$.since", message));
    }
}

fn signers(
    base: &SignatureCheck,
    delta: &SignatureCheck,
    predecessors: &[PublicKey],
    issues: &mut Vec<Issue>,
) {
    if let (Some(base), Some(delta)) = (valid_key(base), valid_key(delta))
        && base != delta
        && !predecessors.contains(base)
    {
        let message = format!("is of {}, and the base's of {}", delta.multibase(), base.multibase());
        issues.push(Issue::warning(CHECK, "$.signature", message));
    }
}

fn base_issue(path: &str, problem: &str) -> Issue {
    Issue::error(CHECK, path, problem)
}
