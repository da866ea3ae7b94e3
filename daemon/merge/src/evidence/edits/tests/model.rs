//! Compares the effect of edits with an independent model.
//!
//! The model knows neither dots nor version vectors nor registers: each event lists all events that its author had, and
//! everything follows from these sets by the definitions, one pair of events after the other.

use std::collections::BTreeMap;

use proptest::prelude::*;
use satchel_pam::memory::{Access, Permission, Visibility};

use super::{
    stores::{Event, Happening, Simulation, by_edit, documents, happenings},
    *,
};
use crate::evidence::DerivedMemories;

struct Model<'a> {
    events: &'a [Event],
    /// The events that count.
    effective: BTreeSet<usize>,
}

impl<'a> Model<'a> {
    fn new(events: &'a [Event], known: &BTreeSet<usize>) -> Self {
        let edits = by_edit(events, known);
        let counting = edits.keys().filter(|edit| counts(events, known, edit));
        let effective = counting.flat_map(|edit| edits[edit].iter().copied()).collect();
        Self { events, effective }
    }

    /// Returns the events for which `sets` is true and which no other such event knew.
    fn left(&self, sets: impl Fn(&EditAction) -> bool) -> Vec<&'a EditStep> {
        let all: Vec<usize> =
            self.effective.iter().copied().filter(|event| sets(&self.events[*event].step.action)).collect();
        let replaced = |event: &usize| all.iter().any(|other| self.events[*other].seen.contains(event));
        all.iter().filter(|event| !replaced(event)).map(|event| &self.events[*event].step).collect()
    }

    fn values(&self, memory: &str, field: MemoryField) -> Vec<(&'a EditStep, &'a Memory)> {
        let steps = self.left(|action| {
            matches!(action, EditAction::Patch(patch) if patch.to.id == memory && patch.fields.contains(&field))
        });
        let value = |step: &'a EditStep| match &step.action {
            EditAction::Patch(patch) => Some((step, &patch.to)),
            _ => None,
        };
        steps.into_iter().filter_map(value).collect()
    }
}

/// Returns whether an edit counts: whether every known undo of it is itself undone.
fn counts(events: &[Event], known: &BTreeSet<usize>, edit: &str) -> bool {
    let undoes =
        |event: &&usize| matches!(&events[**event].step.action, EditAction::Undo(target) if target == edit);
    known.iter().filter(undoes).all(|undo| !counts(events, known, &events[*undo].step.edit_id))
}

/// Returns the greatest by time, and among those of one time the greatest by `tie`.
fn newest<'m, T: Ord>(
    values: &[(&EditStep, &'m Memory)],
    tie: impl Fn(&'m Memory) -> T,
) -> Option<&'m Memory> {
    values.iter().max_by_key(|(step, memory)| (step.at, tie(memory))).map(|(_, memory)| *memory)
}

fn check_text(model: &Model<'_>, shown: &Memory) -> Result<(), TestCaseError> {
    let contents = model.values(&shown.id, MemoryField::Content);
    let content = newest(&contents, |memory| memory.content_hash).map_or("theirs", |memory| &memory.content);
    prop_assert_eq!(&shown.content, content);
    prop_assert_eq!(shown.content_hash, ContentHash::of(content));
    let summaries = model.values(&shown.id, MemoryField::Summary);
    let summary = newest(&summaries, |memory| &memory.summary).and_then(|memory| memory.summary.as_deref());
    prop_assert_eq!(shown.summary.as_deref(), summary);
    let tags = model.values(&shown.id, MemoryField::Tags);
    let union: BTreeSet<&String> = tags.iter().flat_map(|(_, memory)| &memory.tags).collect();
    prop_assert_eq!(shown.tags.iter().collect::<BTreeSet<_>>(), union);
    Ok(())
}

fn check_status(model: &Model<'_>, shown: &Memory, derived: &DerivedMemories) -> Result<(), TestCaseError> {
    const ORDER: [Status; 5] =
        [Status::Retracted, Status::Archived, Status::Superseded, Status::Deprecated, Status::Active];
    let values = model.values(&shown.id, MemoryField::Status);
    let expected = ORDER.into_iter().find(|status| values.iter().any(|(_, memory)| memory.status == *status));
    prop_assert_eq!(shown.status, expected.unwrap_or_default());
    let same: Vec<_> = values.into_iter().filter(|(_, memory)| memory.status == shown.status).collect();
    let successor = newest(&same, |memory| &memory.temporal.superseded_by);
    let successor = successor.and_then(|memory| memory.temporal.superseded_by.clone());
    prop_assert_eq!(&shown.temporal.superseded_by, &successor);
    let named: BTreeSet<String> =
        same.iter().filter_map(|(_, memory)| memory.temporal.superseded_by.clone()).collect();
    let drawn = derived.relations.values().filter(|relation| relation.to == shown.id);
    let supersedes = drawn.filter(|relation| relation.relation_type.as_str() == "supersedes");
    prop_assert_eq!(supersedes.map(|relation| relation.from.clone()).collect::<BTreeSet<_>>(), named);
    Ok(())
}

/// Returns whether `access` lets `entity` do something.
fn allows(access: Option<&Access>, entity: &str, permission: Permission) -> bool {
    let Some(access) = access else { return false };
    let granted = access
        .shared_with
        .iter()
        .any(|grant| grant.entity == entity && grant.permissions.contains(&permission));
    match access.visibility {
        Visibility::Private => false,
        Visibility::Shared => granted,
        Visibility::Public => granted || permission == Permission::Read,
    }
}

/// Somebody may do something exactly if every value that is left allows it.
fn check_access(model: &Model<'_>, shown: &Memory) -> Result<(), TestCaseError> {
    let values = model.values(&shown.id, MemoryField::Access);
    let all = |allowed: &dyn Fn(&Memory) -> bool| values.iter().all(|(_, memory)| allowed(memory));
    for entity in ["bob", "eve", "anybody"] {
        for permission in Permission::ALL.iter().copied() {
            let expected = !values.is_empty() && all(&|one| allows(one.access.as_ref(), entity, permission));
            prop_assert_eq!(allows(shown.access.as_ref(), entity, permission), expected);
        }
    }
    prop_assert_eq!(shown.exportable(), all(&Memory::exportable));
    Ok(())
}

fn check_period(model: &Model<'_>, shown: &Memory) -> Result<(), TestCaseError> {
    let [from, until] =
        [MemoryField::ValidFrom, MemoryField::ValidUntil].map(|field| model.values(&shown.id, field));
    let latest = from.iter().filter_map(|(_, memory)| memory.temporal.valid_from).max();
    let earliest = until.iter().filter_map(|(_, memory)| memory.temporal.valid_until).min();
    let period = (shown.temporal.valid_from, shown.temporal.valid_until);
    let inverted = latest.zip(earliest).is_some_and(|(from, until)| until < from);
    if inverted && from.len() + until.len() > 2 {
        let of =
            |(_, memory): &(&EditStep, &Memory)| (memory.temporal.valid_from, memory.temporal.valid_until);
        prop_assert!(from.iter().chain(&until).any(|value| of(value) == period), "{period:?}");
    } else if !inverted {
        prop_assert_eq!(period, (latest, earliest));
    }
    Ok(())
}

fn check_relations(model: &Model<'_>, derived: &DerivedMemories) -> Result<(), TestCaseError> {
    for id in ["relation-0", "relation-1"] {
        let left = model.left(|action| match action {
            EditAction::AddRelation(relation) => relation.id == id,
            EditAction::WithdrawRelation(withdrawn) => withdrawn == id,
            _ => false,
        });
        let withdrawn = left.iter().any(|step| matches!(step.action, EditAction::WithdrawRelation(_)));
        let last = left.iter().map(|step| step.at).max();
        let newest: Vec<&EditAction> =
            left.iter().filter(|step| Some(step.at) == last).map(|step| &step.action).collect();
        match derived.relations.get(id) {
            None => prop_assert!(withdrawn || left.is_empty()),
            Some(shown) => {
                prop_assert!(!withdrawn);
                prop_assert!(newest.contains(&&EditAction::AddRelation(shown.clone())));
            }
        }
    }
    Ok(())
}

/// The edits that conflict: for each memory and field with different values, the edits of all values.
fn check_conflicts(model: &Model<'_>, edits: &UserEdits) -> Result<(), TestCaseError> {
    let mut expected: BTreeMap<(String, MemoryField), BTreeSet<(String, i64)>> = BTreeMap::new();
    for memory in ["0", "1", "2"] {
        for field in MemoryField::ALL {
            let values = model.values(memory, field);
            let different = values.iter().any(|(_, other)| differ(field, values[0].1, other));
            let steps = values.iter().map(|(step, _)| (step.edit_id.clone(), step.at)).collect();
            if different {
                expected.insert((memory.to_owned(), field), steps);
            }
        }
    }
    let listed = edits.conflicts().into_iter().map(|conflict| {
        let edits = conflict.values.into_iter().flat_map(|value| value.edits);
        ((conflict.memory, conflict.field), edits.map(|edit| (edit.edit_id, edit.at)).collect())
    });
    prop_assert_eq!(listed.collect::<BTreeMap<_, _>>(), expected);
    Ok(())
}

fn differ(field: MemoryField, one: &Memory, other: &Memory) -> bool {
    match field {
        MemoryField::Content => one.content != other.content,
        MemoryField::Summary => one.summary != other.summary,
        MemoryField::Tags => one.tags != other.tags,
        MemoryField::ValidFrom => one.temporal.valid_from != other.temporal.valid_from,
        MemoryField::ValidUntil => one.temporal.valid_until != other.temporal.valid_until,
        MemoryField::Access => {
            one.access.clone().unwrap_or_default() != other.access.clone().unwrap_or_default()
        }
        MemoryField::Status => {
            (one.status, &one.temporal.superseded_by) != (other.status, &other.temporal.superseded_by)
        }
        MemoryField::Type | MemoryField::Decay | MemoryField::Metadata => false,
    }
}

fn derive(steps: &[EditStep]) -> (UserEdits, DerivedMemories) {
    let edits = UserEdits::of(steps);
    let derived = derive_with(&[], &documents(), &edits);
    (edits, derived)
}

/// Compares what a store shows with the model.
fn check_store(simulation: &Simulation, store: usize) -> Result<DerivedMemories, TestCaseError> {
    let known = simulation.known(store);
    let model = Model::new(&simulation.events, &known);
    let steps = simulation.steps(store);
    let (edits, derived) = derive(&steps);
    for edit in by_edit(&simulation.events, &known).into_keys().step_by(3) {
        prop_assert_eq!(in_effect(&steps, &edit), counts(&simulation.events, &known, &edit), "{}", edit);
    }
    check_conflicts(&model, &edits)?;
    check_relations(&model, &derived)?;
    for shown in ["0", "1", "2"].map(|id| &derived.memories[id]) {
        check_text(&model, shown)?;
        check_status(&model, shown, &derived)?;
        check_access(&model, shown)?;
        check_period(&model, shown)?;
    }
    Ok(derived)
}

/// Returns stores with a history: at first each store alone, one perhaps a copy of another, later with exchanges.
fn simulate(stores: usize, copied: &[Happening], early: &[Happening], later: &[Happening]) -> Simulation {
    let mut simulation = Simulation::new(stores);
    for happening in copied {
        simulation.happen(&on_store(happening, Some(0), stores));
    }
    simulation.copy_first_store();
    early.iter().for_each(|happening| simulation.happen(&on_store(happening, None, stores)));
    simulation.number_steps();
    for happening in later {
        let mut moved = on_store(happening, None, stores);
        // A store that lacks one of the series that contain a step does not know all dots of that step.
        if let (Happening::Pull { share, .. }, false) = (&mut moved, copied.is_empty()) {
            *share = [u8::MAX; 5];
        }
        simulation.happen(&moved);
    }
    simulation
}

/// Moves a happening to a store that exists.
fn on_store(happening: &Happening, only: Option<usize>, stores: usize) -> Happening {
    let mut moved = happening.clone();
    let of = |store: &mut usize| *store = only.unwrap_or(*store % stores);
    match &mut moved {
        Happening::Edit { store, .. }
        | Happening::Undo { store, .. }
        | Happening::Relate { store, .. }
        | Happening::Clock { store, .. } => of(store),
        Happening::Pull { to, from, .. } => {
            of(to);
            of(from);
        }
    }
    moved
}

/// Each test tries 2,000 random histories, multiplied by `SATCHEL_FAULT_ROUNDS` if it is set.
fn config() -> ProptestConfig {
    let times = std::env::var("SATCHEL_FAULT_ROUNDS").ok().and_then(|times| times.parse::<u32>().ok());
    let cases = times.unwrap_or(1).saturating_mul(2_000);
    // Histories without any edit are rejected.
    ProptestConfig { cases, max_global_rejects: cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn stores_show_what_the_model_shows(
        stores in 3_usize..=5,
        copied in happenings(1, 0..4),
        early in happenings(5, 0..6),
        later in happenings(5, 0..40),
    ) {
        let mut simulation = simulate(stores, &copied, &early, &later);
        for store in simulation.stores() {
            check_store(&simulation, store)?;
        }
        simulation.settle();
        let settled = check_store(&simulation, 0)?;
        for store in simulation.stores() {
            prop_assert_eq!(&derive(&simulation.steps(store)).1, &settled);
        }
    }

    #[test]
    fn a_store_alone_needs_no_dots(events in happenings(1, 0..20)) {
        let mut simulation = Simulation::new(1);
        events.iter().for_each(|happening| simulation.happen(happening));
        let without_dots = check_store(&simulation, 0)?;
        prop_assert!(UserEdits::of(&simulation.steps(0)).conflicts().is_empty());
        simulation.number_steps();
        prop_assert_eq!(check_store(&simulation, 0)?, without_dots);
    }

    #[test]
    fn the_order_and_number_of_steps_never_matter(
        copied in happenings(1, 0..4),
        later in happenings(4, 1..30),
        turn in any::<prop::sample::Index>(),
    ) {
        let mut simulation = simulate(4, &copied, &[], &later);
        simulation.settle();
        let steps = simulation.steps(0);
        prop_assume!(!steps.is_empty());
        let mut turned = steps.clone();
        turned.rotate_left(turn.index(steps.len()));
        turned.extend(steps.iter().rev().cloned());
        prop_assert_eq!(derive(&turned), derive(&steps));
    }

    #[test]
    fn a_retraction_ends_only_by_an_edit_that_knows_of_it(later in happenings(3, 0..40)) {
        let mut simulation = simulate(3, &[], &[], &later);
        simulation.settle();
        let (known, steps) = (simulation.known(0), simulation.steps(0));
        let (_, derived) = derive(&steps);
        let sets = |event: usize, memory: &str, status: Option<Status>| {
            matches!(&simulation.events[event].step.action, EditAction::Patch(patch)
                if patch.to.id == memory
                    && patch.fields.contains(&MemoryField::Status)
                    && status.is_none_or(|status| patch.to.status == status))
        };
        let counts = |event: usize| in_effect(&steps, &simulation.events[event].step.edit_id);
        for id in ["0", "1", "2"].into_iter().filter(|id| derived.memories[*id].status != Status::Retracted) {
            for retraction in known.iter().filter(|event| sets(**event, id, Some(Status::Retracted)) && counts(**event)) {
                let ends = |event: &usize| simulation.events[*event].seen.contains(retraction) && sets(*event, id, None);
                prop_assert!(known.iter().any(|event| ends(event) && counts(*event)), "{id}");
            }
        }
    }
}
