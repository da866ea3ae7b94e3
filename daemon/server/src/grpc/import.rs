//! `ImportService`: jobs and receipts.

use std::sync::Arc;

use satchel_core::ingest::{
    Apply, ImportRequest, IngestError,
    receipt::{ImportRecord, ImportStatus},
    undo::{UndoDirection, UndoRequest},
};
use satchel_proto::v1::{self, import_service_server::ImportService, operation::Result as OperationResult};
use satchel_store::Cursor;
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status, Streaming};

use super::{
    ServerState,
    call_state::CallState,
    export::{key_from_wire, keys_from_wire},
    plugin::outdated_imports,
    request::{
        PageRequest, check_absolute, check_length, check_required, index_cursor, index_of, page_request,
        service,
    },
    source,
    status::{CallError, ResourceKind},
    upload,
    wire::{
        import::{
            import_summary_to_wire, import_to_wire, job_to_wire, reversal_to_wire, skip_to_wire,
            status_from_wire, warning_to_wire,
        },
        scalar::{check_count, count_from_wire},
    },
};

/// Rows of a page. With the longest path and reason in each, the page stays under 4 MiB.
const MAX_IMPORT_ROWS: usize = 500;
/// Entries of the ledger that one page examines for the requested statuses.
const MAX_EXAMINED_ROWS: usize = 5_000;

/// Largest number of files that are received as streams at once, of all clients.
const MAX_STREAMS: usize = 4;

/// The service, with the permits for files that are received.
#[derive(Clone)]
pub(super) struct ImportHandler(ServerState, Arc<Semaphore>);

impl ImportHandler {
    pub(super) fn new(state: ServerState) -> Self {
        Self(state, Arc::new(Semaphore::new(MAX_STREAMS)))
    }
}

service!(ImportService for ImportHandler {
    create_import: CreateImportRequest => CreateImportResponse = create;
    get_import: GetImportRequest => GetImportResponse = get;
    list_imports: ListImportsRequest => ListImportsResponse = list;
    list_import_issues: ListImportIssuesRequest => ListImportIssuesResponse = issues;
    undo_import: UndoImportRequest => UndoImportResponse = undo;
    redo_import: RedoImportRequest => RedoImportResponse = redo;
    list_sources: ListSourcesRequest => ListSourcesResponse = source::list;
    add_source: AddSourceRequest => AddSourceResponse = source::add;
    remove_source: RemoveSourceRequest => RemoveSourceResponse = source::remove;
    ..
    async fn upload_import(
        &self,
        request: Request<Streaming<v1::UploadImportRequest>>,
    ) -> Result<Response<v1::UploadImportResponse>, Status> {
        let state = CallState::of(&self.0, &request)?;
        let busy = format!("{MAX_STREAMS} files are being received; try again when one of them has arrived");
        let _permit = self.1.try_acquire().map_err(|_| CallError::Busy(busy))?;
        upload::receive(&state, request.into_inner()).await
    }
});

fn undo(state: &CallState, request: v1::UndoImportRequest) -> Result<v1::UndoImportResponse, CallError> {
    let v1::UndoImportRequest { id, dry_run, expected_records } = request;
    let operation = Some(reverse(state, UndoDirection::Undo, id, dry_run, expected_records)?);
    Ok(v1::UndoImportResponse { operation, header: Some(state.header()) })
}

fn redo(state: &CallState, request: v1::RedoImportRequest) -> Result<v1::RedoImportResponse, CallError> {
    let v1::RedoImportRequest { id, dry_run, expected_records } = request;
    let operation = Some(reverse(state, UndoDirection::Redo, id, dry_run, expected_records)?);
    Ok(v1::RedoImportResponse { operation, header: Some(state.header()) })
}

/// Starts to undo an import, or to redo it.
fn reverse(
    state: &CallState,
    direction: UndoDirection,
    id: String,
    dry_run: bool,
    expected: Option<i64>,
) -> Result<v1::Operation, CallError> {
    check_required("id", &id)?;
    let expected = expected.map(|count| count_from_wire("expected_records", count)).transpose()?;
    let kind = match direction {
        UndoDirection::Undo => v1::OperationKind::UndoImport,
        UndoDirection::Redo => v1::OperationKind::RedoImport,
    };
    let imports = state.imports.clone();
    state.operations.start(&state.clock, kind, move |reporter| {
        let request = UndoRequest { id: &id, direction, dry_run, expected };
        match imports.undo_or_redo(request, reporter.cancel()) {
            Ok(Some(outcome)) if outcome.cancelled => Ok(None),
            Ok(Some(outcome)) => Ok(Some(OperationResult::Reversal(reversal_to_wire(outcome)))),
            Ok(None) => Err(CallError::not_found(ResourceKind::Import, &id)),
            Err(IngestError::Cancelled) => Ok(None),
            Err(IngestError::Refused(problem)) => Err(CallError::ImportState { id, problem }),
            Err(error) => Err(error.into()),
        }
    })
}

fn create(
    state: &CallState,
    request: v1::CreateImportRequest,
) -> Result<v1::CreateImportResponse, CallError> {
    let operation = Some(start(state, request)?);
    Ok(v1::CreateImportResponse { operation, header: Some(state.header()) })
}

/// Starts an import of a path or of an upload.
pub(super) fn start(state: &CallState, request: v1::CreateImportRequest) -> Result<v1::Operation, CallError> {
    let v1::CreateImportRequest { path, platform, again, dry_run, apply, unlock, plugin, upload_id } =
        request;
    let keys = keys_from_wire(unlock)?;
    if upload_id.is_empty() {
        state.check_local("path")?;
        check_absolute("path", &path)?;
    } else if !path.is_empty() {
        return Err(CallError::invalid_field("path", "must be empty, as upload_id is set"));
    }
    check_length("platform", &platform)?;
    check_length("plugin", &plugin)?;
    let named = |name: String| (!name.is_empty()).then_some(name);
    let (provider, plugin) = (named(platform), named(plugin));
    let apply = match apply {
        Some(v1::ApplyRules { any_owner, force, trust }) => {
            let key = (!trust.is_empty()).then(|| key_from_wire("apply.trust", &trust)).transpose()?;
            Some(Apply { owner: state.exports.owner()?, any_owner, force, trust: key })
        }
        None => None,
    };
    let request = ImportRequest { path: path.into(), provider, plugin, again, dry_run, apply };
    let id = if upload_id.is_empty() {
        state.imports.start_with(request, keys)?
    } else {
        upload::start_import(state, &upload_id, request, keys)?
    };
    let view = state
        .imports
        .subscribe(id)
        .ok_or_else(|| CallError::not_found(ResourceKind::Import, id.to_string()))?;
    let operation = job_to_wire(view.borrow().clone());
    Ok(operation)
}

fn get(state: &CallState, request: v1::GetImportRequest) -> Result<v1::GetImportResponse, CallError> {
    let receipt = Some(import_to_wire(find(state, &request.id)?));
    Ok(v1::GetImportResponse { receipt, header: Some(state.header()) })
}

fn find(state: &CallState, id: &str) -> Result<ImportRecord, CallError> {
    check_required("id", id)?;
    state.imports.get(id)?.ok_or_else(|| CallError::not_found(ResourceKind::Import, id))
}

fn list(
    state: &CallState,
    mut request: v1::ListImportsRequest,
) -> Result<v1::ListImportsResponse, CallError> {
    let page = page_request!(state, "ListImports", request)?;
    let v1::ListImportsRequest { page_size: _, page_token: _, statuses, outdated_by_plugin } = request;
    check_count("statuses", statuses.len())?;
    check_length("outdated_by_plugin", &outdated_by_plugin)?;
    let requested: Vec<ImportStatus> =
        statuses.into_iter().map(|status| status_from_wire("statuses", status)).collect::<Result<_, _>>()?;
    if !outdated_by_plugin.is_empty() {
        return list_outdated(state, &page, &outdated_by_plugin, &requested);
    }
    let running: Vec<ImportRecord> = state
        .imports
        .active()
        .into_iter()
        .flat_map(|view| view.imports)
        .filter(|import| !import.ended())
        .collect();
    let rows = page.rows.min(MAX_IMPORT_ROWS);
    let (records, next) = imports_with_status(state, &page, rows, &requested)?;
    let imports = records.into_iter().map(|record| {
        let running_import = running.iter().find(|running_import| running_import.id == record.id).cloned();
        import_summary_to_wire(running_import.unwrap_or(record))
    });
    Ok(v1::ListImportsResponse {
        imports: imports.collect(),
        next_page_token: state.next_token(&page, next.as_ref()),
        header: Some(state.header()),
    })
}

/// Lists the imports of sources that the plugin of this name would read anew.
fn list_outdated(
    state: &CallState,
    page: &PageRequest,
    plugin: &str,
    requested: &[ImportStatus],
) -> Result<v1::ListImportsResponse, CallError> {
    let mut all = outdated_imports(state, plugin)?;
    all.retain(|record| requested.is_empty() || requested.contains(&record.status));
    let show = |record| Ok(import_summary_to_wire(record));
    let (imports, next_page_token) = state.fill_from(page, &all, show)?;
    Ok(v1::ListImportsResponse { imports, next_page_token, header: Some(state.header()) })
}

type ImportPage = (Vec<ImportRecord>, Option<Cursor>);

/// Reads the ledger until the page is full or enough entries were examined, so that a rare status does not delay the
/// call.
fn imports_with_status(
    state: &CallState,
    page: &PageRequest,
    rows: usize,
    requested: &[ImportStatus],
) -> Result<ImportPage, CallError> {
    let mut matching = Vec::new();
    let mut examined = 0;
    let mut at = page.cursor.clone();
    loop {
        let page = state.imports.list(at.as_ref(), rows - matching.len())?;
        examined += page.items.len();
        matching.extend(
            page.items
                .into_iter()
                .filter(|record| requested.is_empty() || requested.contains(&record.status)),
        );
        at = page.next;
        if at.is_none() || matching.len() >= rows || examined >= MAX_EXAMINED_ROWS {
            return Ok((matching, at));
        }
    }
}

fn issues(
    state: &CallState,
    mut request: v1::ListImportIssuesRequest,
) -> Result<v1::ListImportIssuesResponse, CallError> {
    let page = page_request!(state, "ListImportIssues", request)?;
    let v1::ListImportIssuesRequest { id, page_size: _, page_token: _, kinds } = request;
    let (skips, warnings) = issue_kinds_from_wire(&kinds)?;
    let record = find(state, &id)?;
    let from = index_of(page.cursor.as_ref())?;
    let (issues, next) = fill_issues(state, &record, (skips, warnings), from, page.rows)?;
    Ok(v1::ListImportIssuesResponse {
        issues,
        next_page_token: state.next_token(&page, next.map(index_cursor).as_ref()),
        header: Some(state.header()),
    })
}

fn issue_kinds_from_wire(kinds: &[i32]) -> Result<(bool, bool), CallError> {
    check_count("kinds", kinds.len())?;
    let mut requested = (kinds.is_empty(), kinds.is_empty());
    for kind in kinds {
        match v1::IssueKind::try_from(*kind) {
            Ok(v1::IssueKind::Skip) => requested.0 = true,
            Ok(v1::IssueKind::Warning) => requested.1 = true,
            Ok(v1::IssueKind::Unspecified) | Err(_) => {
                return Err(CallError::invalid_field(
                    "kinds",
                    format!("holds {kind}, which is not a known value"),
                ));
            }
        }
    }
    Ok(requested)
}

/// Returns issues from a position on: first the skips, then the warnings.
fn fill_issues(
    state: &CallState,
    record: &ImportRecord,
    (skips, warnings): (bool, bool),
    from: usize,
    rows: usize,
) -> Result<(Vec<v1::ImportIssue>, Option<usize>), CallError> {
    let mut issues = Vec::new();
    let mut at = from;
    if skips && at < FIRST_WARNING {
        let listed = state.imports.issues(record, at, rows)?;
        at += listed.len();
        issues.extend(listed.into_iter().map(skip_to_wire));
        if issues.len() == rows {
            return Ok((issues, Some(at)));
        }
    }
    if !warnings {
        return Ok((issues, None));
    }
    let start = at.saturating_sub(FIRST_WARNING);
    let listed: Vec<_> = record.warnings.iter().skip(start).take(rows - issues.len()).cloned().collect();
    let end = start + listed.len();
    issues.extend(listed.into_iter().map(warning_to_wire));
    let next = (end < record.warnings.len()).then_some(FIRST_WARNING + end);
    Ok((issues, next))
}

/// Positions from here on are those of warnings; no import has this many skips.
const FIRST_WARNING: usize = 1 << 32;
