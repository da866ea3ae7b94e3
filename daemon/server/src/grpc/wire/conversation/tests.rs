//! Tests of round trips and truncation of conversations.

use proptest::{collection::vec, option, prelude::*, sample::select};
use satchel_pam::{hash::Sha256Digest, raw::RawObject, time::Timestamp};
use satchel_proto::integers::unsigned;
use satchel_store::TimeRange;

use super::*;
use crate::grpc::wire::{
    memory::{not_empty, timestamp_from_wire},
    testing::{counts, known_micros_from_wire, known_timestamp_from_wire, range_to_wire, raw_from_wire},
};

fn text() -> impl Strategy<Value = Option<String>> {
    option::of(".{1,12}")
}

fn time() -> impl Strategy<Value = Timestamp> {
    (0..4_000_000_000_000_000_i64)
        .prop_map(|micros| Timestamp::from_micros(micros).unwrap_or(Timestamp::EPOCH))
}

fn raw() -> impl Strategy<Value = Option<RawObject>> {
    let text = select(vec!["{}", r#"{"a":[1,null]}"#, r#"{"hidden":true,"b":1.50}"#]);
    option::of(text.prop_map(|text| RawObject::parse(text.to_owned()).unwrap_or_default()))
}

fn header() -> impl Strategy<Value = ConversationHeader> {
    let participant = (select(Role::ALL), text(), text()).prop_map(|(role, name, provider_id)| Participant {
        role,
        name,
        provider_id,
    });
    let import = (text(), text(), option::of(time()), text(), any::<bool>()).prop_map(
        |(importer, importer_version, imported_at, source_file, digest)| ImportMetadata {
            importer,
            importer_version,
            imported_at,
            source_file,
            source_checksum: digest.then(|| Sha256Digest::of(b"source")),
        },
    );
    let texts = (".{1,12}", "[a-z]{2,8}", vec(text(), 6));
    let rest = (vec(participant, 0..3), vec("[a-z]{1,6}", 0..3), any::<bool>(), raw(), option::of(import));
    (texts, time(), option::of(time()), rest).prop_map(|(texts, created_at, updated_at, rest)| {
        let mut more = texts.2;
        let mut next = || more.pop().flatten();
        ConversationHeader {
            id: texts.0,
            provider: Provider {
                name: texts.1,
                conversation_id: next(),
                account_id: next(),
                export_format_version: next(),
            },
            title: next(),
            temporal: ConversationTemporal { created_at, updated_at },
            participants: rest.0,
            model: next(),
            system_instruction: next(),
            is_archived: rest.2,
            tags: rest.1,
            raw_metadata: rest.3,
            import_metadata: rest.4,
        }
    })
}

proptest! {
    #[test]
    fn a_conversation_survives_a_round_trip(header in header(), [messages] in counts(), active_leaf in text(), at in 1..9_u64) {
        let (active_messages, revision, withdrawn) = (messages / 2, Revision::new(at), at % 2 == 0);
        let state = ConversationState { messages, active_leaf, active_messages, revision, withdrawn };
        let wire = conversation_to_wire(header.clone(), state.clone());
        prop_assert_eq!(conversation_from_wire(wire), Ok((header, state)));
    }

    #[test]
    fn a_summary_survives_a_round_trip(
        names in (".{1,12}", text(), "[a-z]{2,8}", text()),
        times in (0..1_000_000_i64, 0..1_000_000_i64),
        messages in any::<u32>(),
        archived in any::<bool>(),
        tags in vec("[a-z]{1,6}", 0..3),
    ) {
        let summary = ConversationSummary {
            id: names.0,
            title: names.1,
            platform: names.2,
            account: names.3,
            created_at_micros: times.0,
            updated_at_micros: times.1,
            messages,
            archived,
            tags,
            revision: Revision::new(4),
        };
        prop_assert_eq!(summary_from_wire(summary_to_wire(summary.clone())), Ok(summary));
    }

    #[test]
    fn a_filter_survives_a_round_trip(
        lists in vec(vec(".{1,6}", 0..3), 4),
        archived in option::of(any::<bool>()),
        title_contains in text(),
        from in option::of(0..1_000_i64),
    ) {
        let range = TimeRange { from, until: None };
        let query = ConversationQuery {
            platforms: lists[0].clone(),
            accounts: lists[1].clone(),
            tags_any: lists[2].clone(),
            tags_all: lists[3].clone(),
            archived,
            created: range,
            updated: range,
            title_contains,
        };
        let back = filter_from_wire(Some(filter_to_wire(query.clone()))).map(|(query, _)| query);
        // The query does not implement `PartialEq`.
        prop_assert_eq!(format!("{back:?}"), format!("{:?}", Ok::<_, WireError>(query)));
    }

    #[test]
    fn any_conversation_fits_in_a_row(header in header(), length in 0..3_000_000_usize) {
        let long = ConversationHeader { system_instruction: Some("x".repeat(length)), ..header };
        let shown = conversation_to_wire(long, ConversationState::default());
        prop_assert!(shown.encoded_len() <= MAX_ROW_BYTES);
        prop_assert!(shown.abridged || shown.system_instruction.is_some_and(|text| text.len() == length));
    }
}

/// Reads a conversation from the wire.
fn conversation_from_wire(
    wire: v1::Conversation,
) -> Result<(ConversationHeader, ConversationState), WireError> {
    let v1::Conversation {
        id,
        platform,
        provider_conversation_id,
        account,
        title,
        model,
        created_at,
        updated_at,
        message_count,
        tags,
        is_archived,
        system_instruction,
        participants,
        raw_metadata_json,
        active_leaf_id,
        active_message_count,
        mod_revision,
        export_format_version,
        abridged,
        withdrawn,
        import_metadata,
        // These are derived from the others and from the messages.
        agent_id: _,
        user_id: _,
        session_id: _,
        summary: _,
    } = wire;
    if abridged {
        return Err(WireError::new("abridged", "is set, so the conversation is incomplete"));
    }
    let header = ConversationHeader {
        id: not_empty("id", id)?,
        provider: Provider {
            name: not_empty("platform", platform)?,
            conversation_id: provider_conversation_id,
            account_id: account,
            export_format_version,
        },
        title,
        temporal: ConversationTemporal {
            created_at: known_timestamp_from_wire("created_at", created_at)?,
            updated_at: timestamp_from_wire("updated_at", updated_at)?,
        },
        participants: participants.into_iter().map(participant_from_wire).collect::<Result<_, _>>()?,
        model,
        system_instruction,
        is_archived,
        tags,
        raw_metadata: raw_from_wire("raw_metadata_json", raw_metadata_json)?,
        import_metadata: import_metadata.map(import_metadata_from_wire).transpose()?,
    };
    let state = ConversationState {
        messages: unsigned(message_count),
        active_leaf: active_leaf_id,
        active_messages: unsigned(active_message_count.unwrap_or_default()),
        revision: Revision::new(unsigned(mod_revision)),
        withdrawn,
    };
    Ok((header, state))
}

fn participant_from_wire(wire: v1::Participant) -> Result<Participant, WireError> {
    let v1::Participant { role, name, provider_id } = wire;
    Ok(Participant { role: role_from_wire("participants.role", role)?, name, provider_id })
}

fn import_metadata_from_wire(wire: v1::ImportMetadata) -> Result<ImportMetadata, WireError> {
    let v1::ImportMetadata { importer, importer_version, imported_at, source_file, source_checksum } = wire;
    let digest = source_checksum.as_deref().map(Sha256Digest::parse).transpose();
    Ok(ImportMetadata {
        importer,
        importer_version,
        imported_at: timestamp_from_wire("import_metadata.imported_at", imported_at)?,
        source_file,
        source_checksum: digest
            .map_err(|error| WireError::new("import_metadata.source_checksum", error.to_string()))?,
    })
}

/// Reads a row of the list from the wire.
fn summary_from_wire(wire: v1::Conversation) -> Result<ConversationSummary, WireError> {
    // A row leaves the other fields out.
    let v1::Conversation {
        id,
        platform,
        account,
        title,
        created_at,
        updated_at,
        message_count,
        tags,
        is_archived,
        mod_revision,
        ..
    } = wire;
    Ok(ConversationSummary {
        id: not_empty("id", id)?,
        title,
        platform: not_empty("platform", platform)?,
        account,
        created_at_micros: known_micros_from_wire("created_at", created_at)?,
        updated_at_micros: known_micros_from_wire("updated_at", updated_at)?,
        messages: u32::try_from(message_count)
            .map_err(|_| WireError::new("message_count", "is too large"))?,
        archived: is_archived,
        tags,
        revision: Revision::new(unsigned(mod_revision)),
    })
}

/// Converts a query to a filter.
#[must_use]
fn filter_to_wire(query: ConversationQuery) -> v1::ConversationFilter {
    let ConversationQuery {
        platforms,
        accounts,
        tags_any,
        tags_all,
        archived,
        created,
        updated,
        title_contains,
    } = query;
    v1::ConversationFilter {
        platforms,
        created: range_to_wire(created),
        updated: range_to_wire(updated),
        tags_all,
        title_contains: title_contains.unwrap_or_default(),
        tags_any,
        accounts,
        is_archived: archived,
        agent_ids: Vec::new(),
        user_ids: Vec::new(),
        session_ids: Vec::new(),
    }
}

#[test]
fn a_filter_by_attribution_needs_one_value_of_each_field() {
    let texts = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
    let wire = v1::ConversationFilter {
        agent_ids: texts(&["a", "b"]),
        session_ids: texts(&["s"]),
        ..v1::ConversationFilter::default()
    };
    let (_, filter) = filter_from_wire(Some(wire)).unwrap_or_default();
    let found = |agent: Option<&str>, session: Option<&str>| Attribution {
        agent_id: agent.map(str::to_owned),
        user_id: None,
        session_id: session.map(str::to_owned),
    };
    assert!(filter.accepts(&found(Some("b"), Some("s"))));
    assert!(!filter.accepts(&found(Some("c"), Some("s"))));
    assert!(!filter.accepts(&found(Some("a"), None)));
    assert!(!filter.is_empty() && AttributionFilter::default().is_empty());
    let empty = v1::ConversationFilter { user_ids: texts(&[""]), ..v1::ConversationFilter::default() };
    let refused = filter_from_wire(Some(empty)).map_err(|error| error.field).err();
    assert_eq!(refused.as_deref(), Some("filter.user_ids"));
}
