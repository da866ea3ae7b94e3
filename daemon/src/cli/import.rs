//! `import`: starts import jobs, follows them and prints their receipts.

mod differences;
mod progress;
pub(super) mod receipt;
mod throughput;

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
};

use satchel_proto::v1::{
    ApplyRules, CancelOperationRequest, CreateImportRequest, Import, ImportStatus, Operation, OperationState,
    Unlock, WatchOperationRequest,
};
use tokio_stream::StreamExt;

use self::progress::ImportProgress;
use super::{
    Context,
    args::{ApplyArgs, ImportArgs},
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json, path, transfer,
};

/// Jobs that are started before the first of them has ended. The daemon runs two at a time; the others wait.
const STARTED_AHEAD: usize = 4;
/// The same for files that are sent to the daemon: while one is being sent, no job runs that Ctrl-C would have to cancel.
const SENT_AHEAD: usize = 1;

/// What to import, and how.
#[derive(Clone)]
pub(crate) struct ImportRequest {
    paths: Vec<PathBuf>,
    provider: String,
    /// Only the importer of this name reads.
    plugin: String,
    again: bool,
    dry_run: bool,
    apply: Option<ApplyRules>,
    /// Opens encrypted input.
    unlock: Option<Unlock>,
}

impl From<&ImportArgs> for ImportRequest {
    fn from(args: &ImportArgs) -> Self {
        let ImportArgs { paths, provider, plugin, dry_run, again, unlock: _ } = args;
        Self {
            paths: paths.clone(),
            provider: provider.clone().unwrap_or_default(),
            plugin: plugin.clone().unwrap_or_default(),
            again: *again,
            dry_run: *dry_run,
            apply: None,
            unlock: None,
        }
    }
}

impl From<&ApplyArgs> for ImportRequest {
    fn from(args: &ApplyArgs) -> Self {
        let ApplyArgs { path, dry_run, any_owner, force, trust, unlock: _ } = args;
        let trust = trust.clone().unwrap_or_default();
        let apply = Some(ApplyRules { any_owner: *any_owner, force: *force, trust });
        let paths = vec![path.clone()];
        Self {
            paths,
            provider: String::new(),
            plugin: String::new(),
            again: false,
            dry_run: *dry_run,
            apply,
            unlock: None,
        }
    }
}

impl ImportRequest {
    /// Returns a request to read these files with the importer of this name.
    pub(crate) fn with_plugin(paths: Vec<PathBuf>, plugin: String, dry_run: bool) -> Self {
        Self { paths, provider: String::new(), plugin, again: false, dry_run, apply: None, unlock: None }
    }
}

/// Imports every path and prints a receipt for each export found.
///
/// # Errors
/// Fails if a path does not exist, or if the daemon refuses or goes away.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    args: impl Into<ImportRequest>,
    unlock: Option<Unlock>,
) -> Result<Exit, CliError> {
    run_request(context, client, ImportRequest { unlock, ..args.into() }, None).await
}

/// Works as [`run`]; `gone` are paths that were to be imported too, and no longer exist.
///
/// # Errors
/// As [`run`].
pub(crate) async fn run_request(
    context: &mut Context,
    client: &DaemonClient,
    args: ImportRequest,
    gone: Option<&[PathBuf]>,
) -> Result<Exit, CliError> {
    let paths = args.paths.iter().map(|path| absolute_path(context, path)).collect::<Result<Vec<_>, _>>()?;
    let mut jobs = ImportJobs { client, started: VecDeque::new(), cancelled: false };
    let started_ahead = if context.location.is_paired() { SENT_AHEAD } else { STARTED_AHEAD };
    let mut imports = Vec::new();
    let mut remaining_paths = paths.iter();
    let mut exit = Exit::Done;
    let mut output_open = true;
    loop {
        while jobs.started.len() < started_ahead && !jobs.cancelled {
            let Some(path) = remaining_paths.next() else { break };
            jobs.start(context, path, &args).await?;
        }
        let Some(job) = jobs.started.pop_front() else { break };
        let ended = jobs.follow(job, context).await?;
        exit = ended.imports().iter().map(exit_of_import).fold(exit, Exit::worst);
        exit = exit.worst(exit_of_operation(&ended));
        if output_open {
            output_open = output_is_open(print_receipts(context, &ended, imports.is_empty()))?;
        }
        imports.extend(ended.imports().iter().cloned());
    }
    if context.out.json {
        let document = json::import::Imports::new(&imports, None);
        let document = if let Some(gone) = gone { document.with_gone(gone) } else { document };
        output_is_open(context.out.json(&document))?;
    }
    Ok(if jobs.cancelled { Exit::Cancelled } else { exit })
}

/// Returns whether the output still has a reader. A reader that closes the pipe ends the output, not the imports.
fn output_is_open(printed: Result<(), CliError>) -> Result<bool, CliError> {
    match printed {
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        printed => printed.map(|()| true),
    }
}

fn print_receipts(context: &mut Context, job: &Operation, first: bool) -> Result<(), CliError> {
    if context.out.json {
        return Ok(());
    }
    if job.imports().is_empty() {
        context.out.note(&format!("{}: nothing was imported", super::text::one_line(job.path())));
    }
    for (at, import) in job.imports().iter().enumerate() {
        let text = receipt::render(import, &context.calendar, context.out.style);
        let gap = if first && at == 0 { "" } else { "\n" };
        context.out.print(&format!("{gap}{text}"))?;
        if let Some(hint) = receipt::hint(import) {
            context.out.note(&format!("  {hint}"));
        }
    }
    Ok(())
}

/// Returns the absolute path. Behind a socket may be another machine, and we cannot know which files exist there.
fn absolute_path(context: &Context, path: &Path) -> Result<String, CliError> {
    let resolved = if context.location.is_local() || context.location.is_paired() {
        path.canonicalize().map_err(CliError::file("read", path))?
    } else {
        std::path::absolute(path).map_err(CliError::file("find", path))?
    };
    path::path_to_string(resolved)
}

/// The jobs of this command.
struct ImportJobs<'a> {
    client: &'a DaemonClient,
    started: VecDeque<Operation>,
    /// True if Ctrl-C was pressed.
    cancelled: bool,
}

impl ImportJobs<'_> {
    /// Starts a job, after it has sent the file if the daemon is a paired one.
    async fn start(
        &mut self,
        context: &mut Context,
        path: &str,
        args: &ImportRequest,
    ) -> Result<(), CliError> {
        let (path, upload_id) = if context.location.is_paired() {
            (String::new(), transfer::send(&mut context.out, self.client, Path::new(path)).await?)
        } else {
            (path.to_owned(), String::new())
        };
        let request = CreateImportRequest {
            path,
            platform: args.provider.clone(),
            plugin: args.plugin.clone(),
            again: args.again,
            dry_run: args.dry_run,
            apply: args.apply.clone(),
            unlock: args.unlock.clone(),
            upload_id,
        };
        self.started.extend(self.client.imports().create_import(request).await?.into_inner().operation);
        Ok(())
    }

    /// Follows a job to its end. The first Ctrl-C cancels all jobs in an orderly way, the second exits at once.
    async fn follow(&mut self, job: Operation, context: &mut Context) -> Result<Operation, CliError> {
        let request = WatchOperationRequest { id: job.id.clone(), min_interval: None };
        let mut changes = self.client.operations().watch_operation(request).await?.into_inner();
        let mut progress = ImportProgress::new(job.path(), &context.out);
        let mut last = job;
        loop {
            tokio::select! {
                change = changes.next() => match change {
                    Some(change) => {
                        last = change?.operation.unwrap_or(last);
                        progress.show(&last);
                    }
                    None => break,
                },
                pressed = tokio::signal::ctrl_c() => {
                    if let Err(error) = pressed {
                        tracing::warn!(%error, "cannot listen for ctrl-c");
                    }
                    if self.cancelled {
                        return Err(CliError::Cancelled);
                    }
                    self.cancelled = true;
                    progress.print_message("cancelling; records that are already stored are kept");
                    self.cancel_all(&last.id).await?;
                }
            }
        }
        progress.end();
        Ok(last)
    }

    async fn cancel_all(&mut self, current: &str) -> Result<(), CliError> {
        let ids: Vec<String> = std::iter::once(current.to_owned())
            .chain(self.started.iter().map(|job| job.id.clone()))
            .collect();
        for id in ids {
            self.client.operations().cancel_operation(CancelOperationRequest { id }).await?;
        }
        Ok(())
    }
}

fn exit_of_import(import: &Import) -> Exit {
    match import.status() {
        ImportStatus::Unrecognized => Exit::Unrecognized,
        ImportStatus::Failed => Exit::Failed,
        ImportStatus::Cancelled => Exit::Cancelled,
        ImportStatus::Unspecified
        | ImportStatus::Running
        | ImportStatus::Completed
        | ImportStatus::Undone
        | ImportStatus::Waiting
        | ImportStatus::CompletedWithSkips
        | ImportStatus::Unchanged => Exit::Done,
    }
}

fn exit_of_operation(job: &Operation) -> Exit {
    match job.state() {
        OperationState::Cancelled => Exit::Cancelled,
        // If a job failed after it had imports, the exit code is that of the imports.
        OperationState::Failed if job.imports().is_empty() => Exit::Failed,
        OperationState::Unspecified
        | OperationState::Queued
        | OperationState::Running
        | OperationState::Succeeded
        | OperationState::Failed => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::{ImportResult, operation};

    use super::*;

    #[test]
    fn the_exit_code_follows_the_import_status() {
        let exit = |status: ImportStatus| {
            exit_of_import(&Import { status: status.into(), ..Import::default() }).code()
        };
        assert_eq!(exit(ImportStatus::Completed), 0);
        assert_eq!(exit(ImportStatus::Unchanged), 0);
        assert_eq!(exit(ImportStatus::CompletedWithSkips), 0);
        assert_eq!(exit(ImportStatus::Unrecognized), 3);
        assert_eq!(exit(ImportStatus::Failed), 4);
        assert_eq!(exit(ImportStatus::Cancelled), 130);
        assert_eq!(exit(ImportStatus::Waiting), 0);
        let job = |state: OperationState, imports| {
            let result = operation::Result::Imports(ImportResult { imports, ..ImportResult::default() });
            exit_of_operation(&Operation {
                state: state.into(),
                result: Some(result),
                ..Operation::default()
            })
        };
        assert_eq!(job(OperationState::Failed, Vec::new()), Exit::Failed);
        assert_eq!(job(OperationState::Failed, vec![Import::default()]), Exit::Done);
    }
}
