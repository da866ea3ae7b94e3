//! A change with everything that the journal writes and the engine indexes.

mod model;

use satchel_pam::hash::ContentHash;
use sha2::{Digest, Sha256};

use crate::{
    change::EvidenceWrite,
    codec::{ByteReader, Malformed, Put},
    ledger::LedgerWrite,
    report::StateDigest,
};

pub(crate) use model::{
    conversation_digest, conversation_header, embedding, embedding_withdrawn, facets, json, memory,
    memory_entry, relation, summary,
};

/// A change whose message bodies already have a place in the journal.
#[derive(Clone, Debug)]
pub(crate) enum JournalEntry {
    Memory(MemoryEntry),
    Conversation(ConversationEntry),
    Relation(RelationEntry),
    Withdraw(RelationEntry),
    Embedding(EmbeddingEntry),
    Evidence(EvidenceWrite),
    Ledger(LedgerWrite),
}

#[derive(Clone, Debug)]
pub(crate) struct MemoryEntry {
    pub(crate) id: String,
    pub(crate) withdrawn: bool,
    pub(crate) facets: Facets,
    pub(crate) json: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(crate) struct ConversationEntry {
    pub(crate) withdrawn: bool,
    pub(crate) summary: Summary,
    pub(crate) header: Vec<u8>,
    pub(crate) current: Option<String>,
    pub(crate) opaque: Vec<u8>,
    pub(crate) parts: Vec<Vec<u8>>,
    /// Digest of the header and the heads, without import metadata and places. It is the same in every store that holds the
    /// conversation.
    pub(crate) digest: [u8; 32],
}

#[derive(Clone, Debug)]
pub(crate) struct RelationEntry {
    pub(crate) id: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) json: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(crate) struct EmbeddingEntry {
    pub(crate) withdrawn: bool,
    pub(crate) memory: String,
    pub(crate) model: String,
    pub(crate) json: Vec<u8>,
}

/// The fields that lists filter memories by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facets {
    pub(crate) memory_type: String,
    pub(crate) status: String,
    pub(crate) platform: String,
    pub(crate) account: Option<String>,
    pub(crate) created: i64,
    pub(crate) updated: i64,
    pub(crate) tags: Vec<String>,
    pub(crate) conversation: Option<String>,
    pub(crate) content_hash: ContentHash,
}

/// A row of the list of conversations, without the revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) platform: String,
    pub(crate) account: Option<String>,
    pub(crate) created: i64,
    pub(crate) updated: i64,
    pub(crate) messages: u32,
    pub(crate) archived: bool,
    pub(crate) tags: Vec<String>,
}

impl Facets {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let Self {
            memory_type,
            status,
            platform,
            account,
            created,
            updated,
            tags,
            conversation,
            content_hash,
        } = self;
        out.put_bytes(memory_type.as_bytes());
        out.put_bytes(status.as_bytes());
        out.put_bytes(platform.as_bytes());
        put_option(out, account.as_deref());
        out.put_signed(*created);
        out.put_signed(*updated);
        put_texts(out, tags);
        out.put_u8(u8::from(conversation.is_some()));
        if let Some(conversation) = conversation {
            out.put_id(conversation);
        }
        out.extend_from_slice(content_hash.as_bytes());
    }

    pub(crate) fn take(take: &mut ByteReader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            memory_type: take.text()?.to_owned(),
            status: take.text()?.to_owned(),
            platform: take.text()?.to_owned(),
            account: take_option(take)?,
            created: take.signed()?,
            updated: take.signed()?,
            tags: take_texts(take)?,
            conversation: if take.u8()? == 0 { None } else { Some(take.id()?) },
            content_hash: ContentHash::from_bytes(take.array()?),
        })
    }
}

impl Summary {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let Self { id, title, platform, account, created, updated, messages, archived, tags } = self;
        out.put_id(id);
        put_option(out, title.as_deref());
        out.put_bytes(platform.as_bytes());
        put_option(out, account.as_deref());
        out.put_signed(*created);
        out.put_signed(*updated);
        out.put_varint(u64::from(*messages));
        out.put_u8(u8::from(*archived));
        put_texts(out, tags);
    }

    pub(crate) fn take(take: &mut ByteReader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            id: take.id()?,
            title: take_option(take)?,
            platform: take.text()?.to_owned(),
            account: take_option(take)?,
            created: take.signed()?,
            updated: take.signed()?,
            messages: take.varint32()?,
            archived: take.u8()? != 0,
            tags: take_texts(take)?,
        })
    }
}

/// Returns the share of one record in the state digest.
pub(crate) fn content_digest(kind: u8, id: &[u8], pieces: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update([kind]);
    for piece in [id].iter().chain(pieces) {
        hasher.update((piece.len() as u64).to_be_bytes());
        hasher.update(piece);
    }
    hasher.finalize().into()
}

impl StateDigest {
    pub(crate) fn add(&mut self, share: &[u8; 32]) {
        self.combine(share, false);
    }

    pub(crate) fn remove(&mut self, share: &[u8; 32]) {
        self.combine(share, true);
    }

    /// Adds or subtracts modulo 2^256, with the least significant word last.
    fn combine(&mut self, share: &[u8; 32], subtract: bool) {
        let mut carry = false;
        for (word, bytes) in self.0.iter_mut().rev().zip(share.as_chunks::<8>().0.iter().rev()) {
            let other = u64::from_be_bytes(*bytes);
            let (first, a) = if subtract { word.overflowing_sub(other) } else { word.overflowing_add(other) };
            let (second, b) = if subtract {
                first.overflowing_sub(carry.into())
            } else {
                first.overflowing_add(carry.into())
            };
            *word = second;
            carry = a || b;
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *chunk = word.to_be_bytes();
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Self {
        let mut digest = Self::default();
        digest.add(bytes);
        digest
    }
}

pub(crate) fn put_option(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        None => out.put_u8(0),
        Some(text) => {
            out.put_u8(1);
            out.put_bytes(text.as_bytes());
        }
    }
}

pub(crate) fn take_option(take: &mut ByteReader<'_>) -> Result<Option<String>, Malformed> {
    match take.u8()? {
        0 => Ok(None),
        1 => Ok(Some(take.text()?.to_owned())),
        _ => Err(Malformed("has an option that is neither there nor not")),
    }
}

fn put_texts(out: &mut Vec<u8>, texts: &[String]) {
    out.put_varint(texts.len() as u64);
    for text in texts {
        out.put_bytes(text.as_bytes());
    }
}

fn take_texts(take: &mut ByteReader<'_>) -> Result<Vec<String>, Malformed> {
    let count = take.size()?;
    // No `with_capacity`: the count is not trusted beyond the bytes that are there.
    let mut texts = Vec::new();
    for _ in 0..count {
        texts.push(take.text()?.to_owned());
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digests_are_order_independent_and_reversible(mut shares in prop::collection::vec(any::<[u8; 32]>(), 1..8)) {
            let sum = |shares: &[[u8; 32]]| {
                let mut digest = StateDigest::default();
                for share in shares {
                    digest.add(share);
                }
                digest
            };
            let forward = sum(&shares);
            prop_assert_eq!(StateDigest::from_bytes(&forward.to_bytes()), forward);
            shares.reverse();
            let mut backward = sum(&shares);
            prop_assert_eq!(forward, backward);
            if let Some(last) = shares.pop() {
                backward.remove(&last);
            }
            prop_assert_eq!(backward, sum(&shares));
        }
    }

    #[test]
    fn a_carry_propagates_through_all_words() {
        let mut digest = StateDigest([u64::MAX; 4]);
        let mut one = [0; 32];
        one[31] = 1;
        digest.add(&one);
        assert_eq!(digest, StateDigest::default());
        digest.remove(&one);
        assert_eq!(digest, StateDigest([u64::MAX; 4]));
    }
}
