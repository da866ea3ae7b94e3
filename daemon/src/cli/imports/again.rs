//! `imports again`: reads again what another version of an importer has read.

use std::{collections::BTreeSet, path::PathBuf};

use satchel_proto::v1::{Import, ListImportsRequest};

use crate::cli::{
    Context,
    args::AgainArgs,
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    import::{self, ImportRequest},
    json,
    pagination::{self, ResultPage},
    text,
};

/// Runs the command.
///
/// # Errors
/// Returns the error of the daemon.
pub(in crate::cli) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    args: &AgainArgs,
) -> Result<Exit, CliError> {
    let AgainArgs { plugin, dry_run } = args;
    if context.location.is_paired() {
        return Err(CliError::Declined(
            "`imports again` reads files of the daemon's machine; run it there, or send the files with `satchel import --again`".to_owned(),
        ));
    }
    let outdated = outdated_imports(client, plugin).await?;
    let paths: BTreeSet<PathBuf> = outdated.iter().map(|import| PathBuf::from(&import.path)).collect();
    // Only the daemon knows which files exist on another machine. Its receipts say it.
    let local = context.location.is_local();
    let (paths, gone): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| !local || path.exists());
    for path in &gone {
        let path = text::shell_quoted(&text::one_line(&path.to_string_lossy()));
        context.out.note(&format!("{path} is gone; put it back to read it again"));
    }
    if paths.is_empty() {
        if context.out.json {
            context.out.json(&json::import::Imports::new([], None).with_gone(&gone))?;
        } else if gone.is_empty() {
            context.out.note(&format!("{plugin} has read everything with its version in use; nothing to do"));
        }
        return Ok(Exit::Done);
    }
    let request = ImportRequest::with_plugin(paths, plugin.clone(), *dry_run);
    import::run_request(context, client, request, Some(&gone)).await
}

async fn outdated_imports(client: &DaemonClient, plugin: &str) -> Result<Vec<Import>, CliError> {
    let listing = pagination::collect_rows(None, async |page_size, page_token| {
        let outdated_by_plugin = plugin.to_owned();
        let request =
            ListImportsRequest { page_size, page_token, outdated_by_plugin, ..ListImportsRequest::default() };
        let answer = client.imports().list_imports(request).await?.into_inner();
        Ok(ResultPage { rows: answer.imports, next: answer.next_page_token })
    });
    Ok(listing.await?.rows)
}
