//! All evidence, taken apart into what has to be derived together and what stands by itself.
//!
//! Most memories follow from statements and documents that speak of them alone: whatever else is known, the same follows. Those
//! are read and derived a slice at a time, so that no number of memories fills the memory of the machine. What hangs together
//! is held as a whole: lists and logs, memories that replaced others, what relations join, what the person said by hand.

use std::collections::{BTreeMap, BTreeSet};

use satchel_store::{Store, key_of};

use super::{Brought, Counted, Key, LineageError, Places, Report, Undone, left_out};
use crate::plan::evidence::{Deed, Document, Spoken, Witness, Word, alone, memories_of, successors};

/// Pieces of evidence that are derived at once; some kilobytes each.
const SLICE: usize = 2_048;

/// The evidence of an import, encoded, by the keys under which it is stored.
pub type Reports = BTreeMap<Key, Vec<u8>>;

/// The start of a memory's key. Two memories may have the same, and are taken together then.
type Short = u64;

/// A piece of evidence that speaks of one memory, which is read when its turn comes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Loose {
    memory: Short,
    report: Key,
    /// Whether the import says it; what the store has too is known, and this goes.
    fresh: bool,
    /// A document's version may be exported again, and then counts as the later of two.
    document: bool,
    /// Of its id.
    witness: Short,
}

/// What is stored, and what an import adds.
#[derive(Default)]
pub struct Slice {
    /// As the store has it.
    pub known: Counted,
    /// What only the import says; where rows are shown stands with the former.
    pub fresh: Counted,
    /// The keys of the latter.
    pub reports: Vec<Key>,
}

/// Evidence on its way to be taken apart.
pub struct Sifter<'a> {
    store: &'a Store,
    reports: &'a Reports,
    whole: Slice,
    loose: Vec<Loose>,
    bound: BTreeSet<Short>,
    /// Pieces whose content was erased: they still count before others of the same id.
    emptied: BTreeSet<Short>,
}

/// Evidence that was taken apart.
pub struct Sifted {
    loose: Vec<Loose>,
    /// Where the next slice begins.
    at: usize,
    /// Pieces of a slice.
    size: usize,
    bound: BTreeSet<Short>,
}

impl<'a> Sifter<'a> {
    /// Takes what counts in the store when the imports in `undone` do not, and the `reports` of an import; none if `stop` says so
    /// on the way.
    ///
    /// # Errors
    /// When store or ledger do not read.
    pub fn until(
        store: &'a Store,
        undone: &Undone,
        reports: &'a Reports,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, LineageError> {
        let left_out = left_out(store, Brought::Evidence, undone)?;
        let (whole, loose, bound, emptied) = (Slice::default(), Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut sifter = Self { store, reports, whole, loose, bound, emptied };
        for record in store.evidence_all() {
            let record = record?;
            if stop() {
                return Ok(None);
            }
            if !left_out.contains(&record.id) {
                sifter.take(record.id, &record.json, false)?;
            }
        }
        for (key, json) in reports {
            if stop() {
                return Ok(None);
            }
            sifter.take(*key, json, true)?;
        }
        Ok(Some(sifter))
    }

    /// Says that what follows for this memory hangs together with others.
    pub fn bind(&mut self, memory: &str) {
        self.bound.insert(short(&key_of(memory)));
    }

    /// Takes apart: answers what hangs together, and the rest. Of the latter only memories of which the import says something,
    /// unless `all` are needed.
    ///
    /// # Errors
    /// When store or ledger do not read.
    pub fn sift(mut self, all: bool) -> Result<(Slice, Sifted), LineageError> {
        let mut loose = std::mem::take(&mut self.loose);
        loose.sort_unstable();
        loose.dedup_by(|later, first| {
            !later.document && (later.memory, later.report) == (first.memory, first.report)
        });
        let emptied = loose.iter().filter(|one| self.emptied.contains(&one.witness));
        self.bound.extend(emptied.map(|one| one.memory));
        let mut whole = std::mem::take(&mut self.whole);
        for one in loose.extract_if(.., |one| self.bound.contains(&one.memory)) {
            whole.take(self.store, self.reports, &one)?;
        }
        if !all {
            let told: BTreeSet<Short> = loose.iter().filter(|one| one.fresh).map(|one| one.memory).collect();
            loose.retain(|one| told.contains(&one.memory));
        }
        loose.shrink_to_fit();
        whole.place(self.store)?;
        Ok((whole, Sifted { loose, at: 0, size: SLICE, bound: self.bound }))
    }

    fn take(&mut self, key: Key, json: &[u8], fresh: bool) -> Result<(), LineageError> {
        let Some(report) = Report::decode(json)? else { return Ok(()) };
        if let Some((memory, witness)) = by_itself(&report) {
            let [memory, witness] = [memory, witness].map(|id| short(&key_of(&id)));
            let document = matches!(report, Report::Document(_));
            self.loose.push(Loose { memory, report: key, fresh, document, witness });
            return Ok(());
        }
        if let Report::Witness(witness) = &report
            && memories_of(&witness.claim).is_empty()
        {
            self.emptied.insert(short(&key_of(&witness.id)));
        }
        joined(&report).iter().for_each(|id| self.bind(id));
        self.whole.add(key, report, fresh);
        Ok(())
    }
}

impl Sifted {
    /// Whether what follows for this memory hangs together with others.
    #[must_use]
    pub fn binds(&self, memory: &str) -> bool {
        self.bound.contains(&short(&key_of(memory)))
    }

    /// The next slice; none: that was all.
    ///
    /// # Errors
    /// When store or ledger do not read.
    pub fn next(&mut self, store: &Store, reports: &Reports) -> Result<Option<Slice>, LineageError> {
        let rest = &self.loose[self.at..];
        let Some(last) = rest.get(self.size.min(rest.len()).wrapping_sub(1)) else { return Ok(None) };
        // A memory is not cut.
        let end = rest.partition_point(|one| one.memory <= last.memory);
        let mut slice = Slice::default();
        for one in &rest[..end] {
            slice.take(store, reports, one)?;
        }
        self.at += end;
        slice.place(store)?;
        Ok(Some(slice))
    }
}

impl Slice {
    fn take(&mut self, store: &Store, reports: &Reports, one: &Loose) -> Result<(), LineageError> {
        const WHAT: &str = "a piece of evidence that was there a moment ago";
        let unreadable = || LineageError::Unreadable { what: WHAT };
        let report = if one.fresh {
            Report::decode(reports.get(&one.report).ok_or_else(unreadable)?)?
        } else {
            Report::decode(&store.evidence(one.report)?.ok_or_else(unreadable)?.json)?
        };
        if let Some(report) = report {
            self.add(one.report, report, one.fresh);
        }
        Ok(())
    }

    fn add(&mut self, key: Key, report: Report, fresh: bool) {
        if fresh {
            self.reports.push(key);
            self.fresh.take(report);
        } else {
            self.known.take(report);
        }
    }

    /// Looks up where rows are shown, and what of the person's words counts.
    fn place(&mut self, store: &Store) -> Result<(), LineageError> {
        let Self { known, fresh, reports: _ } = self;
        known.spoken = Spoken::of(&known.words);
        known.places = Places::of(store, known.witnesses.values(), &known.documents)?;
        known.places.extend(Places::of(store, fresh.witnesses.values(), &fresh.documents)?);
        Ok(())
    }
}

fn short(key: &Key) -> Short {
    let mut start = [0; 8];
    start.copy_from_slice(&key[..8]);
    u64::from_be_bytes(start)
}

/// The only memory that a piece speaks of, and the piece's own id, if nothing else follows from it.
fn by_itself(report: &Report) -> Option<(String, String)> {
    match report {
        Report::Witness(witness) => Some((alone(&witness.claim)?, witness.id.clone())),
        Report::Document(document) if document.memory.temporal.superseded_by.is_none() => {
            Some((document.memory.id.clone(), document.memory.id.clone()))
        }
        _ => None,
    }
}

/// The memories that a piece joins to others.
fn joined(report: &Report) -> Vec<String> {
    match report {
        Report::Witness(witness) => joined_by_claim(witness),
        Report::Document(document) => {
            let Document { memory, .. } = &**document;
            std::iter::once(memory.id.clone()).chain(memory.temporal.superseded_by.clone()).collect()
        }
        Report::Edge(edge) => vec![edge.relation.from.clone(), edge.relation.to.clone()],
        Report::Vector(_) => Vec::new(),
        Report::Word(word) => joined_by_word(word),
    }
}

fn joined_by_claim(witness: &Witness) -> Vec<String> {
    let mut joined = memories_of(&witness.claim);
    joined.extend(successors(&witness.claim));
    joined
}

fn joined_by_word(word: &Word) -> Vec<String> {
    match &word.deed {
        Deed::Add(witness) => joined_by_claim(witness),
        Deed::Set(setting) => {
            let successor = setting.to.temporal.superseded_by.clone();
            std::iter::once(setting.to.id.clone()).chain(successor).collect()
        }
        Deed::Draw(relation) => vec![relation.from.clone(), relation.to.clone()],
        // What they take back is known by what said it.
        Deed::Withdraw(_) | Deed::Undo(_) => Vec::new(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
