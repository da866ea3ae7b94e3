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
use satchel_store::{Store, key_of};

use super::{Brought, Counted, Key, LineageError, Packed, Report, Undone, left_out, rows::Placing};
use satchel_merge::evidence::{
    Deed, Fate, Fated, Streams, Witness, Word, items_of, memories_of, memory_id, outranks,
};

pub use slice::{Sifted, Slice};

/// A statement, or a memory of a document.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Loose {
    memory: Key,
    report: Key,
    /// Whether the import reports it. If the store has the same report, that one is kept and this one is dropped.
    fresh: bool,
    /// Whether it is a document. A document's version may be exported again, and then counts as the later of two.
    document: bool,
    /// The first bytes of the key of a statement's id.
    witness: [u8; 8],
}

/// A piece of evidence about a list.
struct Piece {
    report: Key,
    fresh: bool,
    /// The key of its id.
    id: Key,
    /// Everything that it contains besides the list's items, if it has more than one item.
    frame: Option<Box<Witness>>,
}

/// Of several pieces with one id, the one that takes precedence.
struct Ranked {
    now: Key,
    /// The same, among the pieces that the store already has.
    before: Option<Key>,
}

/// The evidence about lists.
#[derive(Default)]
struct Lists {
    /// Refers to each piece by its index in `pieces`.
    streams: Streams<u32>,
    pieces: Vec<Piece>,
    ranked: BTreeMap<Key, Ranked>,
}

/// Collects evidence before it is grouped.
pub struct Sifter<'a> {
    store: &'a Store,
    reports: &'a Packed,
    /// Evidence that refers to more than one memory, except for lists.
    whole: Counted,
    lists: Lists,
    loose: Vec<Loose>,
    /// Memories that are derived together.
    bound: BTreeSet<Key>,
    /// Memories that name rows; those rows may have moved to another conversation.
    moving: BTreeSet<Key>,
    places: Placing<'a>,
    /// Statements whose content was erased. They still take precedence over others with the same id.
    emptied: BTreeMap<[u8; 8], Vec<Witness>>,
}

impl<'a> Sifter<'a> {
    /// Collects the stored evidence that counts when the imports in `undone` do not, and the `reports` of an import.
    /// Returns `None` if `stop` returns true on the way.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub fn until(
        store: &'a Store,
        undone: &Undone,
        reports: &'a Packed,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, LineageError> {
        let left_out = left_out(store, Brought::Evidence, undone)?;
        let mut sifter = Self {
            store,
            reports,
            whole: Counted::default(),
            lists: Lists::default(),
            loose: Vec::new(),
            bound: BTreeSet::new(),
            moving: BTreeSet::new(),
            places: Placing::new(store),
            emptied: BTreeMap::new(),
        };
        for record in store.evidence_all() {
            let record = record?;
            if stop() {
                return Ok(None);
            }
            if !left_out.contains(&record.id) {
                sifter.take(record.id, &record.json, false)?;
            }
        }
        let mut stopped = false;
        reports.each(|key, json| {
            stopped = stopped || stop();
            if stopped { Ok(()) } else { sifter.take(key, json, true) }
        })?;
        Ok((!stopped).then_some(sifter))
    }

    /// Marks a memory as one that must be derived together with others.
    pub fn bind(&mut self, memory: &str) {
        self.bound.insert(key_of(memory));
    }

    /// Groups the evidence. Returns the slice of memories that are derived together, and the rest. Unless `all` is set,
    /// the rest contains only memories whose state may change because of the import. Returns `None` if `stop` returns
    /// true on the way.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub fn sift(
        mut self,
        all: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<(Slice, Sifted)>, LineageError> {
        self.loose.sort_unstable();
        self.loose.dedup_by(|later, first| {
            !later.document && (later.memory, later.report) == (first.memory, first.report)
        });
        self.leave_out_emptied()?;
        let Some([now, before]) = self.lists.fates(stop) else { return Ok(None) };
        self.follow(&now);
        let places = Arc::new(self.places.places()?);
        let mut sifted = Sifted::new((self.loose, now, before), self.lists.pieces, places);
        let whole = sifted.take_out(self.bound, self.whole, self.store, self.reports)?;
        if !all {
            sifted.keep_told(self.moving);
        }
        Ok(Some((whole, sifted)))
    }

    fn take(&mut self, report: Key, json: &[u8], fresh: bool) -> Result<(), LineageError> {
        let Some(piece) = Report::decode(json)? else { return Ok(()) };
        joined(&piece).iter().for_each(|id| self.bind(id));
        match piece {
            Report::Document(document) => {
                let memory = key_of(&document.memory.id);
                self.row(memory, document.memory.provenance.message_ref.as_deref())?;
                self.loose.push(Loose { memory, report, fresh, document: true, witness: [0; 8] });
            }
            Report::Witness(witness) => self.witness(report, *witness, fresh)?,
            // Those of an import are passed on separately.
            other => self.whole.take(other),
        }
        Ok(())
    }

    fn witness(&mut self, report: Key, mut witness: Witness, fresh: bool) -> Result<(), LineageError> {
        let id = key_of(&witness.id);
        for memory in witness.row.iter().flat_map(|_| memories_of(&witness.claim)) {
            self.row(key_of(&memory), witness.row.as_deref())?;
        }
        if let Claim::Statement(item) = &witness.claim {
            let witness_id = start(&id);
            if item.content.is_empty() {
                self.emptied.entry(witness_id).or_default().push(witness);
            } else {
                let memory = key_of(&memory_id(item));
                self.loose.push(Loose { memory, report, fresh, document: false, witness: witness_id });
            }
            return Ok(());
        }
        let known = |ranked: &Ranked| ranked.now == report || ranked.before == Some(report);
        if fresh && self.lists.ranked.get(&id).is_some_and(known) {
            return Ok(());
        }
        self.rank((report, id), &witness, fresh)?;
        let number = u32::try_from(self.lists.pieces.len()).map_err(|_| too_many())?;
        self.lists.streams.take(&witness, number);
        let frame = match &mut witness.claim {
            Claim::Snapshot { items, .. } if items.len() > 1 => {
                *items = Vec::new();
                Some(Box::new(witness))
            }
            _ => None,
        };
        self.lists.pieces.push(Piece { report, fresh, id, frame });
        Ok(())
    }

    /// Looks up where the row that a memory names is shown.
    fn row(&mut self, memory: Key, row: Option<&str>) -> Result<(), LineageError> {
        if let Some(row) = row
            && self.places.note(row)?
        {
            self.moving.insert(memory);
        }
        Ok(())
    }

    /// Records which of the pieces with one id takes precedence.
    fn rank(&mut self, (report, id): (Key, Key), witness: &Witness, fresh: bool) -> Result<(), LineageError> {
        let known = (!fresh).then_some(report);
        let Some(ranked) = self.lists.ranked.get(&id) else {
            self.lists.ranked.insert(id, Ranked { now: report, before: known });
            return Ok(());
        };
        let (now, before) = (ranked.now, ranked.before);
        let beats = |other: Key| -> Result<bool, LineageError> {
            Ok(match self.read(other, true)? {
                Some(Report::Witness(other)) => outranks(witness, &other),
                _ => true,
            })
        };
        let now = if beats(now)? { report } else { now };
        let before = match (before, known) {
            (Some(before), Some(known)) => Some(if beats(before)? { known } else { before }),
            (before, known) => before.or(known),
        };
        self.lists.ranked.insert(id, Ranked { now, before });
        Ok(())
    }

    fn read(&self, report: Key, fresh: bool) -> Result<Option<Report>, LineageError> {
        slice::read(self.store, self.reports, report, fresh)
    }

    /// Removes statements that are outranked by an erased statement with the same id.
    fn leave_out_emptied(&mut self) -> Result<(), LineageError> {
        if self.emptied.is_empty() {
            return Ok(());
        }
        let mut gone = BTreeSet::new();
        for one in self.loose.iter().filter(|one| !one.document) {
            let Some(emptied) = self.emptied.get(&one.witness) else { continue };
            let Some(Report::Witness(witness)) = self.read(one.report, one.fresh)? else { continue };
            let mut same = emptied.iter().filter(|emptied| emptied.id == witness.id);
            if same.any(|emptied| outranks(emptied, &witness)) {
                gone.insert(*one);
            }
        }
        self.loose.retain(|one| !gone.contains(one));
        Ok(())
    }

    /// Binds the successors of bound memories too: if the user decides what supersedes what, no cycle may arise.
    fn follow(&mut self, now: &[Fated<u32>]) {
        if self.whole.words.is_empty() {
            return;
        }
        let mut open: Vec<Key> = self.bound.iter().copied().collect();
        while let Some(memory) = open.pop() {
            let from = now.partition_point(|one| *one.memory.as_bytes() < memory);
            let of_it = now[from..].iter().take_while(|one| *one.memory.as_bytes() == memory);
            for one in of_it {
                if let Fate::Replaced { by: Some(by), .. } = one.fate
                    && self.bound.insert(*by.as_bytes())
                {
                    open.push(*by.as_bytes());
                }
            }
        }
    }
}

impl Lists {
    /// Returns the fate of every list item, now and before the import, ordered by memory.
    fn fates(&self, stop: &dyn Fn() -> bool) -> Option<[Vec<Fated<u32>>; 2]> {
        let ranked = |piece: &Piece| self.ranked.get(&piece.id);
        let counts = |number: &u32, before: bool| {
            let piece = usize::try_from(*number).ok().and_then(|number| self.pieces.get(number));
            piece.is_some_and(|piece| match ranked(piece) {
                Some(ranked) if before => !piece.fresh && ranked.before == Some(piece.report),
                Some(ranked) => ranked.now == piece.report,
                None => false,
            })
        };
        let now = self.streams.fates(|number| counts(number, false), stop)?;
        let before = self.streams.fates(|number| counts(number, true), stop)?;
        let mut both = [now, before];
        for fates in &mut both {
            fates.sort_unstable_by_key(|one| (one.memory, one.of, one.item));
        }
        Some(both)
    }
}

/// Returns the memories that a piece connects to others, except for lists.
fn joined(report: &Report) -> Vec<String> {
    match report {
        Report::Witness(witness) => replaced(witness),
        Report::Document(document) => match &document.memory.temporal.superseded_by {
            Some(successor) => vec![document.memory.id.clone(), successor.clone()],
            None => Vec::new(),
        },
        Report::Edge(edge) => vec![edge.relation.from.clone(), edge.relation.to.clone()],
        Report::Vector(_) => Vec::new(),
        Report::Word(word) => joined_by_word(word),
    }
}

/// Returns the memories for which a piece names a successor, with those successors.
fn replaced(witness: &Witness) -> Vec<String> {
    let items = items_of(&witness.claim).into_iter();
    let pairs = items.filter_map(|item| Some([memory_id(item), item.superseded_by.clone()?]));
    pairs.flatten().collect()
}

fn joined_by_word(word: &Word) -> Vec<String> {
    match &word.deed {
        Deed::Add(witness) => memories_of(&witness.claim).into_iter().chain(replaced(witness)).collect(),
        Deed::Set(setting) => {
            let successor = setting.to.temporal.superseded_by.clone();
            std::iter::once(setting.to.id.clone()).chain(successor).collect()
        }
        Deed::Draw(relation) => vec![relation.from.clone(), relation.to.clone()],
        // The memories that these affect are bound by the evidence that they refer to.
        Deed::Withdraw(_) | Deed::Undo(_) => Vec::new(),
    }
}

fn start(key: &Key) -> [u8; 8] {
    let mut start = [0; 8];
    start.copy_from_slice(&key[..8]);
    start
}

fn too_many() -> LineageError {
    LineageError::Unreadable { what: "so many lists" }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
