//! Evidence split by memory, so that the evidence on a few memories can be loaded without the rest.

use std::collections::BTreeMap;

use satchel_pam::record::{Claim, Item};
use uuid::Uuid;

use super::{
    DerivedMemories, DocumentEvidence, EvidenceItem, MemoryState, Spoken, StoredEvidence,
    apply_documents_and_edits, item_at, memory, memory_uuid, takes_precedence,
};

/// What a piece of evidence says about one memory.
pub struct MemoryEvidence {
    /// The piece of evidence, reduced to the item about the memory.
    pub witness: StoredEvidence,
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
    /// Extracts the item of `witness` at `place`, or returns `None` if there is none.
    #[must_use]
    pub fn of(
        witness: &StoredEvidence,
        place: usize,
        now: Option<MemoryState>,
        before: Option<MemoryState>,
    ) -> Option<Self> {
        let item = item_at(&witness.claim, place)?;
        Some(Self::from_frame(witness, item, now, before))
    }

    /// Like [`MemoryEvidence::of`], for a `frame` that may lack the item.
    #[must_use]
    pub fn from_frame(
        frame: &StoredEvidence,
        item: &Item,
        now: Option<MemoryState>,
        before: Option<MemoryState>,
    ) -> Self {
        let claim = match &frame.claim {
            Claim::Snapshot { series, .. } => {
                Claim::Snapshot { series: series.clone(), items: vec![item.clone()] }
            }
            claim @ (Claim::Statement(_) | Claim::Edit { .. }) => claim.clone(),
        };
        let witness = StoredEvidence {
            id: frame.id.clone(),
            platform: frame.platform.clone(),
            account: frame.account.clone(),
            at: frame.at,
            conversation: frame.conversation.clone(),
            message: frame.message.clone(),
            row: frame.row.clone(),
            method: frame.method,
            extractor: frame.extractor.clone(),
            claim,
        };
        Self { memory: memory_uuid(item), witness, now, before }
    }
}

impl MemoryEvidenceSet {
    /// Combines `statements`, either stored or from the current import, with the evidence from lists, of which only the
    /// pieces that count are given. Of several statements with one id, the one that outranks the others counts.
    #[must_use]
    pub fn of(statements: Vec<(StoredEvidence, bool)>, listed: Vec<MemoryEvidence>) -> Self {
        let mut now: BTreeMap<String, StoredEvidence> = BTreeMap::new();
        let mut before: BTreeMap<String, StoredEvidence> = BTreeMap::new();
        for (witness, fresh) in statements {
            let take = |among: &mut BTreeMap<String, StoredEvidence>, witness: StoredEvidence| {
                if among.get(&witness.id).is_none_or(|other| takes_precedence(&witness, other)) {
                    among.insert(witness.id.clone(), witness);
                }
            };
            if fresh {
                take(&mut now, witness);
            } else {
                take(&mut before, witness);
            }
        }
        let mut pieces = listed;
        for (id, witness) in before {
            let stated = item_at(&witness.claim, 0).map(super::own_state);
            let counts = now.get(&id).is_none_or(|fresh| !takes_precedence(fresh, &witness));
            if counts {
                now.remove(&id);
            }
            pieces.extend(MemoryEvidence::of(&witness, 0, stated.filter(|_| counts), stated));
        }
        pieces.extend(now.into_values().filter_map(|witness| {
            let stated = item_at(&witness.claim, 0).map(super::own_state);
            MemoryEvidence::of(&witness, 0, stated, None)
        }));
        Self(pieces)
    }

    /// Returns all pieces of evidence, each with its one item.
    pub fn witnesses_mut(&mut self) -> impl Iterator<Item = &mut StoredEvidence> {
        self.0.iter_mut().map(|saying| &mut saying.witness)
    }

    /// Derives the memories from this evidence, from `documents` and from the user's edits: the state `now`, or the
    /// state before the current import. `known` tells whether any evidence exists for a memory. Returns `None` if
    /// `stop` returns true on the way.
    pub fn derive<'d>(
        &self,
        now: bool,
        known: &dyn Fn(&Uuid) -> bool,
        documents: impl IntoIterator<Item = &'d DocumentEvidence>,
        spoken: &Spoken,
        stop: &dyn Fn() -> bool,
    ) -> Option<DerivedMemories> {
        let mut says = Vec::with_capacity(self.0.len());
        for saying in &self.0 {
            let Some(fate) = (if now { saying.now } else { saying.before }) else { continue };
            let Some(item) = item_at(&saying.witness.claim, 0) else { continue };
            says.push(EvidenceItem { memory: saying.memory, witness: &saying.witness, item, state: fate });
        }
        for witness in &spoken.added {
            if let Some(item) = item_at(&witness.claim, 0) {
                says.push(EvidenceItem {
                    memory: memory_uuid(item),
                    witness,
                    item,
                    state: super::own_state(item),
                });
            }
        }
        Some(apply_documents_and_edits(memory::combine(says, known, stop)?, documents, spoken))
    }
}
