//! `EmbeddingService`: the vectors of memories.

use satchel_core::embeddings::{NewEmbedding, TextWithoutEmbedding};
use satchel_indexer::EmbeddingModel;
use satchel_proto::{
    integers::signed,
    v1::{self, embedding_service_server::EmbeddingService},
};
use satchel_source::chain;
use satchel_store::{MemoryOrder, MemoryQuery, Revision};

use super::{
    ServerState,
    call_state::CallState,
    edit::edit_context,
    request::{check_length, check_required, page_request, service, slice_page},
    status::CallError,
};

#[derive(Clone)]
pub(super) struct EmbeddingHandler(pub(super) ServerState);

service!(EmbeddingService for EmbeddingHandler {
    list_embedding_models: ListEmbeddingModelsRequest => ListEmbeddingModelsResponse = list_models;
    list_missing_embeddings: ListMissingEmbeddingsRequest => ListMissingEmbeddingsResponse = list_missing;
    put_embeddings: PutEmbeddingsRequest => PutEmbeddingsResponse = put;
});

fn list_models(
    state: &CallState,
    mut request: v1::ListEmbeddingModelsRequest,
) -> Result<v1::ListEmbeddingModelsResponse, CallError> {
    let page = page_request!(state, "ListEmbeddingModels", request)?;
    state.check_sees_everything("list the models of vectors")?;
    let models = state.indexer.embedding_models()?;
    let to_wire = |model: EmbeddingModel| {
        Ok(v1::EmbeddingModel {
            name: model.name,
            dimensions: i32::try_from(model.dimension).unwrap_or(i32::MAX),
            vector_count: signed(model.vectors as u64),
        })
    };
    let (models, next_page_token) =
        state.fill(&page, |after, limit| slice_page(&models, after, limit), to_wire)?;
    Ok(v1::ListEmbeddingModelsResponse { models, next_page_token, header: Some(state.header()) })
}

fn list_missing(
    state: &CallState,
    mut request: v1::ListMissingEmbeddingsRequest,
) -> Result<v1::ListMissingEmbeddingsResponse, CallError> {
    let page = page_request!(state, "ListMissingEmbeddings", request)?;
    check_required("model", &request.model)?;
    check_length("model", &request.model)?;
    state.check_sees_everything("list texts without vectors")?;
    let query = MemoryQuery { order: MemoryOrder::IdAscending, ..MemoryQuery::default() };
    let (missing, next_page_token) = state.fill_visible(
        &page,
        |after, rows| Ok(state.store.memories(&query, after, rows, page.revision)?),
        |record| {
            let missing =
                state.imports.embeddings().missing(record, (&request.model, None), page.revision)?;
            Ok(missing.map(|TextWithoutEmbedding { memory: memory_id, content_hash, text }| {
                v1::MissingEmbedding { memory_id, content_hash, text }
            }))
        },
    )?;
    Ok(v1::ListMissingEmbeddingsResponse {
        missing,
        next_page_token,
        header: Some(state.header_at(page.revision)),
    })
}

fn put(
    state: &CallState,
    mut request: v1::PutEmbeddingsRequest,
) -> Result<v1::PutEmbeddingsResponse, CallError> {
    let request_id = std::mem::take(&mut request.request_id);
    let call = edit_context(state.device(), "PutEmbeddings", &request_id, String::new(), &request)?;
    state.check_owner("store vectors")?;
    let v1::PutEmbeddingsRequest { request_id: _, model, embeddings } = request;
    let embeddings: Vec<NewEmbedding> = embeddings
        .into_iter()
        .map(|v1::MemoryEmbedding { memory_id: memory, content_hash, vector }| NewEmbedding {
            memory,
            content_hash,
            vector,
        })
        .collect();
    let stored = state.imports.embeddings().put(&call, &model, &embeddings)?;
    Ok(v1::PutEmbeddingsResponse {
        stored_count: signed(stored.stored),
        unchanged_count: signed(stored.unchanged),
        outdated_memory_ids: stored.outdated,
        header: Some(state.header_at(Revision::new(stored.revision))),
    })
}

/// Returns the vector of the words of a query, and its model.
///
/// # Errors
/// `EMBEDDINGS_OFF`, `EMBEDDINGS_UNAVAILABLE`; `FIELD_INVALID` if there are no words, or the endpoint has another model.
pub(super) fn embed_query(
    state: &CallState,
    model: &str,
    text: &str,
) -> Result<(String, Vec<f32>), CallError> {
    let embedder = state.embedder.as_ref().ok_or(CallError::EmbeddingsOff)?;
    let known = &embedder.config().model;
    if !model.is_empty() && model != known {
        let problem = format!("must be {known:?}, the model of the endpoint, if a query is compared");
        return Err(CallError::invalid_field("meaning.model", problem));
    }
    if text.trim().is_empty() {
        return Err(CallError::invalid_field("query", "must have a word if its meaning is compared"));
    }
    let vector =
        embedder.embed(text).map_err(|error| CallError::EmbeddingsUnavailable { problem: chain(&error) })?;
    Ok((known.clone(), vector))
}
