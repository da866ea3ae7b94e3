//! A server that turns texts into vectors.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use http::StatusCode;
use serde::Serialize;

use crate::{
    answer::{self, Parsed},
    client::{HttpAnswer, HttpClient, StopSignal},
    config::{ApiKey, EndpointConfig, EndpointConfigError, MAX_DIMENSIONS},
    error::{EndpointError, ServerMessage},
    refusal,
};

/// Bytes of one value in an answer, with its separator and white space: a double has up to 24 digits and signs.
const MAX_VALUE_BYTES: usize = 32;
/// Bytes of an answer around its vectors.
const MAX_FRAME_BYTES: usize = 1 << 16;

/// A server that turns texts into vectors. Clones share its connections.
#[derive(Clone)]
pub struct Endpoint(Arc<Inner>);

struct Inner {
    config: EndpointConfig,
    client: HttpClient,
    key: Option<ApiKey>,
    /// The number of values that all vectors have: the configured one, or what the first answer had.
    dimension: OnceLock<usize>,
}

/// A request (OpenAI API reference, "Create embeddings").
#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: &'a [&'a str],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

impl Endpoint {
    /// Prepares requests to a server. Reads the file with the key, but connects to nothing yet.
    ///
    /// # Errors
    /// If a value of the configuration is wrong, or the key or the system's certificates cannot be read.
    pub fn new(config: EndpointConfig) -> Result<Self, EndpointConfigError> {
        config.check()?;
        let key = config.read_key()?;
        let client = HttpClient::new(&config, key.as_ref())?;
        let dimension = config.dimensions.map(OnceLock::from).unwrap_or_default();
        Ok(Self(Arc::new(Inner { config, client, key, dimension })))
    }

    /// Returns the settings.
    #[must_use]
    pub fn config(&self) -> &EndpointConfig {
        &self.0.config
    }

    /// Returns the number of values of a vector; `None` before the first answer, unless it is configured.
    #[must_use]
    pub fn dimension(&self) -> Option<usize> {
        self.0.dimension.get().copied()
    }

    /// Returns the vector of each text, in the order of the texts: as many requests as `batch_size` asks for, one after another.
    /// Of a text longer than `max_text_bytes` only the beginning is embedded.
    ///
    /// Blocks until all are there. A thread that runs futures must not call this, but may have `spawn_blocking` do so.
    ///
    /// # Errors
    /// If a request fails, or a vector is not finite, only has zeros, or has another number of values than those before.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EndpointError> {
        self.embed_unless_stopped(texts, &StopSignal::never())
    }

    /// Does so unless there is a stop, which ends the wait for an answer at once.
    pub(crate) fn embed_unless_stopped(
        &self,
        texts: &[&str],
        stop: &StopSignal,
    ) -> Result<Vec<Vec<f32>>, EndpointError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(self.0.config.batch_size) {
            vectors.extend(self.embed_batch(batch, stop)?);
        }
        Ok(vectors)
    }

    fn embed_batch(&self, texts: &[&str], stop: &StopSignal) -> Result<Vec<Vec<f32>>, EndpointError> {
        let limit = MAX_FRAME_BYTES + texts.len() * MAX_DIMENSIONS * MAX_VALUE_BYTES;
        let answer = self.0.client.post(self.request(texts), limit, stop)?;
        if answer.status != StatusCode::OK {
            return Err(self.refusal(&answer));
        }
        match answer::parse(&answer.body, texts.len()) {
            Ok(Parsed::Vectors(vectors)) => self.check_dimension(vectors),
            Ok(Parsed::Error) => Err(self.refusal(&answer)),
            Err(EndpointError::Malformed { reason }) => {
                Err(EndpointError::Malformed { reason: ServerMessage::new(&self.redact(reason.as_str())) })
            }
            Err(error) => Err(error),
        }
    }

    fn request(&self, texts: &[&str]) -> Vec<u8> {
        let config = &self.0.config;
        let input: Vec<&str> = texts.iter().map(|text| cut(text, config.max_text_bytes)).collect();
        let request = EmbeddingRequest {
            model: &config.model,
            input: &input,
            encoding_format: "float",
            dimensions: config.dimensions,
        };
        serde_json::to_vec(&request).expect("strings and numbers can always be written")
    }

    fn refusal(&self, answer: &HttpAnswer) -> EndpointError {
        refusal::error(answer.status, &answer.headers, &answer.body, |text| self.redact(text))
    }

    fn redact(&self, text: &str) -> String {
        self.0.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text))
    }

    fn check_dimension(&self, vectors: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>, EndpointError> {
        let Some(actual) = vectors.first().map(Vec::len) else { return Ok(vectors) };
        let expected = *self.0.dimension.get_or_init(|| actual);
        if actual == expected { Ok(vectors) } else { Err(EndpointError::WrongDimension { expected, actual }) }
    }
}

/// The key is not shown.
impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { config, client: _, key: _, dimension } = &*self.0;
        let mut shown = formatter.debug_struct("Endpoint");
        shown.field("config", config).field("dimension", &dimension.get()).finish()
    }
}

/// Returns the beginning of a text, up to the end of a character.
fn cut(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}
