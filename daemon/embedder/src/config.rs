//! Which server is asked for embeddings, and how.

use std::{
    fs::File,
    io,
    io::Read as _,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use http::HeaderValue;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::url::{EndpointUrl, InvalidEndpointUrl};

/// Most texts in a request.
const MAX_BATCH_SIZE: usize = 256;
/// Longest time for a request, in seconds: a model may have to be loaded first, and a processor is slow.
const MAX_TIMEOUT_SECONDS: u64 = 3_600;
/// Shortest and longest text that is sent, in bytes. The shortest still has a few sentences; the longest times the largest batch
/// is what a request may take in memory.
const TEXT_BYTES: RangeInclusive<usize> = 256..=131_072;
/// Most values of a vector. The largest models have 8,192.
pub(crate) const MAX_DIMENSIONS: usize = 16_384;
/// Longest name of a model, in bytes.
const MAX_MODEL_BYTES: usize = 256;
/// Longest key, in bytes.
const MAX_KEY_BYTES: u64 = 8_192;

/// The settings of an embeddings server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EndpointConfig {
    /// The base address, such as `http://127.0.0.1:11434/v1`.
    pub url: EndpointUrl,
    /// The name of the model, as the server knows it.
    pub model: String,
    /// The number of values of a vector, for models that can shorten theirs; `None`: what the model has.
    #[serde(default)]
    pub dimensions: Option<usize>,
    /// A file with the key that the server asks for.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// Texts in a request.
    #[serde(default = "default_batch_size")]
    pub batch_size: usize,
    /// Time for a request, from the connection to the last byte of the answer.
    #[serde(default = "default_timeout_seconds")]
    pub timeout_seconds: u64,
    /// Longest text that is sent. Of a longer one only the beginning is sent, up to the end of a character.
    #[serde(default = "default_max_text_bytes")]
    pub max_text_bytes: usize,
    /// Whether texts, and the key, may cross the network unencrypted.
    #[serde(default)]
    pub allow_plain_http: bool,
}

/// The reason why an embeddings server cannot be used as configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointConfigError {
    /// Texts would cross the network unencrypted.
    #[error(
        "{0} would get the text of memories unencrypted over the network; use an https address, or set `allow-plain-http = true` if you trust the network"
    )]
    PlainHttp(EndpointUrl),
    /// A value is out of its range.
    #[error("`{key}` of embeddings must be between {min} and {max}, not {value}")]
    OutOfRange {
        /// The name of the setting.
        key: &'static str,
        /// Its smallest value.
        min: u64,
        /// Its largest value.
        max: u64,
        /// What was given.
        value: u64,
    },
    /// The name of the model cannot be one.
    #[error(
        "`model` of embeddings must name a model of the server, such as \"nomic-embed-text\", in at most 256 bytes"
    )]
    Model,
    /// The file with the key cannot be read.
    #[error("the key for embeddings cannot be read from {path:?}; check `api-key-file`")]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file does not have a key.
    #[error("{path:?} must have one line with the key for embeddings and nothing else; check `api-key-file`")]
    Key {
        /// The file.
        path: PathBuf,
    },
    /// The system trusts no certificates, so that no server can be recognised.
    #[error(
        "the certificates that this system trusts cannot be read; install the system's package of CA certificates"
    )]
    Certificates(#[source] io::Error),
    /// The system has no resources for connections.
    #[error("connections to the embeddings server cannot be prepared")]
    Runtime(#[source] io::Error),
}

impl EndpointConfig {
    /// Creates the settings of a server, with all else as in a configuration that does not mention it.
    ///
    /// # Errors
    /// If the address is not one of HTTP.
    pub fn new(url: &str, model: &str) -> Result<Self, InvalidEndpointUrl> {
        Ok(Self {
            url: url.to_owned().try_into()?,
            model: model.to_owned(),
            dimensions: None,
            api_key_file: None,
            batch_size: default_batch_size(),
            timeout_seconds: default_timeout_seconds(),
            max_text_bytes: default_max_text_bytes(),
            allow_plain_http: false,
        })
    }

    /// Checks all values. Reads no file.
    ///
    /// # Errors
    /// The first value that is wrong.
    pub fn check(&self) -> Result<(), EndpointConfigError> {
        if !(self.url.encrypted() || self.url.loopback() || self.allow_plain_http) {
            return Err(EndpointConfigError::PlainHttp(self.url.clone()));
        }
        if self.model.trim().is_empty()
            || self.model.len() > MAX_MODEL_BYTES
            || self.model.contains(char::is_control)
        {
            return Err(EndpointConfigError::Model);
        }
        check_range("dimensions", self.dimensions.unwrap_or(1) as u64, 1, MAX_DIMENSIONS as u64)?;
        check_range("batch-size", self.batch_size as u64, 1, MAX_BATCH_SIZE as u64)?;
        check_range("timeout-seconds", self.timeout_seconds, 1, MAX_TIMEOUT_SECONDS)?;
        let (min, max) = (*TEXT_BYTES.start() as u64, *TEXT_BYTES.end() as u64);
        check_range("max-text-bytes", self.max_text_bytes as u64, min, max)
    }

    /// Returns whether texts are sent to another machine.
    #[must_use]
    pub fn leaves_the_machine(&self) -> bool {
        !self.url.loopback()
    }

    /// Says in one sentence what is sent, and where to.
    #[must_use]
    pub fn disclosure(&self) -> String {
        let (url, bytes) = (&self.url, self.max_text_bytes);
        let what =
            format!("the first {bytes} bytes of each memory's text, and of what is searched by meaning");
        if !self.leaves_the_machine() {
            return format!(
                "{what}, are sent to {url} on this machine; they do not leave it unless that server passes them on"
            );
        }
        let how = if self.url.encrypted() { "encrypted" } else { "unencrypted" };
        format!("{what}, leave this machine: they are sent {how} to {url}")
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }

    /// Reads the key; `None` if the server needs none.
    pub(crate) fn read_key(&self) -> Result<Option<ApiKey>, EndpointConfigError> {
        self.api_key_file.as_deref().map(ApiKey::read).transpose()
    }
}

/// The key that the server asks for. It is shown nowhere.
pub(crate) struct ApiKey {
    text: Zeroizing<String>,
    pub(crate) header: HeaderValue,
}

impl ApiKey {
    fn read(path: &Path) -> Result<Self, EndpointConfigError> {
        let failed = |source| EndpointConfigError::KeyFile { path: path.to_owned(), source };
        let mut content = Zeroizing::new(String::new());
        let file = File::open(path).map_err(failed)?;
        file.take(MAX_KEY_BYTES + 1).read_to_string(&mut content).map_err(failed)?;
        let key = content.trim();
        let header = HeaderValue::from_str(&Zeroizing::new(format!("Bearer {key}")));
        let whole = content.len() as u64 <= MAX_KEY_BYTES;
        match header {
            Ok(mut header) if whole && !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic()) => {
                header.set_sensitive(true);
                Ok(Self { text: Zeroizing::new(key.to_owned()), header })
            }
            Ok(_) | Err(_) => Err(EndpointConfigError::Key { path: path.to_owned() }),
        }
    }

    /// Takes the key out of a text that the server sent.
    pub(crate) fn redact(&self, text: &str) -> String {
        text.replace(self.text.as_str(), "[key]")
    }
}

fn check_range(key: &'static str, value: u64, min: u64, max: u64) -> Result<(), EndpointConfigError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(EndpointConfigError::OutOfRange { key, min, max, value })
}

fn default_batch_size() -> usize {
    32
}

fn default_timeout_seconds() -> u64 {
    60
}

fn default_max_text_bytes() -> usize {
    8_192
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
