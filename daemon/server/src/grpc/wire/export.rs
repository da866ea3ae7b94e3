//! The ledger of exports, and the results of checking a bundle.

use satchel_bundle::{
    manifest::BundleSelection,
    rotation::KeyRotation,
    verify::{BundleReport, Coverage, SignatureCoverage, SignatureState, VerifyFinding, VerifyReport},
};
use satchel_core::{
    export::{ExportFormat, ExportProgress, ExportRecord, FULL, INCREMENTAL, SigningKeyInfo, SigningKeys},
    trust::TrustedKey,
};
use satchel_pam::issue::Severity;
use satchel_proto::{
    integers::{signed, unsigned},
    v1,
};

use super::{
    WireError,
    scalar::{enum_pair, required_time_from_wire, time_to_wire, truncate},
};

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
    }
}

/// Reads an export from the wire.
///
/// # Errors
/// An unknown type or format, and a missing time.
pub fn export_from_wire(wire: v1::Export) -> Result<ExportRecord, WireError> {
    let v1::Export {
        id,
        r#type,
        format,
        revision,
        export_date,
        memories,
        relations,
        conversations,
        withheld,
        size_bytes,
        checksum,
        manifest_sha256,
        signer,
        path,
        created_at,
        base_export_id,
        since,
        warnings,
        reason,
        applied,
        base_revision,
        full_next,
        without_conversations,
        attachments,
        scheduled,
        selected_by,
        stripped,
        encrypted,
    } = wire;
    let export_type = match v1::ExportType::try_from(r#type) {
        Ok(v1::ExportType::Full) => FULL,
        Ok(v1::ExportType::Incremental) => INCREMENTAL,
        Ok(v1::ExportType::Unspecified) | Err(_) => {
            return Err(WireError::new("type", format!("holds {type}, which is not a known value")));
        }
    };
    let non_empty = |text: String| (!text.is_empty()).then_some(text);
    Ok(ExportRecord {
        export_id: id,
        export_type: export_type.to_owned(),
        format: format_from_wire("format", format)?,
        base_export_id: non_empty(base_export_id),
        since: non_empty(since),
        export_date,
        at_micros: required_time_from_wire("created_at", created_at)?,
        memories: unsigned(memories),
        relations: unsigned(relations),
        conversations: unsigned(conversations),
        withheld: unsigned(withheld),
        checksum,
        manifest_sha256,
        signer,
        revision: unsigned(revision),
        path,
        bytes: unsigned(size_bytes),
        with_conversations: !without_conversations,
        with_attachments: attachments,
        base_revision: unsigned(base_revision),
        reason: non_empty(reason),
        warnings,
        full_next,
        applied,
        scheduled,
        selection: selection_from_wire(selected_by, stripped),
        encrypted,
        // Only the code that creates exports needs them.
        recipients: None,
    })
}

fn selection_from_wire(by: Vec<String>, stripped: bool) -> Option<BundleSelection> {
    (stripped || !by.is_empty()).then_some(BundleSelection { by, stripped })
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::grpc::wire::counts::counts;

    #[test]
    fn enum_values_survive_a_round_trip() {
        for state in [
            SignatureState::Valid,
            SignatureState::Invalid,
            SignatureState::Absent,
            SignatureState::Unsupported,
        ] {
            assert_eq!(signature_state_from_wire("signature", signature_state_to_wire(state)), Ok(state));
        }
        for coverage in [Coverage::Absent, Coverage::Signed, Coverage::Unsigned] {
            assert_eq!(coverage_from_wire("coverage", coverage_to_wire(coverage)), Ok(coverage));
        }
        for severity in [Severity::Error, Severity::Warning] {
            assert_eq!(severity_from_wire("severity", severity_to_wire(severity)), Ok(severity));
        }
    }

    #[test]
    fn a_report_fits_in_a_response() {
        let text = "é".repeat(4_000);
        let finding = VerifyFinding {
            severity: Severity::Error,
            check: text.clone(),
            path: text.clone(),
            message: text,
        };
        let report = VerifyReport {
            valid: false,
            signature: SignatureState::Absent,
            manifest: SignatureState::Absent,
            signer: None,
            predecessors: Vec::new(),
            issues: vec![finding; 3_000],
            issues_found: 70_000,
            memories: 1,
            conversations: 2,
            merged: None,
            selection: None,
            coverage: SignatureCoverage::default(),
            bundles: Vec::new(),
        };
        let wire = verify_report_to_wire(report);
        assert_eq!((wire.issues.len(), wire.issues_total), (MAX_FINDINGS, 70_000));
        assert!(prost::Message::encoded_len(&wire) < 4 << 20);
    }

    #[test]
    fn an_export_writes_conversations_and_then_memories() {
        let shown = |conversations, memories| {
            let wire = progress_to_wire(ExportProgress {
                conversations,
                conversations_total: 7,
                memories,
                memories_total: 9,
            });
            (wire.phase(), wire.records_done, wire.records_total)
        };
        assert_eq!(shown(3, 0), (v1::OperationPhase::WritingConversations, 3, Some(7)));
        assert_eq!(shown(7, 4), (v1::OperationPhase::WritingMemories, 4, Some(9)));
    }

    proptest! {
        #[test]
        fn an_export_survives_a_round_trip(
            texts in vec(".{0,12}", 6),
            numbers in counts::<6>(),
            flags in any::<[bool; 5]>(),
            at_micros in 0..4_000_000_000_000_000_i64,
        ) {
            let record = ExportRecord {
                export_id: texts[0].clone(),
                export_type: if flags[1] { FULL } else { INCREMENTAL }.to_owned(),
                format: if flags[0] { ExportFormat::Memu } else { ExportFormat::Pam },
                base_export_id: flags[1].then(|| format!("b{}", texts[0])),
                since: flags[2].then(|| format!("s{}", texts[1])),
                export_date: texts[1].clone(),
                at_micros,
                memories: numbers[0],
                relations: numbers[1],
                conversations: numbers[2],
                withheld: numbers[3],
                checksum: texts[2].clone(),
                manifest_sha256: texts[3].clone(),
                signer: texts[4].clone(),
                revision: numbers[4],
                path: texts[5].clone(),
                bytes: numbers[5],
                with_conversations: flags[2],
                with_attachments: flags[3],
                base_revision: flags[1].then_some(numbers[0]),
                reason: flags[3].then(|| format!("r{}", texts[2])),
                warnings: texts[3..].to_vec(),
                full_next: flags[4],
                applied: flags[0],
                scheduled: flags[3],
                selection: flags[4].then(|| BundleSelection { by: texts[2..4].to_vec(), stripped: flags[1] }),
                encrypted: flags[2],
                recipients: None,
            };
            prop_assert_eq!(export_from_wire(export_to_wire(record.clone())), Ok(record));
        }
    }
}
