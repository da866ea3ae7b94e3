//! Stores that write, pull and erase in any order, with repeats and cuts, come to hold the same changes.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, prelude::*, sample::Index};
use satchel_sync::{FrontierOrder, OriginId, SignedChange};

use crate::store::{Store, batch};

#[derive(Clone, Debug)]
enum Step {
    Write { store: Index, bytes: usize },
    Pull { to: Index, from: Index, sent: Sent, cut: Option<(Index, Index)> },
    Erase { store: Index, change: Index },
}

/// What the other store sends.
#[derive(Clone, Copy, Debug)]
enum Sent {
    /// What is lacked.
    Lacked,
    /// What is lacked, twice over: the answer to a request that was repeated.
    Twice,
    /// All that it holds: a stick that was written for somebody else.
    All,
}

fn step() -> impl Strategy<Value = Step> {
    let sent = prop_oneof![4 => Just(Sent::Lacked), 1 => Just(Sent::Twice), 1 => Just(Sent::All)];
    let cut = proptest::option::weighted(0.4, any::<(Index, Index)>());
    let pull = (any::<Index>(), any::<Index>(), sent, cut);
    prop_oneof![
        (any::<Index>(), 0..200_usize).prop_map(|(store, bytes)| Step::Write { store, bytes }),
        pull.prop_map(|(to, from, sent, cut)| Step::Pull { to, from, sent, cut }),
        any::<(Index, Index)>().prop_map(|(store, change)| Step::Erase { store, change }),
    ]
}

/// Which changes each store holds, as numbers only.
struct Model {
    held: Vec<BTreeSet<(OriginId, u64)>>,
    /// The highest counter of each origin that an author held when it wrote last.
    seen: BTreeMap<OriginId, BTreeMap<OriginId, u64>>,
}

impl Model {
    fn new(stores: &[Store]) -> Self {
        let held = stores.iter().map(|store| BTreeSet::from([(store.origin(), 1)])).collect();
        let seen = stores.iter().map(|store| (store.origin(), BTreeMap::new())).collect();
        Self { held, seen }
    }

    fn write(&mut self, store: usize, origin: OriginId) {
        let mut highest: BTreeMap<_, _> = self.held[store].iter().copied().collect();
        let own = highest.remove(&origin).unwrap_or_default();
        self.seen.insert(origin, highest);
        self.held[store].insert((origin, own + 1));
    }

    /// The changes that are sent, in order; a receiver holds the first ones of them after a cut.
    fn sent(&self, to: usize, from: usize, sent: Sent) -> Vec<(OriginId, u64)> {
        let lacked = || self.held[from].difference(&self.held[to]).copied();
        match sent {
            Sent::Lacked => lacked().collect(),
            Sent::Twice => lacked().chain(lacked()).collect(),
            Sent::All => self.held[from].iter().copied().collect(),
        }
    }

    fn check(&self, stores: &[Store]) {
        for (store, held) in stores.iter().zip(&self.held) {
            let changes: BTreeSet<_> =
                store.changes.keys().map(|(origin, counter)| (*origin, counter.get())).collect();
            assert_eq!(changes, *held);
            assert!(store.forks.is_empty() && !store.rolled_back);
        }
    }
}

fn name(change: &SignedChange) -> (OriginId, u64) {
    (change.change().origin, change.change().counter.get())
}

/// The encoded changes of a store. Which payloads are present depends on when they were erased.
fn without_payloads(store: &Store) -> Vec<Vec<u8>> {
    store.changes.values().map(|change| change.clone().without_payload().encode()).collect()
}

/// Pulls once, and returns the number of changes that were sent.
fn pull(
    stores: &mut [Store],
    model: &mut Model,
    (to, from): (usize, usize),
    sent: Sent,
    cut: Option<(Index, Index)>,
) -> usize {
    let (lacked, forks) = stores[from].lacked_by(&stores[to].frontier());
    assert_eq!(forks, []);
    let all = stores[from].changes.values();
    let changes: Vec<&SignedChange> = match sent {
        Sent::Lacked => lacked,
        Sent::Twice => [&lacked[..], &lacked].concat(),
        Sent::All => all.collect(),
    };
    let expected = model.sent(to, from, sent);
    assert_eq!(changes.iter().map(|change| name(change)).collect::<Vec<_>>(), expected);
    let bytes = batch(&changes);
    // Whole changes before the cut, then a part of what follows them.
    let (whole, length) = match cut {
        None => (changes.len(), bytes.len()),
        Some((whole, part)) => {
            let whole = whole.index(changes.len() + 1);
            let frames = changes.iter().map(|change| change.encode().len() + 4);
            let next = frames.clone().nth(whole).unwrap_or(40);
            (whole, 12 + frames.take(whole).sum::<usize>() + part.index(next))
        }
    };
    let sent = changes.len();
    let ended = stores[to].receive(&bytes[..length]);
    assert_eq!(ended, cut.is_none());
    model.held[to].extend(&expected[..whole]);
    sent
}

fn heal(stores: &mut [Store], model: &mut Model) {
    for _ in 0..=stores.len() {
        let mut sent = 0;
        for to in 0..stores.len() {
            for from in (0..stores.len()).filter(|from| *from != to) {
                sent += pull(stores, model, (to, from), Sent::Lacked, None);
            }
        }
        if sent == 0 {
            return;
        }
    }
    panic!("the stores do not become quiet");
}

fn run(count: u8, steps: &[Step]) -> (Vec<Store>, Model) {
    let mut stores: Vec<_> = (0..count).map(Store::new).collect();
    let mut model = Model::new(&stores);
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Write { store, bytes } => {
                let store = store.index(stores.len());
                stores[store].write(&format!("{number:0bytes$}"));
                model.write(store, stores[store].origin());
            }
            Step::Pull { to, from, sent, cut } => {
                let to = to.index(stores.len());
                let from = (to + 1 + from.index(stores.len() - 1)) % stores.len();
                pull(&mut stores, &mut model, (to, from), *sent, *cut);
            }
            Step::Erase { store, change } => {
                let store = store.index(stores.len());
                let change = change.index(stores[store].changes.len());
                stores[store].erase(change);
            }
        }
        model.check(&stores);
    }
    (stores, model)
}

proptest! {
    #[test]
    fn stores_converge(count in 3..=5_u8, steps in vec(step(), 0..60)) {
        let (mut stores, mut model) = run(count, &steps);
        let union: BTreeSet<_> = model.held.iter().flatten().copied().collect();
        heal(&mut stores, &mut model);
        model.check(&stores);
        for (store, held) in stores.iter().zip(&model.held) {
            prop_assert_eq!(held, &union);
            prop_assert_eq!(store.frontier().order(&stores[0].frontier()), FrontierOrder::Equal);
            prop_assert_eq!(store.frontier().encode(), stores[0].frontier().encode());
            prop_assert!(without_payloads(store) == without_payloads(&stores[0]));
            for (origin, seen) in &model.seen {
                let context = store.context(*origin).heads();
                let context: BTreeMap<_, _> = context.map(|(origin, head)| (origin, head.counter.get())).collect();
                prop_assert_eq!(&context, seen);
            }
        }
    }
}

#[test]
fn a_change_travels_through_a_third_store() {
    let mut stores: Vec<_> = (0..3).map(Store::new).collect();
    let mut model = Model::new(&stores);
    stores[0].write("tea, not coffee");
    model.write(0, stores[0].origin());
    pull(&mut stores, &mut model, (1, 0), Sent::Lacked, None);
    pull(&mut stores, &mut model, (2, 1), Sent::Lacked, None);
    model.check(&stores);
    assert_eq!(stores[2].payloads(), ["tea, not coffee"]);
}

#[test]
fn a_change_travels_without_its_payload() {
    let mut stores: Vec<_> = (0..3).map(Store::new).collect();
    let mut model = Model::new(&stores);
    for text in ["tea, not coffee", "oolong"] {
        stores[0].write(text);
        model.write(0, stores[0].origin());
    }
    pull(&mut stores, &mut model, (1, 0), Sent::Lacked, None);
    // The second one of three changes of the first store.
    let position = stores[1].changes.keys().position(|(of, at)| *of == stores[0].origin() && at.get() == 2);
    stores[1].erase(position.unwrap());
    pull(&mut stores, &mut model, (2, 1), Sent::Lacked, None);
    model.check(&stores);
    assert_eq!(stores[2].payloads(), ["oolong"]);
    // The store that holds the payload sends nothing: both have the change.
    assert_eq!(pull(&mut stores, &mut model, (2, 0), Sent::Lacked, None), 0);
}
