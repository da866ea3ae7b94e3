//! Conversations without their messages, and the filter for conversations.

use prost::Message as _;
use satchel_core::recording::{Attribution, attribution};
use satchel_pam::conversation::{
    ConversationHeader, ConversationTemporal, ImportMetadata, Participant, Provider, Role,
};
use satchel_proto::{integers::signed, v1};
use satchel_store::{ConversationQuery, ConversationSummary, Revision};

use super::{
    WireError,
    memory::{MAX_ROW_BYTES, known_timestamp_to_wire, timestamp_to_wire},
    scalar::{enum_pair, known_micros_to_wire, range_from_wire, truncate, value_from_wire, values_from_wire},
};

/// Length of a truncated text, in bytes.
const TRUNCATED_BYTES: usize = 256 << 10;
/// Number of participants in an abridged conversation.
const TRUNCATED_PARTICIPANTS: usize = 100;

enum_pair!(role_to_wire, role_from_wire, Role, v1::Role, [
    User => User,
    Assistant => Assistant,
    System => System,
    Tool => Tool,
]);

/// The fields that the daemon adds to a conversation's header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationState {
    /// Number of all messages.
    pub messages: u64,
    /// The leaf of the branch that the user saw last.
    pub active_leaf: Option<String>,
    /// Number of messages in that branch.
    pub active_messages: u64,
    /// The revision that changed the conversation last.
    pub revision: Revision,
    /// Whether the conversation is withdrawn, so that it is no longer shown.
    pub withdrawn: bool,
}

/// Converts a conversation to the wire.
#[must_use]
pub fn conversation_to_wire(header: ConversationHeader, state: ConversationState) -> v1::Conversation {
    let ConversationHeader {
        id,
        provider,
        title,
        temporal,
        participants,
        model,
        system_instruction,
        is_archived,
        tags,
        raw_metadata,
        import_metadata,
    } = header;
    let Provider { name, conversation_id, account_id, export_format_version } = provider;
    let ConversationTemporal { created_at, updated_at } = temporal;
    let ConversationState { messages, active_leaf, active_messages, revision, withdrawn } = state;
    let mut wire = v1::Conversation {
        id,
        platform: name,
        provider_conversation_id: conversation_id,
        account: account_id,
        title,
        model,
        created_at: known_timestamp_to_wire(created_at),
        updated_at: updated_at.and_then(known_timestamp_to_wire),
        message_count: signed(messages),
        tags,
        is_archived,
        system_instruction,
        participants: participants.into_iter().map(participant_to_wire).collect(),
        raw_metadata_json: raw_metadata.map(|raw| raw.as_str().to_owned()),
        active_leaf_id: active_leaf,
        active_message_count: Some(signed(active_messages)),
        mod_revision: signed(revision.get()),
        export_format_version,
        abridged: false,
        import_metadata: import_metadata.map(import_metadata_to_wire),
        withdrawn,
        agent_id: None,
        user_id: None,
        session_id: None,
        summary: None,
    };
    abridge(&mut wire);
    wire
}

fn abridge(wire: &mut v1::Conversation) {
    if wire.encoded_len() <= MAX_ROW_BYTES {
        return;
    }
    let shorten = |text: &mut Option<String>| *text = text.take().map(|text| truncate(text, TRUNCATED_BYTES));
    wire.abridged = true;
    wire.raw_metadata_json = None;
    shorten(&mut wire.title);
    shorten(&mut wire.system_instruction);
    wire.participants.truncate(TRUNCATED_PARTICIPANTS);
}

fn participant_to_wire(participant: Participant) -> v1::Participant {
    let Participant { role, name, provider_id } = participant;
    v1::Participant { role: role_to_wire(role), name, provider_id }
}

fn import_metadata_to_wire(metadata: ImportMetadata) -> v1::ImportMetadata {
    let ImportMetadata { importer, importer_version, imported_at, source_file, source_checksum } = metadata;
    v1::ImportMetadata {
        importer,
        importer_version,
        imported_at: imported_at.map(timestamp_to_wire),
        source_file,
        source_checksum: source_checksum.map(|digest| digest.to_string()),
    }
}

/// Converts a row of the list to the wire.
#[must_use]
pub fn summary_to_wire(summary: ConversationSummary) -> v1::Conversation {
    let ConversationSummary {
        id,
        title,
        platform,
        account,
        created_at_micros,
        updated_at_micros,
        messages,
        archived,
        tags,
        revision,
    } = summary;
    let mut wire = v1::Conversation {
        id,
        platform,
        account,
        title,
        created_at: known_micros_to_wire(created_at_micros),
        updated_at: known_micros_to_wire(updated_at_micros),
        message_count: messages.into(),
        tags,
        is_archived: archived,
        mod_revision: signed(revision.get()),
        ..v1::Conversation::default()
    };
    abridge(&mut wire);
    wire
}

/// Reads a filter; `None` selects all conversations. Both parts of the result must match.
///
/// # Errors
/// Too many or too long values, and ranges that end before they begin.
pub fn filter_from_wire(
    wire: Option<v1::ConversationFilter>,
) -> Result<(ConversationQuery, AttributionFilter), WireError> {
    let v1::ConversationFilter {
        platforms,
        created,
        updated,
        tags_all,
        title_contains,
        tags_any,
        accounts,
        is_archived,
        agent_ids,
        user_ids,
        session_ids,
    } = wire.unwrap_or_default();
    let query = ConversationQuery {
        platforms: values_from_wire("filter.platforms", platforms)?,
        accounts: values_from_wire("filter.accounts", accounts)?,
        tags_any: values_from_wire("filter.tags_any", tags_any)?,
        tags_all: values_from_wire("filter.tags_all", tags_all)?,
        archived: is_archived,
        created: range_from_wire("filter.created", created)?,
        updated: range_from_wire("filter.updated", updated)?,
        title_contains: value_from_wire("filter.title_contains", title_contains)?,
    };
    let attribution = AttributionFilter {
        agents: values_from_wire("filter.agent_ids", agent_ids)?,
        users: values_from_wire("filter.user_ids", user_ids)?,
        sessions: values_from_wire("filter.session_ids", session_ids)?,
    };
    Ok((query, attribution))
}

/// A filter by who took part in a conversation. An empty field does not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttributionFilter {
    /// Any of these agents.
    pub agents: Vec<String>,
    /// Any of these users.
    pub users: Vec<String>,
    /// Any of these sessions.
    pub sessions: Vec<String>,
}

impl AttributionFilter {
    /// Returns whether every conversation passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { agents, users, sessions } = self;
        agents.is_empty() && users.is_empty() && sessions.is_empty()
    }

    /// Returns whether a conversation passes.
    #[must_use]
    pub fn matches(&self, header: &ConversationHeader) -> bool {
        self.is_empty() || attribution(header).is_some_and(|found| self.accepts(&found))
    }

    fn accepts(&self, found: &Attribution) -> bool {
        let Attribution { agent_id, user_id, session_id } = found;
        [(&self.agents, agent_id), (&self.users, user_id), (&self.sessions, session_id)]
            .into_iter()
            .all(|(any, value)| any.is_empty() || value.as_ref().is_some_and(|value| any.contains(value)))
    }
}

#[cfg(test)]
mod tests;
