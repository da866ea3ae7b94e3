//! Computes the changes since a base from the change feed, so that the cost depends on the number of changes, not on
//! the size of the store.
//!
//! A delta is cumulative: it contains everything that changed since its base, so the base and the latest delta together
//! are complete. The ids of changed records are held in memory, the records are not.

use std::collections::{BTreeMap, BTreeSet};

use satchel_bundle::manifest::VectorName;
use satchel_merge::evidence::{MemoryField, edited_fields};
use satchel_pam::{
    lifecycle::changed_at,
    memory::{Memory, Status},
    relation::RelationType,
    time::Timestamp,
};
use satchel_store::{ChangeKind, ChangeOp, ChangePosition, RelationRecord, Revision, Store};

use super::{ExportError, ExportRecord, record_id::RecordId};

/// Changes per page of the feed.
const FEED_PAGE: usize = 1_000;
/// Microseconds by which `since` precedes the first change, so that readers that ask for records later than `since`
/// include that change.
const SINCE_MARGIN: i64 = 1_000;

/// The changes from a base to a revision.
pub(super) struct Delta {
    /// The `export_id` of the full export that this delta adds to.
    pub(super) base: String,
    /// The base's revision.
    pub(super) from: Revision,
    /// PAM `since`.
    pub(super) since: Timestamp,
    /// Memories of every status that may be exported.
    pub(super) memories: BTreeSet<RecordId>,
    pub(super) conversations: BTreeSet<RecordId>,
    pub(super) relations: BTreeSet<RecordId>,
    /// Memories whose vectors changed, or whose vectors could not be exported before.
    pub(super) embedded: BTreeSet<RecordId>,
    pub(super) withdrawn_relations: BTreeSet<RecordId>,
    pub(super) undone_conversations: BTreeSet<RecordId>,
    /// Vectors that were withdrawn.
    pub(super) withdrawn_embeddings: BTreeSet<VectorName>,
    /// Number of memories that must not be exported.
    pub(super) withheld: u64,
    /// Number of memories that did not change, but are included because a changed record refers to them. PAM's
    /// validators know no base, and refuse a document with references that lead out of it.
    pub(super) referenced: u64,
    pub(super) inexpressible: InexpressibleChanges,
}

/// Counts of changes since the base that an additive export cannot express.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InexpressibleChanges {
    /// Memories that were exported before and must no longer be exported.
    private: u64,
    /// Memories that were undone.
    undone: u64,
    /// Memories that were retracted in the base and are active again. Readers keep a retraction.
    revived: u64,
    /// Memories whose version in the base has a later time of change. Readers keep the later version.
    older: u64,
    /// Relations and vectors that were withdrawn, and conversations that were undone. Only the manifest lists them, and
    /// only Satchel reads it.
    listed: u64,
}

/// The last change of each record.
type LastChanges = BTreeMap<(ChangeKind, RecordId), ChangeOp>;

impl Delta {
    /// Computes what changed after `base` up to `to`.
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
            referenced: 0,
            inexpressible: InexpressibleChanges::default(),
        };
        let base_date =
            Timestamp::parse(&base.export_date).map_err(|_| ExportError::Unencodable { what: "a date" })?;
        let mut first = base_date.micros();
        for ((kind, id), op) in last_changes(store, from, to)? {
            match (kind, op) {
                (ChangeKind::Memory, op) => {
                    if let Some(changed) = id.with_text(|id| delta.add_memory(store, id, op, to))? {
                        first = first.min(changed.saturating_sub(SINCE_MARGIN));
                    }
                }
                (ChangeKind::Conversation, ChangeOp::Withdrawn) => {
                    delta.undone_conversations.insert(id);
                }
                (ChangeKind::Conversation, _) => {
                    delta.conversations.insert(id);
                }
                (ChangeKind::Relation, ChangeOp::Withdrawn) => {
                    if id.with_text(|id| relation_is_exportable(store, id, to))? {
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
            delta
                .withdrawn_embeddings
                .extend(memory.with_text(|id| withdrawn_vectors(store, id, (from, to)))?);
        }
        let changed = delta.memories.len();
        delta.add_referenced(store, to)?;
        delta.referenced = (delta.memories.len() - changed) as u64;
        let listed = delta.withdrawn_relations.len() + delta.undone_conversations.len();
        delta.inexpressible.listed = (listed + delta.withdrawn_embeddings.len()) as u64;
        Ok(delta)
    }

    /// Adds the memories that relations, supersessions and vectors refer to, and the memories that those refer to in
    /// turn.
    fn add_referenced(&mut self, store: &Store, to: Revision) -> Result<(), ExportError> {
        let mut named: Vec<RecordId> = self.embedded.iter().cloned().collect();
        for id in &self.relations {
            let record = id.with_text(|id| store.relation(id, Some(to)))?.filter(|record| !record.withdrawn);
            named.extend(record.iter().flat_map(|record| {
                [&record.relation.from, &record.relation.to].map(|end| RecordId::from(end.as_str()))
            }));
        }
        let mut pending: Vec<RecordId> = self.memories.iter().cloned().collect();
        loop {
            for id in named.drain(..) {
                if !self.memories.contains(&id) && exportable_memory(store, &id, to)?.is_some() {
                    self.memories.insert(id.clone());
                    pending.push(id);
                }
            }
            let Some(id) = pending.pop() else { return Ok(()) };
            let Some(memory) = exportable_memory(store, &id, to)? else { continue };
            named.extend(memory.temporal.superseded_by.as_deref().map(RecordId::from));
            if memory.embedding_ref.is_some() {
                self.embedded.insert(id);
            }
        }
    }

    /// Adds a changed memory. Returns its time of change if it may be exported.
    fn add_memory(
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
        let exported = before.filter(Memory::exportable);
        let Some(now) = now.map(|record| record.memory) else {
            // The memory may have appeared and disappeared since the base; an earlier delta may then have contained it.
            self.inexpressible.undone += 1;
            return Ok(None);
        };
        if !now.exportable() {
            self.withheld += 1;
            if exported.is_some() || was_exported_since(store, id, self.from, |_| true)? {
                self.inexpressible.private += 1;
            }
            return Ok(None);
        }
        let revived = now.status != Status::Retracted
            && self.was_exported_as_retracted(store, id, exported.as_ref())?;
        self.inexpressible.revived += u64::from(revived);
        let differs = |exported: &Memory| {
            content_edited_at(exported) != content_edited_at(&now)
                || exported.content_hash != now.content_hash
        };
        if exported.as_ref().is_some_and(differs) {
            // A vector that did not match the memory's content in the base may match it again.
            self.embedded.insert(RecordId::from(id));
        }
        match &exported {
            // A retraction counts regardless of its time.
            Some(exported)
                if !revived && now.status != Status::Retracted && changed_at(&now) < changed_at(exported) =>
            {
                self.inexpressible.older += 1;
            }
            Some(_) => {}
            None => {
                // Relations and vectors of this memory may be older than the base, but could not be exported without
                // it.
                let edges = store.relations_of(id, Some(to))?;
                if private {
                    // A memory that this one supersedes could not refer to it before.
                    self.memories.extend(superseded_ids(&edges, id));
                }
                self.relations.extend(edges.iter().map(|edge| RecordId::from(edge.relation.id.as_str())));
                self.embedded.insert(RecordId::from(id));
            }
        }
        self.memories.insert(RecordId::from(id));
        Ok(Some(changed_at(&now)))
    }

    /// Returns whether the base, or an incremental export since, showed the memory as retracted.
    fn was_exported_as_retracted(
        &self,
        store: &Store,
        id: &str,
        exported: Option<&Memory>,
    ) -> Result<bool, ExportError> {
        let retracted = |memory: &Memory| memory.status == Status::Retracted;
        Ok(exported.is_some_and(retracted) || was_exported_since(store, id, self.from, retracted)?)
    }

    /// Returns the number of changed records.
    pub(super) fn len(&self) -> u64 {
        (self.memories.len() + self.conversations.len()) as u64 - self.referenced
    }
}

impl InexpressibleChanges {
    /// Returns whether only a full export can express all changes.
    pub(super) fn any(self) -> bool {
        self != Self::default()
    }

    /// Returns the warnings for the user.
    pub(super) fn warnings(self) -> Vec<String> {
        let Self { private, undone, revived, older, listed } = self;
        let counts = [
            (private, "memories must not be exported any more, and stay with whoever has the base"),
            (undone, "memories were taken back, and stay with whoever has the base"),
            (revived, "memories that were retracted are active again, and readers keep the retraction"),
            (
                older,
                "memories have an earlier time of change than in the base, and readers keep the later version",
            ),
            (listed, "relations, conversations or vectors were taken back; only Satchel's manifest says it"),
        ];
        let warning =
            |(count, what): (u64, &str)| format!("{count} {what}; the next export will be a full one");
        counts.into_iter().filter(|(count, _)| *count > 0).map(warning).collect()
    }
}

/// Returns a memory that is not withdrawn and may be exported.
fn exportable_memory(store: &Store, id: &RecordId, to: Revision) -> Result<Option<Memory>, ExportError> {
    let record = id.with_text(|id| store.memory(id, Some(to)))?.filter(|record| !record.withdrawn);
    Ok(record.map(|record| record.memory).filter(Memory::exportable))
}

/// Returns the memories that a memory supersedes.
fn superseded_ids<'e>(edges: &'e [RelationRecord], id: &'e str) -> impl Iterator<Item = RecordId> + 'e {
    let edges = edges.iter().map(|edge| &edge.relation);
    let edges = edges.filter(move |edge| edge.relation_type == RelationType::Supersedes && edge.from == id);
    edges.map(|edge| RecordId::from(edge.to.as_str()))
}

/// Returns whether both ends of a relation may be exported. The id of a relation is derived from the ids of its ends,
/// and those are derived from the content of the memories.
fn relation_is_exportable(store: &Store, id: &str, to: Revision) -> Result<bool, ExportError> {
    let Some(record) = store.relation(id, Some(to))? else { return Ok(false) };
    Ok(is_exportable_or_absent(store, &record.relation.from, to)?
        && is_exportable_or_absent(store, &record.relation.to, to)?)
}

/// Returns false if a memory must not be exported, and true if it may be, or no longer exists.
fn is_exportable_or_absent(store: &Store, memory: &str, to: Revision) -> Result<bool, ExportError> {
    Ok(store.memory(memory, Some(to))?.is_none_or(|record| record.memory.exportable()))
}

/// Returns the vectors of a memory that were withdrawn after `from`. This includes vectors that were added after
/// `from`, because an earlier delta may have contained them.
fn withdrawn_vectors(
    store: &Store,
    memory: &str,
    (from, to): (Revision, Revision),
) -> Result<Vec<VectorName>, ExportError> {
    if !is_exportable_or_absent(store, memory, to)? {
        return Ok(Vec::new());
    }
    let gone = store.withdrawn_embeddings_of(memory)?.into_iter().filter(|(_, at)| *at > from);
    Ok(gone.map(|(model, _)| VectorName { memory_id: memory.to_owned(), model }).collect())
}

fn last_changes(store: &Store, from: Revision, to: Revision) -> Result<LastChanges, ExportError> {
    let mut last = LastChanges::new();
    let mut after = ChangePosition::after(from);
    while after.revision <= to {
        let entries = store.changes_since(after, FEED_PAGE)?;
        let Some(end) = entries.last() else { break };
        after = end.position;
        for entry in entries.into_iter().filter(|entry| entry.position.revision <= to) {
            last.insert((entry.kind, RecordId::from(entry.id.as_str())), entry.op);
        }
    }
    Ok(last)
}

/// Returns whether the memory had a version since the base that an earlier delta may have contained.
fn was_exported_since(
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

/// Returns when the user edited the content of a memory, in microseconds, or `None` if the user did not.
pub(super) fn content_edited_at(memory: &Memory) -> Option<i64> {
    edited_fields(memory).get(&MemoryField::Content).copied()
}
