//! The verdict of a verification, from what was found and what was asked for.

use satchel_pam::{
    issue::{Issue, Severity},
    sign::{PublicKey, SignatureCheck},
    validate,
};

use super::{
    BundleReport, BundleVerdict, MAX_ISSUES, MergedStore, SignatureCoverage, SignatureState, VerifyFinding,
    VerifyOptions, VerifyReport, valid_key,
};
use crate::manifest::BundleSelection;

/// Returns everything that is wrong with a bundle, by PAM's rules and by the given options.
pub(super) fn all_findings(
    checked: &mut BundleVerdict,
    options: &VerifyOptions,
    wanted: &[PublicKey],
) -> Vec<VerifyFinding> {
    let signature = &checked.report.signature;
    let mut findings: Vec<VerifyFinding> = checked.report.issues.drain(..).map(finding).collect();
    findings.extend(unsigned_finding(signature, options.strict));
    findings.extend(wrong_signer(signature, &checked.predecessors, wanted));
    let own = signer(signature).is_some_and(|signer| options.own_keys.contains(&signer));
    if checked.manifest == SignatureState::Absent && (!wanted.is_empty() || own) {
        findings.push(error(
            "manifest",
            "satchel-manifest.json",
            "is missing, so relations and conversations are not signed",
        ));
    }
    findings
}

fn signer(signature: &SignatureCheck) -> Option<String> {
    valid_key(signature).map(PublicKey::multibase)
}

/// Returns the result for one of possibly several bundles.
pub(super) fn bundle_report(
    mut checked: BundleVerdict,
    several: bool,
    options: &VerifyOptions,
    wanted: &[PublicKey],
) -> (BundleReport, Vec<VerifyFinding>, Option<BundleSelection>) {
    let mut findings = all_findings(&mut checked, options, wanted);
    let BundleVerdict {
        path: place,
        report,
        manifest,
        conversations,
        selection,
        predecessors,
        coverage,
        claims_signer: _,
    } = checked;
    if options.strict {
        findings.extend(coverage.uncovered_findings());
    }
    if several {
        findings.iter_mut().for_each(|finding| finding.path.insert_str(0, &format!("{place}: ")));
    }
    let validate::Report { counts, signature, .. } = report;
    let part = BundleReport {
        path: if several { place } else { String::new() },
        valid: passes(&findings, options.strict),
        signature: signature_state(&signature),
        manifest,
        signer: signer(&signature),
        predecessors: predecessors.iter().map(PublicKey::multibase).collect(),
        coverage,
        memories: counts.memories,
        conversations,
    };
    (part, findings, selection)
}

fn passes(findings: &[VerifyFinding], strict: bool) -> bool {
    !findings.iter().any(|finding| finding.severity == Severity::Error || strict)
}

pub(super) fn conclude(
    all: Vec<(BundleReport, Vec<VerifyFinding>, Option<BundleSelection>)>,
    of_base: Vec<VerifyFinding>,
    merged: Option<MergedStore>,
    strict: bool,
) -> VerifyReport {
    let mut findings = of_base;
    let (mut parts, mut selection) = (Vec::with_capacity(all.len()), None);
    for (part, found, selected) in all {
        findings.extend(found);
        selection = selection.or(selected);
        parts.push(part);
    }
    let valid = passes(&findings, strict);
    let issues_found = findings.len();
    findings.sort_by_key(|finding| finding.severity);
    findings.truncate(MAX_ISSUES);
    let first = parts.first();
    let same = |part: &BundleReport| Some(&part.signer) == first.map(|first| &first.signer);
    let signer = first.filter(|_| parts.iter().all(same)).and_then(|first| first.signer.clone());
    let predecessors = first.filter(|_| parts.len() == 1).map(|first| first.predecessors.clone());
    VerifyReport {
        valid,
        signature: SignatureState::worst(parts.iter().map(|part| part.signature)),
        manifest: SignatureState::worst(parts.iter().map(|part| part.manifest)),
        signer,
        predecessors: predecessors.unwrap_or_default(),
        issues: findings,
        issues_found,
        memories: parts.iter().map(|part| part.memories).sum(),
        conversations: parts.iter().map(|part| part.conversations).sum(),
        merged,
        selection,
        coverage: SignatureCoverage::worst(&parts),
        bundles: parts,
    }
}

fn finding(issue: Issue) -> VerifyFinding {
    let Issue { severity, rule, path, message } = issue;
    VerifyFinding { severity, check: rule.to_owned(), path, message }
}

fn error(check: &str, path: &str, message: &str) -> VerifyFinding {
    VerifyFinding {
        severity: Severity::Error,
        check: check.into(),
        path: path.into(),
        message: message.into(),
    }
}

/// Reports a signature that is absent or cannot be checked. This is not a fault of the bundle, but worth a warning
///
fn unsigned_finding(signature: &SignatureCheck, strict: bool) -> Option<VerifyFinding> {
    let severity = if strict { Severity::Error } else { Severity::Warning };
    let message = match signature {
        SignatureCheck::Absent => "is absent: nobody vouches for the content".to_owned(),
        SignatureCheck::Unsupported(reason) => format!("cannot be checked: {reason}"),
        SignatureCheck::Valid { .. } | SignatureCheck::Invalid(_) => return None,
    };
    Some(VerifyFinding { severity, check: "R-18.1".into(), path: "$.signature".into(), message })
}

fn wrong_signer(
    signature: &SignatureCheck,
    predecessors: &[PublicKey],
    wanted: &[PublicKey],
) -> Option<VerifyFinding> {
    if wanted.is_empty() {
        return None;
    }
    match signature {
        SignatureCheck::Valid { key } if wanted.contains(key) => None,
        SignatureCheck::Valid { .. } if predecessors.iter().any(|key| wanted.contains(key)) => None,
        SignatureCheck::Valid { key } => {
            let wanted: Vec<String> = wanted.iter().map(PublicKey::multibase).collect();
            let message = format!("is of {}, not of {}", key.multibase(), wanted.join(" or "));
            Some(error("signer", "$.signature", &message))
        }
        _ => Some(error("signer", "$.signature", "is not there to tell who signed")),
    }
}

fn signature_state(signature: &SignatureCheck) -> SignatureState {
    match signature {
        SignatureCheck::Valid { .. } => SignatureState::Valid,
        SignatureCheck::Invalid(_) => SignatureState::Invalid,
        SignatureCheck::Absent => SignatureState::Absent,
        SignatureCheck::Unsupported(_) => SignatureState::Unsupported,
    }
}
