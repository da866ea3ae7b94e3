//! Gives the records of an importer their ids, times and encoded bodies. Pure, except that it stores attachments.

use satchel_merge::{
    body::Body,
    conversation::{ConversationReport, ReportedNode},
    evidence::{self, StoredEvidence},
    groups,
};
use satchel_pam::{
    conversation::ImportMetadata,
    ids,
    raw::RawObject,
    record::{AttachmentRecord, ConversationRecord, Evidence, MessageRecord},
};

/// Takes the place of the conversation in the ids of rows that belong to no conversation.
const ROWS: &str = "rows";

/// The reader of an export.
#[derive(Clone, Debug)]
pub(super) struct Normaliser {
    /// The PAM platform.
    pub platform: String,
    /// The plugin, as `name/x.y.z`.
    pub extractor: String,
}

/// A conversation with Satchel's ids.
pub(super) struct NormalisedConversation {
    pub id: String,
    /// PAM `provider.name`.
    pub platform: String,
    /// The import metadata of the document that it comes from; `None` if this import read it.
    pub import: Option<ImportMetadata>,
    /// Its ids come from a document, so the store is asked whether it accepts them.
    pub foreign: bool,
    /// The stranger whose document it comes from: a key, or the marker for unsigned documents.
    pub untrusted: Option<String>,
    pub report: ConversationReport,
    pub nodes: Vec<ReportedNode>,
    /// Approximate size in memory, in bytes.
    pub weight: usize,
}

/// How to resolve the conversation key of a piece of evidence.
#[derive(Clone, Debug)]
pub(super) enum KeyScope {
    /// The key is the provider's.
    Provider,
    /// The key is the importer's.
    Natural,
    /// The conversation was grouped from rows: its id in the grouping of this export, and the message that gives it its
    /// id.
    Rows { conversation: String, first: String },
}

impl KeyScope {
    /// Returns the place of a conversation that was read.
    pub(super) fn of(conversation: &NormalisedConversation) -> Self {
        let NormalisedConversation { id, report, nodes, .. } = conversation;
        if groups::grouped(report.provider_conversation_id.as_deref(), report.raw_metadata.as_ref()) {
            Self::Rows { conversation: id.clone(), first: groups::first_message(nodes).to_owned() }
        } else {
            Self::Natural
        }
    }
}

/// Stores the bytes of an attachment; returns the attachment with the PAM `ref` under which they are found, and their
/// length.
pub(super) type StoreAttachment<'a> =
    dyn FnMut(AttachmentRecord) -> satchel_pam::conversation::Attachment + 'a;

impl Normaliser {
    /// Returns the id of a conversation; if it has no id of the provider's, the id also depends on the account.
    pub(super) fn conversation_id(&self, key: &str, natural: bool, account: Option<&str>) -> uuid::Uuid {
        ids::conversation_id(&self.platform, account.filter(|_| natural), key)
    }

    /// Returns the namespace of the message ids: the conversation's id, or a common one for all rows that an importer
    /// grouped. The flag says whether it is grouped.
    pub(super) fn message_namespace(&self, record: &ConversationRecord) -> (uuid::Uuid, bool) {
        let natural = record.provider_conversation_id.is_none();
        let grouped =
            groups::grouped(record.provider_conversation_id.as_deref(), record.raw_metadata.as_ref());
        // Rows that an importer grouped are identified by themselves: another export may group them differently.
        let key = if grouped { ROWS } else { record.id.as_str() };
        (self.conversation_id(key, natural, record.account.as_deref()), grouped)
    }

    /// Normalises one conversation.
    ///
    /// # Errors
    /// When a message cannot be written as JSON.
    pub(super) fn conversation(
        &self,
        record: ConversationRecord,
        keep: &mut StoreAttachment<'_>,
    ) -> serde_json::Result<NormalisedConversation> {
        let (id, grouped) = self.message_namespace(&record);
        let node = |key: &str| ids::message_id(id, key).to_string();
        let report = ConversationReport {
            provider_conversation_id: record.provider_conversation_id,
            account: record.account,
            format: record.export_format_version,
            title: record.title,
            created_at: record.created_at,
            updated_at: record.updated_at,
            participants: record.participants,
            model: record.model,
            system_instruction: record.system_instruction,
            is_archived: record.is_archived,
            tags: record.tags,
            current: record.current.as_deref().map(node),
            raw_metadata: record.raw_metadata,
        };
        let mut nodes = Vec::with_capacity(record.messages.len());
        for message in record.messages {
            let id = node(&message.id);
            let parent = message.parent.as_deref().map(node);
            nodes.push(ReportedNode::new(id, parent, &body(message, keep))?);
        }
        let platform = self.platform.clone();
        let id = if grouped {
            groups::conversation_id(&platform, report.account.as_deref(), &nodes)
        } else {
            id.to_string()
        };
        Ok(NormalisedConversation {
            id,
            platform,
            import: None,
            foreign: false,
            untrusted: None,
            report,
            weight: weight(&nodes),
            nodes,
        })
    }

    /// Normalises a piece of evidence; `newest` is the time of evidence that has none.
    pub(super) fn evidence(&self, record: Evidence, newest: i64, place: &KeyScope) -> StoredEvidence {
        let account = record.account;
        let (key, natural) = match place {
            KeyScope::Provider => (record.conversation.as_deref(), false),
            KeyScope::Natural => (record.conversation.as_deref(), true),
            KeyScope::Rows { .. } => (Some(ROWS), true),
        };
        let id = key.map(|key| self.conversation_id(key, natural, account.as_deref()));
        let message = id.zip(record.message.as_deref()).map(|(id, key)| ids::message_id(id, key).to_string());
        let (conversation, row) = match place {
            KeyScope::Provider | KeyScope::Natural => (id.map(|id| id.to_string()), None),
            KeyScope::Rows { conversation, first } => {
                (Some(conversation.clone()), message.clone().or_else(|| Some(first.clone())))
            }
        };
        let key = format!("{}\n{}", record.id, evidence::subject(&record.claim));
        StoredEvidence {
            id: ids::evidence_id(&self.platform, account.as_deref(), &key).to_string(),
            platform: self.platform.clone(),
            at: record.at.unwrap_or(newest),
            conversation,
            message,
            row,
            method: record.extraction_method,
            extractor: self.extractor.clone(),
            claim: record.claim,
            account,
        }
    }
}

/// Returns the approximate number of bytes that nodes occupy in memory until they are stored.
pub(super) fn weight(nodes: &[ReportedNode]) -> usize {
    nodes.iter().map(|node| node.bytes.len() * 2 + 256).sum()
}

fn body(message: MessageRecord, keep: &mut StoreAttachment<'_>) -> Body {
    let MessageRecord {
        id: _,
        provider_message_id,
        role,
        content,
        created_at,
        parent: _,
        model,
        is_thought,
        token_count,
        attachments,
        citations,
        tool_calls,
        raw_metadata,
    } = message;
    Body {
        provider_message_id,
        role,
        content,
        created_at,
        model,
        is_thought,
        token_count,
        attachments: attachments.into_iter().map(keep).collect(),
        citations,
        tool_calls,
        raw_metadata: raw_metadata.filter(|raw: &RawObject| raw.as_str() != "{}"),
    }
}
