//! Groups all evidence by the memories that it refers to.
//!
//! The state of a memory follows from the reports about that memory alone, once it is known what the lists that contain
//! it make of it. Memories are therefore read and derived one slice at a time. For all others, only the location of
//! their evidence and the result of the lists are held in memory. Memories that are connected by relations, and those
//! that the user changed by hand, are derived together.

mod slice;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use satchel_pam::record::Claim;
use satchel_store::{Store, record_key};

use super::{
    ActiveEvidence, AssignedDots, ContributionKind, EvidenceItem, EvidenceKey, PackedMap, ProvenanceError,
    UndoneImports, excluded_keys, row_groups::RowLookup,
};
use satchel_merge::evidence::{
    EditAction, EditStep, ListedMemory, MemoryState, StoredEvidence, Streams, items_of, memories_of,
    memory_id, takes_precedence,
};

pub use slice::{EvidenceSlice, GroupedEvidence};

/// A statement, or a memory of a document.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EvidenceRef {
    memory: EvidenceKey,
    report: EvidenceKey,
    /// Whether the import reports it. If the store has the same report, that one is kept and this one is dropped.
    fresh: bool,
    /// Whether it is a document. A document's version may be exported again, and then counts as the later of two.
    document: bool,
    /// The first bytes of the key of a statement's id.
    id_prefix: [u8; 8],
}

/// A piece of evidence about a list.
struct ListEvidence {
    report: EvidenceKey,
    fresh: bool,
    /// The key of its id.
    id: EvidenceKey,
    /// Everything that it contains besides the list's items, if it has more than one item.
    frame: Option<Box<StoredEvidence>>,
}

/// Of several pieces with one id, the one that takes precedence.
struct RankedEvidence {
    now: EvidenceKey,
    /// The same, among the pieces that the store already has.
    before: Option<EvidenceKey>,
}

/// The evidence about lists.
#[derive(Default)]
struct ListIndex {
    /// Refers to each piece by its index in `pieces`.
    streams: Streams<u32>,
    pieces: Vec<ListEvidence>,
    ranked: BTreeMap<EvidenceKey, RankedEvidence>,
}

/// Collects evidence before it is grouped.
pub struct EvidenceCollector<'a> {
    store: &'a Store,
    reports: &'a PackedMap,
    /// Evidence that refers to more than one memory, except for lists.
    linked_evidence: ActiveEvidence,
    /// The dots of earlier edits.
    dots: AssignedDots,
    lists: ListIndex,
    evidence: Vec<EvidenceRef>,
    /// Memories that are derived together.
    linked: BTreeSet<EvidenceKey>,
    /// Memories that name rows; those rows may have moved to another conversation.
    with_rows: BTreeSet<EvidenceKey>,
    places: RowLookup<'a>,
    /// Statements whose content was erased. They still take precedence over others with the same id.
    emptied: BTreeMap<[u8; 8], Vec<StoredEvidence>>,
}

impl<'a> EvidenceCollector<'a> {
    /// Collects the stored evidence that counts when the imports in `undone` do not, and the `reports` of an import.
    /// Returns `None` if `stop` returns true on the way.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub fn collect_until(
        store: &'a Store,
        undone: &UndoneImports,
        reports: &'a PackedMap,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, ProvenanceError> {
        let excluded = excluded_keys(store, ContributionKind::Evidence, undone)?;
        let mut collector = Self {
            store,
            reports,
            linked_evidence: ActiveEvidence::default(),
            dots: AssignedDots::load(store)?,
            lists: ListIndex::default(),
            evidence: Vec::new(),
            linked: BTreeSet::new(),
            with_rows: BTreeSet::new(),
            places: RowLookup::new(store),
            emptied: BTreeMap::new(),
        };
        for record in store.evidence_all() {
            let record = record?;
            if stop() {
                return Ok(None);
            }
            if !excluded.contains(&record.id) {
                collector.add(record.id, &record.json, false)?;
            }
        }
        let mut stopped = false;
        reports.for_each(|key, json| {
            stopped = stopped || stop();
            if stopped { Ok(()) } else { collector.add(key, json, true) }
        })?;
        Ok((!stopped).then_some(collector))
    }

    /// Marks a memory as one that must be derived together with others.
    pub fn link(&mut self, memory: &str) {
        self.linked.insert(record_key(memory));
    }

    /// Groups the evidence. Returns the slice of memories that are derived together, and the rest. Unless `all` is set,
    /// the rest contains only memories whose state may change because of the import. Returns `None` if `stop` returns
    /// true on the way.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub fn group(
        mut self,
        all: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<(EvidenceSlice, GroupedEvidence)>, ProvenanceError> {
        self.evidence.sort_unstable();
        self.evidence.dedup_by(|later, first| {
            !later.document && (later.memory, later.report) == (first.memory, first.report)
        });
        self.drop_emptied()?;
        let Some([now, before]) = self.lists.item_states(stop) else { return Ok(None) };
        self.link_successors(&now);
        let places = Arc::new(self.places.finish()?);
        let mut grouped = GroupedEvidence::new((self.evidence, now, before), self.lists.pieces, places);
        let linked_evidence =
            grouped.extract_linked(self.linked, self.linked_evidence, self.store, self.reports)?;
        if !all {
            grouped.keep_changed(self.with_rows);
        }
        Ok(Some((linked_evidence, grouped)))
    }

    fn add(&mut self, report: EvidenceKey, json: &[u8], fresh: bool) -> Result<(), ProvenanceError> {
        let Some(piece) = EvidenceItem::decode_stored(json, report, &self.dots)? else { return Ok(()) };
        connected_memories(&piece).iter().for_each(|id| self.link(id));
        match piece {
            EvidenceItem::Document(document) => {
                let memory = record_key(&document.memory.id);
                self.add_row(memory, document.memory.provenance.message_ref.as_deref())?;
                self.evidence.push(EvidenceRef { memory, report, fresh, document: true, id_prefix: [0; 8] });
            }
            EvidenceItem::Stored(evidence) => self.add_stored(report, *evidence, fresh)?,
            // Those of an import are passed on separately.
            other => self.linked_evidence.add(other),
        }
        Ok(())
    }

    fn add_stored(
        &mut self,
        report: EvidenceKey,
        mut evidence: StoredEvidence,
        fresh: bool,
    ) -> Result<(), ProvenanceError> {
        let id = record_key(&evidence.id);
        for memory in evidence.row.iter().flat_map(|_| memories_of(&evidence.claim)) {
            self.add_row(record_key(&memory), evidence.row.as_deref())?;
        }
        if let Claim::Statement(item) = &evidence.claim {
            let id_prefix = key_prefix(&id);
            if item.content.is_empty() {
                self.emptied.entry(id_prefix).or_default().push(evidence);
            } else {
                let memory = record_key(&memory_id(item));
                self.evidence.push(EvidenceRef { memory, report, fresh, document: false, id_prefix });
            }
            return Ok(());
        }
        let known = |ranked: &RankedEvidence| ranked.now == report || ranked.before == Some(report);
        if fresh && self.lists.ranked.get(&id).is_some_and(known) {
            return Ok(());
        }
        self.rank((report, id), &evidence, fresh)?;
        let number = u32::try_from(self.lists.pieces.len()).map_err(|_| too_many_lists())?;
        self.lists.streams.add(&evidence, number);
        let frame = match &mut evidence.claim {
            Claim::Snapshot { items, .. } if items.len() > 1 => {
                *items = Vec::new();
                Some(Box::new(evidence))
            }
            _ => None,
        };
        self.lists.pieces.push(ListEvidence { report, fresh, id, frame });
        Ok(())
    }

    /// Looks up where the row that a memory names is shown.
    fn add_row(&mut self, memory: EvidenceKey, row: Option<&str>) -> Result<(), ProvenanceError> {
        if let Some(row) = row
            && self.places.add(row)?
        {
            self.with_rows.insert(memory);
        }
        Ok(())
    }

    /// Records which of the pieces with one id takes precedence.
    fn rank(
        &mut self,
        (report, id): (EvidenceKey, EvidenceKey),
        evidence: &StoredEvidence,
        fresh: bool,
    ) -> Result<(), ProvenanceError> {
        let known = (!fresh).then_some(report);
        let Some(ranked) = self.lists.ranked.get(&id) else {
            self.lists.ranked.insert(id, RankedEvidence { now: report, before: known });
            return Ok(());
        };
        let (now, before) = (ranked.now, ranked.before);
        let beats = |other: EvidenceKey| -> Result<bool, ProvenanceError> {
            Ok(match self.read(other, true)? {
                Some(EvidenceItem::Stored(other)) => takes_precedence(evidence, &other),
                _ => true,
            })
        };
        let now = if beats(now)? { report } else { now };
        let before = match (before, known) {
            (Some(before), Some(known)) => Some(if beats(before)? { known } else { before }),
            (before, known) => before.or(known),
        };
        self.lists.ranked.insert(id, RankedEvidence { now, before });
        Ok(())
    }

    fn read(&self, report: EvidenceKey, fresh: bool) -> Result<Option<EvidenceItem>, ProvenanceError> {
        slice::read(self.store, self.reports, report, fresh)
    }

    /// Removes statements that are outranked by an erased statement with the same id.
    fn drop_emptied(&mut self) -> Result<(), ProvenanceError> {
        if self.emptied.is_empty() {
            return Ok(());
        }
        let mut outranked = BTreeSet::new();
        for one in self.evidence.iter().filter(|one| !one.document) {
            let Some(emptied) = self.emptied.get(&one.id_prefix) else { continue };
            let Some(EvidenceItem::Stored(evidence)) = self.read(one.report, one.fresh)? else { continue };
            let mut same = emptied.iter().filter(|emptied| emptied.id == evidence.id);
            if same.any(|emptied| takes_precedence(emptied, &evidence)) {
                outranked.insert(*one);
            }
        }
        self.evidence.retain(|one| !outranked.contains(one));
        Ok(())
    }

    /// Links the successors of linked memories too: if the user decides what supersedes what, no cycle may arise.
    fn link_successors(&mut self, now: &[ListedMemory<u32>]) {
        if self.linked_evidence.edit_steps.is_empty() {
            return;
        }
        let mut open: Vec<EvidenceKey> = self.linked.iter().copied().collect();
        while let Some(memory) = open.pop() {
            let from = now.partition_point(|one| *one.memory.as_bytes() < memory);
            let of_it = now[from..].iter().take_while(|one| *one.memory.as_bytes() == memory);
            for one in of_it {
                if let MemoryState::Replaced { by: Some(by), .. } = one.state
                    && self.linked.insert(*by.as_bytes())
                {
                    open.push(*by.as_bytes());
                }
            }
        }
    }
}

impl ListIndex {
    /// Returns the state of every list item, now and before the import, ordered by memory.
    fn item_states(&self, stop: &dyn Fn() -> bool) -> Option<[Vec<ListedMemory<u32>>; 2]> {
        let ranked = |piece: &ListEvidence| self.ranked.get(&piece.id);
        let counts = |number: &u32, before: bool| {
            let piece = usize::try_from(*number).ok().and_then(|number| self.pieces.get(number));
            piece.is_some_and(|piece| match ranked(piece) {
                Some(ranked) if before => !piece.fresh && ranked.before == Some(piece.report),
                Some(ranked) => ranked.now == piece.report,
                None => false,
            })
        };
        let now = self.streams.states(|number| counts(number, false), stop)?;
        let before = self.streams.states(|number| counts(number, true), stop)?;
        let mut both = [now, before];
        for states in &mut both {
            states.sort_unstable_by_key(|one| (one.memory, one.location, one.item));
        }
        Some(both)
    }
}

/// Returns the memories that a piece connects to others, except for lists.
fn connected_memories(report: &EvidenceItem) -> Vec<String> {
    match report {
        EvidenceItem::Stored(evidence) => superseded_memories(evidence),
        EvidenceItem::Document(document) => match &document.memory.temporal.superseded_by {
            Some(successor) => vec![document.memory.id.clone(), successor.clone()],
            None => Vec::new(),
        },
        EvidenceItem::Edge(edge) => vec![edge.relation.from.clone(), edge.relation.to.clone()],
        EvidenceItem::Vector(_) => Vec::new(),
        EvidenceItem::Edit(step) => memories_of_edit(step),
    }
}

/// Returns the memories for which a piece names a successor, with those successors.
fn superseded_memories(evidence: &StoredEvidence) -> Vec<String> {
    let items = items_of(&evidence.claim).into_iter();
    let pairs = items.filter_map(|item| Some([memory_id(item), item.superseded_by.clone()?]));
    pairs.flatten().collect()
}

fn memories_of_edit(step: &EditStep) -> Vec<String> {
    match &step.action {
        EditAction::AddMemory(evidence) => {
            memories_of(&evidence.claim).into_iter().chain(superseded_memories(evidence)).collect()
        }
        EditAction::Patch(setting) => {
            let successor = setting.to.temporal.superseded_by.clone();
            std::iter::once(setting.to.id.clone()).chain(successor).collect()
        }
        EditAction::AddRelation(relation) => vec![relation.from.clone(), relation.to.clone()],
        // The memories that these affect are linked by the evidence that they refer to.
        EditAction::WithdrawRelation(_) | EditAction::Undo(_) => Vec::new(),
    }
}

fn key_prefix(key: &EvidenceKey) -> [u8; 8] {
    let mut prefix = [0; 8];
    prefix.copy_from_slice(&key[..8]);
    prefix
}

fn too_many_lists() -> ProvenanceError {
    ProvenanceError::Unreadable { what: "so many lists" }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
