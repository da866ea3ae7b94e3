//! Changes that were passed over, because their payload was not here or their kind was not known, and that can take effect now.

use std::collections::BTreeSet;

use satchel_sync::{Counter, Frontier, OriginId};

use super::{Applier, Flushed, Moment, Reading, SyncError, UNREADABLE, extend};
use crate::series::{
    counters::{CounterSet, Marked},
    entries,
    large::{self, PART},
    payload::KNOWN_KINDS,
};

impl Applier<'_> {
    /// Lets all of them take effect.
    pub(super) fn late_changes(&mut self) -> Result<(), SyncError> {
        self.mark_known_kinds()?;
        let origins: Vec<OriginId> = self.heads.keys().copied().collect();
        origins.into_iter().try_for_each(|origin| self.late_changes_of(origin))
    }

    /// If an older program passed over changes, those of kinds that it did not know become late changes.
    fn mark_known_kinds(&mut self) -> Result<(), SyncError> {
        if entries::known_kinds(self.store)? == KNOWN_KINDS {
            return Ok(());
        }
        let mut changes = vec![entries::put_known_kinds(KNOWN_KINDS)];
        for origin in self.heads.keys() {
            let mut unknown = CounterSet::load(self.store, Marked::UnknownKind, *origin)?;
            let counters = unknown.counters(self.store)?;
            let mut late = CounterSet::load(self.store, Marked::Late, *origin)?;
            for counter in counters {
                unknown.remove(self.store, counter)?;
                late.insert(self.store, counter)?;
            }
            changes.extend(unknown.take_changes());
            changes.extend(late.take_changes());
        }
        Ok(self.inner.commit_entries(changes)?)
    }

    /// Lets those of one origin take effect.
    fn late_changes_of(&mut self, origin: OriginId) -> Result<(), SyncError> {
        let mut late = CounterSet::load(self.store, Marked::Late, origin)?;
        let marked = late.counters(self.store)?;
        if marked.is_empty() {
            return Ok(());
        }
        let (mut seen, mut next) = (Frontier::new(), Some(Counter::FIRST));
        for counter in self.meant(origin, &marked)? {
            self.check_cancelled()?;
            while let Some(at) = next.filter(|at| *at <= counter) {
                let stored = entries::change(self.store, origin, at)?.ok_or(UNREADABLE)?;
                extend(&mut seen, &stored.change.change().context)?;
                next = at.next();
            }
            self.late_change(&Moment::of(origin, counter, &seen, &self.continuations)?)?;
        }
        marked.iter().try_for_each(|counter| late.remove(self.store, *counter))?;
        self.entries.extend(late.take_changes());
        if self.one_by_one {
            self.flush()?;
        }
        Ok(())
    }

    /// Returns the changes that marked ones are or belong to, as far as they have been passed over.
    fn meant(&self, origin: OriginId, marked: &[Counter]) -> Result<BTreeSet<Counter>, SyncError> {
        let mut meant = BTreeSet::new();
        for counter in marked {
            let stored = entries::change(self.store, origin, *counter)?.ok_or(UNREADABLE)?;
            if stored.change.change().kind == PART {
                meant.extend(large::joining(self.store, origin, *counter)?);
            } else {
                meant.insert(*counter);
            }
        }
        let done = self.positions.get(&origin).map(|applied| applied.head.counter);
        meant.retain(|counter| done.is_some_and(|done| *counter <= done));
        Ok(meant)
    }

    fn late_change(&mut self, moment: &Moment) -> Result<(), SyncError> {
        let stored = entries::change(self.store, moment.origin, moment.counter)?.ok_or(UNREADABLE)?;
        match self.read(&stored)? {
            Reading::Item(key) => {
                // An import may have brought it before it was taken back.
                self.pieces_came = true;
                self.note_item(key, moment)
            }
            Reading::Payload(payload) => {
                if self.take(*payload, moment, Vec::new())? == Flushed::Refused {
                    tracing::warn!(origin = %moment.origin, counter = moment.counter.get(), "a change cannot take effect");
                }
                Ok(())
            }
            Reading::UnknownKind => self.note_unknown(moment.origin, moment.counter),
            Reading::Missing | Reading::Nothing => Ok(()),
            Reading::Invalid(reason) => {
                tracing::warn!(origin = %moment.origin, counter = moment.counter.get(), reason, "a change cannot take effect");
                Ok(())
            }
        }
    }
}
