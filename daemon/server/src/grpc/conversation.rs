//! `ConversationService`: reads conversations and their messages. [`recording`] has the methods that record them.

mod stats;

use std::collections::BTreeSet;

use satchel_core::{
    conversation_record::{MessageTree, branch, leaf, shown_header},
    provenance::SourceDigests,
};
use satchel_proto::v1::{self, conversation_service_server::ConversationService};
use satchel_store::{ConversationRecord, Cursor, MessageHead, Page, Revision};

use super::{
    ServerState,
    call_state::CallState,
    listing_cache::MessageListing,
    recording::{self, add_attribution},
    request::{PageRequest, check_length, check_required, index_cursor, index_of, page_request, service},
    status::{CallError, ResourceKind},
    wire::{
        conversation::{
            AttributionFilter, ConversationState, conversation_to_wire, filter_from_wire, summary_to_wire,
        },
        message::message_to_wire,
    },
};

/// Bytes of message bodies that are in memory at once; a single message may be larger.
const BODY_BYTES: u64 = 4 << 20;

#[derive(Clone)]
pub(super) struct ConversationHandler(pub(super) ServerState);

service!(ConversationService for ConversationHandler {
    get_conversation: GetConversationRequest => GetConversationResponse = get;
    list_conversations: ListConversationsRequest => ListConversationsResponse = list;
    list_conversation_ids: ListConversationIdsRequest => ListConversationIdsResponse = list_ids;
    list_messages: ListMessagesRequest => ListMessagesResponse = list_messages;
    get_conversation_stats: GetConversationStatsRequest => GetConversationStatsResponse = stats::get;
    record_conversation: RecordConversationRequest => RecordConversationResponse = recording::record;
    append_messages: AppendMessagesRequest => AppendMessagesResponse = recording::append;
});

pub(super) fn find_conversation(
    state: &CallState,
    field: &str,
    id: &str,
    revision: Revision,
) -> Result<ConversationRecord, CallError> {
    check_required(field, id)?;
    let record = state.store.conversation(id, Some(revision))?;
    let missing = || CallError::not_found(ResourceKind::Conversation, id);
    let record = record.ok_or_else(missing)?;
    if state.sees_conversation_record(&record)? { Ok(record) } else { Err(missing()) }
}

fn get(
    state: &CallState,
    request: v1::GetConversationRequest,
) -> Result<v1::GetConversationResponse, CallError> {
    let v1::GetConversationRequest { id, as_of_revision } = request;
    let revision = state.as_of(as_of_revision)?;
    let record = find_conversation(state, "id", &id, revision)?;
    let header =
        SourceDigests::default().add_source_digest(&state.store, &record.origin, shown_header(&record))?;
    let conversation_state = ConversationState {
        messages: record.heads.len() as u64,
        active_messages: leaf(&record).map_or(0, |leaf| branch(&record, leaf).len() as u64),
        active_leaf: leaf(&record).map(str::to_owned),
        revision: record.revision,
        withdrawn: record.withdrawn,
    };
    let mut conversation = conversation_to_wire(header, conversation_state);
    add_attribution(state, &record, &mut conversation)?;
    Ok(v1::GetConversationResponse {
        conversation: Some(conversation),
        header: Some(state.header_at(revision)),
    })
}

fn list(
    state: &CallState,
    mut request: v1::ListConversationsRequest,
) -> Result<v1::ListConversationsResponse, CallError> {
    let page = page_request!(state, "ListConversations", request)?;
    let v1::ListConversationsRequest { page_size: _, page_token: _, filter } = request;
    let (mut query, attributed) = filter_from_wire(filter)?;
    if query.accounts.is_empty() {
        // The user of a conversation that has one is its account, and the store can look for that.
        query.accounts.clone_from(&attributed.users);
    }
    let (conversations, next_page_token) = state.fill_visible(
        &page,
        |after, limit| Ok(state.store.conversations(&query, after, limit, page.revision)?),
        |summary| {
            let shown = state.sees_conversation_summary(&summary)?
                && has_attribution(state, &attributed, &summary.id, page.revision)?;
            Ok(shown.then(|| summary_to_wire(summary)))
        },
    )?;
    Ok(v1::ListConversationsResponse {
        conversations,
        next_page_token,
        header: Some(state.header_at(page.revision)),
    })
}

/// Returns whether a conversation passes a filter by agent, user and session. Its header is read only if there is one.
fn has_attribution(
    state: &CallState,
    filter: &AttributionFilter,
    id: &str,
    revision: Revision,
) -> Result<bool, CallError> {
    if filter.is_empty() {
        return Ok(true);
    }
    let record = state.store.conversation(id, Some(revision))?;
    Ok(record.is_some_and(|record| filter.matches(&record.header)))
}

fn list_ids(
    state: &CallState,
    mut request: v1::ListConversationIdsRequest,
) -> Result<v1::ListConversationIdsResponse, CallError> {
    let page = page_request!(state, "ListConversationIds", request)?;
    check_length("prefix", &request.prefix)?;
    let mut all = state.store.conversation_ids(&request.prefix, page.revision)?;
    if !state.sees_everything() {
        all = state.visible_conversation_ids(all)?;
    }
    let (ids, next_page_token) = state.fill_from(&page, &all, |id| Ok(v1::ConversationId { id }))?;
    Ok(v1::ListConversationIdsResponse { ids, next_page_token, header: Some(state.header_at(page.revision)) })
}

fn list_messages(
    state: &CallState,
    mut request: v1::ListMessagesRequest,
) -> Result<v1::ListMessagesResponse, CallError> {
    let mut page = page_request!(state, "ListMessages", request)?;
    if request.as_of_revision.is_some() {
        page.revision = state.as_of(request.as_of_revision)?;
    }
    let PageRequest { list, revision, .. } = page;
    let listing =
        state.listings.get_or_prepare(list, revision, || prepare_listing(state, &request, revision))?;
    let (messages, next_page_token) = state.fill(
        &page,
        |after, limit| fetch_messages(state, &listing, after, limit),
        |message| listed_message(&listing, message, request.include_raw_metadata),
    )?;
    if state.listings.update(list, revision, &listing, !next_page_token.is_empty()) {
        tokio::runtime::Handle::current().spawn(state.listings.clone().evict_idle());
    }
    Ok(v1::ListMessagesResponse { messages, next_page_token, header: Some(state.header_at(revision)) })
}

/// Reads the conversation of the request and selects its messages.
fn prepare_listing(
    state: &CallState,
    request: &v1::ListMessagesRequest,
    revision: Revision,
) -> Result<MessageListing, CallError> {
    let record = find_conversation(state, "conversation_id", &request.conversation_id, revision)?;
    let selected = select_messages(&record, request)?;
    Ok(MessageListing { tree: MessageTree::new(&record), selected, record })
}

/// Returns the indexes of the requested messages, in order.
fn select_messages(
    record: &ConversationRecord,
    request: &v1::ListMessagesRequest,
) -> Result<Vec<usize>, CallError> {
    let branch_ids: Option<BTreeSet<&str>> =
        branch_end(record, request)?.map(|end| branch(record, end).into_iter().collect());
    let included = |head: &MessageHead| {
        (request.include_hidden || !head.hidden)
            && (request.include_thoughts || !head.thought)
            && branch_ids.as_ref().is_none_or(|ids| ids.contains(head.id.as_str()))
    };
    // In the list, parents come before their children, so a branch keeps its order.
    Ok(record.heads.iter().enumerate().filter(|(_, head)| included(head)).map(|(at, _)| at).collect())
}

/// Returns the last message of the requested branch; `None` for the whole tree.
fn branch_end<'a>(
    record: &'a ConversationRecord,
    request: &v1::ListMessagesRequest,
) -> Result<Option<&'a str>, CallError> {
    let selection = v1::MessageSelection::try_from(request.selection).map_err(|_| {
        CallError::invalid_field(
            "selection",
            format!("holds {}, which is not a known value", request.selection),
        )
    })?;
    check_length("leaf_id", &request.leaf_id)?;
    match (selection, request.leaf_id.as_str()) {
        (v1::MessageSelection::Branch, "") => {
            Err(CallError::invalid_field("leaf_id", "must name where the branch ends"))
        }
        (v1::MessageSelection::Branch, id) => {
            let head = record.heads.iter().find(|head| head.id == id);
            head.map(|head| Some(head.id.as_str()))
                .ok_or_else(|| CallError::not_found(ResourceKind::Message, id))
        }
        (_, id) if !id.is_empty() => {
            Err(CallError::invalid_field("leaf_id", "is only for the selection BRANCH"))
        }
        (v1::MessageSelection::ActiveBranch, _) => Ok(leaf(record)),
        (v1::MessageSelection::Unspecified | v1::MessageSelection::Tree, _) => Ok(None),
    }
}

/// Returns messages from the cursor on, as indexes and bodies: at most `limit`, and not more than [`BODY_BYTES`].
fn fetch_messages(
    state: &CallState,
    listing: &MessageListing,
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Page<(usize, Vec<u8>)>, CallError> {
    let MessageListing { record, selected, .. } = listing;
    let from = index_of(after)?;
    let mut bytes = 0;
    let at: Vec<usize> = selected
        .iter()
        .skip(from)
        .take(limit)
        .map_while(|at| Some((*at, record.body_locations.get(*at)?)))
        .take_while(|(_, location)| {
            let first = bytes == 0;
            bytes += u64::from(location.length()).max(1);
            first || bytes <= BODY_BYTES
        })
        .map(|(at, _)| at)
        .collect();
    let bodies = state.store.bodies_at(record, &at)?;
    let end = from.saturating_add(at.len());
    let items = at.into_iter().zip(bodies).collect();
    Ok(Page { items, next: (end < selected.len()).then(|| index_cursor(end)) })
}

fn listed_message(
    listing: &MessageListing,
    (at, body): (usize, Vec<u8>),
    raw_metadata: bool,
) -> Result<v1::Message, CallError> {
    let MessageListing { record, tree, .. } = listing;
    let mut message = tree.message(record, at, &body).map_err(CallError::internal)?;
    if !raw_metadata {
        message.raw_metadata = None;
    }
    Ok(v1::Message {
        hidden: record.heads[at].hidden,
        on_active_branch: tree.is_active(at),
        ..message_to_wire(message)
    })
}
