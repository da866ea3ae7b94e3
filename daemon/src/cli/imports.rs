//! `imports …`: the history of imports.

mod undo;

use satchel_proto::{
    signed::unsigned,
    v1::{
        CancelOperationRequest, GetImportRequest, Import, ImportIssue, ImportStatus, IssueKind,
        ListImportIssuesRequest, ListImportsRequest, RecordCounts,
    },
};
use undo::Way;

use super::{
    Context,
    args::{Imports, Paging},
    error::CliError,
    exit::Exit,
    import::receipt,
    json,
    link::Link,
    look::{Look, Paint},
    page::{self, Page},
    table::{Cell, Column, Table},
    text,
    time::Calendar,
    words,
};

/// Runs one of the commands.
///
/// # Errors
/// Returns the errors of the daemon, and fails for an id that matches no import or several.
pub(crate) async fn run(context: &mut Context, link: &Link, command: &Imports) -> Result<Exit, CliError> {
    match command {
        Imports::List(paging) => list(context, link, *paging).await,
        Imports::Show(id) => show(context, link, id.given()).await,
        Imports::Issues { id, paging } => issues(context, link, id.given(), *paging).await,
        Imports::Cancel(id) => cancel(context, link, id.given()).await,
        Imports::Undo(args) => undo::run(context, link, args, Way::Undo).await,
        Imports::Redo(args) => undo::run(context, link, args, Way::Redo).await,
    }
}

async fn list(context: &mut Context, link: &Link, paging: Paging) -> Result<Exit, CliError> {
    let listing = page::collect(paging.want(), async |size, token| fetch(link, size, token).await).await?;
    if context.out.json {
        context.out.json(&json::import::Imports::new(&listing.rows, Some(listing.left.more())))?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        context.out.note("nothing was imported yet; `satchel import PATH` brings an export in");
    } else {
        context.out.print(&table(&listing.rows, &context.calendar).render(context.out.look))?;
    }
    context.hint(listing.left);
    Ok(Exit::Done)
}

async fn fetch(link: &Link, page_size: i32, page_token: String) -> Result<Page<Import>, CliError> {
    let request = ListImportsRequest { page_size, page_token, statuses: Vec::new() };
    let answer = link.imports().list_imports(request).await?.into_inner();
    Ok(Page { rows: answer.imports, next: answer.next_page_token })
}

/// Returns the full id for `given`; without it, the id of the newest import.
async fn resolve(link: &Link, given: Option<&str>) -> Result<String, CliError> {
    let Some(given) = given else {
        let newest = fetch(link, 1, String::new()).await?.rows.into_iter().next();
        return newest.map(|import| import.id).ok_or(CliError::None { kind: "import" });
    };
    page::resolve("import", given, async |size, token| {
        let page = fetch(link, size, token).await?;
        Ok(Page { rows: page.rows.into_iter().map(|import| import.id).collect(), next: page.next })
    })
    .await
}

async fn show(context: &mut Context, link: &Link, given: Option<&str>) -> Result<Exit, CliError> {
    let id = resolve(link, given).await?;
    let import =
        link.imports().get_import(GetImportRequest { id }).await?.into_inner().receipt.unwrap_or_default();
    if context.out.json {
        context.out.json(&json::import::One { import: json::import::Import::new(&import) })?;
    } else {
        context.out.page(&receipt::render(&import, &context.calendar, context.out.look))?;
        if let Some(hint) = receipt::hint(&import) {
            context.out.note(&format!("  {hint}"));
        }
    }
    Ok(Exit::Done)
}

async fn issues(
    context: &mut Context,
    link: &Link,
    given: Option<&str>,
    paging: Paging,
) -> Result<Exit, CliError> {
    let id = resolve(link, given).await?;
    let listing = page::collect(paging.want(), async |page_size, page_token| {
        let request = ListImportIssuesRequest { id: id.clone(), page_size, page_token, kinds: Vec::new() };
        let answer = link.imports().list_import_issues(request).await?.into_inner();
        Ok(Page { rows: answer.issues, next: answer.next_page_token })
    })
    .await?;
    if context.out.json {
        context.out.json(&json::import::Issues::new(&id, &listing.rows, listing.left.more()))?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        context.out.note("nothing was skipped, and nothing was odd");
    } else {
        context.out.print(&issue_lines(&listing.rows, context.out.look))?;
    }
    context.hint(listing.left);
    Ok(Exit::Done)
}

async fn cancel(context: &mut Context, link: &Link, given: Option<&str>) -> Result<Exit, CliError> {
    let id = resolve(link, given).await?;
    let cancelled = link.operations().cancel_operation(CancelOperationRequest { id }).await?.into_inner();
    let operation = cancelled.operation.unwrap_or_default();
    if context.out.json {
        let state = words::operation_state(operation.state);
        context.out.json(&json::import::Cancelled { job_id: &operation.id, state })?;
        return Ok(Exit::Done);
    }
    let text = if operation.ended() {
        "it had ended already\n"
    } else {
        "it stops; what is stored until now is whole and stays\n"
    };
    context.out.print(text)?;
    Ok(Exit::Done)
}

fn table(imports: &[Import], calendar: &Calendar) -> Table {
    let ids = text::ShortIds::new(imports.iter().map(|import| import.id.as_str()));
    let mut table = Table::new([
        Column::new("id"),
        Column::new("source").shrinks_to(16),
        Column::new("platform").spare(2),
        Column::new("result"),
        Column::right("conversations").spare(3),
        Column::right("memories").spare(4),
        Column::right("skipped").spare(1),
        Column::new("when"),
    ]);
    for import in imports {
        let (conversations, memories) =
            (fresh(import.conversations.as_ref()), fresh(import.memories.as_ref()));
        let skipped = [&import.conversations, &import.messages, &import.memories];
        let skipped: u64 = skipped.into_iter().flatten().map(|counts| unsigned(counts.skipped)).sum();
        table.row([
            Cell::painted(&ids.of(&import.id), Paint::Id),
            Cell::new(&receipt::called(import)),
            Cell::new(&import.platform),
            status(import),
            Cell::new(&conversations),
            Cell::new(&memories),
            Cell::painted(&if skipped > 0 { text::number(skipped) } else { String::new() }, Paint::Warn),
            Cell::painted(&calendar.short(import.started_at.as_ref()), Paint::Dim),
        ]);
    }
    table
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
        ImportStatus::Waiting => ("waits", Paint::Warn),
        ImportStatus::Unspecified => ("unknown", Paint::Warn),
    };
    Cell::painted(word, paint)
}

/// Returns what an import added: `+12`, or `+12 ~1` if something was updated too.
fn fresh(counts: Option<&RecordCounts>) -> String {
    let Some(counts) = counts else { return String::new() };
    let new = (counts.new > 0).then(|| format!("+{}", text::number(unsigned(counts.new))));
    let updated = (counts.updated > 0).then(|| format!("~{}", text::number(unsigned(counts.updated))));
    new.into_iter().chain(updated).collect::<Vec<_>>().join(" ")
}

fn issue_lines(issues: &[ImportIssue], look: Look) -> String {
    let mut table = Table::new([
        Column::new("issue"),
        Column::new("where").shrinks_to(24),
        Column::new("why").shrinks_to(24),
    ]);
    for issue in issues {
        let what = if issue.kind == i32::from(IssueKind::Skip) {
            Cell::painted(&format!("skipped {}", words::record_kind(issue.record)), Paint::Warn)
        } else {
            Cell::new("warning")
        };
        table.row([what, Cell::painted(&issue.locator, Paint::Dim), Cell::new(&issue.message)]);
    }
    table.render(look)
}

#[cfg(test)]
mod tests {
    use satchel_proto::v1::RecordKind;

    use super::*;
    use crate::cli::time;

    #[test]
    fn the_history_shows_what_each_import_brought() {
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
ID        SOURCE              PLATFORM  RESULT          CONVERSATIONS  SKIPPED  WHEN
3f2a91bc  chatgpt-export.zip  chatgpt   completed           +1,200 ~1        2  40 min ago
77e0bb21  holiday.zip                   not recognised                          yesterday
";
        assert_eq!(table(&imports, &time::fixed()).render(Look::plain(100)), expected);
    }

    #[test]
    fn issues_say_where_and_why() {
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
ISSUE                 WHERE                   WHY
skipped conversation  conversations.json[17]  mapping is null
warning               user.json               has no id
";
        assert_eq!(issue_lines(&issues, Look::plain(80)), expected);
    }
}
