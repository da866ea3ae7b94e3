//! Memories and conversations as resources: `satchel://memory/<id>` and `satchel://conversation/<id>`.

use rmcp::{
    ErrorData,
    model::{
        ListResourcesResult, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
        ResourceTemplate,
    },
};
use satchel_proto::v1::{Conversation, ListConversationsRequest, ListMemoriesRequest, Memory, MemoryView};
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::{
    clients::Clients,
    tools::{protocol_error, read_conversation, read_memory},
};

const MEMORY: &str = "satchel://memory/";
const CONVERSATION: &str = "satchel://conversation/";
const MIME: &str = "application/json";
/// Resources of one page.
const PAGE: i32 = 50;
/// Characters of a memory in its name.
const NAME_CHARS: usize = 80;
/// A cursor begins with the letter of its list. Memories come first, then conversations.
const MEMORIES: char = 'm';
const CONVERSATIONS: char = 'c';

/// The forms of the addresses.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |prefix: &str, name: &str, description: &str| {
        ResourceTemplate::new(format!("{prefix}{{id}}"), name)
            .with_description(description)
            .with_mime_type(MIME)
    };
    vec![
        template(MEMORY, "memory", "A memory by its id"),
        template(CONVERSATION, "conversation", "The first messages of a conversation by its id"),
    ]
}

/// A page of all memories and then of all conversations that the agent may see.
pub(crate) async fn list(
    clients: &Clients,
    cursor: Option<String>,
) -> Result<ListResourcesResult, ErrorData> {
    let cursor = cursor.unwrap_or_else(|| MEMORIES.to_string());
    let invalid = || ErrorData::invalid_params("the cursor is not one of this list", None);
    let mut letters = cursor.chars();
    let (resources, next) = match letters.next() {
        Some(MEMORIES) => {
            let page = memories(clients, letters.as_str()).await;
            let (found, token) = page_or_nothing(page)?;
            // An empty page token after the first page means that the list has ended.
            let next =
                if token.is_empty() { CONVERSATIONS.to_string() } else { format!("{MEMORIES}{token}") };
            (found, Some(next))
        }
        Some(CONVERSATIONS) => {
            let (found, token) = page_or_nothing(conversations(clients, letters.as_str()).await)?;
            (found, Some(format!("{CONVERSATIONS}{token}")).filter(|_| !token.is_empty()))
        }
        _ => return Err(invalid()),
    };
    let mut page = ListResourcesResult::with_all_items(resources);
    page.next_cursor = next;
    Ok(page)
}

/// Resources and the token of the next page.
type Page = (Vec<Resource>, String);

/// A list that the agent may not see is empty.
fn page_or_nothing(page: Result<Page, Status>) -> Result<Page, ErrorData> {
    match page {
        Err(status) if lacks_scope(&status) => Ok(Page::default()),
        page => page.map_err(|status| protocol_error(&status)),
    }
}

/// Whether the device lacks the permission for the method. A revoked device gets the same code for another reason.
fn lacks_scope(status: &Status) -> bool {
    status.get_details_error_info().is_some_and(|info| info.reason == "SCOPE_MISSING")
}

async fn memories(clients: &Clients, token: &str) -> Result<Page, Status> {
    let request = ListMemoriesRequest {
        page_size: PAGE,
        page_token: token.to_owned(),
        view: MemoryView::Basic.into(),
        ..ListMemoriesRequest::default()
    };
    let page = clients.memories().list_memories(request).await?.into_inner();
    let resource = |memory: &Memory| {
        let name: String = memory.content.chars().take(NAME_CHARS).map(one_line).collect();
        Resource::new(format!("{MEMORY}{}", memory.id), name).with_mime_type(MIME)
    };
    Ok((page.memories.iter().map(resource).collect(), page.next_page_token))
}

async fn conversations(clients: &Clients, token: &str) -> Result<Page, Status> {
    let request = ListConversationsRequest {
        page_size: PAGE,
        page_token: token.to_owned(),
        ..ListConversationsRequest::default()
    };
    let page = clients.conversations().list_conversations(request).await?.into_inner();
    let resource = |conversation: &Conversation| {
        let title =
            conversation.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&conversation.id);
        let name: String = title.chars().take(NAME_CHARS).map(one_line).collect();
        Resource::new(format!("{CONVERSATION}{}", conversation.id), name).with_mime_type(MIME)
    };
    Ok((page.conversations.iter().map(resource).collect(), page.next_page_token))
}

fn one_line(letter: char) -> char {
    if letter.is_control() { ' ' } else { letter }
}

/// Reads the resource at an address.
pub(crate) async fn read(clients: &Clients, uri: String) -> Result<ReadResourceResponse, ErrorData> {
    let missing =
        |uri: &str| ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": uri })));
    let read: Result<Value, Status> = if let Some(id) = uri.strip_prefix(MEMORY) {
        read_memory(clients, id).await
    } else if let Some(id) = uri.strip_prefix(CONVERSATION) {
        read_conversation(clients, id, PAGE, String::new()).await
    } else {
        return Err(missing(&uri));
    };
    match read {
        Ok(value) => {
            let contents = ResourceContents::text(value.to_string(), uri).with_mime_type(MIME);
            Ok(ReadResourceResult::new(vec![contents]).into())
        }
        Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => Err(missing(&uri)),
        Err(status) => Err(protocol_error(&status)),
    }
}
