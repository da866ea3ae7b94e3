//! `memories …`

mod change;
mod fields;
mod render;

use satchel_proto::v1::{
    GetMemoryRequest, ListMemoriesRequest, ListMemoryIdsRequest, ListMemoryVersionsRequest, MemoryFilter,
    MemoryOrder, MemoryView, StoreHeader,
};

use super::{
    Context,
    args::{Memories, MemorySelect, Paging},
    conversations,
    error::CliError,
    exit::Exit,
    exports, json,
    link::Link,
    nothing,
    page::{self, Page},
};

/// Runs one of the commands.
///
/// # Errors
/// Returns the errors of the daemon, and fails for an id that matches no memory or several.
pub(crate) async fn run(context: &mut Context, link: &Link, command: &Memories) -> Result<Exit, CliError> {
    match command {
        Memories::List { select, paging } => list(context, link, select, *paging).await,
        Memories::Show(id) => show(context, link, &id.id).await,
        Memories::History { id, paging } => history(context, link, &id.id, *paging).await,
        Memories::Add(args) => change::add(context, link, args).await,
        Memories::Edit(args) => change::edit(context, link, args).await,
        Memories::Status(args) => change::status(context, link, args).await,
        Memories::Undo(args) => change::undo(context, link, args).await,
        // This command works on the files directly.
        Memories::Purge(_) => Err(CliError::Usage("this command does not ask a daemon".to_owned())),
    }
}

async fn list(
    context: &mut Context,
    link: &Link,
    select: &MemorySelect,
    paging: Paging,
) -> Result<Exit, CliError> {
    let filter = filter(context, link, select).await?;
    // JSON output has the whole PAM object, which only this view contains.
    let view = if context.out.json { MemoryView::PamJson } else { MemoryView::Basic };
    let mut header = StoreHeader::default();
    let listing = page::collect(paging.want(), async |page_size, page_token| {
        let filter = Some(filter.clone());
        let order = MemoryOrder::UpdatedDesc.into();
        let request = ListMemoriesRequest { page_size, page_token, filter, order, view: view.into() };
        let answer = link.memories().list_memories(request).await?.into_inner();
        header = answer.header.unwrap_or_default();
        Ok(Page { rows: answer.memories, next: answer.next_page_token })
    })
    .await?;
    if context.out.json {
        context.out.json(&json::memory::Memories::new(&listing.rows, listing.left.more(), &header))?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        let why = nothing::memories(link, select).await?;
        context.out.note(&why);
    } else {
        let states = filter.statuses.len() > 1;
        context
            .out
            .print(&render::table(&listing.rows, states, &context.calendar).render(context.out.look))?;
    }
    context.hint(listing.left);
    Ok(Exit::Done)
}

async fn filter(context: &Context, link: &Link, select: &MemorySelect) -> Result<MemoryFilter, CliError> {
    let conversation_id = match &select.conversation {
        Some(given) => conversations::named(link, exports::unless_last(given)).await?,
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
        valid_at: select.valid.then(|| context.calendar.now_on_the_wire()),
        expired_at: select.expired.then(|| context.calendar.now_on_the_wire()),
        created: context
            .calendar
            .created(select.created_since.as_deref(), select.created_until.as_deref())?,
        ..MemoryFilter::default()
    })
}

async fn show(context: &mut Context, link: &Link, given: &str) -> Result<Exit, CliError> {
    let id = resolve(link, given).await?;
    let request = GetMemoryRequest { id, view: MemoryView::PamJson.into() };
    let answer = link.memories().get_memory(request).await?.into_inner();
    let (memory, stranger) = (answer.memory.unwrap_or_default(), answer.stranger);
    if context.out.json {
        context.out.json(&json::memory::One::new(&memory, &stranger))?;
    } else {
        context.out.page(&render::one(&memory, &stranger, &context.calendar, context.out.look))?;
        if let Some(hint) = render::hint(&memory) {
            context.out.note(&hint);
        }
    }
    Ok(Exit::Done)
}

async fn history(context: &mut Context, link: &Link, given: &str, paging: Paging) -> Result<Exit, CliError> {
    let id = resolve(link, given).await?;
    let view = if context.out.json { MemoryView::PamJson } else { MemoryView::Full };
    let listing = page::collect(paging.want(), async |page_size, page_token| {
        let request = ListMemoryVersionsRequest { id: id.clone(), page_size, page_token, view: view.into() };
        let answer = link.memories().list_memory_versions(request).await?.into_inner();
        Ok(Page { rows: answer.versions, next: answer.next_page_token })
    })
    .await?;
    if context.out.json {
        let versions = listing.rows.iter().map(json::memory::Version::new).collect();
        context.out.json(&json::memory::History { id: &id, versions, more: listing.left.more() })?;
        return Ok(Exit::Done);
    }
    context.out.page(&render::history(&listing.rows, &context.calendar, context.out.look))?;
    context.hint(listing.left);
    Ok(Exit::Done)
}

/// Returns the full id for `given`, whatever the status of the memory, including the ids of memories that are no
/// longer listed.
pub(super) async fn resolve(link: &Link, given: &str) -> Result<String, CliError> {
    page::resolve("memory", given, async |page_size, page_token| {
        let request = ListMemoryIdsRequest { prefix: given.to_owned(), page_size, page_token };
        let answer = link.memories().list_memory_ids(request).await?.into_inner();
        Ok(Page { rows: answer.ids.into_iter().map(|id| id.id).collect(), next: answer.next_page_token })
    })
    .await
}
