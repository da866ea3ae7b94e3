//! The evidence that counts.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::evidence::{
    Derived, Document, Edge, Spoken, Vector, Witness, Word, add_edges, derive_until, outranks,
};
use satchel_pam::memory::Memory;
use satchel_store::{Store, erased};

use super::{Brought, LineageError, Places, Purged, Undone, decode, left_out};

/// The evidence that counts, held completely in memory.
#[derive(Default)]
pub struct Counted {
    /// By id: of several reports with one id, the one that takes precedence.
    pub witnesses: BTreeMap<String, Witness>,
    /// Memories of PAM documents.
    pub documents: Vec<Document>,
    /// Explicit relations.
    pub edges: Vec<Edge>,
    /// Vectors of memories.
    pub vectors: Vec<Vector>,
    /// All changes that the user made by hand.
    pub words: Vec<Word>,
    /// The manual changes that count.
    pub spoken: Spoken,
    /// The conversations that show the rows named in the evidence.
    pub places: Places,
}

/// One piece of evidence of any kind.
#[derive(Debug)]
pub enum Report {
    /// A report of an export about memories.
    Witness(Box<Witness>),
    /// A memory of a PAM document.
    Document(Box<Document>),
    /// An explicit relation.
    Edge(Box<Edge>),
    /// A vector.
    Vector(Box<Vector>),
    /// A change that the user made by hand.
    Word(Box<Word>),
}

impl Report {
    /// Decodes a stored piece of evidence. Returns `None` if its content was erased.
    ///
    /// # Errors
    /// The bytes cannot be decoded.
    pub fn decode(json: &[u8]) -> Result<Option<Self>, LineageError> {
        const WHAT: &str = "a stored piece of evidence";
        if Document::is(json) {
            let document: Box<Document> = decode(json, WHAT)?;
            return Ok(Some(document).filter(|document| !erased(&document.memory)).map(Self::Document));
        }
        if Vector::is(json) {
            let vector: Box<Vector> = decode(json, WHAT)?;
            return Ok(Some(vector).filter(|vector| !vector.is_emptied()).map(Self::Vector));
        }
        let report = if Edge::is(json) {
            Self::Edge(decode(json, WHAT)?)
        } else if Word::is(json) {
            Self::Word(decode(json, WHAT)?)
        } else {
            Self::Witness(decode(json, WHAT)?)
        };
        Ok(Some(report))
    }
}

impl Counted {
    /// Returns the evidence that counts when the imports in `undone` do not.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub fn of(store: &Store, undone: &Undone) -> Result<Self, LineageError> {
        Ok(Self::until(store, undone, &|| false)?.unwrap_or_default())
    }

    /// Returns the same as [`Counted::of`], or `None` if `stop` returns true on the way.
    ///
    /// # Errors
    /// As [`Counted::of`].
    pub fn until(
        store: &Store,
        undone: &Undone,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, LineageError> {
        let left_out = left_out(store, Brought::Evidence, undone)?;
        let mut counted = Self::default();
        for record in store.evidence_all() {
            let record = record?;
            if stop() {
                return Ok(None);
            }
            if left_out.contains(&record.id) {
                continue;
            }
            if let Some(report) = Report::decode(&record.json)? {
                counted.take(report);
            }
        }
        counted.spoken = Spoken::of(&counted.words);
        counted.places = Places::of(store, counted.witnesses.values(), &counted.documents)?;
        Ok(Some(counted))
    }

    /// Adds one piece of evidence. The places of rows and the manual changes that count are determined after all
    /// evidence has been added.
    pub fn take(&mut self, report: Report) {
        match report {
            Report::Document(document) => self.documents.push(*document),
            Report::Edge(edge) => self.edges.push(*edge),
            Report::Vector(vector) => self.vectors.push(*vector),
            Report::Word(word) => self.words.push(*word),
            Report::Witness(witness) => {
                if self.witnesses.get(&witness.id).is_none_or(|known| outranks(&witness, known)) {
                    self.witnesses.insert(witness.id.clone(), *witness);
                }
            }
        }
    }

    /// Returns the evidence that is left when `purged` data is removed.
    #[must_use]
    pub fn without(mut self, purged: &Purged) -> Self {
        for witness in self.witnesses.values_mut() {
            purged.take(witness);
        }
        self.documents.retain_mut(|document| !purged.document(document));
        self.vectors.retain(|vector| !purged.vectors(&vector.named.memory));
        for word in &mut self.words {
            purged.word(word);
        }
        self.spoken = Spoken::of(&self.words);
        self
    }

    /// Returns the relations that follow from the evidence without being explicit.
    #[must_use]
    pub fn replayed(&self) -> BTreeSet<String> {
        self.derive_unnamed().relations.into_keys().collect()
    }

    /// Returns the state that follows from the evidence, without the explicit relations.
    #[must_use]
    pub fn derive_unnamed(&self) -> Derived {
        replay(self.witnesses.values(), &self.places, self.documents.iter(), &self.spoken)
    }

    /// Returns the state that follows from the evidence.
    #[must_use]
    pub fn derive(&self) -> Derived {
        let mut derived = self.derive_unnamed();
        add_edges(&mut derived, &self.edges);
        derived
    }
}

/// Replays evidence, with each row placed in the conversation that shows it.
pub fn replay<'a, 'd>(
    witnesses: impl Iterator<Item = &'a Witness> + Clone,
    places: &Places,
    documents: impl Iterator<Item = &'d Document> + Clone,
    spoken: &Spoken,
) -> Derived {
    replay_until(witnesses, places, documents, spoken, &|| false).unwrap_or_default()
}

/// Replays evidence like [`replay`]. Returns `None` if `stop`, which is called for every memory, returns true.
pub fn replay_until<'a, 'd>(
    witnesses: impl Iterator<Item = &'a Witness> + Clone,
    places: &Places,
    documents: impl Iterator<Item = &'d Document> + Clone,
    spoken: &Spoken,
    stop: &dyn Fn() -> bool,
) -> Option<Derived> {
    let placed = places.placed(witnesses.clone());
    let mut all: Vec<&Witness> = placed.iter().collect();
    for witness in witnesses.filter(|witness| witness.row.is_none()) {
        all.push(witness);
    }
    let mut derived = derive_until(all, documents.clone(), spoken, stop)?;
    places.place(&mut derived, documents);
    Some(derived)
}

/// Returns `memory` as if it came from `conversation`.
pub fn moved(memory: &Memory, conversation: Option<String>) -> Memory {
    let mut memory = memory.clone();
    memory.provenance.conversation_ref = conversation;
    memory
}
