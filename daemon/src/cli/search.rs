//! `search`: finds memories, messages and conversations by their words.

pub(super) mod render;

use std::future::Future;

use satchel_proto::{
    integers::unsigned,
    v1::{SearchMeaning, SearchRequest, SearchResponse, search_meaning::Source},
};
use tonic::{Response, Status};
use tonic_types::StatusExt as _;

use super::{
    Context,
    args::{SearchArgs, SearchKindArg},
    client::DaemonClient,
    error::CliError,
    exit::Exit,
    json::search::{SearchHit, SearchResults, SearchSuggestion},
    memories,
};

/// Hits per request; the most that the daemon returns.
const MAX_PAGE_SIZE: u32 = 1_000;
/// The reason of an error for a query that cannot be understood.
pub(super) const QUERY_INVALID: &str = "QUERY_INVALID";
/// The reason of an error while the index has not everything.
pub(super) const INDEX_BEHIND: &str = "INDEX_BEHIND";

/// Runs the command.
///
/// # Errors
/// Returns the errors of the daemon, among them that the query cannot be understood.
pub(crate) async fn run(
    context: &mut Context,
    client: &DaemonClient,
    args: &SearchArgs,
) -> Result<Exit, CliError> {
    if args.revision.is_some() && !matches!(args.kind, SearchKindArg::All | SearchKindArg::Memories) {
        let problem = "--revision finds memories only: leave --in out, or use --in memories";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let query = args.query.join(" ");
    let meaning = meaning(client, args).await?;
    let by_meaning = meaning.is_some();
    let request = SearchRequest {
        meaning,
        query: query.clone(),
        kinds: args.kind.to_wire().into_iter().map(Into::into).collect(),
        include_hidden: args.hidden,
        group_by_conversation: !args.every,
        explain: args.explain,
        time_zone: context.calendar.zone.iana_name().unwrap_or_default().to_owned(),
        wait_until_current: !args.no_wait,
        as_of_revision: args.revision,
        ..SearchRequest::default()
    };
    let found = fetch(context, client, request, args.limit).await?;
    let more = !found.next_page_token.is_empty();
    if context.out.json {
        let header = found.header.unwrap_or_default();
        context.out.json(&SearchResults {
            hits: found.hits.iter().map(SearchHit::new).collect(),
            total: unsigned(found.total),
            more,
            strict_total: unsigned(found.strict_total),
            suggestions: found.suggestions.iter().map(SearchSuggestion::new).collect(),
            revision: unsigned(header.revision),
            store_id: &header.store_id,
        })?;
        return Ok(Exit::Done);
    }
    let text = render::hits(&found.hits, by_meaning, args.revision, &context.calendar, context.out.style);
    context.out.print_paged(&text)?;
    for line in render::footer(&found, &query, more) {
        context.out.note(&line);
    }
    Ok(Exit::Done)
}

/// Returns what the meaning of memories is compared with.
async fn meaning(client: &DaemonClient, args: &SearchArgs) -> Result<Option<SearchMeaning>, CliError> {
    match &args.similar_to {
        Some(memory) => {
            let source = Source::MemoryId(memories::resolve(client, memory).await?);
            Ok(Some(SearchMeaning { model: String::new(), source: Some(source) }))
        }
        None => Ok(args.meaning.then(by_query)),
    }
}

/// The meaning of the query, by the endpoint of the configuration.
pub(super) fn by_query() -> SearchMeaning {
    SearchMeaning { model: String::new(), source: Some(Source::Query(true)) }
}

/// Returns the first `limit` hits in one response.
async fn fetch(
    context: &mut Context,
    client: &DaemonClient,
    mut request: SearchRequest,
    limit: u32,
) -> Result<SearchResponse, CliError> {
    let mut found = SearchResponse::default();
    loop {
        let missing = limit.saturating_sub(u32::try_from(found.hits.len()).unwrap_or(u32::MAX));
        request.page_size = i32::try_from(missing.min(MAX_PAGE_SIZE)).unwrap_or(i32::MAX);
        let page = search(context, client, &request).await?;
        let first = request.page_token.is_empty();
        request.page_token.clone_from(&page.next_page_token);
        if first {
            found = page;
        } else {
            found.hits.extend(page.hits);
            found.next_page_token = page.next_page_token;
        }
        if found.next_page_token.is_empty() || found.hits.len() >= limit as usize {
            return Ok(found);
        }
    }
}

async fn search(
    context: &Context,
    client: &DaemonClient,
    request: &SearchRequest,
) -> Result<SearchResponse, CliError> {
    let call = || {
        let (mut service, request) = (client.search(), request.clone());
        async move { service.search(request).await }
    };
    when_indexed(context, &request.query, call).await
}

/// Makes a request for a query, and repeats it while the index has not everything, with a line that says how far it is.
///
/// # Errors
/// Returns the errors of the daemon; that for a query that cannot be understood shows where.
pub(super) async fn when_indexed<T, F>(
    context: &Context,
    query: &str,
    call: impl Fn() -> F,
) -> Result<T, CliError>
where
    F: Future<Output = Result<Response<T>, Status>>,
{
    let spinner = context.out.spinner("searching");
    loop {
        let status = match call().await {
            Ok(page) => {
                spinner.finish_and_clear();
                return Ok(page.into_inner());
            }
            Err(status) => status,
        };
        let info = status.get_details_error_info();
        let Some(behind) = info.as_ref().filter(|info| info.reason == INDEX_BEHIND) else {
            spinner.finish_and_clear();
            let wrong = info.as_ref().filter(|info| info.reason == QUERY_INVALID);
            let marked = wrong.and_then(|info| render::marked_query(query, &info.metadata));
            return Err(marked.map_or_else(
                || status.clone().into(),
                |marked| CliError::Usage(format!("{}\n{marked}", status.message())),
            ));
        };
        let at = |name| behind.metadata.get(name).map_or("?", String::as_str);
        spinner.set_message(format!(
            "the search index is being built: {} of {} revisions",
            at("revision"),
            at("wanted")
        ));
    }
}
