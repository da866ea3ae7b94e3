//! What need not leave with an export: memories that must not (PAM 1.0 §9, §21.1), and who somebody is elsewhere (§21.3).
//!
//! Content is never touched: what a person said stays as said, addresses in it too. Strip before checksum and signature
//! are made; both are taken off a document that is stripped here.

use crate::{
    conversation::{Conversation, ConversationHeader, ImportMetadata, Message, Participant, Provider, Role},
    memory::{Memory, Provenance},
    raw::RawObject,
    store::{MemoryStore, Owner, StoreHeader},
};

mod fields;
mod withhold;

use serde_json::Value;

pub use withhold::{Withheld, withhold};

/// Keys of a conversation's or message's `raw_metadata` that may stay: what importers note of a message, and Satchel's own notes, as
/// far as they stand in [`NOTES`]; in exports that were made before these had a key of their own they stand beside it.
pub const RAW_METADATA: &[&str] = &[
    "active_path",
    "created_at_source",
    "current_message",
    "current_message_source",
    "hidden",
    "satchel",
    "updated_at_source",
];

/// Satchel's own notes that may stay: they name nobody.
pub const NOTES: &[&str] = &[
    "active_path",
    "created_at_source",
    "current_message",
    "current_message_source",
    "linear",
    "updated_at_source",
];

/// Keys of a memory's `metadata` that may stay; of `satchel` all but accounts.
pub const METADATA: &[&str] = &["domain", "language", "satchel"];

/// Strips a memory store; answers how many values went. An owner whose id is an e-mail address becomes `owner_id`.
///
/// Checksum and signature go too, as they are of another text now: write the document anew.
pub fn strip_store(store: &mut MemoryStore, owner_id: &str) -> u64 {
    let StoreHeader { owner, .. } = &mut store.header;
    let header = strip_owner(owner, owner_id);
    // What later versions of PAM added cannot be judged; it is not written either.
    let unknown = std::mem::take(&mut store.unknown).len() as u64;
    store.integrity = None;
    store.signature = None;
    header + unknown + store.memories.iter_mut().map(strip_memory).sum::<u64>()
}

/// Takes e-mail addresses out of the owner: the id becomes `owner_id` if it is one, a DID with one goes.
///
/// Another id stays: it ties the exports of one person together, and says nothing of who that is. Give as `owner_id` a
/// random UUID that is kept: a hash of the address could be guessed.
pub fn strip_owner(owner: &mut Owner, owner_id: &str) -> u64 {
    let Owner { id, did, created_at: _ } = owner;
    let address = fields::address(id);
    if address {
        owner_id.clone_into(id);
    }
    u64::from(address) + fields::take_if(did, fields::address)
}

/// Strips one memory: the account, grants to e-mail addresses, metadata beyond [`METADATA`].
pub fn strip_memory(memory: &mut Memory) -> u64 {
    // Every field is named, so that a field added to the model needs a decision here.
    let Memory {
        id: _,
        memory_type: _,
        custom_type: _,
        status: _,
        content: _,
        content_hash: _,
        summary: _,
        tags: _,
        confidence: _,
        temporal: _,
        provenance,
        access,
        embedding_ref: _,
        metadata,
    } = memory;
    let Provenance {
        platform: _,
        platform_user_id,
        conversation_ref: _,
        message_ref: _,
        extraction_method: _,
        extracted_at: _,
        extractor: _,
    } = provenance;
    let mut gone = fields::take_if(platform_user_id, |_| true);
    if let Some(access) = access {
        let before = access.shared_with.len();
        access.shared_with.retain(|grant| !fields::address(&grant.entity));
        gone += (before - access.shared_with.len()) as u64;
    }
    gone + fields::allow(metadata, METADATA)
}

/// Strips a conversation with all its messages; answers how many values went.
pub fn strip_conversation(conversation: &mut Conversation) -> u64 {
    let unknown = std::mem::take(&mut conversation.unknown).len() as u64;
    unknown
        + strip_conversation_header(&mut conversation.header)
        + conversation.messages.iter_mut().map(strip_message).sum::<u64>()
}

/// Strips what stands before the messages: accounts, names of people, the name of the imported file, `raw_metadata`
/// beyond [`RAW_METADATA`].
pub fn strip_conversation_header(header: &mut ConversationHeader) -> u64 {
    let ConversationHeader {
        id: _,
        provider,
        title: _,
        temporal: _,
        participants,
        model: _,
        system_instruction: _,
        is_archived: _,
        tags: _,
        raw_metadata,
        import_metadata,
    } = header;
    let Provider { name: _, conversation_id: _, account_id, export_format_version: _ } = provider;
    let mut gone = fields::take_if(account_id, |_| true);
    for Participant { role, name, provider_id } in participants.iter_mut() {
        gone += fields::take_if(provider_id, |_| true);
        gone += fields::take_if(name, |name| *role == Role::User || fields::address(name));
    }
    // Who is only a role says nothing, and readers would take it for somebody more.
    participants.retain(|participant| participant.name.is_some() || participant.provider_id.is_some());
    if let Some(ImportMetadata {
        source_file,
        importer: _,
        importer_version: _,
        imported_at: _,
        source_checksum: _,
    }) = import_metadata
    {
        // Providers put accounts and addresses into the names of their archives.
        gone += fields::take_if(source_file, |_| true);
    }
    gone + strip_raw(raw_metadata)
}

/// Strips one message: `raw_metadata` beyond [`RAW_METADATA`]. Its ids name a message, not a person, and stay.
pub fn strip_message(message: &mut Message) -> u64 {
    strip_raw(&mut message.raw_metadata)
}

fn strip_raw(raw: &mut Option<RawObject>) -> u64 {
    let Some(object) = raw else { return 0 };
    let mut map = object.to_map();
    let mut gone = fields::allow(&mut map, RAW_METADATA);
    if let Some(notes) = map.get_mut("satchel") {
        match notes {
            Value::Object(notes) => gone += fields::allow(notes, NOTES),
            other => {
                *other = Value::Null;
                gone += 1;
            }
        }
        map.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|notes| !notes.is_empty()));
    }
    if gone > 0 {
        // Written from a map that was read from such an object, so it is one.
        *raw = RawObject::from_map(&map).ok().filter(|_| !map.is_empty());
    }
    gone
}
