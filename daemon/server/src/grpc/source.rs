//! Watched folders: the methods of `ImportService` about them, and their part of the daemon's status.

use std::path::Path;

use satchel_core::ingest::{Silent, leftover};
use satchel_proto::{signed::signed, v1};
use satchel_source::names::{shown, text};
use satchel_watch::{FolderView, Notice, Origin, State, Watch, WatchedFolder};

use super::{Core, call::absolute, status::Fault, wire::scalar::duration_to_wire};

/// Largest number of unrecognised files that are listed for a folder.
const MAX_UNRECOGNISED: usize = 1_000;
/// Number of those files that are inspected for one response.
const LOOKED_AT: usize = 200;
/// Longest reason of one file in a response, in characters.
const MAX_REASON: usize = 500;

/// Lists every watched folder.
pub(super) fn list(core: &Core, request: v1::ListSourcesRequest) -> Result<v1::ListSourcesResponse, Fault> {
    let v1::ListSourcesRequest { unrecognized, page_size, page_token } = request;
    let show = |folder: WatchedFolder| {
        let root = folder.path.clone();
        let mut source = to_wire(&core.watch, folder);
        if unrecognized {
            source.unrecognized_items = unrecognised(core, &root)?;
            // Without a running watcher, nothing is counted.
            source.unrecognized = source.unrecognized.max(signed(source.unrecognized_items.len() as u64));
        }
        Ok(source)
    };
    let list = ("ListSources", &v1::ListSourcesRequest { unrecognized, ..v1::ListSourcesRequest::default() });
    let (sources, next_page_token) =
        core.page_of(list, (page_size, &page_token), &core.watch.folders(), show)?;
    Ok(v1::ListSourcesResponse { sources, header: Some(core.header()), next_page_token })
}

/// Returns the unrecognised files of a folder, each with a guess of its content. Files that no longer exist are left
/// out.
fn unrecognised(core: &Core, root: &Path) -> Result<Vec<v1::SourceItem>, Fault> {
    let names = core.watch.unrecognised(root, MAX_UNRECOGNISED)?;
    let limits = core.imports.limits();
    let items = names.iter().enumerate().filter_map(|(at, name)| {
        if at >= LOOKED_AT {
            return root.join(name).symlink_metadata().is_ok().then(|| (name, String::new()));
        }
        match leftover::seems(root, name, &limits) {
            Ok(seems) => Some((name, seems)),
            Err(_) if root.join(name).symlink_metadata().is_err() => None,
            Err(error) => Some((name, format!("it cannot be looked at: {error}"))),
        }
    });
    let items = items.map(|(name, reason)| v1::SourceItem {
        name: shown(name),
        reason: reason.chars().take(MAX_REASON).collect(),
        ..v1::SourceItem::default()
    });
    Ok(items.collect())
}

pub(super) fn all(core: &Core) -> Vec<v1::Source> {
    core.watch.folders().into_iter().map(|folder| to_wire(&core.watch, folder)).collect()
}

pub(super) fn add(core: &Core, request: v1::AddSourceRequest) -> Result<v1::AddSourceResponse, Fault> {
    let v1::AddSourceRequest { path } = request;
    absolute("path", &path)?;
    let path = Path::new(&path);
    let added = core.watch.add(path)?;
    let watched = core.watch.folders().into_iter().find(|folder| folder.path == path);
    let source = watched.map(|folder| to_wire(&core.watch, folder));
    Ok(v1::AddSourceResponse { source, header: Some(core.header()), added })
}

pub(super) fn remove(
    core: &Core,
    request: v1::RemoveSourceRequest,
) -> Result<v1::RemoveSourceResponse, Fault> {
    let v1::RemoveSourceRequest { path } = request;
    absolute("path", &path)?;
    let path = Path::new(&path);
    core.watch.remove(path)?;
    Ok(v1::RemoveSourceResponse { header: Some(core.header()) })
}

/// Returns the problems of the watched folders that the user should look at.
pub(super) fn problems(core: &Core) -> Vec<v1::Problem> {
    let watch = &core.watch;
    let problem =
        |reason: &str, message: String, fix: String| v1::Problem { reason: reason.to_owned(), message, fix };
    let refused = watch.refused().into_iter().map(|message| {
        problem("SOURCE_REFUSED", message, "mend the configuration, or leave the folder out of it".to_owned())
    });
    let folders = watch.folders();
    let troubles = folders.into_iter().flat_map(|folder| {
        let failed = failures(&folder);
        folder
            .view
            .troubles
            .into_iter()
            .map(|trouble| ("SOURCE_TROUBLE", trouble.message, trouble.fix))
            .chain(failed.map(|(message, fix)| ("SOURCE_FAILED", message, fix)))
    });
    let silent = core.imports.silent();
    refused
        .chain(silent.iter().map(silence))
        .chain(troubles.map(|(reason, message, fix)| problem(reason, message, fix)))
        .collect()
}

/// Returns the problem to report for a source that does not respond.
fn silence(silent: &Silent) -> v1::Problem {
    let Silent { job, path, time } = silent;
    let (path, seconds) = (shown(path.as_os_str()), time.as_secs());
    let message = format!("{path:?} has not answered for {seconds} seconds; other imports go on");
    let fix = format!(
        "look at its disk or network; it goes on by itself, or `satchel imports cancel {job}` ends it"
    );
    v1::Problem { reason: "SOURCE_SILENT".to_owned(), message, fix }
}

/// Returns one problem for all failures in a folder.
fn failures(folder: &WatchedFolder) -> Option<(String, String)> {
    let first = folder.view.failed.first()?;
    let more = match folder.view.failed_total {
        0 | 1 => String::new(),
        total => format!(" (and {} more)", total - 1),
    };
    let message = format!(
        "{:?} in {:?} could not be imported: {}{more}",
        first.name,
        shown(folder.path.as_os_str()),
        first.reason
    );
    let fix =
        "put a whole file in its place; it is tried again by itself, and `satchel sources list` shows all";
    Some((message, fix.to_owned()))
}

fn to_wire(watch: &Watch, folder: WatchedFolder) -> v1::Source {
    let WatchedFolder { path, origin, spec, view } = folder;
    let FolderView {
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
        troubles: _,
        overflows,
        scanned,
    } = view;
    let (state, polling_reason) = match state {
        State::Idle => (v1::SourceState::Idle, String::new()),
        State::Watching => (v1::SourceState::Watching, String::new()),
        State::Polling(why) => (v1::SourceState::Polling, why),
        State::Broken => (v1::SourceState::Broken, String::new()),
    };
    let items = |notices: Vec<Notice>| notices.into_iter().map(|notice| item(watch, notice)).collect();
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
        unrecognized_items: Vec::new(),
    }
}

fn origin_to_wire(origin: Origin) -> v1::SourceOrigin {
    match origin {
        Origin::Configured => v1::SourceOrigin::Configured,
        Origin::Flag => v1::SourceOrigin::Flag,
        Origin::Added => v1::SourceOrigin::Added,
    }
}

fn item(watch: &Watch, notice: Notice) -> v1::SourceItem {
    let Notice { name, reason, job, again } = notice;
    v1::SourceItem {
        name,
        reason: reason.chars().take(MAX_REASON).collect(),
        operation_id: job.unwrap_or_default(),
        retry_in: again.map(|again| duration_to_wire(watch.until(again))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_source_that_does_not_answer_is_named_with_its_job_and_how_to_end_it() {
        let job = Uuid::from_u128(7);
        let path = "/net/dead share\u{1b}[2J/export.zip".into();
        let v1::Problem { reason, message, fix } =
            silence(&Silent { job, path, time: Duration::from_millis(31_900) });
        assert_eq!(reason, "SOURCE_SILENT");
        assert!(message.contains("dead share") && message.contains("has not answered for 31 seconds"));
        assert!(!message.contains('\u{1b}'), "it steers a terminal: {message:?}");
        assert!(fix.contains(&format!("`satchel imports cancel {job}`")), "{fix}");
    }
}
