//! ChatGPT: trees with branches, thoughts, tools, images and instructions.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{
    GeneratedCounts, escape_non_ascii,
    rng::{CODE, Rng},
    write_list_while,
};

/// Writes a ChatGPT export of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn chatgpt(folder: &Path, bytes: u64, seed: u64) -> io::Result<GeneratedCounts> {
    chatgpt_later(folder, bytes, seed, 0)
}

/// Writes the same export as it looks some months later: each month, one conversation in fifty was continued. `bytes`
/// is the size of the first export; the messages of continued conversations come on top.
///
/// # Errors
/// If the folder cannot be written.
pub fn chatgpt_later(folder: &Path, bytes: u64, seed: u64, months: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    fs::write(
        folder.join("user.json"),
        r#"{"id":"user-GENERATED","email":"mara@example.org","chatgpt_plus_user":true}"#,
    )?;
    let mut more = 0;
    let path = folder.join("conversations.json");
    // The list ends at the size of the first export, so that the later ones have the same conversations.
    write_list_while(&path, ["[", "]"], &mut Rng::new(seed), |rng, counts, written| {
        if written >= bytes + more {
            return None;
        }
        let mut conversation = chatgpt_conversation(rng, counts);
        let size = |conversation: &Value| escape_non_ascii(&conversation.to_string()).len() as u64;
        for month in 1..=months {
            let mut later = Rng::new(seed ^ (counts.conversations << 16) ^ month.wrapping_mul(0x5851_f42d));
            if later.chance(2) {
                let before = size(&conversation);
                continue_conversation(&mut later, &mut conversation, counts);
                more += size(&conversation) - before;
            }
        }
        Some(conversation)
    })
}

/// Writes an export of about `messages` short messages, up to fifty in each conversation.
///
/// # Errors
/// If the folder cannot be written.
pub fn chatgpt_short(folder: &Path, messages: u64, seed: u64) -> io::Result<GeneratedCounts> {
    fs::create_dir_all(folder)?;
    let mut left = messages;
    let path = folder.join("conversations.json");
    write_list_while(&path, ["[", "]"], &mut Rng::new(seed), |rng, counts, _| {
        if left == 0 {
            return None;
        }
        let start = 1_700_000_000.0 + rng.below_f64(80_000_000);
        let mut tree = Tree { nodes: serde_json::Map::new(), messages: 0, time: start };
        let mut at = None;
        for number in 0..left.min(50) {
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            let content = json!({"content_type": "text", "parts": [rng.text(40)]});
            at = Some(tree.add(rng, at.as_deref(), role, &content, "all", json!({})));
        }
        left -= tree.messages;
        counts.messages += tree.messages;
        let (id, end) = (rng.uuid(), tree.time);
        Some(json!({"title": rng.text(20).replace('\n', " "), "create_time": start, "update_time": end,
            "mapping": tree.nodes, "current_node": at, "conversation_id": id, "id": id}))
    })
}

/// Appends a question and its answer to a conversation.
fn continue_conversation(rng: &mut Rng, conversation: &mut Value, counts: &mut GeneratedCounts) {
    let Some(Value::Object(nodes)) = conversation.get_mut("mapping").map(Value::take) else { return };
    let at = conversation["current_node"].as_str().unwrap_or_default().to_owned();
    let time = conversation["update_time"].as_f64().unwrap_or_default() + 2_600_000.0;
    let mut tree = Tree { nodes, messages: 0, time };
    let last = chatgpt_turn(rng, &mut tree, at);
    counts.messages += tree.messages;
    conversation["mapping"] = Value::Object(tree.nodes);
    conversation["current_node"] = last.into();
    conversation["update_time"] = tree.time.into();
}

/// A tree of messages under construction.
struct Tree {
    nodes: serde_json::Map<String, Value>,
    messages: u64,
    time: f64,
}

impl Tree {
    fn add(
        &mut self,
        rng: &mut Rng,
        parent: Option<&str>,
        role: &str,
        content: &Value,
        recipient: &str,
        metadata: Value,
    ) -> String {
        let id = rng.uuid();
        self.time += rng.below_f64(600) + rng.below_f64(1_000_000) / 1e6;
        let message = json!({
            "id": id, "author": {"role": role, "name": (role == "tool").then_some("python"), "metadata": {}}, "create_time": self.time, "update_time": null,
            "content": content, "status": "finished_successfully", "end_turn": role == "assistant", "weight": 1.0,
            "metadata": metadata, "recipient": recipient, "channel": null,
        });
        self.nodes
            .insert(id.clone(), json!({"id": id, "message": message, "parent": parent, "children": []}));
        if let Some(children) = parent
            .and_then(|parent| self.nodes.get_mut(parent))
            .and_then(|node| node["children"].as_array_mut())
        {
            children.push(id.clone().into());
        }
        self.messages += 1;
        id
    }
}

fn metadata(rng: &mut Rng, extra: Value) -> Value {
    let mut metadata = json!({"request_id": rng.uuid(), "message_source": null, "timestamp_": "absolute"});
    if let (Value::Object(base), Value::Object(extra)) = (&mut metadata, extra) {
        base.extend(extra);
    }
    metadata
}

fn chatgpt_conversation(rng: &mut Rng, counts: &mut GeneratedCounts) -> Value {
    let start = 1_700_000_000.0 + rng.below_f64(80_000_000);
    let root = rng.uuid();
    let mut tree = Tree { nodes: serde_json::Map::new(), messages: 0, time: start };
    tree.nodes.insert(root.clone(), json!({"id": root, "message": null, "parent": null, "children": []}));
    let hidden = metadata(rng, json!({"is_visually_hidden_from_conversation": true}));
    let mut at =
        tree.add(rng, Some(&root), "system", &json!({"content_type": "text", "parts": [""]}), "all", hidden);
    if rng.chance(45) {
        // People seldom change their instructions: all conversations share a handful of versions.
        let version = rng.below(5);
        let content = json!({"content_type": "user_editable_context",
            "user_profile": format!("Preferred name: Mara. Version {version} of what I do."), "user_instructions": format!("Be brief, version {version}.")});
        let hidden = metadata(rng, json!({"is_visually_hidden_from_conversation": true}));
        at = tree.add(rng, Some(&at), "user", &content, "all", hidden);
    }
    for _ in 0..rng.log_normal(4.0, 0.9, 1, 40) {
        at = chatgpt_turn(rng, &mut tree, at);
    }
    counts.messages += tree.messages;
    let id = rng.uuid();
    json!({
        "title": rng.text(30).replace('\n', " "), "create_time": start, "update_time": tree.time, "mapping": tree.nodes,
        "moderation_results": [], "current_node": at, "plugin_ids": null, "conversation_id": id, "gizmo_id": null,
        "is_archived": rng.chance(5), "safe_urls": [], "blocked_urls": [], "default_model_slug": "gpt-5-2",
        "conversation_origin": null, "voice": null, "async_status": null, "disabled_tool_ids": [],
        "is_do_not_remember": null, "memory_scope": "global_enabled", "id": id,
    })
}

fn chatgpt_turn(rng: &mut Rng, tree: &mut Tree, parent: String) -> String {
    let length = rng.log_normal(130.0, 1.0, 5, 4_000);
    let mut question = json!({"content_type": "text", "parts": [rng.text(length)]});
    let mut extra = json!({});
    if rng.chance(6) {
        let file = rng.uuid();
        question = json!({"content_type": "multimodal_text", "parts": [
            {"content_type": "image_asset_pointer", "asset_pointer": format!("sediment://file_{file}"), "size_bytes": rng.below(2_000_000),
             "width": 1024, "height": 768, "fovea": null, "metadata": {"sanitized": true}}, rng.text(60)]});
        extra = json!({"attachments": [{"id": format!("file_{file}"), "name": "photo.png", "mime_type": "image/png", "size": 5000}]});
    }
    let meta = metadata(rng, extra);
    let mut at = tree.add(rng, Some(&parent), "user", &question, "all", meta);
    if rng.chance(10) {
        let length = rng.log_normal(350.0, 0.7, 40, 3_000);
        let content = json!({"content_type": "thoughts", "source_analysis_msg_id": rng.uuid(), "thoughts": [
            {"summary": rng.text(30), "content": rng.text(length), "chunks": [], "finished": true}]});
        let meta = metadata(rng, json!({"model_slug": "o3", "reasoning_status": "is_reasoning"}));
        at = tree.add(rng, Some(&at), "assistant", &content, "all", meta);
    }
    if rng.chance(12) {
        let meta = metadata(rng, json!({"model_slug": "gpt-5-2"}));
        let code =
            json!({"content_type": "code", "language": "python", "response_format_name": null, "text": CODE});
        at = tree.add(rng, Some(&at), "assistant", &code, "python", meta);
        let length = rng.log_normal(300.0, 1.0, 10, 6_000);
        let output = json!({"content_type": "execution_output", "text": rng.text(length)});
        let run = json!({"aggregate_result": {"status": "success", "run_id": rng.uuid()}});
        let meta = metadata(rng, run);
        at = tree.add(rng, Some(&at), "tool", &output, "all", meta);
    }
    let answers = if rng.chance(6) { 2 } else { 1 };
    let mut last = at.clone();
    for _ in 0..answers {
        let mut extra = json!({"model_slug": "gpt-5-2", "default_model_slug": "gpt-5-2", "parent_id": at,
            "finish_details": {"type": "stop", "stop_tokens": [200_002]}});
        if rng.chance(4) {
            extra["citations"] = json!([{"start_ix": 0, "end_ix": 20, "citation_format_type": "tether_og", "metadata": {
                "type": "webpage", "title": rng.text(30), "url": "https://example.org/page", "text": rng.text(90)}}]);
        }
        let meta = metadata(rng, extra);
        let length = rng.log_normal(1_000.0, 0.9, 20, 20_000);
        let answer = json!({"content_type": "text", "parts": [rng.text(length)]});
        last = tree.add(rng, Some(&at), "assistant", &answer, "all", meta);
    }
    last
}
