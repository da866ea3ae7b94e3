//! `ImportService`: jobs and receipts.

use satchel_core::ingest::{
    Apply, ImportRequest, IngestError,
    receipt::{ImportRecord, ImportStatus},
    undo::{Turn, TurnRequest},
};
use satchel_proto::v1::{self, import_service_server::ImportService, operation::Result as Reached};
use tonic::{Request, Response, Status};

use super::{
    Core,
    call::{Paging, absolute, bounded, index_cursor, index_of, required},
    export::{key_from_wire, keys_from_wire},
    source,
    status::{Fault, Kind},
    wire::{
        import::{
            import_to_wire, job_to_wire, light_import_to_wire, reversal_to_wire, skip_to_wire,
            status_from_wire, warning_to_wire,
        },
        scalar::{bounded_count, count_from_wire},
    },
};

/// Rows of a page. With the longest path and reason in each, the page stays under 4 MiB.
const MAX_ROWS: usize = 500;
/// Entries of the ledger that one page examines for the requested statuses.
const MAX_LOOKED_AT: usize = 5_000;

#[derive(Clone)]
pub(super) struct ImportJobs(pub(super) Core);

#[tonic::async_trait]
impl ImportService for ImportJobs {
    async fn create_import(
        &self,
        request: Request<v1::CreateImportRequest>,
    ) -> Result<Response<v1::CreateImportResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| create(core, request)).await
    }

    async fn get_import(
        &self,
        request: Request<v1::GetImportRequest>,
    ) -> Result<Response<v1::GetImportResponse>, Status> {
        let v1::GetImportRequest { id } = request.into_inner();
        self.0
            .answer(move |core| {
                let import = import_to_wire(find(core, &id)?);
                Ok(v1::GetImportResponse { receipt: Some(import), header: Some(core.header()) })
            })
            .await
    }

    async fn list_imports(
        &self,
        request: Request<v1::ListImportsRequest>,
    ) -> Result<Response<v1::ListImportsResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| list(core, request)).await
    }

    async fn list_import_issues(
        &self,
        request: Request<v1::ListImportIssuesRequest>,
    ) -> Result<Response<v1::ListImportIssuesResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| issues(core, request)).await
    }

    async fn undo_import(
        &self,
        request: Request<v1::UndoImportRequest>,
    ) -> Result<Response<v1::UndoImportResponse>, Status> {
        let v1::UndoImportRequest { id, dry_run, expected_records } = request.into_inner();
        let operation = Some(self.reverse(Turn::Undo, id, dry_run, expected_records)?);
        Ok(Response::new(v1::UndoImportResponse { operation, header: Some(self.0.header()) }))
    }

    async fn redo_import(
        &self,
        request: Request<v1::RedoImportRequest>,
    ) -> Result<Response<v1::RedoImportResponse>, Status> {
        let v1::RedoImportRequest { id, dry_run, expected_records } = request.into_inner();
        let operation = Some(self.reverse(Turn::Redo, id, dry_run, expected_records)?);
        Ok(Response::new(v1::RedoImportResponse { operation, header: Some(self.0.header()) }))
    }

    async fn list_sources(
        &self,
        request: Request<v1::ListSourcesRequest>,
    ) -> Result<Response<v1::ListSourcesResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(move |core| source::list(core, request)).await
    }

    async fn add_source(
        &self,
        request: Request<v1::AddSourceRequest>,
    ) -> Result<Response<v1::AddSourceResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| source::add(core, request)).await
    }

    async fn remove_source(
        &self,
        request: Request<v1::RemoveSourceRequest>,
    ) -> Result<Response<v1::RemoveSourceResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| source::remove(core, request)).await
    }
}

impl ImportJobs {
    /// Starts to undo an import, or to redo it.
    fn reverse(
        &self,
        turn: Turn,
        id: String,
        dry_run: bool,
        expected: Option<i64>,
    ) -> Result<v1::Operation, Fault> {
        required("id", &id)?;
        let expected = expected.map(|count| count_from_wire("expected_records", count)).transpose()?;
        let kind = match turn {
            Turn::Undo => v1::OperationKind::UndoImport,
            Turn::Redo => v1::OperationKind::RedoImport,
        };
        let imports = self.0.imports.clone();
        self.0.operations.start(&self.0.clock, kind, move |reporter| {
            let request = TurnRequest { id: &id, turn, dry_run, expected };
            match imports.turn(request, reporter.cancel()) {
                Ok(Some(outcome)) if outcome.cancelled => Ok(None),
                Ok(Some(outcome)) => Ok(Some(Reached::Reversal(reversal_to_wire(outcome)))),
                Ok(None) => Err(Fault::missing(Kind::Import, &id)),
                Err(IngestError::Cancelled) => Ok(None),
                Err(IngestError::Refused(problem)) => Err(Fault::ImportState { id, problem }),
                Err(error) => Err(error.into()),
            }
        })
    }
}

fn create(core: &Core, request: v1::CreateImportRequest) -> Result<v1::CreateImportResponse, Fault> {
    let v1::CreateImportRequest { path, platform, again, dry_run, apply, unlock } = request;
    let keys = keys_from_wire(unlock)?;
    absolute("path", &path)?;
    bounded("platform", &platform)?;
    let provider = (!platform.is_empty()).then_some(platform);
    let apply = match apply {
        Some(v1::ApplyRules { any_owner, force, trust }) => {
            let key = (!trust.is_empty()).then(|| key_from_wire("apply.trust", &trust)).transpose()?;
            Some(Apply { owner: core.exports.owner()?, any_owner, force, trust: key })
        }
        None => None,
    };
    let request = ImportRequest { path: path.into(), provider, again, dry_run, apply };
    let id = core.imports.start_with(request, keys)?;
    let view = core.imports.subscribe(id).ok_or_else(|| Fault::missing(Kind::Import, id.to_string()))?;
    let operation = Some(job_to_wire(view.borrow().clone()));
    Ok(v1::CreateImportResponse { operation, header: Some(core.header()) })
}

fn find(core: &Core, id: &str) -> Result<ImportRecord, Fault> {
    required("id", id)?;
    core.imports.get(id)?.ok_or_else(|| Fault::missing(Kind::Import, id))
}

fn list(core: &Core, mut request: v1::ListImportsRequest) -> Result<v1::ListImportsResponse, Fault> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let paging = core.paging("ListImports", &request, size, &token)?;
    let v1::ListImportsRequest { page_size: _, page_token: _, statuses } = request;
    bounded_count("statuses", statuses.len())?;
    let wanted: Vec<ImportStatus> =
        statuses.into_iter().map(|status| status_from_wire("statuses", status)).collect::<Result<_, _>>()?;
    let running: Vec<ImportRecord> = core
        .imports
        .active()
        .into_iter()
        .flat_map(|view| view.imports)
        .filter(|import| !import.ended())
        .collect();
    let rows = paging.rows.min(MAX_ROWS);
    let (records, next) = wanted_imports(core, &paging, rows, &wanted)?;
    let imports = records.into_iter().map(|record| {
        let live = running.iter().find(|live| live.id == record.id).cloned();
        light_import_to_wire(live.unwrap_or(record))
    });
    Ok(v1::ListImportsResponse {
        imports: imports.collect(),
        next_page_token: core.next_token(&paging, core.store.revision(), next),
        header: Some(core.header()),
    })
}

type Found = (Vec<ImportRecord>, Option<Vec<u8>>);

/// Reads the ledger until the page is full or enough entries were examined, so that a rare status does not delay the
/// call.
fn wanted_imports(
    core: &Core,
    paging: &Paging,
    rows: usize,
    wanted: &[ImportStatus],
) -> Result<Found, Fault> {
    let mut found = Vec::new();
    let mut looked_at = 0;
    let mut at = paging.store_cursor();
    loop {
        let page = core.imports.list(at.as_ref(), rows - found.len())?;
        looked_at += page.items.len();
        found.extend(
            page.items.into_iter().filter(|record| wanted.is_empty() || wanted.contains(&record.status)),
        );
        at = page.next;
        if at.is_none() || found.len() >= rows || looked_at >= MAX_LOOKED_AT {
            return Ok((found, at.map(|cursor| cursor.as_bytes().to_vec())));
        }
    }
}

fn issues(
    core: &Core,
    mut request: v1::ListImportIssuesRequest,
) -> Result<v1::ListImportIssuesResponse, Fault> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let paging = core.paging("ListImportIssues", &request, size, &token)?;
    let v1::ListImportIssuesRequest { id, page_size: _, page_token: _, kinds } = request;
    let (skips, warnings) = wanted_issues(&kinds)?;
    let record = find(core, &id)?;
    let from = index_of(paging.store_cursor().as_ref())?;
    let (issues, next) = fill_issues(core, &record, (skips, warnings), from, paging.rows)?;
    let next = next.map(|position| index_cursor(position).as_bytes().to_vec());
    Ok(v1::ListImportIssuesResponse {
        issues,
        next_page_token: core.next_token(&paging, core.store.revision(), next),
        header: Some(core.header()),
    })
}

fn wanted_issues(kinds: &[i32]) -> Result<(bool, bool), Fault> {
    bounded_count("kinds", kinds.len())?;
    let mut wanted = (kinds.is_empty(), kinds.is_empty());
    for kind in kinds {
        match v1::IssueKind::try_from(*kind) {
            Ok(v1::IssueKind::Skip) => wanted.0 = true,
            Ok(v1::IssueKind::Warning) => wanted.1 = true,
            Ok(v1::IssueKind::Unspecified) | Err(_) => {
                return Err(Fault::field("kinds", format!("holds {kind}, which is no known value")));
            }
        }
    }
    Ok(wanted)
}

/// Returns issues from a position on: first the skips, then the warnings.
fn fill_issues(
    core: &Core,
    record: &ImportRecord,
    (skips, warnings): (bool, bool),
    from: usize,
    rows: usize,
) -> Result<(Vec<v1::ImportIssue>, Option<usize>), Fault> {
    let mut issues = Vec::new();
    let mut at = from;
    if skips && at < WARNINGS_FROM {
        let listed = core.imports.issues(record, at, rows)?;
        at += listed.len();
        issues.extend(listed.into_iter().map(skip_to_wire));
        if issues.len() == rows {
            return Ok((issues, Some(at)));
        }
    }
    if !warnings {
        return Ok((issues, None));
    }
    let start = at.saturating_sub(WARNINGS_FROM);
    let listed: Vec<_> = record.warnings.iter().skip(start).take(rows - issues.len()).cloned().collect();
    let end = start + listed.len();
    issues.extend(listed.into_iter().map(warning_to_wire));
    let next = (end < record.warnings.len()).then_some(WARNINGS_FROM + end);
    Ok((issues, next))
}

/// Positions from here on are those of warnings; no import has this many skips.
const WARNINGS_FROM: usize = 1 << 32;
