//! Who answers whom in a document: PAM says it twice, by parents and by children, and some producers say it once, or not at all, or
//! by the provider's ids.

use std::collections::HashMap;

use satchel_pam::conversation::Message;

use super::ReportedNode;

/// Who answers whom.
pub(super) struct Links {
    /// The parent of each message.
    pub(super) parents: Vec<Option<String>>,
    /// Whether nobody named any: each message follows the one before.
    pub(super) line: bool,
    /// What was read otherwise than it stands, for people.
    pub(super) notes: Vec<String>,
}

/// The parent of each message. Where only the other end knows a link, that is taken; where nobody knows any, as with providers whose
/// conversations are a line, each message follows the one before; so does one whose parent is nowhere. `line`: the document says
/// that it is one.
pub(super) fn of(messages: &[Message], line: bool) -> Links {
    let names = Names::of(messages);
    let by_children = by_children(messages, &names);
    let named = |message: &Message| message.parent_id.as_deref().is_some_and(|id| !id.is_empty());
    let unlinked = by_children.is_empty() && !messages.iter().any(named);
    // Of ours it was told when they were imported.
    let ours = line;
    let line = unlinked && (line || messages.iter().all(unplaced));
    let (mut by_provider, mut lost) = (0_usize, 0_usize);
    let parents = messages.iter().enumerate().map(|(at, message)| {
        let before = || at.checked_sub(1).map(|before| messages[before].id.clone());
        if line {
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
    if line && !ours && !messages.is_sorted_by_key(|message| message.created_at.micros()) {
        notes.push(
            "the document lists its messages in another order than their times; they are read in the order of the document"
                .to_owned(),
        );
    }
    Links { parents, line, notes }
}

/// What messages are called.
struct Names<'m> {
    ids: HashMap<&'m str, &'m str>,
    /// Where that names one message only.
    providers: HashMap<&'m str, Option<&'m str>>,
}

impl<'m> Names<'m> {
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

    /// The id of a message, and whether it was named by its provider's id.
    fn find(&self, name: &str) -> Option<(&'m str, bool)> {
        let by_provider = || Some((self.providers.get(name).copied().flatten()?, true));
        self.ids.get(name).map(|id| (*id, false)).or_else(by_provider)
    }
}

fn by_children<'m>(messages: &'m [Message], names: &Names<'m>) -> HashMap<&'m str, &'m str> {
    let mut by_children = HashMap::new();
    for message in messages {
        let children = message.children_ids.iter().filter_map(|child| names.find(child));
        for (child, _) in children.filter(|(child, _)| *child != message.id) {
            by_children.entry(child).or_insert(message.id.as_str());
        }
    }
    by_children
}

/// Our own exports say of every message where it stands: one without links is a root there.
fn unplaced(message: &Message) -> bool {
    message.raw_metadata.as_ref().is_none_or(|raw| !raw.as_str().contains("\"active_path\""))
}

/// The leaf that the person last saw, if it is among the nodes.
pub(super) fn current(nodes: &[ReportedNode], named: Option<String>) -> Option<String> {
    named.filter(|named| nodes.iter().any(|node| node.id == *named))
}
