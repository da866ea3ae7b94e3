//! Replacement of memories (PAM 1.0 §7 and §13): `superseded_by` and `supersedes` relations must agree.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{TransitionError, check_transition};
use crate::{
    ids,
    memory::{Memory, Status},
    relation::{Relation, RelationType},
    time::Timestamp,
};

/// A disagreement between status, successor and relations of a memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inconsistency {
    /// Id of the replaced memory.
    pub memory: String,
    /// What does not agree.
    pub kind: InconsistencyKind,
}

/// The kinds of [`Inconsistency`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum InconsistencyKind {
    /// It is superseded but names no successor.
    NoSuccessor,
    /// It names a successor but is still active.
    StillActive,
    /// It names itself as its successor.
    OwnSuccessor,
    /// Its successor, with this id, does not exist.
    UnknownSuccessor(String),
    /// Its successors form a cycle.
    Cycle,
    /// It names this successor, but there is no `supersedes` relation.
    NoRelation(String),
    /// A `supersedes` relation comes from this memory, but it names another successor or none.
    OtherSuccessor(String),
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = &self.memory;
        match &self.kind {
            InconsistencyKind::NoSuccessor => write!(f, "memory {id:?} is superseded and names no successor"),
            InconsistencyKind::StillActive => {
                write!(f, "memory {id:?} names a successor and is still active")
            }
            InconsistencyKind::OwnSuccessor => write!(f, "memory {id:?} names itself as its successor"),
            InconsistencyKind::UnknownSuccessor(by) => {
                write!(f, "memory {id:?} names {by:?} as its successor, which is not there")
            }
            InconsistencyKind::Cycle => write!(f, "the successors of memory {id:?} lead back to it"),
            InconsistencyKind::NoRelation(by) => {
                write!(f, "memory {id:?} names {by:?} as its successor, and no supersedes relation says so")
            }
            InconsistencyKind::OtherSuccessor(by) => {
                write!(f, "a relation says that {by:?} supersedes memory {id:?}, which does not name it")
            }
        }
    }
}

/// Finds all inconsistencies among these memories and relations, by memory id. The time is linear, apart from sorting.
#[must_use]
pub fn inconsistencies<'a>(
    memories: impl IntoIterator<Item = &'a Memory>,
    relations: impl IntoIterator<Item = &'a Relation>,
) -> Vec<Inconsistency> {
    let memories: BTreeMap<&str, &Memory> =
        memories.into_iter().map(|memory| (memory.id.as_str(), memory)).collect();
    let edges: BTreeSet<(&str, &str)> = relations
        .into_iter()
        .filter(|relation| relation.relation_type == RelationType::Supersedes)
        .map(|relation| (relation.to.as_str(), relation.from.as_str()))
        .collect();
    let mut found = BTreeSet::new();
    let mut add = |memory: &str, kind| found.insert(Inconsistency { memory: memory.to_owned(), kind });
    for (id, memory) in &memories {
        let successor = memory.temporal.superseded_by.as_deref();
        for kind in own_inconsistencies(memory, successor) {
            add(id, kind);
        }
        let Some(successor) = successor.filter(|successor| successor != id) else { continue };
        if !memories.contains_key(successor) {
            add(id, InconsistencyKind::UnknownSuccessor(successor.to_owned()));
        }
        if !edges.contains(&(*id, successor)) {
            add(id, InconsistencyKind::NoRelation(successor.to_owned()));
        }
    }
    for (old, new) in &edges {
        // Several memories may replace one, but `superseded_by` can name only one of them.
        let named = memories.get(old).map(|memory| memory.temporal.superseded_by.as_deref());
        if named.is_some_and(|named| named.is_none_or(|named| !edges.contains(&(*old, named)))) {
            add(old, InconsistencyKind::OtherSuccessor((*new).to_owned()));
        }
    }
    for id in cycles(&memories) {
        add(id, InconsistencyKind::Cycle);
    }
    found.into_iter().collect()
}

/// The inconsistencies that a memory shows without the others.
fn own_inconsistencies(memory: &Memory, successor: Option<&str>) -> impl Iterator<Item = InconsistencyKind> {
    let lacks = memory.status == Status::Superseded && successor.is_none_or(str::is_empty);
    let active = memory.status == Status::Active && successor.is_some();
    let own = successor == Some(memory.id.as_str());
    [
        lacks.then_some(InconsistencyKind::NoSuccessor),
        active.then_some(InconsistencyKind::StillActive),
        own.then_some(InconsistencyKind::OwnSuccessor),
    ]
    .into_iter()
    .flatten()
}

/// The memories on cycles of two or more successors. Each memory is visited at most twice.
fn cycles<'m>(memories: &BTreeMap<&'m str, &'m Memory>) -> BTreeSet<&'m str> {
    let next = |id: &str| -> Option<&'m str> {
        let memory = memories.get(id)?;
        memory.temporal.superseded_by.as_deref().filter(|next| *next != id && memories.contains_key(next))
    };
    let mut done: BTreeSet<&str> = BTreeSet::new();
    let mut found = BTreeSet::new();
    for &start in memories.keys() {
        let mut path: Vec<&str> = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut at = Some(start);
        while let Some(id) = at.filter(|id| !done.contains(id)) {
            if let Some(&place) = places.get(id) {
                found.extend(&path[place..]);
                break;
            }
            places.insert(id, path.len());
            path.push(id);
            at = next(id);
        }
        done.extend(path);
    }
    found
}

/// The records to write when a memory is replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    /// The replaced memory, superseded and with its successor.
    pub memory: Memory,
    /// The `supersedes` relation from the successor.
    pub relation: Relation,
}

/// Why a memory cannot be replaced by another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SupersedeError {
    /// Its status does not allow it.
    #[error("memory {id:?} cannot be superseded: {error}")]
    Transition {
        /// Id of the memory.
        id: String,
        /// The forbidden transition.
        error: TransitionError,
    },
    /// It has a successor already.
    #[error("memory {id:?} is superseded by {by:?} already; replace that one")]
    Already {
        /// Id of the memory.
        id: String,
        /// Id of its successor.
        by: String,
    },
    /// It would be its own successor.
    #[error("memory {0:?} cannot supersede itself")]
    Itself(String),
}

/// Replaces a memory by the memory with the id `by` at the time `at`.
///
/// # Errors
/// If §7.1 does not allow the transition, the memory has another successor already, or `by` is its own id.
pub fn supersede(memory: &Memory, by: &str, at: Timestamp) -> Result<Replacement, SupersedeError> {
    let id = || memory.id.clone();
    if memory.id == by {
        return Err(SupersedeError::Itself(id()));
    }
    if let Some(other) = memory.temporal.superseded_by.as_ref().filter(|other| *other != by) {
        return Err(SupersedeError::Already { id: id(), by: other.clone() });
    }
    check_transition(memory.status, Status::Superseded)
        .map_err(|error| SupersedeError::Transition { id: id(), error })?;
    let mut memory = memory.clone();
    memory.status = Status::Superseded;
    memory.temporal.superseded_by = Some(by.to_owned());
    memory.temporal.updated_at = Some(at);
    let relation = Relation {
        id: ids::relation_id(by, &memory.id, RelationType::Supersedes).to_string(),
        from: by.to_owned(),
        to: memory.id.clone(),
        relation_type: RelationType::Supersedes,
        confidence: None,
        created_at: at,
    };
    Ok(Replacement { memory, relation })
}
