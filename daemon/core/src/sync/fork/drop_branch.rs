//! Removes a branch of a series from the ledger, and refers to what repeats it instead.

use std::collections::BTreeSet;

use satchel_merge::causality::{Causality, Dot, VersionVector};
use satchel_store::{Change, Cursor, Ledger, Store};
use satchel_sync::{Counter, OriginId, Series};
use uuid::Uuid;

use super::{SyncError, UNREADABLE, branch_of, context_at};
use crate::{
    each_row,
    provenance::{
        AssignedDots, ContributionKind, EvidenceItem, EvidenceKey, MovedSteps, contributed_keys, each_undo,
    },
    series::{
        continuations::ContinuedBranch,
        counters::{CounterSet, Marked},
        entries::{self, AppliedSeries, PayloadPlace, StoredChange, StoredUndo},
        large::{self, Content},
        payload::{Payload, contribution_key},
    },
};

/// Imports per page of the ledger.
const PAGE: usize = 500;

/// Returns the changes of the ledger that remove the branch.
pub(super) fn drop_branch(store: &Store, branch: &ContinuedBranch) -> Result<Vec<Change>, SyncError> {
    let (origin, base) = (branch.continuation.origin(), branch.continuation.base());
    let series = entries::series(store, origin)?.ok_or(UNREADABLE)?;
    let context = context_at(store, origin, base.counter)?;
    let mut changes = vec![entries::put_series(&Series::resume(*series.key(), base, context.clone()))];
    if entries::applied(store, origin)?.is_some_and(|applied| applied.head.counter > base.counter) {
        changes.push(entries::put_applied(origin, &AppliedSeries { head: base, context }));
    }
    for stored in branch_of(store, origin, base)? {
        let stored = stored?;
        changes.extend(moved_items(store, branch, &stored)?);
        changes.extend(moved_payload(store, branch, &stored)?);
        changes.push(entries::remove_change(origin, stored.change.change().counter));
    }
    changes.extend(moved_pieces(store, branch)?);
    let late = late_copies(store, branch)?;
    changes.extend(moved_marks(store, branch, Marked::Late, &late)?);
    for marked in [Marked::UnknownKind, Marked::Joined] {
        changes.extend(moved_marks(store, branch, marked, &[])?);
    }
    changes.extend(removed_marks(store, branch)?);
    changes.extend(completed_marks(store, branch)?);
    changes.extend(moved_steps(store, branch)?);
    changes.extend(moved_undos(store, branch)?);
    changes.extend(moved_lacking(store, branch)?);
    Ok(changes)
}

/// Returns the change that gives the payload of a change to the one that repeats it, if that came without.
fn moved_payload(
    store: &Store,
    branch: &ContinuedBranch,
    stored: &StoredChange,
) -> Result<Option<Change>, SyncError> {
    let change = stored.change.change();
    let Some((by, counter)) = branch.moved((change.origin, change.counter)) else { return Ok(None) };
    let repeated = entries::change(store, by, counter)?;
    let Some(repeated) = repeated.filter(|repeated| repeated.place == PayloadPlace::Absent) else {
        return Ok(None);
    };
    // Both have the digest that the author has signed.
    let whole = match stored.change.payload() {
        Some(payload) => repeated.change.with_payload(payload.to_vec()).ok(),
        None => Some(repeated.change),
    };
    Ok(whole.map(|whole| entries::put_change(&whole, &stored.place)))
}

/// Returns the changes that forget that the repetitions of changes whose payloads are here came without them.
fn completed_marks(store: &Store, branch: &ContinuedBranch) -> Result<Vec<Change>, SyncError> {
    let (origin, base) = (branch.continuation.origin(), branch.continuation.base());
    let mut withheld = CounterSet::load(store, Marked::Withheld, branch.by)?;
    for stored in branch_of(store, origin, base)? {
        let stored = stored?;
        let place = (origin, stored.change.change().counter);
        if let Some((_, counter)) = branch.moved(place).filter(|_| stored.place != PayloadPlace::Absent) {
            withheld.remove(store, counter)?;
        }
    }
    Ok(withheld.take_changes())
}

/// Returns the changes that let the items which came with a change come with the one that repeats it.
fn moved_items(
    store: &Store,
    branch: &ContinuedBranch,
    stored: &StoredChange,
) -> Result<Vec<Change>, SyncError> {
    let change = stored.change.change();
    let place = (change.origin, change.counter);
    let Some((by, counter)) = branch.moved(place) else { return Ok(Vec::new()) };
    let (item, remainder) = match brought(store, stored)? {
        None => return Ok(Vec::new()),
        Some(Brought::Item(key)) => (Some(key), None),
        Some(Brought::Remainder(key)) => (None, Some(key)),
    };
    let mut changes = Vec::new();
    if let Some(key) = item
        && entries::item(store, key)? == Some(place)
    {
        changes.push(entries::put_item(key, by, counter));
    }
    if let Some(key) = remainder
        && entries::remainder(store, key)? == Some(place)
    {
        changes.push(entries::put_remainder(key, by, counter));
    }
    Ok(changes)
}

/// Does the same for everything that imports list, also if the payload of the change was erased.
fn moved_pieces(store: &Store, branch: &ContinuedBranch) -> Result<Vec<Change>, SyncError> {
    let mut keys = BTreeSet::new();
    let page = |after: Option<&Cursor>| Ok::<_, SyncError>(store.ledger_list(Ledger::Import, after, PAGE)?);
    each_row(page, |entry| {
        if let Ok(import) = Uuid::parse_str(&entry.id) {
            for kind in [ContributionKind::Evidence, ContributionKind::Contributions] {
                keys.extend(contributed_keys(store, kind, import)?);
            }
        }
        Ok(())
    })?;
    let mut changes = Vec::new();
    for key in keys {
        if let Some((by, counter)) = entries::item(store, key)?.and_then(|place| branch.moved(place)) {
            changes.push(entries::put_item(key, by, counter));
        }
        if let Some((by, counter)) = entries::remainder(store, key)?.and_then(|place| branch.moved(place)) {
            changes.push(entries::put_remainder(key, by, counter));
        }
    }
    Ok(changes)
}

/// What a change brought that imports refer to.
enum Brought {
    Item(EvidenceKey),
    Remainder(EvidenceKey),
}

fn brought(store: &Store, stored: &StoredChange) -> Result<Option<Brought>, SyncError> {
    if let PayloadPlace::Evidence(_, key) | PayloadPlace::Contribution(_, key, _) = &stored.place {
        return Ok(Some(Brought::Item(*key)));
    }
    let Content::Present(kind, content) = large::content(store, &stored.change)? else { return Ok(None) };
    Ok(match Payload::decode(kind, &content) {
        Ok(Some(Payload::Evidence(key, _))) => Some(Brought::Item(key)),
        Ok(Some(Payload::Contribution(part))) => contribution_key(&part).ok().map(Brought::Item),
        Ok(Some(Payload::Remainder(key, _))) => Some(Brought::Remainder(key)),
        _ => None,
    })
}

/// Returns the counters of what repeats changes that had no payload here, and has one: it counts as applied with the branch, and has yet to
/// take effect.
fn late_copies(store: &Store, branch: &ContinuedBranch) -> Result<Vec<Counter>, SyncError> {
    let (origin, base) = (branch.continuation.origin(), branch.continuation.base());
    let mut late = Vec::new();
    for stored in branch_of(store, origin, base)? {
        let stored = stored?;
        let moved = branch.moved((origin, stored.change.change().counter));
        if let Some((by, counter)) = moved.filter(|_| stored.place == PayloadPlace::Absent) {
            let repeated = entries::change(store, by, counter)?;
            late.extend(repeated.filter(|repeated| repeated.place != PayloadPlace::Absent).map(|_| counter));
        }
    }
    Ok(late)
}

/// Returns the changes that mark what repeats the branch as its changes were marked, and `more`.
fn moved_marks(
    store: &Store,
    branch: &ContinuedBranch,
    marked: Marked,
    more: &[Counter],
) -> Result<Vec<Change>, SyncError> {
    let origin = branch.continuation.origin();
    let mut from = CounterSet::load(store, marked, origin)?;
    let mut to = CounterSet::load(store, marked, branch.by)?;
    for counter in from.counters(store)? {
        if let Some((_, moved)) = branch.moved((origin, counter)) {
            from.remove(store, counter)?;
            to.insert(store, moved)?;
        }
    }
    more.iter().try_for_each(|counter| to.insert(store, *counter))?;
    Ok([from.take_changes(), to.take_changes()].concat())
}

/// Returns the changes that forget which changes of the branch came without their payloads. Those that repeat them have marks of their own.
fn removed_marks(store: &Store, branch: &ContinuedBranch) -> Result<Vec<Change>, SyncError> {
    let origin = branch.continuation.origin();
    let mut withheld = CounterSet::load(store, Marked::Withheld, origin)?;
    for counter in withheld.counters(store)? {
        if branch.moved((origin, counter)).is_some() {
            withheld.remove(store, counter)?;
        }
    }
    Ok(withheld.take_changes())
}

/// Returns the changes that replace the dots of the branch wherever edits have or have seen them.
fn moved_steps(store: &Store, branch: &ContinuedBranch) -> Result<Vec<Change>, SyncError> {
    let (dots, mut moved, mut any) = (AssignedDots::load(store)?, MovedSteps::load(store)?, false);
    for record in store.evidence_all() {
        let record = record?;
        let Some(EvidenceItem::Edit(step)) = EvidenceItem::decode_stored(&record.json, record.id, &dots)?
        else {
            continue;
        };
        let Causality::Recorded { dot, seen } = step.causality else { continue };
        if let Some((dot, seen)) = moved_causality(branch, dot, &seen) {
            moved.insert(record.id, dot, seen);
            any = true;
        }
    }
    Ok(if any { moved.to_changes()? } else { Vec::new() })
}

/// Returns the causality of what had or had seen a dot of the branch; `None` if it did not.
fn moved_causality(branch: &ContinuedBranch, dot: Dot, seen: &VersionVector) -> Option<(Dot, VersionVector)> {
    let (new_dot, new_seen) = (branch.moved_dot(dot), branch.moved_vector(seen));
    if new_dot.is_none() && new_seen.is_none() {
        return None;
    }
    let mut vector = new_seen.unwrap_or_else(|| seen.clone());
    if new_dot.is_some() {
        // What came before it in the old series is not before it in the new one.
        vector.join(&branch.base());
    }
    Some((new_dot.unwrap_or(dot), vector))
}

/// Returns the changes that do the same for undos and redos of imports.
fn moved_undos(store: &Store, branch: &ContinuedBranch) -> Result<Vec<Change>, SyncError> {
    let mut imports = Vec::new();
    each_undo(store, |record| imports.push(record.import))?;
    let mut changes = Vec::new();
    for import in imports {
        let (mut undos, mut any) = (entries::undos(store, import)?, false);
        for StoredUndo { dot, seen, .. } in &mut undos {
            if let Some((new_dot, new_seen)) = moved_causality(branch, *dot, seen) {
                (*dot, *seen, any) = (new_dot, new_seen, true);
            }
        }
        if any {
            changes.push(entries::put_undos(import, &undos)?);
        }
    }
    Ok(changes)
}

/// Returns the change that does the same for imports of which pieces are missing.
fn moved_lacking(store: &Store, branch: &ContinuedBranch) -> Result<Option<Change>, SyncError> {
    let lacking = entries::lacking(store)?;
    let moved = |(import, origin, counter): &(Uuid, OriginId, Counter)| {
        let (origin, counter) = branch.moved((*origin, *counter)).unwrap_or((*origin, *counter));
        (*import, origin, counter)
    };
    let new: Vec<_> = lacking.iter().map(moved).collect();
    Ok(if new == lacking { None } else { Some(entries::put_lacking(&new)?) })
}
