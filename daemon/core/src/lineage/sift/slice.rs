//! The evidence about a group of memories, which is read only when needed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use satchel_merge::evidence::{Derived, Document, Fate, Saying, Sayings, Spoken, memory_id, nth};
use satchel_pam::record::Item;
use satchel_store::{Store, key_of};
use uuid::Uuid;

use super::{Fated, Loose, Piece};
use crate::lineage::{Counted, Key, LineageError, Packed, Places, Report};

/// Number of pieces of evidence of one kind that are read at once; each has a few kilobytes.
const SLICE: usize = 1_024;
/// Grouped evidence, ordered by memory.
pub struct Sifted {
    loose: Vec<Loose>,
    /// The fates of memories in lists.
    now: Vec<Fated<u32>>,
    /// The same, as it was before the import.
    before: Vec<Fated<u32>>,
    /// Where the next slice begins in each of the three lists.
    at: [usize; 3],
    /// Number of pieces in a slice.
    pub(super) size: usize,
    bound: BTreeSet<Key>,
    said: Said,
    /// The pieces of evidence about lists.
    pieces: Vec<Piece>,
    places: Arc<Places>,
}

/// The memories that any report asserts, in order: now, and before the import.
#[derive(Clone, Default)]
struct Said([Arc<[Key]>; 2]);

/// A list item that is needed.
struct Wanted {
    digest: u64,
    /// Its fate, now and before the import.
    fates: [Option<Fate>; 2],
}

/// All evidence about a group of memories.
#[derive(Default)]
pub struct Slice {
    sayings: Sayings,
    /// The evidence in the store, except for the reports of exports.
    pub known: Counted,
    /// Memories of the import's documents.
    pub documents: Vec<Document>,
    said: Said,
    places: Arc<Places>,
}

impl Sifted {
    /// Creates it from lists that are each ordered by memory.
    pub(super) fn new(
        (loose, now, before): (Vec<Loose>, Vec<Fated<u32>>, Vec<Fated<u32>>),
        pieces: Vec<Piece>,
        places: Arc<Places>,
    ) -> Self {
        let (bound, said) = (BTreeSet::new(), Said::default());
        Self { loose, now, before, at: [0; 3], size: SLICE, bound, said, pieces, places }
    }

    /// Removes the evidence about the memories in `bound` and returns it, added to `whole`.
    pub(super) fn take_out(
        &mut self,
        bound: BTreeSet<Key>,
        whole: Counted,
        store: &Store,
        reports: &Packed,
    ) -> Result<Slice, LineageError> {
        let spoken = Spoken::of(&whole.words);
        self.said = Said::of(self, &spoken);
        let loose: Vec<Loose> = self.loose.extract_if(.., |one| bound.contains(&one.memory)).collect();
        let fated = |fates: &mut Vec<Fated<u32>>| -> Vec<Fated<u32>> {
            fates.extract_if(.., |one| bound.contains(one.memory.as_bytes())).collect()
        };
        let (now, before) = (fated(&mut self.now), fated(&mut self.before));
        self.bound = bound;
        self.read((&loose, &now, &before), Counted { spoken, ..whole }, (store, reports))
    }

    /// Drops memories whose state does not change, as far as that can be told. Those in `told` are kept.
    pub(super) fn keep_told(&mut self, mut told: BTreeSet<Key>) {
        told.extend(self.loose.iter().filter(|one| one.fresh).map(|one| one.memory));
        let (mut now, mut before) = (self.now.as_slice(), self.before.as_slice());
        while let Some(memory) = first(now, before) {
            let same = |one: &&Fated<u32>| one.memory == memory;
            let (of_now, of_before) =
                (now.iter().take_while(same).count(), before.iter().take_while(same).count());
            let (one, rest) = now.split_at(of_now);
            let (other, left) = before.split_at(of_before);
            if one != other {
                told.insert(memory.into_bytes());
            }
            (now, before) = (rest, left);
        }
        self.loose.retain(|one| told.contains(&one.memory));
        self.now.retain(|one| told.contains(one.memory.as_bytes()));
        self.before.retain(|one| told.contains(one.memory.as_bytes()));
    }

    /// Returns whether the memory is derived together with others.
    #[must_use]
    pub fn binds(&self, memory: &Key) -> bool {
        self.bound.contains(memory)
    }

    /// Returns the next slice, or `None` if there are no more.
    ///
    /// # Errors
    /// The store or the ledger cannot be read.
    pub fn next(&mut self, store: &Store, reports: &Packed) -> Result<Option<Slice>, LineageError> {
        let [loose, now, before] =
            [self.at[0]..self.loose.len(), self.at[1]..self.now.len(), self.at[2]..self.before.len()];
        if loose.is_empty() && now.is_empty() && before.is_empty() {
            return Ok(None);
        }
        let fated = |one: &Fated<u32>| one.memory.into_bytes();
        // The evidence about one memory is never split.
        let last = [
            self.loose[loose.clone()].get(self.size - 1).map(|one| one.memory),
            self.now[now.clone()].get(self.size - 1).map(fated),
            self.before[before.clone()].get(self.size - 1).map(fated),
        ];
        let last = last.into_iter().flatten().min().unwrap_or([0xff; 16]);
        let ends = [
            loose.start + self.loose[loose.clone()].partition_point(|one| one.memory <= last),
            now.start + self.now[now.clone()].partition_point(|one| fated(one) <= last),
            before.start + self.before[before.clone()].partition_point(|one| fated(one) <= last),
        ];
        let loose = self.loose[loose.start..ends[0]].to_vec();
        let now = self.now[now.start..ends[1]].to_vec();
        let before = self.before[before.start..ends[2]].to_vec();
        self.at = ends;
        self.read((&loose, &now, &before), Counted::default(), (store, reports)).map(Some)
    }

    fn read(
        &mut self,
        (loose, now, before): (&[Loose], &[Fated<u32>], &[Fated<u32>]),
        mut known: Counted,
        (store, reports): (&Store, &Packed),
    ) -> Result<Slice, LineageError> {
        let (mut documents, mut statements) = (Vec::new(), Vec::new());
        for one in loose {
            match read(store, reports, one.report, one.fresh)? {
                Some(Report::Document(document)) if one.fresh => documents.push(*document),
                Some(Report::Witness(witness)) => statements.push((*witness, one.fresh)),
                Some(report) => known.take(report),
                None => {}
            }
        }
        let mut sayings = Sayings::of(statements, self.listed(now, before, (store, reports))?);
        sayings.witnesses_mut().for_each(|witness| self.places.set(witness));
        Ok(Slice { sayings, known, documents, said: self.said.clone(), places: Arc::clone(&self.places) })
    }

    /// Returns what lists report. Of several pieces that report the same about a memory, only one is read.
    fn listed(
        &self,
        now: &[Fated<u32>],
        before: &[Fated<u32>],
        (store, reports): (&Store, &Packed),
    ) -> Result<Vec<Saying>, LineageError> {
        let mut wanted: BTreeMap<(Uuid, u32, u32), Wanted> = BTreeMap::new();
        for (which, fates) in [now, before].into_iter().enumerate() {
            for Fated { of, item, digest, memory, fate } in fates {
                let none = Wanted { digest: *digest, fates: [None; 2] };
                wanted.entry((*memory, *of, *item)).or_insert(none).fates[which] = Some(*fate);
            }
        }
        let mut listed = Vec::with_capacity(wanted.len());
        let mut items: BTreeMap<(Uuid, u64), Item> = BTreeMap::new();
        for ((memory, of, place), Wanted { digest, fates: [now, before] }) in wanted {
            let (Ok(of), Ok(place)) = (usize::try_from(of), usize::try_from(place)) else { continue };
            let Some(piece) = self.pieces.get(of) else { continue };
            if let (Some(frame), Some(item)) = (&piece.frame, items.get(&(memory, digest))) {
                listed.push(Saying::framed(frame, item, now, before));
                continue;
            }
            let Some(Report::Witness(witness)) = read(store, reports, piece.report, piece.fresh)? else {
                continue;
            };
            if piece.frame.is_some() {
                items.extend(nth(&witness.claim, place).map(|item| ((memory, digest), item.clone())));
            }
            listed.extend(Saying::of(&witness, place, now, before));
        }
        Ok(listed)
    }
}

impl Slice {
    /// Returns the state that follows, with the implicit relations: `now`, or as it was before the import. The import's
    /// `documents` are used together with those in the store. Returns `None` if `stop` returns true on the way.
    pub fn derive(&self, now: bool, documents: &[Document], stop: &dyn Fn() -> bool) -> Option<Derived> {
        let Self { sayings, known, said, .. } = self;
        let said = |memory: &Uuid| said.0[usize::from(!now)].binary_search(memory.as_bytes()).is_ok();
        let all = || known.documents.iter().chain(documents);
        let mut derived = sayings.derive(now, &said, all(), &known.spoken, stop)?;
        self.places.place(&mut derived, all());
        Some(derived)
    }
}

impl Said {
    fn of(sifted: &Sifted, spoken: &Spoken) -> Self {
        let added = || {
            let items = spoken.added.iter().filter_map(|witness| nth(&witness.claim, 0));
            items.map(|item| key_of(&memory_id(item)))
        };
        let set = |fates: &[Fated<u32>], fresh: bool| {
            let loose = sifted.loose.iter().filter(|one| !one.document && (fresh || !one.fresh));
            let listed = fates.iter().map(|one| one.memory.into_bytes());
            let mut said: Vec<Key> = loose.map(|one| one.memory).chain(listed).chain(added()).collect();
            said.sort_unstable();
            said.dedup();
            Arc::from(said)
        };
        Self([set(&sifted.now, true), set(&sifted.before, false)])
    }
}

/// Reads a piece of evidence that an import brings, unless it was released already, or a stored one.
pub(super) fn read(
    store: &Store,
    reports: &Packed,
    report: Key,
    fresh: bool,
) -> Result<Option<Report>, LineageError> {
    const WHAT: &str = "a piece of evidence that was there a moment ago";
    if fresh && let Some(json) = reports.get(&report)? {
        return Report::decode(&json);
    }
    let stored = store.evidence(report)?.ok_or(LineageError::Unreadable { what: WHAT })?;
    Report::decode(&stored.json)
}

fn first(now: &[Fated<u32>], before: &[Fated<u32>]) -> Option<Uuid> {
    [now, before].into_iter().filter_map(|fates| fates.first()).map(|one| one.memory).min()
}
