//! Replays lists: what became of each memory that one speaks of.
//!
//! Only what decides there is held of each piece of evidence, as a provider may show its list in every conversation.

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{
    hash::{ContentHash, Sha256Digest},
    record::{Claim, Edit, Item},
};
use uuid::Uuid;

use super::{Fate, Witness, memory_uuid, stated};

/// The time of evidence of which nobody knows when it was seen: 1970-01-01, in microseconds.
pub(super) const UNDATED: i64 = 0;

/// Evidence that speaks of one list of one account, and so has to be read in its order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    platform: String,
    account: Option<String>,
    kind: Kind,
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The whole list, again and again.
    Series,
    /// Each change of it.
    Log,
}

impl Name {
    /// None: a statement stands by itself.
    fn of(witness: &Witness) -> Option<Self> {
        let (kind, name) = match &witness.claim {
            Claim::Snapshot { series, .. } => (Kind::Series, series),
            Claim::Edit { log, .. } => (Kind::Log, log),
            Claim::Statement(_) => return None,
        };
        let Witness { platform, account, .. } = witness;
        Some(Self { platform: platform.clone(), account: account.clone(), kind, name: name.clone() })
    }

    /// That of a list which is shown again and again.
    pub(super) fn of_series(witness: &Witness) -> Option<Self> {
        Self::of(witness).filter(|name| name.kind == Kind::Series)
    }
}

/// All lists; `R` says where a piece of evidence is.
pub struct Streams<R>(BTreeMap<Name, Vec<Entry<R>>>);

impl<R> Default for Streams<R> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

/// A memory that a piece of evidence on a list speaks of, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fated<R> {
    /// Where the piece is.
    pub of: R,
    /// Which of its items.
    pub item: u32,
    /// Of what the item says: pieces of one list with the same digest say the same of the memory.
    pub digest: u64,
    /// The memory.
    pub memory: Uuid,
    /// What became of it there.
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

/// Of a text that is named the hash is kept.
enum Change {
    Add(Mention, ContentHash),
    Replace { line: Option<u32>, target: Option<ContentHash>, by: Mention, hash: ContentHash },
    Remove { line: Option<u32>, target: Option<ContentHash> },
}

#[derive(Clone, Copy)]
struct Mention {
    memory: Uuid,
    digest: u64,
    /// Whether its content stands: what was erased holds its place in its list, and says nothing.
    says: bool,
    stated: Fate,
}

impl Mention {
    fn of(item: &Item) -> Self {
        let (memory, says, stated) = (memory_uuid(item), !item.content.is_empty(), stated(item));
        // Not written for an item that cannot be: it has no twin then.
        let said = serde_json::to_vec(item).unwrap_or_default();
        let mut start = [0; 8];
        start.copy_from_slice(&Sha256Digest::of(&said).as_bytes()[..8]);
        Self { memory, digest: u64::from_be_bytes(start), says, stated }
    }
}

impl<R: Copy> Streams<R> {
    /// Takes what `witness` says of a list; of several with one id the caller chooses. False: it is a statement.
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

    /// What became of every memory that the lists speak of, as told by the pieces that `count`; none if `stop`, which is asked
    /// for every list, says so on the way.
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

/// A memory in a list as it was shown.
struct Held<'a, R> {
    entry: &'a Entry<R>,
    item: u32,
    mention: Mention,
}

/// A list of at most one line is a slot: what stands in it is what the newest snapshot shows.
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

/// What was seen at no known time says nothing where the same was seen at a known one: the parts of an export may come one
/// by one, and only some of them say when it was made.
fn give_way<R>(held: &mut Vec<Held<'_, R>>) {
    if held.iter().all(|held| held.entry.at != UNDATED) {
        return;
    }
    let dated = held.iter().filter(|held| held.entry.at != UNDATED);
    let dated: BTreeSet<Uuid> = dated.map(|held| held.mention.memory).collect();
    held.retain(|held| held.entry.at != UNDATED || !dated.contains(&held.mention.memory));
}

/// What came after the `last` time that a memory stood in the slot.
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

/// The provider's list of memories after each edit; what leaves it was replaced or removed.
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

/// The text is sure, the number is what the model counted.
fn find<R>(lines: &[Line<'_, R>], number: Option<u32>, target: Option<&ContentHash>) -> Option<usize> {
    let by_text = target.and_then(|hash| lines.iter().rposition(|line| line.hash == *hash));
    by_text.or_else(|| {
        let at = usize::try_from(number?).ok()?.checked_sub(1)?;
        (at < lines.len()).then_some(at)
    })
}
