//! `sources …`: the watched folders.

use std::path::Path;

use satchel_proto::{
    integers::unsigned,
    v1::{
        AddSourceRequest, ListSourcesRequest, ListSourcesResponse, RemoveSourceRequest, Source, SourceItem,
        SourceState,
    },
};

use super::{
    Context,
    agent_homes::AgentFiles,
    args::{AddSourceArgs, Sources},
    client::DaemonClient,
    confirm,
    error::CliError,
    exit::Exit,
    json, labels,
    pagination::{self, ResultPage},
    path, secret,
    style::{Paint, TerminalStyle},
    text,
};

/// Runs the command.
///
/// # Errors
/// Returns the error of the daemon.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    command: &Sources,
) -> Result<Exit, CliError> {
    match command {
        Sources::List { unrecognised } => list(context, client, *unrecognised).await,
        Sources::Add(args) => add(context, client, args).await,
        Sources::Remove(folder) => remove(context, client, &folder.dir).await,
    }
}

async fn list(context: &mut Context, client: &DaemonClient, unrecognised: bool) -> Result<Exit, CliError> {
    let sources = pagination::collect_rows(None, async |page_size, page_token| {
        let request = ListSourcesRequest { unrecognized: unrecognised, page_size, page_token };
        let ListSourcesResponse { sources, next_page_token, .. } =
            client.imports().list_sources(request).await?.into_inner();
        Ok(ResultPage { rows: sources, next: next_page_token })
    });
    let sources = sources.await?.rows;
    if context.out.json {
        context.out.json(&json::source::Sources::new(&sources))?;
    } else {
        let text: String = sources.iter().map(|source| render(source, context.out.style)).collect();
        context.out.print(&text)?;
        if unrecognised && !sources.is_empty() && sources.iter().all(|one| one.unrecognized_items.is_empty())
        {
            context.out.note("no unrecognised files were found so far");
        }
        if !unrecognised && sources.iter().any(|source| source.unrecognized > 0) {
            context
                .out
                .note("`satchel sources list --unrecognised` lists the files that no importer recognises");
        }
        if sources.is_empty() {
            context.out.note("no folders are watched; `satchel sources add DIR` adds one");
        }
    }
    if !client.is_daemon() && !sources.is_empty() {
        context.out.note("no daemon is running; start `satchel serve` to watch them");
    }
    Ok(Exit::Done)
}

async fn add(context: &mut Context, client: &DaemonClient, args: &AddSourceArgs) -> Result<Exit, CliError> {
    let settle =
        args.settle.as_deref().map(|text| context.calendar.parse_span("--settle", text)).transpose()?;
    let Some(dir) = &args.dir else {
        return add_agents(context, client, args.yes, settle).await;
    };
    let request = AddSourceRequest {
        path: absolute_path(context, dir)?,
        settle_time: settle,
        sessions: args.sessions,
        ignore: args.ignore.clone(),
    };
    let source = watch(context, client, request).await?;
    if context.out.json {
        context.out.json(&json::source::Source::new(&source))?;
    }
    note_daemon(context, client);
    Ok(Exit::Done)
}

/// Finds the folders of agents and watches them.
async fn add_agents(
    context: &mut Context,
    client: &DaemonClient,
    yes: bool,
    settle: Option<prost_types::Duration>,
) -> Result<Exit, CliError> {
    if !context.location.is_local() {
        let problem = "--agents looks for folders on this machine; omit --server, or name the folder";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let found = context.agent_homes.existing_folders();
    if found.is_empty() {
        return Err(CliError::Usage(format!(
            "found none of the folders of agents: {}; name another folder instead of --agents",
            context.agent_homes
        )));
    }
    if !yes {
        if context.out.json || !secret::is_interactive() {
            let problem =
                "cannot ask for confirmation without a terminal; use --yes to watch the folders of agents";
            return Err(CliError::Usage(problem.to_owned()));
        }
        for folder in &found {
            context.out.print(&format!("{folder}\n"))?;
        }
        if !confirm::ask(format!("watch {}? [y/N] ", text::count(found.len() as u64, "folder", "folders")))
            .await?
        {
            return Err(CliError::Declined("nothing was changed".to_owned()));
        }
    }
    let mut sources = Vec::new();
    for folder in &found {
        let request = AddSourceRequest {
            path: absolute_path(context, &folder.path)?,
            settle_time: settle,
            sessions: folder.files == AgentFiles::Appended,
            ignore: folder.ignore.iter().map(ToString::to_string).collect(),
        };
        sources.push(watch(context, client, request).await?);
    }
    if context.out.json {
        context.out.json(&json::source::Sources::new(&sources))?;
    }
    note_daemon(context, client);
    Ok(Exit::Done)
}

/// Watches one folder, and prints it as text.
async fn watch(
    context: &mut Context,
    client: &DaemonClient,
    request: AddSourceRequest,
) -> Result<Source, CliError> {
    let answer = client.imports().add_source(request).await?.into_inner();
    let source = answer.source.unwrap_or_default();
    if !context.out.json {
        let done = if answer.added { "now watched" } else { "already watched" };
        context.out.print(&format!("{}: {done}\n", text::one_line(&source.path)))?;
    }
    Ok(source)
}

fn note_daemon(context: &mut Context, client: &DaemonClient) {
    if !client.is_daemon() {
        context.out.note("no daemon is running; start `satchel serve` to watch what was added");
    }
}

async fn remove(context: &mut Context, client: &DaemonClient, dir: &Path) -> Result<Exit, CliError> {
    let path = absolute_path(context, dir)?;
    let request = RemoveSourceRequest { path: path.clone() };
    client.imports().remove_source(request).await?;
    if context.out.json {
        context.out.json(&json::source::Removed { removed: &path })?;
    } else {
        context.out.print(&format!("{}: no longer watched\n", text::one_line(&path)))?;
    }
    Ok(Exit::Done)
}

/// Returns the absolute path of the folder. If it no longer exists, or is on another machine, the path is not
/// resolved.
fn absolute_path(context: &Context, dir: &Path) -> Result<String, CliError> {
    let here = context.location.is_local().then(|| std::fs::canonicalize(dir).ok()).flatten();
    let path = here.map_or_else(|| path::absolute(dir), Ok)?;
    path.into_os_string().into_string().map_err(|path| {
        CliError::Usage(format!("{path:?} is not valid UTF-8; use `satchel serve --watch` for it"))
    })
}

/// Returns the lines for one folder.
pub(super) fn render(source: &Source, style: TerminalStyle) -> String {
    let mut out = format!("{}  {}\n", text::one_line(&source.path), text::one_line(&summary(source)));
    let mut lines = |mark: &str, items: &[SourceItem], total: u64| {
        for item in items {
            text::append(&mut out, format_args!("  {mark} {}\n", text::one_line(&item_line(item))));
        }
        let more = total.saturating_sub(items.len() as u64);
        if more > 0 {
            text::append(&mut out, format_args!("  {mark} and {} more\n", text::number(more)));
        }
    };
    lines("reading", &source.reading, 0);
    lines("waiting", &source.waiting, unsigned(source.waiting_total));
    lines(&style.paint(Paint::Bad, "failed"), &source.failed, unsigned(source.failed_total));
    let unrecognised = &source.unrecognized_items;
    let total = if unrecognised.is_empty() { 0 } else { source.unrecognized };
    lines("not recognised", unrecognised, unsigned(total));
    out
}

/// Returns one line: how the folder is watched, and the counts of its files by outcome.
fn summary(source: &Source) -> String {
    let state = match source.state() {
        SourceState::Polling => format!("polling, because {}", source.polling_reason),
        state => labels::source_state(state.into()),
    };
    let counts = [
        (source.imported, "imported"),
        (source.queued, "queued"),
        (source.waiting_total, "waiting"),
        (source.failed_total, "failed"),
        (source.unrecognized, "not recognised"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = std::iter::once(format!("({state}; {})", labels::source_origin(source.origin)))
        .chain(counts.map(|(count, word)| format!("{} {word}", text::number(unsigned(*count)))))
        .collect();
    parts.join(", ")
}

fn item_line(item: &SourceItem) -> String {
    let mut line = item.name.clone();
    if !item.reason.is_empty() {
        line.push_str(": ");
        line.push_str(&item.reason);
    }
    if let Some(wait) = &item.retry_in {
        let millis = u64::try_from(wait.seconds).unwrap_or(0).saturating_mul(1_000);
        line.push_str(&format!("; retry in {}", text::duration(millis)));
    }
    line
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::SourceOrigin;

    use super::*;

    #[test]
    fn a_folder_lists_files_being_read_waiting_and_failed() {
        let item = |name: &str, reason: &str| SourceItem {
            name: name.to_owned(),
            reason: reason.to_owned(),
            ..SourceItem::default()
        };
        let source = Source {
            path: "/home/ana/Downloads".to_owned(),
            origin: SourceOrigin::Added.into(),
            state: SourceState::Watching.into(),
            imported: 1_204,
            waiting_total: 3,
            failed_total: 1,
            reading: vec![item("big.zip", "")],
            waiting: vec![item("a.zip.part", "its download is in progress")],
            failed: vec![SourceItem {
                retry_in: Some(prost_types::Duration { seconds: 40, nanos: 0 }),
                ..item("c\n.zip", "its bytes do not match their checksum")
            }],
            ..Source::default()
        };
        let expected = "\
/home/ana/Downloads  (watching; added), 1,204 imported, 3 waiting, 1 failed
  reading big.zip
  waiting a.zip.part: its download is in progress
  waiting and 2 more
  failed c .zip: its bytes do not match their checksum; retry in 40.0 s
";
        assert_eq!(render(&source, TerminalStyle::plain(100)), expected);
    }
}
