//! Finds the parent of each message in a document. PAM records every link twice, in the parent and in the children.
//! Some producers record it only once, or not at all, or by the provider's ids.

use std::collections::HashMap;

use satchel_pam::conversation::Message;

use super::ReportedNode;

/// The parent links of a document.
pub(super) struct ParentLinks {
    /// The parent of each message.
    pub(super) parents: Vec<Option<String>>,
    /// Whether no message named a parent, so that each message follows the previous one.
    pub(super) linear: bool,
    /// Notes for the user about everything that was not read literally.
    pub(super) notes: Vec<String>,
}

/// Returns the parent of each message. If only the parent lists a link among its children, that link is used. If the
/// document has no links at all, as with providers whose conversations are linear, each message follows the previous
/// one; so does a message whose parent is missing. `linear`: the document says that it is linear.
pub(super) fn of(messages: &[Message], linear: bool) -> ParentLinks {
    let names = MessageNames::of(messages);
    let by_children = by_children(messages, &names);
    let named = |message: &Message| message.parent_id.as_deref().is_some_and(|id| !id.is_empty());
    let unlinked = by_children.is_empty() && !messages.iter().any(named);
    // For our own exports the note was already given when the conversation was first imported.
    let own_export = linear;
    let linear = unlinked && (linear || messages.iter().all(without_path_note));
    let (mut by_provider, mut lost) = (0_usize, 0_usize);
    let parents = messages.iter().enumerate().map(|(at, message)| {
        let before = || at.checked_sub(1).map(|before| messages[before].id.clone());
        if linear {
            return before();
        }
        let given = message.parent_id.as_deref().filter(|id| !id.is_empty());
        let found = given.and_then(|id| names.find(id));
        if let Some((parent, provider)) = found.filter(|(parent, _)| *parent != message.id) {
            by_provider += usize::from(provider);
            return Some(parent.to_owned());
        }
        if let Some(parent) = by_children.get(message.id.as_str()) {
            return Some((*parent).to_owned());
        }
        lost += usize::from(given.is_some());
        given.and_then(|_| before())
    });
    let parents = parents.collect();
    let mut notes = Vec::new();
    if by_provider > 0 {
        notes.push(format!(
            "parent_id of {by_provider} of its messages is no id but a provider_message_id; it is followed"
        ));
    }
    if lost > 0 {
        notes.push(format!(
            "parent_id of {lost} of its messages names no message that is here; each follows the one before it"
        ));
    }
    if linear && !own_export && !messages.is_sorted_by_key(|message| message.created_at.micros()) {
        notes.push(
            "the document lists its messages in another order than their times; they are read in the order of the document"
                .to_owned(),
        );
    }
    ParentLinks { parents, linear, notes }
}

/// The names by which messages refer to each other.
struct MessageNames<'m> {
    ids: HashMap<&'m str, &'m str>,
    /// `None` if more than one message has this provider id.
    providers: HashMap<&'m str, Option<&'m str>>,
}

impl<'m> MessageNames<'m> {
    fn of(messages: &'m [Message]) -> Self {
        let ids = messages.iter().map(|message| (message.id.as_str(), message.id.as_str())).collect();
        let mut providers: HashMap<&str, Option<&str>> = HashMap::new();
        for message in messages {
            if let Some(name) = message.provider_message_id.as_deref().filter(|name| !name.is_empty()) {
                providers.entry(name).and_modify(|id| *id = None).or_insert(Some(&message.id));
            }
        }
        Self { ids, providers }
    }

    /// Returns the id of a message, and whether `name` is its provider's id.
    fn find(&self, name: &str) -> Option<(&'m str, bool)> {
        let by_provider = || Some((self.providers.get(name).copied().flatten()?, true));
        self.ids.get(name).map(|id| (*id, false)).or_else(by_provider)
    }
}

fn by_children<'m>(messages: &'m [Message], names: &MessageNames<'m>) -> HashMap<&'m str, &'m str> {
    let mut by_children = HashMap::new();
    for message in messages {
        let children = message.children_ids.iter().filter_map(|child| names.find(child));
        for (child, _) in children.filter(|(child, _)| *child != message.id) {
            by_children.entry(child).or_insert(message.id.as_str());
        }
    }
    by_children
}

/// Returns whether the message carries no `active_path` note. Our own exports note it on every message, so a message
/// without links is a root there.
fn without_path_note(message: &Message) -> bool {
    message.raw_metadata.as_ref().is_none_or(|raw| !raw.as_str().contains("\"active_path\""))
}

/// Returns the leaf that the user last saw, if it is among the nodes.
pub(super) fn current(nodes: &[ReportedNode], named: Option<String>) -> Option<String> {
    named.filter(|named| nodes.iter().any(|node| node.id == *named))
}
