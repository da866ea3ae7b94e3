//! Tools that read.

use satchel_proto::v1::{
    BuildContextRequest, GetConversationRequest, GetMemoryRequest, ListMessagesRequest, MemoryView,
    MessageSelection, SearchHitKind, SearchRequest,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tonic::Status;

use super::ToolError;
use crate::{clients::Clients, records};

/// Hits of one page.
const DEFAULT_HITS: i32 = 10;
const MAX_HITS: i32 = 50;
/// Messages of one page.
const DEFAULT_MESSAGES: i32 = 50;
const MAX_MESSAGES: i32 = 100;
/// Bytes of text that a hit shows.
const SNIPPET_BYTES: i32 = 400;
/// Tokens of a context.
const DEFAULT_TOKENS: i32 = 2_000;
const MAX_TOKENS: i32 = 32_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArguments {
    query: String,
    #[serde(default)]
    kinds: Vec<Kind>,
    limit: Option<i32>,
    cursor: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Memory,
    Message,
    Title,
}

impl From<Kind> for i32 {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Memory => SearchHitKind::Memory,
            Kind::Message => SearchHitKind::Message,
            Kind::Title => SearchHitKind::Title,
        }
        .into()
    }
}

/// Searches.
pub(super) async fn search(
    clients: &Clients,
    arguments: Result<SearchArguments, ToolError>,
) -> Result<Value, ToolError> {
    let SearchArguments { query, kinds, limit, cursor } = arguments?;
    let request = SearchRequest {
        query,
        kinds: kinds.into_iter().map(i32::from).collect(),
        page_size: within("limit", limit, DEFAULT_HITS, MAX_HITS)?,
        page_token: cursor.unwrap_or_default(),
        snippet_bytes: SNIPPET_BYTES,
        wait_until_current: true,
        ..SearchRequest::default()
    };
    let found = clients.search().search(request).await?.into_inner();
    let hits: Vec<Value> = found.hits.iter().map(records::hit).collect();
    Ok(with_next(json!({"total": found.total, "hits": hits}), &found.next_page_token))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConversationArguments {
    id: String,
    limit: Option<i32>,
    cursor: Option<String>,
}

/// Reads a page of a conversation.
pub(super) async fn conversation(
    clients: &Clients,
    arguments: Result<ConversationArguments, ToolError>,
) -> Result<Value, ToolError> {
    let ConversationArguments { id, limit, cursor } = arguments?;
    let limit = within("limit", limit, DEFAULT_MESSAGES, MAX_MESSAGES)?;
    Ok(read_conversation(clients, &id, limit, cursor.unwrap_or_default()).await?)
}

/// A page of the messages of a conversation, with what is known of it.
pub(crate) async fn read_conversation(
    clients: &Clients,
    id: &str,
    page_size: i32,
    page_token: String,
) -> Result<Value, Status> {
    let mut service = clients.conversations();
    let request = GetConversationRequest { id: id.to_owned(), as_of_revision: None };
    let conversation = service.get_conversation(request).await?.into_inner().conversation.unwrap_or_default();
    let request = ListMessagesRequest {
        conversation_id: conversation.id.clone(),
        page_size,
        page_token,
        selection: MessageSelection::ActiveBranch.into(),
        ..ListMessagesRequest::default()
    };
    let page = service.list_messages(request).await?.into_inner();
    let mut value = records::conversation(&conversation);
    value["messages"] = page.messages.iter().map(records::message).collect();
    Ok(with_next(value, &page.next_page_token))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryArguments {
    id: String,
}

/// Reads a memory.
pub(super) async fn memory(
    clients: &Clients,
    arguments: Result<MemoryArguments, ToolError>,
) -> Result<Value, ToolError> {
    Ok(read_memory(clients, &arguments?.id).await?)
}

/// A memory by its id.
pub(crate) async fn read_memory(clients: &Clients, id: &str) -> Result<Value, Status> {
    let request = GetMemoryRequest { id: id.to_owned(), view: MemoryView::Full.into(), as_of_revision: None };
    let memory = clients.memories().get_memory(request).await?.into_inner().memory.unwrap_or_default();
    Ok(records::memory(&memory))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextArguments {
    query: String,
    token_budget: Option<i32>,
    include_messages: Option<bool>,
}

/// Builds a context.
pub(super) async fn context(
    clients: &Clients,
    arguments: Result<ContextArguments, ToolError>,
) -> Result<Value, ToolError> {
    let ContextArguments { query, token_budget, include_messages } = arguments?;
    let request = BuildContextRequest {
        query,
        token_budget: within("token_budget", token_budget, DEFAULT_TOKENS, MAX_TOKENS)?,
        include_messages: include_messages.unwrap_or(true),
        // Instructions that the person gave to assistants do not answer a question.
        include_instructions: false,
        wait_until_current: true,
        ..BuildContextRequest::default()
    };
    let built = clients.search().build_context(request).await?.into_inner();
    Ok(json!({"quoted": built.text, "tokens": built.tokens_used, "left_out": built.omitted}))
}

/// A number between 1 and `most`.
pub(super) fn within(name: &str, value: Option<i32>, default: i32, most: i32) -> Result<i32, ToolError> {
    let value = value.unwrap_or(default);
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(ToolError::Arguments(format!("`{name}` is 1 to {most}, not {value}")))
}

/// Adds the cursor of the next page, if there is one.
pub(super) fn with_next(mut page: Value, token: &str) -> Value {
    if !token.is_empty() {
        page["next"] = token.into();
    }
    page
}
