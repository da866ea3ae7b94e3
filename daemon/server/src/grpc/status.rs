//! The conversion of errors to gRPC statuses; no other module does this.
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
/// When a client may retry after a full disk or a stop.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The reason why a call is refused.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A field of the request is not valid.
    #[error("{field} {problem}")]
    Field { field: String, problem: String },
    /// The page token is not valid.
    #[error("page_token {0}")]
    PageToken(#[from] TokenError),
    /// There is no record with this id.
    #[error("there is no {} {id:?}", kind.word())]
    Missing { kind: Kind, id: String },
    /// An import is not in the state that the call requires.
    #[error("{problem}")]
    ImportState { id: String, problem: String },
    /// A memory, relation or change is not in the state that the call requires.
    #[error("{problem}")]
    MemoryState { id: String, problem: String },
    /// PAM does not allow this change of status.
    #[error("{problem}")]
    Transition { id: String, problem: String },
    /// The memory was changed in the meantime.
    #[error("{problem}")]
    Etag { current: String, problem: String },
    /// A bulk change would affect another number of memories than expected.
    #[error("{problem}")]
    Matched { matched: u64, problem: String },
    /// The request id was used before with other fields.
    #[error("request_id {problem}")]
    RequestReused { problem: String },
    /// An export would overwrite existing files.
    #[error("{path:?} exists and is not an empty folder; choose another output")]
    OutputExists { path: String },
    /// The file system refuses to write the export.
    #[error("cannot write to {path:?}: {problem}")]
    OutputRefused { path: String, problem: String },
    /// A folder cannot be watched, or its watch cannot be removed.
    #[error("{problem}")]
    SourceRefused { path: String, problem: String },
    /// The bundle of an export is no longer at its path, or was changed.
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
    /// The clock of the machine is wrong.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The bytes of a call are not a valid request.
    #[error("the request is not the protobuf message that this method takes")]
    Malformed,
    /// The key that signs exports is damaged or missing.
    #[error("{problem}")]
    SigningKey { path: String, problem: String },
    /// A limit on waiting or running work is reached.
    #[error("{0}")]
    Busy(String),
    /// The disk is full.
    #[error("no space left on the disk; free some and try again")]
    DiskFull,
    /// The call took too long.
    #[error("no answer within {seconds} s; ask for less, or set a deadline of your own")]
    Deadline { seconds: u64 },
    /// The daemon is about to stop.
    #[error("the daemon is stopping")]
    ShuttingDown,
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An internal error; its cause is only logged.
    #[error("an error that should not be; the daemon's log has it under this call's x-request-id")]
    Internal(#[source] Box<dyn Error + Send + Sync>),
}

impl Fault {
    /// Creates a [`Fault::Field`].
    pub fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { field: field.into(), problem: problem.into() }
    }

    /// Creates a [`Fault::Missing`].
    pub fn missing(kind: Kind, id: impl Into<String>) -> Self {
        Self::Missing { kind, id: id.into() }
    }

    /// Creates a [`Fault::Internal`].
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

    /// Returns the status: code and message, with the details that `proto/README.md` documents for its reason.
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

    /// Returns the message for the client. Internal errors, including those of the store, reveal no details.
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
        // The remaining variants are wrong requests of ours to the store, and file errors that contain paths.
        _ => Reason::Internal,
    }
}

#[cfg(test)]
mod tests;
