//! The evidence that counts.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::evidence::{
    DerivedMemories, DocumentEvidence, EditStep, RelationEvidence, StoredEvidence, UserEdits, VectorEvidence,
    add_relations, derive_until, takes_precedence,
};
use satchel_pam::memory::Memory;
use satchel_store::{Store, erased, record_key};

use super::{
    AssignedDots, ContributionKind, EvidenceKey, ProvenanceError, PurgedData, RowLocations, UndoneImports,
    decode, excluded_keys,
};

/// The evidence that counts, held completely in memory.
#[derive(Default)]
pub struct ActiveEvidence {
    /// Reports of exports, by id: of several with one id, the one that takes precedence.
    pub evidence: BTreeMap<String, StoredEvidence>,
    /// Memories of PAM documents.
    pub documents: Vec<DocumentEvidence>,
    /// Explicit relations.
    pub edges: Vec<RelationEvidence>,
    /// Vectors of memories.
    pub vectors: Vec<VectorEvidence>,
    /// All changes that the user made by hand.
    pub edit_steps: Vec<EditStep>,
    /// The manual changes that count.
    pub user_edits: UserEdits,
    /// The conversations that show the rows named in the evidence.
    pub row_locations: RowLocations,
}

/// One piece of evidence of any kind.
#[derive(Clone, Debug)]
pub enum EvidenceItem {
    /// A report of an export about memories.
    Stored(Box<StoredEvidence>),
    /// A memory of a PAM document.
    Document(Box<DocumentEvidence>),
    /// An explicit relation.
    Edge(Box<RelationEvidence>),
    /// A vector.
    Vector(Box<VectorEvidence>),
    /// A change that the user made by hand.
    Edit(Box<EditStep>),
}

impl EvidenceItem {
    /// Decodes a stored piece of evidence. Returns `None` if its content was erased.
    ///
    /// # Errors
    /// The bytes cannot be decoded.
    pub fn decode(json: &[u8]) -> Result<Option<Self>, ProvenanceError> {
        const WHAT: &str = "a stored piece of evidence";
        if DocumentEvidence::is(json) {
            let document: Box<DocumentEvidence> = decode(json, WHAT)?;
            return Ok(Some(document).filter(|document| !erased(&document.memory)).map(Self::Document));
        }
        if VectorEvidence::is(json) {
            let vector: Box<VectorEvidence> = decode(json, WHAT)?;
            return Ok(Some(vector).filter(|vector| !vector.is_erased()).map(Self::Vector));
        }
        let report = if RelationEvidence::is(json) {
            Self::Edge(decode(json, WHAT)?)
        } else if EditStep::is(json) {
            Self::Edit(decode(json, WHAT)?)
        } else {
            Self::Stored(decode(json, WHAT)?)
        };
        Ok(Some(report))
    }
}

impl EvidenceItem {
    /// Works as [`EvidenceItem::decode`] for evidence that is stored under `key`; a step of an edit has the causality that follows from `dots`.
    ///
    /// # Errors
    /// The bytes cannot be decoded.
    pub fn decode_stored(
        json: &[u8],
        key: EvidenceKey,
        dots: &AssignedDots,
    ) -> Result<Option<Self>, ProvenanceError> {
        let mut item = Self::decode(json)?;
        if let Some(Self::Edit(step)) = &mut item {
            step.causality = dots.of(key, std::mem::take(&mut step.causality));
        }
        Ok(item)
    }
}

impl EvidenceItem {
    /// Returns the key under which an import stores it; `None` if it is an edit.
    ///
    /// # Errors
    /// None in practice.
    pub fn key(&self) -> Result<Option<EvidenceKey>, ProvenanceError> {
        const WHAT: &str = "a piece of evidence";
        let key = match self {
            Self::Stored(evidence) => evidence.encode().map(|(key, _)| key),
            Self::Document(document) => document.encode().map(|(id, _)| record_key(&id)),
            Self::Edge(edge) => edge.encode().map(|(id, _)| record_key(&id)),
            Self::Vector(vector) => vector.encode().map(|(id, _)| record_key(&id)),
            Self::Edit(_) => return Ok(None),
        };
        key.map(Some).map_err(|_| ProvenanceError::Unreadable { what: WHAT })
    }
}

impl ActiveEvidence {
    /// Returns the evidence that counts when the imports in `undone` do not.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub fn load(store: &Store, undone: &UndoneImports) -> Result<Self, ProvenanceError> {
        Ok(Self::load_until(store, undone, &|| false)?.unwrap_or_default())
    }

    /// Returns the same as [`ActiveEvidence::load`], without the evidence that `removed` names.
    ///
    /// # Errors
    /// As [`ActiveEvidence::load`].
    pub fn load_without(
        store: &Store,
        undone: &UndoneImports,
        removed: BTreeSet<EvidenceKey>,
    ) -> Result<Self, ProvenanceError> {
        let mut left_out = excluded_keys(store, ContributionKind::Evidence, undone)?;
        left_out.extend(removed);
        Ok(Self::read(store, &left_out, &|| false)?.unwrap_or_default())
    }

    /// Returns the same as [`ActiveEvidence::load`], or `None` if `stop` returns true on the way.
    ///
    /// # Errors
    /// As [`ActiveEvidence::load`].
    pub fn load_until(
        store: &Store,
        undone: &UndoneImports,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, ProvenanceError> {
        Self::read(store, &excluded_keys(store, ContributionKind::Evidence, undone)?, stop)
    }

    fn read(
        store: &Store,
        left_out: &BTreeSet<EvidenceKey>,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, ProvenanceError> {
        let (mut counted, dots) = (Self::default(), AssignedDots::load(store)?);
        for record in store.evidence_all() {
            let record = record?;
            if stop() {
                return Ok(None);
            }
            if left_out.contains(&record.id) {
                continue;
            }
            if let Some(report) = EvidenceItem::decode_stored(&record.json, record.id, &dots)? {
                counted.add(report);
            }
        }
        counted.user_edits = UserEdits::of(&counted.edit_steps);
        counted.row_locations = RowLocations::load(store, counted.evidence.values(), &counted.documents)?;
        Ok(Some(counted))
    }

    /// Adds one piece of evidence. The places of rows and the manual changes that count are determined after all
    /// evidence has been added.
    pub fn add(&mut self, report: EvidenceItem) {
        match report {
            EvidenceItem::Document(document) => self.documents.push(*document),
            EvidenceItem::Edge(edge) => self.edges.push(*edge),
            EvidenceItem::Vector(vector) => self.vectors.push(*vector),
            EvidenceItem::Edit(step) => self.edit_steps.push(*step),
            EvidenceItem::Stored(new) => {
                if self.evidence.get(&new.id).is_none_or(|known| takes_precedence(&new, known)) {
                    self.evidence.insert(new.id.clone(), *new);
                }
            }
        }
    }

    /// Returns the evidence that is left when `purged` data is removed.
    #[must_use]
    pub fn without_purged(mut self, purged: &PurgedData) -> Self {
        for evidence in self.evidence.values_mut() {
            purged.redact_stored(evidence);
        }
        self.documents.retain_mut(|document| !purged.redact_document(document));
        self.vectors.retain(|vector| !purged.contains_vectors_of(&vector.identity.memory));
        for step in &mut self.edit_steps {
            purged.redact_edit(step);
        }
        self.user_edits = UserEdits::of(&self.edit_steps);
        self
    }

    /// Returns the relations that follow from the evidence without being explicit.
    #[must_use]
    pub fn implicit_relations(&self) -> BTreeSet<String> {
        self.derive_implicit().relations.into_keys().collect()
    }

    /// Returns the state that follows from the evidence, without the explicit relations.
    #[must_use]
    pub fn derive_implicit(&self) -> DerivedMemories {
        derive_located(self.evidence.values(), &self.row_locations, self.documents.iter(), &self.user_edits)
    }

    /// Returns the state that follows from the evidence.
    #[must_use]
    pub fn derive(&self) -> DerivedMemories {
        let mut derived = self.derive_implicit();
        add_relations(&mut derived, &self.edges);
        derived
    }
}

/// Derives memories from evidence, with each row placed in the conversation that shows it.
pub fn derive_located<'a, 'd>(
    evidence: impl Iterator<Item = &'a StoredEvidence> + Clone,
    places: &RowLocations,
    documents: impl Iterator<Item = &'d DocumentEvidence> + Clone,
    user_edits: &UserEdits,
) -> DerivedMemories {
    derive_located_until(evidence, places, documents, user_edits, &|| false).unwrap_or_default()
}

/// Works like [`derive_located`]. Returns `None` if `stop`, which is called for every memory, returns true.
pub fn derive_located_until<'a, 'd>(
    evidence: impl Iterator<Item = &'a StoredEvidence> + Clone,
    places: &RowLocations,
    documents: impl Iterator<Item = &'d DocumentEvidence> + Clone,
    user_edits: &UserEdits,
    stop: &dyn Fn() -> bool,
) -> Option<DerivedMemories> {
    let located = places.located_evidence(evidence.clone());
    let mut all: Vec<&StoredEvidence> = located.iter().collect();
    for item in evidence.filter(|item| item.row.is_none()) {
        all.push(item);
    }
    let mut derived = derive_until(all, documents.clone(), user_edits, stop)?;
    places.locate_memories(&mut derived, documents);
    Some(derived)
}

/// Returns `memory` as if it came from `conversation`.
pub fn with_conversation(memory: &Memory, conversation: Option<String>) -> Memory {
    let mut memory = memory.clone();
    memory.provenance.conversation_ref = conversation;
    memory
}
