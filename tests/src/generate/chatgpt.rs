//! ChatGPT: trees with branches, thoughts, tools, images and instructions.

use std::{fs, io, path::Path};

use serde_json::{Value, json};

use super::{
    Counts, ascii,
    dice::{CODE, Dice},
    list_while,
};

/// Writes a ChatGPT export of about `bytes` bytes into `folder`.
///
/// # Errors
/// If the folder cannot be written.
pub fn chatgpt(folder: &Path, bytes: u64, seed: u64) -> io::Result<Counts> {
    chatgpt_later(folder, bytes, seed, 0)
}

/// Writes the same export as it looks some months later: each month, one conversation in fifty was continued. `bytes`
/// is the size of the first export; the messages of continued conversations come on top.
///
/// # Errors
/// If the folder cannot be written.
pub fn chatgpt_later(folder: &Path, bytes: u64, seed: u64, months: u64) -> io::Result<Counts> {
    fs::create_dir_all(folder)?;
    fs::write(
        folder.join("user.json"),
        r#"{"id":"user-GENERATED","email":"mara@example.org","chatgpt_plus_user":true}"#,
    )?;
    let mut more = 0;
    let path = folder.join("conversations.json");
    // The list ends at the size of the first export, so that the later ones have the same conversations.
    list_while(&path, ["[", "]"], &mut Dice::new(seed), |dice, counts, written| {
        if written >= bytes + more {
            return None;
        }
        let mut conversation = chatgpt_conversation(dice, counts);
        let size = |conversation: &Value| ascii(&conversation.to_string()).len() as u64;
        for month in 1..=months {
            let mut later = Dice::new(seed ^ (counts.conversations << 16) ^ month.wrapping_mul(0x5851_f42d));
            if later.chance(2) {
                let before = size(&conversation);
                go_on(&mut later, &mut conversation, counts);
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
pub fn chatgpt_short(folder: &Path, messages: u64, seed: u64) -> io::Result<Counts> {
    fs::create_dir_all(folder)?;
    let mut left = messages;
    let path = folder.join("conversations.json");
    list_while(&path, ["[", "]"], &mut Dice::new(seed), |dice, counts, _| {
        if left == 0 {
            return None;
        }
        let start = 1_700_000_000.0 + dice.decimal(80_000_000);
        let mut tree = Tree { nodes: serde_json::Map::new(), messages: 0, time: start };
        let mut at = None;
        for number in 0..left.min(50) {
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            let content = json!({"content_type": "text", "parts": [dice.text(40)]});
            at = Some(tree.add(dice, at.as_deref(), role, &content, "all", json!({})));
        }
        left -= tree.messages;
        counts.messages += tree.messages;
        let (id, end) = (dice.uuid(), tree.time);
        Some(json!({"title": dice.text(20).replace('\n', " "), "create_time": start, "update_time": end,
            "mapping": tree.nodes, "current_node": at, "conversation_id": id, "id": id}))
    })
}

/// Appends a question and its answer to a conversation.
fn go_on(dice: &mut Dice, conversation: &mut Value, counts: &mut Counts) {
    let Some(Value::Object(nodes)) = conversation.get_mut("mapping").map(Value::take) else { return };
    let at = conversation["current_node"].as_str().unwrap_or_default().to_owned();
    let time = conversation["update_time"].as_f64().unwrap_or_default() + 2_600_000.0;
    let mut tree = Tree { nodes, messages: 0, time };
    let last = chatgpt_turn(dice, &mut tree, at);
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
        dice: &mut Dice,
        parent: Option<&str>,
        role: &str,
        content: &Value,
        recipient: &str,
        metadata: Value,
    ) -> String {
        let id = dice.uuid();
        self.time += dice.decimal(600) + dice.decimal(1_000_000) / 1e6;
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

fn metadata(dice: &mut Dice, extra: Value) -> Value {
    let mut metadata = json!({"request_id": dice.uuid(), "message_source": null, "timestamp_": "absolute"});
    if let (Value::Object(base), Value::Object(extra)) = (&mut metadata, extra) {
        base.extend(extra);
    }
    metadata
}

fn chatgpt_conversation(dice: &mut Dice, counts: &mut Counts) -> Value {
    let start = 1_700_000_000.0 + dice.decimal(80_000_000);
    let root = dice.uuid();
    let mut tree = Tree { nodes: serde_json::Map::new(), messages: 0, time: start };
    tree.nodes.insert(root.clone(), json!({"id": root, "message": null, "parent": null, "children": []}));
    let hidden = metadata(dice, json!({"is_visually_hidden_from_conversation": true}));
    let mut at =
        tree.add(dice, Some(&root), "system", &json!({"content_type": "text", "parts": [""]}), "all", hidden);
    if dice.chance(45) {
        // People seldom change their instructions: all conversations share a handful of versions.
        let version = dice.below(5);
        let content = json!({"content_type": "user_editable_context",
            "user_profile": format!("Preferred name: Mara. Version {version} of what I do."), "user_instructions": format!("Be brief, version {version}.")});
        let hidden = metadata(dice, json!({"is_visually_hidden_from_conversation": true}));
        at = tree.add(dice, Some(&at), "user", &content, "all", hidden);
    }
    for _ in 0..dice.log_normal(4.0, 0.9, 1, 40) {
        at = chatgpt_turn(dice, &mut tree, at);
    }
    counts.messages += tree.messages;
    let id = dice.uuid();
    json!({
        "title": dice.text(30).replace('\n', " "), "create_time": start, "update_time": tree.time, "mapping": tree.nodes,
        "moderation_results": [], "current_node": at, "plugin_ids": null, "conversation_id": id, "gizmo_id": null,
        "is_archived": dice.chance(5), "safe_urls": [], "blocked_urls": [], "default_model_slug": "gpt-5-2",
        "conversation_origin": null, "voice": null, "async_status": null, "disabled_tool_ids": [],
        "is_do_not_remember": null, "memory_scope": "global_enabled", "id": id,
    })
}

fn chatgpt_turn(dice: &mut Dice, tree: &mut Tree, parent: String) -> String {
    let length = dice.log_normal(130.0, 1.0, 5, 4_000);
    let mut question = json!({"content_type": "text", "parts": [dice.text(length)]});
    let mut extra = json!({});
    if dice.chance(6) {
        let file = dice.uuid();
        question = json!({"content_type": "multimodal_text", "parts": [
            {"content_type": "image_asset_pointer", "asset_pointer": format!("sediment://file_{file}"), "size_bytes": dice.below(2_000_000),
             "width": 1024, "height": 768, "fovea": null, "metadata": {"sanitized": true}}, dice.text(60)]});
        extra = json!({"attachments": [{"id": format!("file_{file}"), "name": "photo.png", "mime_type": "image/png", "size": 5000}]});
    }
    let meta = metadata(dice, extra);
    let mut at = tree.add(dice, Some(&parent), "user", &question, "all", meta);
    if dice.chance(10) {
        let length = dice.log_normal(350.0, 0.7, 40, 3_000);
        let content = json!({"content_type": "thoughts", "source_analysis_msg_id": dice.uuid(), "thoughts": [
            {"summary": dice.text(30), "content": dice.text(length), "chunks": [], "finished": true}]});
        let meta = metadata(dice, json!({"model_slug": "o3", "reasoning_status": "is_reasoning"}));
        at = tree.add(dice, Some(&at), "assistant", &content, "all", meta);
    }
    if dice.chance(12) {
        let meta = metadata(dice, json!({"model_slug": "gpt-5-2"}));
        let code =
            json!({"content_type": "code", "language": "python", "response_format_name": null, "text": CODE});
        at = tree.add(dice, Some(&at), "assistant", &code, "python", meta);
        let length = dice.log_normal(300.0, 1.0, 10, 6_000);
        let output = json!({"content_type": "execution_output", "text": dice.text(length)});
        let run = json!({"aggregate_result": {"status": "success", "run_id": dice.uuid()}});
        let meta = metadata(dice, run);
        at = tree.add(dice, Some(&at), "tool", &output, "all", meta);
    }
    let answers = if dice.chance(6) { 2 } else { 1 };
    let mut last = at.clone();
    for _ in 0..answers {
        let mut extra = json!({"model_slug": "gpt-5-2", "default_model_slug": "gpt-5-2", "parent_id": at,
            "finish_details": {"type": "stop", "stop_tokens": [200_002]}});
        if dice.chance(4) {
            extra["citations"] = json!([{"start_ix": 0, "end_ix": 20, "citation_format_type": "tether_og", "metadata": {
                "type": "webpage", "title": dice.text(30), "url": "https://example.org/page", "text": dice.text(90)}}]);
        }
        let meta = metadata(dice, extra);
        let length = dice.log_normal(1_000.0, 0.9, 20, 20_000);
        let answer = json!({"content_type": "text", "parts": [dice.text(length)]});
        last = tree.add(dice, Some(&at), "assistant", &answer, "all", meta);
    }
    last
}
