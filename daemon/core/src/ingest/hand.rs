//! Changes that the person makes by hand: each is an act of words, kept as evidence, so that no import takes it back.
//!
//! What an act changes is written from what is shown, without a replay: its words are the latest, so they win
//! (`what_is_shown_is_what_all_evidence_says`). Only an undo replays. Durable when a call returns.

mod act;
mod draft;
mod memories;
mod owed;
mod relations;
mod request;
mod status;
mod undo;

use satchel_pam::{
    lifecycle::{Arrow, SupersedeError},
    memory::Memory,
};
use satchel_source::CancelToken;
use satchel_store::{MemoryRecord, StoreError};
use serde::{Deserialize, Serialize};

use self::act::Act;
use super::{Imports, IngestError, Inner};
use crate::lineage::LineageError;

pub(super) use self::owed::complete as complete_owed;
pub use self::{
    draft::Draft,
    relations::NewRelation,
    request::RequestKey,
    status::{BULK_LIMIT, Bulk},
};

/// Stands as the platform of what the person says themselves.
pub const PLATFORM: &str = "satchel";
/// The reader, `name/x.y.z`.
const SOFTWARE: &str = concat!("satchel/", env!("CARGO_PKG_VERSION"));

/// Who calls, why, and under which name the call can be repeated.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// `owner`.
    pub actor: String,
    /// For the history; may be empty.
    pub reason: String,
    /// The same one gives the same answer.
    pub request: Option<RequestKey>,
}

/// What came of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The act, by which it can be undone; empty: nothing was changed.
    pub act: String,
    /// The memories that it speaks of; of very many the first.
    pub memories: Vec<String>,
    /// The relations that it speaks of.
    pub relations: Vec<String>,
    /// What was to be made was there already.
    pub existed: bool,
    /// How many memories it speaks of.
    pub matched: u64,
    /// The revision that shows it.
    pub revision: u64,
}

/// Why a change is not made.
#[derive(Debug, thiserror::Error)]
pub enum HandError {
    /// A field does not hold.
    #[error("{field} {problem}")]
    Invalid {
        /// Its name.
        field: String,
        /// As a predicate.
        problem: String,
    },
    /// No memory that is shown has this id.
    #[error("there is no memory {0:?}")]
    NoMemory(String),
    /// The memory has no such version.
    #[error("memory {id:?} has no version {version}")]
    NoVersion {
        /// Of the memory.
        id: String,
        /// Which.
        version: u32,
    },
    /// No relation that stands has this id.
    #[error("there is no relation {0:?}")]
    NoRelation(String),
    /// Nothing was changed under this name.
    #[error("there is no change {0:?}")]
    NoChange(String),
    /// Somebody changed the memory meanwhile.
    #[error("memory {id:?} was changed meanwhile; look at it again")]
    Changed {
        /// Of the memory.
        id: String,
        /// What it has now.
        etag: String,
    },
    /// PAM does not let the status go this way.
    #[error("memory {id:?}: {arrow}")]
    Transition {
        /// Of the memory.
        id: String,
        /// Which way.
        arrow: Arrow,
    },
    /// The memory, or relation, is not in a state for it.
    #[error("{problem}")]
    State {
        /// Of the memory, relation or change.
        id: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A bulk change would change another number of memories than its caller saw.
    #[error("{matched} memories fit now, not {expected}; look at them again with a dry run")]
    Count {
        /// Now.
        matched: u64,
        /// As the caller says.
        expected: u64,
    },
    /// Too many memories for one change.
    #[error("more than {limit} memories fit; choose fewer, by type, tag or time")]
    TooMany {
        /// How many may be.
        limit: usize,
    },
    /// The same request id came with another request.
    #[error("request id {0:?} was used for another request; take a fresh one")]
    RequestReused(String),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The disk.
    #[error("the temporary file for what does not fit into memory cannot be used")]
    Temporary(#[source] std::io::Error),
    /// A bug.
    #[error("{what} cannot be encoded or read back; please report this")]
    Unencodable {
        /// Which.
        what: &'static str,
    },
}

impl From<LineageError> for HandError {
    fn from(error: LineageError) -> Self {
        match error {
            LineageError::Store(error) => Self::Store(error),
            LineageError::Unreadable { what } => Self::Unencodable { what },
            LineageError::Temporary(error) => Self::Temporary(error),
        }
    }
}

impl From<IngestError> for HandError {
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::Store(error) => Self::Store(error),
            _ => Self::Unencodable { what: "the state of memories" },
        }
    }
}

impl HandError {
    fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), problem: problem.into() }
    }

    fn state(id: &str, problem: impl Into<String>) -> Self {
        Self::State { id: id.to_owned(), problem: problem.into() }
    }
}

impl From<SupersedeError> for HandError {
    fn from(error: SupersedeError) -> Self {
        let problem = error.to_string();
        match error {
            SupersedeError::Arrow { id, arrow } => Self::Transition { id, arrow },
            SupersedeError::Already { id, .. } | SupersedeError::Itself(id) => Self::State { id, problem },
            _ => Self::State { id: String::new(), problem },
        }
    }
}

/// What changes with every version of a memory, and stays while it stays: quoted, as HTTP has it.
#[must_use]
pub fn etag(record: &MemoryRecord) -> String {
    format!("\"{}-{}-{:x}\"", record.version, record.revision.get(), record.origin.at_micros)
}

impl Inner {
    /// Makes one change: nobody writes between its look-ups and its commit. A call that was answered before gets that answer.
    fn by_hand(
        &self,
        call: &Call,
        work: impl FnOnce(&mut Act<'_>) -> Result<(), HandError>,
    ) -> Result<Done, HandError> {
        let _pen = self.pen.take(&CancelToken::new());
        // A disk that was full may have let a change end halfway without an end of the program.
        self.complete_by_hand()?;
        let now = self.clock.now_micros();
        if let Some(done) = request::answered(&self.store, call, now)? {
            return Ok(done);
        }
        let mut act = Act::new(&self.store, call, now);
        work(&mut act)?;
        act.commit()
    }
}

/// Refuses what PAM's rules do not let stand; what was odd before may stay so.
fn check(before: Option<&Memory>, after: &Memory) -> Result<(), HandError> {
    use satchel_pam::{issue::Severity, validate};
    let known = before.map(|memory| validate::memory(memory, "memory")).unwrap_or_default();
    let issues = validate::memory(after, "memory");
    let new = issues.into_iter().find(|issue| {
        issue.severity == Severity::Error
            && !known.iter().any(|known| known.rule == issue.rule && known.path == issue.path)
    });
    new.map_or(Ok(()), |issue| Err(HandError::invalid(issue.path, issue.message)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
