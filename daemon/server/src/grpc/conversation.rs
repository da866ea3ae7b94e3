//! `ConversationService`: reads conversations and their messages.

use std::collections::BTreeSet;

use satchel_core::{
    conversation_record::{Places, branch, leaf, shown_header},
    lineage::Digests,
};
use satchel_proto::v1::{self, conversation_service_server::ConversationService};
use satchel_store::{ConversationRecord, Cursor, MessageHead, Page, Revision};
use tonic::{Request, Response, Status};

use super::{
    Core,
    call::{bounded, fill, index_cursor, index_of, required, slice_page},
    recent::Laid,
    status::{Fault, Kind},
    wire::{
        conversation::{Standing, conversation_to_wire, filter_from_wire, summary_to_wire},
        message::message_to_wire,
    },
};

/// Bytes of message bodies that are in memory at once; a single message may be larger.
const BODY_BYTES: u64 = 4 << 20;

#[derive(Clone)]
pub(super) struct Conversations(pub(super) Core);

#[tonic::async_trait]
impl ConversationService for Conversations {
    async fn get_conversation(
        &self,
        request: Request<v1::GetConversationRequest>,
    ) -> Result<Response<v1::GetConversationResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(move |core| get(core, &request)).await
    }

    async fn list_conversations(
        &self,
        request: Request<v1::ListConversationsRequest>,
    ) -> Result<Response<v1::ListConversationsResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| list(core, request)).await
    }

    async fn list_conversation_ids(
        &self,
        request: Request<v1::ListConversationIdsRequest>,
    ) -> Result<Response<v1::ListConversationIdsResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| list_ids(core, request)).await
    }

    async fn list_messages(
        &self,
        request: Request<v1::ListMessagesRequest>,
    ) -> Result<Response<v1::ListMessagesResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| list_messages(core, request)).await
    }
}

fn find(core: &Core, field: &str, id: &str, revision: Revision) -> Result<ConversationRecord, Fault> {
    required(field, id)?;
    core.store.conversation(id, Some(revision))?.ok_or_else(|| Fault::missing(Kind::Conversation, id))
}

fn get(core: &Core, request: &v1::GetConversationRequest) -> Result<v1::GetConversationResponse, Fault> {
    let v1::GetConversationRequest { id } = request;
    let revision = core.store.revision();
    let record = find(core, "id", id, revision)?;
    let header = Digests::default().complete(&core.store, &record.origin, shown_header(&record))?;
    let standing = Standing {
        messages: record.heads.len() as u64,
        active_messages: leaf(&record).map_or(0, |leaf| branch(&record, leaf).len() as u64),
        active_leaf: leaf(&record).map(str::to_owned),
        revision: record.revision,
        withdrawn: record.withdrawn,
    };
    Ok(v1::GetConversationResponse {
        conversation: Some(conversation_to_wire(header, standing)),
        header: Some(core.header_at(revision)),
    })
}

fn list(
    core: &Core,
    mut request: v1::ListConversationsRequest,
) -> Result<v1::ListConversationsResponse, Fault> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let paging = core.paging("ListConversations", &request, size, &token)?;
    let v1::ListConversationsRequest { page_size: _, page_token: _, filter } = request;
    let query = filter_from_wire(filter)?;
    let revision = paging.revision.unwrap_or_else(|| core.store.revision());
    let (conversations, next) = fill(
        paging.rows,
        paging.store_cursor(),
        |after, limit| Ok(core.store.conversations(&query, after, limit, revision)?),
        |summary| Ok(summary_to_wire(summary)),
    )?;
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListConversationsResponse {
        conversations,
        next_page_token: core.next_token(&paging, revision, next),
        header: Some(core.header_at(revision)),
    })
}

fn list_ids(
    core: &Core,
    mut request: v1::ListConversationIdsRequest,
) -> Result<v1::ListConversationIdsResponse, Fault> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let paging = core.paging("ListConversationIds", &request, size, &token)?;
    bounded("prefix", &request.prefix)?;
    let revision = paging.revision.unwrap_or_else(|| core.store.revision());
    let all = core.store.conversation_ids(&request.prefix, revision)?;
    let (ids, next) = fill(
        paging.rows,
        paging.store_cursor(),
        |after, limit| slice_page(&all, after, limit),
        |id| Ok(v1::ConversationId { id }),
    )?;
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListConversationIdsResponse {
        ids,
        next_page_token: core.next_token(&paging, revision, next),
        header: Some(core.header_at(revision)),
    })
}

fn list_messages(
    core: &Core,
    mut request: v1::ListMessagesRequest,
) -> Result<v1::ListMessagesResponse, Fault> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let paging = core.paging("ListMessages", &request, size, &token)?;
    let revision = paging.revision.unwrap_or_else(|| core.store.revision());
    let laid = core.recent.laid(paging.list(), revision, || lay(core, &request, revision))?;
    let (messages, next) = fill(
        paging.rows,
        paging.store_cursor(),
        |after, limit| fetch(core, &laid, after, limit),
        |message| show(&laid, message, request.include_raw_metadata),
    )?;
    if core.recent.keep(paging.list(), revision, &laid, next.is_some()) {
        tokio::runtime::Handle::current().spawn(core.recent.clone().forget_later());
    }
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListMessagesResponse {
        messages,
        next_page_token: core.next_token(&paging, revision, next),
        header: Some(core.header_at(revision)),
    })
}

/// Reads the conversation of the request and selects its messages.
fn lay(core: &Core, request: &v1::ListMessagesRequest, revision: Revision) -> Result<Laid, Fault> {
    let record = find(core, "conversation_id", &request.conversation_id, revision)?;
    let chosen = select(&record, request)?;
    Ok(Laid { places: Places::of(&record), chosen, record })
}

/// Returns the indexes of the requested messages, in order.
fn select(record: &ConversationRecord, request: &v1::ListMessagesRequest) -> Result<Vec<usize>, Fault> {
    let branch_ids: Option<BTreeSet<&str>> =
        branch_end(record, request)?.map(|end| branch(record, end).into_iter().collect());
    let wanted = |head: &MessageHead| {
        (request.include_hidden || !head.hidden)
            && (request.include_thoughts || !head.thought)
            && branch_ids.as_ref().is_none_or(|ids| ids.contains(head.id.as_str()))
    };
    // In the list, parents come before their children, so a branch keeps its order.
    Ok(record.heads.iter().enumerate().filter(|(_, head)| wanted(head)).map(|(at, _)| at).collect())
}

/// Returns the last message of the requested branch; `None` for the whole tree.
fn branch_end<'a>(
    record: &'a ConversationRecord,
    request: &v1::ListMessagesRequest,
) -> Result<Option<&'a str>, Fault> {
    let selection = v1::MessageSelection::try_from(request.selection).map_err(|_| {
        Fault::field("selection", format!("holds {}, which is no known value", request.selection))
    })?;
    bounded("leaf_id", &request.leaf_id)?;
    match (selection, request.leaf_id.as_str()) {
        (v1::MessageSelection::Branch, "") => Err(Fault::field("leaf_id", "must name where the branch ends")),
        (v1::MessageSelection::Branch, id) => {
            let found = record.heads.iter().find(|head| head.id == id);
            found.map(|head| Some(head.id.as_str())).ok_or_else(|| Fault::missing(Kind::Message, id))
        }
        (_, id) if !id.is_empty() => Err(Fault::field("leaf_id", "is only for the selection BRANCH")),
        (v1::MessageSelection::ActiveBranch, _) => Ok(leaf(record)),
        (v1::MessageSelection::Unspecified | v1::MessageSelection::Tree, _) => Ok(None),
    }
}

/// Returns messages from the cursor on, as indexes and bodies: at most `limit`, and not more than [`BODY_BYTES`].
fn fetch(
    core: &Core,
    laid: &Laid,
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Page<(usize, Vec<u8>)>, Fault> {
    let Laid { record, chosen, .. } = laid;
    let from = index_of(after)?;
    let mut bytes = 0;
    let at: Vec<usize> = chosen
        .iter()
        .skip(from)
        .take(limit)
        .map_while(|at| Some((*at, record.places.get(*at)?)))
        .take_while(|(_, place)| {
            let first = bytes == 0;
            bytes += u64::from(place.length()).max(1);
            first || bytes <= BODY_BYTES
        })
        .map(|(at, _)| at)
        .collect();
    let bodies = core.store.bodies_at(record, &at)?;
    let end = from.saturating_add(at.len());
    let items = at.into_iter().zip(bodies).collect();
    Ok(Page { items, next: (end < chosen.len()).then(|| index_cursor(end)) })
}

fn show(laid: &Laid, (at, body): (usize, Vec<u8>), raw_metadata: bool) -> Result<v1::Message, Fault> {
    let Laid { record, places, .. } = laid;
    let mut message = places.message(record, at, &body).map_err(Fault::internal)?;
    if !raw_metadata {
        message.raw_metadata = None;
    }
    Ok(v1::Message {
        hidden: record.heads[at].hidden,
        on_active_branch: places.active(at),
        ..message_to_wire(message)
    })
}
