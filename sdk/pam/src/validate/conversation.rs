//! Checks a conversation document: its fields and the graph of its messages.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    header::check_version,
    memory::{Place, check_platform, check_tags},
    patterns,
};
use crate::{
    conversation::{Content, ContentKind, Conversation, ConversationHeader, Message},
    issue::{Issues, quote},
};

pub(super) fn check(conversation: &Conversation, root: &str, issues: &mut Issues) {
    check_version(&conversation.schema_version, root, issues);
    check_header(&conversation.header, root, issues);
    for (index, message) in conversation.messages.iter().enumerate() {
        check_message(message, &|| format!("{root}.messages[{index}]"), issues);
    }
    let graph = Graph::of(&conversation.messages, root, issues);
    graph.check_links(issues);
    graph.check_cycles(issues);
    check_order(&conversation.messages, root, issues);
}

fn check_header(header: &ConversationHeader, root: &str, issues: &mut Issues) {
    issues.reject_empty(&header.id, "R-25.1", || format!("{root}.id"));
    check_platform(&header.provider.name, &|| format!("{root}.provider.name"), issues);
    check_tags(&header.tags, &|| format!("{root}.tags"), false, issues);
    if header
        .temporal
        .updated_at
        .is_some_and(|updated| updated.micros() < header.temporal.created_at.micros())
    {
        issues.warning("SDK-temporal", format!("{root}.temporal.updated_at"), "is before created_at");
    }
    let importer = header.import_metadata.as_ref().and_then(|metadata| metadata.importer.as_deref());
    if let Some(importer) = importer.filter(|importer| !patterns::software(importer)) {
        let path = format!("{root}.import_metadata.importer");
        issues.error("R-25.9", path, format!("{} is not name/x.y.z", quote(importer)));
    }
}

fn check_message(message: &Message, place: Place<'_>, issues: &mut Issues) {
    issues.reject_empty(&message.id, "R-25.1", || place() + ".id");
    if let Some(content) = &message.content {
        check_content(content, place, issues);
    }
    for (index, child) in message.children_ids.iter().enumerate() {
        issues.reject_empty(child, "R-25.3", || format!("{}.children_ids[{index}]", place()));
    }
    for (index, call) in message.tool_calls.iter().enumerate() {
        issues.reject_empty(&call.name, "R-25.9", || format!("{}.tool_calls[{index}].name", place()));
    }
    for (index, citation) in message.citations.iter().enumerate() {
        if let Some(url) = citation.url.as_deref().filter(|url| !patterns::uri(url)) {
            let path = format!("{}.citations[{index}].url", place());
            issues.warning("A-28", path, format!("{} is not a URI", quote(url)));
        }
    }
}

fn check_content(content: &Content, place: Place<'_>, issues: &mut Issues) {
    match content.kind {
        ContentKind::Text if content.text.is_none() => {
            issues.warning("R-25.5", place() + ".content.text", "is missing, and the type is text");
        }
        ContentKind::Multipart if content.parts.is_empty() => {
            issues.warning("R-25.5", place() + ".content.parts", "is empty, and the type is multipart");
        }
        ContentKind::Text | ContentKind::Multipart => {}
    }
}

/// The graph of the messages.
struct Graph<'c> {
    root: &'c str,
    messages: &'c [Message],
    /// Indexes of the messages by id.
    indexes: BTreeMap<&'c str, usize>,
}

impl<'c> Graph<'c> {
    fn of(messages: &'c [Message], root: &'c str, issues: &mut Issues) -> Self {
        let mut indexes = BTreeMap::new();
        for (index, message) in messages.iter().enumerate() {
            if indexes.insert(message.id.as_str(), index).is_some() {
                let path = format!("{root}.messages[{index}].id");
                issues.error("R-25.2", path, format!("{} stands twice", quote(&message.id)));
            }
        }
        Self { root, messages, indexes }
    }

    fn parent(&self, message: &Message) -> Option<usize> {
        message.parent_id.as_deref().and_then(|id| self.indexes.get(id).copied())
    }

    /// Reports links to missing messages and links that only one end has.
    fn check_links(&self, issues: &mut Issues) {
        let root = self.root;
        for (index, message) in self.messages.iter().enumerate() {
            let path = || format!("{root}.messages[{index}]");
            if let Some(id) = message.parent_id.as_deref().filter(|id| !self.indexes.contains_key(id)) {
                let message = format!("{} is not in this conversation", quote(id));
                issues.warning("R-25.3", path() + ".parent_id", message);
            }
            for (position, child) in message.children_ids.iter().enumerate() {
                let path = || format!("{}.children_ids[{position}]", path());
                match self.indexes.get(child.as_str()) {
                    None => {
                        let message = format!("{} is not in this conversation", quote(child));
                        issues.warning("R-25.3", path(), message);
                    }
                    Some(&at) if self.messages[at].parent_id.as_deref() != Some(message.id.as_str()) => {
                        issues.warning("R-25.3", path(), format!("{} has another parent", quote(child)));
                    }
                    Some(_) => {}
                }
            }
        }
        self.check_children(issues);
    }

    /// Reports parents that do not list a child.
    fn check_children(&self, issues: &mut Issues) {
        let listed: BTreeSet<(&str, &str)> = self
            .messages
            .iter()
            .flat_map(|parent| parent.children_ids.iter().map(|child| (parent.id.as_str(), child.as_str())))
            .collect();
        for (index, message) in self.messages.iter().enumerate() {
            let Some(parent) = message.parent_id.as_deref().filter(|id| self.indexes.contains_key(id)) else {
                continue;
            };
            if !listed.contains(&(parent, message.id.as_str())) {
                let path = format!("{}.messages[{index}].parent_id", self.root);
                let message = format!("{} does not list this message among its children", quote(parent));
                issues.warning("R-25.3", path, message);
            }
        }
    }

    /// Follows the parents of each message; reaching the same walk again is a cycle. Each message is visited once.
    fn check_cycles(&self, issues: &mut Issues) {
        let mut walk_of = vec![0_usize; self.messages.len()];
        for start in 0..self.messages.len() {
            let walk = start + 1;
            let mut at = Some(start);
            while let Some(index) = at.filter(|index| walk_of[*index] == 0) {
                walk_of[index] = walk;
                at = self.parent(&self.messages[index]);
            }
            if let Some(index) = at.filter(|index| walk_of[*index] == walk) {
                let path = format!("{}.messages[{index}].parent_id", self.root);
                issues.error("R-25.3", path, "the message is its own ancestor");
            }
        }
    }
}

/// Checks that a linear conversation is in chronological order; reports the first message that is not.
fn check_order(messages: &[Message], root: &str, issues: &mut Issues) {
    if messages.iter().any(|message| message.children_ids.len() > 1) {
        return;
    }
    let back = messages.windows(2).position(|pair| pair[1].created_at.micros() < pair[0].created_at.micros());
    if let Some(index) = back {
        let path = format!("{root}.messages[{}].created_at", index + 1);
        issues.warning("R-25.10", path, "is before that of the message before it");
    }
}
