//! `memories add`, `edit`, `status` and `undo`.

use prost_types::FieldMask;
use satchel_proto::{
    signed::{signed, unsigned},
    v1::{
        BulkSetStatusRequest, CreateMemoryRequest, GetMemoryRequest, Memory, MemoryStatus, MemoryVersionRef,
        MemoryView, RestoreMemoryVersionRequest, SetMemoryStatusRequest, SupersedeMemoryRequest,
        UpdateMemoryRequest, restore_memory_version_request::Target, supersede_memory_request::Replacement,
    },
};

use super::{fields, filter, resolve};
use crate::cli::{
    Context,
    args::{AddArgs, EditArgs, MemorySelect, StatusArgs, TakeBackArgs},
    error::CliError,
    exit::Exit,
    json,
    link::Link,
    text, words,
};

/// The result of a change.
struct Changed {
    id: String,
    undo_token: String,
    existed: bool,
    revision: u64,
}

pub(super) async fn add(context: &mut Context, link: &Link, args: &AddArgs) -> Result<Exit, CliError> {
    let request = CreateMemoryRequest {
        request_id: context.request_id.clone(),
        memory: Some(fields::new(args, &context.calendar)?),
        reason: args.fields.reason.clone().unwrap_or_default(),
    };
    let answer = link.memories().create_memory(request).await?.into_inner();
    let changed = Changed {
        id: answer.memory.unwrap_or_default().id,
        undo_token: answer.undo_token,
        existed: answer.existed,
        revision: unsigned(answer.header.unwrap_or_default().revision),
    };
    told(context, link, changed, "added").await
}

pub(super) async fn edit(context: &mut Context, link: &Link, args: &EditArgs) -> Result<Exit, CliError> {
    let known = look(link, &resolve(link, &args.id.id).await?, MemoryView::Full).await?;
    let (memory, paths) = fields::changed(args, &known, &context.calendar)?;
    let request = UpdateMemoryRequest {
        request_id: context.request_id.clone(),
        memory: Some(memory),
        update_mask: Some(FieldMask { paths }),
        etag: known.etag,
        reason: args.fields.reason.clone().unwrap_or_default(),
    };
    let answer = link.memories().update_memory(request).await?.into_inner();
    let revision = answer.header.unwrap_or_default().revision;
    let changed =
        Changed { id: known.id, undo_token: answer.undo_token, existed: false, revision: unsigned(revision) };
    told(context, link, changed, "changed").await
}

pub(super) async fn status(context: &mut Context, link: &Link, args: &StatusArgs) -> Result<Exit, CliError> {
    match args.words.as_slice() {
        [id, word] => one_status(context, link, args, id, status_of(word)?).await,
        [word] => all_status(context, link, args, status_of(word)?).await,
        _ => Err(CliError::Usage("name a memory and its new status".to_owned())),
    }
}

async fn one_status(
    context: &mut Context,
    link: &Link,
    args: &StatusArgs,
    given: &str,
    status: MemoryStatus,
) -> Result<Exit, CliError> {
    if args.select != MemorySelect::default() || args.dry_run || args.expect.is_some() {
        let problem = "filters, --dry-run and --expect are for many memories; leave ID out";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let known = look(link, &resolve(link, given).await?, MemoryView::Basic).await?;
    let (request_id, reason) = (context.request_id.clone(), args.reason.clone().unwrap_or_default());
    let (undo_token, header) = match (&args.by, status == MemoryStatus::Superseded) {
        (Some(by), true) => {
            let by = resolve(link, by).await?;
            let request = SupersedeMemoryRequest {
                request_id,
                old_id: known.id.clone(),
                etag: known.etag,
                reason,
                replacement: Some(Replacement::ExistingId(by)),
            };
            let answer = link.memories().supersede_memory(request).await?.into_inner();
            (answer.undo_token, answer.header)
        }
        (None, true) => {
            let problem =
                "superseded needs what took the place: --by ID; `satchel memories add` adds it first";
            return Err(CliError::Usage(problem.to_owned()));
        }
        (Some(_), false) => return Err(CliError::Usage("--by goes with superseded only".to_owned())),
        (None, false) => {
            let (id, etag) = (known.id.clone(), known.etag);
            let request = SetMemoryStatusRequest { request_id, id, status: status.into(), etag, reason };
            let answer = link.memories().set_memory_status(request).await?.into_inner();
            (answer.undo_token, answer.header)
        }
    };
    let revision = header.unwrap_or_default().revision;
    told(
        context,
        link,
        Changed { id: known.id, undo_token, existed: false, revision: unsigned(revision) },
        "changed",
    )
    .await
}

async fn all_status(
    context: &mut Context,
    link: &Link,
    args: &StatusArgs,
    status: MemoryStatus,
) -> Result<Exit, CliError> {
    if args.select == MemorySelect::default() {
        let problem = "name a memory, or choose many by filters, such as --type, --tag or --until";
        return Err(CliError::Usage(problem.to_owned()));
    }
    if args.by.is_some() {
        return Err(CliError::Usage("--by goes with one memory only".to_owned()));
    }
    if !args.dry_run && args.expect.is_none() {
        let problem = "--dry-run says how many fit; then say that number with --expect";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let request = BulkSetStatusRequest {
        request_id: context.request_id.clone(),
        filter: Some(filter(context, link, &args.select).await?),
        status: status.into(),
        reason: args.reason.clone().unwrap_or_default(),
        dry_run: args.dry_run,
        expected_count: signed(args.expect),
    };
    let answer = link.memories().bulk_set_status(request).await?.into_inner();
    if context.out.json {
        context.out.json(&json::change::Bulk {
            matched: unsigned(answer.matched),
            ids: &answer.sample_ids,
            dry_run: args.dry_run,
            undo_token: json::filled(&answer.undo_token),
            revision: unsigned(answer.header.unwrap_or_default().revision),
        })?;
        return Ok(Exit::Done);
    }
    let memories = text::count(unsigned(answer.matched), "memory", "memories");
    let word = words::memory_status(status.into());
    if args.dry_run {
        context.out.print(&format!("{memories} would be {word}\n"))?;
        context.out.note(&format!("the same command with --expect {} does it", answer.matched));
    } else {
        context.out.print(&format!("{memories} {word}\n"))?;
        hint(context, &answer.undo_token);
    }
    Ok(Exit::Done)
}

pub(super) async fn undo(context: &mut Context, link: &Link, args: &TakeBackArgs) -> Result<Exit, CliError> {
    let target = match (&args.id, args.to, &args.change) {
        (_, _, Some(token)) => Target::UndoToken(token.clone()),
        (Some(given), Some(version), None) => Target::MemoryVersion(MemoryVersionRef {
            id: resolve(link, given).await?,
            version: signed(version),
        }),
        (Some(given), None, None) => Target::LastChangeOf(resolve(link, given).await?),
        (None, _, None) => return Err(CliError::Usage("name a memory, or a change".to_owned())),
    };
    let request = RestoreMemoryVersionRequest {
        request_id: context.request_id.clone(),
        target: Some(target),
        reason: args.reason.clone().unwrap_or_default(),
    };
    let answer = link.memories().restore_memory_version(request).await?.into_inner();
    let revision = answer.header.unwrap_or_default().revision;
    if context.out.json {
        context.out.json(&json::change::Undone {
            matched: unsigned(answer.matched),
            ids: answer.memories.iter().map(|memory| memory.id.as_str()).collect(),
            undo_token: json::filled(&answer.undo_token),
            revision: unsigned(revision),
        })?;
        return Ok(Exit::Done);
    }
    if answer.undo_token.is_empty() {
        context.out.print("nothing to change: it says so already\n")?;
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
    hint(context, &answer.undo_token);
    Ok(Exit::Done)
}

/// Prints the memory in its current state, and how to undo the change.
async fn told(context: &mut Context, link: &Link, changed: Changed, verb: &str) -> Result<Exit, CliError> {
    let memory = look(link, &changed.id, MemoryView::PamJson).await?;
    if context.out.json {
        context.out.json(&json::change::One {
            memory: json::memory::Memory::new(&memory),
            version: unsigned(memory.version),
            existed: changed.existed,
            undo_token: json::filled(&changed.undo_token),
            revision: changed.revision,
        })?;
        return Ok(Exit::Done);
    }
    context.out.print(&line(&memory))?;
    if changed.existed {
        context.out.note("nothing was added: a memory says this already");
    } else if changed.undo_token.is_empty() {
        context.out.note("nothing was changed: it says so already");
    } else {
        context.out.note(verb);
        hint(context, &changed.undo_token);
    }
    Ok(Exit::Done)
}

/// Returns one line for a memory: id, status and content.
fn line(memory: &Memory) -> String {
    let state =
        if memory.withdrawn { "no longer shown".to_owned() } else { words::memory_status(memory.status) };
    let says = text::one_line(memory.summary.as_deref().unwrap_or(&memory.content));
    format!("{}  {state}  {}\n", text::short_id(&memory.id), text::fit(&says, SAID))
}

/// Columns of the content in that line.
const SAID: usize = 100;

fn hint(context: &mut Context, undo_token: &str) {
    context.out.note(&format!("`satchel memories undo --change {undo_token}` takes it back"));
}

async fn look(link: &Link, id: &str, view: MemoryView) -> Result<Memory, CliError> {
    let request = GetMemoryRequest { id: id.to_owned(), view: view.into() };
    Ok(link.memories().get_memory(request).await?.into_inner().memory.unwrap_or_default())
}

fn status_of(word: &str) -> Result<MemoryStatus, CliError> {
    match word.to_lowercase().as_str() {
        "superseded" => Ok(MemoryStatus::Superseded),
        "deprecated" => Ok(MemoryStatus::Deprecated),
        "retracted" => Ok(MemoryStatus::Retracted),
        "archived" => Ok(MemoryStatus::Archived),
        "active" => Err(CliError::Usage(
            "no status becomes active again; `satchel memories undo` takes a change back".to_owned(),
        )),
        _ => Err(CliError::Usage(format!(
            "{word:?} is not a status; there are superseded, deprecated, retracted and archived"
        ))),
    }
}
