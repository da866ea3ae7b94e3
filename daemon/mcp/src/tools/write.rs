//! Tools that write. Whether what they write waits for review depends on the policy of the agent's device.

use prost_types::FieldMask;
use satchel_proto::v1::{CreateMemoryRequest, Memory, MemoryType, UpdateMemoryRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ToolError, definitions::MEMORY_TYPES};
use crate::{clients::Clients, records};

/// The reason that is stored if the agent gives none.
const REASON: &str = "an agent, over MCP";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddArguments {
    content: String,
    r#type: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    reason: Option<String>,
}

/// Adds a memory.
pub(super) async fn add(
    clients: &Clients,
    arguments: Result<AddArguments, ToolError>,
) -> Result<Value, ToolError> {
    let AddArguments { content, r#type, tags, reason } = arguments?;
    let memory = Memory {
        content,
        r#type: memory_type(r#type.as_deref().unwrap_or("fact"))?.into(),
        tags,
        ..Memory::default()
    };
    let request = CreateMemoryRequest {
        request_id: Uuid::new_v4().to_string(),
        memory: Some(memory),
        reason: reason.unwrap_or_else(|| REASON.to_owned()),
    };
    let created = clients.memories().create_memory(request).await?.into_inner();
    let memory = records::memory(&created.memory.unwrap_or_default());
    Ok(json!({"memory": memory, "existed_before": created.existed}))
}

fn memory_type(name: &str) -> Result<MemoryType, ToolError> {
    let known = MEMORY_TYPES.contains(&name).then(|| format!("MEMORY_TYPE_{}", name.to_uppercase()));
    known.and_then(|name| MemoryType::from_str_name(&name)).ok_or_else(|| {
        ToolError::Arguments(format!("`type` is one of {}, not {name:?}", MEMORY_TYPES.join(", ")))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateArguments {
    id: String,
    etag: String,
    content: Option<String>,
    tags: Option<Vec<String>>,
    reason: Option<String>,
}

/// Changes a memory.
pub(super) async fn update(
    clients: &Clients,
    arguments: Result<UpdateArguments, ToolError>,
) -> Result<Value, ToolError> {
    let UpdateArguments { id, etag, content, tags, reason } = arguments?;
    // The daemon takes an empty etag for a caller who does not care about other changes.
    if etag.is_empty() {
        return Err(ToolError::Arguments("`etag` is empty; read the memory first".to_owned()));
    }
    let paths: Vec<String> = [("content", content.is_some()), ("tags", tags.is_some())]
        .into_iter()
        .filter(|(_, given)| *given)
        .map(|(path, _)| path.to_owned())
        .collect();
    if paths.is_empty() {
        return Err(ToolError::Arguments("neither `content` nor `tags` is given".to_owned()));
    }
    let memory = Memory {
        id,
        content: content.unwrap_or_default(),
        tags: tags.unwrap_or_default(),
        ..Memory::default()
    };
    let request = UpdateMemoryRequest {
        request_id: Uuid::new_v4().to_string(),
        memory: Some(memory),
        update_mask: Some(FieldMask { paths }),
        etag,
        reason: reason.unwrap_or_else(|| REASON.to_owned()),
    };
    let updated = clients.memories().update_memory(request).await?.into_inner();
    Ok(json!({"memory": records::memory(&updated.memory.unwrap_or_default())}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_types_of_the_schema_are_known() {
        for name in MEMORY_TYPES {
            assert!(memory_type(name).is_ok(), "{name}");
        }
        for other in ["custom", "FACT", "unspecified", ""] {
            assert!(memory_type(other).is_err(), "{other}");
        }
    }
}
