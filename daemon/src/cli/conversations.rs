//! `conversations …`

mod branches;
mod markdown;
mod message;
mod render;

use satchel_proto::v1::{
    Conversation, ConversationFilter, GetConversationRequest, ListConversationIdsRequest,
    ListConversationsRequest, ListMessagesRequest, Message, MessageSelection, StoreHeader,
};

use self::{branches::Branches, render::View};
use super::{
    Context,
    args::{ConversationSelect, Conversations, Paging, ShowConversation},
    error::CliError,
    exit::Exit,
    json,
    link::Link,
    nothing,
    page::{self, Page},
};

/// Runs one of the commands.
///
/// # Errors
/// As the daemon refuses, and for ids that fit none or several.
pub(crate) async fn run(
    context: &mut Context,
    link: &Link,
    command: &Conversations,
) -> Result<Exit, CliError> {
    match command {
        Conversations::List { select, paging } => list(context, link, select, *paging).await,
        Conversations::Show(args) => show(context, link, args).await,
        // It works on the files themselves.
        Conversations::Purge { .. } => Err(CliError::Usage("this command does not ask a daemon".to_owned())),
    }
}

async fn list(
    context: &mut Context,
    link: &Link,
    select: &ConversationSelect,
    paging: Paging,
) -> Result<Exit, CliError> {
    let filter = ConversationFilter {
        platforms: select.platforms.clone(),
        accounts: select.accounts.clone(),
        tags_all: select.tags.clone(),
        title_contains: select.title.clone().unwrap_or_default(),
        updated: context.calendar.range(select.since.as_deref(), select.until.as_deref())?,
        created: context
            .calendar
            .created(select.created_since.as_deref(), select.created_until.as_deref())?,
        ..ConversationFilter::default()
    };
    let mut header = StoreHeader::default();
    let listing = page::collect(paging.want(), async |size, token| {
        let (page, shown) = fetch(link, &filter, size, token).await?;
        header = shown;
        Ok(page)
    })
    .await?;
    if context.out.json {
        context.out.json(&json::conversation::Conversations::new(
            &listing.rows,
            listing.left.more(),
            &header,
        ))?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        let why = nothing::conversations(link, select).await?;
        context.out.note(&why);
    } else {
        context.out.print(&render::table(&listing.rows, &context.calendar).render(context.out.look))?;
    }
    context.hint(listing.left);
    Ok(Exit::Done)
}

async fn fetch(
    link: &Link,
    filter: &ConversationFilter,
    page_size: i32,
    page_token: String,
) -> Result<(Page<Conversation>, StoreHeader), CliError> {
    let request = ListConversationsRequest { page_size, page_token, filter: Some(filter.clone()) };
    let answer = link.conversations().list_conversations(request).await?.into_inner();
    let page = Page { rows: answer.conversations, next: answer.next_page_token };
    Ok((page, answer.header.unwrap_or_default()))
}

/// The id that `given` means, also of a conversation that is in no list any more.
///
/// # Errors
/// When it fits none or several.
pub(super) async fn resolve(link: &Link, given: &str) -> Result<String, CliError> {
    page::resolve("conversation", given, async |page_size, page_token| {
        let request = ListConversationIdsRequest { prefix: given.to_owned(), page_size, page_token };
        let answer = link.conversations().list_conversation_ids(request).await?.into_inner();
        Ok(Page { rows: answer.ids.into_iter().map(|id| id.id).collect(), next: answer.next_page_token })
    })
    .await
}

/// The id that `given` means; none: that of the conversation that changed last.
///
/// # Errors
/// As [`resolve`], and when there is none.
pub(super) async fn named(link: &Link, given: Option<&str>) -> Result<String, CliError> {
    let Some(given) = given else {
        let (page, _) = fetch(link, &ConversationFilter::default(), 1, String::new()).await?;
        let newest = page.rows.into_iter().next().map(|row| row.id);
        return newest.ok_or(CliError::None { kind: "conversation" });
    };
    resolve(link, given).await
}

async fn show(context: &mut Context, link: &Link, args: &ShowConversation) -> Result<Exit, CliError> {
    let id = named(link, args.id.given()).await?;
    let request = GetConversationRequest { id: id.clone() };
    let answer = link.conversations().get_conversation(request).await?.into_inner();
    let conversation = answer.conversation.unwrap_or_default();
    let raw = context.out.json;
    let (messages, branches) = selected(link, &conversation, args, raw).await?;
    if raw {
        context.out.json(&json::conversation::Shown::new(&conversation, &messages))?;
        return Ok(Exit::Done);
    }
    let view =
        View { calendar: &context.calendar, look: context.out.look, full: args.full, hidden: args.hidden };
    let text = if args.tree {
        view.tree(&conversation, &messages, &branches)
    } else {
        view.branch(&conversation, &messages, &branches)
    };
    context.out.page(&text)?;
    if args.tree {
        context.out.note("● the branch that was seen last; --branch ID shows another");
    }
    left_out(context, args, &messages);
    Ok(Exit::Done)
}

/// The messages to show, and the forks to mark between them.
async fn selected(
    link: &Link,
    conversation: &Conversation,
    args: &ShowConversation,
    raw: bool,
) -> Result<(Vec<Message>, Branches), CliError> {
    let id = &conversation.id;
    if !args.tree && args.branch.is_none() {
        let seen = messages(link, id, MessageSelection::ActiveBranch, raw).await?;
        // Without other branches there is nothing to mark, and JSON has no marks.
        if raw || seen.len() as u64 >= conversation.message_count {
            return Ok((seen, Branches::default()));
        }
    }
    // Only the whole tree says what the other branches are.
    let tree = messages(link, id, MessageSelection::Tree, raw).await?;
    let branches = Branches::new(&tree);
    if args.tree {
        return Ok((tree, branches));
    }
    let path = match &args.branch {
        Some(given) => branches.path_through(given)?,
        None => branches.active_path(),
    };
    Ok((branches::keep(tree, &path), branches))
}

fn left_out(context: &mut Context, args: &ShowConversation, messages: &[Message]) {
    let hidden = messages.iter().filter(|message| message.hidden).count() as u64;
    if hidden > 0 && !args.hidden {
        let messages = super::text::count(hidden, "message", "messages");
        context.out.note(&format!("{messages} that the platform does not show: --hidden shows them too"));
    }
}

async fn messages(
    link: &Link,
    id: &str,
    selection: MessageSelection,
    raw: bool,
) -> Result<Vec<Message>, CliError> {
    let listing = page::collect(None, async |page_size, page_token| {
        let request = ListMessagesRequest {
            conversation_id: id.to_owned(),
            page_size,
            page_token,
            selection: selection.into(),
            leaf_id: String::new(),
            include_hidden: true,
            include_thoughts: true,
            include_raw_metadata: raw,
        };
        let answer = link.conversations().list_messages(request).await?.into_inner();
        Ok(Page { rows: answer.messages, next: answer.next_page_token })
    })
    .await?;
    Ok(listing.rows)
}
