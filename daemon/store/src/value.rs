//! Engine values: the envelope around each value, and the records inside.

use std::collections::BTreeMap;

use crate::{
    change::Origin,
    codec::{ByteReader, Malformed, Put, batch},
    entry::{Facets, Summary},
    error::StoreError,
    journal::{ChangeLocation, Position},
    report::StateDigest,
};

/// Version of keys and values. If the database has another one, it is rebuilt.
pub(crate) const SCHEMA: u16 = 4;
/// Maximum length of a text that is stored in a value. Longer ones are read from the journal, so that values stay under 64 KiB.
pub(crate) const INLINE: usize = 32 << 10;
pub(crate) const ENVELOPE: u8 = 1;

/// The first bytes of a plain value: version 1, key id 0.
pub(crate) const PLAIN: [u8; 3] = [ENVELOPE, 0, 0];

/// Begins a plain value.
pub(crate) fn plain() -> Vec<u8> {
    PLAIN.to_vec()
}

/// Opens the envelope.
pub(crate) fn open<'a>(value: &'a [u8], what: &dyn Fn() -> String) -> Result<ByteReader<'a>, StoreError> {
    let mut take = ByteReader(value);
    let mut head = || Ok::<_, Malformed>((take.u8()?, take.u16()?));
    match head() {
        Ok((ENVELOPE, 0)) => Ok(take),
        Ok((ENVELOPE, key)) => Err(StoreError::Sealed { place: what(), key }),
        Ok(_) | Err(_) => {
            Err(StoreError::BadValue { what: what(), problem: "it has an unknown envelope".to_owned() })
        }
    }
}

/// Opens a value and decodes it.
pub(crate) fn decode<T>(
    value: &[u8],
    what: &str,
    take: impl FnOnce(ByteReader<'_>) -> Result<T, Malformed>,
) -> Result<T, StoreError> {
    take(open(value, &|| what.to_owned())?)
        .map_err(|error| StoreError::BadValue { what: what.to_owned(), problem: error.to_string() })
}

/// The fields that every record has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordMeta {
    pub(crate) created: u64,
    pub(crate) revision: u64,
    /// Revision of the previous version; 0 if there was none.
    pub(crate) previous: u64,
    pub(crate) version: u32,
    /// Revision of the oldest version that is still in lists.
    pub(crate) listed: u64,
    pub(crate) place: ChangeLocation,
    pub(crate) origin: Origin,
    /// The record's share in the state digest.
    pub(crate) share: [u8; 32],
}

impl RecordMeta {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let Self { created, revision, previous, version, listed, place, origin, share } = self;
        out.put_varint(*created);
        out.put_varint(*revision);
        out.put_varint(*previous);
        out.put_varint(u64::from(*version));
        out.put_varint(*listed);
        put_place(out, *place);
        batch::put_origin(out, origin);
        out.extend_from_slice(share);
    }

    pub(crate) fn take(take: &mut ByteReader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            created: take.varint()?,
            revision: take.varint()?,
            previous: take.varint()?,
            version: take.varint32()?,
            listed: take.varint()?,
            place: take_place(take)?,
            origin: batch::take_origin(take)?,
            share: take.array()?,
        })
    }
}

/// The value of `20`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryValue {
    pub(crate) id: String,
    pub(crate) withdrawn: bool,
    pub(crate) stored: RecordMeta,
    pub(crate) facets: Facets,
    /// `None`: in the journal.
    pub(crate) json: Option<Vec<u8>>,
}

impl MemoryValue {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = plain();
        out.put_id(&self.id);
        out.put_u8(u8::from(self.withdrawn));
        self.stored.put(&mut out);
        self.facets.put(&mut out);
        put_inline(&mut out, self.json.as_deref());
        out
    }

    pub(crate) fn take(mut take: ByteReader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            id: take.id()?,
            withdrawn: take.u8()? != 0,
            stored: RecordMeta::take(&mut take)?,
            facets: Facets::take(&mut take)?,
            json: take_inline(take)?,
        })
    }
}

/// The value of `10`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConversationValue {
    pub(crate) withdrawn: bool,
    pub(crate) stored: RecordMeta,
    pub(crate) summary: Summary,
    pub(crate) current: Option<String>,
    pub(crate) opaque: Vec<u8>,
    pub(crate) parts: u16,
    /// `None`: in the journal.
    pub(crate) header: Option<Vec<u8>>,
}

impl ConversationValue {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = plain();
        out.put_u8(u8::from(self.withdrawn));
        self.stored.put(&mut out);
        self.summary.put(&mut out);
        out.put_u8(u8::from(self.current.is_some()));
        if let Some(current) = &self.current {
            out.put_id(current);
        }
        out.put_bytes(&self.opaque);
        out.put_u16(self.parts);
        put_inline(&mut out, self.header.as_deref());
        out
    }

    pub(crate) fn take(mut take: ByteReader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            withdrawn: take.u8()? != 0,
            stored: RecordMeta::take(&mut take)?,
            summary: Summary::take(&mut take)?,
            current: if take.u8()? == 0 { None } else { Some(take.id()?) },
            opaque: take.bytes()?.to_vec(),
            parts: take.u16()?,
            header: take_inline(take)?,
        })
    }
}

/// The value of `30`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelationValue {
    pub(crate) stored: RecordMeta,
    pub(crate) withdrawn: bool,
    pub(crate) json: Option<Vec<u8>>,
    pub(crate) id: String,
}

impl RelationValue {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = plain();
        out.put_id(&self.id);
        self.stored.put(&mut out);
        out.put_u8(u8::from(self.withdrawn));
        put_inline(&mut out, self.json.as_deref());
        out
    }

    pub(crate) fn take(mut take: ByteReader<'_>) -> Result<Self, Malformed> {
        let id = take.id()?;
        Ok(Self {
            stored: RecordMeta::take(&mut take)?,
            withdrawn: take.u8()? != 0,
            json: take_inline(take)?,
            id,
        })
    }
}

/// The value of `23`, and of `21`, whose key contains the memory and the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlainValue {
    pub(crate) stored: RecordMeta,
    pub(crate) bytes: Option<Vec<u8>>,
}

impl PlainValue {
    /// For an embedding, returns whether it is hidden. The bytes of one that is shown are in the journal.
    pub(crate) fn withdrawn_embedding(&self) -> bool {
        self.bytes.is_some()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = plain();
        self.stored.put(&mut out);
        put_inline(&mut out, self.bytes.as_deref());
        out
    }

    pub(crate) fn take(mut take: ByteReader<'_>) -> Result<Self, Malformed> {
        Ok(Self { stored: RecordMeta::take(&mut take)?, bytes: take_inline(take)? })
    }
}

/// The value of `60`, `62` and `63`. Issues have neither id nor time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LedgerValue {
    pub(crate) id: String,
    pub(crate) at: i64,
    pub(crate) place: ChangeLocation,
    pub(crate) bytes: Option<Vec<u8>>,
}

impl LedgerValue {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = plain();
        out.put_id(&self.id);
        out.put_signed(self.at);
        put_place(&mut out, self.place);
        put_inline(&mut out, self.bytes.as_deref());
        out
    }

    pub(crate) fn take(mut take: ByteReader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            id: take.id()?,
            at: take.signed()?,
            place: take_place(&mut take)?,
            bytes: take_inline(take)?,
        })
    }
}

/// The value of `12`, `22` and `33`: an older version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OldVersion {
    pub(crate) version: u32,
    pub(crate) place: ChangeLocation,
    /// The time of the commit that replaced it; microseconds since the Unix epoch.
    pub(crate) ended_at: i64,
    /// The keys of its list entries; empty once they are dropped.
    pub(crate) entries: Vec<Vec<u8>>,
}

impl OldVersion {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self { version, place, ended_at, entries } = self;
        let mut out = plain();
        out.put_varint(u64::from(*version));
        put_place(&mut out, *place);
        out.put_signed(*ended_at);
        entries.iter().for_each(|entry| out.put_bytes(entry));
        out
    }

    pub(crate) fn take(mut take: ByteReader<'_>) -> Result<Self, Malformed> {
        let (version, place, ended_at) = (take.varint32()?, take_place(&mut take)?, take.signed()?);
        let mut entries = Vec::new();
        while !take.0.is_empty() {
            entries.push(take.bytes()?.to_vec());
        }
        Ok(Self { version, place, ended_at, entries })
    }
}

/// Encodes a value of `40`: an entry of a list. If `end` is 0, the entry is still valid.
pub(crate) fn list_entry(end: u64, content: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = plain();
    out.put_u64(end);
    content(&mut out);
    out
}

/// The value of `01 61`: how far the engine has applied the journal, and sums over its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EngineMeta {
    pub(crate) store_id: [u8; 16],
    /// The last whole commit.
    pub(crate) revision: u64,
    /// The position up to which the journal is applied without a gap.
    pub(crate) position: Position,
    /// The revision at that position. It is behind `revision` only while the journal is damaged.
    pub(crate) position_revision: u64,
    pub(crate) digest: StateDigest,
    pub(crate) counters: BTreeMap<(u8, String), u64>,
}

/// The kinds of counters in `EngineMeta::counters`; the text of a counter is the type, status or platform.
pub(crate) mod counter {
    pub(crate) const MEMORIES: u8 = 1;
    pub(crate) const MEMORY_TYPE: u8 = 2;
    pub(crate) const MEMORY_STATUS: u8 = 3;
    pub(crate) const MEMORY_PLATFORM: u8 = 4;
    pub(crate) const CONVERSATIONS: u8 = 5;
    pub(crate) const CONVERSATION_PLATFORM: u8 = 6;
    pub(crate) const MESSAGES: u8 = 7;
    pub(crate) const RELATIONS: u8 = 8;
    pub(crate) const EMBEDDINGS: u8 = 9;
    pub(crate) const EVIDENCE: u8 = 10;
}

/// Maximum number of counters. A hostile bundle could name one platform per memory, and the meta record is written often.
const MAX_COUNTERS: usize = 500;

impl EngineMeta {
    /// Adds `amount` to a counter, or subtracts it if `removed`. Names beyond the limit are counted under the empty name.
    pub(crate) fn count(&mut self, kind: u8, name: &str, amount: u64, removed: bool) {
        let known = self.counters.contains_key(&(kind, name.to_owned()));
        let full = self.counters.len() >= MAX_COUNTERS || name.len() > 64;
        let name = if known || !full { name } else { "" };
        let counter = self.counters.entry((kind, name.to_owned())).or_default();
        *counter = if removed { counter.saturating_sub(amount) } else { counter.saturating_add(amount) };
        if *counter == 0 {
            self.counters.remove(&(kind, name.to_owned()));
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = plain();
        out.put_u16(SCHEMA);
        out.extend_from_slice(&self.store_id);
        out.put_u64(self.revision);
        out.put_u32(self.position.segment);
        out.put_u64(self.position.offset);
        out.extend_from_slice(&self.position.chain);
        out.put_u64(self.position_revision);
        out.extend_from_slice(&self.digest.to_bytes());
        out.put_varint(self.counters.len() as u64);
        for ((kind, name), count) in &self.counters {
            out.put_u8(*kind);
            out.put_bytes(name.as_bytes());
            out.put_varint(*count);
        }
        out
    }

    pub(crate) fn take(mut take: ByteReader<'_>) -> Result<Self, Malformed> {
        if take.u16()? != SCHEMA {
            return Err(Malformed("it has another schema"));
        }
        let mut meta = Self {
            store_id: take.array()?,
            revision: take.u64()?,
            position: Position { segment: take.u32()?, offset: take.u64()?, chain: take.array()? },
            position_revision: take.u64()?,
            digest: StateDigest::from_bytes(&take.array()?),
            counters: BTreeMap::new(),
        };
        for _ in 0..take.size()? {
            let kind = take.u8()?;
            let name = take.text()?.to_owned();
            meta.counters.insert((kind, name), take.varint()?);
        }
        Ok(meta)
    }
}

fn put_place(out: &mut Vec<u8>, place: ChangeLocation) {
    out.put_varint(u64::from(place.segment));
    out.put_varint(place.offset);
    out.put_varint(u64::from(place.change));
}

fn take_place(take: &mut ByteReader<'_>) -> Result<ChangeLocation, Malformed> {
    Ok(ChangeLocation { segment: take.varint32()?, offset: take.varint()?, change: take.varint32()? })
}

/// Returns bytes that are short enough to be stored in a value.
pub(crate) fn inline(bytes: Vec<u8>) -> Option<Vec<u8>> {
    (bytes.len() <= INLINE).then_some(bytes)
}

fn put_inline(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => out.put_u8(0),
        Some(bytes) => {
            out.put_u8(1);
            out.extend_from_slice(bytes);
        }
    }
}

/// Takes all remaining bytes.
fn take_inline(mut take: ByteReader<'_>) -> Result<Option<Vec<u8>>, Malformed> {
    match take.u8()? {
        0 => take.end().map(|()| None),
        1 => Ok(Some(take.0.to_vec())),
        _ => Err(Malformed("has a text that is neither here nor in the journal")),
    }
}
