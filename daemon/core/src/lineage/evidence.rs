//! The evidence that counts.

use std::collections::{BTreeMap, BTreeSet};

use satchel_merge::evidence::{
    Derived, Document, Edge, Spoken, Vector, Witness, Word, add_edges, derive_until, outranks,
};
use satchel_pam::memory::Memory;
use satchel_store::{Store, erased};

use super::{Brought, LineageError, Places, Purged, Undone, decode, left_out};

/// The evidence that counts, all of it in memory.
#[derive(Default)]
pub struct Counted {
    /// By id: of several reports the one that counts before the others.
    pub witnesses: BTreeMap<String, Witness>,
    /// Memories of PAM documents.
    pub documents: Vec<Document>,
    /// Relations that were named.
    pub edges: Vec<Edge>,
    /// Vectors of memories.
    pub vectors: Vec<Vector>,
    /// All that the person said by hand.
    pub words: Vec<Word>,
    /// What of it counts.
    pub spoken: Spoken,
    /// Where the rows are shown that the evidence names.
    pub places: Places,
}

/// One piece of evidence of any kind.
#[derive(Debug)]
pub enum Report {
    /// What an export says of memories.
    Witness(Box<Witness>),
    /// A memory of a PAM document.
    Document(Box<Document>),
    /// A relation that was named.
    Edge(Box<Edge>),
    /// A vector.
    Vector(Box<Vector>),
    /// What the person said by hand.
    Word(Box<Word>),
}

impl Report {
    /// Reads it from the bytes that are stored of it; none: it says nothing any more.
    ///
    /// # Errors
    /// When it does not read.
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
    /// What counts when the imports in `undone` do not.
    ///
    /// # Errors
    /// When store or ledger do not read.
    pub fn of(store: &Store, undone: &Undone) -> Result<Self, LineageError> {
        Ok(Self::until(store, undone, &|| false)?.unwrap_or_default())
    }

    /// As [`Counted::of`]; none if `stop` says so on the way.
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

    /// Takes one piece. Where rows are shown, and what of the person's words counts, is told when all are there.
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

    /// What is left of it when what was `purged` says nothing.
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

    /// The relations that follow from it without being named.
    #[must_use]
    pub fn replayed(&self) -> BTreeSet<String> {
        self.derive_unnamed().relations.into_keys().collect()
    }

    /// What follows from it without the relations that are named.
    #[must_use]
    pub fn derive_unnamed(&self) -> Derived {
        replay(self.witnesses.values(), &self.places, self.documents.iter(), &self.spoken)
    }

    /// What follows from it.
    #[must_use]
    pub fn derive(&self) -> Derived {
        let mut derived = self.derive_unnamed();
        add_edges(&mut derived, &self.edges);
        derived
    }
}

/// Replays evidence, with each row where it is shown.
pub fn replay<'a, 'd>(
    witnesses: impl Iterator<Item = &'a Witness> + Clone,
    places: &Places,
    documents: impl Iterator<Item = &'d Document> + Clone,
    spoken: &Spoken,
) -> Derived {
    replay_until(witnesses, places, documents, spoken, &|| false).unwrap_or_default()
}

/// As [`replay`]; none if `stop`, which is asked for every memory, says so on the way.
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

/// `memory` as if it had been said in `conversation`.
pub fn moved(memory: &Memory, conversation: Option<String>) -> Memory {
    let mut memory = memory.clone();
    memory.provenance.conversation_ref = conversation;
    memory
}
