//! The payload of batch and note frames.

use uuid::Uuid;

use super::{ByteReader, Malformed, Put, heads};
use crate::{
    change::{EvidenceWrite, Origin},
    entry::{self, ConversationEntry, JournalEntry},
    ledger::{Ledger, LedgerWrite},
    record::BodyPlace,
};

const MEMORY: u8 = 1;
const CONVERSATION: u8 = 2;
const RELATION: u8 = 3;
const WITHDRAW: u8 = 4;
const EMBEDDING: u8 = 5;
const EVIDENCE: u8 = 6;
const LEDGER: u8 = 7;
const ISSUES: u8 = 8;
const WITHDRAW_MEMORY: u8 = 9;
const WITHDRAW_CONVERSATION: u8 = 10;
const PIECE: u8 = 11;
const WITHDRAW_EMBEDDING: u8 = 12;

/// Writes the payload of one commit.
pub(crate) fn encode(origin: &Origin, entries: &[JournalEntry], out: &mut Vec<u8>) -> Result<(), Malformed> {
    put_origin(out, origin);
    out.put_varint(entries.len() as u64);
    for entry in entries {
        out.put_u8(tag(entry));
        let at = out.len();
        out.put_u32(0);
        put_content(out, entry);
        let length = u32::try_from(out.len() - at - 4).map_err(|_| Malformed("has a change over 4 GiB"))?;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Reads the payload of one commit.
pub(crate) fn decode(payload: &[u8]) -> Result<(Origin, Vec<JournalEntry>), Malformed> {
    let mut reader = ChangeReader::new(payload)?;
    let mut entries = Vec::new();
    while let Some((tag, content)) = reader.next()? {
        entries.push(take_content(tag, content)?);
    }
    Ok((reader.origin, entries))
}

/// Reads one change of a commit.
pub(crate) fn decode_one(payload: &[u8], change: u32) -> Result<(Origin, JournalEntry), Malformed> {
    let mut reader = ChangeReader::new(payload)?;
    let mut number = 0;
    while let Some((tag, content)) = reader.next()? {
        if number == change {
            return Ok((reader.origin, take_content(tag, content)?));
        }
        number += 1;
    }
    Err(Malformed("has fewer changes than a record says"))
}

/// Returns the places of all bodies that a commit refers to.
pub(crate) fn places(payload: &[u8]) -> Result<Vec<BodyPlace>, Malformed> {
    let mut reader = ChangeReader::new(payload)?;
    let mut all = Vec::new();
    while let Some((tag, content)) = reader.next()? {
        if matches!(tag, CONVERSATION | WITHDRAW_CONVERSATION) {
            let (_, _, _, parts) = take_conversation(content)?;
            let mut heads = Vec::new();
            for part in parts {
                heads::read_part(part, &mut heads, &mut all)?;
            }
        }
    }
    Ok(all)
}

pub(crate) fn put_origin(out: &mut Vec<u8>, origin: &Origin) {
    out.put_u8(u8::from(origin.import.is_some()));
    if let Some(import) = origin.import {
        out.extend_from_slice(import.as_bytes());
    }
    out.put_bytes(origin.actor.as_bytes());
    out.put_bytes(origin.reason.as_bytes());
    out.put_signed(origin.at_micros);
}

pub(crate) fn take_origin(take: &mut ByteReader<'_>) -> Result<Origin, Malformed> {
    let import = match take.u8()? {
        0 => None,
        1 => Some(Uuid::from_bytes(take.array()?)),
        _ => return Err(Malformed("has an origin with unknown flags")),
    };
    Ok(Origin {
        import,
        actor: take.text()?.to_owned(),
        reason: take.text()?.to_owned(),
        at_micros: take.signed()?,
    })
}

struct ChangeReader<'a> {
    origin: Origin,
    left: usize,
    take: ByteReader<'a>,
}

impl<'a> ChangeReader<'a> {
    fn new(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut take = ByteReader(payload);
        Ok(Self { origin: take_origin(&mut take)?, left: take.size()?, take })
    }

    fn next(&mut self) -> Result<Option<(u8, &'a [u8])>, Malformed> {
        if self.left == 0 {
            self.take.end()?;
            return Ok(None);
        }
        self.left -= 1;
        let tag = self.take.u8()?;
        let length = self.take.u32()? as usize;
        Ok(Some((tag, self.take.raw(length)?)))
    }
}

fn tag(entry: &JournalEntry) -> u8 {
    match entry {
        JournalEntry::Memory(memory) if memory.withdrawn => WITHDRAW_MEMORY,
        JournalEntry::Memory(_) => MEMORY,
        JournalEntry::Conversation(conversation) if conversation.withdrawn => WITHDRAW_CONVERSATION,
        JournalEntry::Conversation(_) => CONVERSATION,
        JournalEntry::Relation(_) => RELATION,
        JournalEntry::Withdraw(_) => WITHDRAW,
        JournalEntry::Embedding(embedding) if embedding.withdrawn => WITHDRAW_EMBEDDING,
        JournalEntry::Embedding(_) => EMBEDDING,
        JournalEntry::Evidence(_) => EVIDENCE,
        JournalEntry::Ledger(LedgerWrite::Entry { .. }) => LEDGER,
        JournalEntry::Ledger(LedgerWrite::Issues { .. }) => ISSUES,
        JournalEntry::Ledger(LedgerWrite::Piece { .. }) => PIECE,
    }
}

fn put_content(out: &mut Vec<u8>, entry: &JournalEntry) {
    match entry {
        JournalEntry::Memory(memory) => out.extend_from_slice(&memory.json),
        JournalEntry::Conversation(conversation) => put_conversation(out, conversation),
        JournalEntry::Relation(relation) | JournalEntry::Withdraw(relation) => {
            out.extend_from_slice(&relation.json);
        }
        JournalEntry::Embedding(embedding) => out.extend_from_slice(&embedding.json),
        JournalEntry::Evidence(evidence) => {
            out.extend_from_slice(&evidence.id);
            out.extend_from_slice(&evidence.json);
        }
        JournalEntry::Ledger(LedgerWrite::Entry { ledger, id, at_micros, value }) => {
            out.put_u8(ledger.code());
            out.put_signed(*at_micros);
            out.put_bytes(id.as_bytes());
            out.extend_from_slice(value);
        }
        JournalEntry::Ledger(LedgerWrite::Issues { import, page, value }) => {
            out.extend_from_slice(import.as_bytes());
            out.put_u32(*page);
            out.extend_from_slice(value);
        }
        JournalEntry::Ledger(LedgerWrite::Piece { digest, value }) => {
            out.extend_from_slice(digest);
            out.extend_from_slice(value);
        }
    }
}

fn take_content(tag: u8, content: &[u8]) -> Result<JournalEntry, Malformed> {
    let mut take = ByteReader(content);
    Ok(match tag {
        MEMORY | WITHDRAW_MEMORY => JournalEntry::Memory(entry::memory(content, tag == WITHDRAW_MEMORY)?),
        CONVERSATION | WITHDRAW_CONVERSATION => {
            let (header, (current, opaque), (messages, digest), parts) = take_conversation(content)?;
            let summary = entry::conversation_header(header, messages)?;
            let parts = parts.into_iter().map(<[u8]>::to_vec).collect();
            JournalEntry::Conversation(ConversationEntry {
                withdrawn: tag == WITHDRAW_CONVERSATION,
                summary,
                header: header.to_vec(),
                current,
                opaque: opaque.to_vec(),
                parts,
                digest,
            })
        }
        RELATION => JournalEntry::Relation(entry::relation(content)?),
        WITHDRAW => JournalEntry::Withdraw(entry::relation(content)?),
        EMBEDDING | WITHDRAW_EMBEDDING => {
            JournalEntry::Embedding(entry::embedding(content, tag == WITHDRAW_EMBEDDING)?)
        }
        EVIDENCE => JournalEntry::Evidence(EvidenceWrite { id: take.array()?, json: take.0.to_vec() }),
        LEDGER => {
            let ledger = Ledger::from_code(take.u8()?).ok_or(Malformed("names an unknown ledger"))?;
            let at_micros = take.signed()?;
            let id = take.text()?.to_owned();
            JournalEntry::Ledger(LedgerWrite::Entry { ledger, id, at_micros, value: take.0.to_vec() })
        }
        ISSUES => {
            let import = Uuid::from_bytes(take.array()?);
            JournalEntry::Ledger(LedgerWrite::Issues { import, page: take.u32()?, value: take.0.to_vec() })
        }
        PIECE => JournalEntry::Ledger(LedgerWrite::Piece { digest: take.array()?, value: take.0.to_vec() }),
        _ => return Err(Malformed("has a change of an unknown kind")),
    })
}

fn put_conversation(out: &mut Vec<u8>, conversation: &ConversationEntry) {
    out.put_bytes(&conversation.header);
    out.put_u8(u8::from(conversation.current.is_some()));
    if let Some(current) = &conversation.current {
        out.put_id(current);
    }
    out.put_bytes(&conversation.opaque);
    out.put_varint(u64::from(conversation.summary.messages));
    out.extend_from_slice(&conversation.digest);
    out.put_varint(conversation.parts.len() as u64);
    conversation.parts.iter().for_each(|part| out.put_bytes(part));
}

type RawConversation<'a> = (&'a [u8], (Option<String>, &'a [u8]), (u32, [u8; 32]), Vec<&'a [u8]>);

fn take_conversation(content: &[u8]) -> Result<RawConversation<'_>, Malformed> {
    let mut take = ByteReader(content);
    let header = take.bytes()?;
    let current = match take.u8()? {
        0 => None,
        1 => Some(take.id()?),
        _ => return Err(Malformed("has a current message that is neither there nor not")),
    };
    let opaque = take.bytes()?;
    let facts = (take.varint32()?, take.array()?);
    let count = take.size()?;
    let mut parts = Vec::new();
    for _ in 0..count {
        parts.push(take.bytes()?);
    }
    take.end()?;
    Ok((header, (current, opaque), facts, parts))
}
