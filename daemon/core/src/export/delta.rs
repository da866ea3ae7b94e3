//! What changed since a base, off the change feed: the cost follows the change, not the store.
//!
//! A delta is cumulative: it holds whatever changed since its base, so that base and latest delta make the whole. Ids of what
//! changed are held in memory, the records are not.

use std::collections::{BTreeMap, BTreeSet};

use satchel_bundle::manifest::VectorName;
use satchel_merge::evidence::{Field, marks};
use satchel_pam::{
    lifecycle::changed_at,
    memory::{Memory, Status},
    relation::RelationType,
    time::Timestamp,
};
use satchel_store::{ChangeKind, ChangeOp, ChangePosition, RelationRecord, Revision, Store};

use super::{ExportError, ExportRecord, id::Id};

/// Changes that are read off the feed at once.
const FEED_PAGE: usize = 1_000;
/// Microseconds that `since` lies before the first change: readers that ask for what is later than `since` must see it.
const BEFORE: i64 = 1_000;

/// What changed from a base to a revision.
pub(super) struct Delta {
    /// The full export that it adds to.
    pub(super) base: String,
    /// The base's revision.
    pub(super) from: Revision,
    /// PAM `since`.
    pub(super) since: Timestamp,
    /// Memories of every status that may leave.
    pub(super) memories: BTreeSet<Id>,
    pub(super) conversations: BTreeSet<Id>,
    pub(super) relations: BTreeSet<Id>,
    /// Memories whose vectors changed, or were not to leave before.
    pub(super) embedded: BTreeSet<Id>,
    pub(super) withdrawn_relations: BTreeSet<Id>,
    pub(super) undone_conversations: BTreeSet<Id>,
    /// Vectors that were withdrawn.
    pub(super) withdrawn_embeddings: BTreeSet<VectorName>,
    /// Memories that must not leave.
    pub(super) withheld: u64,
    /// Memories that did not change, and are there because something that did names them: a document whose references lead out of it is
    /// refused by PAM's validators, which know no base.
    pub(super) carried: u64,
    pub(super) unsaid: Unsaid,
}

/// What happened since the base, and cannot be said by adding to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unsaid {
    /// Memories that were exported once and must not be any more.
    private: u64,
    /// Memories that were taken back.
    undone: u64,
    /// Memories that were retracted in the base and stand again: readers keep a retraction.
    revived: u64,
    /// Memories whose base version has a later time: readers keep the later.
    older: u64,
    /// Relations and vectors that were withdrawn, and conversations that were undone: the manifest lists them, and only Satchel
    /// reads it.
    listed: u64,
}

/// The last thing that happened to each record.
type Last = BTreeMap<(ChangeKind, Id), ChangeOp>;

impl Delta {
    /// Finds out what changed after `base` up to `to`.
    pub(super) fn since(store: &Store, base: &ExportRecord, to: Revision) -> Result<Self, ExportError> {
        let from = Revision::new(base.revision);
        let mut delta = Self {
            base: base.export_id.clone(),
            from,
            since: Timestamp::EPOCH,
            memories: BTreeSet::new(),
            conversations: BTreeSet::new(),
            relations: BTreeSet::new(),
            embedded: BTreeSet::new(),
            withdrawn_relations: BTreeSet::new(),
            undone_conversations: BTreeSet::new(),
            withdrawn_embeddings: BTreeSet::new(),
            withheld: 0,
            carried: 0,
            unsaid: Unsaid::default(),
        };
        let base_date =
            Timestamp::parse(&base.export_date).map_err(|_| ExportError::Unencodable { what: "a date" })?;
        let mut first = base_date.micros();
        for ((kind, id), op) in feed(store, from, to)? {
            match (kind, op) {
                (ChangeKind::Memory, op) => {
                    if let Some(changed) = id.text(|id| delta.memory(store, id, op, to))? {
                        first = first.min(changed.saturating_sub(BEFORE));
                    }
                }
                (ChangeKind::Conversation, ChangeOp::Withdrawn) => {
                    delta.undone_conversations.insert(id);
                }
                (ChangeKind::Conversation, _) => {
                    delta.conversations.insert(id);
                }
                (ChangeKind::Relation, ChangeOp::Withdrawn) => {
                    if id.text(|id| relation_leaves(store, id, to))? {
                        delta.withdrawn_relations.insert(id);
                    }
                }
                (ChangeKind::Relation, _) => {
                    delta.relations.insert(id);
                }
                (ChangeKind::Embedding, _) => {
                    delta.embedded.insert(id);
                }
                (_, _) => return Err(ExportError::Unencodable { what: "a change of an unknown kind" }),
            }
        }
        delta.since = Timestamp::saturating(first);
        for memory in &delta.embedded {
            delta.withdrawn_embeddings.extend(memory.text(|id| withdrawn_vectors(store, id, (from, to)))?);
        }
        let changed = delta.memories.len();
        delta.close(store, to)?;
        delta.carried = (delta.memories.len() - changed) as u64;
        let listed = delta.withdrawn_relations.len() + delta.undone_conversations.len();
        delta.unsaid.listed = (listed + delta.withdrawn_embeddings.len()) as u64;
        Ok(delta)
    }

    /// Takes the memories that relations, successions and vectors name, and those that they name in turn.
    fn close(&mut self, store: &Store, to: Revision) -> Result<(), ExportError> {
        let mut named: Vec<Id> = self.embedded.iter().cloned().collect();
        for id in &self.relations {
            let record = id.text(|id| store.relation(id, Some(to)))?.filter(|record| !record.withdrawn);
            named.extend(record.iter().flat_map(|record| {
                [&record.relation.from, &record.relation.to].map(|end| Id::from(end.as_str()))
            }));
        }
        let mut look: Vec<Id> = self.memories.iter().cloned().collect();
        loop {
            for id in named.drain(..) {
                if !self.memories.contains(&id) && stands(store, &id, to)?.is_some() {
                    self.memories.insert(id.clone());
                    look.push(id);
                }
            }
            let Some(id) = look.pop() else { return Ok(()) };
            let Some(memory) = stands(store, &id, to)? else { continue };
            named.extend(memory.temporal.superseded_by.as_deref().map(Id::from));
            if memory.embedding_ref.is_some() {
                self.embedded.insert(id);
            }
        }
    }

    /// Takes a memory that changed; answers when, if it may leave.
    fn memory(
        &mut self,
        store: &Store,
        id: &str,
        op: ChangeOp,
        to: Revision,
    ) -> Result<Option<i64>, ExportError> {
        let now = store.memory(id, Some(to))?.filter(|_| op != ChangeOp::Withdrawn);
        let before = store.memory(id, Some(self.from))?.filter(|record| !record.withdrawn);
        let before = before.map(|record| record.memory);
        let private = before.as_ref().is_some_and(|before| !before.exportable());
        let told = before.filter(Memory::exportable);
        let Some(now) = now.map(|record| record.memory) else {
            // It may have come and gone since the base; then an earlier delta may have told it.
            self.unsaid.undone += 1;
            return Ok(None);
        };
        if !now.exportable() {
            self.withheld += 1;
            if told.is_some() || left_since(store, id, self.from, |_| true)? {
                self.unsaid.private += 1;
            }
            return Ok(None);
        }
        let revived = now.status != Status::Retracted && self.told_retracted(store, id, told.as_ref())?;
        self.unsaid.revived += u64::from(revived);
        let otherwise =
            |told: &Memory| written(told) != written(&now) || told.content_hash != now.content_hash;
        if told.as_ref().is_some_and(otherwise) {
            // A vector that was not of what it said in the base may be of what it says again.
            self.embedded.insert(Id::from(id));
        }
        match &told {
            // A retraction counts whenever it was.
            Some(told)
                if !revived && now.status != Status::Retracted && changed_at(&now) < changed_at(told) =>
            {
                self.unsaid.older += 1;
            }
            Some(_) => {}
            None => {
                // What hangs on it may have been there before it, and could not leave without it.
                let edges = store.relations_of(id, Some(to))?;
                if private {
                    // What it replaces could not name it.
                    self.memories.extend(replaced(&edges, id));
                }
                self.relations.extend(edges.iter().map(|edge| Id::from(edge.relation.id.as_str())));
                self.embedded.insert(Id::from(id));
            }
        }
        self.memories.insert(Id::from(id));
        Ok(Some(changed_at(&now)))
    }

    /// Whether the base, or an increment since, said that the memory is retracted.
    fn told_retracted(&self, store: &Store, id: &str, told: Option<&Memory>) -> Result<bool, ExportError> {
        let retracted = |memory: &Memory| memory.status == Status::Retracted;
        Ok(told.is_some_and(retracted) || left_since(store, id, self.from, retracted)?)
    }

    /// Records that changed.
    pub(super) fn len(&self) -> u64 {
        (self.memories.len() + self.conversations.len()) as u64 - self.carried
    }
}

impl Unsaid {
    /// Whether only a full export says all.
    pub(super) fn any(self) -> bool {
        self != Self::default()
    }

    /// What people are told.
    pub(super) fn warnings(self) -> Vec<String> {
        let Self { private, undone, revived, older, listed } = self;
        let told = [
            (private, "memories must not be exported any more, and stay with whoever has the base"),
            (undone, "memories were taken back, and stay with whoever has the base"),
            (revived, "memories that were retracted stand again, and readers keep the retraction"),
            (older, "memories have an earlier time of change than in the base, and readers keep the later"),
            (listed, "relations, conversations or vectors were taken back; only Satchel's manifest says it"),
        ];
        let warning =
            |(count, what): (u64, &str)| format!("{count} {what}; the next export will be a full one");
        told.into_iter().filter(|(count, _)| *count > 0).map(warning).collect()
    }
}

/// A memory that is shown and may leave.
fn stands(store: &Store, id: &Id, to: Revision) -> Result<Option<Memory>, ExportError> {
    let record = id.text(|id| store.memory(id, Some(to)))?.filter(|record| !record.withdrawn);
    Ok(record.map(|record| record.memory).filter(Memory::exportable))
}

/// What a memory took the place of.
fn replaced<'e>(edges: &'e [RelationRecord], id: &'e str) -> impl Iterator<Item = Id> + 'e {
    let edges = edges.iter().map(|edge| &edge.relation);
    let edges = edges.filter(move |edge| edge.relation_type == RelationType::Supersedes && edge.from == id);
    edges.map(|edge| Id::from(edge.to.as_str()))
}

/// Whether both ends of a relation may leave: its id is made of theirs, and theirs of what the memories say.
fn relation_leaves(store: &Store, id: &str, to: Revision) -> Result<bool, ExportError> {
    let Some(record) = store.relation(id, Some(to))? else { return Ok(false) };
    Ok(may_be_named(store, &record.relation.from, to)? && may_be_named(store, &record.relation.to, to)?)
}

/// Whether a memory, which may be gone, is none that must not leave.
fn may_be_named(store: &Store, memory: &str, to: Revision) -> Result<bool, ExportError> {
    Ok(store.memory(memory, Some(to))?.is_none_or(|record| record.memory.exportable()))
}

/// The vectors of a memory that were withdrawn after `from`; also those that came after it, as an earlier delta may have told
/// them.
fn withdrawn_vectors(
    store: &Store,
    memory: &str,
    (from, to): (Revision, Revision),
) -> Result<Vec<VectorName>, ExportError> {
    if !may_be_named(store, memory, to)? {
        return Ok(Vec::new());
    }
    let gone = store.withdrawn_embeddings_of(memory)?.into_iter().filter(|(_, at)| *at > from);
    Ok(gone.map(|(model, _)| VectorName { memory_id: memory.to_owned(), model }).collect())
}

fn feed(store: &Store, from: Revision, to: Revision) -> Result<Last, ExportError> {
    let mut last = Last::new();
    let mut after = ChangePosition::after(from);
    while after.revision <= to {
        let entries = store.changes_since(after, FEED_PAGE)?;
        let Some(end) = entries.last() else { break };
        after = end.position;
        for entry in entries.into_iter().filter(|entry| entry.position.revision <= to) {
            last.insert((entry.kind, Id::from(entry.id.as_str())), entry.op);
        }
    }
    Ok(last)
}

/// Whether a memory had a version since the base that may have left with an earlier delta.
fn left_since(
    store: &Store,
    id: &str,
    from: Revision,
    fits: impl Fn(&Memory) -> bool,
) -> Result<bool, ExportError> {
    let versions = store.memory_versions(id)?;
    Ok(versions.iter().any(|record| {
        !record.withdrawn && record.revision > from && record.memory.exportable() && fits(&record.memory)
    }))
}

/// When the person wrote what a memory says, in microseconds, if it was they who did.
pub(super) fn written(memory: &Memory) -> Option<i64> {
    marks(memory).get(&Field::Content).copied()
}
