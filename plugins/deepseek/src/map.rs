//! Maps one conversation of the export to records.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{
    Arena, Conversation, Message, Participant, Role,
    address::unsigned_json,
    natural_key,
    tree::{Link, Parent, SIBLING_NUMBER, Tree, chain, ranks},
};

use crate::raw::{self, Mapping, Node};

mod citations;
mod files;
mod message;

/// The key in the metadata for the parent that a node names and the message does not have.
const NODE_PARENT: &str = "node_parent";

/// What all conversations of an export share.
pub(crate) struct Context<'c> {
    /// The format's version.
    pub(crate) version: &'static str,
    pub(crate) account: Option<&'c str>,
}

/// The records of one conversation.
pub(crate) struct Records<'a> {
    pub(crate) conversation: Conversation<'a>,
    pub(crate) messages: Vec<Message<'a>>,
    /// Skipped nodes: locator and reason.
    pub(crate) skipped: Vec<(String, &'static str)>,
    /// Locator and message.
    pub(crate) warnings: Vec<(String, &'static str)>,
}

/// Maps one conversation; the error is the reason why there is nothing to emit.
pub(crate) fn records<'a>(
    mut raw: raw::Conversation<'a>,
    context: &Context<'_>,
    locator: &str,
    arena: &'a Arena,
) -> Result<Records<'a>, &'static str> {
    check(&raw)?;
    let locate = |key: &str| format!("{locator}.mapping.{key}");
    let mut nodes = std::mem::take(&mut raw.nodes);
    let mut warnings = Vec::new();
    if link_in_order(&mut nodes) {
        warnings.push((locator.to_owned(), CHAINED));
    }
    let tree = link(&nodes);
    for node in tree.cycle_roots().iter().filter_map(|at| nodes.get(*at)) {
        warnings.push((locate(node.key), "its parents lead back to it; it is read as a root"));
    }
    let current = current_leaf(&nodes, &tree);
    let skipped = nodes.iter().filter_map(|node| Some((locate(node.key), node.problem?))).collect();
    let conversation = conversation(raw, current, &nodes, context, locator);
    let parents: Vec<Option<&'a str>> = (0..nodes.len())
        .map(|at| match tree.parent(at) {
            Parent::Root => None,
            Parent::Node(above) => nodes.get(above).map(|node| node.key),
            // Another export may have it.
            Parent::Absent(key) => Some(key),
        })
        .collect();
    let numbers = sibling_numbers(&nodes, &tree);
    let cut: BTreeSet<usize> = tree.cycle_roots().iter().copied().collect();
    let mut messages = Vec::with_capacity(nodes.len());
    for (at, (mut node, parent)) in nodes.into_iter().zip(parents).enumerate() {
        let cut_parent = node.parent.filter(|_| cut.contains(&at));
        keep_position(&mut node, tree.parent(at), cut_parent, numbers.get(&at));
        if let Some(key) = message::map(node, parent, arena, &mut messages) {
            warnings.push((locate(key), "it does not say who speaks; it is read as the assistant's"));
        }
    }
    Ok(Records { conversation, messages, skipped, warnings })
}

/// Whether there is anything to emit or to report.
fn check(raw: &raw::Conversation<'_>) -> Result<(), &'static str> {
    match raw.mapping {
        Mapping::Absent => Err("mapping is absent or null"),
        Mapping::Invalid => Err("mapping is not an object"),
        Mapping::Nodes if raw.nodes.iter().all(|node| node.message.is_none() && node.problem.is_none()) => {
            Err("it holds no message")
        }
        Mapping::Nodes => Ok(()),
    }
}

/// The warning if no node names another.
const CHAINED: &str =
    "no message names the one that it answers; each is read as the answer to the one before";

/// Makes each message the child of the one before if no node names another; true if so.
fn link_in_order(nodes: &mut [Node<'_>]) -> bool {
    let role_and_time = |at: usize| {
        let message = nodes.get(at).and_then(|node| node.message.as_ref());
        let question = message.is_some_and(message::is_question);
        (if question { Role::User } else { Role::Assistant }, message.and_then(|message| message.created))
    };
    let names_children = |at: usize| nodes.get(at).is_some_and(|node| !node.children.is_empty());
    let Some(parents) = chain(links(nodes), names_children, role_and_time) else { return false };
    nodes.iter_mut().zip(parents).for_each(|(node, parent)| node.parent = parent);
    true
}

fn links<'a>(nodes: &[Node<'a>]) -> impl Iterator<Item = Link<'a>> + Clone {
    nodes.iter().map(|node| Link { key: node.key, parent: node.parent, kept: node.message.is_some() })
}

/// Links every message to its nearest ancestor with a message.
fn link<'a>(nodes: &[Node<'a>]) -> Tree<'a> {
    Tree::link(links(nodes), |at| nodes.get(at).map(|node| node.children.clone()).unwrap_or_default())
}

/// The key of the current message, which the export does not name. The website shows the last child of each node, so it is
/// at the end of that path from the last root. Times do not help: they go backwards, and the newest answer is often one that
/// failed.
fn current_leaf<'a>(nodes: &[Node<'a>], tree: &Tree<'_>) -> Option<&'a str> {
    let named = nodes.iter().flat_map(|node| node.children.iter().copied().enumerate());
    let ranks: BTreeMap<&str, usize> = named.map(|(rank, child)| (child, rank)).collect();
    // The rank and index of the last child of each node; the final slot has the last root.
    let mut last: Vec<Option<(usize, usize)>> = vec![None; nodes.len() + 1];
    for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.message.is_some()) {
        let above = match tree.parent(at) {
            Parent::Node(above) => above,
            Parent::Root | Parent::Absent(_) => nodes.len(),
        };
        let rank = ranks.get(node.key).copied().unwrap_or(at);
        if let Some(slot) = last.get_mut(above)
            && slot.is_none_or(|(known, _)| known <= rank)
        {
            *slot = Some((rank, at));
        }
    }
    let mut leaf = None;
    let mut next = last.get(nodes.len()).copied().flatten();
    // The tree has no cycles, so this ends.
    while let Some((_, at)) = next {
        leaf = nodes.get(at).map(|node| node.key);
        next = last.get(at).copied().flatten();
    }
    leaf
}

/// Numbers of siblings by the lists of children, if their times give another order.
fn sibling_numbers(nodes: &[Node<'_>], tree: &Tree<'_>) -> BTreeMap<usize, usize> {
    let keys: Vec<&str> = nodes.iter().map(|node| node.key).collect();
    let ranks = ranks(&keys, |at| nodes.get(at).map(|node| node.children.clone()).unwrap_or_default());
    let time = |at: usize| nodes.get(at)?.message.as_ref()?.created;
    tree.sibling_numbers(time, |at| ranks.get(at).copied().flatten())
}

/// Keeps a parent that the export lacks or that was cut, and the number among siblings.
fn keep_position<'a>(node: &mut Node<'a>, parent: Parent<'a>, cut: Option<&'a str>, number: Option<&usize>) {
    let Some(message) = &mut node.message else { return };
    let lost = if let Parent::Absent(key) = parent { Some(key) } else { cut };
    if let Some(lost) = lost {
        message.rest.add_text(NODE_PARENT, lost);
    }
    if let Some(number) = number {
        message.rest.add_json(SIBLING_NUMBER, &number.to_string());
    }
}

fn conversation<'a>(
    raw: raw::Conversation<'a>,
    current: Option<&'a str>,
    nodes: &[Node<'a>],
    context: &Context<'_>,
    locator: &str,
) -> Conversation<'a> {
    let id = raw.id.map_or_else(|| Cow::Owned(natural_id(&raw, nodes, context)), Cow::Borrowed);
    let account: Option<Cow<'a, str>> = context.account.map(|account| account.to_owned().into());
    let person = |account: &Cow<'a, str>| Participant {
        role: Role::User,
        name: None,
        provider_id: Some(account.clone()),
    };
    Conversation {
        id,
        provider_conversation_id: raw.id.map(Cow::Borrowed),
        participants: account.iter().map(person).collect(),
        account,
        export_format_version: Some(context.version.into()),
        title: raw.title.filter(|title| !title.trim().is_empty()).map(Cow::Borrowed),
        created_at: raw.created,
        updated_at: raw.updated,
        current: current.map(Cow::Borrowed),
        raw_metadata: raw.rest.into_json().map(unsigned_json),
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    }
}

/// An id derived from what later exports of the conversation have too. The title can change, so it is used only if there is
/// no time.
fn natural_id(raw: &raw::Conversation<'_>, nodes: &[Node<'_>], context: &Context<'_>) -> String {
    let created = raw.created.map(|time| time.to_string());
    let first = nodes.iter().find_map(|node| node.message.as_ref()).and_then(message::first_text);
    natural_key(&[context.account, created.as_deref().or(raw.title), first])
}
