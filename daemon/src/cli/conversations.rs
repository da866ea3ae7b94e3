//! `conversations …`

pub(super) mod branches;
mod markdown;
mod message;
pub(super) mod render;
mod stats;

use satchel_proto::v1::{
    Conversation, ConversationFilter, GetConversationRequest, ListConversationIdsRequest,
    ListConversationsRequest, ListMessagesRequest, Message, MessageSelection, StoreHeader,
};

use self::{
    branches::Branches,
    render::{BranchRenderer, ConversationView},
};
use super::{
    Context,
    args::{ConversationFilterArgs, Conversations, Paging, ShowConversation},
    client::DaemonClient,
    empty_list,
    error::CliError,
    exit::Exit,
    json,
    pagination::{self, ResultPage},
    time::Calendar,
};

/// Messages fetched per request while a conversation is shown.
const PAGE_SIZE: i32 = 500;
/// Messages shown before the one that `--at` names.
const CONTEXT_MESSAGES: usize = 2;
/// Messages laid out before the first of them is shown.
const RENDER_CHUNK: usize = 500;

/// Runs one of the commands.
///
/// # Errors
/// Returns the errors of the daemon, and fails for an id that matches no conversation or several.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    command: &Conversations,
) -> Result<Exit, CliError> {
    match command {
        Conversations::List { select, paging } => list(context, client, select, *paging).await,
        Conversations::Show(args) => show(context, client, args).await,
        Conversations::Stats { by, select, paging } => {
            stats::run(context, client, *by, select, *paging).await
        }
        // This command works on the files directly.
        Conversations::Purge { .. } => Err(CliError::Usage("this command does not use a daemon".to_owned())),
    }
}

async fn list(
    context: &mut Context,
    client: &DaemonClient,
    select: &ConversationFilterArgs,
    paging: Paging,
) -> Result<Exit, CliError> {
    let filter = filter(select, &context.calendar)?;
    let mut header = StoreHeader::default();
    let listing = pagination::collect_rows(paging.max_rows(), async |size, token| {
        let (page, shown) = fetch(client, &filter, size, token).await?;
        header = shown;
        Ok(page)
    })
    .await?;
    if context.out.json {
        context.out.json(&json::conversation::Conversations::new(
            &listing.rows,
            listing.remaining.more(),
            &header,
        ))?;
        return Ok(Exit::Done);
    }
    if listing.rows.is_empty() {
        let why = empty_list::conversations(client, select).await?;
        context.out.note(&why);
    } else {
        context.out.print(&render::table(&listing.rows, &context.calendar).render(context.out.style))?;
    }
    context.note_remaining(listing.remaining);
    Ok(Exit::Done)
}

fn filter(select: &ConversationFilterArgs, calendar: &Calendar) -> Result<ConversationFilter, CliError> {
    Ok(ConversationFilter {
        platforms: select.platforms.clone(),
        accounts: select.accounts.clone(),
        tags_all: select.tags.clone(),
        title_contains: select.title.clone().unwrap_or_default(),
        updated: calendar.range(select.since.as_deref(), select.until.as_deref())?,
        created: calendar.created(select.created_since.as_deref(), select.created_until.as_deref())?,
        ..ConversationFilter::default()
    })
}

async fn fetch(
    client: &DaemonClient,
    filter: &ConversationFilter,
    page_size: i32,
    page_token: String,
) -> Result<(ResultPage<Conversation>, StoreHeader), CliError> {
    let request = ListConversationsRequest { page_size, page_token, filter: Some(filter.clone()) };
    let answer = client.conversations().list_conversations(request).await?.into_inner();
    let page = ResultPage { rows: answer.conversations, next: answer.next_page_token };
    Ok((page, answer.header.unwrap_or_default()))
}

/// Returns the full id for `given`, including the ids of conversations that are no longer listed.
///
/// # Errors
/// Fails if it matches none or several.
pub(super) async fn resolve(client: &DaemonClient, given: &str) -> Result<String, CliError> {
    pagination::resolve_id("conversation", given, async |page_size, page_token| {
        let request = ListConversationIdsRequest { prefix: given.to_owned(), page_size, page_token };
        let answer = client.conversations().list_conversation_ids(request).await?.into_inner();
        Ok(ResultPage {
            rows: answer.ids.into_iter().map(|id| id.id).collect(),
            next: answer.next_page_token,
        })
    })
    .await
}

/// Returns the full id for `given`; without it, the id of the conversation that changed last.
///
/// # Errors
/// As [`resolve`], and if there are no conversations.
pub(super) async fn resolve_or_newest(
    client: &DaemonClient,
    given: Option<&str>,
) -> Result<String, CliError> {
    let Some(given) = given else {
        let (page, _) = fetch(client, &ConversationFilter::default(), 1, String::new()).await?;
        let newest = page.rows.into_iter().next().map(|row| row.id);
        return newest.ok_or(CliError::NoneYet { kind: "conversation" });
    };
    resolve(client, given).await
}

async fn show(
    context: &mut Context,
    client: &DaemonClient,
    args: &ShowConversation,
) -> Result<Exit, CliError> {
    let id = resolve_or_newest(client, args.id.given()).await?;
    let request = GetConversationRequest { id: id.clone(), as_of_revision: None };
    let answer = client.conversations().get_conversation(request).await?.into_inner();
    let conversation = answer.conversation.unwrap_or_default();
    if context.out.json {
        let (messages, _) = fetch_selected(client, &conversation, args, true).await?;
        context.out.json(&json::conversation::ConversationDocument::new(&conversation, &messages))?;
        return Ok(Exit::Done);
    }
    let calendar = context.calendar.clone();
    let view = ConversationView {
        calendar: &calendar,
        style: context.out.style,
        full: args.full,
        hidden: args.hidden,
    };
    if let Some(given) = &args.at {
        return show_at(context, client, &conversation, &view, given).await;
    }
    let hidden = if !args.tree && args.branch.is_none() && has_single_branch(&conversation) {
        show_streaming(context, client, &conversation, &view).await?
    } else {
        let (messages, branches) = fetch_selected(client, &conversation, args, false).await?;
        show_fetched(context, &conversation, &messages, &branches, (&view, args.tree))?;
        messages.iter().filter(|message| message.hidden).count() as u64
    };
    if args.tree {
        context.out.note("● marks the current branch; use --branch ID to show another");
    }
    if hidden > 0 && !args.hidden {
        let messages = super::text::count(hidden, "message", "messages");
        context.out.note(&format!("{messages} hidden by the platform; use --hidden to show them"));
    }
    Ok(Exit::Done)
}

/// Returns whether the branch that was seen last is the only one.
fn has_single_branch(conversation: &Conversation) -> bool {
    conversation.active_message_count == Some(conversation.message_count)
}

/// Shows a conversation without forks while its messages arrive, until the reader quits. Returns the number of
/// hidden messages.
async fn show_streaming(
    context: &mut Context,
    client: &DaemonClient,
    conversation: &Conversation,
    view: &ConversationView<'_>,
) -> Result<u64, CliError> {
    let branches = Branches::default();
    let mut renderer = BranchRenderer::new(view, conversation, &branches);
    let mut screen = context.out.paged();
    let (mut hidden, mut page_token) = (0, String::new());
    let mut wanted = screen.push(&view.head(conversation))?;
    while wanted {
        let selection = MessageSelection::ActiveBranch;
        let page = message_page(client, &conversation.id, selection, false, (PAGE_SIZE, page_token)).await?;
        hidden += page.rows.iter().filter(|message| message.hidden).count() as u64;
        let shown: String = page.rows.iter().map(|message| renderer.message(message)).collect();
        wanted = screen.push(&shown)? && !page.next.is_empty();
        page_token = page.next;
    }
    screen.end()?;
    Ok(hidden)
}

/// Shows messages that have all been fetched.
fn show_fetched(
    context: &mut Context,
    conversation: &Conversation,
    messages: &[Message],
    branches: &Branches,
    (view, tree): (&ConversationView<'_>, bool),
) -> Result<(), CliError> {
    if tree {
        return context.out.print_paged(&view.tree(conversation, messages, branches));
    }
    let mut renderer = BranchRenderer::new(view, conversation, branches);
    let mut screen = context.out.paged();
    let mut wanted = screen.push(&view.head(conversation))?;
    for some in messages.chunks(RENDER_CHUNK) {
        if !wanted {
            break;
        }
        let shown: String = some.iter().map(|message| renderer.message(message)).collect();
        wanted = screen.push(&shown)?;
    }
    screen.end()
}

/// Shows the branch through a message, from shortly before it.
async fn show_at(
    context: &mut Context,
    client: &DaemonClient,
    conversation: &Conversation,
    view: &ConversationView<'_>,
    given: &str,
) -> Result<Exit, CliError> {
    let tree = messages(client, &conversation.id, MessageSelection::Tree, false).await?;
    let branches = Branches::new(&tree);
    let (id, path) = (branches.resolve(given)?, branches.path_through(given)?);
    let branch = branches::retain_path(tree, &path);
    let at = branch.iter().position(|message| message.id == id).unwrap_or(0);
    // What the platform hides is shown if it is asked for by its id.
    let view = ConversationView {
        hidden: view.hidden || branch[at..].first().is_some_and(|one| one.hidden),
        ..*view
    };
    let from = at.saturating_sub(CONTEXT_MESSAGES);
    let mut renderer = BranchRenderer::new(&view, conversation, &branches);
    let mut shown = view.head(conversation);
    if from > 0 {
        shown.push_str(&view.left_out(from));
    }
    for (number, message) in branch.iter().enumerate().skip(from) {
        let mark = number == at;
        shown.push_str(&renderer.marked_message(message, mark));
    }
    context.out.print_paged(&shown)?;
    Ok(Exit::Done)
}

/// Returns the messages to show, and the forks to mark between them.
async fn fetch_selected(
    client: &DaemonClient,
    conversation: &Conversation,
    args: &ShowConversation,
    raw: bool,
) -> Result<(Vec<Message>, Branches), CliError> {
    let id = &conversation.id;
    // Without other branches there are no forks to mark, and JSON output has no marks.
    if !args.tree && args.branch.is_none() && args.at.is_none() && (raw || has_single_branch(conversation)) {
        let seen = messages(client, id, MessageSelection::ActiveBranch, raw).await?;
        return Ok((seen, Branches::default()));
    }
    // Only the whole tree has the other branches.
    let tree = messages(client, id, MessageSelection::Tree, raw).await?;
    let branches = Branches::new(&tree);
    if args.tree {
        return Ok((tree, branches));
    }
    let path = match args.branch.as_ref().or(args.at.as_ref()) {
        Some(given) => branches.path_through(given)?,
        None => branches.active_path(),
    };
    Ok((branches::retain_path(tree, &path), branches))
}

/// Fetches all messages of a selection, including those that are hidden.
pub(super) async fn messages(
    client: &DaemonClient,
    id: &str,
    selection: MessageSelection,
    raw: bool,
) -> Result<Vec<Message>, CliError> {
    let listing = pagination::collect_rows(None, async |page_size, page_token| {
        message_page(client, id, selection, raw, (page_size, page_token)).await
    })
    .await?;
    Ok(listing.rows)
}

/// Fetches one page of messages, including those that are hidden.
pub(super) async fn message_page(
    client: &DaemonClient,
    id: &str,
    selection: MessageSelection,
    raw: bool,
    (page_size, page_token): (i32, String),
) -> Result<ResultPage<Message>, CliError> {
    let request = ListMessagesRequest {
        conversation_id: id.to_owned(),
        page_size,
        page_token,
        selection: selection.into(),
        leaf_id: String::new(),
        include_hidden: true,
        include_thoughts: true,
        include_raw_metadata: raw,
        as_of_revision: None,
    };
    let answer = client.conversations().list_messages(request).await?.into_inner();
    Ok(ResultPage { rows: answer.messages, next: answer.next_page_token })
}
