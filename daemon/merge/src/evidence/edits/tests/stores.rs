//! Simulated stores that edit, undo and exchange steps. Beside what a real store records, each event holds the set of
//! all events that its author had; only the model uses it.

use std::{collections::BTreeMap, num::NonZeroU64};

use proptest::prelude::*;
use satchel_pam::memory::{Access, AccessGrant, Permission, Visibility};

use super::*;
use crate::causality::{Dot, OriginId, VersionVector};

/// A day in microseconds.
const DAY: i64 = 86_400_000_000;
/// The greatest error of a clock, in days.
const SKEW: i64 = 400;

/// Something that happens in the simulation. Numbers select among what exists.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    /// A store sets fields of one or two memories in one edit.
    Edit { store: usize, memories: [Option<u8>; 2], fields: u16, value: u16 },
    /// A store undoes an edit that it has.
    Undo { store: usize, which: usize },
    /// A store adds or withdraws a relation.
    Relate { store: usize, id: u8, withdraw: bool },
    /// A store fetches the series of another one, or a part of each.
    Pull { to: usize, from: usize, share: [u8; 5] },
    /// Time passes; the clock of one store is set.
    Clock { store: usize, days: i64 },
}

pub(super) struct Event {
    pub(super) step: EditStep,
    /// The events that the author had.
    pub(super) seen: BTreeSet<usize>,
}

struct SimulatedStore {
    /// The error of its clock, in days.
    skew: i64,
    /// The number of events of each series that it has.
    frontier: Vec<usize>,
    /// The events that it wrote or copied before it began its series.
    early: Vec<usize>,
}

pub(super) struct Simulation {
    pub(super) events: Vec<Event>,
    stores: Vec<SimulatedStore>,
    /// The series of each store: events in order.
    series: Vec<Vec<usize>>,
    /// Whether steps have dots.
    numbered: bool,
    time: i64,
}

pub(super) fn happenings(
    stores: usize,
    count: impl Into<prop::collection::SizeRange>,
) -> impl Strategy<Value = Vec<Happening>> {
    let store = 0..stores;
    let edit = (store.clone(), 0_u8..3, prop::option::weighted(0.2, 0_u8..3), any::<u16>(), any::<u16>())
        .prop_map(|(store, one, other, fields, value)| Happening::Edit {
            store,
            memories: [Some(one), other.filter(|other| *other != one)],
            fields,
            value,
        });
    let undo = (store.clone(), any::<usize>()).prop_map(|(store, which)| Happening::Undo { store, which });
    let relate = (store.clone(), 0_u8..2, any::<bool>())
        .prop_map(|(store, id, withdraw)| Happening::Relate { store, id, withdraw });
    let pull = (store.clone(), store.clone(), any::<[u8; 5]>())
        .prop_map(|(to, from, share)| Happening::Pull { to, from, share });
    let clock = (store, -SKEW..=SKEW).prop_map(|(store, days)| Happening::Clock { store, days });
    prop::collection::vec(prop_oneof![6 => edit, 2 => undo, 1 => relate, 4 => pull, 1 => clock], count)
}

pub(super) fn origin(store: usize) -> OriginId {
    OriginId::new(uuid::Uuid::from_u128(store as u128 + 1))
}

impl Simulation {
    pub(super) fn new(stores: usize) -> Self {
        let store = |_| SimulatedStore { skew: 0, frontier: vec![0; stores], early: Vec::new() };
        let series = vec![Vec::new(); stores];
        Self {
            events: Vec::new(),
            stores: (0..stores).map(store).collect(),
            series,
            numbered: false,
            time: 0,
        }
    }

    /// Makes store 1 a copy of store 0.
    pub(super) fn copy_first_store(&mut self) {
        self.stores[1].early = self.stores[0].early.clone();
    }

    /// All stores begin their series with the steps that they have.
    pub(super) fn number_steps(&mut self) {
        self.numbered = true;
        for (store, series) in self.series.iter_mut().enumerate() {
            series.clone_from(&self.stores[store].early);
            self.stores[store].frontier[store] = series.len();
        }
    }

    pub(super) fn happen(&mut self, happening: &Happening) {
        match *happening {
            Happening::Edit { store, memories, fields, value } => {
                let edit = format!("edit-{}", self.events.len());
                for memory in memories.into_iter().flatten() {
                    let patch = patch(memory, fields, value);
                    self.write(store, edit.clone(), EditAction::Patch(Box::new(patch)));
                }
            }
            Happening::Undo { store, which } => {
                let known: Vec<usize> = self.known(store).into_iter().collect();
                let Some(target) = known.get(which % known.len().max(1)) else { return };
                let target = self.events[*target].step.edit_id.clone();
                self.write(store, format!("edit-{}", self.events.len()), EditAction::Undo(target));
            }
            Happening::Relate { store, id, withdraw } => {
                let relation = relation(id, self.time);
                let id = relation.id.clone();
                let action = if withdraw {
                    EditAction::WithdrawRelation(id)
                } else {
                    EditAction::AddRelation(relation)
                };
                self.write(store, format!("edit-{}", self.events.len()), action);
            }
            Happening::Pull { to, from, share } => self.pull(to, from, share),
            Happening::Clock { store, days } => self.stores[store].skew = days,
        }
    }

    /// Lets all stores exchange everything.
    pub(super) fn settle(&mut self) {
        for _ in 0..self.stores.len() {
            for to in 0..self.stores.len() {
                (0..self.stores.len()).for_each(|from| self.pull(to, from, [u8::MAX; 5]));
            }
        }
    }

    /// Fetches a share of what is missing of each series, from its beginning. What a series refers to may be missing.
    fn pull(&mut self, to: usize, from: usize, share: [u8; 5]) {
        if !self.numbered {
            return;
        }
        for (of, share) in (0..self.stores.len()).zip(share) {
            let (held, offered) = (self.stores[to].frontier[of], self.stores[from].frontier[of]);
            let missing = offered.saturating_sub(held);
            self.stores[to].frontier[of] +=
                if share > 99 { missing } else { missing * usize::from(share) / 100 };
        }
    }

    fn write(&mut self, store: usize, edit_id: String, action: EditAction) {
        self.time += DAY / 2;
        let seen = self.known(store);
        // Times are whole days, so that some are equal.
        let now = (self.time / DAY + self.stores[store].skew) * DAY;
        let (at, causality) = if self.numbered {
            let counter = self.series[store].len() as u64 + 1;
            let dot = Dot::new(origin(store), counter).unwrap();
            (now, Causality::Recorded { dot, seen: self.vector(store) })
        } else {
            let last = seen.iter().map(|event| self.events[*event].step.at).max();
            (last.map_or(now, |last| now.max(last + 1)), Causality::Unnumbered)
        };
        let event = self.events.len();
        self.events.push(Event { step: EditStep { causality, ..EditStep::new(edit_id, at, action) }, seen });
        if self.numbered {
            self.series[store].push(event);
            self.stores[store].frontier[store] += 1;
        } else {
            self.stores[store].early.push(event);
        }
    }

    fn vector(&self, store: usize) -> VersionVector {
        let held = self.stores[store].frontier.iter().enumerate();
        held.filter_map(|(of, count)| Dot::new(origin(of), *count as u64)).collect()
    }

    /// Returns the events that a store has.
    pub(super) fn known(&self, store: usize) -> BTreeSet<usize> {
        let SimulatedStore { frontier, early, .. } = &self.stores[store];
        let held = frontier.iter().zip(&self.series).flat_map(|(count, series)| &series[..*count]);
        held.chain(early).copied().collect()
    }

    /// Returns the steps that a store has, as it reads them: once for each series that contains them.
    pub(super) fn steps(&self, store: usize) -> Vec<EditStep> {
        let mut steps = Vec::new();
        for (of, count) in self.stores[store].frontier.iter().enumerate() {
            for (event, counter) in self.series[of][..*count].iter().zip(1..) {
                let step = self.events[*event].step.clone();
                let dot = Dot { origin: origin(of), counter: NonZeroU64::new(counter).unwrap() };
                let causality =
                    if step.causality.is_unrecorded() { Causality::assigned([dot]) } else { step.causality };
                steps.push(EditStep { causality, ..step });
            }
        }
        if !self.numbered {
            steps.extend(self.stores[store].early.iter().map(|event| self.events[*event].step.clone()));
        }
        steps
    }

    pub(super) fn stores(&self) -> std::ops::Range<usize> {
        0..self.stores.len()
    }
}

fn patch(memory: u8, fields: u16, value: u16) -> MemoryPatch {
    const STATUS: [Status; 5] =
        [Status::Active, Status::Superseded, Status::Deprecated, Status::Retracted, Status::Archived];
    const FIELDS: [MemoryField; 7] = [
        MemoryField::Content,
        MemoryField::Summary,
        MemoryField::Tags,
        MemoryField::ValidFrom,
        MemoryField::ValidUntil,
        MemoryField::Access,
        MemoryField::Status,
    ];
    let digit = |place: u32, base: u16| usize::from(value / 7_u16.pow(place) % base);
    let mut to = super::memory(&memory.to_string(), &format!("content {}", digit(0, 7)));
    to.summary = Some(format!("summary {}", digit(1, 7)));
    to.tags = (0..3).filter(|tag| value >> tag & 1 == 1).map(|tag| format!("tag-{tag}")).collect();
    to.status = STATUS[digit(2, 5)];
    if to.status == Status::Superseded {
        to.temporal.superseded_by = Some(format!("successor-{}", digit(3, 2)));
    }
    let from = i64::from(value % 3) * 4;
    to.temporal.valid_from = Some(Timestamp::saturating(from));
    to.temporal.valid_until = Some(Timestamp::saturating(from + 3));
    to.access = (!value.is_multiple_of(5)).then(|| access(value));
    let chosen = FIELDS.into_iter().enumerate().filter(|(bit, _)| fields >> bit & 1 == 1);
    let fields: BTreeSet<MemoryField> = chosen.map(|(_, field)| field).collect();
    MemoryPatch { fields, to, reverses_retraction: false }
}

fn access(value: u16) -> Access {
    let permissions = |bits: u16| -> Vec<Permission> {
        Permission::ALL
            .iter()
            .enumerate()
            .filter(|(bit, _)| bits >> bit & 1 == 1)
            .map(|(_, one)| *one)
            .collect()
    };
    let grant =
        |entity: &str, bits| AccessGrant { entity: entity.to_owned(), permissions: permissions(bits) };
    let grants = [grant("bob", value / 8), grant("eve", value / 64)];
    Access {
        visibility: Visibility::ALL[usize::from(value % 3)],
        exportable: !value.is_multiple_of(4),
        shared_with: grants.into_iter().filter(|grant| !grant.permissions.is_empty()).collect(),
    }
}

fn relation(id: u8, at: i64) -> Relation {
    Relation {
        id: format!("relation-{id}"),
        from: "0".to_owned(),
        to: "1".to_owned(),
        relation_type: satchel_pam::relation::RelationType::Supports,
        confidence: None,
        created_at: Timestamp::saturating(at),
    }
}

/// Returns the memories that all stores have from elsewhere.
pub(super) fn documents() -> Vec<DocumentEvidence> {
    let ids = ["0", "1", "2", "successor-0", "successor-1"];
    ids.into_iter().map(|id| document(memory(id, "theirs"))).collect()
}

/// Returns the events by edit.
pub(super) fn by_edit(events: &[Event], known: &BTreeSet<usize>) -> BTreeMap<String, Vec<usize>> {
    let mut edits: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for event in known {
        edits.entry(events[*event].step.edit_id.clone()).or_default().push(*event);
    }
    edits
}
