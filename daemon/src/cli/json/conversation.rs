//! JSON documents for conversations and messages, with the keys of PAM 1.0 where it defines one.

use satchel_proto::{
    integers::unsigned,
    v1::{self, StoreHeader, tool_call::Input},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{non_empty, timestamp};
use crate::cli::labels;

/// `conversations list`.
#[derive(Debug, Serialize)]
pub(crate) struct Conversations<'a> {
    pub conversations: Vec<ConversationSummary<'a>>,
    /// True if there are more than `--limit`.
    pub more: bool,
    pub revision: u64,
    pub store_id: &'a str,
}

impl<'a> Conversations<'a> {
    pub(crate) fn new(rows: &'a [v1::Conversation], more: bool, header: &'a StoreHeader) -> Self {
        let conversations = rows.iter().map(ConversationSummary::new).collect();
        Self { conversations, more, revision: unsigned(header.revision), store_id: &header.store_id }
    }
}

document! {
    /// The part of a conversation that lists contain.
    ConversationSummary<'a> from row: v1::Conversation {
        id: &'a str = &row.id,
        platform: &'a str = &row.platform,
        account: Option<&'a str> = row.account.as_deref(),
        title: Option<&'a str> = row.title.as_deref(),
        created_at: Option<String> = timestamp(row.created_at.as_ref()),
        updated_at: Option<String> = timestamp(row.updated_at.as_ref()),
        message_count: u64 = unsigned(row.message_count),
        tags: &'a [String] = &row.tags,
        is_archived: bool = row.is_archived,
        mod_revision: u64 = unsigned(row.mod_revision),
    }
}

/// `conversations stats`.
#[derive(Debug, Serialize)]
pub(crate) struct Statistics<'a> {
    /// The property that the conversations of a group have in common.
    pub by: &'a str,
    pub groups: Vec<Group<'a>>,
    /// The number of further groups.
    pub other_groups: u64,
    /// All further groups together; null if there are none.
    pub others: Option<Totals>,
    pub total: Totals,
    pub revision: u64,
    pub store_id: String,
}

impl<'a> Statistics<'a> {
    pub(crate) fn new(by: &'a str, answer: &'a v1::GetConversationStatsResponse) -> Self {
        let StoreHeader { store_id, revision } = answer.header.clone().unwrap_or_default();
        Self {
            by,
            groups: answer.groups.iter().map(Group::new).collect(),
            other_groups: unsigned(answer.other_groups),
            others: answer.others.as_ref().map(Totals::new),
            total: Totals::new(&answer.total.unwrap_or_default()),
            revision: unsigned(revision),
            store_id,
        }
    }
}

document! {
    /// A group of conversations.
    Group<'a> from group: v1::ConversationGroup {
        /// Null if it is not known.
        name: Option<&'a str> = non_empty(&group.name),
        #[serde(flatten)]
        totals: Totals = Totals::new(&group.totals.unwrap_or_default()),
    }
}

/// Counts of conversations.
#[derive(Debug, Serialize)]
pub(crate) struct Totals {
    pub conversations: u64,
    pub messages: u64,
    pub tokens: u64,
    /// What the messages cost, in US dollars, as far as they say it.
    pub cost_usd: f64,
    pub first_message_at: Option<String>,
    pub last_message_at: Option<String>,
}

impl Totals {
    fn new(totals: &v1::ConversationTotals) -> Self {
        Self {
            conversations: unsigned(totals.conversations),
            messages: unsigned(totals.messages),
            tokens: unsigned(totals.tokens),
            cost_usd: dollars(totals.cost_micros),
            first_message_at: timestamp(totals.first_message_at.as_ref()),
            last_message_at: timestamp(totals.last_message_at.as_ref()),
        }
    }
}

/// Returns millionths of a dollar as dollars.
#[expect(clippy::cast_precision_loss, reason = "exact up to nine billion dollars")]
fn dollars(micros: i64) -> f64 {
    micros as f64 / 1e6
}

/// `conversations show`.
#[derive(Debug, Serialize)]
pub(crate) struct ConversationDocument<'a> {
    pub conversation: ConversationDetails<'a>,
    pub messages: Vec<Message<'a>>,
}

impl<'a> ConversationDocument<'a> {
    pub(crate) fn new(conversation: &'a v1::Conversation, messages: &'a [v1::Message]) -> Self {
        Self {
            conversation: ConversationDetails::new(conversation),
            messages: messages.iter().map(Message::new).collect(),
        }
    }
}

document! {
    /// A conversation without its messages.
    ConversationDetails<'a> from all: v1::Conversation {
        #[serde(flatten)]
        row: ConversationSummary<'a> = ConversationSummary::new(all),
        provider_conversation_id: Option<&'a str> = all.provider_conversation_id.as_deref(),
        export_format_version: Option<&'a str> = all.export_format_version.as_deref(),
        model: Option<&'a str> = all.model.as_deref(),
        system_instruction: Option<&'a str> = all.system_instruction.as_deref(),
        participants: Vec<Participant<'a>> = all.participants.iter().map(Participant::new).collect(),
        active_leaf_id: Option<&'a str> = all.active_leaf_id.as_deref(),
        raw_metadata: Option<&'a RawValue> = raw(all.raw_metadata_json.as_ref()),
        abridged: bool = all.abridged,
        /// True if an undo removed all imports of the conversation.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        withdrawn: bool = all.withdrawn,
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Participant<'a> {
    pub role: String,
    pub name: Option<&'a str>,
    pub provider_id: Option<&'a str>,
}

impl<'a> Participant<'a> {
    fn new(participant: &'a v1::Participant) -> Self {
        let v1::Participant { role, name, provider_id } = participant;
        Self { role: labels::role(*role), name: name.as_deref(), provider_id: provider_id.as_deref() }
    }
}

/// One message.
#[derive(Debug, Serialize)]
pub(crate) struct Message<'a> {
    pub id: &'a str,
    pub provider_message_id: Option<&'a str>,
    pub role: String,
    pub content: Option<Content<'a>>,
    pub created_at: Option<String>,
    pub parent_id: Option<&'a str>,
    pub children_ids: &'a [String],
    pub model: Option<&'a str>,
    pub is_thought: bool,
    pub token_count: Option<u64>,
    pub attachments: Vec<Attachment<'a>>,
    pub citations: Vec<Citation<'a>>,
    pub tool_calls: Vec<ToolCall<'a>>,
    pub raw_metadata: Option<&'a RawValue>,
    pub hidden: bool,
    pub on_active_branch: bool,
    pub abridged: bool,
}

impl<'a> Message<'a> {
    fn new(message: &'a v1::Message) -> Self {
        // Every field is named, so that a new one fails to compile here.
        let v1::Message {
            id,
            provider_message_id,
            role,
            content,
            created_at,
            parent_id,
            children_ids,
            model,
            is_thought,
            token_count,
            attachments,
            citations,
            tool_calls,
            raw_metadata_json,
            hidden,
            on_active_branch,
            abridged,
        } = message;
        Self {
            id,
            provider_message_id: provider_message_id.as_deref(),
            role: labels::role(*role),
            content: content.as_ref().map(Content::new),
            created_at: timestamp(created_at.as_ref()),
            parent_id: parent_id.as_deref(),
            children_ids,
            model: model.as_deref(),
            is_thought: *is_thought,
            token_count: unsigned(*token_count),
            attachments: attachments.iter().map(Attachment::new).collect(),
            citations: citations.iter().map(Citation::new).collect(),
            tool_calls: tool_calls.iter().map(ToolCall::new).collect(),
            raw_metadata: raw(raw_metadata_json.as_ref()),
            hidden: *hidden,
            on_active_branch: *on_active_branch,
            abridged: *abridged,
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Content<'a> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub text: Option<&'a str>,
    pub parts: Vec<ContentPart<'a>>,
}

impl<'a> Content<'a> {
    fn new(content: &'a v1::Content) -> Self {
        let v1::Content { kind, text, parts } = content;
        let kind = if *kind == i32::from(v1::ContentKind::Multipart) { "multipart" } else { "text" };
        Self { kind, text: text.as_deref(), parts: parts.iter().map(ContentPart::new).collect() }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct ContentPart<'a> {
    #[serde(rename = "type")]
    pub kind: String,
    pub text: Option<&'a str>,
    pub language: Option<&'a str>,
    pub mime_type: Option<&'a str>,
    #[serde(rename = "ref")]
    pub reference: Option<&'a str>,
}

impl<'a> ContentPart<'a> {
    fn new(part: &'a v1::ContentPart) -> Self {
        let v1::ContentPart { kind, text, language, mime_type, r#ref } = part;
        Self {
            kind: labels::part_kind(*kind),
            text: text.as_deref(),
            language: language.as_deref(),
            mime_type: mime_type.as_deref(),
            reference: r#ref.as_deref(),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Attachment<'a> {
    #[serde(rename = "type")]
    pub kind: String,
    pub name: Option<&'a str>,
    pub mime_type: Option<&'a str>,
    pub size_bytes: Option<u64>,
    #[serde(rename = "ref")]
    pub reference: Option<&'a str>,
    pub provider_id: Option<&'a str>,
}

impl<'a> Attachment<'a> {
    fn new(attachment: &'a v1::Attachment) -> Self {
        let v1::Attachment { kind, name, mime_type, size_bytes, r#ref, provider_id } = attachment;
        Self {
            kind: labels::attachment_kind(*kind),
            name: name.as_deref(),
            mime_type: mime_type.as_deref(),
            size_bytes: unsigned(*size_bytes),
            reference: r#ref.as_deref(),
            provider_id: provider_id.as_deref(),
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Citation<'a> {
    pub title: Option<&'a str>,
    pub url: Option<&'a str>,
    pub snippet: Option<&'a str>,
}

impl<'a> Citation<'a> {
    fn new(citation: &'a v1::Citation) -> Self {
        let v1::Citation { title, url, snippet } = citation;
        Self { title: title.as_deref(), url: url.as_deref(), snippet: snippet.as_deref() }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct ToolCall<'a> {
    pub id: Option<&'a str>,
    pub name: &'a str,
    /// A string, an object, or null.
    pub input: ToolInput<'a>,
    pub output: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ToolInput<'a> {
    None(()),
    Text(&'a str),
    Object(&'a RawValue),
}

impl<'a> ToolCall<'a> {
    fn new(call: &'a v1::ToolCall) -> Self {
        let v1::ToolCall { id, name, output, input } = call;
        let input = match input {
            None => ToolInput::None(()),
            Some(Input::InputText(text)) => ToolInput::Text(text),
            Some(Input::InputJson(json)) => raw(Some(json)).map_or(ToolInput::Text(json), ToolInput::Object),
        };
        Self { id: id.as_deref(), name, input, output: output.as_deref() }
    }
}

/// Returns the JSON of the wire unchanged, or `None` if it is truncated.
fn raw(json: Option<&String>) -> Option<&RawValue> {
    json.and_then(|json| serde_json::from_str(json).ok())
}
