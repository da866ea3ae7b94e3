//! Maps one chat of the export to records.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{
    Arena, Conversation, Message, Participant, Role,
    address::unsigned_json,
    natural_key,
    order::{SORTED, contradicts},
    pam::unread,
    tree::{Link, Parent, SIBLING_NUMBER, Tree, chain, ranks},
};

use crate::raw::{Chat, Layout, Node};

mod files;
mod message;
mod output;
mod pieces;
mod sources;

/// The key in the metadata for the parent that a message names and does not have.
const NODE_PARENT: &str = "node_parent";
/// The key in the metadata for the current message that is not in the chat.
const CURRENT: &str = "missing_current";
/// The account of copies that the program made for shared links.
pub(crate) const SHARED: &str = "shared-";

const CHAINED: &str =
    "no message names the one that it answers; each is read as the answer to the one before";
const CYCLE: &str = "its parents lead back to it; it is read as a root";
const NO_ROLE: &str = "it does not say who speaks; it is read as the assistant's";

/// The records of one chat.
pub(crate) struct Records<'a> {
    pub(crate) conversation: Conversation<'a>,
    pub(crate) messages: Vec<Message<'a>>,
    /// Skipped messages: locator and reason.
    pub(crate) skipped: Vec<(String, &'static str)>,
    /// Locator and message.
    pub(crate) warnings: Vec<(String, Cow<'static, str>)>,
}

/// Maps one chat; the error is the reason why there is nothing to emit.
pub(crate) fn records<'a>(
    mut chat: Chat<'a>,
    version: &'static str,
    locator: &str,
    arena: &'a Arena,
) -> Result<Records<'a>, &'static str> {
    if chat.nodes.is_empty() {
        return Err(if chat.layout == Layout::Absent { "it has no messages" } else { "it is empty" });
    }
    let inside = if chat.inside { "chat." } else { "" };
    let locate = |node: &Node<'_>| format!("{locator}.{inside}{}", node.place);
    let mut nodes = std::mem::take(&mut chat.nodes);
    let mut warnings: Vec<(String, Cow<'static, str>)> = Vec::new();
    if let Some(warning) = link_in_order(&mut nodes, chat.layout) {
        warnings.push((locator.to_owned(), warning.into()));
    }
    let tree = link(&nodes);
    for node in tree.cycle_roots().iter().filter_map(|at| nodes.get(*at)) {
        warnings.push((locate(node), CYCLE.into()));
    }
    if let Some(field) = chat.rest.unread() {
        warnings.push((locator.to_owned(), unread::in_field(field).into()));
    }
    let skipped = nodes.iter().filter_map(|node| Some((locate(node), node.problem?))).collect();
    let conversation = conversation(chat, &nodes, &tree, version, locator);
    let places = places(&nodes, &tree);
    let mut messages = Vec::with_capacity(nodes.len());
    for (mut node, place) in nodes.into_iter().zip(places) {
        if node.problem.is_some() {
            continue;
        }
        keep_place(&mut node, &place);
        let locator = locate(&node);
        if !message::map(node, place.parent, arena, &mut messages) {
            warnings.push((locator, NO_ROLE.into()));
        }
    }
    Ok(Records { conversation, messages, skipped, warnings })
}

/// Makes each message the child of the one before if no message names another. Returns the warning, if there is one.
fn link_in_order(nodes: &mut [Node<'_>], layout: Layout) -> Option<&'static str> {
    let time = |at: usize| nodes.get(at).and_then(Node::kept).and_then(|message| message.created);
    let role = |at: usize| {
        let role = nodes.get(at).and_then(Node::kept).map(|message| message::role(message.role).0);
        role.unwrap_or_default()
    };
    let names_children = |at: usize| nodes.get(at).is_some_and(|node| !node.children().is_empty());
    let parents = chain(links(nodes), names_children, |at| (role(at), time(at)))?;
    let sorted = contradicts((0..nodes.len()).map(time));
    for (node, parent) in nodes.iter_mut().zip(parents) {
        if let Some(message) = &mut node.message {
            message.parent = parent;
        }
    }
    match layout {
        Layout::Tree => Some(CHAINED),
        Layout::List | Layout::Absent => sorted.then_some(SORTED),
    }
}

fn links<'n, 'a: 'n>(nodes: &'n [Node<'a>]) -> impl Iterator<Item = Link<'a>> + Clone + use<'n, 'a> {
    nodes.iter().map(|node| Link {
        key: node.key,
        parent: node.message.as_ref().and_then(|message| message.parent),
        kept: node.kept().is_some(),
    })
}

/// Links every message to its nearest ancestor with a message.
fn link<'a>(nodes: &[Node<'a>]) -> Tree<'a> {
    Tree::link(links(nodes), |at| children(nodes, at))
}

fn children<'a>(nodes: &[Node<'a>], at: usize) -> Vec<&'a str> {
    nodes.get(at).map(|node| node.children().to_vec()).unwrap_or_default()
}

/// The place of a message in the tree.
struct Place<'a> {
    parent: Option<&'a str>,
    /// A parent that the export lacks or that was cut.
    lost: Option<&'a str>,
    /// The number among its siblings, if their times give another order.
    number: Option<usize>,
}

fn places<'a>(nodes: &[Node<'a>], tree: &Tree<'a>) -> Vec<Place<'a>> {
    let keys: Vec<&str> = nodes.iter().map(|node| node.key).collect();
    let ranks = ranks(&keys, |at| children(nodes, at));
    let numbers: BTreeMap<usize, usize> =
        tree.sibling_numbers(|at| nodes.get(at)?.kept()?.created, |at| ranks.get(at).copied().flatten());
    let cut: BTreeSet<usize> = tree.cycle_roots().iter().copied().collect();
    let place = |(at, node): (usize, &Node<'a>)| {
        let own = node.message.as_ref().and_then(|message| message.parent).filter(|_| cut.contains(&at));
        let (parent, lost) = match tree.parent(at) {
            Parent::Root => (None, own),
            Parent::Node(above) => (nodes.get(above).map(|node| node.key), None),
            // Another export may have it.
            Parent::Absent(key) => (Some(key), Some(key)),
        };
        Place { parent, lost, number: numbers.get(&at).copied() }
    };
    nodes.iter().enumerate().map(place).collect()
}

fn keep_place(node: &mut Node<'_>, place: &Place<'_>) {
    let Some(message) = &mut node.message else { return };
    if let Some(lost) = place.lost {
        message.rest.add_text(NODE_PARENT, lost);
    }
    if let Some(number) = place.number {
        message.rest.add_json(SIBLING_NUMBER, &number.to_string());
    }
}

fn conversation<'a>(
    mut chat: Chat<'a>,
    nodes: &[Node<'a>],
    tree: &Tree<'a>,
    version: &'static str,
    locator: &str,
) -> Conversation<'a> {
    let current = current(&mut chat, nodes, tree);
    let shared = chat.user.filter(|user| user.starts_with(SHARED));
    if let Some(shared) = shared {
        chat.rest.add_text("user_id", shared);
    }
    let account = chat.user.filter(|_| shared.is_none());
    let id = chat.id.map_or_else(|| Cow::Owned(natural_id(&chat, nodes)), Cow::Borrowed);
    let person = |id: &'a str| Participant { role: Role::User, name: None, provider_id: Some(id.into()) };
    Conversation {
        id,
        provider_conversation_id: chat.id.map(Cow::Borrowed),
        account: account.map(Cow::Borrowed),
        export_format_version: Some(version.into()),
        title: chat.title.filter(|title| !title.trim().is_empty()).map(Cow::Borrowed),
        created_at: chat.created,
        updated_at: chat.updated,
        participants: account.map(person).into_iter().collect(),
        model: chat.model.map(Cow::Borrowed),
        system_instruction: chat.system.map(Cow::Borrowed),
        is_archived: chat.archived,
        tags: tags(&chat.tags),
        current: current.map(Cow::Borrowed),
        raw_metadata: chat.rest.into_json().map(unsigned_json),
        locator: Cow::Owned(locator.to_owned()),
    }
}

/// The current message: the first stated one that the chat has. Those that it lacks are kept.
fn current<'a>(chat: &mut Chat<'a>, nodes: &[Node<'a>], tree: &Tree<'a>) -> Option<&'a str> {
    let mut found = None;
    let mut missing = None;
    for id in std::mem::take(&mut chat.current) {
        match tree.nearest_kept(id).and_then(|at| nodes.get(at)) {
            Some(node) => found = found.or(Some(node.key)),
            None => missing = missing.or(Some(id)),
        }
    }
    if let Some(missing) = missing {
        chat.rest.add_text(CURRENT, missing);
    }
    found
}

/// An id derived from what later exports of the chat have too. The title can change, so it is used only if there is no time.
fn natural_id(chat: &Chat<'_>, nodes: &[Node<'_>]) -> String {
    let created = chat.created.map(|time| time.to_string());
    let first = nodes.iter().find_map(Node::kept).and_then(|message| message.content.text());
    natural_key(&[chat.user, created.as_deref().or(chat.title), first])
}

/// The tags in the form that PAM asks for; those that have none remain in the metadata, as all do.
fn tags<'a>(written: &[&'a str]) -> Vec<Cow<'a, str>> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let mut known = BTreeSet::new();
    let mut tags = Vec::new();
    for tag in written {
        let tag = tag.trim().to_lowercase().replace(char::is_whitespace, "-");
        let fits = tag.starts_with(|c: char| c.is_ascii_alphanumeric()) && tag.chars().all(allowed);
        if fits && known.insert(tag.clone()) {
            tags.push(Cow::Owned(tag));
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_the_form_of_pam() {
        let tags = tags(&["Garden", "two words", "garden", "grün", "_a", "", "c3_x"]);
        assert_eq!(tags, ["garden", "two-words", "c3_x"]);
    }
}
