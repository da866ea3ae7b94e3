//! The entries of the ledger in which a store keeps its own series and those of others.
//!
//! | id | value |
//! |---|---|
//! | `own` | the store's own origin |
//! | `givers` | the keys of the peers that have given changes to the store, also of those that were removed |
//! | `earlier own` | the origins of the store's own series with which it does not go on |
//! | `origins` | all origins of which the store holds changes, in the order of their arrival |
//! | `series <origin>` | key, head and context of a series |
//! | `applied <origin>` | the last change of a series that has taken effect, and what its author had seen by then |
//! | `change <origin> <counter>` | a change, and its payload or where that is |
//! | `item <key>` | the change with which this piece of evidence or contribution first came |
//! | `remainder <key>` | the change with what an erasure left of this piece of evidence |
//! | `import <import>` | says that an import is in a series |
//! | `erasure <erasure>` | says that an erasure is in a series |
//! | `export <export>` | says that an export is in a series |
//! | `assigned <page>` | dots of earlier edits ([`crate::provenance::AssignedDots`]) |
//! | `moved <page>` | dots of edits that were written again in another series ([`crate::provenance::MovedSteps`]) |
//! | `continued <origin>` | the branches of a forked series that go on under other origins ([`super::continuations`]) |
//! | `undo <import>` | the undos and redos of an import that none of the others had seen |
//! | `lacking` | the imports of which pieces were not here when they took effect, each with its change |
//! | `files` | the files of attachments that the store lacks, and up to which revision conversations were read for them |
//! | `kinds` | the greatest kind of change that the program knew which passed over changes last |
//! | `late <origin>`, `unknown <origin>`, `joined <origin>`, `withheld <origin>` | numbers of the pages of a set ([`super::counters`]); page 3 is in `late <origin> 3` |

use std::collections::BTreeSet;

use satchel_merge::causality::{Dot, VersionVector};
use satchel_pam::{conversation::ImportMetadata, hash::Sha256Digest};
use satchel_store::{Change, Ledger, LedgerWrite, Revision, Store, StoreError};
use satchel_sync::{Counter, Frontier, Head, OriginId, OriginKey, Series, SignedChange};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{SeriesStoreError, payload::SALT_BYTES};
use crate::provenance::EvidenceKey;

const OWN: &str = "own";
const EARLIER_OWN: &str = "earlier own";
const GIVERS: &str = "givers";
const ORIGINS: &str = "origins";
/// What the ids of changes begin with.
const CHANGE: &str = "change ";

/// A change as it is stored.
#[derive(Debug)]
pub(crate) struct StoredChange {
    pub(crate) change: SignedChange,
    pub(crate) place: PayloadPlace,
}

/// Where a contribution is, with what was sent with it and may have changed since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContributionPlace {
    /// The entry of the provenance.
    pub(crate) entry: String,
    /// The id of the conversation.
    pub(crate) conversation: String,
    /// PAM `provider.name`.
    pub(crate) platform: String,
    /// The import metadata of the conversation.
    pub(crate) import: ImportMetadata,
}

/// Where the payload of a change is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PayloadPlace {
    /// Not in this store: it was withheld or erased.
    Absent,
    /// With the change.
    Inline,
    /// The piece of evidence with this key, after these random bytes.
    Evidence([u8; SALT_BYTES], EvidenceKey),
    /// The contribution with this key, after these random bytes.
    Contribution([u8; SALT_BYTES], EvidenceKey, Box<ContributionPlace>),
}

/// The part of a series that has taken effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppliedSeries {
    /// The last change that has taken effect.
    pub(crate) head: Head,
    /// What its author had seen of other origins by then.
    pub(crate) context: Frontier,
}

/// An undo or redo that no other one has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredUndo {
    pub(crate) dot: Dot,
    pub(crate) seen: VersionVector,
    pub(crate) undone: bool,
    pub(crate) at: i64,
}

/// Returns the store's own origin; `None` if it has no series.
pub(crate) fn own(store: &Store) -> Result<Option<OriginId>, SeriesStoreError> {
    let entry = get(store, OWN)?;
    entry
        .map(|value| value.try_into().map(OriginId::from_bytes).map_err(|_| SeriesStoreError::Unreadable))
        .transpose()
}

pub(crate) fn put_own(origin: OriginId) -> Change {
    put(OWN.to_owned(), origin.as_bytes().to_vec())
}

/// Returns all origins of which the store holds changes.
pub(crate) fn origins(store: &Store) -> Result<Vec<OriginId>, SeriesStoreError> {
    let value = get(store, ORIGINS)?.unwrap_or_default();
    let (ids, rest) = value.as_chunks::<16>();
    if rest.is_empty() {
        Ok(ids.iter().copied().map(OriginId::from_bytes).collect())
    } else {
        Err(SeriesStoreError::Unreadable)
    }
}

pub(crate) fn put_origins(origins: &[OriginId]) -> Change {
    let ids: Vec<[u8; 16]> = origins.iter().map(|origin| *origin.as_bytes()).collect();
    put(ORIGINS.to_owned(), ids.concat())
}

/// Returns the series of an origin.
pub(crate) fn series(store: &Store, origin: OriginId) -> Result<Option<Series>, SeriesStoreError> {
    let Some(value) = get(store, &format!("series {origin}"))? else { return Ok(None) };
    let read = || {
        let (key, rest) = value.split_at_checked(OriginKey::BYTES)?;
        let (head, context) = rest.split_at_checked(HEAD_BYTES)?;
        let key = OriginKey::decode(key).ok()?;
        Some(Series::resume(key, read_head(head)?, Frontier::decode(context).ok()?))
    };
    read().map(Some).ok_or(SeriesStoreError::Unreadable)
}

pub(crate) fn put_series(series: &Series) -> Change {
    let mut value = series.key().encode().to_vec();
    value.extend_from_slice(&write_head(series.head()));
    value.extend_from_slice(&series.context().encode());
    put(format!("series {}", series.origin()), value)
}

/// Returns up to where the changes of an origin have taken effect; `None` if none of them has.
pub(crate) fn applied(store: &Store, origin: OriginId) -> Result<Option<AppliedSeries>, SeriesStoreError> {
    let Some(value) = get(store, &format!("applied {origin}"))? else { return Ok(None) };
    let read = || {
        let (head, context) = value.split_at_checked(HEAD_BYTES)?;
        Some(AppliedSeries { head: read_head(head)?, context: Frontier::decode(context).ok()? })
    };
    read().map(Some).ok_or(SeriesStoreError::Unreadable)
}

pub(crate) fn put_applied(origin: OriginId, applied: &AppliedSeries) -> Change {
    let value = [write_head(applied.head).as_slice(), &applied.context.encode()].concat();
    put(format!("applied {origin}"), value)
}

/// Returns the change of the ledger that removes a change of a branch that goes on under another origin.
pub(crate) fn remove_change(origin: OriginId, counter: Counter) -> Change {
    put(change_id(origin, counter), Vec::new())
}

/// Returns a change.
pub(crate) fn change(
    store: &Store,
    origin: OriginId,
    counter: Counter,
) -> Result<Option<StoredChange>, SeriesStoreError> {
    let value = get(store, &change_id(origin, counter))?;
    value.map(|value| StoredChange::decode(&value).ok_or(SeriesStoreError::Unreadable)).transpose()
}

/// Returns the ledger change that stores a change.
pub(crate) fn put_change(change: &SignedChange, place: &PayloadPlace) -> Change {
    let id = change_id(change.change().origin, change.change().counter);
    put(id, StoredChange::encode(change, place))
}

/// Returns what an entry becomes when its payload is erased; `None` if the entry is no change, or `erased` says that its payload stays.
pub(crate) fn without_erased(
    id: &str,
    value: &[u8],
    erased: impl FnOnce(&SignedChange) -> bool,
) -> Result<Option<Vec<u8>>, SeriesStoreError> {
    if !id.starts_with(CHANGE) || value.is_empty() {
        return Ok(None);
    }
    let StoredChange { change, place } = StoredChange::decode(value).ok_or(SeriesStoreError::Unreadable)?;
    let erased = place == PayloadPlace::Inline && erased(&change);
    Ok(erased.then(|| StoredChange::encode(&change, &PayloadPlace::Absent)))
}

/// Returns the change with which a piece of evidence or a contribution first came.
pub(crate) fn item(store: &Store, key: EvidenceKey) -> Result<Option<(OriginId, Counter)>, SeriesStoreError> {
    position(store, &item_id(key))
}

pub(crate) fn put_item(key: EvidenceKey, origin: OriginId, counter: Counter) -> Change {
    put_position(item_id(key), origin, counter)
}

pub(crate) fn remove_item(key: EvidenceKey) -> Change {
    put(item_id(key), Vec::new())
}

pub(crate) fn remove_remainder(key: EvidenceKey) -> Change {
    put(remainder_id(key), Vec::new())
}

/// Returns the earlier origins of the store's own series, with which it does not go on.
pub(crate) fn earlier_own(store: &Store) -> Result<Vec<OriginId>, SeriesStoreError> {
    let value = get(store, EARLIER_OWN)?.unwrap_or_default();
    Ok(value.as_chunks::<16>().0.iter().copied().map(OriginId::from_bytes).collect())
}

/// Returns the changes with which the store's own series goes on under another origin.
pub(crate) fn replace_own(store: &Store, origin: OriginId) -> Result<Vec<Change>, SeriesStoreError> {
    let earlier = earlier_own(store)?.into_iter().chain(own(store)?);
    let ids: Vec<[u8; 16]> = earlier.map(|origin| *origin.as_bytes()).collect();
    Ok(vec![put_own(origin), put(EARLIER_OWN.to_owned(), ids.concat())])
}

/// Returns the keys of the stores that have given changes to this one; `None` if they were never noted.
pub(crate) fn givers(store: &Store) -> Result<Option<BTreeSet<String>>, SeriesStoreError> {
    let value = get(store, GIVERS)?;
    value.map(|value| serde_json::from_slice(&value).map_err(|_| SeriesStoreError::Unreadable)).transpose()
}

pub(crate) fn put_givers(givers: &BTreeSet<String>) -> Result<Change, SeriesStoreError> {
    let value = serde_json::to_vec(givers).map_err(|_| SeriesStoreError::Unreadable)?;
    Ok(put(GIVERS.to_owned(), value))
}

/// Returns the change with what the last erasure left of a piece of evidence.
pub(crate) fn remainder(
    store: &Store,
    key: EvidenceKey,
) -> Result<Option<(OriginId, Counter)>, SeriesStoreError> {
    position(store, &remainder_id(key))
}

pub(crate) fn put_remainder(key: EvidenceKey, origin: OriginId, counter: Counter) -> Change {
    put_position(remainder_id(key), origin, counter)
}

/// Returns whether an erasure is in a series.
pub(crate) fn is_erasure_recorded(store: &Store, erasure: &str) -> Result<bool, StoreError> {
    Ok(get(store, &format!("erasure {erasure}"))?.is_some())
}

pub(crate) fn put_erasure_recorded(erasure: &str) -> Change {
    put(format!("erasure {erasure}"), b"1".to_vec())
}

/// Returns whether an export is in a series.
pub(crate) fn is_export_recorded(store: &Store, export: &str) -> Result<bool, StoreError> {
    Ok(get(store, &format!("export {export}"))?.is_some())
}

pub(crate) fn put_export_recorded(export: &str) -> Change {
    put(format!("export {export}"), b"1".to_vec())
}

fn position(store: &Store, id: &str) -> Result<Option<(OriginId, Counter)>, SeriesStoreError> {
    let Some(value) = get(store, id)? else { return Ok(None) };
    let read = || {
        let (origin, counter) = value.split_first_chunk::<16>()?;
        let counter = Counter::new(u64::from_be_bytes(counter.try_into().ok()?))?;
        Some((OriginId::from_bytes(*origin), counter))
    };
    read().map(Some).ok_or(SeriesStoreError::Unreadable)
}

fn put_position(id: String, origin: OriginId, counter: Counter) -> Change {
    put(id, [origin.as_bytes().as_slice(), &counter.get().to_be_bytes()].concat())
}

/// Returns whether an import is in a series.
pub(crate) fn is_recorded(store: &Store, import: &str) -> Result<bool, StoreError> {
    Ok(get(store, &format!("import {import}"))?.is_some())
}

pub(crate) fn put_recorded(import: &str) -> Change {
    put(format!("import {import}"), b"1".to_vec())
}

/// Returns the undos and redos of an import that none of the others had seen.
pub(crate) fn undos(store: &Store, import: Uuid) -> Result<Vec<StoredUndo>, SeriesStoreError> {
    let value = get(store, &format!("undo {import}"))?;
    let read = |value: Vec<u8>| serde_json::from_slice(&value).map_err(|_| SeriesStoreError::Unreadable);
    Ok(value.map(read).transpose()?.unwrap_or_default())
}

pub(crate) fn put_undos(import: Uuid, undos: &[StoredUndo]) -> Result<Change, SeriesStoreError> {
    Ok(put(format!("undo {import}"), serde_json::to_vec(undos).map_err(|_| SeriesStoreError::Unreadable)?))
}

/// Returns the imports of which pieces were not here when they took effect, each with its change.
pub(crate) fn lacking(store: &Store) -> Result<Vec<(Uuid, OriginId, Counter)>, SeriesStoreError> {
    let value = get(store, "lacking")?;
    let read = |value: Vec<u8>| serde_json::from_slice(&value).map_err(|_| SeriesStoreError::Unreadable);
    let known: Vec<(Uuid, Uuid, u64)> = value.map(read).transpose()?.unwrap_or_default();
    let entry = |(import, origin, counter): (Uuid, Uuid, u64)| {
        Some((import, OriginId::from_bytes(origin.into_bytes()), Counter::new(counter)?))
    };
    known.into_iter().map(entry).collect::<Option<_>>().ok_or(SeriesStoreError::Unreadable)
}

pub(crate) fn put_lacking(lacking: &[(Uuid, OriginId, Counter)]) -> Result<Change, SeriesStoreError> {
    let entry =
        |(import, origin, counter): &(Uuid, OriginId, Counter)| (*import, *origin.as_uuid(), counter.get());
    let known: Vec<(Uuid, Uuid, u64)> = lacking.iter().map(entry).collect();
    let value = if known.is_empty() { Ok(Vec::new()) } else { serde_json::to_vec(&known) };
    Ok(put("lacking".to_owned(), value.map_err(|_| SeriesStoreError::Unreadable)?))
}

/// Returns the greatest kind that the program knew which passed over changes last.
pub(crate) fn known_kinds(store: &Store) -> Result<u16, SeriesStoreError> {
    let value = get(store, "kinds")?.map(TryInto::try_into).transpose();
    Ok(value.map_err(|_| SeriesStoreError::Unreadable)?.map_or(0, u16::from_be_bytes))
}

pub(crate) fn put_known_kinds(kinds: u16) -> Change {
    put("kinds".to_owned(), kinds.to_be_bytes().to_vec())
}

impl StoredChange {
    fn encode(change: &SignedChange, place: &PayloadPlace) -> Vec<u8> {
        let mut value = Vec::new();
        match place {
            PayloadPlace::Absent => value.push(0),
            PayloadPlace::Inline => value.push(1),
            PayloadPlace::Evidence(salt, key) => {
                value.push(2);
                value.extend_from_slice(&[*salt, *key].concat());
            }
            PayloadPlace::Contribution(salt, key, place) => {
                value.push(3);
                value.extend_from_slice(&[*salt, *key].concat());
                // Text, numbers and lists of these: it can always be written.
                let place = serde_json::to_vec(place).unwrap_or_default();
                value.extend_from_slice(&u32::try_from(place.len()).unwrap_or(u32::MAX).to_be_bytes());
                value.extend_from_slice(&place);
            }
        }
        let change = if *place == PayloadPlace::Inline {
            change.encode()
        } else {
            change.clone().without_payload().encode()
        };
        value.extend_from_slice(&change);
        value
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let (tag, rest) = value.split_first()?;
        let (place, rest) = match tag {
            0 => (PayloadPlace::Absent, rest),
            1 => (PayloadPlace::Inline, rest),
            2 | 3 => {
                let (salt, rest) = rest.split_first_chunk()?;
                let (key, rest) = rest.split_first_chunk()?;
                if *tag == 2 {
                    (PayloadPlace::Evidence(*salt, *key), rest)
                } else {
                    let (length, rest) = rest.split_first_chunk::<4>()?;
                    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
                    let (place, rest) = rest.split_at_checked(length)?;
                    (PayloadPlace::Contribution(*salt, *key, serde_json::from_slice(place).ok()?), rest)
                }
            }
            _ => return None,
        };
        Some(Self { change: SignedChange::decode(rest).ok()?, place })
    }
}

/// The bytes of a stored head.
const HEAD_BYTES: usize = 40;

fn write_head(head: Head) -> [u8; HEAD_BYTES] {
    let mut bytes = [0; HEAD_BYTES];
    bytes[..8].copy_from_slice(&head.counter.get().to_be_bytes());
    bytes[8..].copy_from_slice(head.hash.as_bytes());
    bytes
}

fn read_head(bytes: &[u8]) -> Option<Head> {
    let (counter, hash) = bytes.split_first_chunk::<8>()?;
    let counter = Counter::new(u64::from_be_bytes(*counter))?;
    Some(Head { counter, hash: satchel_sync::ChangeHash::from_bytes(hash.try_into().ok()?) })
}

pub(crate) fn change_id(origin: OriginId, counter: Counter) -> String {
    format!("{CHANGE}{origin} {}", counter.get())
}

fn remainder_id(key: EvidenceKey) -> String {
    format!("remainder {:032x}", u128::from_be_bytes(key))
}

fn item_id(key: EvidenceKey) -> String {
    format!("item {:032x}", u128::from_be_bytes(key))
}

/// The files of attachments that a store lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MissingFiles {
    /// The conversations were read up to this revision.
    pub(crate) read_to: Revision,
    pub(crate) digests: BTreeSet<Sha256Digest>,
}

/// Returns which files the store lacks; `None` before this was looked for.
pub(crate) fn missing_files(store: &Store) -> Result<Option<MissingFiles>, SeriesStoreError> {
    let Some(value) = get(store, "files")? else { return Ok(None) };
    let (read_to, digests) = value.split_first_chunk::<8>().ok_or(SeriesStoreError::Unreadable)?;
    let (digests, rest) = digests.as_chunks::<32>();
    if !rest.is_empty() {
        return Err(SeriesStoreError::Unreadable);
    }
    let digests = digests.iter().copied().map(Sha256Digest::from_bytes).collect();
    Ok(Some(MissingFiles { read_to: Revision::new(u64::from_be_bytes(*read_to)), digests }))
}

pub(crate) fn put_missing_files(missing: &MissingFiles) -> Change {
    let mut value = missing.read_to.get().to_be_bytes().to_vec();
    value.extend(missing.digests.iter().flat_map(|digest| *digest.as_bytes()));
    put("files".to_owned(), value)
}

pub(super) fn get(store: &Store, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let entry = store.ledger_get(Ledger::Sync, id)?;
    Ok(entry.map(|entry| entry.value).filter(|value| !value.is_empty()))
}

pub(super) fn put(id: String, value: Vec<u8>) -> Change {
    Change::Ledger(LedgerWrite::Entry { ledger: Ledger::Sync, id, at_micros: 0, value })
}
