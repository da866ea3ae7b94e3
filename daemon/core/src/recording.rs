//! Conversations that programs record as they happen, message by message.
//!
//! A conversation that no import contains has no entry in the provenance ledger: its current version is what was
//! recorded. As soon as an import contains it too, what was recorded is kept there as a contribution that always
//! counts, so that neither a later import nor an undo removes it. Durable when a call returns.

mod append;
mod attribution;
mod exchange;
mod lineage;
mod messages;

use std::sync::Arc;

use satchel_merge::conversation::{ConversationPlan, ConversationReport, ReportedNode};
use satchel_pam::conversation::{Content, ImportMetadata, Role};
use satchel_pam::time::Timestamp;
use satchel_source::CancelToken;
use satchel_store::{Batch, Change, Origin, Store, StoreError};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::attribution::{Attribution, attribution, summary};
pub(crate) use self::exchange::each_recording;
use crate::{
    clock::Clock,
    provenance::{self, ProvenanceError},
    request::{self, RequestError, RequestKey},
    series::{LocalSeries, NewPlace, SeriesKey, SeriesStoreError, payload::Payload},
    write_lock::WriteLock,
};

/// The platform of conversations whose recording program is not named.
pub const LOCAL_PLATFORM: &str = "local";
/// Largest number of messages in one call.
pub const MAX_MESSAGES_PER_CALL: usize = 1_000;
/// Largest message, in bytes of its texts and references.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// Largest number of parts of a message.
pub const MAX_PARTS: usize = 100;
/// Largest number of messages of a conversation to which messages can be appended: each call writes the tree of the
/// conversation anew.
pub const MAX_CONVERSATION_MESSAGES: usize = 10_000;
/// Longest name, title, agent, user, session or memory, in bytes.
pub const MAX_NAME_BYTES: usize = 1_024;
/// Longest id that a caller may give a message, in bytes.
pub const MAX_CLIENT_ID_BYTES: usize = 256;
/// The reason in the history of recorded conversations.
const REASON: &str = "recorded";
/// The name and version in the import metadata of recorded conversations.
const SOFTWARE: &str = concat!("satchel/", env!("CARGO_PKG_VERSION"));

/// The caller, and the request id under which the call can be repeated.
#[derive(Clone, Debug, Default)]
pub struct RecordingContext {
    /// The name of the caller for the history, such as `owner`.
    pub actor: String,
    /// The id of the device that calls; `None` for the owner.
    pub device: Option<String>,
    /// The request id: a repeated request returns the same result.
    pub request: Option<RequestKey>,
}

/// A message to record.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage {
    /// The role of the author.
    pub role: Role,
    /// The content.
    pub content: Content,
    /// When it was written, in microseconds since the Unix epoch; `None` is the time of the call.
    pub created_at: Option<i64>,
    /// The name of the author; may be empty.
    pub name: String,
    /// The model that wrote it; may be empty.
    pub model: String,
    /// The caller's own id; may be empty.
    pub client_id: String,
}

/// A conversation to record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewConversation {
    /// PAM `provider.name`.
    pub platform: String,
    /// The agent that takes part.
    pub agent_id: String,
    /// The user that takes part.
    pub user_id: String,
    /// The session; if empty, one is generated.
    pub session_id: String,
    /// The memory that the caller relates it to; may be empty.
    pub memory_id: String,
    /// The title; may be empty.
    pub title: String,
    /// The messages, each of which answers the one before it.
    pub messages: Vec<NewMessage>,
}

/// The result of a call. It contains no texts, because it is kept for repeated requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The id of the conversation.
    pub conversation: String,
    /// The ids of the messages of the call, in the same order.
    pub messages: Vec<String>,
    /// The revision from which on the result is visible.
    pub revision: u64,
}

/// What a call adds to a conversation.
#[derive(Clone)]
struct RecordedPart {
    conversation: String,
    platform: String,
    import: ImportMetadata,
    report: ConversationReport,
    nodes: Vec<ReportedNode>,
}

/// What a call writes.
#[derive(Default)]
struct RecordingChange {
    changes: Vec<Change>,
    /// For the store's own series.
    part: Option<RecordedPart>,
}

/// The reason why nothing is recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A field is not valid.
    #[error("{field} {problem}")]
    Invalid {
        /// The name of the field.
        field: String,
        /// The problem, as a predicate.
        problem: String,
    },
    /// No visible conversation has this id.
    #[error("there is no conversation {0:?}")]
    NoConversation(String),
    /// The conversation has no such message.
    #[error("there is no message {0:?} in the conversation")]
    NoMessage(String),
    /// Nothing can be appended to the conversation.
    #[error("{problem}")]
    State {
        /// The id of the conversation.
        id: String,
        /// The problem, and what to do about it.
        problem: String,
    },
    /// The conversation would get too long.
    #[error(
        "the conversation has {messages} messages, and would have more than {MAX_CONVERSATION_MESSAGES} with these; record a \
         new conversation with the same session"
    )]
    TooLong {
        /// The number of messages that it has.
        messages: usize,
    },
    /// The request id was already used for a different request.
    #[error("request id {0:?} was used for another request; take a fresh one")]
    RequestReused(String),
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A temporary file could not be read or written.
    #[error("the temporary file for what does not fit into memory cannot be used")]
    Temporary(#[source] std::io::Error),
    /// The store's own series of changes cannot be continued.
    #[error(transparent)]
    Series(SeriesStoreError),
    /// A bug in Satchel.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unencodable {
        /// The value that cannot be encoded or read.
        what: &'static str,
    },
}

impl RecordingError {
    fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), problem: problem.into() }
    }

    fn state(id: &str, problem: impl Into<String>) -> Self {
        Self::State { id: id.to_owned(), problem: problem.into() }
    }
}

impl From<ProvenanceError> for RecordingError {
    fn from(error: ProvenanceError) -> Self {
        match error {
            ProvenanceError::Store(error) => Self::Store(error),
            ProvenanceError::Unreadable { what } => Self::Unencodable { what },
            ProvenanceError::Temporary(error) => Self::Temporary(error),
        }
    }
}

impl From<SeriesStoreError> for RecordingError {
    fn from(error: SeriesStoreError) -> Self {
        match error {
            SeriesStoreError::Store(error) => Self::Store(error),
            error => Self::Series(error),
        }
    }
}

impl From<RequestError> for RecordingError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Reused(id) => Self::RequestReused(id),
            RequestError::Store(error) => Self::Store(error),
            RequestError::Unencodable => Self::Unencodable { what: "the answer to a request" },
        }
    }
}

/// Records conversations. Clones share the store.
#[derive(Clone)]
pub struct Recordings {
    store: Store,
    clock: Arc<dyn Clock>,
    write_lock: Arc<WriteLock>,
    series_key: SeriesKey,
}

impl Recordings {
    pub(crate) fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        write_lock: Arc<WriteLock>,
        series_key: SeriesKey,
    ) -> Self {
        Self { store, clock, write_lock, series_key }
    }

    /// Records a new conversation.
    ///
    /// # Errors
    /// A field that is not valid, or an error of the store.
    pub fn record(
        &self,
        call: &RecordingContext,
        conversation: &NewConversation,
    ) -> Result<Recorded, RecordingError> {
        check_conversation(conversation)?;
        messages::check(&conversation.messages)?;
        self.transact(call, |now| {
            let id = Uuid::new_v4().to_string();
            let chain = messages::chain(&id, None, &conversation.messages, now, &|_| Ok(None))?;
            let report = append::completed(attribution::report_of(conversation), &chain, now, None);
            let part = RecordedPart {
                conversation: id.clone(),
                platform: conversation.platform.clone(),
                import: recorded_at(now),
                report,
                nodes: chain.new,
            };
            let mut change = self.added(part, None, now)?;
            if let Some(device) = &call.device {
                change.changes.push(provenance::recorder_change(&id, device)?);
            }
            Ok((Recorded { conversation: id, messages: chain.ids, revision: 0 }, change))
        })
    }

    /// Returns whether the device `device` has recorded the conversation `id`.
    ///
    /// # Errors
    /// The ledger cannot be read.
    pub fn recorded_by(&self, id: &str, device: &str) -> Result<bool, RecordingError> {
        Ok(provenance::recorder(&self.store, id)?.is_some_and(|recorder| recorder == device))
    }

    /// Runs one call under the write lock and commits its changes together with its result. A request that was already
    /// answered returns the same result.
    fn transact(
        &self,
        call: &RecordingContext,
        work: impl FnOnce(i64) -> Result<(Recorded, RecordingChange), RecordingError>,
    ) -> Result<Recorded, RecordingError> {
        let _guard = self.write_lock.lock(&CancelToken::new());
        let now = self.clock.now_micros();
        if let Some(done) = request::answered(&self.store, call.request.as_ref(), now)? {
            return Ok(done);
        }
        let (mut recorded, RecordingChange { mut changes, part }) = work(now)?;
        let raises = u64::from(changes.iter().any(|change| matches!(change, Change::Conversation(_))));
        recorded.revision = self.store.revision().get() + raises;
        // In the same commit: a request that is repeated after a crash gets the same result.
        changes.extend(request::entries(&self.store, call.request.as_ref(), now, &recorded)?);
        if let (Some(part), Some(mut series)) = (part, LocalSeries::load(&self.store, &self.series_key)?) {
            series.append(&Payload::Recording(Box::new(part.into_payload()?)), NewPlace::Inline)?;
            let (continued, applied) = series.into_changes(&self.store)?;
            changes.extend(continued.into_iter().chain(applied));
        }
        if !changes.is_empty() {
            let origin =
                Origin { import: None, actor: call.actor.clone(), reason: REASON.to_owned(), at_micros: now };
            self.store.commit(Batch { origin, changes })?;
            satchel_failpoints::reached("recording stored");
        }
        Ok(recorded)
    }
}

fn recorded_at(now: i64) -> ImportMetadata {
    ImportMetadata {
        importer: Some(SOFTWARE.to_owned()),
        imported_at: Some(Timestamp::saturating(now)),
        ..ImportMetadata::default()
    }
}

fn check_conversation(conversation: &NewConversation) -> Result<(), RecordingError> {
    let NewConversation { platform, agent_id, user_id, session_id, memory_id, title, messages: _ } =
        conversation;
    let valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if !(2..=32).contains(&platform.len()) || !platform.bytes().all(valid) {
        return Err(RecordingError::invalid("platform", "must have the form [a-z0-9_-]{2,32}"));
    }
    for (field, text) in [("agent_id", agent_id), ("user_id", user_id)] {
        if text.is_empty() {
            return Err(RecordingError::invalid(field, "must not be empty"));
        }
    }
    for (field, text) in [
        ("agent_id", agent_id),
        ("user_id", user_id),
        ("session_id", session_id),
        ("memory_id", memory_id),
        ("title", title),
    ] {
        check_length(field, text, MAX_NAME_BYTES)?;
    }
    Ok(())
}

fn check_length(field: &str, text: &str, limit: usize) -> Result<(), RecordingError> {
    if text.len() > limit {
        return Err(RecordingError::invalid(field, format!("is longer than {limit} bytes")));
    }
    Ok(())
}

/// The error for a stored message that cannot be decoded, or a new one that cannot be encoded.
fn unencodable() -> RecordingError {
    RecordingError::Unencodable { what: "a message" }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
