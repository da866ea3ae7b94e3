//! Tests of round trips of receipts, and of the states of jobs.

use proptest::{collection::vec, option, prelude::*, sample::select};
use uuid::Uuid;

use super::*;
use crate::grpc::wire::counts::counts as numbers;

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
                status,
                reason: next_text(),
                conversations: counts.0,
                messages: counts.1,
                memories: counts.2,
                embeddings: counts.0,
                same_as: None,
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
                standing: (warnings_found % 2 == 1).then_some(DocumentStanding::Stranger),
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
    fn a_summary_says_whether_it_omits_skips(record in record()) {
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
        status: ImportStatus::CompletedWithSkips,
        reason: None,
        conversations: counts,
        messages: counts,
        memories: counts,
        embeddings: counts,
        same_as: None,
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
