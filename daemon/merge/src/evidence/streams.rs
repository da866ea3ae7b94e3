//! Replays lists to find the state of each memory in them.
//!
//! Of each piece of evidence only the facts needed for that are held, because a provider may show its list in every
//! conversation.

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{
    hash::{ContentHash, Sha256Digest},
    record::{Claim, Edit, Item},
};
use uuid::Uuid;

use super::{Fate, Witness, memory_uuid, stated};

/// The time of evidence whose real time is unknown: 1970-01-01, in microseconds.
pub(super) const UNDATED: i64 = 0;

/// The name of one list of one account. All evidence with the same name has to be read in order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    platform: String,
    account: Option<String>,
    kind: Kind,
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The whole list, shown again and again.
    Series,
    /// Single changes of the list.
    Log,
}

impl Name {
    /// Returns `None` for a statement, which belongs to no list.
    fn of(witness: &Witness) -> Option<Self> {
        let (kind, name) = match &witness.claim {
            Claim::Snapshot { series, .. } => (Kind::Series, series),
            Claim::Edit { log, .. } => (Kind::Log, log),
            Claim::Statement(_) => return None,
        };
        let Witness { platform, account, .. } = witness;
        Some(Self { platform: platform.clone(), account: account.clone(), kind, name: name.clone() })
    }

    /// Returns the name of a list that is shown as a whole, again and again.
    pub(super) fn of_series(witness: &Witness) -> Option<Self> {
        Self::of(witness).filter(|name| name.kind == Kind::Series)
    }
}

/// All lists. `R` is the location of a piece of evidence.
pub struct Streams<R>(BTreeMap<Name, Vec<Entry<R>>>);

impl<R> Default for Streams<R> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

/// A memory in a piece of evidence on a list, and its state there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fated<R> {
    /// Where the piece of evidence is.
    pub of: R,
    /// The index of the item in it.
    pub item: u32,
    /// Digest of the item: pieces of evidence on one list with the same digest say the same about the memory.
    pub digest: u64,
    /// The memory.
    pub memory: Uuid,
    /// Its state in the list.
    pub fate: Fate,
}

struct Entry<R> {
    at: i64,
    id: Box<str>,
    of: R,
    step: Step,
}

enum Step {
    Shown(Vec<Mention>),
    Edited(u64, Change),
}

/// A change of a list. Only the hashes of texts are kept.
enum Change {
    Add(Mention, ContentHash),
    Replace { line: Option<u32>, target: Option<ContentHash>, by: Mention, hash: ContentHash },
    Remove { line: Option<u32>, target: Option<ContentHash> },
}

#[derive(Clone, Copy)]
struct Mention {
    memory: Uuid,
    digest: u64,
    /// Whether its content exists. An erased item keeps its place in the list, but counts as no evidence.
    says: bool,
    stated: Fate,
}

impl Mention {
    fn of(item: &Item) -> Self {
        let (memory, says, stated) = (memory_uuid(item), !item.content.is_empty(), stated(item));
        // Empty if the item cannot be serialized. The digest then does not identify the item.
        let said = serde_json::to_vec(item).unwrap_or_default();
        let mut start = [0; 8];
        start.copy_from_slice(&Sha256Digest::of(&said).as_bytes()[..8]);
        Self { memory, digest: u64::from_be_bytes(start), says, stated }
    }
}

impl<R: Copy> Streams<R> {
    /// Adds the evidence of `witness` on a list. If several have the same id, the caller chooses one. Returns false for
    /// a statement.
    pub fn take(&mut self, witness: &Witness, of: R) -> bool {
        let Some(name) = Name::of(witness) else { return false };
        let step = match &witness.claim {
            Claim::Statement(_) => return false,
            Claim::Snapshot { items, .. } => Step::Shown(items.iter().map(Mention::of).collect()),
            Claim::Edit { sequence, edit, .. } => Step::Edited(*sequence, Change::of(edit)),
        };
        let entry = Entry { at: witness.at, id: witness.id.as_str().into(), of, step };
        self.0.entry(name).or_default().push(entry);
        true
    }

    /// Returns the state of every memory in the lists, according to the pieces for which `count` is true. Returns
    /// `None` if `stop` returns true on the way; it is called for every list.
    pub fn fates(&self, count: impl Fn(&R) -> bool, stop: &dyn Fn() -> bool) -> Option<Vec<Fated<R>>> {
        let mut fates = Vec::new();
        for (name, entries) in &self.0 {
            if stop() {
                return None;
            }
            let mut entries: Vec<&Entry<R>> = entries.iter().filter(|entry| count(&entry.of)).collect();
            entries.sort_by(|one, other| one.order().cmp(&other.order()));
            match name.kind {
                Kind::Series => snapshots(&entries, &mut fates),
                Kind::Log => edits(&entries, &mut fates),
            }
        }
        Some(fates)
    }
}

impl Change {
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

impl<R: Copy> Entry<R> {
    fn order(&self) -> (i64, u64, &str) {
        let sequence = match self.step {
            Step::Shown(_) => 0,
            Step::Edited(sequence, _) => sequence,
        };
        (self.at, sequence, &self.id)
    }

    fn shown(&self) -> &[Mention] {
        match &self.step {
            Step::Shown(mentions) => mentions,
            Step::Edited(..) => &[],
        }
    }

    fn fated(&self, item: u32, mention: Mention, fate: Fate) -> Option<Fated<R>> {
        let Mention { memory, digest, says, stated: _ } = mention;
        says.then_some(Fated { of: self.of, item, digest, memory, fate })
    }
}

/// A memory in a list, as it was shown.
struct Held<'a, R> {
    entry: &'a Entry<R>,
    item: u32,
    mention: Mention,
}

/// Determines the states in a list of snapshots. A list of at most one line is a slot: its content is what the newest
/// snapshot shows.
fn snapshots<R: Copy>(entries: &[&Entry<R>], fates: &mut Vec<Fated<R>>) {
    let slot = entries.iter().all(|entry| entry.shown().len() <= 1);
    let held = entries.iter().flat_map(|entry| {
        (0..).zip(entry.shown()).map(|(item, mention)| Held { entry, item, mention: *mention })
    });
    let mut held: Vec<Held<'_, R>> = held.collect();
    give_way(&mut held);
    let newest = held.last().map(|held| held.mention.memory).filter(|_| slot);
    let last: BTreeMap<Uuid, usize> =
        held.iter().enumerate().map(|(at, held)| (held.mention.memory, at)).collect();
    for Held { entry, item, mention } in &held {
        let replaced = newest.is_some_and(|newest| newest != mention.memory);
        let fate = match last.get(&mention.memory).filter(|_| replaced) {
            Some(last) => successor(&held, *last),
            None => mention.stated,
        };
        fates.extend(entry.fated(*item, *mention, fate));
    }
}

/// Drops undated items if the same memory was also seen at a known time: the parts of an export may be imported one by
/// one, and only some of them say when the export was made.
fn give_way<R>(held: &mut Vec<Held<'_, R>>) {
    if held.iter().all(|held| held.entry.at != UNDATED) {
        return;
    }
    let dated = held.iter().filter(|held| held.entry.at != UNDATED);
    let dated: BTreeSet<Uuid> = dated.map(|held| held.mention.memory).collect();
    held.retain(|held| held.entry.at != UNDATED || !dated.contains(&held.mention.memory));
}

/// Returns what followed the `last` occurrence of a memory in the slot.
fn successor<R>(held: &[Held<'_, R>], last: usize) -> Fate {
    match held.get(last + 1) {
        Some(next) => Fate::Replaced { by: Some(next.mention.memory), at: next.entry.at },
        None => Fate::Stands,
    }
}

/// A line of the provider's list.
struct Line<'a, R> {
    entry: &'a Entry<R>,
    mention: Mention,
    hash: ContentHash,
}

impl<R: Copy> Line<'_, R> {
    fn ends(&self, fate: Fate) -> Option<Fated<R>> {
        self.entry.fated(0, self.mention, fate)
    }
}

/// Replays the edits of the provider's list of memories; a memory that leaves the list was replaced or removed.
fn edits<R: Copy>(entries: &[&Entry<R>], fates: &mut Vec<Fated<R>>) {
    let mut lines: Vec<Line<'_, R>> = Vec::new();
    for entry in entries {
        let Step::Edited(_, change) = &entry.step else { continue };
        match change {
            Change::Add(mention, hash) => lines.push(Line { entry, mention: *mention, hash: *hash }),
            Change::Replace { line, target, by, hash } => {
                let new = Line { entry, mention: *by, hash: *hash };
                match find(&lines, *line, target.as_ref()) {
                    Some(at) => {
                        let fate = Fate::Replaced { by: Some(new.mention.memory), at: entry.at };
                        fates.extend(std::mem::replace(&mut lines[at], new).ends(fate));
                    }
                    None => lines.push(new),
                }
            }
            Change::Remove { line, target } => {
                if let Some(at) = find(&lines, *line, target.as_ref()) {
                    fates.extend(lines.remove(at).ends(Fate::Removed { at: entry.at }));
                }
            }
        }
    }
    fates.extend(lines.iter().filter_map(|line| line.ends(line.mention.stated)));
}

/// Finds the line that an edit targets. The text is reliable, while the number was counted by the model.
fn find<R>(lines: &[Line<'_, R>], number: Option<u32>, target: Option<&ContentHash>) -> Option<usize> {
    let by_text = target.and_then(|hash| lines.iter().rposition(|line| line.hash == *hash));
    by_text.or_else(|| {
        let at = usize::try_from(number?).ok()?.checked_sub(1)?;
        (at < lines.len()).then_some(at)
    })
}
