//! The ledger of exports, and the results of checking a bundle.

use satchel_bundle::{
    manifest::BundleSelection,
    rotation::KeyRotation,
    verify::{BundleReport, Coverage, SignatureCoverage, SignatureState, VerifyFinding, VerifyReport},
};
use satchel_core::{
    export::{ExportFormat, ExportProgress, ExportRecord, INCREMENTAL, SigningKeyInfo, SigningKeys},
    trust::TrustedKey,
};
use satchel_pam::issue::Severity;
use satchel_proto::{integers::signed, v1};

use super::scalar::{enum_pair, time_to_wire, truncate};

/// Largest number of findings in one response.
const MAX_FINDINGS: usize = 1_000;
/// Longest text of a finding, in bytes.
const MAX_TEXT_BYTES: usize = 1_024;

enum_pair!(signature_state_to_wire, signature_state_from_wire, SignatureState, v1::SignatureState, [
    Valid => Valid,
    Invalid => Invalid,
    Absent => Absent,
    Unsupported => Unsupported,
]);

enum_pair!(format_to_wire, format_from_wire, ExportFormat, v1::ExportFormat, [
    Pam => Pam,
    Memu => Memu,
    Markdown => Markdown,
]);

enum_pair!(severity_to_wire, severity_from_wire, Severity, v1::Severity, [
    Error => Error,
    Warning => Warning,
]);

/// Converts the result of checking a bundle to the wire: the first findings, with long texts truncated.
#[must_use]
pub fn verify_report_to_wire(report: VerifyReport) -> v1::BundleVerification {
    let VerifyReport {
        valid,
        signature,
        manifest,
        signer,
        predecessors,
        issues,
        issues_found,
        memories,
        conversations,
        merged,
        selection,
        coverage,
        bundles,
    } = report;
    let BundleSelection { by: selected_by, stripped } = selection.unwrap_or_default();
    v1::BundleVerification {
        valid,
        signature: signature_state_to_wire(signature),
        manifest: signature_state_to_wire(manifest),
        signer: signer.unwrap_or_default(),
        issues: issues.into_iter().take(MAX_FINDINGS).map(finding_to_wire).collect(),
        issues_total: signed(issues_found as u64),
        memories: signed(memories),
        conversations: signed(conversations),
        merged_memories: signed(merged.as_ref().map(|merged| merged.memories)),
        merged_checksum: merged
            .and_then(|merged| merged.checksum)
            .map(|sum| sum.to_string())
            .unwrap_or_default(),
        selected_by,
        stripped,
        predecessors,
        covered: Some(signature_coverage_to_wire(coverage)),
        bundles: bundles.into_iter().take(MAX_FINDINGS).map(bundle_report_to_wire).collect(),
    }
}

enum_pair!(coverage_to_wire, coverage_from_wire, Coverage, v1::Coverage, [
    Absent => Absent,
    Signed => Signed,
    Unsigned => Unsigned,
]);

fn signature_coverage_to_wire(coverage: SignatureCoverage) -> v1::BundleCoverage {
    let SignatureCoverage { memories, relations, conversations, attachments, embeddings: _ } = coverage;
    v1::BundleCoverage {
        memories: coverage_to_wire(memories),
        relations: coverage_to_wire(relations),
        conversations: coverage_to_wire(conversations),
        attachments: coverage_to_wire(attachments),
    }
}

fn bundle_report_to_wire(part: BundleReport) -> v1::VerifiedBundle {
    let BundleReport {
        path,
        valid,
        signature,
        manifest,
        signer,
        predecessors: _,
        coverage,
        memories,
        conversations,
    } = part;
    v1::VerifiedBundle {
        path: truncate(path, MAX_TEXT_BYTES),
        valid,
        signature: signature_state_to_wire(signature),
        manifest: signature_state_to_wire(manifest),
        signer: signer.unwrap_or_default(),
        covered: Some(signature_coverage_to_wire(coverage)),
        memories: signed(memories),
        conversations: signed(conversations),
    }
}

/// Converts a trusted key of another owner to the wire.
#[must_use]
pub fn trusted_key_to_wire(key: TrustedKey) -> v1::TrustedKey {
    let TrustedKey { public_key, since } = key;
    v1::TrustedKey { public_key, since: Some(time_to_wire(since)) }
}

fn finding_to_wire(finding: VerifyFinding) -> v1::VerifyIssue {
    let VerifyFinding { severity, check, path, message } = finding;
    v1::VerifyIssue {
        severity: severity_to_wire(severity),
        check: truncate(check, MAX_TEXT_BYTES),
        path: truncate(path, MAX_TEXT_BYTES),
        message: truncate(message, MAX_TEXT_BYTES),
    }
}

/// Converts the progress of an export to the wire; conversations are written first.
#[must_use]
pub fn progress_to_wire(progress: ExportProgress) -> v1::OperationProgress {
    let ExportProgress { memories, memories_total, conversations, conversations_total } = progress;
    let (phase, done, total) = if memories == 0 {
        (v1::OperationPhase::WritingConversations, conversations, conversations_total)
    } else {
        (v1::OperationPhase::WritingMemories, memories, memories_total)
    };
    v1::OperationProgress {
        phase: phase.into(),
        records_done: signed(done),
        records_total: Some(signed(total)),
        ..v1::OperationProgress::default()
    }
}

/// Converts the current and former signing keys to the wire.
#[must_use]
pub fn keys_to_wire(keys: SigningKeys) -> v1::SigningKeys {
    let SigningKeys { owner, did, keys } = keys;
    v1::SigningKeys { owner_id: owner, did, keys: keys.into_iter().map(key_to_wire).collect() }
}

fn key_to_wire(key: SigningKeyInfo) -> v1::SigningKey {
    let SigningKeyInfo { public_key, did, since, followed } = key;
    let retired_at = followed.as_ref().map(|rotation| time_to_wire(rotation.at.micros()));
    let (successor, signature, successor_signature) = followed
        .map(|KeyRotation { from: _, to, at: _, from_signature, to_signature }| {
            (to, from_signature, to_signature)
        })
        .unwrap_or_default();
    v1::SigningKey {
        public_key,
        did,
        created_at: Some(time_to_wire(since.micros())),
        retired_at,
        successor,
        signature,
        successor_signature,
    }
}

/// Converts an export to the wire.
#[must_use]
pub fn export_to_wire(record: ExportRecord) -> v1::Export {
    let ExportRecord {
        export_id,
        export_type,
        format,
        base_export_id,
        since,
        export_date,
        at_micros,
        memories,
        relations,
        conversations,
        withheld,
        checksum,
        manifest_sha256,
        signer,
        revision,
        path,
        bytes,
        with_conversations,
        with_attachments,
        base_revision,
        reason,
        warnings,
        full_next,
        applied,
        scheduled,
        selection,
        encrypted,
        machine,
        recipients: _,
    } = record;
    let BundleSelection { by: selected_by, stripped } = selection.unwrap_or_default();
    let kind = if export_type == INCREMENTAL { v1::ExportType::Incremental } else { v1::ExportType::Full };
    v1::Export {
        id: export_id,
        r#type: kind.into(),
        format: format_to_wire(format),
        revision: signed(revision),
        export_date,
        memories: signed(memories),
        relations: signed(relations),
        conversations: signed(conversations),
        withheld: signed(withheld),
        size_bytes: signed(bytes),
        checksum,
        manifest_sha256,
        signer,
        path,
        created_at: Some(time_to_wire(at_micros)),
        base_export_id: base_export_id.unwrap_or_default(),
        since: since.unwrap_or_default(),
        warnings,
        reason: reason.unwrap_or_default(),
        applied,
        base_revision: signed(base_revision),
        full_next,
        without_conversations: !with_conversations,
        attachments: with_attachments,
        scheduled,
        selected_by,
        stripped,
        encrypted,
        machine: machine.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
