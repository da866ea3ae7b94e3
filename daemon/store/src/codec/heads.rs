//! Message heads: the tree of a conversation in about 50 bytes per message.

use std::collections::HashMap;

use satchel_pam::conversation::Role;
use sha2::{Digest, Sha256};

use super::{ByteReader, Malformed, Put};
use crate::{change::MessageHead, record::BodyPlace};

/// A part is closed once it has reached this many bytes, so that an engine value stays under 64 KiB.
pub(crate) const PART: usize = 48 << 10;

const HIDDEN: u8 = 1 << 2;
const THOUGHT: u8 = 1 << 3;
const SAME_FRAME: u8 = 1 << 4;
const PARENT_BACK: u8 = 1 << 5;
const PARENT_ID: u8 = 1 << 6;
const OPAQUE: u8 = 1 << 7;

/// Writes the heads of one conversation in order and hashes their content. The opaque bytes are not hashed.
pub(crate) struct HeadWriter<'a> {
    parts: Vec<Vec<u8>>,
    run: DeltaState,
    written: Vec<&'a str>,
    /// Built only when a parent is not the message before it, because most conversations are chains.
    positions: HashMap<&'a str, usize>,
    indexed: usize,
    hasher: Sha256,
    scratch: Vec<u8>,
}

#[derive(Default)]
struct DeltaState {
    time: i64,
    segment: u32,
    offset: u64,
}

impl<'a> HeadWriter<'a> {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            parts: Vec::new(),
            run: DeltaState::default(),
            written: Vec::with_capacity(count),
            positions: HashMap::new(),
            indexed: 0,
            hasher: Sha256::new(),
            scratch: Vec::with_capacity(128),
        }
    }

    pub(crate) fn push(&mut self, head: &'a MessageHead, place: BodyPlace) {
        self.hash(head);
        if self.parts.last().is_none_or(|part| part.len() >= PART) {
            self.parts.push(Vec::with_capacity(256));
            self.run = DeltaState::default();
        }
        let back = head.parent.as_deref().and_then(|parent| self.distance(parent));
        self.written.push(&head.id);
        let Some(part) = self.parts.last_mut() else { return };
        let same = place.segment == self.run.segment && place.offset == self.run.offset;
        let parent = match (&head.parent, back) {
            (None, _) => 0,
            (Some(_), Some(_)) => PARENT_BACK,
            (Some(_), None) => PARENT_ID,
        };
        let opaque = if head.opaque.is_empty() { 0 } else { OPAQUE };
        part.put_u8(plain_flags(head) | parent | opaque | if same { SAME_FRAME } else { 0 });
        part.put_id(&head.id);
        match (&head.parent, back) {
            (None, _) => {}
            (Some(_), Some(distance)) => part.put_varint(distance as u64),
            (Some(parent), None) => part.put_id(parent),
        }
        part.put_signed(head.created_at_micros.wrapping_sub(self.run.time));
        part.extend_from_slice(&head.digest);
        if !same {
            part.put_varint(u64::from(place.segment));
            part.put_varint(place.offset);
        }
        part.put_varint(u64::from(place.start));
        part.put_varint(u64::from(place.length));
        if opaque != 0 {
            part.put_bytes(&head.opaque);
        }
        self.run = DeltaState { time: head.created_at_micros, segment: place.segment, offset: place.offset };
    }

    /// Returns the parts, and the digest of all heads without their places.
    pub(crate) fn finish(self) -> (Vec<Vec<u8>>, [u8; 32]) {
        (self.parts, self.hasher.finalize().into())
    }

    fn distance(&mut self, parent: &str) -> Option<usize> {
        let count = self.written.len();
        if self.written.last().is_some_and(|last| *last == parent) {
            return Some(1);
        }
        for (position, id) in self.written.iter().enumerate().skip(self.indexed) {
            self.positions.insert(id, position);
        }
        self.indexed = count;
        self.positions.get(parent).map(|position| count - position)
    }

    fn hash(&mut self, head: &MessageHead) {
        self.scratch.clear();
        self.scratch.put_u8(plain_flags(head) | if head.parent.is_some() { PARENT_ID } else { 0 });
        self.scratch.put_id(&head.id);
        if let Some(parent) = &head.parent {
            self.scratch.put_id(parent);
        }
        self.scratch.put_u64(head.created_at_micros.cast_unsigned());
        self.scratch.extend_from_slice(&head.digest);
        self.hasher.update(&self.scratch);
    }
}

/// Returns the same digest as [`HeadWriter::finish`].
pub(crate) fn digest(heads: &[MessageHead]) -> [u8; 32] {
    let mut writer = HeadWriter::new(0);
    for head in heads {
        writer.hash(head);
    }
    writer.hasher.finalize().into()
}

/// Reads one part, which follows those that `heads` and `places` already contain.
pub(crate) fn read_part(
    part: &[u8],
    heads: &mut Vec<MessageHead>,
    places: &mut Vec<BodyPlace>,
) -> Result<(), Malformed> {
    let mut take = ByteReader(part);
    let mut run = DeltaState::default();
    while !take.0.is_empty() {
        let flags = take.u8()?;
        let id = take.id()?;
        let parent = if flags & PARENT_BACK != 0 {
            let distance = take.size()?;
            let position = heads
                .len()
                .checked_sub(distance)
                .ok_or(Malformed("has a parent before its first message"))?;
            Some(heads.get(position).ok_or(Malformed("has a message that is its own parent"))?.id.clone())
        } else if flags & PARENT_ID != 0 {
            Some(take.id()?)
        } else {
            None
        };
        run.time = run.time.wrapping_add(take.signed()?);
        let digest = take.array()?;
        if flags & SAME_FRAME == 0 {
            run.segment = take.varint32()?;
            run.offset = take.varint()?;
        }
        let (start, length) = (take.varint32()?, take.varint32()?);
        let opaque = if flags & OPAQUE == 0 { Vec::new() } else { take.bytes()?.to_vec() };
        places.push(BodyPlace { segment: run.segment, offset: run.offset, start, length });
        heads.push(MessageHead {
            id,
            parent,
            role: role(flags),
            created_at_micros: run.time,
            hidden: flags & HIDDEN != 0,
            thought: flags & THOUGHT != 0,
            digest,
            opaque,
        });
    }
    Ok(())
}

fn plain_flags(head: &MessageHead) -> u8 {
    let role = match head.role {
        Role::User => 0,
        Role::Assistant => 1,
        Role::System => 2,
        Role::Tool => 3,
    };
    role | if head.hidden { HIDDEN } else { 0 } | if head.thought { THOUGHT } else { 0 }
}

fn role(flags: u8) -> Role {
    match flags & 3 {
        0 => Role::User,
        1 => Role::Assistant,
        2 => Role::System,
        _ => Role::Tool,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heads() -> impl Strategy<Value = Vec<(MessageHead, BodyPlace)>> {
        let one = (
            any::<u128>(),
            any::<bool>(),
            any::<prop::sample::Index>(),
            0_u8..4,
            any::<i64>(),
            any::<[u8; 16]>(),
            0_u32..3,
            any::<u32>(),
        );
        prop::collection::vec(one, 0..60).prop_map(|rows| {
            let ids: Vec<String> = rows
                .iter()
                .enumerate()
                .map(
                    |(n, row)| {
                        if row.1 { uuid::Uuid::from_u128(row.0).to_string() } else { format!("node-{n}") }
                    },
                )
                .collect();
            rows.iter()
                .enumerate()
                .map(|(n, row)| {
                    let head = MessageHead {
                        id: ids[n].clone(),
                        // Any message may be the parent, including a later one or one that does not exist.
                        parent: match row.3 {
                            0 => None,
                            1 => n.checked_sub(1).map(|before| ids[before].clone()),
                            2 => Some(row.2.get(&ids).clone()),
                            _ => Some("elsewhere".to_owned()),
                        },
                        role: role(row.3),
                        created_at_micros: row.4,
                        hidden: row.1,
                        thought: row.7 & 1 == 0,
                        digest: row.5,
                        opaque: row.5[..usize::from(row.3)].to_vec(),
                    };
                    (
                        head,
                        BodyPlace {
                            segment: row.6,
                            offset: u64::from(row.6) * 77,
                            start: row.7,
                            length: row.7 / 2,
                        },
                    )
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn heads_round_trip_and_their_digest_excludes_places(rows in heads()) {
            let mut writer = HeadWriter::new(rows.len());
            for (head, place) in &rows {
                writer.push(head, *place);
            }
            let (parts, written) = writer.finish();
            let (mut heads, mut places) = (Vec::new(), Vec::new());
            for part in &parts {
                read_part(part, &mut heads, &mut places).unwrap();
            }
            prop_assert_eq!(digest(&heads), written);
            prop_assert_eq!(heads.into_iter().zip(places).collect::<Vec<_>>(), rows);
        }

        #[test]
        fn arbitrary_parts_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let (mut heads, mut places) = (Vec::new(), Vec::new());
            let done = read_part(&bytes, &mut heads, &mut places);
            prop_assert!(heads.len() <= bytes.len());
            prop_assert!(done.is_ok() || !bytes.is_empty());
        }
    }
}
