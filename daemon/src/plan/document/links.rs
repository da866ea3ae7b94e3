//! Who answers whom in a document: PAM says it twice, by parents and by children, and some producers say it once or not at all.

use std::collections::HashMap;

use satchel_pam::conversation::Message;

use super::MappedNode;

/// The parent of each message. Where only the other end knows a link, that is taken; where nobody knows any, as with
/// providers whose conversations are a line, each message follows the one before.
pub(super) fn parents(messages: &[Message]) -> Vec<Option<String>> {
    let mut by_children: HashMap<&str, &str> = HashMap::new();
    for message in messages {
        for child in message.children_ids.iter().filter(|child| **child != message.id) {
            by_children.entry(child).or_insert(&message.id);
        }
    }
    let own = |message: &Message| message.parent_id.clone().filter(|id| !id.is_empty());
    let line =
        by_children.is_empty() && messages.iter().all(|message| own(message).is_none() && unplaced(message));
    messages
        .iter()
        .enumerate()
        .map(|(at, message)| {
            if line {
                return at.checked_sub(1).map(|before| messages[before].id.clone());
            }
            own(message).or_else(|| by_children.get(message.id.as_str()).map(|&parent| parent.to_owned()))
        })
        .collect()
}

/// Our own exports say of every message where it stands: one without links is a root there.
fn unplaced(message: &Message) -> bool {
    message.raw_metadata.as_ref().is_none_or(|raw| !raw.as_str().contains("\"active_path\""))
}

/// The leaf that the person last saw, if it is among the nodes.
pub(super) fn current(nodes: &[MappedNode], named: Option<String>) -> Option<String> {
    named.filter(|named| nodes.iter().any(|node| node.id == *named))
}
