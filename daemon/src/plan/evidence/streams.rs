//! Replays one stream: what became of each memory that it speaks of.

use std::collections::{BTreeMap, BTreeSet};

use satchel_pam::{
    hash::ContentHash,
    record::{Claim, Edit, Item},
};

use super::{Fate, Said, Witness, memory_id, stated};

/// A list of at most one line is a slot: what stands in it is what the newest snapshot shows.
pub(super) fn snapshots<'a>(stream: &[&'a Witness], says: &mut Vec<Said<'a>>) {
    let slot = stream.iter().all(|witness| shown(witness).len() <= 1);
    let mut held: Vec<Said<'a>> = stream
        .iter()
        .flat_map(|witness| shown(witness).iter().map(|item| Said::new(witness, item, stated(item))))
        .collect();
    give_way(&mut held);
    if !slot {
        says.extend(held);
        return;
    }
    let newest = held.last().map(|said| said.memory.clone());
    let last: BTreeMap<&str, usize> =
        held.iter().enumerate().map(|(at, said)| (said.memory.as_str(), at)).collect();
    let fates: Vec<Option<Fate>> = held
        .iter()
        .map(|said| {
            let replaced = newest.as_ref() != Some(&said.memory);
            replaced.then(|| successor(&held, last.get(said.memory.as_str()).copied()))
        })
        .collect();
    says.extend(held.into_iter().zip(fates).map(|(said, fate)| match fate {
        Some(fate) => Said { fate, ..said },
        None => said,
    }));
}

/// What was seen at no known time says nothing where the same was seen at a known one: the parts of an export may come one
/// by one, and only some of them say when it was made.
fn give_way(held: &mut Vec<Said<'_>>) {
    if held.iter().all(|said| said.witness.at != UNDATED) {
        return;
    }
    let dated = held.iter().filter(|said| said.witness.at != UNDATED);
    let dated: BTreeSet<String> = dated.map(|said| said.memory.clone()).collect();
    held.retain(|said| said.witness.at != UNDATED || !dated.contains(&said.memory));
}

/// The time of evidence of which nobody knows when it was seen: 1970-01-01, in microseconds.
const UNDATED: i64 = 0;

fn shown(witness: &Witness) -> &[Item] {
    match &witness.claim {
        Claim::Snapshot { items, .. } => items,
        Claim::Statement(_) | Claim::Edit { .. } => &[],
    }
}

/// What came after the `last` time that a memory stood in the slot.
fn successor(held: &[Said<'_>], last: Option<usize>) -> Fate {
    match last.and_then(|last| held.get(last + 1)) {
        Some(next) => Fate::Replaced { by: Some(next.memory.clone()), at: next.witness.at },
        None => Fate::Stands,
    }
}

/// A line of the provider's list.
struct Line<'a> {
    memory: String,
    hash: ContentHash,
    witness: &'a Witness,
    item: &'a Item,
}

impl<'a> Line<'a> {
    fn new(witness: &'a Witness, item: &'a Item) -> Self {
        Self { memory: memory_id(item), hash: ContentHash::of(&item.content), witness, item }
    }

    fn ends(self, fate: Fate) -> Said<'a> {
        Said { memory: self.memory, witness: self.witness, item: self.item, fate }
    }
}

/// The provider's list of memories after each edit; what leaves it was replaced or removed.
pub(super) fn edits<'a>(stream: &[&'a Witness], says: &mut Vec<Said<'a>>) {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for (witness, edit) in in_order(stream) {
        match edit {
            Edit::Add(item) => lines.push(Line::new(witness, item)),
            Edit::Replace { line, target, item } => {
                let new = Line::new(witness, item);
                match find(&lines, *line, target.as_deref()) {
                    Some(at) => {
                        let by = Some(new.memory.clone());
                        let old = std::mem::replace(&mut lines[at], new);
                        says.push(old.ends(Fate::Replaced { by, at: witness.at }));
                    }
                    None => lines.push(new),
                }
            }
            Edit::Remove { line, target } => {
                if let Some(at) = find(&lines, *line, target.as_deref()) {
                    says.push(lines.remove(at).ends(Fate::Removed { at: witness.at }));
                }
            }
        }
    }
    says.extend(lines.into_iter().map(|line| {
        let fate = stated(line.item);
        line.ends(fate)
    }));
}

fn in_order<'a>(stream: &[&'a Witness]) -> Vec<(&'a Witness, &'a Edit)> {
    let mut ordered: Vec<(&'a Witness, u64, &'a Edit)> = stream
        .iter()
        .filter_map(|witness| match &witness.claim {
            Claim::Edit { sequence, edit, .. } => Some((*witness, *sequence, edit)),
            Claim::Statement(_) | Claim::Snapshot { .. } => None,
        })
        .collect();
    ordered.sort_by(|one, other| (one.0.at, one.1, &one.0.id).cmp(&(other.0.at, other.1, &other.0.id)));
    ordered.into_iter().map(|(witness, _, edit)| (witness, edit)).collect()
}

/// The text is sure, the number is what the model counted.
fn find(lines: &[Line<'_>], number: Option<u32>, target: Option<&str>) -> Option<usize> {
    let by_text =
        target.map(ContentHash::of).and_then(|hash| lines.iter().rposition(|line| line.hash == hash));
    by_text.or_else(|| {
        let at = usize::try_from(number?).ok()?.checked_sub(1)?;
        (at < lines.len()).then_some(at)
    })
}
