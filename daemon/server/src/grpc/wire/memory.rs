//! Memories and their views.

mod filter;

pub use self::filter::{filter_from_wire, order_from_wire};

use prost::Message as _;
use satchel_pam::{
    memory::{
        Access, AccessGrant, Confidence, DecayModel, ExtractionMethod, Memory, MemoryType, Permission,
        Provenance, Status, Temporal, Visibility,
    },
    time::Timestamp,
};
use satchel_proto::{integers::signed, v1};
use satchel_store::MemoryRecord;

use super::{
    WireError,
    scalar::{enum_pair, time_from_wire, time_to_wire, truncate},
};
use crate::grpc::status::CallError;
use satchel_core::edits::etag;

/// Characters of the content in the basic view: a little more than fits in a row of a table.
const BASIC_CHARS: usize = 280;
/// Largest row of a response, in bytes; in larger rows the texts are truncated.
pub(super) const MAX_ROW_BYTES: usize = 1 << 20;
/// Length of a truncated text, in bytes.
const TRUNCATED_BYTES: usize = 256 << 10;

enum_pair!(memory_type_to_wire, memory_type_from_wire, MemoryType, v1::MemoryType, [
    Fact => Fact,
    Preference => Preference,
    Skill => Skill,
    Context => Context,
    Relationship => Relationship,
    Goal => Goal,
    Instruction => Instruction,
    Identity => Identity,
    Environment => Environment,
    Project => Project,
    Custom => Custom,
]);

enum_pair!(status_to_wire, status_from_wire, Status, v1::MemoryStatus, [
    Active => Active,
    Superseded => Superseded,
    Deprecated => Deprecated,
    Retracted => Retracted,
    Archived => Archived,
]);

enum_pair!(method_to_wire, method_from_wire, ExtractionMethod, v1::ExtractionMethod, [
    LlmInference => LlmInference,
    ExplicitUserInput => ExplicitUserInput,
    ApiExport => ApiExport,
    BrowserExtraction => BrowserExtraction,
    Manual => Manual,
]);

enum_pair!(decay_to_wire, decay_from_wire, DecayModel, v1::DecayModel, [
    TimeLinear => TimeLinear,
    TimeExponential => TimeExponential,
    None => None,
]);

enum_pair!(visibility_to_wire, visibility_from_wire, Visibility, v1::Visibility, [
    Private => Private,
    Shared => Shared,
    Public => Public,
]);

enum_pair!(permission_to_wire, permission_from_wire, Permission, v1::Permission, [
    Read => Read,
    Write => Write,
    Delete => Delete,
]);

/// How much of a memory to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The fields for a row of a table.
    Basic,
    /// All fields.
    Full,
    /// All fields, and the JSON of an export.
    PamJson,
}

/// Reads a view; `unset` replaces an unspecified one.
///
/// # Errors
/// An unknown number.
pub fn view_from_wire(wire: i32, unset: View) -> Result<View, WireError> {
    match v1::MemoryView::try_from(wire) {
        Ok(v1::MemoryView::Unspecified) => Ok(unset),
        Ok(v1::MemoryView::Basic) => Ok(View::Basic),
        Ok(v1::MemoryView::Full) => Ok(View::Full),
        Ok(v1::MemoryView::PamJson) => Ok(View::PamJson),
        Err(_) => Err(WireError::new("view", format!("holds {wire}, which is not a known value"))),
    }
}

/// Converts a stored memory to the wire.
///
/// # Errors
/// If it cannot be encoded as JSON, which does not happen for stored memories.
pub fn record_to_wire(record: MemoryRecord, view: View) -> Result<v1::Memory, CallError> {
    let etag = etag(&record);
    let MemoryRecord { memory, withdrawn, version, created_revision, revision, origin: _ } = record;
    let pam_json = match view {
        View::PamJson => serde_json::to_string(&memory).map_err(CallError::internal)?,
        View::Basic | View::Full => String::new(),
    };
    let wire = v1::Memory {
        etag,
        create_revision: signed(created_revision.get()),
        mod_revision: signed(revision.get()),
        version: signed(version),
        withdrawn,
        pam_json,
        ..memory_to_wire(memory)?
    };
    Ok(in_view(wire, view))
}

/// Converts a memory that an agent wrote, and that is not a record of the store yet, to the wire.
///
/// # Errors
/// As [`record_to_wire`].
pub fn quarantined_to_wire(memory: Memory, view: View) -> Result<v1::Memory, CallError> {
    let pam_json = match view {
        View::PamJson => serde_json::to_string(&memory).map_err(CallError::internal)?,
        View::Basic | View::Full => String::new(),
    };
    Ok(in_view(v1::Memory { pam_json, ..memory_to_wire(memory)? }, view))
}

fn in_view(mut wire: v1::Memory, view: View) -> v1::Memory {
    if view == View::Basic {
        to_basic(&mut wire);
    }
    abridge(&mut wire);
    wire
}

fn to_basic(wire: &mut v1::Memory) {
    if let Some((end, _)) = wire.content.char_indices().nth(BASIC_CHARS) {
        wire.content.truncate(end);
    }
    wire.confidence = None;
    wire.access = None;
    wire.embedding_ref = None;
    wire.metadata_json = None;
}

/// Truncates a row that is too large, and marks it as abridged.
fn abridge(wire: &mut v1::Memory) {
    if wire.encoded_len() <= MAX_ROW_BYTES {
        return;
    }
    wire.abridged = true;
    wire.content = truncate(std::mem::take(&mut wire.content), TRUNCATED_BYTES);
    wire.summary = wire.summary.take().map(|summary| truncate(summary, TRUNCATED_BYTES));
    wire.metadata_json = None;
    wire.pam_json = String::new();
}

/// Converts a complete memory to the wire; the daemon's own fields stay empty.
///
/// # Errors
/// If its metadata cannot be encoded as JSON, which does not happen.
pub fn memory_to_wire(memory: Memory) -> Result<v1::Memory, CallError> {
    let Memory {
        id,
        memory_type,
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
        metadata,
    } = memory;
    let metadata_json = (!metadata.is_empty())
        .then(|| serde_json::to_string(&metadata))
        .transpose()
        .map_err(CallError::internal)?;
    Ok(v1::Memory {
        id,
        r#type: memory_type_to_wire(memory_type),
        custom_type,
        status: status_to_wire(status),
        content,
        content_hash: content_hash.to_string(),
        summary,
        tags,
        confidence: confidence.as_ref().map(confidence_to_wire),
        temporal: Some(temporal_to_wire(temporal)),
        provenance: Some(provenance_to_wire(provenance)),
        access: access.map(access_to_wire),
        embedding_ref,
        metadata_json,
        etag: String::new(),
        create_revision: 0,
        mod_revision: 0,
        version: 0,
        pam_json: String::new(),
        abridged: false,
        withdrawn: false,
        quarantined: false,
    })
}

pub(super) fn not_empty(field: &str, text: String) -> Result<String, WireError> {
    if text.is_empty() { Err(WireError::new(field, "must not be empty")) } else { Ok(text) }
}

pub(super) fn timestamp_to_wire(time: Timestamp) -> prost_types::Timestamp {
    time_to_wire(time.micros())
}

/// Converts a time that PAM requires to the wire; `None` if the time is unknown.
pub(in crate::grpc) fn known_timestamp_to_wire(time: Timestamp) -> Option<prost_types::Timestamp> {
    time.known().then(|| timestamp_to_wire(time))
}

pub(super) fn timestamp_from_wire(
    field: &str,
    wire: Option<prost_types::Timestamp>,
) -> Result<Option<Timestamp>, WireError> {
    let Some(wire) = wire else { return Ok(None) };
    let micros = time_from_wire(field, wire)?;
    Timestamp::from_micros(micros)
        .map(Some)
        .ok_or_else(|| WireError::new(field, "is outside the years 1 to 9999"))
}

fn confidence_to_wire(confidence: &Confidence) -> v1::Confidence {
    let Confidence { initial, current, decay_model, last_reinforced } = *confidence;
    v1::Confidence {
        initial,
        current,
        decay_model: decay_model.map(decay_to_wire).unwrap_or_default(),
        last_reinforced: last_reinforced.map(timestamp_to_wire),
        faded: None,
    }
}

fn temporal_to_wire(temporal: Temporal) -> v1::Temporal {
    let Temporal { created_at, updated_at, valid_from, valid_until, superseded_by } = temporal;
    v1::Temporal {
        created_at: known_timestamp_to_wire(created_at),
        updated_at: updated_at.and_then(known_timestamp_to_wire),
        valid_from: valid_from.map(timestamp_to_wire),
        valid_until: valid_until.map(timestamp_to_wire),
        superseded_by,
    }
}

fn provenance_to_wire(provenance: Provenance) -> v1::Provenance {
    let Provenance {
        platform,
        platform_user_id,
        conversation_ref,
        message_ref,
        extraction_method,
        extracted_at,
        extractor,
    } = provenance;
    v1::Provenance {
        platform,
        platform_user_id,
        conversation_ref,
        message_ref,
        extraction_method: extraction_method.map(method_to_wire).unwrap_or_default(),
        extracted_at: extracted_at.and_then(known_timestamp_to_wire),
        extractor,
    }
}

fn access_to_wire(access: Access) -> v1::Access {
    let Access { visibility, exportable, shared_with } = access;
    let grants = shared_with.into_iter().map(|AccessGrant { entity, permissions }| v1::AccessGrant {
        entity,
        permissions: permissions.into_iter().map(permission_to_wire).collect(),
    });
    v1::Access { visibility: visibility_to_wire(visibility), exportable, shared_with: grants.collect() }
}

pub(super) fn access_from_wire(wire: v1::Access) -> Result<Access, WireError> {
    let v1::Access { visibility, exportable, shared_with } = wire;
    let grant = |v1::AccessGrant { entity, permissions }: v1::AccessGrant| {
        let field = "access.shared_with.permissions";
        let permissions = permissions.into_iter().map(|permission| permission_from_wire(field, permission));
        Ok(AccessGrant { entity, permissions: permissions.collect::<Result<_, WireError>>()? })
    };
    Ok(Access {
        visibility: visibility_from_wire("access.visibility", visibility)?,
        exportable,
        shared_with: shared_with.into_iter().map(grant).collect::<Result<_, WireError>>()?,
    })
}

#[cfg(test)]
mod tests;
