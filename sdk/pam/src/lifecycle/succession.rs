//! Who replaced whom (PAM 1.0 §7 and §13): `superseded_by` and `supersedes` relations say the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use super::{Arrow, allowed};
use crate::{
    ids,
    memory::{Memory, Status},
    relation::{Relation, RelationType},
    time::Timestamp,
};

/// Where status, successor and relations of one memory do not agree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The memory that was, or should be, replaced.
    pub memory: String,
    /// What does not agree.
    pub problem: Problem,
}

/// What does not agree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Problem {
    /// It is superseded and names no successor (rule ).
    NoSuccessor,
    /// It names a successor and is still active.
    StillActive,
    /// It names itself.
    OwnSuccessor,
    /// It names a memory that is not there.
    UnknownSuccessor(String),
    /// Following the successors from here comes back here.
    Circle,
    /// It names a successor, and no relation says so.
    NoRelation(String),
    /// A relation says that this one replaced it, and it names another, or none.
    OtherSuccessor(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = &self.memory;
        match &self.problem {
            Problem::NoSuccessor => write!(f, "memory {id:?} is superseded and names no successor"),
            Problem::StillActive => write!(f, "memory {id:?} names a successor and is still active"),
            Problem::OwnSuccessor => write!(f, "memory {id:?} names itself as its successor"),
            Problem::UnknownSuccessor(by) => {
                write!(f, "memory {id:?} names {by:?} as its successor, which is not there")
            }
            Problem::Circle => write!(f, "the successors of memory {id:?} lead back to it"),
            Problem::NoRelation(by) => {
                write!(f, "memory {id:?} names {by:?} as its successor, and no supersedes relation says so")
            }
            Problem::OtherSuccessor(by) => {
                write!(f, "a relation says that {by:?} supersedes memory {id:?}, which does not name it")
            }
        }
    }
}

/// Everything that does not agree among these memories and relations, by memory id. Takes time in proportion to them.
#[must_use]
pub fn faults<'a>(
    memories: impl IntoIterator<Item = &'a Memory>,
    relations: impl IntoIterator<Item = &'a Relation>,
) -> Vec<Fault> {
    let memories: BTreeMap<&str, &Memory> =
        memories.into_iter().map(|memory| (memory.id.as_str(), memory)).collect();
    let edges: BTreeSet<(&str, &str)> = relations
        .into_iter()
        .filter(|relation| relation.relation_type == RelationType::Supersedes)
        .map(|relation| (relation.to.as_str(), relation.from.as_str()))
        .collect();
    let mut found = BTreeSet::new();
    let mut note = |memory: &str, problem| found.insert(Fault { memory: memory.to_owned(), problem });
    for (id, memory) in &memories {
        let successor = memory.temporal.superseded_by.as_deref();
        for problem in alone(memory, successor) {
            note(id, problem);
        }
        let Some(successor) = successor.filter(|successor| successor != id) else { continue };
        if !memories.contains_key(successor) {
            note(id, Problem::UnknownSuccessor(successor.to_owned()));
        }
        if !edges.contains(&(*id, successor)) {
            note(id, Problem::NoRelation(successor.to_owned()));
        }
    }
    for (old, new) in &edges {
        // Two may replace one (its `superseded_by` has one place); then one of them is named, and that is enough.
        let named = memories.get(old).map(|memory| memory.temporal.superseded_by.as_deref());
        if named.is_some_and(|named| named.is_none_or(|named| !edges.contains(&(*old, named)))) {
            note(old, Problem::OtherSuccessor((*new).to_owned()));
        }
    }
    for id in circles(&memories) {
        note(id, Problem::Circle);
    }
    found.into_iter().collect()
}

/// What a memory contradicts by itself.
fn alone(memory: &Memory, successor: Option<&str>) -> impl Iterator<Item = Problem> {
    let lacks = memory.status == Status::Superseded && successor.is_none_or(str::is_empty);
    let active = memory.status == Status::Active && successor.is_some();
    let own = successor == Some(memory.id.as_str());
    [
        lacks.then_some(Problem::NoSuccessor),
        active.then_some(Problem::StillActive),
        own.then_some(Problem::OwnSuccessor),
    ]
    .into_iter()
    .flatten()
}

/// The memories that stand on a circle of successors, other than their own successors; each is walked over twice at most.
fn circles<'m>(memories: &BTreeMap<&'m str, &'m Memory>) -> BTreeSet<&'m str> {
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

/// What replacing one memory by another writes: the two say the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    /// The replaced one: superseded, naming its successor.
    pub memory: Memory,
    /// From the successor to it.
    pub relation: Relation,
}

/// Why a memory cannot be replaced by another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SupersedeError {
    /// Its status does not let it.
    #[error("memory {id:?} cannot be superseded: {arrow}")]
    Arrow {
        /// Which.
        id: String,
        /// From where to where.
        arrow: Arrow,
    },
    /// It has a successor already.
    #[error("memory {id:?} is superseded by {by:?} already; replace that one")]
    Already {
        /// Which.
        id: String,
        /// By whom.
        by: String,
    },
    /// It would be its own successor.
    #[error("memory {0:?} cannot supersede itself")]
    Itself(String),
}

/// Replaces a memory by the one with the id `by`, at the time `at`.
///
/// # Errors
/// If §7.1 does not let it become superseded, it is superseded by another already, or `by` is its own id.
pub fn supersede(memory: &Memory, by: &str, at: Timestamp) -> Result<Replacement, SupersedeError> {
    let id = || memory.id.clone();
    if memory.id == by {
        return Err(SupersedeError::Itself(id()));
    }
    if let Some(other) = memory.temporal.superseded_by.as_ref().filter(|other| *other != by) {
        return Err(SupersedeError::Already { id: id(), by: other.clone() });
    }
    allowed(memory.status, Status::Superseded).map_err(|arrow| SupersedeError::Arrow { id: id(), arrow })?;
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
