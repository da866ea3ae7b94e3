//! Watched folders: the methods of `ImportService` about them, and their part of the daemon's status.

use std::path::Path;

use satchel_core::ingest::{StalledJob, unrecognized};
use satchel_proto::{integers::signed, v1};
use satchel_source::names::{shown, text};
use satchel_watch::{FileStatus, FolderStatus, Watch, WatchOrigin, WatchSpec, WatchState, WatchedFolder};

use super::{
    call_state::CallState,
    request::{check_absolute, page_request},
    status::CallError,
    wire::scalar::{duration_from_wire, duration_to_wire},
};

/// Largest number of unrecognised files that are listed for a folder.
const MAX_UNRECOGNISED: usize = 1_000;
/// Number of those files that are inspected for one response.
const MAX_SNIFFED: usize = 200;
/// Longest reason of one file in a response, in characters.
const MAX_REASON_CHARS: usize = 500;

/// Lists every watched folder.
pub(super) fn list(
    state: &CallState,
    mut request: v1::ListSourcesRequest,
) -> Result<v1::ListSourcesResponse, CallError> {
    let page = page_request!(state, "ListSources", request)?;
    let show = |folder: WatchedFolder| {
        let root = folder.path.clone();
        let mut source = source_to_wire(&state.watch, folder);
        if request.unrecognized {
            source.unrecognized_items = unrecognised_items(state, &root)?;
            // Without a running watcher, nothing is counted.
            source.unrecognized = source.unrecognized.max(signed(source.unrecognized_items.len() as u64));
        }
        Ok(source)
    };
    let (sources, next_page_token) = state.fill_from(&page, &state.watch.folders(), show)?;
    Ok(v1::ListSourcesResponse { sources, header: Some(state.header()), next_page_token })
}

/// Returns the unrecognised files of a folder, each with a guess of its content. Files that no longer exist are left
/// out.
fn unrecognised_items(state: &CallState, root: &Path) -> Result<Vec<v1::SourceItem>, CallError> {
    let names = state.watch.unrecognised(root, MAX_UNRECOGNISED)?;
    let limits = state.imports.limits();
    let items = names.iter().enumerate().filter_map(|(at, name)| {
        if at >= MAX_SNIFFED {
            return root.join(name).symlink_metadata().is_ok().then(|| (name, String::new()));
        }
        match unrecognized::describe_file(root, name, &limits) {
            Ok(guess) => Some((name, guess)),
            Err(_) if root.join(name).symlink_metadata().is_err() => None,
            Err(error) => Some((name, format!("it cannot be read: {error}"))),
        }
    });
    let items = items.map(|(name, reason)| v1::SourceItem {
        name: shown(name),
        reason: reason.chars().take(MAX_REASON_CHARS).collect(),
        ..v1::SourceItem::default()
    });
    Ok(items.collect())
}

pub(super) fn list_all(state: &CallState) -> Vec<v1::Source> {
    state.watch.folders().into_iter().map(|folder| source_to_wire(&state.watch, folder)).collect()
}

pub(super) fn add(
    state: &CallState,
    request: v1::AddSourceRequest,
) -> Result<v1::AddSourceResponse, CallError> {
    let v1::AddSourceRequest { path, settle_time, sessions, ignore } = request;
    state.check_local("path")?;
    check_absolute("path", &path)?;
    let path = Path::new(&path);
    let negative = || CallError::invalid_field("settle_time", "is negative or not valid");
    let settle = settle_time.map(|wire| duration_from_wire(wire).ok_or_else(negative)).transpose()?;
    let spec = WatchSpec { ignore, sessions, settle, ..WatchSpec::with_defaults(path.to_owned()) };
    let added = state.watch.add(spec)?;
    let watched = state.watch.folders().into_iter().find(|folder| folder.path == path);
    let source = watched.map(|folder| source_to_wire(&state.watch, folder));
    Ok(v1::AddSourceResponse { source, header: Some(state.header()), added })
}

pub(super) fn remove(
    state: &CallState,
    request: v1::RemoveSourceRequest,
) -> Result<v1::RemoveSourceResponse, CallError> {
    let v1::RemoveSourceRequest { path } = request;
    state.check_local("path")?;
    check_absolute("path", &path)?;
    let path = Path::new(&path);
    state.watch.remove(path)?;
    Ok(v1::RemoveSourceResponse { header: Some(state.header()) })
}

/// Returns the problems of the watched folders that the user should look at.
pub(super) fn problems(state: &CallState) -> Vec<v1::Problem> {
    let watch = &state.watch;
    let problem =
        |reason: &str, message: String, fix: String| v1::Problem { reason: reason.to_owned(), message, fix };
    let refused = watch.refused().into_iter().map(|message| {
        problem(
            "SOURCE_REFUSED",
            message,
            "correct the configuration, or remove the folder from it".to_owned(),
        )
    });
    let folders = watch.folders();
    let problems = folders.into_iter().flat_map(|folder| {
        let failed = failure_problem(&folder);
        folder
            .status
            .problems
            .into_iter()
            .map(|found| ("SOURCE_TROUBLE", found.message, found.fix))
            .chain(failed.map(|(message, fix)| ("SOURCE_FAILED", message, fix)))
    });
    let stalled = state.imports.stalled();
    refused
        .chain(stalled.iter().map(stalled_problem))
        .chain(problems.map(|(reason, message, fix)| problem(reason, message, fix)))
        .collect()
}

/// Returns the problem to report for a source that does not respond.
fn stalled_problem(silent: &StalledJob) -> v1::Problem {
    let StalledJob { job, path, time } = silent;
    let (path, seconds) = (shown(path.as_os_str()), time.as_secs());
    let message = format!("{path:?} has not responded for {seconds} seconds; other imports continue");
    let fix = format!(
        "check its disk or network; the import continues when it responds, or `satchel imports cancel {job}` cancels it"
    );
    v1::Problem { reason: "SOURCE_SILENT".to_owned(), message, fix }
}

/// Returns one problem for all failures in a folder.
fn failure_problem(folder: &WatchedFolder) -> Option<(String, String)> {
    let first = folder.status.failed.first()?;
    let more = match folder.status.failed_total {
        0 | 1 => String::new(),
        total => format!(" (and {} more)", total - 1),
    };
    let message = format!(
        "{:?} in {:?} could not be imported: {}{more}",
        first.name,
        shown(folder.path.as_os_str()),
        first.reason
    );
    let fix = "replace it with a complete file, which is imported automatically; `satchel sources list` shows all failures";
    Some((message, fix.to_owned()))
}

fn source_to_wire(watch: &Watch, folder: WatchedFolder) -> v1::Source {
    let WatchedFolder { path, origin, spec, status } = folder;
    let FolderStatus {
        state,
        imported,
        unrecognised,
        reading,
        queued,
        waiting,
        waiting_total,
        failed,
        failed_total,
        // Reported as problems of the daemon.
        problems: _,
        overflows,
        scanned,
    } = status;
    let (state, polling_reason) = match state {
        WatchState::Idle => (v1::SourceState::Idle, String::new()),
        WatchState::Watching => (v1::SourceState::Watching, String::new()),
        WatchState::Polling(why) => (v1::SourceState::Polling, why),
        WatchState::Broken => (v1::SourceState::Broken, String::new()),
    };
    let items =
        |notices: Vec<FileStatus>| notices.into_iter().map(|notice| item_to_wire(watch, notice)).collect();
    v1::Source {
        path: text(path.as_os_str()),
        origin: origin_to_wire(origin).into(),
        state: state.into(),
        polling_reason,
        imported: signed(imported as u64),
        unrecognized: signed(unrecognised as u64),
        queued: signed(queued as u64),
        waiting_total: signed(waiting_total as u64),
        failed_total: signed(failed_total as u64),
        reading: items(reading),
        waiting: items(waiting),
        failed: items(failed),
        overflows: signed(overflows),
        scanned,
        recursive: spec.recursive,
        sessions: spec.sessions,
        unrecognized_items: Vec::new(),
    }
}

fn origin_to_wire(origin: WatchOrigin) -> v1::SourceOrigin {
    match origin {
        WatchOrigin::Configured => v1::SourceOrigin::Configured,
        WatchOrigin::Flag => v1::SourceOrigin::Flag,
        WatchOrigin::Added => v1::SourceOrigin::Added,
    }
}

fn item_to_wire(watch: &Watch, file: FileStatus) -> v1::SourceItem {
    let FileStatus { name, reason, job, retry_at } = file;
    v1::SourceItem {
        name,
        reason: reason.chars().take(MAX_REASON_CHARS).collect(),
        operation_id: job.unwrap_or_default(),
        retry_in: retry_at.map(|retry_at| duration_to_wire(watch.time_until(retry_at))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_stalled_source_is_reported_with_its_job_and_the_command_to_cancel_it() {
        let job = Uuid::from_u128(7);
        let path = "/net/dead share\u{1b}[2J/export.zip".into();
        let v1::Problem { reason, message, fix } =
            stalled_problem(&StalledJob { job, path, time: Duration::from_millis(31_900) });
        assert_eq!(reason, "SOURCE_SILENT");
        assert!(message.contains("dead share") && message.contains("has not responded for 31 seconds"));
        assert!(!message.contains('\u{1b}'), "it contains a control character: {message:?}");
        assert!(fix.contains(&format!("`satchel imports cancel {job}`")), "{fix}");
    }
}
