//! Tests of round trips of receipts, and of the states of jobs.

use proptest::{collection::vec, option, prelude::*, sample::select};
use satchel_proto::integers::{millis, unsigned};
use uuid::Uuid;

use super::*;
use crate::grpc::wire::{
    WireError,
    scalar::optional_time_from_wire,
    testing::{counts as numbers, required_time_from_wire},
};

fn counts() -> impl Strategy<Value = Counts> {
    numbers().prop_map(|[found, new, updated, unchanged, skipped]| Counts {
        found,
        new,
        updated,
        unchanged,
        skipped,
    })
}

fn skip() -> impl Strategy<Value = Skip> {
    let kinds = [RecordKind::Conversation, RecordKind::Message, RecordKind::Memory, RecordKind::File];
    (select(kinds.to_vec()), ".{0,20}", ".{0,20}").prop_map(|(kind, locator, reason)| Skip {
        kind,
        locator,
        reason,
    })
}

fn warning() -> impl Strategy<Value = Warning> {
    (".{0,20}", ".{0,20}").prop_map(|(locator, message)| Warning { locator, message })
}

fn status() -> impl Strategy<Value = ImportStatus> {
    select(vec![
        ImportStatus::Running,
        ImportStatus::Completed,
        ImportStatus::CompletedWithSkips,
        ImportStatus::Unchanged,
        ImportStatus::Unrecognized,
        ImportStatus::Failed,
        ImportStatus::Cancelled,
        ImportStatus::Undone,
        ImportStatus::Waiting,
    ])
}

fn differences(any: bool) -> Vec<Difference> {
    use satchel_pam::memory::Status;
    let came = (Status::Retracted, "c".repeat(MAX_DIFFERENCE_BYTES));
    let held = Some((Status::Active, "h".to_owned()));
    let one = |kind, held| Difference { id: "m".to_owned(), kind, held, came: came.clone() };
    let all = vec![
        one(DifferenceKind::New, None),
        one(DifferenceKind::Changed, held.clone()),
        one(DifferenceKind::Kept, held),
    ];
    if any { all } else { Vec::new() }
}

/// Returns no account, or two, of which the second may have a name.
fn accounts(drawn: u64) -> Vec<Account> {
    let named = (drawn % 3 > 1).then(|| "Ana Example".to_owned());
    let all = [Account { id: "a".to_owned(), name: None }, Account { id: "b".to_owned(), name: named }];
    if drawn.is_multiple_of(3) { Vec::new() } else { all.into() }
}

fn record() -> impl Strategy<Value = ImportRecord> {
    let texts = (vec(".{0,12}", 4), vec(option::of(".{1,12}"), 5));
    let times = (0..4_000_000_000_000_000_i64, option::of(0..4_000_000_000_000_000_i64));
    let numbers = (numbers(), 0..2_u32, option::of(numbers()), any::<bool>());
    let issues = (vec(skip(), 0..4), vec(warning(), 0..4));
    (texts, status(), (counts(), counts(), counts()), issues, numbers, times).prop_map(
        |((names, mut texts), status, counts, (skipped, warnings), numbers, (started_at, finished_at))| {
            let ([attachments, warnings_found, bytes, elapsed_ms], issue_pages, revisions, dry_run) = numbers;
            let mut next_text = || texts.pop().flatten();
            ImportRecord {
                id: names[0].clone(),
                job: names[1].clone(),
                source: names[2].clone(),
                path: names[3].clone(),
                files: Vec::new(),
                files_found: 0,
                source_checksum: next_text(),
                provider: next_text(),
                importer: next_text(),
                plugin: next_text(),
                plugin_sha256: (warnings_found % 2 == 0).then(|| "0a".repeat(32)),
                plugin_signer: (warnings_found % 4 == 0).then(|| "z6MkAuthor".to_owned()),
                status,
                reason: next_text(),
                conversations: counts.0,
                messages: counts.1,
                memories: counts.2,
                embeddings: counts.0,
                same_as: None,
                machine: (warnings_found % 3 == 0).then(|| "desk".to_owned()),
                attachments,
                skipped,
                warnings,
                warnings_found,
                issue_pages,
                revisions,
                bytes,
                started_at,
                finished_at,
                elapsed_ms,
                dry_run,
                differences: differences(revisions.is_some()),
                differences_found: elapsed_ms,
                accounts: accounts(warnings_found),
                standing: (warnings_found % 2 == 1).then_some(DocumentStanding::Untrusted),
                signer: (warnings_found % 3 == 1).then(|| "z6Mk".to_owned()),
                partly_signed: warnings_found % 4 == 1,
                would_change: HeldBack {
                    memories: warnings_found,
                    listed: if warnings_found == 0 { Vec::new() } else { vec!["m".to_owned()] },
                    ..HeldBack::default()
                },
                forced: (warnings_found % 5 == 1)
                    .then(|| "nobody signed it".to_owned())
                    .into_iter()
                    .collect(),
            }
        },
    )
}

proptest! {
    #[test]
    fn a_receipt_survives_a_round_trip(record in record()) {
        prop_assert_eq!(import_from_wire(import_to_wire(record.clone())), Ok(record));
    }

    #[test]
    fn a_summary_states_whether_it_omits_skips(record in record()) {
        let summary = import_summary_to_wire(record.clone());
        prop_assert!(summary.skipped.is_empty() && summary.warnings.is_empty());
        prop_assert_eq!(summary.more_skipped, !record.skipped.is_empty() || record.issue_pages > 0);
    }
}

fn job(phase: Phase, imports: Vec<ImportRecord>) -> JobView {
    let finished_at = (phase == Phase::Ended).then_some(2);
    JobView {
        id: Uuid::nil(),
        path: "/a/b.zip".into(),
        phase,
        created_at: 1,
        finished_at,
        done: 1,
        total: 0,
        imports,
    }
}

fn long_receipt() -> ImportRecord {
    let skip = Skip { kind: RecordKind::Message, locator: "l".repeat(2_000), reason: "r".repeat(2_000) };
    let counts = counts_from_wire("c", Some(v1::RecordCounts::default())).unwrap_or_default();
    ImportRecord {
        id: String::new(),
        job: String::new(),
        source: String::new(),
        path: String::new(),
        files: Vec::new(),
        files_found: 0,
        source_checksum: None,
        provider: None,
        importer: None,
        plugin: None,
        plugin_sha256: None,
        plugin_signer: None,
        status: ImportStatus::CompletedWithSkips,
        reason: None,
        conversations: counts,
        messages: counts,
        memories: counts,
        embeddings: counts,
        same_as: None,
        machine: Some("m".repeat(256)),
        attachments: 0,
        skipped: vec![skip; 1_000],
        warnings: Vec::new(),
        warnings_found: 0,
        issue_pages: 0,
        revisions: None,
        bytes: 0,
        started_at: 0,
        finished_at: None,
        elapsed_ms: 0,
        dry_run: false,
        differences: vec![differences(true).remove(1); 1_000],
        differences_found: 2_000,
        accounts: Vec::new(),
        standing: None,
        signer: None,
        partly_signed: false,
        would_change: HeldBack { listed: vec!["m".repeat(4_000); 100], ..HeldBack::default() },
        forced: Vec::new(),
    }
}

#[test]
fn a_job_fits_in_a_response_whatever_its_receipts_list() {
    let ended = job_to_wire(job(Phase::Ended, vec![long_receipt(); 5]));
    assert!(ended.encoded_len() < 4 << 20);
    assert_eq!(ended.imports().first().map(|import| import.skipped.len()), Some(1_000));
    assert_eq!(
        ended.imports().last().map(|import| (import.skipped.len(), import.more_skipped)),
        Some((0, true))
    );
    let running = job_to_wire(job(Phase::Reading, vec![long_receipt()]));
    assert!(running.imports().iter().all(|import| import.skipped.is_empty()));
}

#[test]
fn the_state_of_a_job_follows_its_phase_and_imports() {
    let with = |status| vec![ImportRecord { status, ..long_receipt() }];
    let state = |phase, imports| job_to_wire(job(phase, imports)).state();
    assert_eq!(state(Phase::Waiting, Vec::new()), v1::OperationState::Queued);
    assert_eq!(state(Phase::Settling, with(ImportStatus::Running)), v1::OperationState::Running);
    assert_eq!(state(Phase::Ended, with(ImportStatus::Unchanged)), v1::OperationState::Succeeded);
    assert_eq!(state(Phase::Ended, with(ImportStatus::Failed)), v1::OperationState::Failed);
    assert_eq!(state(Phase::Ended, with(ImportStatus::Cancelled)), v1::OperationState::Cancelled);
    assert_eq!(state(Phase::Ended, Vec::new()), v1::OperationState::Cancelled);
}

/// Reads a receipt from the wire. The number of pages with further issues, and their import, are known only to the
/// ledger; one page stands for any number.
fn import_from_wire(wire: v1::Import) -> Result<ImportRecord, WireError> {
    let v1::Import {
        id,
        operation_id,
        source,
        source_checksum,
        platform,
        format,
        status,
        conversations,
        messages,
        memories,
        skipped,
        warnings,
        more_skipped,
        warnings_total,
        revisions,
        elapsed,
        reason,
        dry_run,
        started_at,
        finished_at,
        path,
        plugin,
        attachments,
        bytes,
        differences,
        differences_total,
        embeddings,
        accounts,
        files,
        files_total,
        standing,
        signer,
        partly_signed,
        would_change,
        forced,
        machine,
        plugin_signer,
        plugin_unsigned,
        plugin_sha256,
    } = wire;
    let non_empty = |text: String| (!text.is_empty()).then_some(text);
    if plugin_unsigned != (!plugin_sha256.is_empty() && plugin_signer.is_empty()) {
        return Err(WireError::new("plugin_unsigned", "contradicts the signer"));
    }
    Ok(ImportRecord {
        id,
        job: operation_id,
        source,
        path,
        files,
        files_found: unsigned(files_total),
        source_checksum: non_empty(source_checksum),
        provider: non_empty(platform),
        importer: non_empty(format),
        plugin: non_empty(plugin),
        plugin_sha256: non_empty(plugin_sha256),
        plugin_signer: non_empty(plugin_signer),
        status: status_from_wire("status", status)?,
        reason: non_empty(reason),
        conversations: counts_from_wire("conversations", conversations)?,
        messages: counts_from_wire("messages", messages)?,
        memories: counts_from_wire("memories", memories)?,
        embeddings: counts_from_wire("embeddings", Some(embeddings.unwrap_or_default()))?,
        same_as: None,
        machine: non_empty(machine),
        attachments: unsigned(attachments),
        skipped: skipped.into_iter().map(skip_from_wire).collect::<Result<_, _>>()?,
        warnings: warnings.into_iter().map(warning_from_wire).collect::<Result<_, _>>()?,
        warnings_found: unsigned(warnings_total),
        issue_pages: more_skipped.into(),
        revisions: revisions.map(|v1::RevisionRange { first, last }| [first, last].map(unsigned)),
        bytes: unsigned(bytes),
        started_at: required_time_from_wire("started_at", started_at)?,
        finished_at: optional_time_from_wire("finished_at", finished_at)?,
        elapsed_ms: millis(elapsed.as_ref()),
        dry_run,
        differences: differences.into_iter().map(difference_from_wire).collect::<Result<_, _>>()?,
        differences_found: unsigned(differences_total),
        accounts: accounts.into_iter().map(account_from_wire).collect(),
        standing: (standing != 0).then(|| standing_from_wire("standing", standing)).transpose()?,
        signer: non_empty(signer),
        partly_signed,
        would_change: would_change.map(held_back_from_wire).unwrap_or_default(),
        forced,
    })
}

/// Reads the counts of one kind from the wire.
fn counts_from_wire(field: &str, wire: Option<v1::RecordCounts>) -> Result<Counts, WireError> {
    let v1::RecordCounts { found, new, updated, unchanged, skipped } =
        wire.ok_or_else(|| WireError::new(field, "is missing"))?;
    Ok(Counts {
        found: unsigned(found),
        new: unsigned(new),
        updated: unsigned(updated),
        unchanged: unsigned(unchanged),
        skipped: unsigned(skipped),
    })
}

/// Reads a skip from the wire.
fn skip_from_wire(wire: v1::ImportIssue) -> Result<Skip, WireError> {
    let v1::ImportIssue { kind, record, locator, message } = wire;
    if kind != i32::from(v1::IssueKind::Skip) {
        return Err(WireError::new("kind", "is not a skip"));
    }
    Ok(Skip { kind: record_kind_from_wire("record", record)?, locator, reason: message })
}

/// Reads a warning from the wire.
fn warning_from_wire(wire: v1::ImportIssue) -> Result<Warning, WireError> {
    let v1::ImportIssue { kind, record, locator, message } = wire;
    if kind != i32::from(v1::IssueKind::Warning) || record != 0 {
        return Err(WireError::new("kind", "is not a warning"));
    }
    Ok(Warning { locator, message })
}

/// Reads the effect of a merge on a memory from the wire.
fn difference_from_wire(wire: v1::MemoryDifference) -> Result<Difference, WireError> {
    let v1::MemoryDifference { id, kind, held_status, held_content, status, content } = wire;
    let held = match v1::MemoryStatus::try_from(held_status) {
        Ok(v1::MemoryStatus::Unspecified) => None,
        _ => Some((memory::status_from_wire("held_status", held_status)?, held_content)),
    };
    let came = (memory::status_from_wire("status", status)?, content);
    Ok(Difference { id, kind: difference_kind_from_wire("kind", kind)?, held, came })
}

fn held_back_from_wire(wire: v1::HeldBack) -> HeldBack {
    let v1::HeldBack { memories, relations, conversations, embeddings, memory_ids: listed } = wire;
    HeldBack {
        memories: unsigned(memories),
        relations: unsigned(relations),
        conversations: unsigned(conversations),
        embeddings: unsigned(embeddings),
        listed,
    }
}

fn account_from_wire(wire: v1::ImportAccount) -> Account {
    let v1::ImportAccount { id, name } = wire;
    Account { id, name }
}
