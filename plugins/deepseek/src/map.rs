//! From one conversation of the provider to the records that are emitted; nothing is read or written here.

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

mod active;
mod citations;
mod files;
mod message;

/// The parent that a node names, where its message answers none.
const NODE_PARENT: &str = "node_parent";

/// What holds for all conversations of an export.
pub(crate) struct Context<'c> {
    /// The format's version.
    pub(crate) version: &'static str,
    pub(crate) account: Option<&'c str>,
}

/// What one conversation gives.
pub(crate) struct Records<'a> {
    pub(crate) conversation: Conversation<'a>,
    pub(crate) messages: Vec<Message<'a>>,
    /// Nodes that are left out: locator and reason.
    pub(crate) skipped: Vec<(String, &'static str)>,
    /// Locator and message.
    pub(crate) warnings: Vec<(String, &'static str)>,
}

/// Maps one conversation; a text if there is nothing to emit.
pub(crate) fn records<'a>(
    mut raw: raw::Conversation<'a>,
    context: &Context<'_>,
    locator: &str,
    arena: &'a Arena,
) -> Result<Records<'a>, &'static str> {
    check(&raw)?;
    let place = |key: &str| format!("{locator}.mapping.{key}");
    let mut nodes = std::mem::take(&mut raw.nodes);
    let mut warnings = Vec::new();
    if chain_up(&mut nodes) {
        warnings.push((locator.to_owned(), CHAINED));
    }
    let tree = link(&nodes);
    for node in tree.cut().iter().filter_map(|at| nodes.get(*at)) {
        warnings.push((place(node.key), "its parents lead back to it; it is read as a root"));
    }
    let current = active::leaf(&nodes, &tree);
    let skipped = nodes.iter().filter_map(|node| Some((place(node.key), node.odd?))).collect();
    let conversation = conversation(raw, current, &nodes, context, locator);
    let parents: Vec<Option<&'a str>> = (0..nodes.len())
        .map(|at| match tree.parent(at) {
            Parent::Root => None,
            Parent::Node(above) => nodes.get(above).map(|node| node.key),
            // Another export may bring it.
            Parent::Absent(key) => Some(key),
        })
        .collect();
    let numbers = sibling_numbers(&nodes, &tree);
    let cut: BTreeSet<usize> = tree.cut().iter().copied().collect();
    let mut messages = Vec::with_capacity(nodes.len());
    for (at, (mut node, parent)) in nodes.into_iter().zip(parents).enumerate() {
        let named = node.parent.filter(|_| cut.contains(&at));
        keep_place(&mut node, tree.parent(at), named, numbers.get(&at));
        if let Some(odd) = message::map(node, parent, arena, &mut messages) {
            warnings.push((place(odd), "it does not say who speaks; it is read as the assistant's"));
        }
    }
    Ok(Records { conversation, messages, skipped, warnings })
}

/// Whether there is anything to emit or to report.
fn check(raw: &raw::Conversation<'_>) -> Result<(), &'static str> {
    match raw.mapping {
        Mapping::Absent => Err("mapping is absent or null"),
        Mapping::Odd => Err("mapping is not an object"),
        Mapping::Nodes if raw.nodes.iter().all(|node| node.message.is_none() && node.odd.is_none()) => {
            Err("it holds no message")
        }
        Mapping::Nodes => Ok(()),
    }
}

/// Said where no node names another.
const CHAINED: &str =
    "no message names the one that it answers; each is read as the answer to the one before";

/// Hangs each message on the one before where no node names another; whether that was so.
fn chain_up(nodes: &mut [Node<'_>]) -> bool {
    let said = |at: usize| {
        let message = nodes.get(at).and_then(|node| node.message.as_ref());
        let asks = message.is_some_and(message::asks);
        (if asks { Role::User } else { Role::Assistant }, message.and_then(|message| message.created))
    };
    let names = |at: usize| nodes.get(at).is_some_and(|node| !node.children.is_empty());
    let Some(parents) = chain(links(nodes), names, said) else { return false };
    nodes.iter_mut().zip(parents).for_each(|(node, parent)| node.parent = parent);
    true
}

fn links<'a>(nodes: &[Node<'a>]) -> impl Iterator<Item = Link<'a>> + Clone {
    nodes.iter().map(|node| Link { key: node.key, parent: node.parent, kept: node.message.is_some() })
}

/// Hangs every message under its nearest ancestor with one.
fn link<'a>(nodes: &[Node<'a>]) -> Tree<'a> {
    Tree::link(links(nodes), |at| nodes.get(at).map(|node| node.children.clone()).unwrap_or_default())
}

/// The order of siblings by the lists of children, where times do not tell it.
fn sibling_numbers(nodes: &[Node<'_>], tree: &Tree<'_>) -> BTreeMap<usize, usize> {
    let keys: Vec<&str> = nodes.iter().map(|node| node.key).collect();
    let ranks = ranks(&keys, |at| nodes.get(at).map(|node| node.children.clone()).unwrap_or_default());
    let time = |at: usize| nodes.get(at)?.message.as_ref()?.created;
    tree.sibling_numbers(time, |at| ranks.get(at).copied().flatten())
}

/// Keeps what the message's own links do not tell of its place: a parent that the export lacks or that was `cut` off, its number among
/// siblings.
fn keep_place<'a>(node: &mut Node<'a>, parent: Parent<'a>, cut: Option<&'a str>, number: Option<&usize>) {
    let lost = if let Parent::Absent(key) = parent { Some(key) } else { cut };
    if let (Some(lost), Some(message)) = (lost, &mut node.message) {
        message.rest.add_text(NODE_PARENT, lost);
    }
    if let (Some(number), Some(message)) = (number, &mut node.message) {
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
    let id = raw.id.map_or_else(|| Cow::Owned(natural(&raw, nodes, context)), Cow::Borrowed);
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

/// A key made of what later exports of the same conversation hold too; a title can be changed, so it counts only where
/// there is no time.
fn natural(raw: &raw::Conversation<'_>, nodes: &[Node<'_>], context: &Context<'_>) -> String {
    let created = raw.created.map(|time| time.to_string());
    let first = nodes.iter().find_map(|node| node.message.as_ref()).and_then(message::first_words);
    natural_key(&[context.account, created.as_deref().or(raw.title), first])
}
