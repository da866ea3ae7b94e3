//! Names, descriptions and schemas of the tools. Descriptions are short: each client sends all of them to its model.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations, object};
use serde_json::{Value, json};

pub(super) const SEARCH: &str = "search";
pub(super) const READ_CONVERSATION: &str = "read_conversation";
pub(super) const READ_MEMORY: &str = "read_memory";
pub(super) const BUILD_CONTEXT: &str = "build_context";
pub(super) const ADD_MEMORY: &str = "add_memory";
pub(super) const UPDATE_MEMORY: &str = "update_memory";
pub(super) const LIST_CHANGES: &str = "list_changes";

/// All tools.
pub(crate) fn all() -> Vec<Tool> {
    vec![
        reading(
            SEARCH,
            "Finds memories, messages and titles of conversations by their words. Each hit has an id, a date and a source.",
            &json!({
                "query": {"type": "string", "description": "Words; \"a phrase\", -excluded, type:fact, platform:claude, after:2025-01"},
                "kinds": {"type": "array", "items": {"enum": ["memory", "message", "title"]}, "description": "Default: all"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50, "description": "Default: 10"},
                "cursor": {"type": "string", "description": "`next` of the previous page"},
            }),
            &["query"],
        ),
        reading(
            READ_CONVERSATION,
            "Reads the messages of a conversation in order, the branch that was shown last.",
            &json!({
                "id": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Messages; default: 50"},
                "cursor": {"type": "string", "description": "`next` of the previous page"},
            }),
            &["id"],
        ),
        reading(READ_MEMORY, "Reads one memory.", &json!({"id": {"type": "string"}}), &["id"]),
        reading(
            BUILD_CONTEXT,
            "Collects what fits a question, quoted and within a budget of tokens. Use it before answering about the person's past.",
            &json!({
                "query": {"type": "string"},
                "token_budget": {"type": "integer", "minimum": 100, "maximum": 32_000, "description": "Default: 2000"},
                "include_messages": {"type": "boolean", "description": "Messages too, not only memories; default: true"},
            }),
            &["query"],
        ),
        writing(
            ADD_MEMORY,
            "Proposes a new memory: one statement that will still be true and useful later.",
            &json!({
                "content": {"type": "string", "description": "One statement in plain words"},
                "type": {"enum": MEMORY_TYPES, "description": "Default: fact"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "reason": {"type": "string", "description": "Why, for the person who reviews it"},
            }),
            &["content"],
        ),
        replacing(
            UPDATE_MEMORY,
            "Replaces the text or the tags of a memory, if the person trusts you with that. Read it first, and pass its etag.",
            &json!({
                "id": {"type": "string"},
                "etag": {"type": "string", "description": "From read_memory"},
                "content": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}, "description": "Replaces all tags"},
                "reason": {"type": "string"},
            }),
            &["id", "etag"],
        ),
        reading(
            LIST_CHANGES,
            "Lists memories and conversations that changed since a revision, oldest first.",
            &json!({
                "after_revision": {"type": "integer", "minimum": 0, "description": "`revision` of an earlier answer; 0 for all"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Default: 50"},
                "cursor": {"type": "string", "description": "`next` of the previous page, with the same after_revision"},
            }),
            &["after_revision"],
        ),
    ]
}

/// The types of memories that an agent may add.
pub(super) const MEMORY_TYPES: [&str; 10] = [
    "fact",
    "preference",
    "skill",
    "context",
    "relationship",
    "goal",
    "instruction",
    "identity",
    "environment",
    "project",
];

fn reading(name: &'static str, description: &'static str, properties: &Value, required: &[&str]) -> Tool {
    tool(name, description, properties, required)
        .with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
}

fn writing(name: &'static str, description: &'static str, properties: &Value, required: &[&str]) -> Tool {
    tool(name, description, properties, required)
        .with_annotations(ToolAnnotations::new().read_only(false).destructive(false).open_world(false))
}

fn replacing(name: &'static str, description: &'static str, properties: &Value, required: &[&str]) -> Tool {
    tool(name, description, properties, required)
        .with_annotations(ToolAnnotations::new().read_only(false).destructive(true).open_world(false))
}

fn tool(name: &'static str, description: &'static str, properties: &Value, required: &[&str]) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    Tool::new(name, description, Arc::new(object(schema)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_short_and_every_required_argument_is_described() {
        let tools = all();
        assert_eq!(tools.len(), 7);
        for tool in &tools {
            let description = tool.description.as_deref().unwrap_or_default();
            assert!((10..160).contains(&description.len()), "{}: {description}", tool.name);
            let schema = &tool.input_schema;
            for required in schema["required"].as_array().expect("a list") {
                let name = required.as_str().expect("a name");
                assert!(schema["properties"].get(name).is_some(), "{}: {name}", tool.name);
            }
        }
    }
}
