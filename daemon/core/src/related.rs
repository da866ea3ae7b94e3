//! Memories that are linked to one: by relations, by succession, and by the conversation that they come from.

use std::collections::HashSet;

use satchel_pam::relation::RelationType;
use satchel_store::{MemoryQuery, MemoryRecord, RelationRecord, Revision, Store, StoreError};

/// Steps that are followed if nothing else is asked for.
pub const DEFAULT_DEPTH: usize = 2;
/// The most steps that are followed; with more, nearly everything is related to everything.
pub const MAX_DEPTH: usize = 5;
/// Links of each kind that are followed from one memory. More of them are a sign of a label rather than of a connection.
const MAX_LINKS: usize = 200;
/// Links that are read in all.
const MAX_READ: usize = 20_000;
/// Memories that are found.
const MAX_FOUND: usize = 1_000;

/// A kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A relation.
    Relation,
    /// `temporal.superseded_by`.
    SupersededBy,
    /// The same conversation.
    Conversation,
}

/// How one memory leads to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// A relation.
    Relation {
        /// Its id.
        id: String,
        /// Its type.
        relation_type: RelationType,
        /// Whether it goes out from the memory before the step.
        outgoing: bool,
    },
    /// `temporal.superseded_by` of the memory before the step.
    SupersededBy,
    /// The conversation with this id.
    Conversation(String),
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How it leads on.
    pub link: Link,
    /// Where it leads to.
    pub memory: String,
}

/// What is looked for.
#[derive(Clone, Debug)]
pub struct RelatedQuery {
    /// The most steps.
    pub depth: usize,
    /// Links that are followed; empty: all.
    pub kinds: Vec<LinkKind>,
    /// Types of relations that are followed; empty: all.
    pub types: Vec<RelationType>,
    /// The revision that is looked at.
    pub at: Revision,
}

/// A memory that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedMemory {
    /// Its id.
    pub id: String,
    /// The steps that lead to it; no path is shorter.
    pub path: Vec<Step>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelatedMemories {
    /// The nearest first.
    pub memories: Vec<RelatedMemory>,
    /// Whether a limit was reached.
    pub truncated: bool,
}

/// Finds the memories that are linked to `start`, directly or over others.
///
/// `show` returns a memory as the caller sees it, or `None` if the caller must not know of it. Only what it returns is followed, so no
/// path reveals what it leaves out. `start` is as the caller sees it, too.
///
/// # Errors
/// Any error of the store or of `show`.
pub fn related_memories<E: From<StoreError>>(
    store: &Store,
    start: &MemoryRecord,
    query: &RelatedQuery,
    show: impl FnMut(MemoryRecord) -> Result<Option<MemoryRecord>, E>,
) -> Result<RelatedMemories, E> {
    let mut walk = Walk {
        store,
        query,
        show,
        nodes: vec![Node::new(start, 0, None)],
        visited: HashSet::from([start.memory.id.clone()]),
        conversations: HashSet::new(),
        unread: MAX_READ,
        truncated: false,
    };
    let mut level = 0..1;
    for _ in 0..query.depth.min(MAX_DEPTH) {
        // What somebody has stated leads on before what only stands in the same conversation.
        level.clone().try_for_each(|at| walk.follow_relations(at))?;
        level.clone().try_for_each(|at| walk.follow_succession(at))?;
        level.clone().try_for_each(|at| walk.follow_conversation(at))?;
        level = level.end..walk.nodes.len();
    }
    Ok(walk.finish())
}

/// A memory that was reached.
struct Node {
    id: String,
    superseded_by: Option<String>,
    conversation: Option<String>,
    /// The node that leads to it.
    parent: usize,
    /// `None` for the first node.
    link: Option<Link>,
}

impl Node {
    fn new(record: &MemoryRecord, parent: usize, link: Option<Link>) -> Self {
        let memory = &record.memory;
        Self {
            id: memory.id.clone(),
            superseded_by: memory.temporal.superseded_by.clone(),
            conversation: memory.provenance.conversation_ref.clone(),
            parent,
            link,
        }
    }
}

/// A search in breadth.
struct Walk<'a, F> {
    store: &'a Store,
    query: &'a RelatedQuery,
    show: F,
    /// In the order in which they were reached.
    nodes: Vec<Node>,
    /// The ids of all memories that were looked at, shown or not.
    visited: HashSet<String>,
    /// The conversations whose memories were all visited.
    conversations: HashSet<String>,
    /// How many links may still be read.
    unread: usize,
    truncated: bool,
}

impl<E: From<StoreError>, F: FnMut(MemoryRecord) -> Result<Option<MemoryRecord>, E>> Walk<'_, F> {
    fn follows(&self, kind: LinkKind) -> bool {
        self.query.kinds.is_empty() || self.query.kinds.contains(&kind)
    }

    fn follow_relations(&mut self, at: usize) -> Result<(), E> {
        if !self.follows(LinkKind::Relation) {
            return Ok(());
        }
        let from = self.nodes[at].id.clone();
        let (relations, more) = self.store.first_relations_of(&from, Some(self.query.at), self.unread)?;
        self.truncated |= more;
        self.unread = self.unread.saturating_sub(relations.len());
        let mut followed = 0;
        for RelationRecord { relation, .. } in relations {
            if !self.query.types.is_empty() && !self.query.types.contains(&relation.relation_type) {
                continue;
            }
            if followed == MAX_LINKS {
                self.truncated = true;
                break;
            }
            let outgoing = relation.from == from;
            let to = if outgoing { relation.to } else { relation.from };
            let link = Link::Relation { id: relation.id, relation_type: relation.relation_type, outgoing };
            // Only links that the caller sees count, so that the limit does not reveal others.
            followed += usize::from(self.reach(at, &to, link)?);
        }
        Ok(())
    }

    fn follow_succession(&mut self, at: usize) -> Result<(), E> {
        let successor = self.nodes[at].superseded_by.clone();
        let Some(successor) = successor.filter(|_| self.follows(LinkKind::SupersededBy)) else {
            return Ok(());
        };
        self.reach(at, &successor, Link::SupersededBy)?;
        Ok(())
    }

    fn follow_conversation(&mut self, at: usize) -> Result<(), E> {
        let conversation = self.nodes[at].conversation.clone();
        let Some(id) = conversation.filter(|_| self.follows(LinkKind::Conversation)) else { return Ok(()) };
        if !self.conversations.insert(id.clone()) {
            return Ok(());
        }
        let query = MemoryQuery { conversation: Some(id.clone()), ..MemoryQuery::default() };
        let (mut after, mut followed) = (None, 0);
        loop {
            let limit = MAX_LINKS.min(self.unread);
            if limit == 0 {
                self.truncated = true;
                return Ok(());
            }
            let page = self.store.memories(&query, after.as_ref(), limit, self.query.at)?;
            self.unread = self.unread.saturating_sub(page.items.len());
            for record in page.items {
                if followed == MAX_LINKS {
                    self.truncated = true;
                    return Ok(());
                }
                followed += usize::from(self.reach(at, &record.memory.id, Link::Conversation(id.clone()))?);
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Adds a memory if it was not visited. Returns whether it was added.
    fn reach(&mut self, parent: usize, id: &str, link: Link) -> Result<bool, E> {
        if !self.visited.insert(id.to_owned()) {
            return Ok(false);
        }
        if self.nodes.len() > MAX_FOUND {
            self.truncated = true;
            return Ok(false);
        }
        let record = self.store.memory(id, Some(self.query.at))?.filter(|record| !record.withdrawn);
        let shown = record.map(|record| (self.show)(record)).transpose()?.flatten();
        let Some(record) = shown else { return Ok(false) };
        self.nodes.push(Node::new(&record, parent, Some(link)));
        Ok(true)
    }

    fn finish(self) -> RelatedMemories {
        let nodes = &self.nodes;
        let memories =
            (1..nodes.len()).map(|at| RelatedMemory { id: nodes[at].id.clone(), path: path(nodes, at) });
        RelatedMemories { memories: memories.collect(), truncated: self.truncated }
    }
}

/// Returns the steps from the first node to this one.
fn path(nodes: &[Node], mut at: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Some(link) = &nodes[at].link {
        steps.push(Step { link: link.clone(), memory: nodes[at].id.clone() });
        at = nodes[at].parent;
    }
    steps.reverse();
    steps
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
