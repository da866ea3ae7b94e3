//! The evidence on some memories, read when their turn comes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use satchel_pam::record::Claim;
use satchel_store::{Store, key_of};
use uuid::Uuid;

use super::{Fated, Loose, Of};
use crate::{
    lineage::{Counted, Key, LineageError, Packed, Places, Report},
    plan::evidence::{Derived, Document, Fate, Saying, Sayings, Spoken, Witness, memory_id, nth},
};

/// Pieces of evidence of one kind that are read at once; a few kilobytes each.
const SLICE: usize = 1_024;
/// Items of a list that is read once and kept, as its memories are in many slices.
const LONG: usize = 64;

/// Evidence that was taken apart, in the order of memories.
pub struct Sifted {
    loose: Vec<Loose>,
    /// What became of memories in lists.
    now: Vec<Fated<Of>>,
    /// The same as it was before the import.
    before: Vec<Fated<Of>>,
    /// Where the next slice begins in each.
    at: [usize; 3],
    /// Pieces of a slice.
    pub(super) size: usize,
    bound: BTreeSet<Key>,
    said: Said,
    long: BTreeMap<Key, Witness>,
}

/// The memories of which anything is said, in order: now, and before the import.
#[derive(Clone, Default)]
struct Said([Arc<[Key]>; 2]);

/// All evidence on some memories.
#[derive(Default)]
pub struct Slice {
    sayings: Sayings,
    /// What the store has, but for what exports say; where rows are shown.
    pub known: Counted,
    /// Memories of the import's documents.
    pub documents: Vec<Document>,
    said: Said,
}

impl Sifted {
    /// Each list stands in the order of memories.
    pub(super) fn new(loose: Vec<Loose>, now: Vec<Fated<Of>>, before: Vec<Fated<Of>>) -> Self {
        let (bound, long) = (BTreeSet::new(), BTreeMap::new());
        Self { loose, now, before, at: [0; 3], size: SLICE, bound, said: Said::default(), long }
    }

    /// Takes out what there is on the memories in `bound`, to `whole`.
    pub(super) fn take_out(
        &mut self,
        bound: &BTreeSet<Key>,
        whole: Counted,
        store: &Store,
        reports: &Packed,
    ) -> Result<Slice, LineageError> {
        self.bound.clone_from(bound);
        let spoken = Spoken::of(&whole.words);
        self.said = Said::of(self, &spoken);
        let loose: Vec<Loose> = self.loose.extract_if(.., |one| bound.contains(&one.memory)).collect();
        let fated = |fates: &mut Vec<Fated<Of>>| -> Vec<Fated<Of>> {
            fates.extract_if(.., |one| bound.contains(one.memory.as_bytes())).collect()
        };
        let (now, before) = (fated(&mut self.now), fated(&mut self.before));
        self.read((&loose, &now, &before), Counted { spoken, ..whole }, (store, reports))
    }

    /// Leaves out memories for which nothing else follows than before.
    pub(super) fn keep_told(&mut self) {
        let mut told: BTreeSet<Key> =
            self.loose.iter().filter(|one| one.fresh).map(|one| one.memory).collect();
        let (mut now, mut before) = (self.now.as_slice(), self.before.as_slice());
        while let Some(memory) = first(now, before) {
            let same = |one: &&Fated<Of>| one.memory == memory;
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

    /// Whether what follows for this memory hangs together with others.
    #[must_use]
    pub fn binds(&self, memory: &str) -> bool {
        self.bound.contains(&key_of(memory))
    }

    /// The next slice; none: that was all.
    ///
    /// # Errors
    /// When store or ledger do not read.
    pub fn next(&mut self, store: &Store, reports: &Packed) -> Result<Option<Slice>, LineageError> {
        let [loose, now, before] =
            [self.at[0]..self.loose.len(), self.at[1]..self.now.len(), self.at[2]..self.before.len()];
        if loose.is_empty() && now.is_empty() && before.is_empty() {
            return Ok(None);
        }
        let fated = |one: &Fated<Of>| one.memory.into_bytes();
        // A memory is not cut.
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
        (loose, now, before): (&[Loose], &[Fated<Of>], &[Fated<Of>]),
        mut known: Counted,
        (store, reports): (&Store, &Packed),
    ) -> Result<Slice, LineageError> {
        let (mut documents, mut statements) = (Vec::new(), Vec::new());
        for one in loose {
            match read(store, reports, one.report)? {
                Some(Report::Document(document)) if one.fresh => documents.push(*document),
                Some(Report::Witness(witness)) => statements.push((*witness, one.fresh)),
                Some(report) => known.take(report),
                None => {}
            }
        }
        let mut sayings = Sayings::of(statements, self.listed(now, before, (store, reports))?);
        known.places = Places::of(store, sayings.witnesses(), &known.documents)?;
        known.places.extend(Places::of(store, std::iter::empty(), &documents)?);
        sayings.witnesses_mut().for_each(|witness| known.places.set(witness));
        Ok(Slice { sayings, known, documents, said: self.said.clone() })
    }

    /// What lists say, each report read once.
    fn listed(
        &mut self,
        now: &[Fated<Of>],
        before: &[Fated<Of>],
        (store, reports): (&Store, &Packed),
    ) -> Result<Vec<Saying>, LineageError> {
        let mut wanted: BTreeMap<Key, BTreeMap<usize, [Option<Fate>; 2]>> = BTreeMap::new();
        for (which, fates) in [now, before].into_iter().enumerate() {
            for Fated { of, item, fate, .. } in fates {
                wanted.entry(of.report).or_default().entry(*item).or_default()[which] = Some(*fate);
            }
        }
        let mut listed = Vec::with_capacity(now.len());
        for (report, items) in wanted {
            let read = match self.long.get(&report) {
                Some(_) => None,
                None => match read(store, reports, report)? {
                    Some(Report::Witness(witness)) => Some(*witness),
                    _ => continue,
                },
            };
            let Some(witness) = read.as_ref().or_else(|| self.long.get(&report)) else { continue };
            let said = items.into_iter();
            listed.extend(said.filter_map(|(item, [now, before])| Saying::of(witness, item, now, before)));
            if let Some(witness) = read
                && matches!(&witness.claim, Claim::Snapshot { items, .. } if items.len() > LONG)
            {
                self.long.insert(report, witness);
            }
        }
        Ok(listed)
    }
}

impl Slice {
    /// What follows, with the relations that do so unnamed; `now`, or as it was before the import. `documents` of the import are
    /// taken with those that are known. None if `stop` says so on the way.
    pub fn derive(&self, now: bool, documents: &[Document], stop: &dyn Fn() -> bool) -> Option<Derived> {
        let Self { sayings, known, said, .. } = self;
        let said = |memory: &Uuid| said.0[usize::from(!now)].binary_search(memory.as_bytes()).is_ok();
        let all = || known.documents.iter().chain(documents);
        let mut derived = sayings.derive(now, &said, all(), &known.spoken, stop)?;
        known.places.place(&mut derived, all());
        Some(derived)
    }
}

impl Said {
    fn of(sifted: &Sifted, spoken: &Spoken) -> Self {
        let added = || {
            let items = spoken.added.iter().filter_map(|witness| nth(&witness.claim, 0));
            items.map(|item| key_of(&memory_id(item)))
        };
        let set = |fates: &[Fated<Of>], fresh: bool| {
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

/// Reads what an import brings, or what is stored.
pub(super) fn read(store: &Store, reports: &Packed, report: Key) -> Result<Option<Report>, LineageError> {
    const WHAT: &str = "a piece of evidence that was there a moment ago";
    if let Some(json) = reports.get(&report)? {
        return Report::decode(&json);
    }
    let stored = store.evidence(report)?.ok_or(LineageError::Unreadable { what: WHAT })?;
    Report::decode(&stored.json)
}

fn first(now: &[Fated<Of>], before: &[Fated<Of>]) -> Option<Uuid> {
    [now, before].into_iter().filter_map(|fates| fates.first()).map(|one| one.memory).min()
}
