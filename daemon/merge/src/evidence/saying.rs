//! Evidence split by memory, so that the evidence on a few memories can be loaded without the rest.

use std::collections::BTreeMap;

use satchel_pam::record::{Claim, Item};
use uuid::Uuid;

use super::{Derived, Document, Fate, Said, Spoken, Witness, memory, memory_uuid, nth, outranks, united};

/// What a piece of evidence says about one memory.
pub struct Saying {
    /// The piece of evidence, reduced to the item about the memory.
    pub witness: Witness,
    memory: Uuid,
    /// The state of the memory; `None` if it does not count.
    now: Option<Fate>,
    /// The state before the current import.
    before: Option<Fate>,
}

/// The evidence on some memories.
#[derive(Default)]
pub struct Sayings(Vec<Saying>);

impl Saying {
    /// Extracts the item of `witness` at `place`, or returns `None` if there is none.
    #[must_use]
    pub fn of(witness: &Witness, place: usize, now: Option<Fate>, before: Option<Fate>) -> Option<Self> {
        let item = nth(&witness.claim, place)?;
        Some(Self::framed(witness, item, now, before))
    }

    /// Like [`Saying::of`], for a `frame` that may lack the item.
    #[must_use]
    pub fn framed(frame: &Witness, item: &Item, now: Option<Fate>, before: Option<Fate>) -> Self {
        let claim = match &frame.claim {
            Claim::Snapshot { series, .. } => {
                Claim::Snapshot { series: series.clone(), items: vec![item.clone()] }
            }
            claim @ (Claim::Statement(_) | Claim::Edit { .. }) => claim.clone(),
        };
        let witness = Witness {
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

impl Sayings {
    /// Combines `statements`, either stored or from the current import, with the evidence from lists, of which only the
    /// pieces that count are given. Of several statements with one id, the one that outranks the others counts.
    #[must_use]
    pub fn of(statements: Vec<(Witness, bool)>, listed: Vec<Saying>) -> Self {
        let mut now: BTreeMap<String, Witness> = BTreeMap::new();
        let mut before: BTreeMap<String, Witness> = BTreeMap::new();
        for (witness, fresh) in statements {
            let take = |among: &mut BTreeMap<String, Witness>, witness: Witness| {
                if among.get(&witness.id).is_none_or(|other| outranks(&witness, other)) {
                    among.insert(witness.id.clone(), witness);
                }
            };
            if fresh {
                take(&mut now, witness);
            } else {
                take(&mut before, witness);
            }
        }
        let mut sayings = listed;
        for (id, witness) in before {
            let stated = nth(&witness.claim, 0).map(super::stated);
            let counts = now.get(&id).is_none_or(|fresh| !outranks(fresh, &witness));
            if counts {
                now.remove(&id);
            }
            sayings.extend(Saying::of(&witness, 0, stated.filter(|_| counts), stated));
        }
        sayings.extend(now.into_values().filter_map(|witness| {
            let stated = nth(&witness.claim, 0).map(super::stated);
            Saying::of(&witness, 0, stated, None)
        }));
        Self(sayings)
    }

    /// Returns all pieces of evidence, each with its one item.
    pub fn witnesses_mut(&mut self) -> impl Iterator<Item = &mut Witness> {
        self.0.iter_mut().map(|saying| &mut saying.witness)
    }

    /// Derives the memories from this evidence, from `documents` and from the user's edits: the state `now`, or the
    /// state before the current import. `known` tells whether any evidence exists for a memory. Returns `None` if
    /// `stop` returns true on the way.
    pub fn derive<'d>(
        &self,
        now: bool,
        known: &dyn Fn(&Uuid) -> bool,
        documents: impl IntoIterator<Item = &'d Document>,
        spoken: &Spoken,
        stop: &dyn Fn() -> bool,
    ) -> Option<Derived> {
        let mut says = Vec::with_capacity(self.0.len());
        for saying in &self.0 {
            let Some(fate) = (if now { saying.now } else { saying.before }) else { continue };
            let Some(item) = nth(&saying.witness.claim, 0) else { continue };
            says.push(Said { memory: saying.memory, witness: &saying.witness, item, fate });
        }
        for witness in &spoken.added {
            if let Some(item) = nth(&witness.claim, 0) {
                says.push(Said { memory: memory_uuid(item), witness, item, fate: super::stated(item) });
            }
        }
        Some(united(memory::combine(says, known, stop)?, documents, spoken))
    }
}
