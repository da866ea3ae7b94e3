//! Changes that the user makes by hand. Each is stored as evidence, so that no later import reverts it.
//!
//! A change is applied to the records as they are shown, without replaying the evidence: it is the newest evidence, so
//! it wins (`what_is_shown_is_what_all_evidence_says`). Only an undo replays. Durable when a call returns.

mod authorship;
mod draft;
mod earlier_versions;
mod interrupted;
mod memories;
mod merge;
mod quarantine;
mod relations;
mod status;
mod transaction;
mod undo;

use std::sync::Arc;

use satchel_pam::{
    lifecycle::{SupersedeError, TransitionError},
    memory::Memory,
};
use satchel_source::CancelToken;
use satchel_store::{MemoryRecord, Store, StoreError};
use serde::{Deserialize, Serialize};

use self::{quarantine::WaitingCounts, transaction::Transaction};
use crate::{
    clock::Clock,
    provenance::{EvidenceIndex, ProvenanceError},
    request::{self, RequestError},
    series::{LocalSeries, SeriesKey, SeriesStoreError},
    write_lock::WriteLock,
};

pub(crate) use self::interrupted::complete_interrupted;
pub use self::{
    draft::Draft,
    quarantine::{Agent, AgentDraft, QuarantineState, QuarantinedMemory, ReviewDecision, Reviewer},
    relations::NewRelation,
    status::{BULK_LIMIT, BulkStatusChange},
};
pub use crate::request::RequestKey;

/// The platform of what the user states themselves.
pub const PLATFORM: &str = "satchel";
/// The name and version recorded as extractor, `name/x.y.z`.
const SOFTWARE: &str = concat!("satchel/", env!("CARGO_PKG_VERSION"));

/// The caller, its reason, and the request id under which the call can be repeated.
#[derive(Clone, Debug, Default)]
pub struct EditContext {
    /// The actor, such as `owner`.
    pub actor: String,
    /// The reason, for the history; may be empty.
    pub reason: String,
    /// The request id: a repeated request returns the same answer.
    pub request: Option<RequestKey>,
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditOutcome {
    /// The id of the change, with which it can be undone; empty if nothing was changed.
    pub act: String,
    /// The ids of the memories concerned; if there are very many, only the first.
    pub memories: Vec<String>,
    /// The ids of the relations concerned.
    pub relations: Vec<String>,
    /// The memory or relation to create already existed.
    pub existed: bool,
    /// The memory to create waits for the owner's review.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quarantined: bool,
    /// The number of memories concerned.
    pub matched: u64,
    /// The revision from which on the result is visible.
    pub revision: u64,
}

/// The reason why a change is refused.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// A field is not valid.
    #[error("{field} {problem}")]
    Invalid {
        /// The name of the field.
        field: String,
        /// The problem, as a predicate.
        problem: String,
    },
    /// No visible memory has this id.
    #[error("there is no memory {0:?}")]
    NoMemory(String),
    /// The memory has no such version.
    #[error("memory {id:?} has no version {version}")]
    NoVersion {
        /// The id of the memory.
        id: String,
        /// The version that was requested.
        version: u32,
    },
    /// No current relation has this id.
    #[error("there is no relation {0:?}")]
    NoRelation(String),
    /// No change has this id.
    #[error("there is no change {0:?}")]
    NoChange(String),
    /// The memory was changed since the caller read it.
    #[error("memory {id:?} was changed meanwhile; look at it again")]
    Changed {
        /// The id of the memory.
        id: String,
        /// Its current etag.
        etag: String,
    },
    /// PAM does not allow this transition of the status.
    #[error("memory {id:?}: {error}")]
    Transition {
        /// The id of the memory.
        id: String,
        /// The transition.
        error: TransitionError,
    },
    /// The memory, relation or change is not in a state that allows the operation.
    #[error("{problem}")]
    State {
        /// The id of the memory, relation or change.
        id: String,
        /// The problem, and what to do about it.
        problem: String,
    },
    /// A bulk change would affect another number of memories than its caller expects.
    #[error("{matched} memories fit now, not {expected}; look at them again with a dry run")]
    Count {
        /// The number of memories that match now.
        matched: u64,
        /// The number that the caller expects.
        expected: u64,
    },
    /// Too many memories match for one change.
    #[error("more than {limit} memories fit; choose fewer, by type, tag or time")]
    TooMany {
        /// The maximum number of memories.
        limit: usize,
    },
    /// No memory that an agent wrote has this id.
    #[error("no memory with the id {0:?} was written by an agent")]
    NotQuarantined(String),
    /// Too many memories of one device wait for review.
    #[error("{problem}")]
    QuarantineFull {
        /// The limit, and what to do about it.
        problem: String,
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

impl From<ProvenanceError> for EditError {
    fn from(error: ProvenanceError) -> Self {
        match error {
            ProvenanceError::Store(error) => Self::Store(error),
            ProvenanceError::Unreadable { what } => Self::Unencodable { what },
            ProvenanceError::Temporary(error) => Self::Temporary(error),
        }
    }
}

impl From<SeriesStoreError> for EditError {
    fn from(error: SeriesStoreError) -> Self {
        match error {
            SeriesStoreError::Store(error) => Self::Store(error),
            SeriesStoreError::TooLate => Self::invalid(
                "clock",
                "of this machine, or of the last edit, is after the year 2100; set the clock",
            ),
            error => Self::Series(error),
        }
    }
}

impl From<RequestError> for EditError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Reused(id) => Self::RequestReused(id),
            RequestError::Store(error) => Self::Store(error),
            RequestError::Unencodable => Self::Unencodable { what: "the answer to a request" },
        }
    }
}

impl EditError {
    fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), problem: problem.into() }
    }

    fn state(id: &str, problem: impl Into<String>) -> Self {
        Self::State { id: id.to_owned(), problem: problem.into() }
    }
}

impl From<SupersedeError> for EditError {
    fn from(error: SupersedeError) -> Self {
        let problem = error.to_string();
        match error {
            SupersedeError::Transition { id, error } => Self::Transition { id, error },
            SupersedeError::Already { id, .. } | SupersedeError::Itself(id) => Self::State { id, problem },
            _ => Self::State { id: String::new(), problem },
        }
    }
}

/// Returns the etag of a memory: it changes with every version and only then. It is quoted, as in HTTP.
#[must_use]
pub fn etag(record: &MemoryRecord) -> String {
    format!("\"{}-{}-{:x}\"", record.version, record.revision.get(), record.origin.at_micros)
}

/// The changes by hand. Clones share the store.
#[derive(Clone)]
pub struct Edits {
    store: Store,
    clock: Arc<dyn Clock>,
    write_lock: Arc<WriteLock>,
    series_key: SeriesKey,
    /// How much of each device waits for review.
    waiting: WaitingCounts,
    /// Which evidence is about what; used by edits of other stores.
    evidence: EvidenceIndex,
}

impl Edits {
    pub(crate) fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        write_lock: Arc<WriteLock>,
        series_key: SeriesKey,
    ) -> Self {
        let (waiting, evidence) = (WaitingCounts::default(), EvidenceIndex::default());
        Self { store, clock, write_lock, series_key, waiting, evidence }
    }

    /// Makes one change under the write lock, so that nobody else writes between its look-ups and its commit. A request
    /// that was already answered returns the same answer.
    fn transact(
        &self,
        call: &EditContext,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<(), EditError>,
    ) -> Result<EditOutcome, EditError> {
        let _guard = self.write_lock.lock(&CancelToken::new());
        // A full disk may have interrupted a change without ending the program.
        complete_interrupted(&self.store)?;
        let now = self.clock.now_micros();
        if let Some(done) = request::answered(&self.store, call.request.as_ref(), now)? {
            return Ok(done);
        }
        let series = LocalSeries::load(&self.store, &self.series_key)?;
        let mut transaction = Transaction::new(&self.store, call, now).with_series(series);
        work(&mut transaction)?;
        transaction.commit()
    }
}

/// Refuses a memory that violates PAM's rules. Violations that were there before the change are tolerated.
fn check(before: Option<&Memory>, after: &Memory) -> Result<(), EditError> {
    use satchel_pam::{issue::Severity, validate};
    let known = before.map(|memory| validate::memory(memory, "memory")).unwrap_or_default();
    let issues = validate::memory(after, "memory");
    let new = issues.into_iter().find(|issue| {
        issue.severity == Severity::Error
            && !known.iter().any(|known| known.rule == issue.rule && known.path == issue.path)
    });
    new.map_or(Ok(()), |issue| Err(EditError::invalid(issue.path, issue.message)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
