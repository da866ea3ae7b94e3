//! Payloads that are too large for one change: parts of their content, each in a change of its own, and then a change that joins
//! them.

use std::collections::BTreeSet;

use satchel_store::Store;
use satchel_sync::{Counter, Kind, OriginId, SignedChange, payload::unsalted};

use super::{
    SeriesStoreError,
    continuations::Continuations,
    counters::{CounterSet, Marked},
    entries,
};

/// A part of a large payload.
pub(crate) const PART: Kind = Kind(7);
/// The change that joins the parts of a large payload, which are the changes directly before it.
pub(crate) const JOINED: Kind = Kind(8);
/// Bytes of a part.
pub(crate) const PART_BYTES: usize = 2 << 20;
/// The most parts of one payload. It is read as a whole: 256 MiB.
const MAX_PARTS: u32 = 128;
/// Bytes of the content of a change that joins parts.
const CONTENT_BYTES: usize = 6;

/// What a change says that joins parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Joined {
    /// The kind of the large payload.
    pub(crate) kind: Kind,
    /// The number of its parts, at least 1.
    pub(crate) parts: u32,
}

/// What a change says.
#[derive(Debug)]
pub(crate) enum Content {
    /// The content of its payload, or of that which it joins, without the random bytes; and its kind.
    Present(Kind, Vec<u8>),
    /// It is not here, or not all of it.
    Absent,
    /// It is wrong, for this reason.
    Invalid(String),
}

impl Joined {
    /// Describes the parts of `content`; `None` if there would be too many.
    pub(crate) fn of(kind: Kind, content: &[u8]) -> Option<Self> {
        let parts = u32::try_from(content.len().div_ceil(PART_BYTES)).ok()?;
        (parts <= MAX_PARTS).then_some(Self { kind, parts })
    }

    pub(crate) fn encode(self) -> [u8; CONTENT_BYTES] {
        let mut content = [0; CONTENT_BYTES];
        content[..2].copy_from_slice(&self.kind.0.to_be_bytes());
        content[2..].copy_from_slice(&self.parts.to_be_bytes());
        content
    }

    fn decode(content: &[u8]) -> Result<Self, String> {
        let read = || {
            let (kind, parts) = content.split_first_chunk::<2>()?;
            let parts = u32::from_be_bytes(parts.try_into().ok()?);
            Some(Self { kind: Kind(u16::from_be_bytes(*kind)), parts })
        };
        let joined = read().ok_or("a change that joins parts has another length than 6 bytes")?;
        match joined {
            Self { kind: Kind::GENESIS | PART | JOINED, .. } => {
                Err(format!("a change of kind {} is never in parts", joined.kind.0))
            }
            Self { parts: 0, .. } => Err("it joins no parts".to_owned()),
            Self { parts, .. } if parts > MAX_PARTS => {
                Err(format!("it joins {parts} parts, the limit is {MAX_PARTS}"))
            }
            joined => Ok(joined),
        }
    }

    /// Returns the counters of the parts that the change `counter` joins.
    fn counters(self, counter: Counter) -> Result<impl Iterator<Item = Counter>, String> {
        let first = counter.get().checked_sub(u64::from(self.parts)).and_then(Counter::new);
        let first = first.ok_or("it joins more parts than there are changes before it")?;
        Ok((first.get()..counter.get()).filter_map(Counter::new))
    }
}

/// Returns the content of a change: its own, or that of the parts that it joins. The change must have its payload if the store has it.
pub(crate) fn content(store: &Store, change: &SignedChange) -> Result<Content, SeriesStoreError> {
    let Some(payload) = change.payload() else { return Ok(Content::Absent) };
    let Some(content) = unsalted(payload) else {
        return Ok(Content::Invalid("the payload is shorter than its random prefix".to_owned()));
    };
    let (origin, counter, kind) = (change.change().origin, change.change().counter, change.change().kind);
    if kind != JOINED {
        return Ok(Content::Present(kind, content.to_vec()));
    }
    let joined = Joined::decode(content).and_then(|joined| Ok((joined, joined.counters(counter)?)));
    match joined {
        Ok((joined, counters)) => join(store, origin, joined.kind, counters),
        Err(reason) => Ok(Content::Invalid(reason)),
    }
}

fn join(
    store: &Store,
    origin: OriginId,
    kind: Kind,
    parts: impl Iterator<Item = Counter>,
) -> Result<Content, SeriesStoreError> {
    let mut whole = Vec::new();
    for counter in parts {
        let part = entries::change(store, origin, counter)?.ok_or(SeriesStoreError::Unreadable)?.change;
        if part.change().kind != PART {
            return Ok(Content::Invalid(format!("it joins change {}, which is no part", counter.get())));
        }
        let Some(payload) = part.payload() else { return Ok(Content::Absent) };
        match unsalted(payload) {
            Some(content) if content.len() <= PART_BYTES => whole.extend_from_slice(content),
            Some(_) => return Ok(Content::Invalid(format!("part {} is too long", counter.get()))),
            None => return Ok(Content::Invalid(format!("part {} has no random prefix", counter.get()))),
        }
    }
    Ok(Content::Present(kind, whole))
}

/// Returns the change that joins the part `counter`, if the store has it.
pub(crate) fn joining(
    store: &Store,
    origin: OriginId,
    counter: Counter,
) -> Result<Option<Counter>, SeriesStoreError> {
    let mut next = counter.next();
    for _ in 0..MAX_PARTS {
        let Some(at) = next else { break };
        let Some(stored) = entries::change(store, origin, at)? else { break };
        match stored.change.change().kind {
            JOINED => return Ok(Some(at)),
            PART => next = at.next(),
            _ => break,
        }
    }
    Ok(None)
}

/// Returns the counters of the parts that a change joins; none if it joins none.
pub(crate) fn parts_of(change: &SignedChange) -> Vec<Counter> {
    if change.change().kind != JOINED {
        return Vec::new();
    }
    let content = change.payload().and_then(unsalted);
    let joined = content.and_then(|content| Joined::decode(content).ok());
    let counters = joined.and_then(|joined| joined.counters(change.change().counter).ok());
    counters.map(Iterator::collect).unwrap_or_default()
}

/// Returns the entries of the ledger with the parts of all payloads of which `is_erased` holds.
pub(crate) fn erased_parts(
    store: &Store,
    mut is_erased: impl FnMut(Kind, &[u8]) -> bool,
) -> Result<BTreeSet<String>, SeriesStoreError> {
    let (mut erased, continuations) = (BTreeSet::new(), Continuations::load(store)?);
    for origin in entries::origins(store)? {
        for counter in CounterSet::load(store, Marked::Joined, origin)?.counters(store)? {
            let Some(stored) = entries::change(store, origin, counter)? else { continue };
            if let Content::Present(kind, whole) = content(store, &stored.change)?
                && is_erased(kind, &whole)
            {
                for part in parts_of(&stored.change) {
                    erased.insert(entries::change_id(origin, part));
                    // The journal still has it under the number that it had on a branch that was dropped.
                    let earlier = continuations.earlier((origin, part));
                    erased.extend(earlier.map(|(origin, part)| entries::change_id(origin, part)));
                }
            }
        }
    }
    Ok(erased)
}
