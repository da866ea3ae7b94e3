//! Why a server gave no embeddings.

use std::{error::Error, fmt, time::Duration};

/// Longest part of a server's message that is shown, in characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// Why a server gave no embeddings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// There is no connection.
    #[error("the embeddings server {url} cannot be reached; check that it runs and that `url` is right")]
    Unreachable {
        /// The address of the server.
        url: String,
        /// Why not.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The connection ended before the answer was complete.
    #[error(
        "the connection to the embeddings server {url} broke; look into the log of that server if this goes on"
    )]
    Interrupted {
        /// The address of the server.
        url: String,
        /// How it ended.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer took too long.
    #[error(
        "the embeddings server {url} gave no answer within {} s; if it is slow, raise `timeout-seconds` or lower `batch-size`",
        after.as_secs()
    )]
    TimedOut {
        /// The address of the server.
        url: String,
        /// The time that it had.
        after: Duration,
    },
    /// The server wants fewer requests.
    #[error(
        "the embeddings server limits requests (HTTP 429{message}); it is tried again later; check your quota there if this goes on"
    )]
    RateLimited {
        /// How long it asks to wait.
        retry_after: Option<Duration>,
        /// What it says.
        message: ServerMessage,
    },
    /// A text, or all of them together, is too long for the model.
    #[error(
        "the texts are too long for the embeddings server (HTTP {status}{message}); lower `max-text-bytes` or `batch-size`"
    )]
    TooLarge {
        /// The HTTP status.
        status: u16,
        /// What the server says.
        message: ServerMessage,
    },
    /// The server answered with an error.
    #[error("the embeddings server answered with an error (HTTP {status}{message}); {}", remedy(*status))]
    Status {
        /// The HTTP status.
        status: u16,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
        /// What it says.
        message: ServerMessage,
    },
    /// The server names another address, which might belong to somebody else.
    #[error(
        "the embeddings server redirects to another address (HTTP {status}{location}), which is not followed; set `url` to the right address if you trust it"
    )]
    Redirect {
        /// The HTTP status.
        status: u16,
        /// The other address.
        location: ServerMessage,
    },
    /// The answer does not fit into the memory that it may take.
    #[error(
        "the answer of the embeddings server is larger than {limit} bytes; check that `url` is the address of an embeddings server"
    )]
    AnswerTooLarge {
        /// The largest answer for so many texts.
        limit: usize,
    },
    /// The answer is not one of the protocol.
    #[error(
        "the answer of the embeddings server cannot be read{reason}; check that `url` is the address of an OpenAI-compatible API"
    )]
    Malformed {
        /// What is wrong with it.
        reason: ServerMessage,
    },
    /// There is not one vector for each text.
    #[error(
        "the embeddings server returned {actual} vectors for {expected} texts; check that `model` is an embedding model"
    )]
    WrongCount {
        /// The number of texts.
        expected: usize,
        /// The number of vectors.
        actual: usize,
    },
    /// Vectors of different lengths cannot be compared.
    #[error(
        "the embeddings server returned vectors with {actual} instead of {expected} values; check `dimensions`, and whether the model was replaced by another one"
    )]
    WrongDimension {
        /// The number of values that all vectors must have.
        expected: usize,
        /// What one has.
        actual: usize,
    },
    /// A vector cannot be compared with others.
    #[error("the embeddings server returned a vector {problem}; the text is left out, or try another model")]
    UnusableVector {
        /// What is wrong with it, such as "of zeros".
        problem: &'static str,
    },
    /// The caller does not want an answer any more.
    #[error("the request for embeddings was stopped")]
    Stopped,
}

impl EndpointError {
    /// Returns whether the same request may succeed later although nothing was changed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Interrupted { .. } | Self::TimedOut { .. } => true,
            Self::RateLimited { .. } => true,
            // 501 says that the server will never do it.
            Self::Status { status, .. } => matches!(status, 408 | 425 | 500 | 502..=599),
            Self::TooLarge { .. } | Self::Redirect { .. } | Self::AnswerTooLarge { .. } => false,
            Self::Malformed { .. } | Self::WrongCount { .. } | Self::WrongDimension { .. } => false,
            Self::UnusableVector { .. } | Self::Stopped => false,
        }
    }

    /// Returns how long the server asks to wait before the next request.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns whether one of the texts may be the reason, so that others can succeed without it.
    pub(crate) fn may_be_about_texts(&self) -> bool {
        match self {
            Self::TooLarge { .. } | Self::UnusableVector { .. } => true,
            Self::Malformed { .. } | Self::WrongCount { .. } | Self::AnswerTooLarge { .. } => true,
            // Some texts make servers crash, hang or give up.
            Self::Interrupted { .. } | Self::TimedOut { .. } => true,
            Self::Status { status, .. } => matches!(status, 400 | 422 | 500),
            Self::Unreachable { .. } | Self::RateLimited { .. } | Self::Redirect { .. } => false,
            Self::WrongDimension { .. } | Self::Stopped => false,
        }
    }
}

/// Returns what a person can do about a status.
fn remedy(status: u16) -> &'static str {
    match status {
        401..=403 => "check that the file named by `api-key-file` has a key that may use this model",
        404 | 405 | 501 => "check `url` and `model`, and whether the server has that model",
        400 | 422 => "check `model` and `dimensions`, or lower `max-text-bytes`",
        408 | 425 | 500..=599 => "it is tried again later; look into the log of that server if this goes on",
        _ => "check `url` and `model`",
    }
}

/// Text from a server for a person: one line, shortened, without control characters. It is shown after a colon, or not at all if
/// it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerMessage(String);

impl ServerMessage {
    pub(crate) fn new(text: &str) -> Self {
        let shown = |c: &char| !changes_display(*c);
        let words = text.split(|c: char| c.is_whitespace() || c.is_control());
        let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let mut chars = line.chars().filter(shown);
        let mut short: String = chars.by_ref().take(MAX_MESSAGE_CHARS).collect();
        if chars.next().is_some() {
            short.push('…');
        }
        Self(short)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Characters without a shape of their own that reorder, hide or join what is around them.
fn changes_display(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

impl fmt::Display for ServerMessage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(formatter, ": {}", self.0) }
    }
}

/// Returns an error and its causes in one line.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = ServerMessage::new(&error.to_string());
        // Some libraries repeat the cause in their own text.
        if !text.ends_with(part.as_str()) {
            text.push_str(": ");
            text.push_str(part.as_str());
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_short_line() {
        let message = ServerMessage::new(" two\nlines\u{1b}[31m\t\u{202e}x ");
        assert_eq!(message.to_string(), ": two lines [31m x");
        assert_eq!(ServerMessage::new(" \n").to_string(), "");
        let long = ServerMessage::new(&"é".repeat(1_000));
        assert_eq!(long.as_str().chars().count(), MAX_MESSAGE_CHARS + 1);
    }

    #[test]
    fn each_status_has_a_remedy() {
        for status in 200..600 {
            let message = ServerMessage::default();
            let error = EndpointError::Status { status, retry_after: None, message };
            assert_eq!(error.is_transient(), matches!(status, 408 | 425 | 500 | 502..=599), "{status}");
            let text = error.to_string();
            assert!(text.contains("check") || text.contains("look into"), "{text}");
        }
    }
}
