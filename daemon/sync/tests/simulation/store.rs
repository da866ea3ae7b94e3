//! A store in memory, as small as one can be that follows the rules of this crate.

use std::collections::BTreeMap;

use satchel_sync::{
    Accepted, Author, AuthorError, ChangeHash, Counter, Fork, ForkProof, Frontier, Held, Kind, OriginId,
    Series, SeriesError, SignedChange, SigningKey,
    batch::{BatchReader, BatchWriter, Pushed},
};

pub(crate) const NOTE: Kind = Kind(1);

pub(crate) struct Store {
    key: SigningKey,
    author: Author,
    series: BTreeMap<OriginId, Series>,
    pub(crate) changes: BTreeMap<(OriginId, Counter), SignedChange>,
    /// The origins from which nothing more is taken.
    pub(crate) forks: BTreeMap<OriginId, (Fork, Option<ForkProof>)>,
    pub(crate) rolled_back: bool,
}

impl Store {
    pub(crate) fn new(number: u8) -> Self {
        let key = SigningKey::from_bytes(&[number + 1; 32]);
        let (author, genesis) = Author::begin(key.clone(), [number; 16], &Frontier::new()).unwrap();
        let changes = BTreeMap::from([((author.series().origin(), Counter::FIRST), genesis)]);
        let (series, forks) = (BTreeMap::new(), BTreeMap::new());
        Self { key, author, series, changes, forks, rolled_back: false }
    }

    /// A copy of all files.
    pub(crate) fn backup(&self) -> Self {
        Self {
            key: self.key.clone(),
            author: Author::resume(self.key.clone(), self.author.series().clone()).unwrap(),
            series: self.series.clone(),
            changes: self.changes.clone(),
            forks: self.forks.clone(),
            rolled_back: self.rolled_back,
        }
    }

    pub(crate) fn origin(&self) -> OriginId {
        self.author.series().origin()
    }

    pub(crate) fn frontier(&self) -> Frontier {
        let mut frontier = Frontier::new();
        for series in self.series.values().chain([self.author.series()]) {
            frontier.advance(series.origin(), series.head()).unwrap();
        }
        frontier
    }

    /// What an author had seen when it wrote its last change.
    pub(crate) fn context(&self, origin: OriginId) -> &Frontier {
        self.series.get(&origin).unwrap_or(self.author.series()).context()
    }

    pub(crate) fn write(&mut self, payload: &str) {
        let seen = self.frontier();
        let change = self.author.append(NOTE, payload.as_bytes().to_vec(), &seen).unwrap();
        self.changes.insert((change.change().origin, change.change().counter), change);
    }

    /// Erases the payload of the change at this position, counted in the order of origins and counters.
    pub(crate) fn erase(&mut self, position: usize) {
        let change = self.changes.values_mut().nth(position).unwrap();
        *change = change.clone().without_payload();
    }

    /// Continues under a new origin: keeps the old one as that of somebody else, and writes again what nobody else has of it.
    pub(crate) fn begin_new_origin(&mut self, salt: u8, first_lost: Counter) {
        let old = self.origin();
        let lost = self.changes.split_off(&(old, first_lost));
        let (lost, mut others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            lost.into_iter().partition(|((origin, _), _)| *origin == old);
        self.changes.append(&mut others);
        self.series.insert(old, self.replay(old));
        self.forks.remove(&old);
        self.rolled_back = false;
        let seen = self.series.values().map(|series| (series.origin(), series.head()));
        let mut frontier = Frontier::new();
        seen.for_each(|(origin, head)| frontier.advance(origin, head).unwrap());
        let (author, genesis) = Author::begin(self.key.clone(), [salt; 16], &frontier).unwrap();
        self.author = author;
        self.changes.insert((self.origin(), Counter::FIRST), genesis);
        for change in lost.values() {
            self.write(str::from_utf8(change.payload().unwrap()).unwrap());
        }
    }

    fn replay(&self, origin: OriginId) -> Series {
        let changes = self.changes.range((origin, Counter::FIRST)..=(origin, Counter::MAX));
        let mut changes = changes.map(|(_, change)| change);
        let mut series = Series::begin(changes.next().unwrap()).unwrap();
        for change in changes {
            assert_eq!(series.accept(change, Held::Nothing), Ok(Accepted::Next));
        }
        series
    }

    fn hash_before(&self, origin: OriginId, counter: Counter) -> ChangeHash {
        counter.before().map_or(ChangeHash::ZERO, |before| self.changes[&(origin, before)].hash())
    }

    /// The changes that a store with this frontier lacks, and the forks that are found before any is sent.
    pub(crate) fn lacked_by(&self, theirs: &Frontier) -> (Vec<&SignedChange>, Vec<Fork>) {
        let difference = self.frontier().lacked_by(theirs);
        let (mut changes, mut forks) = (Vec::new(), difference.forks);
        for range in difference.ranges {
            match range.check_base(self.hash_before(range.origin, range.first)) {
                Ok(()) => {
                    let range = (range.origin, range.first)..=(range.origin, range.last);
                    changes.extend(self.changes.range(range).map(|(_, change)| change));
                }
                Err(fork) => forks.push(fork),
            }
        }
        (changes, forks)
    }

    /// Takes all changes that can be read, and returns whether the end of the batch was reached.
    pub(crate) fn receive(&mut self, batch: &[u8]) -> bool {
        let Ok(Some(mut reader)) = BatchReader::open(batch) else { return false };
        for change in reader.by_ref() {
            let Ok(change) = change else { return false };
            self.take(change);
        }
        reader.ended()
    }

    fn take(&mut self, change: SignedChange) {
        let (origin, counter) = (change.change().origin, change.change().counter);
        if self.forks.contains_key(&origin) || self.rolled_back && origin == self.origin() {
            return;
        }
        let held = self.changes.get(&(origin, counter)).map_or(Held::Nothing, Held::Change);
        let accepted = match self.accept(&change, held) {
            Err(AuthorError::RolledBack { .. }) => {
                self.rolled_back = true;
                return;
            }
            Err(AuthorError::Series(SeriesError::Fork { fork, proof })) => {
                self.forks.insert(origin, (fork, proof.map(|proof| *proof)));
                return;
            }
            accepted => accepted.unwrap(),
        };
        if let Some(series) = accepted {
            self.series.insert(origin, series);
            self.changes.insert((origin, counter), change);
        }
    }

    /// The series with this change; none if the store has it already.
    fn accept(&self, change: &SignedChange, held: Held<'_>) -> Result<Option<Series>, AuthorError> {
        let origin = change.change().origin;
        if origin == self.origin() {
            return self.author.recognise(change, held).map(|()| None);
        }
        let Some(mut series) = self.series.get(&origin).cloned() else {
            return Ok(Some(Series::begin(change)?));
        };
        let accepted = series.accept(change, held)?;
        Ok((accepted == Accepted::Next).then_some(series))
    }

    /// Both changes at the first counter at which two stores differ.
    pub(crate) fn first_difference(&self, other: &Self, origin: OriginId) -> (SignedChange, SignedChange) {
        let ours = self.changes.range((origin, Counter::FIRST)..=(origin, Counter::MAX));
        let mut pairs = ours.filter_map(|(at, ours)| Some((ours.clone(), other.changes.get(at)?.clone())));
        pairs.find(|(ours, theirs)| ours.hash() != theirs.hash()).unwrap()
    }

    pub(crate) fn key_of(&self, origin: OriginId) -> satchel_sync::OriginKey {
        *self.series.get(&origin).unwrap_or(self.author.series()).key()
    }

    pub(crate) fn payloads(&self) -> Vec<String> {
        let notes = self.changes.values().filter(|change| change.change().kind == NOTE);
        let payloads = notes.filter_map(SignedChange::payload);
        let mut payloads: Vec<_> =
            payloads.map(|payload| String::from_utf8(payload.to_vec()).unwrap()).collect();
        payloads.sort();
        payloads
    }
}

pub(crate) fn batch(changes: &[&SignedChange]) -> Vec<u8> {
    let mut writer = BatchWriter::begin(Vec::new()).unwrap();
    for change in changes {
        assert_eq!(writer.push(change).unwrap(), Pushed::Written);
    }
    writer.finish().unwrap()
}
