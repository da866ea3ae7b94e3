//! Carries out what the screen asks for, by requests to the daemon.

use std::time::Duration;

use satchel_proto::{
    integers::unsigned,
    v1::{
        ConversationFilter, GetConversationRequest, GetMemoryRequest, ListConversationsRequest,
        ListMemoriesRequest, MemoryFilter, MemoryOrder, MemoryView, MessageSelection, SearchFacetField,
        SearchHitKind, SearchRequest,
    },
};
use tonic::Status;
use tonic_types::StatusExt as _;

use super::{
    hits::{Hit, RecordKey, Target},
    record::{ConversationRecord, MemoryRecord, Record},
    state::{Event, Filters, Found, SearchError, SearchJob, SearchStage, WrongQuery},
};
use crate::cli::{
    args::SearchKindArg,
    client::DaemonClient,
    conversations,
    error::CliError,
    search::{INDEX_BEHIND, QUERY_INVALID, render::corrected},
    text,
    time::Calendar,
};

/// Rows per request: a few screens.
const PAGE_SIZE: i32 = 100;
/// How long a key has to be the last one before a search begins. Fast typing has shorter gaps.
const TYPED_DELAY: Duration = Duration::from_millis(40);
/// How long a row has to stay selected before its record is loaded. A key that is held down repeats faster.
const PREVIEW_DELAY: Duration = Duration::from_millis(80);
/// How long nothing has to be typed before the index is asked again for what was stored meanwhile.
const CURRENT_DELAY: Duration = Duration::from_millis(300);
/// Finds every message, to count platforms without a query.
const ALL_MESSAGES: &str = "in:messages";
/// Finds every memory.
const ALL_MEMORIES: &str = "in:memories";

/// Fetches rows.
pub(super) async fn search(client: &DaemonClient, calendar: &Calendar, job: SearchJob) -> Event {
    match job.stage {
        SearchStage::Immediate => {}
        SearchStage::Typed => tokio::time::sleep(TYPED_DELAY).await,
        SearchStage::Current => tokio::time::sleep(CURRENT_DELAY).await,
    }
    let found = if !job.query.is_empty() {
        search_index(client, calendar, &job).await
    } else if job.filters.kind == SearchKindArg::Memories {
        newest_memories(client, calendar, &job).await.map_err(|error| SearchError::Other(explain(&error)))
    } else {
        newest_conversations(client, calendar, &job)
            .await
            .map_err(|error| SearchError::Other(explain(&error)))
    };
    Event::Found(job, found)
}

async fn search_index(
    client: &DaemonClient,
    calendar: &Calendar,
    job: &SearchJob,
) -> Result<Found, SearchError> {
    let (query, before) = filtered(&job.query, &job.filters);
    let request = SearchRequest {
        page_size: PAGE_SIZE,
        page_token: job.page_token.clone(),
        group_by_conversation: true,
        wait_until_current: job.stage == SearchStage::Current,
        ..request(query, &job.filters, calendar)
    };
    let answer = client.search().search(request).await;
    let mut answer = answer.map_err(|status| search_error(&status, before))?.into_inner();
    // The suggestions are about the query as it was typed.
    let typed = i32::try_from(before).unwrap_or(i32::MAX);
    answer.suggestions.retain(|suggestion| suggestion.start >= typed);
    for suggestion in &mut answer.suggestions {
        (suggestion.start, suggestion.end) = (suggestion.start - typed, suggestion.end - typed);
    }
    Ok(Found {
        hits: answer.hits.iter().map(|hit| Hit::found(hit, calendar)).collect(),
        suggestion: corrected(&answer, &job.query),
        next: answer.next_page_token,
        total: Some(unsigned(answer.total)),
        revision: answer.header.map_or(0, |header| header.revision),
    })
}

fn request(query: String, filters: &Filters, calendar: &Calendar) -> SearchRequest {
    SearchRequest {
        query,
        kinds: filters.kind.to_wire().into_iter().map(Into::into).collect(),
        include_hidden: filters.hidden,
        time_zone: calendar.zone.iana_name().unwrap_or_default().to_owned(),
        ..SearchRequest::default()
    }
}

/// Returns the query with the chosen platform, and the length of what was put before it.
fn filtered(query: &str, filters: &Filters) -> (String, usize) {
    let before = filters.platform.as_ref().map(|platform| format!("platform:{platform} "));
    let before = before.unwrap_or_default();
    (format!("{before}{query}"), before.len())
}

/// Explains why a search failed; `before` bytes of the query were not typed.
fn search_error(status: &Status, before: usize) -> SearchError {
    let Some(info) = status.get_details_error_info() else {
        return SearchError::Other(explain(&status.clone().into()));
    };
    let at = |name| info.metadata.get(name).and_then(|number| number.parse::<usize>().ok());
    match (info.reason.as_str(), at("start"), at("end")) {
        (INDEX_BEHIND, ..) => SearchError::Behind,
        (QUERY_INVALID, Some(start), Some(end)) => SearchError::Query(WrongQuery {
            message: text::one_line(status.message()),
            start: start.saturating_sub(before),
            end: end.saturating_sub(before),
        }),
        _ => SearchError::Other(explain(&status.clone().into())),
    }
}

async fn newest_conversations(
    client: &DaemonClient,
    calendar: &Calendar,
    job: &SearchJob,
) -> Result<Found, CliError> {
    let platforms = job.filters.platform.iter().cloned().collect();
    let request = ListConversationsRequest {
        page_size: PAGE_SIZE,
        page_token: job.page_token.clone(),
        filter: Some(ConversationFilter { platforms, ..ConversationFilter::default() }),
    };
    let answer = client.conversations().list_conversations(request).await?.into_inner();
    let hits = answer.conversations.iter().map(|one| Hit::conversation(one, calendar)).collect();
    Ok(Found { hits, next: answer.next_page_token, ..Found::default() })
}

async fn newest_memories(
    client: &DaemonClient,
    calendar: &Calendar,
    job: &SearchJob,
) -> Result<Found, CliError> {
    let platforms = job.filters.platform.iter().cloned().collect();
    let request = ListMemoriesRequest {
        page_size: PAGE_SIZE,
        page_token: job.page_token.clone(),
        filter: Some(MemoryFilter { platforms, ..MemoryFilter::default() }),
        order: MemoryOrder::UpdatedDesc.into(),
        view: MemoryView::Basic.into(),
        as_of_revision: None,
    };
    let answer = client.memories().list_memories(request).await?.into_inner();
    let hits = answer.memories.iter().map(|one| Hit::memory(one, calendar)).collect();
    Ok(Found { hits, next: answer.next_page_token, ..Found::default() })
}

/// Counts the platforms of what a query finds.
pub(super) async fn count_platforms(
    client: &DaemonClient,
    calendar: &Calendar,
    query: String,
    filters: Filters,
) -> Event {
    let query = match (query.trim(), filters.kind) {
        ("", SearchKindArg::Memories) => ALL_MEMORIES.to_owned(),
        ("", _) => ALL_MESSAGES.to_owned(),
        (query, _) => query.to_owned(),
    };
    let facets = vec![SearchFacetField::Platform.into()];
    // Titles are counted with the messages of their conversations if nothing is looked for.
    let kinds = if query == ALL_MESSAGES { vec![SearchHitKind::Message.into()] } else { Vec::new() };
    let mut request = SearchRequest { facets, page_size: 1, ..request(query, &filters, calendar) };
    if !kinds.is_empty() {
        request.kinds = kinds;
    }
    let counts = match client.search().search(request).await {
        Ok(answer) => {
            let facets = answer.into_inner().facets.into_iter().flat_map(|facet| facet.counts);
            Ok(facets.map(|count| (count.value, unsigned(count.count))).collect())
        }
        Err(status) => Err(explain(&status.into())),
    };
    Event::Platforms(counts)
}

/// Fetches a record to read it.
pub(super) async fn load(client: &DaemonClient, serial: u64, target: Target, delayed: bool) -> Event {
    if delayed {
        tokio::time::sleep(PREVIEW_DELAY).await;
    }
    Event::Loaded(serial, fetch_record(client, &target).await.map_err(|error| explain(&error)))
}

/// Fetches a record with everything that is shown of it.
pub(super) async fn fetch_record(client: &DaemonClient, target: &Target) -> Result<Record, CliError> {
    match &target.key {
        RecordKey::Conversation(id) => {
            let request = GetConversationRequest { id: id.clone(), as_of_revision: None };
            let answer = client.conversations().get_conversation(request).await?.into_inner();
            let tree = conversations::messages(client, id, MessageSelection::Tree, false).await?;
            let conversation = answer.conversation.unwrap_or_default();
            let record = ConversationRecord::new(conversation, tree, target.message.as_deref());
            Ok(Record::Conversation(Box::new(record)))
        }
        RecordKey::Memory(id) => {
            let view = MemoryView::PamJson.into();
            let request = GetMemoryRequest { id: id.clone(), view, as_of_revision: None };
            let answer = client.memories().get_memory(request).await?.into_inner();
            let memory = answer.memory.unwrap_or_default();
            Ok(Record::Memory(Box::new(MemoryRecord { memory, untrusted: answer.stranger })))
        }
    }
}

/// Returns what went wrong and what to do, on one line.
pub(super) fn explain(error: &CliError) -> String {
    let mut text = text::one_line(&error.to_string());
    let mut source = std::error::Error::source(error);
    // What the daemon refused is said by its message; of files, only the cause says why.
    while let (Some(cause), CliError::File { .. }) = (source, error) {
        text::append(&mut text, format_args!(": {}", text::one_line(&cause.to_string())));
        source = cause.source();
    }
    if let Some(remedy) = error.remedy() {
        text::append(&mut text, format_args!("; {}", text::one_line(&remedy)));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic::Code;
    use tonic_types::ErrorDetails;

    use super::*;

    #[test]
    fn the_place_of_an_error_is_that_in_what_was_typed() {
        let filters =
            Filters { kind: SearchKindArg::All, hidden: false, platform: Some("claude".to_owned()) };
        let (query, before) = filtered("bees role:x", &filters);
        assert_eq!((query.as_str(), before), ("platform:claude bees role:x", 16));
        let place = [("start".to_owned(), "21".to_owned()), ("end".to_owned(), "27".to_owned())];
        let details = ErrorDetails::with_error_info(QUERY_INVALID, "satchel", HashMap::from(place));
        let status = Status::with_error_details(Code::InvalidArgument, "no role \u{1b} x", details);
        let SearchError::Query(wrong) = search_error(&status, before) else { unreachable!("it has a place") };
        assert_eq!((wrong.start, wrong.end), (5, 11));
        assert_eq!(wrong.message, "no role \\u{1b} x");
        let other = search_error(&Status::unavailable("gone"), 0);
        assert!(matches!(other, SearchError::Other(_)), "{other:?}");
    }
}
