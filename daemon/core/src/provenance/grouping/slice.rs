//! The evidence about a group of memories, which is read only when needed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use satchel_merge::evidence::{
    DerivedMemories, DocumentEvidence, MemoryEvidence, MemoryEvidenceSet, MemoryState, UserEdits, item_at,
    memory_id,
};
use satchel_pam::record::Item;
use satchel_store::{Store, record_key};
use uuid::Uuid;

use super::{EvidenceRef, ListEvidence, ListedMemory};
use crate::provenance::{
    ActiveEvidence, EvidenceItem, EvidenceKey, PackedMap, ProvenanceError, RowLocations,
};

/// Number of pieces of evidence of one kind that are read at once; each has a few kilobytes.
const SLICE_SIZE: usize = 1_024;
/// Grouped evidence, ordered by memory.
pub struct GroupedEvidence {
    evidence: Vec<EvidenceRef>,
    /// The states of memories in lists.
    now: Vec<ListedMemory<u32>>,
    /// The same, as it was before the import.
    before: Vec<ListedMemory<u32>>,
    /// Where the next slice begins in each of the three lists.
    at: [usize; 3],
    /// Number of pieces in a slice.
    pub(super) size: usize,
    linked: BTreeSet<EvidenceKey>,
    asserted: AssertedMemories,
    /// The pieces of evidence about lists.
    lists: Vec<ListEvidence>,
    places: Arc<RowLocations>,
}

/// The memories that any report asserts, in order: now, and before the import.
#[derive(Clone, Default)]
struct AssertedMemories([Arc<[EvidenceKey]>; 2]);

/// A list item that is needed.
struct NeededItem {
    digest: u64,
    /// Its state, now and before the import.
    states: [Option<MemoryState>; 2],
}

/// All evidence about a group of memories.
#[derive(Default)]
pub struct EvidenceSlice {
    reported: MemoryEvidenceSet,
    /// The evidence in the store, except for the reports of exports.
    pub known: ActiveEvidence,
    /// Memories of the import's documents.
    pub documents: Vec<DocumentEvidence>,
    asserted: AssertedMemories,
    places: Arc<RowLocations>,
}

impl GroupedEvidence {
    /// Creates it from lists that are each ordered by memory.
    pub(super) fn new(
        (evidence, now, before): (Vec<EvidenceRef>, Vec<ListedMemory<u32>>, Vec<ListedMemory<u32>>),
        lists: Vec<ListEvidence>,
        places: Arc<RowLocations>,
    ) -> Self {
        let (linked, asserted) = (BTreeSet::new(), AssertedMemories::default());
        Self { evidence, now, before, at: [0; 3], size: SLICE_SIZE, linked, asserted, lists, places }
    }

    /// Removes the evidence about the memories in `linked` and returns it, added to `linked_evidence`.
    pub(super) fn extract_linked(
        &mut self,
        linked: BTreeSet<EvidenceKey>,
        linked_evidence: ActiveEvidence,
        store: &Store,
        reports: &PackedMap,
    ) -> Result<EvidenceSlice, ProvenanceError> {
        let user_edits = UserEdits::of(&linked_evidence.edit_steps);
        self.asserted = AssertedMemories::new(self, &user_edits);
        let evidence: Vec<EvidenceRef> =
            self.evidence.extract_if(.., |item| linked.contains(&item.memory)).collect();
        let extract = |listed: &mut Vec<ListedMemory<u32>>| -> Vec<ListedMemory<u32>> {
            listed.extract_if(.., |item| linked.contains(item.memory.as_bytes())).collect()
        };
        let (now, before) = (extract(&mut self.now), extract(&mut self.before));
        self.linked = linked;
        self.read(
            (&evidence, &now, &before),
            ActiveEvidence { user_edits, ..linked_evidence },
            (store, reports),
        )
    }

    /// Drops memories whose state does not change, as far as that is known. Those in `changed` are kept.
    pub(super) fn keep_changed(&mut self, mut changed: BTreeSet<EvidenceKey>) {
        changed.extend(self.evidence.iter().filter(|item| item.fresh).map(|item| item.memory));
        let (mut now, mut before) = (self.now.as_slice(), self.before.as_slice());
        while let Some(memory) = first(now, before) {
            let same = |item: &&ListedMemory<u32>| item.memory == memory;
            let (of_now, of_before) =
                (now.iter().take_while(same).count(), before.iter().take_while(same).count());
            let (one, rest) = now.split_at(of_now);
            let (other, left) = before.split_at(of_before);
            if one != other {
                changed.insert(memory.into_bytes());
            }
            (now, before) = (rest, left);
        }
        self.evidence.retain(|item| changed.contains(&item.memory));
        self.now.retain(|item| changed.contains(item.memory.as_bytes()));
        self.before.retain(|item| changed.contains(item.memory.as_bytes()));
    }

    /// Returns whether the memory is derived together with others.
    #[must_use]
    pub fn is_linked(&self, memory: &EvidenceKey) -> bool {
        self.linked.contains(memory)
    }

    /// Returns the next slice, or `None` if there are no more.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub fn next(
        &mut self,
        store: &Store,
        reports: &PackedMap,
    ) -> Result<Option<EvidenceSlice>, ProvenanceError> {
        let [evidence, now, before] =
            [self.at[0]..self.evidence.len(), self.at[1]..self.now.len(), self.at[2]..self.before.len()];
        if evidence.is_empty() && now.is_empty() && before.is_empty() {
            return Ok(None);
        }
        let key = |item: &ListedMemory<u32>| item.memory.into_bytes();
        // The evidence about one memory is never split.
        let last = [
            self.evidence[evidence.clone()].get(self.size - 1).map(|item| item.memory),
            self.now[now.clone()].get(self.size - 1).map(key),
            self.before[before.clone()].get(self.size - 1).map(key),
        ];
        let last = last.into_iter().flatten().min().unwrap_or([0xff; 16]);
        let ends = [
            evidence.start + self.evidence[evidence.clone()].partition_point(|item| item.memory <= last),
            now.start + self.now[now.clone()].partition_point(|item| key(item) <= last),
            before.start + self.before[before.clone()].partition_point(|item| key(item) <= last),
        ];
        let evidence = self.evidence[evidence.start..ends[0]].to_vec();
        let now = self.now[now.start..ends[1]].to_vec();
        let before = self.before[before.start..ends[2]].to_vec();
        self.at = ends;
        self.read((&evidence, &now, &before), ActiveEvidence::default(), (store, reports)).map(Some)
    }

    fn read(
        &mut self,
        (evidence, now, before): (&[EvidenceRef], &[ListedMemory<u32>], &[ListedMemory<u32>]),
        mut known: ActiveEvidence,
        (store, reports): (&Store, &PackedMap),
    ) -> Result<EvidenceSlice, ProvenanceError> {
        let (mut documents, mut statements) = (Vec::new(), Vec::new());
        for item in evidence {
            match read(store, reports, item.report, item.fresh)? {
                Some(EvidenceItem::Document(document)) if item.fresh => documents.push(*document),
                Some(EvidenceItem::Stored(stored)) => statements.push((*stored, item.fresh)),
                Some(report) => known.add(report),
                None => {}
            }
        }
        let mut reported = MemoryEvidenceSet::of(statements, self.read_lists(now, before, (store, reports))?);
        reported.evidence_mut().for_each(|one| self.places.locate_evidence(one));
        Ok(EvidenceSlice {
            reported,
            known,
            documents,
            asserted: self.asserted.clone(),
            places: Arc::clone(&self.places),
        })
    }

    /// Returns what lists report. Of several pieces that report the same about a memory, only one is read.
    fn read_lists(
        &self,
        now: &[ListedMemory<u32>],
        before: &[ListedMemory<u32>],
        (store, reports): (&Store, &PackedMap),
    ) -> Result<Vec<MemoryEvidence>, ProvenanceError> {
        let mut needed: BTreeMap<(Uuid, u32, u32), NeededItem> = BTreeMap::new();
        for (which, listed) in [now, before].into_iter().enumerate() {
            for ListedMemory { location: of, item, digest, memory, state } in listed {
                let none = NeededItem { digest: *digest, states: [None; 2] };
                needed.entry((*memory, *of, *item)).or_insert(none).states[which] = Some(*state);
            }
        }
        let mut listed = Vec::with_capacity(needed.len());
        let mut items: BTreeMap<(Uuid, u64), Item> = BTreeMap::new();
        for ((memory, of, place), NeededItem { digest, states: [now, before] }) in needed {
            let (Ok(of), Ok(place)) = (usize::try_from(of), usize::try_from(place)) else { continue };
            let Some(list) = self.lists.get(of) else { continue };
            if let (Some(frame), Some(item)) = (&list.frame, items.get(&(memory, digest))) {
                listed.push(MemoryEvidence::from_base(frame, item, now, before));
                continue;
            }
            let Some(EvidenceItem::Stored(evidence)) = read(store, reports, list.report, list.fresh)? else {
                continue;
            };
            if list.frame.is_some() {
                items.extend(item_at(&evidence.claim, place).map(|item| ((memory, digest), item.clone())));
            }
            listed.extend(MemoryEvidence::of(&evidence, place, now, before));
        }
        Ok(listed)
    }
}

impl EvidenceSlice {
    /// Returns the state that follows, with the implicit relations: `now`, or as it was before the import. The import's
    /// `documents` are used together with those in the store. Returns `None` if `stop` returns true on the way.
    pub fn derive(
        &self,
        now: bool,
        documents: &[DocumentEvidence],
        stop: &dyn Fn() -> bool,
    ) -> Option<DerivedMemories> {
        let Self { reported, known, asserted, .. } = self;
        let asserted = |memory: &Uuid| asserted.0[usize::from(!now)].binary_search(memory.as_bytes()).is_ok();
        let all = || known.documents.iter().chain(documents);
        let mut derived = reported.derive(now, &asserted, all(), &known.user_edits, stop)?;
        self.places.locate_memories(&mut derived, all());
        Some(derived)
    }
}

impl AssertedMemories {
    fn new(grouped: &GroupedEvidence, user_edits: &UserEdits) -> Self {
        let added = || {
            let items = user_edits.added.iter().filter_map(|added| item_at(&added.claim, 0));
            items.map(|item| record_key(&memory_id(item)))
        };
        let set = |listed: &[ListedMemory<u32>], fresh: bool| {
            let evidence = grouped.evidence.iter().filter(|item| !item.document && (fresh || !item.fresh));
            let listed = listed.iter().map(|item| item.memory.into_bytes());
            let mut asserted: Vec<EvidenceKey> =
                evidence.map(|item| item.memory).chain(listed).chain(added()).collect();
            asserted.sort_unstable();
            asserted.dedup();
            Arc::from(asserted)
        };
        Self([set(&grouped.now, true), set(&grouped.before, false)])
    }
}

/// Reads a piece of evidence that an import brings, unless it was released already, or a stored one.
pub(super) fn read(
    store: &Store,
    reports: &PackedMap,
    report: EvidenceKey,
    fresh: bool,
) -> Result<Option<EvidenceItem>, ProvenanceError> {
    const WHAT: &str = "a piece of evidence that was there a moment ago";
    if fresh && let Some(json) = reports.get(&report)? {
        return EvidenceItem::decode(&json);
    }
    let stored = store.evidence(report)?.ok_or(ProvenanceError::Unreadable { what: WHAT })?;
    EvidenceItem::decode(&stored.json)
}

fn first(now: &[ListedMemory<u32>], before: &[ListedMemory<u32>]) -> Option<Uuid> {
    [now, before].into_iter().filter_map(|listed| listed.first()).map(|item| item.memory).min()
}
