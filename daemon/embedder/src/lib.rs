//! Embeddings of memories from a server that speaks OpenAI's protocol, such as Ollama, llama.cpp, LM Studio, vLLM,
//! text-embeddings-inference or OpenAI itself.
//!
//! An [`Endpoint`] turns texts into vectors. A [`Worker`] keeps the vectors of a store complete: it asks an [`EmbeddingSource`]
//! for texts without a vector, and gives the vectors back to it. This crate knows neither the store nor the search.
//!
//! Nothing is sent before [`Endpoint::embed`] is called or a worker is started.

mod answer;
mod backoff;
mod client;
mod config;
mod endpoint;
mod error;
mod refusal;
mod source;
mod url;
mod worker;

pub use self::{
    backoff::Backoff,
    config::{EndpointConfig, EndpointConfigError},
    endpoint::Endpoint,
    error::{EndpointError, ServerMessage},
    source::{EmbeddingSource, MissingText, TextVector},
    url::{EndpointUrl, InvalidEndpointUrl},
    worker::{EmbedderProgress, Worker, WorkerState, WorkerWaker},
};

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
mod tests;
