//! New and changed memories, read from the fields that a client names.

use satchel_core::edits::{AgentDraft, Draft};
use satchel_pam::memory::{ExtractionMethod, MemoryType};
use satchel_proto::v1;

use super::{
    WireError,
    memory::{
        access_from_wire, decay_from_wire, memory_type_from_wire, method_from_wire, timestamp_from_wire,
    },
};

/// The paths that a mask may contain.
const MASK_PATHS: [&str; 10] = [
    "content",
    "type",
    "custom_type",
    "summary",
    "tags",
    "temporal.valid_from",
    "temporal.valid_until",
    "confidence.decay_model",
    "access",
    "metadata_json",
];

/// Reads a new memory; without a type it is a fact.
///
/// # Errors
/// Fields that only the daemon sets, and values that cannot be read.
pub fn draft_from_wire(mut wire: v1::Memory) -> Result<Draft, WireError> {
    refuse_daemon_fields(&wire)?;
    if wire.r#type == 0 {
        let unset = if wire.custom_type.is_some() { v1::MemoryType::Custom } else { v1::MemoryType::Fact };
        wire.r#type = unset.into();
    }
    let present = |path: &&str| match *path {
        "content" | "type" => true,
        "summary" => wire.summary.is_some(),
        "tags" => !wire.tags.is_empty(),
        "temporal.valid_from" => wire.temporal.as_ref().is_some_and(|times| times.valid_from.is_some()),
        "temporal.valid_until" => wire.temporal.as_ref().is_some_and(|times| times.valid_until.is_some()),
        "confidence.decay_model" => wire.confidence.as_ref().is_some_and(|one| one.decay_model != 0),
        "access" => wire.access.is_some(),
        "metadata_json" => wire.metadata_json.is_some(),
        _ => false,
    };
    let paths: Vec<String> =
        MASK_PATHS.iter().filter(|path| present(path)).map(|path| (*path).to_owned()).collect();
    change_from_wire(wire, &paths)
}

/// Reads a new memory of an agent, which may also state its confidence, and where the memory comes from.
///
/// # Errors
/// As [`draft_from_wire`].
pub fn agent_draft_from_wire(mut wire: v1::Memory) -> Result<AgentDraft, WireError> {
    let confidence = wire.confidence.as_mut().and_then(|confidence| confidence.initial.take());
    let v1::Provenance {
        platform,
        platform_user_id,
        conversation_ref,
        message_ref,
        extraction_method,
        extracted_at,
        extractor,
    } = wire.provenance.take().unwrap_or_default();
    let set = [
        ("platform", !platform.is_empty()),
        ("platform_user_id", platform_user_id.is_some()),
        ("extracted_at", extracted_at.is_some()),
        ("extractor", extractor.is_some()),
    ];
    if let Some((field, _)) = set.iter().find(|(_, set)| *set) {
        let field = format!("memory.provenance.{field}");
        return Err(WireError::new(field, "is set by the daemon; leave it out"));
    }
    let method = match extraction_method {
        0 => ExtractionMethod::LlmInference,
        number => method_from_wire("memory.provenance.extraction_method", number)?,
    };
    Ok(AgentDraft {
        draft: draft_from_wire(wire)?,
        confidence,
        conversation: conversation_ref,
        message: message_ref,
        method,
    })
}

/// Reads the fields that `paths` name.
///
/// # Errors
/// No path, unknown paths, and values that cannot be read.
pub fn change_from_wire(wire: v1::Memory, paths: &[String]) -> Result<Draft, WireError> {
    if paths.is_empty() {
        return Err(WireError::new("update_mask", "must name at least one field"));
    }
    let mut draft = Draft::default();
    let times = wire.temporal.clone().unwrap_or_default();
    for path in paths {
        match path.as_str() {
            "content" => draft.content = Some(wire.content.clone()),
            "type" | "custom_type" => draft.kind = Some(type_from_wire(&wire, path)?),
            "summary" => draft.summary = Some(wire.summary.clone()),
            "tags" => draft.tags = Some(wire.tags.clone()),
            "temporal.valid_from" => draft.valid_from = Some(timestamp_from_wire(path, times.valid_from)?),
            "temporal.valid_until" => draft.valid_until = Some(timestamp_from_wire(path, times.valid_until)?),
            "confidence.decay_model" => {
                let model = wire.confidence.as_ref().map_or(0, |confidence| confidence.decay_model);
                let model = (model != 0).then(|| decay_from_wire(path, model)).transpose()?;
                draft.decay = Some(model);
            }
            "access" => {
                let access = wire.access.clone().ok_or_else(|| WireError::new("access", "is missing"))?;
                draft.access = Some(access_from_wire(access)?);
            }
            "metadata_json" => {
                let json = wire.metadata_json.as_deref().unwrap_or("{}");
                let object = serde_json::from_str(json)
                    .map_err(|_| WireError::new("metadata_json", "is not a JSON object"))?;
                draft.metadata = Some(object);
            }
            _ => {
                let problem = format!("contains {path:?}; known paths are {}", MASK_PATHS.join(", "));
                return Err(WireError::new("update_mask", problem));
            }
        }
    }
    Ok(draft)
}

/// Reads type and custom type together. A path that names only the custom type means the type custom.
fn type_from_wire(wire: &v1::Memory, path: &str) -> Result<(MemoryType, Option<String>), WireError> {
    let custom = wire.custom_type.clone().filter(|custom| !custom.is_empty());
    if path == "custom_type" && wire.r#type == 0 {
        return Ok((MemoryType::Custom, custom));
    }
    Ok((memory_type_from_wire("type", wire.r#type)?, custom))
}

/// Refuses fields that only the daemon sets.
fn refuse_daemon_fields(wire: &v1::Memory) -> Result<(), WireError> {
    let v1::Memory {
        id,
        r#type: _,
        custom_type: _,
        status,
        content: _,
        content_hash,
        summary: _,
        tags: _,
        confidence,
        temporal,
        provenance,
        access: _,
        embedding_ref,
        metadata_json: _,
        etag,
        create_revision,
        mod_revision,
        version,
        pam_json,
        abridged,
        withdrawn,
        quarantined,
    } = wire;
    let scores = confidence.as_ref().is_some_and(|confidence| {
        confidence.initial.is_some() || confidence.current.is_some() || confidence.last_reinforced.is_some()
    });
    let times = temporal.as_ref().is_some_and(|times| {
        times.created_at.is_some() || times.updated_at.is_some() || times.superseded_by.is_some()
    });
    let set = [
        ("id", !id.is_empty()),
        ("status", *status != 0),
        ("content_hash", !content_hash.is_empty()),
        ("confidence", scores),
        ("temporal", times),
        ("provenance", provenance.is_some()),
        ("embedding_ref", embedding_ref.is_some()),
        ("etag", !etag.is_empty()),
        ("create_revision", *create_revision != 0),
        ("mod_revision", *mod_revision != 0),
        ("version", *version != 0),
        ("pam_json", !pam_json.is_empty()),
        ("abridged", *abridged),
        ("withdrawn", *withdrawn),
        ("quarantined", *quarantined),
    ];
    match set.iter().find(|(_, set)| *set) {
        Some((field, _)) => {
            Err(WireError::new(format!("memory.{field}"), "is set by the daemon; leave it out"))
        }
        None => Ok(()),
    }
}
