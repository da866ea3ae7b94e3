//! Replays lists to find the state of each memory in them.
//!
//! Of each piece of evidence only the facts needed for that are held, because a provider may show its list in every
//! conversation.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use satchel_pam::{
    hash::{ContentHash, Sha256Digest},
    record::{Claim, Edit, Item},
};
use uuid::Uuid;

use super::{MemoryState, StoredEvidence, memory_uuid, own_state};

/// The time of evidence whose real time is unknown: 1970-01-01, in microseconds.
pub(super) const UNDATED: i64 = 0;

/// The name of one list of one account. All evidence with the same name has to be read in order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamName {
    platform: String,
    account: Option<String>,
    kind: StreamKind,
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StreamKind {
    /// The whole list, shown again and again.
    Series,
    /// Single changes of the list.
    Log,
}

impl StreamName {
    /// Returns the list to which a piece of evidence belongs; `None` for a statement, which belongs to none.
    #[must_use]
    pub fn of(evidence: &StoredEvidence) -> Option<Self> {
        let (kind, name) = match &evidence.claim {
            Claim::Snapshot { series, .. } => (StreamKind::Series, series),
            Claim::Edit { log, .. } => (StreamKind::Log, log),
            Claim::Statement(_) => return None,
        };
        let StoredEvidence { platform, account, .. } = evidence;
        Some(Self { platform: platform.clone(), account: account.clone(), kind, name: name.clone() })
    }

    /// Returns the name of a list that is shown as a whole, again and again.
    pub(super) fn of_series(evidence: &StoredEvidence) -> Option<Self> {
        Self::of(evidence).filter(|name| name.kind == StreamKind::Series)
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { platform, account, kind, name } = self;
        let kind = if *kind == StreamKind::Series { "series" } else { "log" };
        write!(f, "{kind} {name:?} of {platform}, account {account:?}")
    }
}

/// All lists. `R` is the location of a piece of evidence.
pub struct Streams<R>(BTreeMap<StreamName, Vec<StreamEntry<R>>>);

impl<R> Default for Streams<R> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

/// A memory in a piece of evidence on a list, and its state there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListedMemory<R> {
    /// Where the piece of evidence is.
    pub location: R,
    /// The index of the item in it.
    pub item: u32,
    /// Digest of the item: pieces of evidence on one list with the same digest say the same about the memory.
    pub digest: u64,
    /// The memory.
    pub memory: Uuid,
    /// Its state in the list.
    pub state: MemoryState,
}

struct StreamEntry<R> {
    at: i64,
    id: Box<str>,
    location: R,
    step: StreamStep,
}

enum StreamStep {
    Snapshot(Vec<Mention>),
    Edit(u64, ListEdit),
}

/// A change of a list. Only the hashes of texts are kept.
enum ListEdit {
    Add(Mention, ContentHash),
    Replace { line: Option<u32>, target: Option<ContentHash>, by: Mention, hash: ContentHash },
    Remove { line: Option<u32>, target: Option<ContentHash> },
}

#[derive(Clone, Copy)]
struct Mention {
    memory: Uuid,
    digest: u64,
    /// Whether its content exists. An erased item keeps its place in the list, but counts as no evidence.
    has_content: bool,
    own_state: MemoryState,
}

impl Mention {
    fn of(item: &Item) -> Self {
        let (memory, has_content, own_state) = (memory_uuid(item), !item.content.is_empty(), own_state(item));
        // Empty if the item cannot be serialized. The digest then does not identify the item.
        let json = serde_json::to_vec(item).unwrap_or_default();
        let mut start = [0; 8];
        start.copy_from_slice(&Sha256Digest::of(&json).as_bytes()[..8]);
        Self { memory, digest: u64::from_be_bytes(start), has_content, own_state }
    }
}

impl<R: Copy> Streams<R> {
    /// Adds the evidence of `evidence` on a list. If several have the same id, the caller chooses one. Returns false for
    /// a statement.
    pub fn add(&mut self, evidence: &StoredEvidence, location: R) -> bool {
        let Some(name) = StreamName::of(evidence) else { return false };
        let step = match &evidence.claim {
            Claim::Statement(_) => return false,
            Claim::Snapshot { items, .. } => StreamStep::Snapshot(items.iter().map(Mention::of).collect()),
            Claim::Edit { sequence, edit, .. } => StreamStep::Edit(*sequence, ListEdit::of(edit)),
        };
        let entry = StreamEntry { at: evidence.at, id: evidence.id.as_str().into(), location, step };
        self.0.entry(name).or_default().push(entry);
        true
    }

    /// Returns the state of every memory in the lists, according to the pieces for which `count` is true. Returns
    /// `None` if `stop` returns true on the way; it is called for every list.
    pub fn states(
        &self,
        count: impl Fn(&R) -> bool,
        stop: &dyn Fn() -> bool,
    ) -> Option<Vec<ListedMemory<R>>> {
        let mut states = Vec::new();
        for (name, entries) in &self.0 {
            if stop() {
                return None;
            }
            let mut entries: Vec<&StreamEntry<R>> =
                entries.iter().filter(|entry| count(&entry.location)).collect();
            entries.sort_by(|one, other| one.order().cmp(&other.order()));
            match name.kind {
                StreamKind::Series => replay_snapshots(&entries, &mut states),
                StreamKind::Log => replay_edits(&entries, &mut states),
            }
        }
        Some(states)
    }
}

impl ListEdit {
    fn of(edit: &Edit) -> Self {
        let hash = |target: &Option<String>| target.as_deref().map(ContentHash::of);
        match edit {
            Edit::Add(item) => Self::Add(Mention::of(item), ContentHash::of(&item.content)),
            Edit::Replace { line, target, item } => Self::Replace {
                line: *line,
                target: hash(target),
                by: Mention::of(item),
                hash: ContentHash::of(&item.content),
            },
            Edit::Remove { line, target } => Self::Remove { line: *line, target: hash(target) },
        }
    }
}

impl<R: Copy> StreamEntry<R> {
    fn order(&self) -> (i64, u64, &str) {
        let sequence = match self.step {
            StreamStep::Snapshot(_) => 0,
            StreamStep::Edit(sequence, _) => sequence,
        };
        (self.at, sequence, &self.id)
    }

    fn shown(&self) -> &[Mention] {
        match &self.step {
            StreamStep::Snapshot(mentions) => mentions,
            StreamStep::Edit(..) => &[],
        }
    }

    fn listed_memory(&self, item: u32, mention: Mention, state: MemoryState) -> Option<ListedMemory<R>> {
        let Mention { memory, digest, has_content: says, own_state: _ } = mention;
        says.then_some(ListedMemory { location: self.location, item, digest, memory, state })
    }
}

/// A memory in a list, as it was shown.
struct SnapshotItem<'a, R> {
    entry: &'a StreamEntry<R>,
    item: u32,
    mention: Mention,
}

/// Determines the states in a list of snapshots. A list of at most one line is a slot: its content is what the newest
/// snapshot shows.
fn replay_snapshots<R: Copy>(entries: &[&StreamEntry<R>], states: &mut Vec<ListedMemory<R>>) {
    let slot = entries.iter().all(|entry| entry.shown().len() <= 1);
    let held = entries.iter().flat_map(|entry| {
        (0..).zip(entry.shown()).map(|(item, mention)| SnapshotItem { entry, item, mention: *mention })
    });
    let mut held: Vec<SnapshotItem<'_, R>> = held.collect();
    drop_undated(&mut held);
    let newest = held.last().map(|held| held.mention.memory).filter(|_| slot);
    let last: BTreeMap<Uuid, usize> =
        held.iter().enumerate().map(|(at, held)| (held.mention.memory, at)).collect();
    for SnapshotItem { entry, item, mention } in &held {
        let replaced = newest.is_some_and(|newest| newest != mention.memory);
        let state = match last.get(&mention.memory).filter(|_| replaced) {
            Some(last) => successor(&held, *last),
            None => mention.own_state,
        };
        states.extend(entry.listed_memory(*item, *mention, state));
    }
}

/// Drops undated items if the same memory was also seen at a known time: the parts of an export may be imported one by
/// one, and only some of them say when the export was made.
fn drop_undated<R>(held: &mut Vec<SnapshotItem<'_, R>>) {
    if held.iter().all(|held| held.entry.at != UNDATED) {
        return;
    }
    let dated = held.iter().filter(|held| held.entry.at != UNDATED);
    let dated: BTreeSet<Uuid> = dated.map(|held| held.mention.memory).collect();
    held.retain(|held| held.entry.at != UNDATED || !dated.contains(&held.mention.memory));
}

/// Returns what followed the `last` occurrence of a memory in the slot.
fn successor<R>(held: &[SnapshotItem<'_, R>], last: usize) -> MemoryState {
    match held.get(last + 1) {
        Some(next) => MemoryState::Replaced { by: Some(next.mention.memory), at: next.entry.at },
        None => MemoryState::Present,
    }
}

/// A line of the provider's list.
struct ListLine<'a, R> {
    entry: &'a StreamEntry<R>,
    mention: Mention,
    hash: ContentHash,
}

impl<R: Copy> ListLine<'_, R> {
    fn ended_with(&self, state: MemoryState) -> Option<ListedMemory<R>> {
        self.entry.listed_memory(0, self.mention, state)
    }
}

/// Replays the edits of the provider's list of memories; a memory that leaves the list was replaced or removed.
fn replay_edits<R: Copy>(entries: &[&StreamEntry<R>], states: &mut Vec<ListedMemory<R>>) {
    let mut lines: Vec<ListLine<'_, R>> = Vec::new();
    for entry in entries {
        let StreamStep::Edit(_, change) = &entry.step else { continue };
        match change {
            ListEdit::Add(mention, hash) => lines.push(ListLine { entry, mention: *mention, hash: *hash }),
            ListEdit::Replace { line, target, by, hash } => {
                let new = ListLine { entry, mention: *by, hash: *hash };
                match find_line(&lines, *line, target.as_ref()) {
                    Some(at) => {
                        let state = MemoryState::Replaced { by: Some(new.mention.memory), at: entry.at };
                        states.extend(std::mem::replace(&mut lines[at], new).ended_with(state));
                    }
                    None => lines.push(new),
                }
            }
            ListEdit::Remove { line, target } => {
                if let Some(at) = find_line(&lines, *line, target.as_ref()) {
                    states.extend(lines.remove(at).ended_with(MemoryState::Removed { at: entry.at }));
                }
            }
        }
    }
    states.extend(lines.iter().filter_map(|line| line.ended_with(line.mention.own_state)));
}

/// Finds the line that an edit targets. The text is reliable, while the number was counted by the model.
fn find_line<R>(
    lines: &[ListLine<'_, R>],
    number: Option<u32>,
    target: Option<&ContentHash>,
) -> Option<usize> {
    let by_text = target.and_then(|hash| lines.iter().rposition(|line| line.hash == *hash));
    by_text.or_else(|| {
        let at = usize::try_from(number?).ok()?.checked_sub(1)?;
        (at < lines.len()).then_some(at)
    })
}
