//! Reads the entries of two memory stores one by one, because both together may be larger than memory.

use std::{cmp::Ordering, collections::BTreeSet, io};

use ring::digest::{SHA256, digest};
use satchel_pam::{
    checksum::{Builder, ChecksumError},
    issue::Issue,
    memory::Memory,
    merge::{self, Action},
    parse::{self, ScanOptions, StoreEntry},
    store::{IndexEntry, StoreHeader},
};
use satchel_seal::{PackedKey, PackedMap, PackedMapError};
use satchel_source::{Bundle, SourceText};

use super::{CHECK, MergedStore, base_issue};
use crate::verify::VerifyError;

/// The memory store of a bundle.
pub(in crate::verify) struct StoreContent {
    pub(in crate::verify) bundle: Bundle,
    /// `None` if the bundle has no memory store.
    pub(in crate::verify) store: Option<String>,
}

/// The memories of an incremental export, by id. If several have the same id, the first counts.
#[derive(Default)]
pub(super) struct IncrementalChanges {
    ids: Vec<String>,
    memories: PackedMap,
    conversations: BTreeSet<PackedKey>,
}

/// The ids that references may point to.
#[derive(Default)]
pub(super) struct KnownIds {
    memories: BTreeSet<PackedKey>,
    conversations: BTreeSet<PackedKey>,
}

/// The result of the merge, and warnings about memories that stay as they are in the base.
type MergeOutcome = (MergedStore, Vec<Issue>);

impl StoreContent {
    /// Reads all entries in order. Returns `None` if there is no memory store, or if it cannot be parsed.
    fn scan(
        &self,
        take: &mut dyn FnMut(usize, StoreEntry) -> Result<(), PackedMapError>,
    ) -> Result<Option<StoreHeader>, VerifyError> {
        let Some(name) = &self.store else { return Ok(None) };
        let mut failed = None;
        let wanted = || true;
        let options = ScanOptions { salvage: false, keep_going: &wanted };
        let scan = parse::scan_store(&SourceText::new(&self.bundle, name), options, &mut |at, entry| {
            if failed.is_none() {
                failed = take(at, entry).err();
            }
        });
        let unreadable = |source: io::Error| VerifyError::Read { name: name.clone(), source };
        let scan = scan.map_err(unreadable)?;
        failed.map_or(Ok(()), Err)?;
        Ok(scan.and_then(|scan| scan.root).map(|root| root.header))
    }

    /// Reads the base and merges `changes` into it.
    pub(super) fn merge_with(
        &self,
        changes: &IncrementalChanges,
    ) -> Result<(Option<StoreHeader>, KnownIds, MergeOutcome), VerifyError> {
        let mut known = KnownIds::default();
        let mut merging = MemoryMerge::new(changes);
        let header = self.scan(&mut |_, entry| match entry {
            StoreEntry::Memory(memory) => {
                known.memories.insert(key_of(&memory.id));
                merging.push_base(*memory)
            }
            StoreEntry::Conversation(entry) => {
                known.conversations.insert(key_of(&entry.id));
                Ok(())
            }
            StoreEntry::Relation(_) | StoreEntry::Unreadable(_) => Ok(()),
        })?;
        let outcome = if merging.unordered { self.merged_in_order(changes)? } else { merging.finish()? };
        Ok((header, known, outcome))
    }

    /// Merges a base whose memories are not sorted by id.
    fn merged_in_order(&self, changes: &IncrementalChanges) -> Result<MergeOutcome, VerifyError> {
        let mut base = IncrementalChanges::default();
        self.scan(&mut |_, entry| match entry {
            StoreEntry::Memory(memory) => base.insert(&memory),
            _ => Ok(()),
        })?;
        base.ids.sort_unstable();
        let mut merging = MemoryMerge::new(changes);
        for id in &base.ids {
            merging.push_base(base.memory(id)?)?;
        }
        Ok(merging.finish()?)
    }

    /// Returns issues for references to ids that are not `known`.
    pub(super) fn check_references(&self, known: &KnownIds) -> Result<Vec<Issue>, VerifyError> {
        let mut issues = Vec::new();
        let mut check = |all: &BTreeSet<PackedKey>, id: &str, path: String| {
            if !all.contains(&key_of(id)) {
                issues
                    .push(base_issue(&path, &format!("{id:?} is neither in this document nor in its base")));
            }
        };
        self.scan(&mut |at, entry| {
            match entry {
                StoreEntry::Relation(relation) => {
                    check(&known.memories, &relation.from, format!("$.relations[{at}].from"));
                    check(&known.memories, &relation.to, format!("$.relations[{at}].to"));
                }
                StoreEntry::Memory(memory) => {
                    if let Some(id) = &memory.temporal.superseded_by {
                        check(&known.memories, id, format!("$.memories[{at}].temporal.superseded_by"));
                    }
                    // Without any index, no conversation can be missing in it.
                    let conversation = memory.provenance.conversation_ref.as_ref();
                    if let Some(id) = conversation.filter(|_| !known.conversations.is_empty()) {
                        let path = format!("$.memories[{at}].provenance.conversation_ref");
                        check(&known.conversations, id, path);
                    }
                }
                StoreEntry::Conversation(IndexEntry { derived_memories, .. }) => {
                    for (place, id) in derived_memories.iter().enumerate() {
                        let path = format!("$.conversations_index[{at}].derived_memories[{place}]");
                        check(&known.memories, id, path);
                    }
                }
                StoreEntry::Unreadable(_) => {}
            }
            Ok(())
        })?;
        Ok(issues)
    }
}

impl IncrementalChanges {
    /// Reads the entries and the header of an incremental export.
    pub(super) fn of(delta: &StoreContent) -> Result<(Option<StoreHeader>, Self), VerifyError> {
        let mut changes = Self::default();
        let header = delta.scan(&mut |_, entry| match entry {
            StoreEntry::Memory(memory) => changes.insert(&memory),
            StoreEntry::Conversation(entry) => {
                changes.conversations.insert(key_of(&entry.id));
                Ok(())
            }
            StoreEntry::Relation(_) | StoreEntry::Unreadable(_) => Ok(()),
        })?;
        changes.ids.sort_unstable();
        Ok((header, changes))
    }

    fn insert(&mut self, memory: &Memory) -> Result<(), PackedMapError> {
        let key = key_of(&memory.id);
        if self.memories.contains_key(&key) {
            return Ok(());
        }
        self.ids.push(memory.id.clone());
        let json = serde_json::to_vec(memory).map_err(|_| unreadable())?;
        self.memories.insert(key, &json)
    }

    fn memory(&self, id: &str) -> Result<Memory, PackedMapError> {
        let json = self.memories.get(&key_of(id))?.ok_or_else(unreadable)?;
        serde_json::from_slice(&json).map_err(|_| unreadable())
    }
}

impl KnownIds {
    pub(super) fn with(mut self, changes: &IncrementalChanges) -> Self {
        self.memories.extend(changes.memories.keys());
        self.conversations.extend(&changes.conversations);
        self
    }
}

/// A merge in progress: the base is read in id order, and the changes are inserted in their places.
struct MemoryMerge<'c> {
    changes: &'c IncrementalChanges,
    /// The number of changes that are done.
    applied: usize,
    /// The id of the previous memory.
    previous: Option<String>,
    /// Set if the base is not in id order; the result of this merge then does not count.
    unordered: bool,
    count: u64,
    checksum: Result<Builder, ChecksumError>,
    conflicts: Vec<Issue>,
}

impl<'c> MemoryMerge<'c> {
    fn new(changes: &'c IncrementalChanges) -> Self {
        Self {
            changes,
            applied: 0,
            previous: None,
            unordered: false,
            count: 0,
            checksum: Ok(Builder::new()),
            conflicts: Vec::new(),
        }
    }

    /// Takes the next memory of the base.
    fn push_base(&mut self, base_memory: Memory) -> Result<(), PackedMapError> {
        self.unordered |= self.previous.as_ref().is_some_and(|previous| *previous >= base_memory.id);
        if self.unordered {
            return Ok(());
        }
        self.previous = Some(base_memory.id.clone());
        while let Some(id) = self.changes.ids.get(self.applied) {
            match id.cmp(&base_memory.id) {
                Ordering::Less => {
                    self.push(&self.changes.memory(id)?);
                    self.applied += 1;
                }
                Ordering::Equal => {
                    self.applied += 1;
                    return self.resolve_conflict(&base_memory, id);
                }
                Ordering::Greater => break,
            }
        }
        self.push(&base_memory);
        Ok(())
    }

    /// Takes a memory of which both sides have a version.
    fn resolve_conflict(&mut self, base_memory: &Memory, id: &str) -> Result<(), PackedMapError> {
        let new = self.changes.memory(id)?;
        let verdict = merge::memory(Some(base_memory), &new);
        if verdict.conflict() {
            let message = format!("memory {id:?} stays as the base has it ({})", verdict.reason);
            self.conflicts.push(Issue::warning(CHECK, "$.memories", message));
        }
        self.push(if verdict.action() == Action::Replace { &new } else { base_memory });
        Ok(())
    }

    fn push(&mut self, memory: &Memory) {
        self.count += 1;
        if let Ok(builder) = &mut self.checksum
            && let Err(error) = builder.push(memory)
        {
            self.checksum = Err(error);
        }
    }

    fn finish(mut self) -> Result<MergeOutcome, PackedMapError> {
        for id in self.changes.ids.iter().skip(self.applied) {
            let memory = self.changes.memory(id)?;
            self.push(&memory);
        }
        let checksum = self.checksum.ok().map(Builder::finish);
        Ok((MergedStore { memories: self.count, checksum }, self.conflicts))
    }
}

fn unreadable() -> PackedMapError {
    PackedMapError::Unreadable
}

/// Returns a digest of an id, which takes less memory than the id.
fn key_of(id: &str) -> PackedKey {
    let mut key = PackedKey::default();
    key.copy_from_slice(&digest(&SHA256, id.as_bytes()).as_ref()[..16]);
    key
}
