//! Removes from exports memories that must not be exported (PAM 1.0 §9, §21.1) and identifiers of people (§21.3).
//!
//! The words of messages are kept, with names and addresses in them; only account ids are masked there. A title, file name, id or
//! address that contains one of the [`Identifiers`] is removed as a whole. Strip a document before its checksum and signature are
//! computed; stripping removes both.

use serde_json::Value;

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

pub use identifiers::Identifiers;
pub use withhold::{Withheld, withhold};

/// Keys of the `raw_metadata` of conversations and messages that are kept: notes of importers, and Satchel's own notes as far as
/// [`NOTES`] lists them. In older exports, these have no key of their own and are listed here too.
pub const RAW_METADATA: &[&str] = &[
    "active_path",
    "created_at_source",
    "current_message",
    "current_message_source",
    "hidden",
    "satchel",
    "updated_at_source",
];

/// Satchel's own notes that are kept, because they identify nobody.
pub const NOTES: &[&str] = &[
    "active_path",
    "created_at_source",
    "current_message",
    "current_message_source",
    "linear",
    "updated_at_source",
];

/// Keys of the `metadata` of memories that are kept, `satchel` without accounts.
pub const METADATA: &[&str] = &["domain", "language", "satchel"];

/// Strips a memory store; returns the number of removed values. An owner id that is an e-mail address is replaced by `owner_id`.
///
/// Checksum and signature are removed too, because they no longer match; write the document anew.
pub fn strip_store(store: &mut MemoryStore, owner_id: &str) -> u64 {
    let StoreHeader { owner, .. } = &mut store.header;
    let header = strip_owner(owner, owner_id);
    // Fields of later versions of PAM cannot be judged, and are not written either.
    let unknown = std::mem::take(&mut store.unknown).len() as u64;
    store.integrity = None;
    store.signature = None;
    let identifiers = Identifiers::of_store(store);
    let memories: u64 = store.memories.iter_mut().map(|memory| strip_memory(memory, &identifiers)).sum();
    let index: u64 = store.conversations_index.iter_mut().map(|entry| strip_entry(entry, &identifiers)).sum();
    header + unknown + memories + index
}

/// Strips an index entry: title, tags and storage with one of `identifiers`.
fn strip_entry(entry: &mut IndexEntry, identifiers: &Identifiers) -> u64 {
    let placed = entry.storage.take_if(|storage| identifiers.found_in(&storage.reference));
    let removed = fields::take_if(&mut entry.title, |title| identifiers.found_in(title))
        + strip_tags(&mut entry.tags, identifiers);
    removed + u64::from(placed.is_some())
}

fn strip_tags(tags: &mut Vec<String>, identifiers: &Identifiers) -> u64 {
    fields::remove_where(tags, |tag| identifiers.found_in(tag))
}

/// Strips an owner: an id that is an e-mail address is replaced by `owner_id`, a DID with an address is removed.
///
/// Any other id is kept, because it connects the exports of a person without identifying them. Use a persistent random UUID as
/// `owner_id`; a hash of the address could be guessed.
pub fn strip_owner(owner: &mut Owner, owner_id: &str) -> u64 {
    let Owner { id, did, created_at: _ } = owner;
    let has_email_address = fields::has_email_address(id);
    if has_email_address {
        owner_id.clone_into(id);
    }
    u64::from(has_email_address) + fields::take_if(did, fields::has_email_address)
}

/// Strips a memory: its account, grants to people, metadata beyond [`METADATA`], and tags and metadata with one of `identifiers`.
pub fn strip_memory(memory: &mut Memory, identifiers: &Identifiers) -> u64 {
    // Every field is named, so that a field added to the model fails to compile here.
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
    let mut removed = fields::take_if(platform_user_id, |_| true) + strip_tags(tags, identifiers);
    if let Some(access) = access {
        removed += fields::remove_where(&mut access.shared_with, |grant| identifiers.found_in(&grant.entity));
    }
    removed + fields::retain_keys(metadata, METADATA, identifiers)
}

/// Strips a conversation with all its messages; returns the number of removed values.
pub fn strip_conversation(conversation: &mut Conversation) -> u64 {
    let unknown = std::mem::take(&mut conversation.unknown).len() as u64;
    let mut identifiers = Identifiers::default();
    identifiers.add_header(&conversation.header);
    unknown
        + strip_conversation_header(&mut conversation.header, &identifiers)
        + conversation.messages.iter_mut().map(|message| strip_message(message, &identifiers)).sum::<u64>()
}

/// Strips the header of a conversation: accounts, names of people, the name of the imported file, `raw_metadata` beyond
/// [`RAW_METADATA`], and title, tags and the provider's id with one of `identifiers`.
pub fn strip_conversation_header(header: &mut ConversationHeader, identifiers: &Identifiers) -> u64 {
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
    let mut removed = fields::take_if(account_id, |_| true);
    removed += fields::take_if(conversation_id, |id| identifiers.found_in(id));
    removed += fields::take_if(title, |title| identifiers.found_in(title));
    removed += strip_tags(tags, identifiers) + mask(system_instruction, identifiers);
    for Participant { role, name, provider_id } in participants.iter_mut() {
        removed += fields::take_if(provider_id, |_| true);
        removed += fields::take_if(name, |name| *role == Role::User || identifiers.found_in(name));
    }
    // A participant with only a role says nothing, and readers would count it as another person.
    participants.retain(|participant| participant.name.is_some() || participant.provider_id.is_some());
    if let Some(ImportMetadata {
        source_file,
        importer: _,
        importer_version: _,
        imported_at: _,
        source_checksum: _,
    }) = import_metadata
    {
        // Providers put accounts and addresses into the names of archives.
        removed += fields::take_if(source_file, |_| true);
    }
    removed + strip_raw(raw_metadata, identifiers)
}

/// Strips a message: `raw_metadata` beyond [`RAW_METADATA`], and ids, names and addresses of files and sources with one of
/// `identifiers`. Account ids in its content and in tool calls are masked.
pub fn strip_message(message: &mut Message, identifiers: &Identifiers) -> u64 {
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
    let mut removed = fields::take_if(provider_message_id, |id| identifiers.found_in(id));
    if let Some(content) = content {
        removed += mask(&mut content.text, identifiers);
        for Part { kind: _, text, language: _, mime_type: _, reference } in &mut content.parts {
            removed += mask(text, identifiers) + fields::take_if(reference, |at| identifiers.found_in(at));
        }
    }
    for file in attachments.iter_mut() {
        let Attachment { kind: _, name, mime_type: _, size_bytes: _, reference, provider_id } = file;
        let texts = [name, reference, provider_id];
        removed += texts
            .into_iter()
            .map(|text| fields::take_if(text, |text| identifiers.found_in(text)))
            .sum::<u64>();
    }
    for Citation { title, url, snippet } in citations.iter_mut() {
        removed += fields::take_if(title, |title| identifiers.found_in(title))
            + fields::take_if(url, |url| identifiers.found_in(url));
        removed += mask(snippet, identifiers);
    }
    citations.retain(|citation| *citation != Citation::default());
    removed += tool_calls.iter_mut().map(|call| strip_call(call, identifiers)).sum::<u64>();
    removed + strip_raw(raw_metadata, identifiers)
}

fn strip_call(call: &mut ToolCall, identifiers: &Identifiers) -> u64 {
    let ToolCall { id, name: _, input, output } = call;
    let removed = fields::take_if(id, |id| identifiers.found_in(id)) + mask(output, identifiers);
    let masked = match input {
        Some(ToolInput::Text(text)) => identifiers.mask(text).map(ToolInput::Text),
        // Neither an id nor its mask contains characters that JSON escapes.
        Some(ToolInput::Object(object)) => {
            let text = identifiers.mask(object.as_str());
            text.and_then(|text| RawObject::parse(text).ok()).map(ToolInput::Object)
        }
        None => None,
    };
    let changed = u64::from(masked.is_some());
    *input = masked.or(input.take());
    removed + changed
}

fn mask(text: &mut Option<String>, identifiers: &Identifiers) -> u64 {
    let masked = text.as_deref().and_then(|text| identifiers.mask(text));
    let changed = u64::from(masked.is_some());
    *text = masked.or(text.take());
    changed
}

fn strip_raw(raw: &mut Option<RawObject>, identifiers: &Identifiers) -> u64 {
    let Some(object) = raw else { return 0 };
    let mut map = object.to_map();
    let mut removed = fields::retain_keys(&mut map, RAW_METADATA, identifiers);
    if let Some(notes) = map.get_mut("satchel") {
        match notes {
            Value::Object(notes) => removed += fields::retain_keys(notes, NOTES, identifiers),
            other => {
                *other = Value::Null;
                removed += 1;
            }
        }
        map.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|notes| !notes.is_empty()));
    }
    if removed > 0 {
        // The map comes from a valid raw object, so this does not fail.
        *raw = RawObject::from_map(&map).ok().filter(|_| !map.is_empty());
    }
    removed
}
