//! `memories …`

mod change;
mod fields;
mod links;
pub(super) mod render;
mod review;

use satchel_proto::v1::{
    GetMemoryRequest, ListMemoriesRequest, ListMemoryIdsRequest, ListMemoryVersionsRequest, MemoryFilter,
    MemoryOrder, MemoryView, StoreHeader,
};

use super::{
    Context,
    args::{Memories, MemoryFilterArgs, MemoryReadArgs, Paging},
    client::DaemonClient,
    conversations, empty_list,
    error::CliError,
    exit::Exit,
    exports, json,
    pagination::{self, ResultPage},
};

/// Runs one of the commands.
///
/// # Errors
/// Returns the errors of the daemon, and fails for an id that matches no memory or several.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    command: &Memories,
) -> Result<Exit, CliError> {
    match command {
        Memories::List { select, read, paging } => list(context, client, select, *read, *paging).await,
        Memories::Show { id, revision } => show(context, client, &id.id, *revision).await,
        Memories::History { id, paging } => history(context, client, &id.id, *paging).await,
        Memories::Add(args) => change::add(context, client, args).await,
        Memories::Edit(args) => change::edit(context, client, args).await,
        Memories::Status(args) => change::status(context, client, args).await,
        Memories::Undo(args) => change::undo(context, client, args).await,
        Memories::Related(args) => links::related(context, client, args).await,
        Memories::Duplicates(args) => links::duplicates(context, client, args).await,
        Memories::Contradictions(args) => links::contradictions(context, client, args).await,
        Memories::Review(args) => review::run(context, client, args).await,
        // This command works on the files directly.
        Memories::Purge(_) => Err(CliError::Usage("this command does not use a daemon".to_owned())),
    }
}

async fn list(
    context: &mut Context,
    client: &DaemonClient,
    select: &MemoryFilterArgs,
    read: MemoryReadArgs,
    paging: Paging,
) -> Result<Exit, CliError> {
    let MemoryReadArgs { include_expired, revision: as_of_revision } = read;
    let filter = MemoryFilter { include_expired, ..filter(context, client, select).await? };
    // JSON output has the whole PAM object, which only this view contains.
    let view = if context.out.json { MemoryView::PamJson } else { MemoryView::Basic };
    let mut header = StoreHeader::default();
    let listing = pagination::collect_rows(paging.max_rows(), async |page_size, page_token| {
        let filter = Some(filter.clone());
        let order = as_of_revision.map_or(MemoryOrder::UpdatedDesc, |_| MemoryOrder::IdAsc).into();
        let view = view.into();
        let request = ListMemoriesRequest { page_size, page_token, filter, order, view, as_of_revision };
        let answer = client.memories().list_memories(request).await?.into_inner();
        header = answer.header.unwrap_or_default();
        Ok(ResultPage { rows: answer.memories, next: answer.next_page_token })
    })
    .await?;
    if context.out.json {
        context.out.json(&json::memory::Memories::new(&listing.rows, listing.remaining.more(), &header))?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        let why = empty_list::memories(client, select).await?;
        context.out.note(&why);
    } else {
        let states = filter.statuses.len() > 1;
        context
            .out
            .print(&render::table(&listing.rows, states, &context.calendar).render(context.out.style))?;
    }
    context.note_remaining(listing.remaining);
    Ok(Exit::Done)
}

async fn filter(
    context: &Context,
    client: &DaemonClient,
    select: &MemoryFilterArgs,
) -> Result<MemoryFilter, CliError> {
    let conversation_id = match &select.conversation {
        Some(given) => conversations::resolve_or_newest(client, exports::unless_last(given)).await?,
        None => String::new(),
    };
    Ok(MemoryFilter {
        types: select.types.iter().map(|word| word.to_wire().into()).collect(),
        statuses: select.statuses.iter().flat_map(|word| word.to_wire()).map(Into::into).collect(),
        platforms: select.platforms.clone(),
        tags_all: select.tags.clone(),
        accounts: select.accounts.clone(),
        conversation_id,
        updated: context.calendar.range(select.since.as_deref(), select.until.as_deref())?,
        valid_at: valid_at(context, select)?,
        expired_at: select.expired.then(|| context.calendar.now_to_wire()),
        created: context
            .calendar
            .created(select.created_since.as_deref(), select.created_until.as_deref())?,
        ..MemoryFilter::default()
    })
}

fn valid_at(
    context: &Context,
    select: &MemoryFilterArgs,
) -> Result<Option<prost_types::Timestamp>, CliError> {
    match &select.valid_at {
        Some(time) => context.calendar.parse_instant("--valid-at", time).map(Some),
        None => Ok(select.valid.then(|| context.calendar.now_to_wire())),
    }
}

async fn show(
    context: &mut Context,
    client: &DaemonClient,
    given: &str,
    as_of_revision: Option<i64>,
) -> Result<Exit, CliError> {
    let id = resolve(client, given).await?;
    let request = GetMemoryRequest { id, view: MemoryView::PamJson.into(), as_of_revision };
    let answer = client.memories().get_memory(request).await?.into_inner();
    let (memory, untrusted) = (answer.memory.unwrap_or_default(), answer.stranger);
    if context.out.json {
        context.out.json(&json::memory::MemoryDocument::new(&memory, &untrusted))?;
    } else {
        context.out.print_paged(&render::details(
            &memory,
            &untrusted,
            &context.calendar,
            context.out.style,
        ))?;
        if let Some(hint) = render::hint(&memory) {
            context.out.note(&hint);
        }
    }
    Ok(Exit::Done)
}

async fn history(
    context: &mut Context,
    client: &DaemonClient,
    given: &str,
    paging: Paging,
) -> Result<Exit, CliError> {
    let id = resolve(client, given).await?;
    let view = if context.out.json { MemoryView::PamJson } else { MemoryView::Full };
    let listing = pagination::collect_rows(paging.max_rows(), async |page_size, page_token| {
        let request = ListMemoryVersionsRequest { id: id.clone(), page_size, page_token, view: view.into() };
        let answer = client.memories().list_memory_versions(request).await?.into_inner();
        Ok(ResultPage { rows: answer.versions, next: answer.next_page_token })
    })
    .await?;
    if context.out.json {
        let versions = listing.rows.iter().map(json::memory::Version::new).collect();
        context.out.json(&json::memory::History { id: &id, versions, more: listing.remaining.more() })?;
        return Ok(Exit::Done);
    }
    context.out.print_paged(&render::history(&listing.rows, &context.calendar, context.out.style))?;
    context.note_remaining(listing.remaining);
    Ok(Exit::Done)
}

/// Returns the full id for `given`, whatever the status of the memory, including the ids of memories that are no
/// longer listed.
pub(super) async fn resolve(client: &DaemonClient, given: &str) -> Result<String, CliError> {
    pagination::resolve_id("memory", given, async |page_size, page_token| {
        let request = ListMemoryIdsRequest { prefix: given.to_owned(), page_size, page_token };
        let answer = client.memories().list_memory_ids(request).await?.into_inner();
        Ok(ResultPage {
            rows: answer.ids.into_iter().map(|id| id.id).collect(),
            next: answer.next_page_token,
        })
    })
    .await
}
