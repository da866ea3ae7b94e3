//! What need not leave with an export: memories that must not (PAM 1.0 §9, §21.1), and who somebody is elsewhere (§21.3).
//!
//! What a person said stays as said, names and addresses in it too; only ids of accounts, which nobody says, are masked in messages. A
//! title, a file's name, an id or an address goes as a whole where one of [`Identifiers`] stands in it. Strip before checksum and
//! signature are made; both are taken off a document that is stripped here.

use crate::{
    conversation::{
        Attachment, Citation, Conversation, ConversationHeader, ImportMetadata, Message, Part, Participant,
        Provider, Role, ToolCall, ToolInput,
    },
    memory::{Memory, Provenance},
    raw::RawObject,
    store::{IndexEntry, MemoryStore, Owner, StoreHeader},
};

mod fields;
mod identifiers;
mod withhold;

use serde_json::Value;

pub use identifiers::Identifiers;
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
    let who = Identifiers::of_store(store);
    let memories: u64 = store.memories.iter_mut().map(|memory| strip_memory(memory, &who)).sum();
    let index: u64 = store.conversations_index.iter_mut().map(|entry| strip_entry(entry, &who)).sum();
    header + unknown + memories + index
}

/// Strips what the index says of a conversation: a title, tags and a place with somebody of `who` in them.
fn strip_entry(entry: &mut IndexEntry, who: &Identifiers) -> u64 {
    let placed = entry.storage.take_if(|storage| who.hold(&storage.reference));
    let gone = fields::take_if(&mut entry.title, |title| who.hold(title)) + strip_tags(&mut entry.tags, who);
    gone + u64::from(placed.is_some())
}

fn strip_tags(tags: &mut Vec<String>, who: &Identifiers) -> u64 {
    let before = tags.len();
    tags.retain(|tag| !who.hold(tag));
    (before - tags.len()) as u64
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

/// Strips one memory: the account, grants to people, metadata beyond [`METADATA`], and tags and metadata with somebody of `who` in them.
pub fn strip_memory(memory: &mut Memory, who: &Identifiers) -> u64 {
    // Every field is named, so that a field added to the model needs a decision here.
    let Memory {
        id: _,
        memory_type: _,
        custom_type: _,
        status: _,
        content: _,
        content_hash: _,
        summary: _,
        tags,
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
    let mut gone = fields::take_if(platform_user_id, |_| true) + strip_tags(tags, who);
    if let Some(access) = access {
        let before = access.shared_with.len();
        access.shared_with.retain(|grant| !who.hold(&grant.entity));
        gone += (before - access.shared_with.len()) as u64;
    }
    gone + fields::allow(metadata, METADATA, who)
}

/// Strips a conversation with all its messages; answers how many values went.
pub fn strip_conversation(conversation: &mut Conversation) -> u64 {
    let unknown = std::mem::take(&mut conversation.unknown).len() as u64;
    let mut who = Identifiers::default();
    who.add_header(&conversation.header);
    unknown
        + strip_conversation_header(&mut conversation.header, &who)
        + conversation.messages.iter_mut().map(|message| strip_message(message, &who)).sum::<u64>()
}

/// Strips what stands before the messages: accounts, names of people, the name of the imported file, `raw_metadata`
/// beyond [`RAW_METADATA`], and a title, tags and the provider's id with somebody of `who` in them.
pub fn strip_conversation_header(header: &mut ConversationHeader, who: &Identifiers) -> u64 {
    let ConversationHeader {
        id: _,
        provider,
        title,
        temporal: _,
        participants,
        model: _,
        system_instruction,
        is_archived: _,
        tags,
        raw_metadata,
        import_metadata,
    } = header;
    let Provider { name: _, conversation_id, account_id, export_format_version: _ } = provider;
    let mut gone = fields::take_if(account_id, |_| true);
    gone += fields::take_if(conversation_id, |id| who.hold(id));
    gone += fields::take_if(title, |title| who.hold(title));
    gone += strip_tags(tags, who) + mask(system_instruction, who);
    for Participant { role, name, provider_id } in participants.iter_mut() {
        gone += fields::take_if(provider_id, |_| true);
        gone += fields::take_if(name, |name| *role == Role::User || who.hold(name));
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
    gone + strip_raw(raw_metadata, who)
}

/// Strips one message: `raw_metadata` beyond [`RAW_METADATA`], and ids, names and addresses of files and sources with somebody of `who`
/// in them. In its words and in calls of tools, ids of accounts are masked.
pub fn strip_message(message: &mut Message, who: &Identifiers) -> u64 {
    let Message {
        id: _,
        provider_message_id,
        role: _,
        content,
        created_at: _,
        parent_id: _,
        children_ids: _,
        model: _,
        is_thought: _,
        token_count: _,
        attachments,
        citations,
        tool_calls,
        raw_metadata,
    } = message;
    let mut gone = fields::take_if(provider_message_id, |id| who.hold(id));
    if let Some(content) = content {
        gone += mask(&mut content.text, who);
        for Part { kind: _, text, language: _, mime_type: _, reference } in &mut content.parts {
            gone += mask(text, who) + fields::take_if(reference, |at| who.hold(at));
        }
    }
    for file in attachments.iter_mut() {
        let Attachment { kind: _, name, mime_type: _, size_bytes: _, reference, provider_id } = file;
        let telling = [name, reference, provider_id];
        gone += telling.into_iter().map(|text| fields::take_if(text, |text| who.hold(text))).sum::<u64>();
    }
    for Citation { title, url, snippet } in citations.iter_mut() {
        gone += fields::take_if(title, |title| who.hold(title)) + fields::take_if(url, |url| who.hold(url));
        gone += mask(snippet, who);
    }
    citations.retain(|citation| *citation != Citation::default());
    gone += tool_calls.iter_mut().map(|call| strip_call(call, who)).sum::<u64>();
    gone + strip_raw(raw_metadata, who)
}

fn strip_call(call: &mut ToolCall, who: &Identifiers) -> u64 {
    let ToolCall { id, name: _, input, output } = call;
    let gone = fields::take_if(id, |id| who.hold(id)) + mask(output, who);
    let masked = match input {
        Some(ToolInput::Text(text)) => who.masked(text).map(ToolInput::Text),
        // An id holds nothing that JSON escapes, and neither does what stands in its place.
        Some(ToolInput::Object(object)) => {
            let text = who.masked(object.as_str());
            text.and_then(|text| RawObject::parse(text).ok()).map(ToolInput::Object)
        }
        None => None,
    };
    let changed = u64::from(masked.is_some());
    *input = masked.or(input.take());
    gone + changed
}

fn mask(text: &mut Option<String>, who: &Identifiers) -> u64 {
    let masked = text.as_deref().and_then(|text| who.masked(text));
    let changed = u64::from(masked.is_some());
    *text = masked.or(text.take());
    changed
}

fn strip_raw(raw: &mut Option<RawObject>, who: &Identifiers) -> u64 {
    let Some(object) = raw else { return 0 };
    let mut map = object.to_map();
    let mut gone = fields::allow(&mut map, RAW_METADATA, who);
    if let Some(notes) = map.get_mut("satchel") {
        match notes {
            Value::Object(notes) => gone += fields::allow(notes, NOTES, who),
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
