//! The one place where a refusal becomes a gRPC status.
//!
//! **Invariant:** `proto/README.md` lists exactly the reasons of [`Reason`], with their codes
//! (`the_readme_lists_every_reason`).

mod hand;
mod reason;
mod rooms;

use std::{collections::HashMap, error::Error, time::Duration};

use satchel_store::StoreError;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tracing::error;

pub use self::reason::{Kind, Reason};
use super::page::TokenError;
use satchel_core::clock::ClockError;

/// `ErrorInfo.domain` of all our errors.
pub const DOMAIN: &str = "satchel.local";
/// When a client may try again after a full disk or a stop.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Why a call is refused.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A field of the request does not hold.
    #[error("{field} {problem}")]
    Field { field: String, problem: String },
    /// The page token does not open.
    #[error("page_token {0}")]
    PageToken(#[from] TokenError),
    /// Nothing has this id.
    #[error("there is no {} {id:?}", kind.word())]
    Missing { kind: Kind, id: String },
    /// An import is not in the state that the call needs.
    #[error("{problem}")]
    ImportState { id: String, problem: String },
    /// A memory, relation or change is not in the state that the call needs.
    #[error("{problem}")]
    MemoryState { id: String, problem: String },
    /// PAM does not let a status go that way.
    #[error("{problem}")]
    Transition { id: String, problem: String },
    /// Somebody changed the memory meanwhile.
    #[error("{problem}")]
    Etag { current: String, problem: String },
    /// A bulk change would change another number of memories.
    #[error("{problem}")]
    Matched { matched: u64, problem: String },
    /// The request id came with other fields.
    #[error("request_id {problem}")]
    RequestReused { problem: String },
    /// An export would overwrite something.
    #[error("{path:?} exists and is not an empty folder; choose another output")]
    OutputExists { path: String },
    /// The file system does not let an export be written.
    #[error("cannot write to {path:?}: {problem}")]
    OutputRefused { path: String, problem: String },
    /// A folder cannot be watched, or not be let go.
    #[error("{problem}")]
    SourceRefused { path: String, problem: String },
    /// The bundle of an export is not where it was written, or not what was written.
    #[error("the bundle is no longer at {path:?}; export again")]
    BundleGone { path: String },
    /// A bundle cannot be checked.
    #[error("{problem}")]
    BundleUnreadable { path: String, problem: String },
    /// A download begins after the end.
    #[error("offset {offset} lies behind the end, at {size}")]
    OffsetPastEnd { offset: u64, size: u64 },
    /// The caller is another user.
    #[error("this socket serves only its owner's processes")]
    NotOwner,
    /// The clock of the machine.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The bytes of a call are no request.
    #[error("the request is not the protobuf message that this method takes")]
    Malformed,
    /// The key that signs exports is damaged or gone.
    #[error("{problem}")]
    SigningKey { path: String, problem: String },
    /// As much waits already as may wait.
    #[error("{0}")]
    Busy(String),
    /// No room on the disk.
    #[error("no space left on the disk; free some and try again")]
    DiskFull,
    /// The call took too long.
    #[error("no answer within {seconds} s; ask for less, or set a deadline of your own")]
    Deadline { seconds: u64 },
    /// The daemon is about to stop.
    #[error("the daemon is stopping")]
    ShuttingDown,
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A mistake of ours; the cause goes to the log only.
    #[error("an error that should not be; the daemon's log has it under this call's x-request-id")]
    Internal(#[source] Box<dyn Error + Send + Sync>),
}

impl Fault {
    /// Makes a [`Fault::Field`].
    pub fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { field: field.into(), problem: problem.into() }
    }

    /// Makes a [`Fault::Missing`].
    pub fn missing(kind: Kind, id: impl Into<String>) -> Self {
        Self::Missing { kind, id: id.into() }
    }

    /// Makes a [`Fault::Internal`].
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Internal(cause.into())
    }

    fn reason(&self) -> Reason {
        match self {
            Self::Field { .. } => Reason::FieldInvalid,
            Self::PageToken(_) => Reason::PageTokenInvalid,
            Self::Missing { kind, .. } => kind.reason(),
            Self::ImportState { .. } => Reason::ImportState,
            Self::MemoryState { .. } => Reason::MemoryState,
            Self::Transition { .. } => Reason::IllegalTransition,
            Self::Etag { .. } => Reason::EtagMismatch,
            Self::Matched { .. } => Reason::MatchCountChanged,
            Self::RequestReused { .. } => Reason::RequestIdReused,
            Self::OutputExists { .. } => Reason::OutputExists,
            Self::OutputRefused { .. } => Reason::OutputRefused,
            Self::SourceRefused { .. } => Reason::SourceRefused,
            Self::BundleGone { .. } => Reason::BundleGone,
            Self::BundleUnreadable { .. } => Reason::BundleUnreadable,
            Self::OffsetPastEnd { .. } => Reason::OffsetPastEnd,
            Self::NotOwner => Reason::NotOwner,
            Self::Clock(_) => Reason::ClockWrong,
            Self::Malformed => Reason::RequestMalformed,
            Self::SigningKey { .. } => Reason::SigningKeyUnusable,
            Self::Busy(_) => Reason::LimitExceeded,
            Self::DiskFull => Reason::DiskFull,
            Self::Deadline { .. } => Reason::Deadline,
            Self::ShuttingDown => Reason::ShuttingDown,
            Self::Store(error) => store_reason(error),
            Self::Internal(_) => Reason::Internal,
        }
    }

    /// Makes the status: code and message, with the details that `proto/README.md` promises for its reason.
    #[must_use]
    pub fn into_status(self) -> Status {
        let reason = self.reason();
        let mut details = ErrorDetails::with_error_info(reason.word(), DOMAIN, self.facts());
        self.add_details(reason, &mut details);
        if matches!(reason, Reason::Internal | Reason::StoreCorrupt | Reason::StoreStopped) {
            error!(reason = reason.word(), cause = satchel_source::chain(&self), "a call failed");
        }
        Status::with_error_details(reason.code(), self.message(reason), details)
    }

    /// What the client reads. A mistake of ours, the store's too, shows nothing of its inside.
    fn message(&self, reason: Reason) -> String {
        match self {
            Self::Store(_) if reason == Reason::Internal => Self::Internal("".into()).to_string(),
            _ => self.to_string(),
        }
    }

    fn facts(&self) -> HashMap<String, String> {
        let facts: Vec<(&str, String)> = match self {
            Self::OffsetPastEnd { offset, size } => {
                vec![("offset", offset.to_string()), ("size", size.to_string())]
            }
            Self::Etag { current, .. } => vec![("current_etag", current.clone())],
            Self::Matched { matched, .. } => vec![("matched", matched.to_string())],
            Self::Store(StoreError::TooLarge { limit, .. }) => vec![("limit", limit.to_string())],
            _ => Vec::new(),
        };
        facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn add_details(&self, reason: Reason, details: &mut ErrorDetails) {
        match self {
            Self::Field { field, problem } => {
                details.add_bad_request_violation(field, problem);
            }
            Self::PageToken(problem) => {
                details.add_bad_request_violation("page_token", problem.to_string());
            }
            Self::Missing { kind, id } => {
                details.set_resource_info(kind.word(), id, "", self.to_string());
            }
            Self::RequestReused { problem } => {
                details.add_bad_request_violation("request_id", problem);
            }
            Self::ImportState { id, .. } | Self::MemoryState { id, .. } | Self::Transition { id, .. } => {
                details.add_precondition_failure_violation(reason.word(), id, self.to_string());
            }
            Self::OutputExists { path }
            | Self::OutputRefused { path, .. }
            | Self::SourceRefused { path, .. }
            | Self::BundleGone { path }
            | Self::SigningKey { path, .. }
            | Self::BundleUnreadable { path, .. } => {
                details.add_precondition_failure_violation(reason.word(), path, self.to_string());
            }
            _ => {}
        }
        if reason.code() == Code::ResourceExhausted {
            details.add_quota_failure_violation(DOMAIN, self.to_string());
        }
        if matches!(reason, Reason::DiskFull | Reason::ShuttingDown) {
            details.set_retry_info(Some(RETRY_AFTER));
        }
    }
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        fault.into_status()
    }
}

fn store_reason(error: &StoreError) -> Reason {
    match error {
        StoreError::Full { .. } | StoreError::NoRoom { .. } | StoreError::ReadOnly { .. } => Reason::DiskFull,
        StoreError::TooLarge { .. } => Reason::LimitExceeded,
        StoreError::Stopped { .. } | StoreError::Engine { .. } => Reason::StoreStopped,
        StoreError::DamagedJournal { .. }
        | StoreError::DamagedRecord { .. }
        | StoreError::BadValue { .. }
        | StoreError::Sealed { .. }
        | StoreError::NewerFormat { .. } => Reason::StoreCorrupt,
        // What is left are mistakes in what we asked of the store, and file errors with paths in them.
        _ => Reason::Internal,
    }
}

#[cfg(test)]
mod tests;
