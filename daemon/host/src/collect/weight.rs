//! How much memory a record takes: its own size and the bytes of its texts.
//!
//! Every field is named, so that a new one cannot go uncounted.

use satchel_pam::{
    conversation::{Attachment, Citation, Content, Part, Participant, ToolCall, ToolInput},
    embedding::Storage,
    memory::{Access, AccessGrant},
    raw::RawObject,
    record::{
        AttachmentRecord, Claim, ConversationRecord, Edit, EmbeddingRecord, Evidence, Item, MessageRecord,
        RelationRecord, Skip, Source, Warning,
    },
};

type Text = Option<String>;

fn texts(texts: &[&Text]) -> usize {
    texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum()
}

fn list<T>(items: &[T], heap: impl Fn(&T) -> usize) -> usize {
    items.iter().map(|item| size_of::<T>() + heap(item)).sum()
}

fn raw(object: Option<&RawObject>) -> usize {
    object.map_or(0, |object| object.as_str().len())
}

pub(crate) fn conversation(record: &ConversationRecord) -> usize {
    let ConversationRecord {
        id,
        provider_conversation_id,
        account,
        export_format_version,
        title,
        created_at: _,
        updated_at: _,
        participants,
        model,
        system_instruction,
        is_archived: _,
        tags,
        current,
        raw_metadata,
        locator,
        messages,
    } = record;
    size_of::<ConversationRecord>()
        + id.len()
        + locator.len()
        + texts(&[
            provider_conversation_id,
            account,
            export_format_version,
            title,
            model,
            system_instruction,
            current,
        ])
        + list(participants, |Participant { role: _, name, provider_id }| texts(&[name, provider_id]))
        + list(tags, String::len)
        + raw(raw_metadata.as_ref())
        + messages.iter().map(message).sum::<usize>()
}

pub(crate) fn message(record: &MessageRecord) -> usize {
    let MessageRecord {
        id,
        provider_message_id,
        role: _,
        content,
        created_at: _,
        parent,
        model,
        is_thought: _,
        token_count: _,
        attachments,
        citations,
        tool_calls,
        raw_metadata,
    } = record;
    size_of::<MessageRecord>()
        + id.len()
        + texts(&[provider_message_id, parent, model])
        + content.as_ref().map_or(0, text_content)
        + list(attachments, attachment)
        + list(citations, |Citation { title, url, snippet }| texts(&[title, url, snippet]))
        + list(tool_calls, tool_call)
        + raw(raw_metadata.as_ref())
}

fn text_content(content: &Content) -> usize {
    let Content { kind: _, text, parts } = content;
    texts(&[text])
        + list(parts, |Part { kind: _, text, language, mime_type, reference }| {
            texts(&[text, language, mime_type, reference])
        })
}

fn attachment(record: &AttachmentRecord) -> usize {
    let AttachmentRecord { attachment, source } = record;
    let Attachment { kind: _, name, mime_type, size_bytes: _, reference, provider_id } = attachment;
    let source = match source {
        None => 0,
        Some(Source::Path(text) | Source::Uri(text)) => text.len(),
        Some(Source::Bytes(bytes)) => bytes.len(),
    };
    texts(&[name, mime_type, reference, provider_id]) + source
}

fn tool_call(call: &ToolCall) -> usize {
    let ToolCall { id, name, input, output } = call;
    let input = match input {
        None => 0,
        Some(ToolInput::Text(text)) => text.len(),
        Some(ToolInput::Object(object)) => object.as_str().len(),
    };
    name.len() + texts(&[id, output]) + input
}

pub(crate) fn evidence(record: &Evidence) -> usize {
    let Evidence { id, claim, at: _, account, conversation, message, extraction_method: _, locator } = record;
    let claim = match claim {
        Claim::Statement(statement) => item(statement),
        Claim::Snapshot { series, items } => series.len() + list(items, item),
        Claim::Edit { log, sequence: _, edit } => log.len() + edit_weight(edit),
    };
    size_of::<Evidence>() + id.len() + locator.len() + texts(&[account, conversation, message]) + claim
}

fn edit_weight(edit: &Edit) -> usize {
    match edit {
        Edit::Add(added) => item(added),
        Edit::Replace { line: _, target, item: new } => texts(&[target]) + item(new),
        Edit::Remove { line: _, target } => texts(&[target]),
    }
}

fn item(record: &Item) -> usize {
    let Item {
        key,
        content,
        memory_type: _,
        custom_type,
        status: _,
        scope,
        summary,
        tags,
        confidence: _,
        updated_at: _,
        valid_from: _,
        valid_until: _,
        superseded_by,
        access,
        embedding_ref,
        metadata,
    } = record;
    content.len()
        + texts(&[key, custom_type, scope, summary, superseded_by, embedding_ref])
        + list(tags, String::len)
        + access.as_ref().map_or(0, access_weight)
        + raw(metadata.as_ref())
}

fn access_weight(access: &Access) -> usize {
    let Access { visibility: _, exportable: _, shared_with } = access;
    list(shared_with, |AccessGrant { entity, permissions }| entity.len() + permissions.len())
}

pub(crate) fn relation(record: &RelationRecord) -> usize {
    let RelationRecord { source, target, relation_type: _, confidence: _, created_at: _ } = record;
    size_of::<RelationRecord>() + source.len() + target.len()
}

pub(crate) fn embedding(record: &EmbeddingRecord) -> usize {
    let EmbeddingRecord { memory, model, dimensions: _, created_at: _, vector, storage } = record;
    let storage = storage.as_ref().map_or(0, |Storage { kind: _, r#ref }| r#ref.len());
    let vector = vector.as_ref().map_or(0, |vector| list(vector, |_| 0));
    size_of::<EmbeddingRecord>() + memory.len() + model.len() + vector + storage
}

pub(crate) fn skip(record: &Skip) -> usize {
    let Skip { kind: _, locator, reason } = record;
    size_of::<Skip>() + locator.len() + reason.len()
}

pub(crate) fn warning(record: &Warning) -> usize {
    let Warning { locator, message } = record;
    size_of::<Warning>() + locator.len() + message.len()
}
