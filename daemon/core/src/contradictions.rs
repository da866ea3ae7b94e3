//! Pairs of memories that contradict each other.

use satchel_pam::{
    memory::{Memory, Status},
    relation::RelationType,
};
use satchel_store::{
    Cursor, MemoryOrder, MemoryQuery, MemoryRecord, Page, RelationRecord, Revision, Store, StoreError,
};

/// What may be a contradiction, and has to be looked at.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Whether what is settled is looked for, rather than what is not.
    settled: bool,
    source: CandidateSource,
}

#[derive(Clone, Debug)]
enum CandidateSource {
    Relation(Box<RelationRecord>),
    Memory(Box<MemoryRecord>),
}

/// Why two memories contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContradictionReason {
    /// A relation says so.
    Contradicts,
    /// The first supersedes the second, which is active all the same.
    Superseded,
}

/// Two memories that contradict each other.
#[derive(Clone, Debug)]
pub struct Contradiction {
    /// Why.
    pub reason: ContradictionReason,
    /// The relation from the first to the second; `None` if only `temporal.superseded_by` says so.
    pub relation: Option<RelationRecord>,
    /// The first memory.
    pub first: MemoryRecord,
    /// The second memory.
    pub second: MemoryRecord,
    /// Whether nothing needs to be done.
    pub settled: bool,
}

/// The parts of the list, in order.
#[derive(Clone, Copy)]
enum Part {
    /// Relations, for what is not settled.
    OpenRelations,
    /// Memories that name a successor and may be active.
    Memories,
    /// Relations, for what is settled.
    SettledRelations,
}

impl Part {
    fn of(byte: u8) -> Self {
        match byte {
            0 => Self::OpenRelations,
            1 => Self::Memories,
            _ => Self::SettledRelations,
        }
    }

    fn next(self, include_settled: bool) -> Option<Self> {
        match self {
            Self::OpenRelations => Some(Self::Memories),
            Self::Memories if include_settled => Some(Self::SettledRelations),
            Self::Memories | Self::SettledRelations => None,
        }
    }
}

/// Returns a page of candidates: first for what is not settled, then for what is. Nothing but the page is in memory.
///
/// # Errors
/// Any error of the store.
pub fn candidates(
    store: &Store,
    include_settled: bool,
    after: Option<&Cursor>,
    limit: usize,
    at: Revision,
) -> Result<Page<Candidate>, StoreError> {
    // The first byte of a cursor is the part, and the others are the cursor within it.
    let (part, inner) = match after.and_then(|cursor| cursor.as_bytes().split_first()) {
        Some((part, [])) => (Part::of(*part), None),
        Some((part, inner)) => (Part::of(*part), Some(Cursor::from_bytes(inner))),
        None => (Part::OpenRelations, None),
    };
    let settled = matches!(part, Part::SettledRelations);
    let (sources, next): (Vec<_>, _) = match part {
        Part::OpenRelations | Part::SettledRelations => {
            let page = store.relations(inner.as_ref(), limit, at)?;
            let relations = page.items.into_iter().map(|record| CandidateSource::Relation(Box::new(record)));
            (relations.collect(), page.next)
        }
        Part::Memories => {
            let (statuses, order) = (vec![Status::Active], MemoryOrder::IdAscending);
            let query = MemoryQuery { statuses, order, ..MemoryQuery::default() };
            let page = store.memories(&query, inner.as_ref(), limit, at)?;
            let memories = page.items.into_iter().map(|record| CandidateSource::Memory(Box::new(record)));
            (memories.collect(), page.next)
        }
    };
    let next = match next {
        Some(inner) => Some(cursor(part, inner.as_bytes())),
        None => part.next(include_settled).map(|part| cursor(part, &[])),
    };
    let items = sources.into_iter().map(|source| Candidate { settled, source }).collect();
    Ok(Page { items, next })
}

fn cursor(part: Part, inner: &[u8]) -> Cursor {
    Cursor::from_bytes(&[&[part as u8], inner].concat())
}

/// Returns the contradiction that a candidate is, if it is one.
///
/// # Errors
/// Any error of the store.
pub fn contradiction(
    store: &Store,
    candidate: Candidate,
    at: Revision,
) -> Result<Option<Contradiction>, StoreError> {
    let memory = |id: &str| -> Result<Option<MemoryRecord>, StoreError> {
        Ok(store.memory(id, Some(at))?.filter(|record| !record.withdrawn))
    };
    let (reason, relation, pair) = match candidate.source {
        CandidateSource::Relation(record) => {
            let reason = match record.relation.relation_type {
                RelationType::Contradicts => ContradictionReason::Contradicts,
                // A memory that is superseded as it should be needs no mention.
                RelationType::Supersedes if !candidate.settled => ContradictionReason::Superseded,
                _ => return Ok(None),
            };
            let pair = memory(&record.relation.from)?.zip(memory(&record.relation.to)?);
            (reason, Some(*record), pair)
        }
        CandidateSource::Memory(second) => {
            let Some(successor) = &second.memory.temporal.superseded_by else { return Ok(None) };
            if *successor == second.memory.id || has_relation(store, successor, &second.memory.id, at)? {
                return Ok(None);
            }
            (ContradictionReason::Superseded, None, memory(successor)?.map(|first| (first, *second)))
        }
    };
    let Some((first, second)) = pair else { return Ok(None) };
    let settled = settled(&first.memory, &second.memory);
    let wanted = settled == candidate.settled;
    Ok(wanted.then_some(Contradiction { reason, relation, first, second, settled }))
}

/// Returns whether a relation says that `new` supersedes `old`; then the list has that.
fn has_relation(store: &Store, new: &str, old: &str, at: Revision) -> Result<bool, StoreError> {
    let relations = store.relations_of(old, Some(at))?;
    Ok(relations.iter().any(|RelationRecord { relation, .. }| {
        relation.relation_type == RelationType::Supersedes && relation.from == new && relation.to == old
    }))
}

/// Returns whether two memories do not contradict each other any more: one is not in use, or they hold at different times.
fn settled(first: &Memory, second: &Memory) -> bool {
    let ends_before = |one: &Memory, other: &Memory| {
        let times = one.temporal.valid_until.zip(other.temporal.valid_from);
        times.is_some_and(|(until, from)| until.micros() <= from.micros())
    };
    let active = first.status == Status::Active && second.status == Status::Active;
    !active || ends_before(first, second) || ends_before(second, first)
}
