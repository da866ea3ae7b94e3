//! The laws of merging, over random histories of a store that fits into memory.

use proptest::{collection::vec, prelude::*};
use satchel_pam::{
    checksum,
    conversation::ConversationTemporal,
    hash::ContentHash,
    lifecycle,
    memory::{Confidence, Memory, Status},
    merge::{self, Action, Plan, Reason, State, Verdict},
    parse,
    relation::{Relation, RelationType},
    store::{ExportType, IndexEntry, MemoryStore, Owner, StoreHeader, Writer},
    time::Timestamp,
};

use crate::full;

/// Microseconds; the first moment of every history.
const START: i64 = 1_767_225_600_000_000;

/// One change; numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    Add(u8),
    Edit(usize, u8),
    Status(usize, Status),
    Tag(usize, u8),
    Reinforce(usize),
    Supersede(usize, u8),
    Relate(usize, usize),
    Converse(u8, usize),
}

fn step() -> impl Strategy<Value = Step> {
    step_among(20)
}

/// One that adds memories of so many ids.
fn step_among(ids: u8) -> impl Strategy<Value = Step> {
    let any_status = prop::sample::select(Status::ALL);
    prop_oneof![
        3 => (0..ids).prop_map(Step::Add),
        2 => (any::<usize>(), any::<u8>()).prop_map(|(at, text)| Step::Edit(at, text)),
        2 => (any::<usize>(), any_status).prop_map(|(at, status)| Step::Status(at, status)),
        1 => (any::<usize>(), any::<u8>()).prop_map(|(at, tag)| Step::Tag(at, tag)),
        1 => any::<usize>().prop_map(Step::Reinforce),
        1 => (any::<usize>(), 20..40_u8).prop_map(|(at, new)| Step::Supersede(at, new)),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Step::Relate(from, to)),
        1 => (0..4_u8, any::<usize>()).prop_map(|(id, at)| Step::Converse(id, at)),
    ]
}

/// What the store held at each revision; revision 0 is empty.
struct History(Vec<State>);

impl History {
    /// `pace`: microseconds between steps; 0 makes all changes at one time.
    fn of(steps: &[Step], pace: i64) -> Self {
        let mut revisions = vec![State::default()];
        for (number, step) in steps.iter().enumerate() {
            let now = START + i64::try_from(number).unwrap() * pace;
            let mut next = revisions.last().unwrap().clone();
            apply(&mut next, step, Timestamp::from_micros(now).unwrap());
            revisions.push(next);
        }
        Self(revisions)
    }

    fn full(&self, at: usize) -> Vec<u8> {
        document(&self.0[at], ExportType::Full)
    }

    /// What differs between two revisions, as it is at the later one.
    fn delta(&self, from: usize, to: usize) -> Vec<u8> {
        let (base, mut state) = (&self.0[from], self.0[to].clone());
        state.memories.retain(|id, one| base.memories.get(id) != Some(one));
        state.relations.retain(|id, one| base.relations.get(id) != Some(one));
        state.index.retain(|id, one| base.index.get(id) != Some(one));
        document(&state, ExportType::Incremental)
    }
}

fn apply(state: &mut State, step: &Step, now: Timestamp) {
    let ids: Vec<String> = state.memories.keys().cloned().collect();
    let chosen = |at: usize| ids.get(at % ids.len().max(1)).cloned();
    let mut change = |at: usize, edit: &dyn Fn(&mut Memory)| {
        let Some(memory) = chosen(at).and_then(|id| state.memories.get_mut(&id)) else { return };
        edit(memory);
    };
    match *step {
        Step::Add(number) => {
            let memory = memory(number, now);
            state.memories.entry(memory.id.clone()).or_insert(memory);
        }
        Step::Edit(at, text) => change(at, &|memory| {
            memory.content = format!("Nadia said {text}.");
            memory.content_hash = ContentHash::of(&memory.content);
            memory.temporal.updated_at = Some(now);
        }),
        Step::Status(at, status) => change(at, &|memory| {
            if status != Status::Superseded && memory.status.may_become(status) {
                memory.status = status;
                memory.temporal.updated_at = Some(now);
            }
        }),
        Step::Tag(at, tag) => change(at, &|memory| {
            memory.tags = vec![format!("tag-{tag}")];
            memory.temporal.updated_at = Some(now);
        }),
        Step::Reinforce(at) => change(at, &|memory| {
            let before = memory.confidence.clone();
            let before = before.unwrap_or(Confidence { initial: Some(0.5), ..Confidence::default() });
            memory.confidence = Some(lifecycle::reinforced(&before, now));
        }),
        Step::Supersede(at, number) => {
            let Some(old) = chosen(at).and_then(|id| state.memories.get(&id)) else { return };
            let new = memory(number, now);
            let Ok(replacement) = lifecycle::supersede(old, &new.id, now) else { return };
            state.memories.entry(new.id.clone()).or_insert(new);
            state.memories.insert(replacement.memory.id.clone(), replacement.memory);
            state.relations.entry(replacement.relation.id.clone()).or_insert(replacement.relation);
        }
        Step::Relate(from, to) => {
            let (Some(from), Some(to)) = (chosen(from), chosen(to)) else { return };
            let (relation_type, id) = (RelationType::Supports, format!("{from} supports {to}"));
            let relation =
                Relation { id: id.clone(), from, to, relation_type, confidence: None, created_at: now };
            state.relations.entry(id).or_insert(relation);
        }
        Step::Converse(number, at) => {
            let id = format!("conversation-{number}");
            let derived = chosen(at).into_iter().collect();
            let entry = entry(&id, derived, now);
            let entry = state
                .index
                .get(&id)
                .map_or_else(|| entry.clone(), |held| merge::merged_index_entry(held, &entry));
            state.index.insert(id, entry);
        }
    }
}

fn memory(number: u8, now: Timestamp) -> Memory {
    let mut memory = full::small_memory(&format!("m-{number:02}"), &format!("Nadia likes {number}."));
    memory.temporal.created_at = now;
    memory
}

fn entry(id: &str, derived_memories: Vec<String>, now: Timestamp) -> IndexEntry {
    let temporal =
        ConversationTemporal { created_at: Timestamp::from_micros(START).unwrap(), updated_at: Some(now) };
    IndexEntry {
        id: id.to_owned(),
        platform: "claude".to_owned(),
        title: None,
        message_count: None,
        temporal,
        tags: Vec::new(),
        derived_memories,
        storage: None,
    }
}

/// The document of a state; headers are equal, so that equal states are equal bytes.
fn document(state: &State, export_type: ExportType) -> Vec<u8> {
    let owner = Owner { id: "nadia".to_owned(), ..Owner::default() };
    let header = StoreHeader { export_type, ..StoreHeader::new(owner) };
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    state.memories.values().for_each(|memory| writer.memory(memory).unwrap());
    state.relations.values().for_each(|relation| writer.relation(relation).unwrap());
    state.index.values().for_each(|entry| writer.index_entry(entry).unwrap());
    writer.finish(None).unwrap().out
}

fn read(bytes: &[u8]) -> MemoryStore {
    let (document, issues) = parse::memory_store(bytes);
    document.unwrap_or_else(|| panic!("{issues:?}"))
}

fn merged(documents: &[&[u8]]) -> State {
    let mut state = State::default();
    for document in documents {
        state.merge(&read(document));
    }
    state
}

/// To the byte, with the checksum inside.
fn same(state: &State, full: &[u8]) {
    let written = document(state, ExportType::Full);
    assert_eq!(str::from_utf8(&written).unwrap(), str::from_utf8(full).unwrap());
    let declared = read(full).integrity.unwrap().checksum;
    assert_eq!(state.checksum().unwrap(), declared);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_base_and_a_delta_are_the_full_export(steps in vec(step(), 1..14), pace in 0..2_i64) {
        let history = History::of(&steps, pace * 1_000_000);
        for to in 0..history.0.len() {
            let full = history.full(to);
            for from in 0..=to {
                same(&merged(&[&history.full(from), &history.delta(from, to)]), &full);
            }
        }
    }

    #[test]
    fn deltas_on_one_base_and_on_each_other_lead_to_the_same(
        steps in vec(step(), 2..14),
        (one, other) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        let history = History::of(&steps, 1_000_000);
        let last = history.0.len() - 1;
        let (one, other) = (one.index(last), other.index(last));
        let (from, middle) = (one.min(other), one.max(other));
        let (base, full) = (history.full(from), history.full(last));
        let first = history.delta(from, middle);
        same(&merged(&[&base, &first, &history.delta(from, last)]), &full);
        same(&merged(&[&base, &first, &history.delta(middle, last)]), &full);
    }

    #[test]
    fn a_full_export_over_nothing_is_itself_and_over_an_older_store_the_newer(steps in vec(step(), 1..14)) {
        let history = History::of(&steps, 1_000_000);
        let last = history.full(history.0.len() - 1);
        same(&merged(&[&last]), &last);
        for older in 0..history.0.len() {
            same(&merged(&[&history.full(older), &last]), &last);
        }
    }

    #[test]
    fn applying_twice_is_applying_once(steps in vec(step(), 1..14), other in vec(step(), 1..14), pace in 0..2_i64) {
        let mut state = History::of(&steps, pace).0.pop().unwrap();
        let foreign = History::of(&other, 1_500_000);
        let document = read(&foreign.delta(0, foreign.0.len() - 1));
        state.merge(&document);
        let once = state.clone();
        let again = state.merge(&document);
        prop_assert_eq!(&state, &once);
        prop_assert!(!again.changes(), "{:?}", again);
    }

    #[test]
    fn an_older_delta_leaves_what_is_newer_and_names_it(steps in vec(step(), 2..14)) {
        let history = History::of(&steps, 1_000_000);
        let last = history.0.len() - 1;
        for middle in 0..last {
            let older = read(&history.delta(0, middle));
            let mut state = history.0[last].clone();
            let plan = state.merge(&older);
            prop_assert_eq!(&state, &history.0[last]);
            for (id, verdict) in &plan.memories {
                let unchanged = history.0[middle].memories[id] == history.0[last].memories[id];
                prop_assert_eq!(verdict.conflict(), !unchanged, "{} {:?}", id, verdict);
            }
        }
    }

    #[test]
    fn what_was_retracted_never_comes_back(histories in vec((vec(step_among(3), 4..16), 0..3_000_000_i64), 2..5)) {
        let mut state = State::default();
        let mut retracted: Vec<String> = Vec::new();
        for (steps, pace) in &histories {
            for document in History::of(steps, *pace).0 {
                let incoming = retracted_of(&document);
                state.merge(&read(&self::document(&document, ExportType::Full)));
                retracted.extend(incoming);
                let held = retracted_of(&state);
                prop_assert!(retracted.iter().all(|id| held.contains(id)), "{:?} of {:?}", held, retracted);
            }
        }
    }

    #[test]
    fn no_id_disappears_and_the_checksum_is_of_what_is_held(one in vec(step(), 1..10), other in vec(step(), 1..10)) {
        let mut state = History::of(&one, 7).0.pop().unwrap();
        let before = state.clone();
        let incoming = History::of(&other, 11).0.pop().unwrap();
        state.merge(&read(&document(&incoming, ExportType::Full)));
        prop_assert!(before.memories.keys().chain(incoming.memories.keys()).all(|id| state.memories.contains_key(id)));
        prop_assert!(before.relations.keys().chain(incoming.relations.keys()).all(|id| state.relations.contains_key(id)));
        for (id, entry) in before.index.iter().chain(&incoming.index) {
            // What is held grows; of an older document the hint may be left out.
            let held = &state.index[id].derived_memories;
            let grown = entry.derived_memories.iter().all(|memory| held.contains(memory));
            prop_assert!(grown || incoming.index.get(id) == Some(entry));
        }
        let memories: Vec<Memory> = state.memories.values().cloned().collect();
        prop_assert_eq!(state.checksum().unwrap(), checksum::of_memories(&memories).unwrap());
    }
}

fn retracted_of(state: &State) -> Vec<String> {
    let retracted = state.memories.values().filter(|memory| memory.status == Status::Retracted);
    retracted.map(|memory| memory.id.clone()).collect()
}

#[test]
fn of_one_id_twice_in_a_document_the_first_counts() {
    let (first, second) = (full::small_memory("m", "first"), full::small_memory("m", "second"));
    let mut document = read(&document(&State::default(), ExportType::Full));
    document.memories = vec![first.clone(), second];
    let mut state = State::default();
    let plan: Plan = state.merge(&document);
    assert_eq!(plan.memories[1].1.reason, Reason::Repeated);
    assert_eq!(state.memories["m"], first);
    assert!(!state.merge(&document).changes());
}

#[test]
fn of_two_vectors_of_a_memory_the_later_is_taken() {
    let held = &full::embeddings().embeddings[0];
    let mut incoming = held.clone();
    assert_eq!(merge::embedding(None, &incoming).reason, Reason::Unknown);
    assert_eq!(merge::embedding(Some(held), &incoming).reason, Reason::Equal);
    incoming.id = "another".to_owned();
    incoming.created_at = full::at("2026-01-01T00:00:00.000001Z");
    assert_eq!(merge::embedding(Some(held), &incoming).reason, Reason::Newer);
    assert_eq!(merge::embedding(Some(&incoming), held).reason, Reason::Older);
}

#[test]
fn a_plan_counts_what_it_does() {
    let state = History::of(&[Step::Add(1), Step::Add(2), Step::Edit(0, 7)], 1).0;
    let mut held = state[2].clone();
    let plan = merge::plan(&held, &read(&document(&state[3], ExportType::Full)));
    let counts = merge::counts(plan.verdicts());
    assert_eq!(counts, [(Action::Replace, 1), (Action::Same, 1)].into());
    assert!(plan.changes() && held == state[2], "a plan writes nothing");
    held.merge(&read(&document(&state[3], ExportType::Full)));
    assert_eq!(held, state[3]);
}

#[test]
fn the_callers_own_times_decide_where_it_gives_them() {
    let (held, incoming) = (full::small_memory("m", "held"), full::small_memory("m", "came"));
    let verdict: Verdict = merge::memory(Some(&held), &incoming);
    assert_eq!((verdict.reason, verdict.action()), (Reason::SameTime, Action::Replace));
    let verdict = merge::memory_by(Some(&held), &incoming, |memory| i64::from(memory.content == "held"));
    assert_eq!((verdict.reason, verdict.action()), (Reason::Older, Action::Keep));
}
