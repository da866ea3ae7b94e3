//! `memories review`: lists the memories that agents wrote, and approves or rejects them.

use satchel_proto::v1::{
    ListQuarantinedMemoriesRequest, MemoryView, QuarantineState, QuarantinedMemory, ReviewDecision,
    ReviewMemoriesRequest,
};
use uuid::Uuid;

use super::render;
use crate::cli::{
    Context,
    args::ReviewArgs,
    client::DaemonClient,
    confirm,
    error::CliError,
    exit::Exit,
    json, labels,
    pagination::{self, Listing, ResultPage},
    properties::Properties,
    secret,
    style::Paint,
    table::{Cell, Column, Table},
    text,
};

/// Maximum number of memories that the daemon reviews in one call.
const REVIEWED_AT_ONCE: usize = 100;

/// What was decided so far.
#[derive(Default)]
struct Decided {
    entries: Vec<QuarantinedMemory>,
    undo_tokens: Vec<String>,
}

pub(super) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    args: &ReviewArgs,
) -> Result<Exit, CliError> {
    let all = match (args.approve_all, args.reject_all) {
        (true, _) => Some(ReviewDecision::Approve),
        (_, true) => Some(ReviewDecision::Reject),
        _ => None,
    };
    if let Some(decision) = all {
        return review_all(context, client, args, decision).await;
    }
    if !args.approve.is_empty() || !args.reject.is_empty() {
        return review_given(context, client, args).await;
    }
    if args.list || args.rejected || context.out.json || !secret::is_interactive() {
        return list(context, client, args).await;
    }
    review_each(context, client, args).await
}

async fn fetch(
    client: &DaemonClient,
    args: &ReviewArgs,
    state: QuarantineState,
    view: MemoryView,
    max_rows: Option<usize>,
) -> Result<Listing<QuarantinedMemory>, CliError> {
    pagination::collect_rows(max_rows, async |page_size, page_token| {
        let request = ListQuarantinedMemoriesRequest {
            page_size,
            page_token,
            device: args.device.clone().unwrap_or_default(),
            state: state.into(),
            view: view.into(),
        };
        let answer = client.memories().list_quarantined_memories(request).await?.into_inner();
        Ok(ResultPage { rows: answer.memories, next: answer.next_page_token })
    })
    .await
}

async fn list(context: &mut Context, client: &DaemonClient, args: &ReviewArgs) -> Result<Exit, CliError> {
    let view = if context.out.json { MemoryView::PamJson } else { MemoryView::Basic };
    let state = if args.rejected { QuarantineState::Rejected } else { QuarantineState::Waiting };
    let listing = fetch(client, args, state, view, args.paging.max_rows()).await?;
    if context.out.json {
        let memories = listing.rows.iter().map(json::review::QuarantinedMemory::new).collect();
        context.out.json(&json::review::QuarantinedMemories { memories, more: listing.remaining.more() })?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        context.out.note(nothing(args));
    } else {
        let table = table(context, &listing.rows).render(context.out.style);
        context.out.print(&table)?;
    }
    context.note_remaining(listing.remaining);
    Ok(Exit::Done)
}

fn nothing(args: &ReviewArgs) -> &'static str {
    if args.rejected { "no memory was rejected" } else { "no memory waits for review" }
}

fn id(entry: &QuarantinedMemory) -> &str {
    entry.memory.as_ref().map_or("", |memory| memory.id.as_str())
}

fn content(entry: &QuarantinedMemory) -> &str {
    entry.memory.as_ref().map_or("", |memory| memory.content.as_str())
}

fn table(context: &Context, entries: &[QuarantinedMemory]) -> Table {
    let ids = text::ShortIds::new(entries.iter().map(id));
    let mut table = Table::new([
        Column::new("id"),
        Column::new("memory").shrinks_to(24),
        Column::new("device"),
        Column::new("written").optional(1),
    ]);
    for entry in entries {
        table.row([
            Cell::painted(&ids.shorten(id(entry)), Paint::Id),
            // Not the summary: it may say something else than the content that would be approved.
            Cell::new(content(entry)),
            Cell::new(&entry.device_name),
            Cell::painted(&context.calendar.short_or_unknown(entry.written_at.as_ref()), Paint::Dim),
        ]);
    }
    table
}

async fn review_given(
    context: &mut Context,
    client: &DaemonClient,
    args: &ReviewArgs,
) -> Result<Exit, CliError> {
    let mut known = fetch(client, args, QuarantineState::Waiting, MemoryView::Basic, None).await?.rows;
    known.extend(fetch(client, args, QuarantineState::Rejected, MemoryView::Basic, None).await?.rows);
    let known: Vec<String> = known.iter().map(|entry| id(entry).to_owned()).collect();
    let approve = resolve(&args.approve, &known)?;
    let reject = resolve(&args.reject, &known)?;
    if let Some(both) = approve.iter().find(|id| reject.contains(*id)) {
        let problem = format!("{} cannot be both approved and rejected", text::short_id(both));
        return Err(CliError::Usage(problem));
    }
    let mut decided = Decided::default();
    settle(client, args, &approve, ReviewDecision::Approve, &mut decided).await?;
    settle(client, args, &reject, ReviewDecision::Reject, &mut decided).await?;
    print(context, &decided)
}

fn resolve(given: &[String], known: &[String]) -> Result<Vec<String>, CliError> {
    let find = |given: &String| {
        // A memory that was approved before is not in the lists; the daemon says so.
        if let Ok(full) = Uuid::try_parse(given) {
            return Ok(full.to_string());
        }
        let fitting = known.iter().filter(|id| pagination::starts_with(id, given)).cloned().collect();
        pagination::resolve_prefix("memory to review", given, fitting)
    };
    given.iter().map(find).collect()
}

async fn review_all(
    context: &mut Context,
    client: &DaemonClient,
    args: &ReviewArgs,
    decision: ReviewDecision,
) -> Result<Exit, CliError> {
    let waiting = fetch(client, args, QuarantineState::Waiting, MemoryView::Basic, None).await?.rows;
    if !waiting.is_empty() && !args.yes {
        if context.out.json || !secret::is_interactive() {
            let problem = "add --yes to approve or reject all memories without being asked";
            return Err(CliError::Usage(problem.to_owned()));
        }
        let list = table(context, &waiting).render(context.out.style);
        context.out.print_paged(&list)?;
        let verb = if decision == ReviewDecision::Approve { "approve" } else { "reject" };
        let count = text::count(waiting.len() as u64, "memory", "memories");
        if !confirm::ask(format!("{verb} {count}? [y/N] ")).await? {
            return Err(CliError::Declined("nothing was changed".to_owned()));
        }
    }
    let ids: Vec<String> = waiting.iter().map(|entry| id(entry).to_owned()).collect();
    let mut decided = Decided::default();
    settle(client, args, &ids, decision, &mut decided).await?;
    if ids.is_empty() && !context.out.json {
        context.out.note(nothing(args));
    }
    print(context, &decided)
}

/// Asks about one memory after the other, the oldest first.
async fn review_each(
    context: &mut Context,
    client: &DaemonClient,
    args: &ReviewArgs,
) -> Result<Exit, CliError> {
    let mut waiting = fetch(client, args, QuarantineState::Waiting, MemoryView::Full, None).await?.rows;
    if waiting.is_empty() {
        context.out.note(nothing(args));
        return Ok(Exit::Done);
    }
    waiting.reverse();
    let total = waiting.len();
    let mut decided = Decided::default();
    for (number, entry) in waiting.iter().enumerate() {
        let shown = details(context, entry);
        context.out.print(&shown)?;
        let question = format!("{} of {total}: approve, reject, skip or quit? [a/r/s/q] ", number + 1);
        let Some(decision) = ask(&question).await? else { break };
        let ids = [id(entry).to_owned()];
        match decision {
            Answer::Decided(decision) => settle(client, args, &ids, decision, &mut decided).await?,
            Answer::Skip => {}
        }
    }
    print(context, &decided)
}

enum Answer {
    Decided(ReviewDecision),
    Skip,
}

/// Asks until the answer is understood; `None` ends the review, as does the end of the input.
async fn ask(question: &str) -> Result<Option<Answer>, CliError> {
    loop {
        let line = confirm::ask_for_line(question.to_owned()).await?;
        match line.trim().to_lowercase().as_str() {
            "a" | "approve" => return Ok(Some(Answer::Decided(ReviewDecision::Approve))),
            "r" | "reject" => return Ok(Some(Answer::Decided(ReviewDecision::Reject))),
            "s" | "skip" => return Ok(Some(Answer::Skip)),
            "q" | "quit" => return Ok(None),
            _ if line.is_empty() => return Ok(None),
            _ => {}
        }
    }
}

fn details(context: &Context, entry: &QuarantinedMemory) -> String {
    let mut properties = Properties::new();
    properties.add("written by", &entry.device_name);
    properties.add("written", &context.calendar.minute(entry.written_at.as_ref()));
    properties.add("reason", &entry.reason);
    let memory = entry.memory.clone().unwrap_or_default();
    let style = context.out.style;
    format!("{}{}\n", render::details(&memory, "", &context.calendar, style), properties.render(style))
}

async fn settle(
    client: &DaemonClient,
    args: &ReviewArgs,
    ids: &[String],
    decision: ReviewDecision,
    decided: &mut Decided,
) -> Result<(), CliError> {
    for ids in ids.chunks(REVIEWED_AT_ONCE) {
        let request = ReviewMemoriesRequest {
            request_id: Uuid::new_v4().to_string(),
            ids: ids.to_vec(),
            decision: decision.into(),
            reason: args.reason.clone().unwrap_or_default(),
        };
        let answer = client.memories().review_memories(request).await?.into_inner();
        decided.entries.extend(answer.memories);
        decided.undo_tokens.extend(Some(answer.undo_token).filter(|token| !token.is_empty()));
    }
    Ok(())
}

fn print(context: &mut Context, decided: &Decided) -> Result<Exit, CliError> {
    if context.out.json {
        let reviewed = decided.entries.iter().map(json::review::ReviewedMemory::new).collect();
        context.out.json(&json::review::Review { reviewed, undo_tokens: &decided.undo_tokens })?;
        return Ok(Exit::Done);
    }
    if decided.entries.is_empty() {
        return Ok(Exit::Done);
    }
    let ids = text::ShortIds::new(decided.entries.iter().map(id));
    let mut table =
        Table::new([Column::new("id"), Column::new("decision"), Column::new("memory").shrinks_to(24)]);
    for entry in &decided.entries {
        let state = labels::quarantine_state(entry.state);
        let state = if entry.existed { format!("{state}, exists already") } else { state };
        table.row([
            Cell::painted(&ids.shorten(id(entry)), Paint::Id),
            Cell::new(&state),
            Cell::new(content(entry)),
        ]);
    }
    context.out.print(&table.render(context.out.style))?;
    for token in &decided.undo_tokens {
        context.out.note(&format!("`satchel memories undo --change {token}` undoes the approval"));
    }
    Ok(Exit::Done)
}
