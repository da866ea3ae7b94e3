//! Evidence split by memory, so that the evidence on a few memories can be loaded without the rest.

use std::collections::BTreeMap;

use satchel_pam::record::{Claim, Item};
use uuid::Uuid;

use super::{
    DerivedMemories, DocumentEvidence, EvidenceItem, MemoryState, StoredEvidence, UserEdits,
    apply_documents_and_edits, item_at, memory, memory_uuid, takes_precedence,
};

/// What a piece of evidence says about one memory.
pub struct MemoryEvidence {
    /// The piece of evidence, reduced to the item about the memory.
    pub evidence: StoredEvidence,
    memory: Uuid,
    /// The state of the memory; `None` if it does not count.
    now: Option<MemoryState>,
    /// The state before the current import.
    before: Option<MemoryState>,
}

/// The evidence on some memories.
#[derive(Default)]
pub struct MemoryEvidenceSet(Vec<MemoryEvidence>);

impl MemoryEvidence {
    /// Extracts the item of `evidence` at `place`, or returns `None` if there is none.
    #[must_use]
    pub fn of(
        evidence: &StoredEvidence,
        place: usize,
        now: Option<MemoryState>,
        before: Option<MemoryState>,
    ) -> Option<Self> {
        let item = item_at(&evidence.claim, place)?;
        Some(Self::from_base(evidence, item, now, before))
    }

    /// Like [`MemoryEvidence::of`], for a `base` that may lack the item.
    #[must_use]
    pub fn from_base(
        base: &StoredEvidence,
        item: &Item,
        now: Option<MemoryState>,
        before: Option<MemoryState>,
    ) -> Self {
        let claim = match &base.claim {
            Claim::Snapshot { series, .. } => {
                Claim::Snapshot { series: series.clone(), items: vec![item.clone()] }
            }
            claim @ (Claim::Statement(_) | Claim::Edit { .. }) => claim.clone(),
        };
        let evidence = StoredEvidence {
            id: base.id.clone(),
            platform: base.platform.clone(),
            account: base.account.clone(),
            at: base.at,
            conversation: base.conversation.clone(),
            message: base.message.clone(),
            row: base.row.clone(),
            method: base.method,
            extractor: base.extractor.clone(),
            claim,
        };
        Self { memory: memory_uuid(item), evidence, now, before }
    }
}

impl MemoryEvidenceSet {
    /// Combines `statements`, either stored or from the current import, with the evidence from lists, of which only the
    /// pieces that count are given. Of several statements with one id, the one that outranks the others counts.
    #[must_use]
    pub fn of(statements: Vec<(StoredEvidence, bool)>, listed: Vec<MemoryEvidence>) -> Self {
        let mut now: BTreeMap<String, StoredEvidence> = BTreeMap::new();
        let mut before: BTreeMap<String, StoredEvidence> = BTreeMap::new();
        for (evidence, fresh) in statements {
            let take = |among: &mut BTreeMap<String, StoredEvidence>, evidence: StoredEvidence| {
                if among.get(&evidence.id).is_none_or(|other| takes_precedence(&evidence, other)) {
                    among.insert(evidence.id.clone(), evidence);
                }
            };
            if fresh {
                take(&mut now, evidence);
            } else {
                take(&mut before, evidence);
            }
        }
        let mut pieces = listed;
        for (id, evidence) in before {
            let stated = item_at(&evidence.claim, 0).map(super::own_state);
            let counts = now.get(&id).is_none_or(|fresh| !takes_precedence(fresh, &evidence));
            if counts {
                now.remove(&id);
            }
            pieces.extend(MemoryEvidence::of(&evidence, 0, stated.filter(|_| counts), stated));
        }
        pieces.extend(now.into_values().filter_map(|evidence| {
            let stated = item_at(&evidence.claim, 0).map(super::own_state);
            MemoryEvidence::of(&evidence, 0, stated, None)
        }));
        Self(pieces)
    }

    /// Returns all pieces of evidence, each with its one item.
    pub fn evidence_mut(&mut self) -> impl Iterator<Item = &mut StoredEvidence> {
        self.0.iter_mut().map(|piece| &mut piece.evidence)
    }

    /// Derives the memories from this evidence, from `documents` and from the user's edits: the state `now`, or the
    /// state before the current import. `known` tells whether any evidence exists for a memory. Returns `None` if
    /// `stop` returns true on the way.
    pub fn derive<'d>(
        &self,
        now: bool,
        known: &dyn Fn(&Uuid) -> bool,
        documents: impl IntoIterator<Item = &'d DocumentEvidence>,
        edits: &UserEdits,
        stop: &dyn Fn() -> bool,
    ) -> Option<DerivedMemories> {
        let mut items = Vec::with_capacity(self.0.len());
        for piece in &self.0 {
            let Some(state) = (if now { piece.now } else { piece.before }) else { continue };
            let Some(item) = item_at(&piece.evidence.claim, 0) else { continue };
            items.push(EvidenceItem { memory: piece.memory, evidence: &piece.evidence, item, state });
        }
        for evidence in &edits.added {
            if let Some(item) = item_at(&evidence.claim, 0) {
                items.push(EvidenceItem {
                    memory: memory_uuid(item),
                    evidence,
                    item,
                    state: super::own_state(item),
                });
            }
        }
        Some(apply_documents_and_edits(memory::combine(items, known, stop)?, documents, edits))
    }
}
