//! Which edits count: those that no other edit that counts has undone.
//!
//! An undo takes back an edit only if its author had seen the edit. Two undos of one edit that were made without
//! knowledge of each other both count, and the edit counts again only when both are undone. Clocks decide nothing.
//!
//! Undos of correct stores form no circle, because an undo is later than the edit that it undoes. A hostile store can
//! make one; then none of the undos in it counts, so that nothing disappears without a reason.

use std::collections::{BTreeMap, BTreeSet};

use super::{EditAction, order::OrderedStep};

/// Edits, and which of them undo which.
pub(super) struct EditGraph<'a> {
    /// The memories that each edit changes by itself.
    changed: BTreeMap<&'a str, BTreeSet<String>>,
    /// For each undo, the edits that it undoes.
    undoes: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// For each edit, the number of its undos.
    undone_by: BTreeMap<&'a str, usize>,
}

impl<'a> EditGraph<'a> {
    pub(super) fn of(steps: &[OrderedStep<'a>]) -> Self {
        let mut by_edit: BTreeMap<&str, Vec<&OrderedStep<'_>>> = BTreeMap::new();
        let mut changed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for step in steps {
            let edit = step.step.edit_id.as_str();
            by_edit.entry(edit).or_default().push(step);
            changed.entry(edit).or_default().extend(step.step.memory());
        }
        let mut undoes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut undone_by = BTreeMap::new();
        for undo in steps {
            let (edit, EditAction::Undo(target)) = (&undo.step.edit_id, &undo.step.action) else { continue };
            let seen = by_edit.get(target.as_str()).is_some_and(|of| of.iter().any(|step| undo.covers(step)));
            if seen && edit != target && undoes.entry(edit).or_default().insert(target) {
                *undone_by.entry(target.as_str()).or_default() += 1;
            }
        }
        Self { changed, undoes, undone_by }
    }

    /// Returns the edits that count. Each edit is decided once all its undos are, so the result does not depend on the
    /// order; edits that are left undecided are part of a circle of undos, or are undone only by such a circle.
    pub(super) fn effective(&self) -> BTreeSet<&'a str> {
        let mut decided: BTreeMap<&str, bool> = BTreeMap::new();
        // For each edit, the undos that may still turn out to count.
        let mut undecided_undos = self.undone_by.clone();
        let not_undone = self.changed.keys().filter(|edit| !self.undone_by.contains_key(*edit));
        let mut ready: Vec<(&str, bool)> = not_undone.map(|edit| (*edit, true)).collect();
        while let Some((edit, counts)) = ready.pop() {
            if decided.contains_key(edit) {
                continue;
            }
            decided.insert(edit, counts);
            for target in self.undoes.get(edit).into_iter().flatten() {
                if counts {
                    ready.push((target, false));
                } else if let Some(left) = undecided_undos.get_mut(target) {
                    *left -= 1;
                    ready.extend((*left == 0).then_some((*target, true)));
                }
            }
        }
        let undecided = |edit: &&str| !self.undoes.contains_key(edit);
        let counts = |edit: &&str| decided.get(edit).copied().unwrap_or_else(|| undecided(edit));
        self.changed.keys().copied().filter(counts).collect()
    }

    /// Returns the memories that `edit` is about. For an undo, these are the memories of the edit that it undid.
    pub(super) fn memories_of(&self, edit: &str) -> BTreeSet<String> {
        let (mut memories, mut visited, mut next) = (BTreeSet::new(), BTreeSet::new(), vec![edit]);
        while let Some(edit) = next.pop() {
            if visited.insert(edit) {
                memories.extend(self.changed.get(edit).into_iter().flatten().cloned());
                next.extend(self.undoes.get(edit).into_iter().flatten());
            }
        }
        memories
    }
}
