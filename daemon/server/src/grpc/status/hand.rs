//! Errors of manual changes.

use satchel_core::ingest::hand::HandError;

use super::{Fault, Kind};

impl From<HandError> for Fault {
    fn from(error: HandError) -> Self {
        let problem = error.to_string();
        match error {
            HandError::Invalid { field, problem } => Self::Field { field, problem },
            HandError::NoMemory(id) => Self::missing(Kind::Memory, id),
            HandError::NoRelation(id) => Self::missing(Kind::Relation, id),
            HandError::NoChange(id) => Self::missing(Kind::Change, id),
            HandError::NoVersion { .. } => {
                Self::field("memory_version.version", format!("is not known: {problem}"))
            }
            HandError::Changed { etag, .. } => Self::Etag { current: etag, problem },
            HandError::Transition { id, .. } => Self::Transition { id, problem },
            HandError::State { id, .. } => Self::MemoryState { id, problem },
            HandError::Count { matched, .. } => Self::Matched { matched, problem },
            HandError::TooMany { .. } => Self::Busy(problem),
            HandError::RequestReused(_) => {
                Self::RequestReused { problem: "was used for another request; take a fresh one".to_owned() }
            }
            HandError::Store(error) => Self::Store(error),
            HandError::Temporary(source) if source.kind() == std::io::ErrorKind::StorageFull => {
                Self::DiskFull
            }
            HandError::Temporary(_) | HandError::Unencodable { .. } => Self::internal(error),
        }
    }
}
