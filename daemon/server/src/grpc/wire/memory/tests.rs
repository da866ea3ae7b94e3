//! Tests of round trips and views of memories.

use proptest::{collection::vec, option, prelude::*, sample::select};
use satchel_pam::hash::ContentHash;
use satchel_store::{MemoryOrder, MemoryQuery, Origin, Revision, TimeRange};
use serde_json::{Map, Value, json};

use super::*;
use crate::grpc::wire::testing::{known_timestamp_from_wire, range_to_wire};

fn text() -> impl Strategy<Value = Option<String>> {
    option::of(".{1,12}")
}

fn time() -> impl Strategy<Value = Timestamp> {
    (0..4_000_000_000_000_000_i64)
        .prop_map(|micros| Timestamp::from_micros(micros).unwrap_or(Timestamp::EPOCH))
}

fn confidence() -> impl Strategy<Value = Confidence> {
    (option::of(0.0..=1.0), option::of(0.0..=1.0), option::of(select(DecayModel::ALL)), option::of(time()))
        .prop_map(|(initial, current, decay_model, last_reinforced)| Confidence {
            initial,
            current,
            decay_model,
            last_reinforced,
        })
}

fn temporal() -> impl Strategy<Value = Temporal> {
    (time(), option::of(time()), option::of(time()), option::of(time()), text()).prop_map(
        |(created_at, updated_at, valid_from, valid_until, superseded_by)| Temporal {
            created_at,
            updated_at,
            valid_from,
            valid_until,
            superseded_by,
        },
    )
}

fn provenance() -> impl Strategy<Value = Provenance> {
    (
        "[a-z]{2,8}",
        (text(), text(), text(), text()),
        option::of(select(ExtractionMethod::ALL)),
        option::of(time()),
    )
        .prop_map(|(platform, texts, extraction_method, extracted_at)| Provenance {
            platform,
            platform_user_id: texts.0,
            conversation_ref: texts.1,
            message_ref: texts.2,
            extraction_method,
            extracted_at,
            extractor: texts.3,
        })
}

fn access() -> impl Strategy<Value = Access> {
    let grant = (".{1,8}", vec(select(Permission::ALL), 1..3))
        .prop_map(|(entity, permissions)| AccessGrant { entity, permissions });
    (select(Visibility::ALL), any::<bool>(), vec(grant, 0..3))
        .prop_map(|(visibility, exportable, shared_with)| Access { visibility, exportable, shared_with })
}

fn metadata() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no infinities", |number| number.is_finite()).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!({"a": [null, true]})),
    ];
    vec((".{0,6}", value), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

fn memory() -> impl Strategy<Value = Memory> {
    let head = (".{1,12}", select(MemoryType::ALL), text(), select(Status::ALL), ".{1,40}", text());
    let rest = (option::of(confidence()), temporal(), provenance(), option::of(access()), text(), metadata());
    (head, vec("[a-z]{1,6}", 0..3), rest).prop_map(|(head, tags, rest)| Memory {
        content_hash: ContentHash::of(&head.4),
        id: head.0,
        memory_type: head.1,
        custom_type: head.2,
        status: head.3,
        content: head.4,
        summary: head.5,
        tags,
        confidence: rest.0,
        temporal: rest.1,
        provenance: rest.2,
        access: rest.3,
        embedding_ref: rest.4,
        metadata: rest.5,
    })
}

fn range() -> impl Strategy<Value = TimeRange> {
    (option::of(0..1_000_i64), option::of(1_000..2_000_i64))
        .prop_map(|(from, until)| TimeRange { from, until })
}

fn query() -> impl Strategy<Value = MemoryQuery> {
    let lists = (vec("[a-z]{1,5}", 0..3), vec(".{1,5}", 0..3), vec(".{1,5}", 0..3), vec(".{1,5}", 0..3));
    (
        vec(select(MemoryType::ALL), 0..3),
        vec(select(Status::ALL), 1..3),
        lists,
        (text(), text()),
        (range(), range()),
    )
        .prop_map(|(types, statuses, lists, (conversation, content_hash), (created, updated))| {
            MemoryQuery {
                types,
                statuses,
                platforms: lists.0,
                accounts: lists.1,
                tags_any: lists.2,
                tags_all: lists.3,
                conversation,
                created,
                updated,
                content_hash,
                valid_at: created.from,
                expired_at: updated.until,
                unexpired_at: None,
                ids: Vec::new(),
                order: MemoryOrder::default(),
            }
        })
}

fn record(memory: Memory) -> MemoryRecord {
    let (created_revision, revision) = (Revision::new(3), Revision::new(5));
    MemoryRecord {
        memory,
        withdrawn: false,
        version: 2,
        created_revision,
        revision,
        origin: Origin::default(),
    }
}

proptest! {
    #[test]
    fn a_memory_survives_a_round_trip(memory in memory()) {
        let wire = memory_to_wire(memory.clone()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(memory_from_wire(wire), Ok(memory));
    }

    #[test]
    fn a_filter_survives_a_round_trip(query in query()) {
        let back = filter_from_wire(Some(filter_to_wire(query.clone())));
        // The query does not implement `PartialEq`.
        prop_assert_eq!(format!("{back:?}"), format!("{:?}", Ok::<_, WireError>(query)));
    }

    #[test]
    fn the_json_view_contains_the_memory_of_an_export(memory in memory()) {
        let shown = record_to_wire(record(memory.clone()), View::PamJson)
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&shown.pam_json, &serde_json::to_string(&memory).unwrap_or_default());
        prop_assert_eq!((shown.create_revision, shown.mod_revision, shown.version), (3, 5, 2));
    }

    #[test]
    fn any_memory_fits_in_a_row(memory in memory(), length in 0..3_000_000_usize) {
        let long = Memory { content: "é".repeat(length / 2 + 1), ..memory };
        for view in [View::Basic, View::Full, View::PamJson] {
            let shown = record_to_wire(record(long.clone()), view)
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert!(shown.encoded_len() <= MAX_ROW_BYTES);
            prop_assert!(long.content.starts_with(&shown.content));
            prop_assert!(shown.abridged || view == View::Basic || shown.content == long.content);
        }
    }
}

#[test]
fn a_filter_without_statuses_selects_active_memories() {
    let query = filter_from_wire(None).map(|query| query.statuses);
    assert_eq!(query, Ok(vec![Status::Active]));
}

#[test]
fn unknown_enum_values_are_refused_with_the_field() {
    for number in [0, 99, -1] {
        let filter = v1::MemoryFilter { types: vec![number], ..v1::MemoryFilter::default() };
        let field = filter_from_wire(Some(filter)).err().map(|error| error.field);
        assert_eq!(field.as_deref(), Some("filter.types"));
    }
    assert!(view_from_wire(9, View::Full).is_err());
    assert!(order_from_wire(9).is_err());
}

/// Reads a memory in the full view from the wire.
fn memory_from_wire(wire: v1::Memory) -> Result<Memory, WireError> {
    let v1::Memory {
        id,
        r#type,
        custom_type,
        status,
        content,
        content_hash,
        summary,
        tags,
        confidence,
        temporal,
        provenance,
        access,
        embedding_ref,
        metadata_json,
        quarantined: _,
        etag: _,
        create_revision: _,
        mod_revision: _,
        version: _,
        pam_json: _,
        abridged,
        withdrawn: _,
    } = wire;
    if abridged {
        return Err(WireError::new("abridged", "is set, so the memory is incomplete"));
    }
    Ok(Memory {
        id: not_empty("id", id)?,
        memory_type: memory_type_from_wire("type", r#type)?,
        custom_type,
        status: status_from_wire("status", status)?,
        content: not_empty("content", content)?,
        content_hash: ContentHash::parse(&content_hash)
            .map_err(|error| WireError::new("content_hash", error.to_string()))?,
        summary,
        tags,
        confidence: confidence.map(confidence_from_wire).transpose()?,
        temporal: temporal_from_wire(temporal.ok_or_else(|| WireError::new("temporal", "is missing"))?)?,
        provenance: provenance_from_wire(
            provenance.ok_or_else(|| WireError::new("provenance", "is missing"))?,
        )?,
        access: access.map(access_from_wire).transpose()?,
        embedding_ref,
        metadata: match metadata_json {
            Some(json) => serde_json::from_str(&json)
                .map_err(|_| WireError::new("metadata_json", "is not a JSON object"))?,
            None => Map::new(),
        },
    })
}

fn confidence_from_wire(wire: v1::Confidence) -> Result<Confidence, WireError> {
    let v1::Confidence { initial, current, decay_model, last_reinforced, faded: _ } = wire;
    Ok(Confidence {
        initial,
        current,
        decay_model: (decay_model != 0)
            .then(|| decay_from_wire("confidence.decay_model", decay_model))
            .transpose()?,
        last_reinforced: timestamp_from_wire("confidence.last_reinforced", last_reinforced)?,
    })
}

fn temporal_from_wire(wire: v1::Temporal) -> Result<Temporal, WireError> {
    let v1::Temporal { created_at, updated_at, valid_from, valid_until, superseded_by } = wire;
    Ok(Temporal {
        created_at: known_timestamp_from_wire("temporal.created_at", created_at)?,
        updated_at: timestamp_from_wire("temporal.updated_at", updated_at)?,
        valid_from: timestamp_from_wire("temporal.valid_from", valid_from)?,
        valid_until: timestamp_from_wire("temporal.valid_until", valid_until)?,
        superseded_by,
    })
}

fn provenance_from_wire(wire: v1::Provenance) -> Result<Provenance, WireError> {
    let v1::Provenance {
        platform,
        platform_user_id,
        conversation_ref,
        message_ref,
        extraction_method,
        extracted_at,
        extractor,
    } = wire;
    let method = extraction_method;
    Ok(Provenance {
        platform: not_empty("provenance.platform", platform)?,
        platform_user_id,
        conversation_ref,
        message_ref,
        extraction_method: (method != 0)
            .then(|| method_from_wire("provenance.extraction_method", method))
            .transpose()?,
        extracted_at: timestamp_from_wire("provenance.extracted_at", extracted_at)?,
        extractor,
    })
}

/// Converts a query to a filter. A filter cannot represent its `ids` and its order.
#[must_use]
fn filter_to_wire(query: MemoryQuery) -> v1::MemoryFilter {
    let MemoryQuery {
        types,
        statuses,
        platforms,
        accounts,
        tags_any,
        tags_all,
        conversation,
        created,
        updated,
        content_hash,
        valid_at,
        expired_at,
        unexpired_at: _,
        ids: _,
        order: _,
    } = query;
    v1::MemoryFilter {
        types: types.into_iter().map(memory_type_to_wire).collect(),
        statuses: statuses.into_iter().map(status_to_wire).collect(),
        platforms,
        tags_any,
        tags_all,
        conversation_id: conversation.unwrap_or_default(),
        created: range_to_wire(created),
        updated: range_to_wire(updated),
        accounts,
        content_hash: content_hash.unwrap_or_default(),
        valid_at: valid_at.map(time_to_wire),
        expired_at: expired_at.map(time_to_wire),
        include_expired: false,
    }
}
