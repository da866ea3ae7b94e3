//! Memory taken by a record as the plugin emitted it: its own size and the bytes of its texts.
//!
//! Every field is named, so that a new field cannot be forgotten.

use crate::bindings::satchel::importer::types as wit;

type OptionalText = Option<String>;

fn texts(texts: &[&OptionalText]) -> usize {
    texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum()
}

fn list<T>(items: &[T], heap: impl Fn(&T) -> usize) -> usize {
    items.iter().map(|item| size_of::<T>() + heap(item)).sum()
}

pub(crate) fn conversation(record: &wit::Conversation) -> usize {
    let wit::Conversation {
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
    } = record;
    size_of::<wit::Conversation>()
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
            raw_metadata,
        ])
        + list(participants, |wit::Participant { role: _, name, provider_id }| texts(&[name, provider_id]))
        + list(tags, String::len)
}

pub(crate) fn message(record: &wit::Message) -> usize {
    let wit::Message {
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
    size_of::<wit::Message>()
        + id.len()
        + texts(&[provider_message_id, parent, model, raw_metadata])
        + content.as_ref().map_or(0, text_content)
        + list(attachments, attachment)
        + list(citations, |wit::Citation { title, url, snippet }| texts(&[title, url, snippet]))
        + list(tool_calls, tool_call)
}

pub(crate) fn messages(records: &[wit::Message]) -> usize {
    records.iter().map(message).sum()
}

fn text_content(content: &wit::Content) -> usize {
    let wit::Content { kind: _, text, parts } = content;
    texts(&[text])
        + list(parts, |wit::ContentPart { kind: _, text, language, mime_type, ref_ }| {
            texts(&[text, language, mime_type, ref_])
        })
}

fn attachment(record: &wit::Attachment) -> usize {
    let wit::Attachment { kind: _, name, mime_type, size_bytes: _, ref_, provider_id, source } = record;
    let source = match source {
        None => 0,
        Some(wit::Source::Path(text) | wit::Source::Uri(text)) => text.len(),
        Some(wit::Source::Bytes(bytes)) => bytes.len(),
    };
    texts(&[name, mime_type, ref_, provider_id]) + source
}

fn tool_call(call: &wit::ToolCall) -> usize {
    let wit::ToolCall { id, name, input, output } = call;
    let input = match input {
        None => 0,
        Some(wit::ToolInput::Text(text) | wit::ToolInput::Object(text)) => text.len(),
    };
    name.len() + texts(&[id, output]) + input
}

pub(crate) fn evidence(record: &wit::Evidence) -> usize {
    let wit::Evidence { id, claim, at: _, account, conversation, message, extraction_method: _, locator } =
        record;
    let claim = match claim {
        wit::Claim::Statement(statement) => item(statement),
        wit::Claim::Snapshot(wit::Snapshot { series, items }) => series.len() + list(items, item),
        wit::Claim::Edit(wit::LoggedEdit { log, sequence: _, edit }) => log.len() + edit_size(edit),
    };
    size_of::<wit::Evidence>() + id.len() + locator.len() + texts(&[account, conversation, message]) + claim
}

fn edit_size(edit: &wit::Edit) -> usize {
    match edit {
        wit::Edit::Add(added) => item(added),
        wit::Edit::Replace(wit::Replacement { line: _, target, item: new }) => texts(&[target]) + item(new),
        wit::Edit::Remove(wit::Removal { line: _, target }) => texts(&[target]),
    }
}

fn item(record: &wit::Item) -> usize {
    let wit::Item {
        key,
        content,
        memory_type: _,
        custom_type,
        status: _,
        scope,
        summary,
        tags,
        confidence: _,
        created_at: _,
        updated_at: _,
        valid_from: _,
        valid_until: _,
        superseded_by,
        access,
        embedding_ref,
        metadata,
    } = record;
    content.len()
        + texts(&[key, custom_type, scope, summary, superseded_by, embedding_ref, metadata])
        + list(tags, String::len)
        + access.as_ref().map_or(0, access_size)
}

fn access_size(access: &wit::Access) -> usize {
    let wit::Access { visibility: _, exportable: _, shared_with } = access;
    list(shared_with, |wit::AccessGrant { entity, permissions }| entity.len() + permissions.len())
}

pub(crate) fn relation(record: &wit::Relation) -> usize {
    let wit::Relation { source, target, relation_type: _, confidence: _, created_at: _ } = record;
    size_of::<wit::Relation>() + source.len() + target.len()
}

pub(crate) fn embedding(record: &wit::Embedding) -> usize {
    let wit::Embedding { memory, model, dimensions: _, created_at: _, vector, storage } = record;
    let storage = storage.as_ref().map_or(0, |wit::Storage { kind: _, ref_ }| ref_.len());
    let vector = vector.as_ref().map_or(0, |vector| list(vector, |_| 0));
    size_of::<wit::Embedding>() + memory.len() + model.len() + vector + storage
}
