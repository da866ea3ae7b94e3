//! `imports …`: the history of imports.

pub(super) mod again;
mod undo;

use satchel_proto::{
    integers::unsigned,
    v1::{
        CancelOperationRequest, GetImportRequest, Import, ImportIssue, ImportStatus, IssueKind,
        ListImportIssuesRequest, ListImportsRequest, RecordCounts,
    },
};
use undo::Direction;

use super::{
    Context,
    args::{Imports, Paging},
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    import::receipt,
    json, labels,
    pagination::{self, ResultPage},
    style::{Paint, TerminalStyle},
    table::{Cell, Column, Table},
    text,
    time::Calendar,
};

/// Runs one of the commands.
///
/// # Errors
/// Returns the errors of the daemon, and fails for an id that matches no import or several.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    command: &Imports,
) -> Result<Exit, CliError> {
    match command {
        Imports::List(paging) => list(context, client, *paging).await,
        Imports::Show(id) => show(context, client, id.given()).await,
        Imports::Issues { id, paging } => issues(context, client, id.given(), *paging).await,
        Imports::Cancel(id) => cancel(context, client, id.given()).await,
        Imports::Undo(args) => undo::run(context, client, args, Direction::Undo).await,
        Imports::Redo(args) => undo::run(context, client, args, Direction::Redo).await,
        Imports::Again(args) => again::run(context, client, args).await,
    }
}

async fn list(context: &mut Context, client: &DaemonClient, paging: Paging) -> Result<Exit, CliError> {
    let listing =
        pagination::collect_rows(paging.max_rows(), async |size, token| fetch(client, size, token).await)
            .await?;
    if context.out.json {
        context.out.json(&json::import::Imports::new(&listing.rows, Some(listing.remaining.more())))?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        context.out.note("no imports yet; run `satchel import PATH` to import an export");
    } else {
        context.out.print(&table(&listing.rows, &context.calendar).render(context.out.style))?;
    }
    context.note_remaining(listing.remaining);
    Ok(Exit::Done)
}

async fn fetch(
    client: &DaemonClient,
    page_size: i32,
    page_token: String,
) -> Result<ResultPage<Import>, CliError> {
    let request = ListImportsRequest { page_size, page_token, ..ListImportsRequest::default() };
    let answer = client.imports().list_imports(request).await?.into_inner();
    Ok(ResultPage { rows: answer.imports, next: answer.next_page_token })
}

/// Returns the full id for `given`; without it, the id of the newest import.
async fn resolve(client: &DaemonClient, given: Option<&str>) -> Result<String, CliError> {
    let Some(given) = given else {
        let newest = fetch(client, 1, String::new()).await?.rows.into_iter().next();
        return newest.map(|import| import.id).ok_or(CliError::NoneYet { kind: "import" });
    };
    pagination::resolve_id("import", given, async |size, token| {
        let page = fetch(client, size, token).await?;
        Ok(ResultPage { rows: page.rows.into_iter().map(|import| import.id).collect(), next: page.next })
    })
    .await
}

async fn show(context: &mut Context, client: &DaemonClient, given: Option<&str>) -> Result<Exit, CliError> {
    let id = resolve(client, given).await?;
    let import =
        client.imports().get_import(GetImportRequest { id }).await?.into_inner().receipt.unwrap_or_default();
    if context.out.json {
        context.out.json(&json::import::ImportDocument { import: json::import::Import::new(&import) })?;
    } else {
        context.out.print_paged(&receipt::render(&import, &context.calendar, context.out.style))?;
        if let Some(hint) = receipt::hint(&import) {
            context.out.note(&format!("  {hint}"));
        }
    }
    Ok(Exit::Done)
}

async fn issues(
    context: &mut Context,
    client: &DaemonClient,
    given: Option<&str>,
    paging: Paging,
) -> Result<Exit, CliError> {
    let id = resolve(client, given).await?;
    let listing = pagination::collect_rows(paging.max_rows(), async |page_size, page_token| {
        let request = ListImportIssuesRequest { id: id.clone(), page_size, page_token, kinds: Vec::new() };
        let answer = client.imports().list_import_issues(request).await?.into_inner();
        Ok(ResultPage { rows: answer.issues, next: answer.next_page_token })
    })
    .await?;
    if context.out.json {
        context.out.json(&json::import::Issues::new(&id, &listing.rows, listing.remaining.more()))?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        context.out.note("no skipped records and no warnings");
    } else {
        context.out.print(&issue_lines(&listing.rows, context.out.style))?;
    }
    context.note_remaining(listing.remaining);
    Ok(Exit::Done)
}

async fn cancel(context: &mut Context, client: &DaemonClient, given: Option<&str>) -> Result<Exit, CliError> {
    let id = resolve(client, given).await?;
    let cancelled = client.operations().cancel_operation(CancelOperationRequest { id }).await?.into_inner();
    let operation = cancelled.operation.unwrap_or_default();
    if context.out.json {
        let state = labels::operation_state(operation.state);
        context.out.json(&json::import::Cancelled { job_id: &operation.id, state })?;
        return Ok(Exit::Done);
    }
    let text = if operation.ended() {
        "the import has already ended\n"
    } else {
        "cancelling the import; records that are already stored are kept\n"
    };
    context.out.print(text)?;
    Ok(Exit::Done)
}

fn table(imports: &[Import], calendar: &Calendar) -> Table {
    let ids = text::ShortIds::new(imports.iter().map(|import| import.id.as_str()));
    let mut table = Table::new([
        Column::new("id"),
        Column::new("source").shrinks_to(16),
        Column::new("platform").optional(2),
        Column::new("status"),
        Column::right("conversations").optional(3),
        Column::right("memories").optional(4),
        Column::right("skipped").optional(1),
        Column::new("started"),
    ]);
    for import in imports {
        let (conversations, memories) =
            (added(import.conversations.as_ref()), added(import.memories.as_ref()));
        let skipped = [&import.conversations, &import.messages, &import.memories];
        let skipped: u64 = skipped.into_iter().flatten().map(|counts| unsigned(counts.skipped)).sum();
        table.row([
            Cell::painted(&ids.shorten(&import.id), Paint::Id),
            Cell::new(&receipt::export_name(import)),
            platform(import),
            status(import),
            Cell::new(&conversations),
            Cell::new(&memories),
            Cell::painted(&if skipped > 0 { text::number(skipped) } else { String::new() }, Paint::Warn),
            Cell::painted(&calendar.short(import.started_at.as_ref()), Paint::Dim),
        ]);
    }
    table
}

/// Returns the platform, marked if nobody signed the importer that read it.
fn platform(import: &Import) -> Cell {
    if import.plugin_unsigned {
        Cell::painted(&format!("{} (unsigned)", import.platform), Paint::Warn)
    } else {
        Cell::new(&import.platform)
    }
}

fn status(import: &Import) -> Cell {
    let (word, paint) = match import.status() {
        ImportStatus::Completed => ("completed", Paint::Good),
        ImportStatus::CompletedWithSkips => ("completed", Paint::Warn),
        ImportStatus::Unchanged => ("unchanged", Paint::Dim),
        ImportStatus::Unrecognized => ("not recognised", Paint::Bad),
        ImportStatus::Failed => ("failed", Paint::Bad),
        ImportStatus::Cancelled => ("cancelled", Paint::Warn),
        ImportStatus::Undone => ("undone", Paint::Warn),
        ImportStatus::Running => ("running", Paint::Warn),
        ImportStatus::Waiting => ("waiting", Paint::Warn),
        ImportStatus::Unspecified => ("unknown", Paint::Warn),
    };
    Cell::painted(word, paint)
}

/// Returns what an import added: `+12`, or `+12 ~1` if something was updated too.
fn added(counts: Option<&RecordCounts>) -> String {
    let Some(counts) = counts else { return String::new() };
    let new = (counts.new > 0).then(|| format!("+{}", text::number(unsigned(counts.new))));
    let updated = (counts.updated > 0).then(|| format!("~{}", text::number(unsigned(counts.updated))));
    new.into_iter().chain(updated).collect::<Vec<_>>().join(" ")
}

fn issue_lines(issues: &[ImportIssue], style: TerminalStyle) -> String {
    let mut table = Table::new([
        Column::new("issue"),
        Column::new("location").shrinks_to(24),
        Column::new("reason").shrinks_to(24),
    ]);
    for issue in issues {
        let what = if issue.kind == i32::from(IssueKind::Skip) {
            Cell::painted(&format!("skipped {}", labels::record_kind(issue.record)), Paint::Warn)
        } else {
            Cell::new("warning")
        };
        table.row([what, Cell::painted(&issue.locator, Paint::Dim), Cell::new(&issue.message)]);
    }
    table.render(style)
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::RecordKind;

    use super::*;
    use crate::cli::time;

    #[test]
    fn the_history_shows_what_each_import_added() {
        let counts =
            |new, updated, skipped| Some(RecordCounts { found: 50, new, updated, unchanged: 0, skipped });
        let imports = [
            Import {
                id: "3f2a91bc-0000-5000-8000-000000000001".to_owned(),
                source: "chatgpt-export.zip".to_owned(),
                platform: "chatgpt".to_owned(),
                status: ImportStatus::CompletedWithSkips.into(),
                conversations: counts(1_200, 1, 2),
                memories: counts(0, 0, 0),
                started_at: time::at("2026-03-12T11:20:00Z"),
                ..Import::default()
            },
            Import {
                id: "77e0bb21-0000-5000-8000-000000000001".to_owned(),
                source: "holiday.zip".to_owned(),
                status: ImportStatus::Unrecognized.into(),
                started_at: time::at("2026-03-11T11:20:00Z"),
                ..Import::default()
            },
        ];
        let expected = "\
ID        SOURCE              PLATFORM  STATUS          CONVERSATIONS  SKIPPED  STARTED
3f2a91bc  chatgpt-export.zip  chatgpt   completed           +1,200 ~1        2  40 min ago
77e0bb21  holiday.zip                   not recognised                          yesterday
";
        assert_eq!(table(&imports, &time::fixed()).render(TerminalStyle::plain(100)), expected);
    }

    #[test]
    fn issues_show_location_and_reason() {
        let issues = [
            ImportIssue {
                kind: IssueKind::Skip.into(),
                record: RecordKind::Conversation.into(),
                locator: "conversations.json[17]".to_owned(),
                message: "mapping is null".to_owned(),
            },
            ImportIssue {
                kind: IssueKind::Warning.into(),
                locator: "user.json".to_owned(),
                message: "has\nno id".to_owned(),
                ..ImportIssue::default()
            },
        ];
        let expected = "\
ISSUE                 LOCATION                REASON
skipped conversation  conversations.json[17]  mapping is null
warning               user.json               has no id
";
        assert_eq!(issue_lines(&issues, TerminalStyle::plain(80)), expected);
    }
}
