//! `memories add`, `edit`, `status` and `undo`.

use prost_types::FieldMask;
use satchel_proto::{
    integers::{signed, unsigned},
    v1::{
        BulkSetStatusRequest, CreateMemoryRequest, GetMemoryRequest, Memory, MemoryStatus, MemoryVersionRef,
        MemoryView, RestoreMemoryVersionRequest, SetMemoryStatusRequest, SupersedeMemoryRequest,
        UpdateMemoryRequest, restore_memory_version_request::Target, supersede_memory_request::Replacement,
    },
};

use super::{fields, filter, resolve};
use crate::cli::{
    Context,
    args::{AddArgs, EditArgs, MemoryFilterArgs, StatusArgs, UndoEditArgs},
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json, labels, text,
};

/// The result of a change.
struct MemoryChange {
    id: String,
    undo_token: String,
    existed: bool,
    revision: u64,
}

pub(super) async fn add(
    context: &mut Context,
    client: &DaemonClient,
    args: &AddArgs,
) -> Result<Exit, CliError> {
    let request = CreateMemoryRequest {
        request_id: context.request_id.clone(),
        memory: Some(fields::memory_from_args(args, &context.calendar)?),
        reason: args.fields.reason.clone().unwrap_or_default(),
    };
    let answer = client.memories().create_memory(request).await?.into_inner();
    let changed = MemoryChange {
        id: answer.memory.unwrap_or_default().id,
        undo_token: answer.undo_token,
        existed: answer.existed,
        revision: unsigned(answer.header.unwrap_or_default().revision),
    };
    print_change(context, client, changed, "added").await
}

pub(super) async fn edit(
    context: &mut Context,
    client: &DaemonClient,
    args: &EditArgs,
) -> Result<Exit, CliError> {
    let known = fetch_memory(client, &resolve(client, &args.id.id).await?, MemoryView::Full).await?;
    let (memory, paths) = fields::changes_from_args(args, &known, &context.calendar)?;
    let request = UpdateMemoryRequest {
        request_id: context.request_id.clone(),
        memory: Some(memory),
        update_mask: Some(FieldMask { paths }),
        etag: known.etag,
        reason: args.fields.reason.clone().unwrap_or_default(),
    };
    let answer = client.memories().update_memory(request).await?.into_inner();
    let revision = answer.header.unwrap_or_default().revision;
    let changed = MemoryChange {
        id: known.id,
        undo_token: answer.undo_token,
        existed: false,
        revision: unsigned(revision),
    };
    print_change(context, client, changed, "changed").await
}

pub(super) async fn status(
    context: &mut Context,
    client: &DaemonClient,
    args: &StatusArgs,
) -> Result<Exit, CliError> {
    match args.words.as_slice() {
        [id, word] => one_status(context, client, args, id, parse_status(word)?).await,
        [word] => all_status(context, client, args, parse_status(word)?).await,
        _ => Err(CliError::Usage("specify a memory and its new status".to_owned())),
    }
}

async fn one_status(
    context: &mut Context,
    client: &DaemonClient,
    args: &StatusArgs,
    given: &str,
    status: MemoryStatus,
) -> Result<Exit, CliError> {
    if args.select != MemoryFilterArgs::default() || args.dry_run || args.expect.is_some() {
        let problem = "filters, --dry-run and --expect apply to many memories; omit ID";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let known = fetch_memory(client, &resolve(client, given).await?, MemoryView::Basic).await?;
    let (request_id, reason) = (context.request_id.clone(), args.reason.clone().unwrap_or_default());
    let (undo_token, header) = match (&args.by, status == MemoryStatus::Superseded) {
        (Some(by), true) => {
            let by = resolve(client, by).await?;
            let request = SupersedeMemoryRequest {
                request_id,
                old_id: known.id.clone(),
                etag: known.etag,
                reason,
                replacement: Some(Replacement::ExistingId(by)),
            };
            let answer = client.memories().supersede_memory(request).await?.into_inner();
            (answer.undo_token, answer.header)
        }
        (None, true) => {
            let problem =
                "superseded requires --by ID, the memory that replaces it; `satchel memories add` adds one";
            return Err(CliError::Usage(problem.to_owned()));
        }
        (Some(_), false) => return Err(CliError::Usage("--by can only be used with superseded".to_owned())),
        (None, false) => {
            let (id, etag) = (known.id.clone(), known.etag);
            let request = SetMemoryStatusRequest { request_id, id, status: status.into(), etag, reason };
            let answer = client.memories().set_memory_status(request).await?.into_inner();
            (answer.undo_token, answer.header)
        }
    };
    let revision = header.unwrap_or_default().revision;
    print_change(
        context,
        client,
        MemoryChange { id: known.id, undo_token, existed: false, revision: unsigned(revision) },
        "changed",
    )
    .await
}

async fn all_status(
    context: &mut Context,
    client: &DaemonClient,
    args: &StatusArgs,
    status: MemoryStatus,
) -> Result<Exit, CliError> {
    if args.select == MemoryFilterArgs::default() {
        let problem = "specify a memory, or select many with filters such as --type, --tag or --until";
        return Err(CliError::Usage(problem.to_owned()));
    }
    if args.by.is_some() {
        return Err(CliError::Usage("--by can only be used with one memory".to_owned()));
    }
    if !args.dry_run && args.expect.is_none() {
        let problem = "run the command with --dry-run first, then pass the number of matches with --expect";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let request = BulkSetStatusRequest {
        request_id: context.request_id.clone(),
        filter: Some(filter(context, client, &args.select).await?),
        status: status.into(),
        reason: args.reason.clone().unwrap_or_default(),
        dry_run: args.dry_run,
        expected_count: signed(args.expect),
    };
    let answer = client.memories().bulk_set_status(request).await?.into_inner();
    if context.out.json {
        context.out.json(&json::change::Bulk {
            matched: unsigned(answer.matched),
            ids: &answer.sample_ids,
            dry_run: args.dry_run,
            undo_token: json::non_empty(&answer.undo_token),
            revision: unsigned(answer.header.unwrap_or_default().revision),
        })?;
        return Ok(Exit::Done);
    }
    let memories = text::count(unsigned(answer.matched), "memory", "memories");
    let word = labels::memory_status(status.into());
    if args.dry_run {
        context.out.print(&format!("{memories} would be {word}\n"))?;
        context.out.note(&format!("run the same command with --expect {} to change them", answer.matched));
    } else {
        context.out.print(&format!("{memories} {word}\n"))?;
        note_undo(context, &answer.undo_token);
    }
    Ok(Exit::Done)
}

pub(super) async fn undo(
    context: &mut Context,
    client: &DaemonClient,
    args: &UndoEditArgs,
) -> Result<Exit, CliError> {
    let target = match (&args.id, args.to, &args.change) {
        (_, _, Some(token)) => Target::UndoToken(token.clone()),
        (Some(given), Some(version), None) => Target::MemoryVersion(MemoryVersionRef {
            id: resolve(client, given).await?,
            version: signed(version),
        }),
        (Some(given), None, None) => Target::LastChangeOf(resolve(client, given).await?),
        (None, _, None) => return Err(CliError::Usage("specify a memory or a change".to_owned())),
    };
    let request = RestoreMemoryVersionRequest {
        request_id: context.request_id.clone(),
        target: Some(target),
        reason: args.reason.clone().unwrap_or_default(),
    };
    let answer = client.memories().restore_memory_version(request).await?.into_inner();
    let revision = answer.header.unwrap_or_default().revision;
    if context.out.json {
        context.out.json(&json::change::Undone {
            matched: unsigned(answer.matched),
            ids: answer.memories.iter().map(|memory| memory.id.as_str()).collect(),
            undo_token: json::non_empty(&answer.undo_token),
            revision: unsigned(revision),
        })?;
        return Ok(Exit::Done);
    }
    if answer.undo_token.is_empty() {
        context.out.print("nothing to undo: the memory already has this content\n")?;
        return Ok(Exit::Done);
    }
    for memory in &answer.memories {
        context.out.print(&line(memory))?;
    }
    let rest = answer.matched.saturating_sub(signed(answer.memories.len() as u64));
    if rest > 0 {
        context
            .out
            .print(&format!("… and {}\n", text::count(unsigned(rest), "more memory", "more memories")))?;
    }
    note_undo(context, &answer.undo_token);
    Ok(Exit::Done)
}

/// Prints the memory in its current state, and how to undo the change.
async fn print_change(
    context: &mut Context,
    client: &DaemonClient,
    changed: MemoryChange,
    verb: &str,
) -> Result<Exit, CliError> {
    let memory = fetch_memory(client, &changed.id, MemoryView::PamJson).await?;
    if context.out.json {
        context.out.json(&json::change::EditedMemory {
            memory: json::memory::Memory::new(&memory),
            version: unsigned(memory.version),
            existed: changed.existed,
            undo_token: json::non_empty(&changed.undo_token),
            revision: changed.revision,
        })?;
        return Ok(Exit::Done);
    }
    context.out.print(&line(&memory))?;
    if changed.existed {
        context.out.note("nothing was added: this memory already exists");
    } else if changed.undo_token.is_empty() {
        context.out.note("nothing was changed: the memory already has these values");
    } else {
        context.out.note(verb);
        note_undo(context, &changed.undo_token);
    }
    Ok(Exit::Done)
}

/// Returns one line for a memory: id, status and content.
fn line(memory: &Memory) -> String {
    let state =
        if memory.withdrawn { "no longer shown".to_owned() } else { labels::memory_status(memory.status) };
    let content = text::one_line(memory.summary.as_deref().unwrap_or(&memory.content));
    format!("{}  {state}  {}\n", text::short_id(&memory.id), text::fit(&content, CONTENT_COLUMNS))
}

/// Columns of the content in that line.
const CONTENT_COLUMNS: usize = 100;

fn note_undo(context: &mut Context, undo_token: &str) {
    context.out.note(&format!("`satchel memories undo --change {undo_token}` undoes this"));
}

async fn fetch_memory(client: &DaemonClient, id: &str, view: MemoryView) -> Result<Memory, CliError> {
    let request = GetMemoryRequest { id: id.to_owned(), view: view.into(), as_of_revision: None };
    Ok(client.memories().get_memory(request).await?.into_inner().memory.unwrap_or_default())
}

fn parse_status(word: &str) -> Result<MemoryStatus, CliError> {
    match word.to_lowercase().as_str() {
        "superseded" => Ok(MemoryStatus::Superseded),
        "deprecated" => Ok(MemoryStatus::Deprecated),
        "retracted" => Ok(MemoryStatus::Retracted),
        "archived" => Ok(MemoryStatus::Archived),
        "active" => Err(CliError::Usage(
            "a memory cannot become active again; `satchel memories undo` undoes a change".to_owned(),
        )),
        _ => Err(CliError::Usage(format!(
            "{word:?} is not a status; use superseded, deprecated, retracted or archived"
        ))),
    }
}
