//! Invented exports of any size: the same provider, size and seed give the same bytes on every machine.
//!
//! The mix follows what holders of real exports report: some branches, thoughts, tool traffic, images, citations and custom
//! instructions; texts of log-normal length in three scripts, with code, emoji and escapes.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
};

use serde_json::{Value, json};

/// What a generated export holds, counted while it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Conversations.
    pub conversations: u64,
    /// Nodes with a message, or entries of `chat_messages`.
    pub messages: u64,
}

/// Writes a ChatGPT export of about `bytes` into `folder`.
///
/// # Errors
/// When the folder cannot be written.
pub fn chatgpt(folder: &Path, bytes: u64, seed: u64) -> io::Result<Counts> {
    fs::create_dir_all(folder)?;
    fs::write(
        folder.join("user.json"),
        r#"{"id":"user-GENERATED","email":"mara@example.org","chatgpt_plus_user":true}"#,
    )?;
    array(&folder.join("conversations.json"), bytes, &mut Dice::new(seed), chatgpt_conversation)
}

/// Writes a Claude export of about `bytes` into `folder`.
///
/// # Errors
/// When the folder cannot be written.
pub fn claude(folder: &Path, bytes: u64, seed: u64) -> io::Result<Counts> {
    fs::create_dir_all(folder)?;
    let mut dice = Dice::new(seed ^ 0xc1a0);
    let memories = json!([{
        "conversations_memory": format!("**Work context**\n\n{}\n\n**Personal context**\n\n{}", dice.text(900), dice.text(400)),
        "project_memories": {},
        "account_uuid": ACCOUNT,
    }]);
    fs::write(folder.join("memories.json"), memories.to_string())?;
    let users =
        json!([{"uuid": ACCOUNT, "full_name": "Mara Lindqvist", "email_address": "mara@example.org"}]);
    fs::write(folder.join("users.json"), users.to_string())?;
    array(&folder.join("conversations.json"), bytes, &mut dice, claude_conversation)
}

const ACCOUNT: &str = "7d0c2f7e-1111-4222-8333-944445555666";

fn array(
    path: &Path,
    bytes: u64,
    dice: &mut Dice,
    one: fn(&mut Dice, &mut Counts) -> Value,
) -> io::Result<Counts> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut counts = Counts::default();
    let mut written = 1;
    out.write_all(b"[")?;
    while written < bytes {
        let text = one(dice, &mut counts).to_string();
        // Python's `json.dumps`, with which the providers write, escapes all but ASCII.
        let text = ascii(&text);
        if counts.conversations > 0 {
            out.write_all(b", ")?;
        }
        out.write_all(text.as_bytes())?;
        written += text.len() as u64 + 2;
        counts.conversations += 1;
    }
    out.write_all(b"]")?;
    out.flush()?;
    Ok(counts)
}

fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() * 2);
    let mut units = [0; 2];
    for c in text.chars() {
        if c.is_ascii() {
            plain.push(c);
        } else {
            c.encode_utf16(&mut units).iter().for_each(|unit| plain.push_str(&format!("\\u{unit:04x}")));
        }
    }
    plain
}

/// A tree under construction.
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
        // People seldom change their instructions: a handful of versions over all conversations.
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

fn claude_conversation(dice: &mut Dice, counts: &mut Counts) -> Value {
    let mut second = 1_700_000_000 + dice.below(80_000_000);
    let start = iso(second);
    let mut messages = Vec::new();
    for _ in 0..dice.log_normal(4.0, 0.9, 1, 40) {
        for sender in ["human", "assistant"] {
            second += dice.below(600);
            let at = iso(second);
            let length = if sender == "human" {
                dice.log_normal(130.0, 1.0, 5, 4_000)
            } else {
                dice.log_normal(1_000.0, 0.9, 20, 20_000)
            };
            let text = dice.text(length);
            let mut blocks = Vec::new();
            if sender == "assistant" && dice.chance(10) {
                blocks.push(json!({"start_timestamp": at, "stop_timestamp": at, "type": "thinking", "thinking": dice.text(300),
                    "summaries": [{"summary": dice.text(30)}], "cut_off": false}));
            }
            if sender == "assistant" && dice.chance(8) {
                let id = format!("toolu_{}", dice.uuid());
                blocks.push(json!({"type": "tool_use", "id": id, "name": "web_search", "input": {"query": dice.text(30)}}));
                blocks.push(
                    json!({"type": "tool_result", "tool_use_id": id, "name": "web_search", "is_error": false,
                    "content": [{"type": "text", "text": dice.text(400)}]}),
                );
            }
            blocks.push(json!({"start_timestamp": at, "stop_timestamp": at, "flags": null, "type": "text", "text": text, "citations": []}));
            messages.push(json!({"uuid": dice.uuid(), "text": text, "content": blocks, "sender": sender, "created_at": at,
                "updated_at": at, "attachments": [], "files": []}));
        }
    }
    counts.messages += messages.len() as u64;
    json!({"uuid": dice.uuid(), "name": dice.text(30).replace('\n', " "), "summary": "", "created_at": start,
        "updated_at": iso(second), "account": {"uuid": ACCOUNT}, "chat_messages": messages})
}

/// RFC 3339 of a second since the epoch.
fn iso(second: u64) -> String {
    let second = i64::try_from(second).unwrap_or(0);
    satchel_pam::time::Timestamp::saturating(second * 1_000_000).to_string().replace('Z', ".000000Z")
}

/// A small deterministic generator (`SplitMix64`).
pub struct Dice(u64);

impl Dice {
    /// The same seed gives the same throws.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1))
    }

    /// Any number.
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.throw() % bound
    }

    /// Like [`Dice::below`], as a floating-point number.
    fn decimal(&mut self, bound: u32) -> f64 {
        u32::try_from(self.below(u64::from(bound))).map_or(0.0, f64::from)
    }

    /// True in `percent` of all throws.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn uuid(&mut self) -> String {
        let (one, two) = (self.throw(), self.throw());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            one >> 32,
            one >> 16 & 0xffff,
            one & 0xfff,
            two >> 52,
            two & 0xffff_ffff_ffff
        )
    }

    /// A length around `median`, spread by `sigma`, as lengths of texts are.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small numbers"
    )]
    fn log_normal(&mut self, median: f64, sigma: f64, least: u64, most: u64) -> u64 {
        let unit = |dice: &mut Self| (dice.below(1 << 30) as f64 + 1.0) / (f64::from(1 << 30) + 1.0);
        let (one, two) = (unit(self), unit(self));
        let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos();
        ((median * (sigma * normal).exp()) as u64).clamp(least, most)
    }

    /// About `length` bytes of prose, now and then with code or a picture character.
    fn text(&mut self, length: u64) -> String {
        let words = WORDS[usize::try_from(self.below(100)).unwrap_or(0).saturating_sub(55).min(1)
            + usize::from(self.chance(15))];
        let mut text = String::new();
        while (text.len() as u64) < length {
            let word = words[usize::try_from(self.below(words.len() as u64)).unwrap_or(0)];
            text.push_str(word);
            match self.below(40) {
                0 => text.push_str(".\n\n"),
                1 => text.push_str(", \"so\" \u{1f680} "),
                2 if length > 800 => text.push_str(CODE),
                _ if words == WORDS[2] => {}
                _ => text.push(' '),
            }
        }
        text
    }
}

const CODE: &str =
    "\n```python\nimport math\nfor n in range(10):\n    print(\"n\\t\", math.sqrt(n), {'a': [1, 2]})\n```\n";
const WORDS: [&[&str]; 3] = [
    &[
        "the", "garden", "of", "a", "small", "house", "needs", "water", "and", "light", "when", "seeds",
        "grow", "between", "stones", "while", "people", "read", "letters", "about", "trains", "music",
        "bread", "storage", "engine", "journal", "memory",
    ],
    &[
        "o",
        "jardim",
        "não",
        "precisa",
        "de",
        "água",
        "até",
        "amanhã",
        "porque",
        "a",
        "estação",
        "começa",
        "você",
        "também",
        "lê",
        "cartas",
        "sobre",
        "música",
        "pão",
        "coração",
        "memória",
        "função",
        "página",
    ],
    &[
        "花", "园", "需", "要", "水", "和", "光", "当", "种", "子", "在", "石", "头", "之", "间", "生", "长",
        "人", "们", "读", "信", "音", "乐", "面", "包", "记", "忆",
    ],
];
