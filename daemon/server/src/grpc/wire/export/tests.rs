//! Tests of round trips and sizes of exports and of the results of checking a bundle.

use proptest::{collection::vec, prelude::*};
use satchel_core::export::FULL;
use satchel_proto::integers::unsigned;

use super::*;
use crate::grpc::wire::{
    WireError,
    testing::{counts, required_time_from_wire},
};

#[test]
fn enum_values_survive_a_round_trip() {
    for state in
        [SignatureState::Valid, SignatureState::Invalid, SignatureState::Absent, SignatureState::Unsupported]
    {
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
    let finding =
        VerifyFinding { severity: Severity::Error, check: text.clone(), path: text.clone(), message: text };
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
            machine: flags[1].then(|| "desk".to_owned()),
            recipients: None,
        };
        prop_assert_eq!(export_from_wire(export_to_wire(record.clone())), Ok(record));
    }
}

/// Reads an export from the wire.
fn export_from_wire(wire: v1::Export) -> Result<ExportRecord, WireError> {
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
        machine,
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
        machine: non_empty(machine),
        // Only the code that creates exports needs them.
        recipients: None,
    })
}

fn selection_from_wire(by: Vec<String>, stripped: bool) -> Option<BundleSelection> {
    (stripped || !by.is_empty()).then_some(BundleSelection { by, stripped })
}
