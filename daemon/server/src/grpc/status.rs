//! The conversion of errors to gRPC statuses; no other module does this.
//!
//! **Invariant:** `proto/README.md` lists exactly the reasons of [`ErrorReason`], with their codes
//! (`the_readme_lists_every_reason`).

mod convert;
mod reason;

use std::{collections::HashMap, error::Error, time::Duration};

use satchel_search::query::QueryError;
use satchel_store::StoreError;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tracing::error;

pub use self::reason::{ErrorReason, ResourceKind};
use super::{page_token::TokenError, wire::scalar::truncate};
use satchel_core::clock::ClockError;

/// `ErrorInfo.domain` of all our errors.
pub const DOMAIN: &str = "satchel.local";
/// Longest text of an error, in bytes. An error has up to four of them, and the message is percent-encoded.
const MAX_TEXT_BYTES: usize = 1 << 10;
/// When a client may retry after a full disk or a stop.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The reason why a call is refused.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// A field of the request is not valid.
    #[error("{field} {problem}")]
    InvalidField { field: String, problem: String },
    /// The page token is not valid.
    #[error("page_token {0}")]
    PageToken(#[from] TokenError),
    /// A search query cannot be understood.
    #[error("query: {0}")]
    Query(#[from] QueryError),
    /// The search index has not reached a revision yet.
    #[error("the search index is at revision {revision} and has not reached {wanted}; try again in a moment")]
    IndexBehind { revision: u64, wanted: u64 },
    /// The search index cannot be used. If it is damaged, it is built anew.
    #[error("the search index cannot be used: {problem}{}", if *damaged { "; it is built anew, try again in a moment" } else { "" })]
    IndexUnusable { problem: String, damaged: bool },
    /// The configuration names no endpoint for embeddings.
    #[error(
        "no endpoint for embeddings is configured, so the words of a query cannot be compared by meaning; set [embeddings] in the configuration"
    )]
    EmbeddingsOff,
    /// The endpoint for embeddings failed.
    #[error("{problem}")]
    EmbeddingsUnavailable { problem: String },
    /// There is no record with this id.
    #[error("there is no {} {id:?}", kind.as_str())]
    NotFound { kind: ResourceKind, id: String },
    /// An import is not in the state that the call requires.
    #[error("{problem}")]
    ImportState { id: String, problem: String },
    /// A memory, relation or change is not in the state that the call requires.
    #[error("{problem}")]
    MemoryState { id: String, problem: String },
    /// Nothing can be appended to a conversation.
    #[error("{problem}")]
    ConversationState { id: String, problem: String },
    /// PAM does not allow this change of status.
    #[error("{problem}")]
    IllegalTransition { id: String, problem: String },
    /// The memory was changed in the meantime.
    #[error("{problem}")]
    EtagMismatch { current: String, problem: String },
    /// A bulk change would affect another number of memories than expected.
    #[error("{problem}")]
    MatchCountChanged { matched: u64, problem: String },
    /// The request id was used before with other fields.
    #[error("request_id {problem}")]
    RequestIdReused { problem: String },
    /// An export would overwrite existing files.
    #[error("{path:?} exists and is not an empty folder; choose another output")]
    OutputExists { path: String },
    /// The file system refuses to write the export.
    #[error("cannot write to {path:?}: {problem}")]
    OutputRefused { path: String, problem: String },
    /// A folder cannot be watched, or its watch cannot be removed.
    #[error("{problem}")]
    SourceRefused { path: String, problem: String },
    /// A package cannot be installed, whatever the person agrees to.
    #[error("{problem}")]
    PluginRefused { problem: String },
    /// The person has to agree to something before a package is installed.
    #[error("{problem}")]
    PluginConsentNeeded { name: String, consent: &'static str, problem: String },
    /// A plugin is not in the state that the call requires.
    #[error("{problem}")]
    PluginState { name: String, problem: String },
    /// An upload sent nothing for too long, or took too long.
    #[error("the file did not arrive within {seconds} s; send it again")]
    UploadStalled { seconds: u64 },
    /// The bundle of an export is no longer at its path, or was changed.
    #[error("the bundle is no longer at {path:?}; export again")]
    BundleGone { path: String },
    /// A bundle cannot be checked.
    #[error("{problem}")]
    BundleUnreadable { path: String, problem: String },
    /// A download begins after the end.
    #[error("offset {offset} is past the end, at {size}")]
    OffsetPastEnd { offset: u64, size: u64 },
    /// A chunk of an upload does not begin where the stored bytes end.
    #[error("offset is {offset}, but {committed} bytes are stored; continue at {committed}")]
    UploadOffset { offset: u64, committed: u64 },
    /// An upload is not complete.
    #[error("{problem}")]
    UploadIncomplete { id: String, problem: String },
    /// The hash of an upload is wrong.
    #[error("{problem}")]
    ChecksumMismatch { problem: String },
    /// Changes after a revision can no longer be told, because a record was erased.
    #[error("what changed after this revision was erased in part, last at {oldest}; read everything again")]
    RevisionCompacted { oldest: u64 },
    /// A revision that the store has not reached.
    #[error("after_revision {asked} is later than {current}, the current revision")]
    RevisionInFuture { asked: u64, current: u64 },
    /// The caller knows another store.
    #[error("this daemon serves the store {current}, not {asked:?}; read everything again")]
    StoreChanged { asked: String, current: String },
    /// The reader of a watch took nothing for too long.
    #[error("the changes were not read for 5 minutes; watch again after revision {revision}")]
    WatchTooSlow { revision: u64 },
    /// The caller is another user.
    #[error("this socket accepts only processes of its owner")]
    NotOwner,
    /// The caller has neither a certificate nor a token.
    #[error(
        "this daemon serves only paired devices; pair this one with `satchel pair`, or send a token in the header `authorization`"
    )]
    NoCredentials,
    /// The certificate or token is not known here.
    #[error("the {what} of this caller is not known here, or has expired; pair the device again")]
    UnknownCredentials { what: &'static str },
    /// The certificate of the caller has expired.
    #[error("the certificate of {device:?} expired on {expired}; pair the device again")]
    CertificateExpired { device: String, expired: String },
    /// The device was revoked.
    #[error("the device {device:?} was revoked")]
    DeviceRevoked { device: String },
    /// The policy of the device was changed during the call.
    #[error("what {device:?} may see was changed; read everything again")]
    PolicyChanged { device: String },
    /// The caller lacks a permission.
    #[error(
        "the device {device:?} lacks the permission {scope}; the owner can grant it with `satchel devices update`"
    )]
    ScopeMissing { device: String, scope: &'static str },
    /// The caller may not do this with this record, or at all.
    #[error("{problem}")]
    AccessDenied { problem: String },
    /// A device cannot be paired.
    #[error(
        "the code is not valid: it is wrong or was used already, or the time to pair is over; ask for a new one"
    )]
    PairingRefused,
    /// The daemon has no TCP port.
    #[error(
        "this daemon accepts no connections of other devices; start it with `satchel serve --listen ADDRESS:PORT`, or set [server] listen in the configuration"
    )]
    NotListening,
    /// The owner has paused the exchange with the calling peer.
    #[error("the exchange of changes with {peer:?} is paused here; `satchel peers resume` resumes it")]
    PeerPaused { peer: String },
    /// The bytes of an attachment are on a peer that cannot be reached.
    #[error(
        "the attachment {sha256} is not here yet: it is fetched as soon as a peer that has it can be reached; try again then"
    )]
    AttachmentElsewhere { sha256: String },
    /// Another daemon refuses to pair, or cannot be a peer.
    #[error("{problem}")]
    PeerRefused { problem: String },
    /// Another daemon does not answer.
    #[error("{problem}")]
    PeerUnreachable { problem: String },
    /// A peer has not told to which key files of changes for it are encrypted.
    #[error("{problem}")]
    PeerKeyUnknown { problem: String },
    /// A file of changes is not taken.
    #[error("{file} is not taken: {problem}")]
    ChangeFileUnusable { file: String, problem: String },
    /// The caller has no certificate to renew.
    #[error("this caller has no certificate")]
    NoCertificate,
    /// The clock of the machine is wrong.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The bytes of a call are not a valid request.
    #[error("the request is not the protobuf message that this method expects")]
    Malformed,
    /// A message of a call has more bytes than a request may have.
    #[error("a request may have at most {limit} bytes; send less in one call")]
    RequestTooLarge { limit: usize },
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
    #[error("the call took longer than {seconds} s; request less, or set a deadline")]
    Deadline { seconds: u64 },
    /// The daemon is about to stop.
    #[error("the daemon is stopping")]
    ShuttingDown,
    /// The store returned an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An internal error; its cause is only logged.
    #[error("internal error; look for this call's x-request-id in the daemon's log")]
    Internal(#[source] Box<dyn Error + Send + Sync>),
}

impl CallError {
    /// Creates a [`CallError::InvalidField`].
    pub fn invalid_field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::InvalidField { field: field.into(), problem: problem.into() }
    }

    /// Creates a [`CallError::NotFound`].
    pub fn not_found(kind: ResourceKind, id: impl Into<String>) -> Self {
        Self::NotFound { kind, id: id.into() }
    }

    /// Creates a [`CallError::Internal`].
    pub fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Internal(cause.into())
    }

    fn reason(&self) -> ErrorReason {
        match self {
            Self::InvalidField { .. } => ErrorReason::FieldInvalid,
            Self::PageToken(_) => ErrorReason::PageTokenInvalid,
            Self::Query(_) => ErrorReason::QueryInvalid,
            Self::IndexBehind { .. } => ErrorReason::IndexBehind,
            Self::IndexUnusable { .. } => ErrorReason::IndexUnusable,
            Self::EmbeddingsOff => ErrorReason::EmbeddingsOff,
            Self::EmbeddingsUnavailable { .. } => ErrorReason::EmbeddingsUnavailable,
            Self::NotFound { kind, .. } => kind.reason(),
            Self::ImportState { .. } => ErrorReason::ImportState,
            Self::MemoryState { .. } => ErrorReason::MemoryState,
            Self::ConversationState { .. } => ErrorReason::ConversationState,
            Self::IllegalTransition { .. } => ErrorReason::IllegalTransition,
            Self::EtagMismatch { .. } => ErrorReason::EtagMismatch,
            Self::MatchCountChanged { .. } => ErrorReason::MatchCountChanged,
            Self::RequestIdReused { .. } => ErrorReason::RequestIdReused,
            Self::OutputExists { .. } => ErrorReason::OutputExists,
            Self::OutputRefused { .. } => ErrorReason::OutputRefused,
            Self::SourceRefused { .. } => ErrorReason::SourceRefused,
            Self::PluginRefused { .. } => ErrorReason::PluginRefused,
            Self::PluginConsentNeeded { .. } => ErrorReason::PluginConsentNeeded,
            Self::PluginState { .. } => ErrorReason::PluginState,
            Self::UploadStalled { .. } => ErrorReason::Deadline,
            Self::BundleGone { .. } => ErrorReason::BundleGone,
            Self::BundleUnreadable { .. } => ErrorReason::BundleUnreadable,
            Self::OffsetPastEnd { .. } => ErrorReason::OffsetPastEnd,
            Self::UploadOffset { .. } => ErrorReason::UploadOffset,
            Self::UploadIncomplete { .. } => ErrorReason::UploadIncomplete,
            Self::ChecksumMismatch { .. } => ErrorReason::ChecksumMismatch,
            Self::RevisionCompacted { .. } => ErrorReason::RevisionCompacted,
            Self::RevisionInFuture { .. } => ErrorReason::RevisionInFuture,
            Self::StoreChanged { .. } => ErrorReason::StoreChanged,
            Self::WatchTooSlow { .. } => ErrorReason::WatchTooSlow,
            Self::NotOwner => ErrorReason::NotOwner,
            Self::NoCredentials | Self::UnknownCredentials { .. } => ErrorReason::NoCredentials,
            Self::CertificateExpired { .. } => ErrorReason::CertificateExpired,
            Self::DeviceRevoked { .. } => ErrorReason::DeviceRevoked,
            Self::PolicyChanged { .. } => ErrorReason::PolicyChanged,
            Self::ScopeMissing { .. } => ErrorReason::ScopeMissing,
            Self::AccessDenied { .. } => ErrorReason::AccessDenied,
            Self::PairingRefused => ErrorReason::PairingRefused,
            Self::NotListening => ErrorReason::NotListening,
            Self::PeerPaused { .. } => ErrorReason::PeerPaused,
            Self::AttachmentElsewhere { .. } => ErrorReason::AttachmentElsewhere,
            Self::PeerRefused { .. } => ErrorReason::PeerRefused,
            Self::PeerUnreachable { .. } => ErrorReason::PeerUnreachable,
            Self::PeerKeyUnknown { .. } => ErrorReason::PeerKeyUnknown,
            Self::ChangeFileUnusable { .. } => ErrorReason::ChangeFileUnusable,
            Self::NoCertificate => ErrorReason::NoCertificate,
            Self::Clock(_) => ErrorReason::ClockWrong,
            Self::Malformed => ErrorReason::RequestMalformed,
            Self::SigningKey { .. } => ErrorReason::SigningKeyUnusable,
            Self::RequestTooLarge { .. } | Self::Busy(_) => ErrorReason::LimitExceeded,
            Self::DiskFull => ErrorReason::DiskFull,
            Self::Deadline { .. } => ErrorReason::Deadline,
            Self::ShuttingDown => ErrorReason::ShuttingDown,
            Self::Store(error) => store_reason(error),
            Self::Internal(_) => ErrorReason::Internal,
        }
    }

    /// Returns the status: code and message, with the details that `proto/README.md` documents for its reason.
    #[must_use]
    pub fn into_status(self) -> Status {
        let reason = self.reason();
        let mut details = ErrorDetails::with_error_info(reason.as_str(), DOMAIN, self.metadata());
        self.add_details(reason, &mut details);
        if matches!(reason, ErrorReason::Internal | ErrorReason::StoreCorrupt | ErrorReason::StoreStopped) {
            error!(reason = reason.as_str(), cause = satchel_source::chain(&self), "a call failed");
        }
        Status::with_error_details(reason.code(), self.message(reason), details)
    }

    /// Returns the message for the client. Internal errors, including those of the store, reveal no details.
    fn message(&self, reason: ErrorReason) -> String {
        match self {
            Self::Store(_) if reason == ErrorReason::Internal => Self::Internal("".into()).to_string(),
            _ => self.short_text(),
        }
    }

    /// Returns the text of the error, shortened: it may quote what the caller sent.
    fn short_text(&self) -> String {
        shorten(&self.to_string())
    }

    fn metadata(&self) -> HashMap<String, String> {
        let metadata: Vec<(&str, String)> = match self {
            Self::OffsetPastEnd { offset, size } => {
                vec![("offset", offset.to_string()), ("size", size.to_string())]
            }
            Self::Query(QueryError { at, .. }) => {
                vec![("start", at.start.to_string()), ("end", at.end.to_string())]
            }
            Self::IndexBehind { revision, wanted } => {
                vec![("revision", revision.to_string()), ("wanted", wanted.to_string())]
            }
            Self::UploadOffset { committed, .. } => vec![("committed_bytes", committed.to_string())],
            Self::RevisionCompacted { oldest } => vec![("oldest", oldest.to_string())],
            Self::RevisionInFuture { current, .. } => vec![("current", current.to_string())],
            Self::StoreChanged { current, .. } => vec![("store_id", current.clone())],
            Self::WatchTooSlow { revision } => vec![("revision", revision.to_string())],
            Self::EtagMismatch { current, .. } => vec![("current_etag", current.clone())],
            Self::ScopeMissing { scope, .. } => vec![("scope", (*scope).to_owned())],
            Self::MatchCountChanged { matched, .. } => vec![("matched", matched.to_string())],
            Self::PluginConsentNeeded { consent, .. } => vec![("consent", (*consent).to_owned())],
            Self::Store(StoreError::TooLarge { limit, .. }) => vec![("limit", limit.to_string())],
            _ => Vec::new(),
        };
        metadata.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn add_details(&self, reason: ErrorReason, details: &mut ErrorDetails) {
        match self {
            Self::InvalidField { field, problem } => {
                details.add_bad_request_violation(shorten(field), shorten(problem));
            }
            Self::PageToken(problem) => {
                details.add_bad_request_violation("page_token", problem.to_string());
            }
            Self::Query(error) => {
                details.add_bad_request_violation("query", shorten(&error.to_string()));
            }
            Self::NotFound { kind, id } => {
                details.set_resource_info(kind.as_str(), shorten(id), "", self.short_text());
            }
            Self::RequestIdReused { problem } => {
                details.add_bad_request_violation("request_id", shorten(problem));
            }
            Self::ImportState { id, .. }
            | Self::UploadIncomplete { id, .. }
            | Self::MemoryState { id, .. }
            | Self::ConversationState { id, .. }
            | Self::IllegalTransition { id, .. } => {
                details.add_precondition_failure_violation(reason.as_str(), shorten(id), self.short_text());
            }
            Self::PluginConsentNeeded { name, .. } | Self::PluginState { name, .. } => {
                details.add_precondition_failure_violation(reason.as_str(), shorten(name), self.short_text());
            }
            Self::PluginRefused { .. } => {
                details.add_precondition_failure_violation(reason.as_str(), "", self.short_text());
            }
            Self::OutputExists { path }
            | Self::OutputRefused { path, .. }
            | Self::SourceRefused { path, .. }
            | Self::BundleGone { path }
            | Self::SigningKey { path, .. }
            | Self::BundleUnreadable { path, .. } => {
                details.add_precondition_failure_violation(reason.as_str(), shorten(path), self.short_text());
            }
            _ => {}
        }
        if reason.code() == Code::ResourceExhausted {
            details.add_quota_failure_violation(DOMAIN, self.short_text());
        }
        if matches!(reason, ErrorReason::DiskFull | ErrorReason::IndexBehind | ErrorReason::ShuttingDown) {
            details.set_retry_info(Some(RETRY_AFTER));
        }
    }
}

/// Shortens a text of an error. Errors travel in headers, of which clients accept about 16 KiB: a longer error would end the
/// connection and all its calls.
fn shorten(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    truncate(text.to_owned(), MAX_TEXT_BYTES) + "…"
}

impl From<CallError> for Status {
    fn from(error: CallError) -> Self {
        error.into_status()
    }
}

fn store_reason(error: &StoreError) -> ErrorReason {
    match error {
        StoreError::Full { .. } | StoreError::NoRoom { .. } | StoreError::ReadOnly { .. } => {
            ErrorReason::DiskFull
        }
        StoreError::TooLarge { .. } => ErrorReason::LimitExceeded,
        StoreError::Stopped { .. } | StoreError::Engine { .. } => ErrorReason::StoreStopped,
        StoreError::DamagedJournal { .. }
        | StoreError::DamagedRecord { .. }
        | StoreError::BadValue { .. }
        | StoreError::Sealed { .. }
        | StoreError::NewerFormat { .. } => ErrorReason::StoreCorrupt,
        // The remaining variants are wrong requests of ours to the store, and file errors that contain paths.
        _ => ErrorReason::Internal,
    }
}

#[cfg(test)]
mod tests;
