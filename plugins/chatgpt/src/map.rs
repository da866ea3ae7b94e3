//! From the provider's shapes to records; pure: everything comes in by arguments and goes out as values.

use std::{borrow::Cow, collections::BTreeMap};

use satchel_importer::{Arena, Conversation, Evidence, Message};

use crate::{
    assets::Assets,
    memory,
    raw::{self, Mapping, Node, Slot},
};

mod attachments;
mod citations;
mod content;
mod marks;
mod message;
mod redact;
mod tools;
mod tree;

pub(crate) use message::{Facts, Mapped};
use tree::{Parent, Tree};

/// What holds for every conversation of an export.
pub(crate) struct Context<'a> {
    pub(crate) account: Option<&'a str>,
    /// The version part of the format that was detected, such as `2026.07`.
    pub(crate) version: &'a str,
    pub(crate) assets: &'a Assets,
}

/// All that one element of the export gives.
pub(crate) struct Records<'a> {
    pub(crate) conversation: Conversation<'a>,
    pub(crate) messages: Vec<Message<'a>>,
    pub(crate) evidence: Vec<Evidence>,
    /// Nodes that cannot be read: locator and reason.
    pub(crate) skipped: Vec<(String, &'static str)>,
    /// Locator and what is odd.
    pub(crate) warnings: Vec<(String, &'static str)>,
}

/// Why a conversation gives no record.
pub(crate) type Refusal = &'static str;

/// Maps one conversation that stood at `locator`.
pub(crate) fn records<'a>(
    mut raw: raw::Conversation<'a>,
    context: &Context<'a>,
    locator: &str,
    arena: &'a Arena,
) -> Result<Records<'a>, Refusal> {
    match raw.mapping {
        Mapping::Absent => return Err("mapping is absent"),
        Mapping::Null => return Err("mapping is null"),
        Mapping::Odd => return Err("mapping is not an object"),
        Mapping::Nodes => {}
    }
    let mut warnings = Vec::new();
    let mut nodes = std::mem::take(&mut raw.nodes);
    for key in drop_repeated(&mut nodes) {
        warnings.push((node_locator(locator, key), "the node stands twice; the last one is read"));
    }
    let kept: Vec<bool> = nodes.iter().map(|node| matches!(node.message, Slot::Message(_))).collect();
    if nodes.iter().all(|node| matches!(node.message, Slot::Empty)) {
        return Err("it holds no message");
    }
    let tree = Tree::link(&nodes, kept, arena);
    for at in &tree.cut {
        let key = nodes.get(*at).map_or("", |node| node.key);
        warnings.push((node_locator(locator, key), "its parents lead back to it; it is read as a root"));
    }
    let id = conversation_id(&raw, &nodes, context);
    let (mapped, skipped) = map_nodes(nodes, &tree, context, locator, arena);
    let evidence = memory::evidence(
        &raw,
        &mapped,
        &memory::Place { conversation: &id, account: context.account, locator },
    );
    let current = raw.current.and_then(|key| tree.kept_at(key)).and_then(|at| mapped.key_at(at));
    let system = memory::system_instruction(&mapped);
    let conversation = conversation(raw, id, current, system, context, locator);
    Ok(Records { conversation, messages: mapped.into_messages(), evidence, skipped, warnings })
}

/// `conversations.json[17].mapping.<key>`
fn node_locator(locator: &str, key: &str) -> String {
    format!("{locator}.mapping.{key}")
}

/// Of nodes with the same key the last one stays; returns the keys of the others.
fn drop_repeated<'a>(nodes: &mut Vec<Node<'a>>) -> Vec<&'a str> {
    let last: BTreeMap<&str, usize> = nodes.iter().enumerate().map(|(at, node)| (node.key, at)).collect();
    if last.len() == nodes.len() {
        return Vec::new();
    }
    let (mut at, mut repeated) = (0, Vec::new());
    nodes.retain(|node| {
        at += 1;
        let stays = last.get(node.key) == Some(&(at - 1));
        if !stays {
            repeated.push(node.key);
        }
        stays
    });
    repeated
}

fn map_nodes<'a>(
    nodes: Vec<Node<'a>>,
    tree: &Tree<'a>,
    context: &Context<'a>,
    locator: &str,
    arena: &'a Arena,
) -> (Mapped<'a>, Vec<(String, &'static str)>) {
    let keys: Vec<&'a str> = nodes.iter().map(|node| node.key).collect();
    let mut mapped = Mapped::with_capacity(nodes.len());
    let mut skipped = Vec::new();
    for (at, node) in nodes.into_iter().enumerate() {
        match node.message {
            Slot::Message(message) => {
                let parent = match tree.parent(at) {
                    Parent::Root => None,
                    Parent::Node(above) => keys.get(above).copied(),
                    Parent::Absent(key) => Some(key),
                };
                mapped.push(node.key, parent, message, context.assets, arena);
            }
            Slot::Odd(reason) => {
                skipped.push((node_locator(locator, node.key), reason));
                mapped.push_nothing();
            }
            Slot::Empty => mapped.push_nothing(),
        }
    }
    mapped.join_outputs(tree);
    (mapped, skipped)
}

fn conversation<'a>(
    mut raw: raw::Conversation<'a>,
    id: Cow<'a, str>,
    current: Option<&'a str>,
    system: Option<String>,
    context: &Context<'a>,
    locator: &str,
) -> Conversation<'a> {
    let provider_id = raw.address.or(raw.id);
    if let (Some(_), Some(other)) = (raw.address, raw.id.filter(|other| raw.address != Some(*other))) {
        raw.rest.add_text("id", other);
    }
    if let (Some(dangling), None) = (raw.current, current) {
        raw.rest.add_text("current_node", dangling);
    }
    Conversation {
        id,
        provider_conversation_id: provider_id.map(Cow::Borrowed),
        account: context.account.map(Cow::Borrowed),
        export_format_version: Some(Cow::Borrowed(context.version)),
        title: raw.title.map(Cow::Borrowed),
        created_at: raw.created,
        updated_at: raw.updated,
        model: raw.model.map(Cow::Borrowed),
        system_instruction: system.map(Cow::Owned),
        is_archived: raw.archived,
        current: current.map(Cow::Borrowed),
        raw_metadata: raw.rest.into_json().map(redact::json),
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    }
}

/// The provider's id; some files give none, then what does not change from export to export.
fn conversation_id<'a>(
    raw: &raw::Conversation<'a>,
    nodes: &[Node<'a>],
    context: &Context<'_>,
) -> Cow<'a, str> {
    if let Some(id) = [raw.address, raw.id].into_iter().flatten().find(|id| !id.is_empty()) {
        return Cow::Borrowed(id);
    }
    // Slim exports leave out the hidden nodes at the top, so the first node is not the same in both.
    let spoken = |node: &&Node<'_>| matches!(&node.message, Slot::Message(message) if message.role == Some("user") && message.content.kind == Some("text"));
    let first = nodes.iter().find(spoken).or(nodes.first()).map(|node| node.key);
    serde_json::json!([context.account, raw.created, raw.title, first]).to_string().into()
}
