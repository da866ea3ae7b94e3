//! Maps one conversation of an export to records.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use satchel_importer::{
    Arena, Conversation, Evidence, Message, Role,
    address::unsigned_json,
    natural_key,
    order::{SORTED, contradicts},
    pam::unread,
    tree::{Link, Parent, SIBLING_NUMBER, Tree, chain},
};

use crate::{
    raw::{Export, MAX_ID, Node, key_of},
    split::{Item, is_list},
};

mod agents;
mod calls;
mod files;
mod memory;
mod message;
mod object;
mod parts;
mod sources;

/// The key in the metadata for a parent that the file lacks, or that was cut off.
const NODE_PARENT: &str = "node_parent";
/// Levels of nesting that a locator spells out.
const MAX_LEVELS: usize = 24;

const CYCLE: &str = "its parents lead back to it; it is read as a root";
const CLASH: &str = "different messages have the same id; the later ones are read under ids of their own";
const DIFFERING: &str = "the first values are read, and the others are kept in raw_metadata";
const NO_ROLE: &str = "it does not say whether the person wrote it; it is read as the model's";

/// The records of one conversation.
pub(crate) struct Records<'a> {
    pub(crate) conversation: Conversation<'a>,
    pub(crate) messages: Vec<Message<'a>>,
    /// What it says about memories.
    pub(crate) evidence: Vec<Evidence>,
    /// Skipped messages: locator and reason.
    pub(crate) skipped: Vec<(String, Cow<'static, str>)>,
    /// Locator and message.
    pub(crate) warnings: Vec<(String, Cow<'static, str>)>,
}

/// Maps one conversation; the error is the reason why there is nothing to emit.
pub(crate) fn records<'a>(
    mut export: Export<'a>,
    version: &'static str,
    locator: &str,
    arena: &'a Arena,
) -> Result<Records<'a>, &'static str> {
    let mut nodes = std::mem::take(&mut export.nodes);
    if nodes.is_empty() {
        return Err("its list of messages is empty");
    }
    let items = std::mem::take(&mut export.items);
    let locate = |node: &Node<'_>| place(&items, node.item, locator);
    let mut warnings = warnings(&export, locator);
    if link_in_order(&mut nodes) {
        warnings.push((locator.to_owned(), SORTED.into()));
    }
    let tree = Tree::link(links(&nodes), |_| []);
    for node in tree.cycle_roots().iter().filter_map(|at| nodes.get(*at)) {
        warnings.push((locate(node), CYCLE.into()));
    }
    let skipped = nodes.iter().filter_map(|node| Some((locate(node), node.problem.clone()?))).collect();
    let named = export.id;
    let conversation = conversation(export, &nodes, version, locator, arena);
    let places = places(&nodes, &tree);
    let mut messages = Vec::with_capacity(nodes.len());
    let mut noted = message::Noted::default();
    for (mut node, place) in nodes.into_iter().zip(places) {
        if node.problem.is_some() {
            continue;
        }
        keep_place(&mut node, &place, named);
        let locator = locate(&node);
        if !message::map(node, place.parent, arena, &mut messages, &mut noted) {
            warnings.push((locator, NO_ROLE.into()));
        }
    }
    for kind in noted.unknown {
        let message = format!("parts of the type {kind:?} are not known; they are kept in raw_metadata");
        warnings.push((locator.to_owned(), message.into()));
    }
    let evidence = memory::evidence(noted.memories, &conversation.id, locator);
    Ok(Records { conversation, messages, evidence, skipped, warnings })
}

/// The warnings about the file as a whole.
fn warnings(export: &Export<'_>, locator: &str) -> Vec<(String, Cow<'static, str>)> {
    let mut found: Vec<Cow<'static, str>> = Vec::new();
    if export.copies > 0 {
        found.push(format!("messages are listed a second time: {}; each is read once", export.copies).into());
    }
    if !export.differing.is_empty() {
        let names: Vec<&str> = export.differing.iter().copied().collect();
        found.push(format!("messages that are listed twice differ in {names:?}; {DIFFERING}").into());
    }
    if export.clashes {
        found.push(CLASH.into());
    }
    for key in &export.repeated {
        let read = if is_list(key) { "both lists are read" } else { "the last value is read" };
        found.push(format!("an object gives the key {key:?} twice; {read}").into());
    }
    if let Some(field) = export.rest.unread() {
        found.push(unread::in_field(field).into());
    }
    found.into_iter().map(|message| (locator.to_owned(), message)).collect()
}

/// Makes each message the answer to the one before if none has a parent or says that it has none. Returns whether their times contradict
/// the order of the file.
fn link_in_order(nodes: &mut [Node<'_>]) -> bool {
    let kept = |at: usize| nodes.get(at).and_then(Node::kept);
    if nodes.iter().filter_map(Node::kept).any(|message| message.first) {
        return false;
    }
    let time = |at: usize| kept(at).and_then(|message| message.created);
    // With equal roles the order of the file decides between equal times. If roles did, a message that is added to the end could turn around
    // two that were in order before, and each would be the parent of the other.
    let Some(parents) = chain(links(nodes), |_| false, |at| (Role::User, time(at))) else { return false };
    let sorted = contradicts((0..nodes.len()).map(time));
    for (node, parent) in nodes.iter_mut().zip(parents) {
        node.parent = parent;
    }
    sorted
}

fn links<'n, 'a: 'n>(nodes: &'n [Node<'a>]) -> impl Iterator<Item = Link<'a>> + Clone + use<'n, 'a> {
    nodes.iter().map(|node| Link { key: node.key, parent: node.parent, kept: node.kept().is_some() })
}

/// The place of a message in the tree.
struct Place<'a> {
    parent: Option<&'a str>,
    /// A parent that the file lacks or that was cut off.
    lost: Option<&'a str>,
    /// The number among its siblings, if their times give another order.
    number: Option<usize>,
}

fn places<'a>(nodes: &[Node<'a>], tree: &Tree<'a>) -> Vec<Place<'a>> {
    // The file lists siblings in the order in which they were written.
    let numbers: BTreeMap<usize, usize> = tree.sibling_numbers(|at| nodes.get(at)?.kept()?.created, Some);
    let cut: BTreeSet<usize> = tree.cycle_roots().iter().copied().collect();
    let place = |(at, node): (usize, &Node<'a>)| {
        let (parent, lost) = match tree.parent(at) {
            Parent::Root => (None, node.parent.filter(|_| cut.contains(&at))),
            Parent::Node(above) => (nodes.get(above).map(|node| node.key), None),
            // Another export may have it.
            Parent::Absent(key) => (Some(key), Some(key)),
        };
        Place { parent, lost, number: numbers.get(&at).copied() }
    };
    nodes.iter().enumerate().map(place).collect()
}

/// Keeps what the message's place and ids say beyond the record.
fn keep_place(node: &mut Node<'_>, place: &Place<'_>, conversation: Option<&str>) {
    let Some(message) = &mut node.message else { return };
    if let Some(lost) = place.lost {
        message.rest.add_text(NODE_PARENT, lost);
    }
    if let Some(number) = place.number {
        message.rest.add_json(SIBLING_NUMBER, &number.to_string());
    }
    // A copy of a conversation may name the original.
    if let Some(other) = message.conversation.filter(|other| conversation != Some(*other)) {
        message.rest.add_text("conversationId", other);
    }
}

/// The locator of an item: `file.json[0].messages[0].children[1]`, or only its number if it is nested deeply.
fn place(items: &[Item<'_>], index: usize, locator: &str) -> String {
    let mut steps = Vec::new();
    let mut next = items.get(index);
    while let Some(item) = next {
        if steps.len() == MAX_LEVELS {
            return format!("{locator}#message-{index}");
        }
        steps.push(format!(".{}[{}]", item.list, item.number));
        next = item.above.and_then(|above| items.get(above));
    }
    steps.reverse();
    [locator, &steps.concat()].concat()
}

fn conversation<'a>(
    export: Export<'a>,
    nodes: &[Node<'a>],
    version: &'static str,
    locator: &str,
    arena: &'a Arena,
) -> Conversation<'a> {
    let Export { id, title, created, updated, options, mut rest, .. } = export;
    if let Some(id) = id.filter(|id| id.len() > MAX_ID) {
        rest.add_text("conversationId", id);
    }
    // Without an id, the first message identifies the conversation; its title can change.
    let own = || natural_key(&[nodes.first().map(|node| node.key)]);
    Conversation {
        id: id.map_or_else(|| Cow::Owned(own()), |id| Cow::Borrowed(key_of(id, arena))),
        provider_conversation_id: id.filter(|id| id.len() <= MAX_ID).map(Cow::Borrowed),
        export_format_version: Some(version.into()),
        title: title.filter(|title| !title.trim().is_empty()).map(Cow::Borrowed),
        created_at: created,
        updated_at: updated,
        model: options.model.map(Cow::Borrowed),
        system_instruction: options.system.map(Cow::Borrowed),
        is_archived: options.archived,
        tags: tags(&options.tags),
        raw_metadata: rest.into_json().map(unsigned_json),
        locator: Cow::Owned(locator.to_owned()),
        ..Conversation::default()
    }
}

/// The tags in the form that PAM requires. Others are only in the metadata, which has all of them.
fn tags<'a>(written: &[&str]) -> Vec<Cow<'a, str>> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let mut known = BTreeSet::new();
    let plain = written.iter().map(|tag| tag.trim().to_lowercase().replace(char::is_whitespace, "-"));
    let fits = |tag: &String| {
        tag.starts_with(|c: char| c.is_ascii_alphanumeric())
            && tag.chars().all(allowed)
            && known.insert(tag.clone())
    };
    plain.filter(fits).map(Cow::Owned).collect()
}

/// The kind of a part that becomes a message of its own before the message that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AsideKind {
    /// Reasoning before an answer.
    Thought,
    /// What the person wrote while the model was at work.
    Steer,
    /// A summary of what was said before, for the model.
    Summary,
}

impl AsideKind {
    /// The word for it in the id of its message.
    fn word(self) -> &'static str {
        match self {
            Self::Thought => "think",
            Self::Steer => "steer",
            Self::Summary => "summary",
        }
    }

    fn role(self) -> Role {
        match self {
            Self::Thought => Role::Assistant,
            Self::Steer => Role::User,
            Self::Summary => Role::System,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_the_form_of_pam() {
        assert_eq!(
            tags(&["Garden", "two words", "garden", "grün", "_a", "", "c3_x"]),
            ["garden", "two-words", "c3_x"]
        );
    }

    #[test]
    fn locators_of_deep_messages_are_short() {
        let item = |above| Item { text: "{}", list: "children", number: 0, above };
        let items: Vec<Item<'_>> = (0..100_usize).map(|at| item(at.checked_sub(1))).collect();
        assert_eq!(place(&items, 1, "a[0]"), "a[0].children[0].children[0]");
        assert_eq!(place(&items, 99, "a[0]"), "a[0]#message-99");
    }
}
