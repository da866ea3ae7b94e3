//! The fields of one memory as multi-value registers: every value that no later edit has replaced.

use std::{cmp::Reverse, collections::BTreeMap};

use satchel_pam::memory::{Memory, Status};

use super::{
    EditAction, MemoryField, MemoryPatch,
    fields::value_text,
    order::{OrderedStep, any_concurrent, surviving},
};
use crate::causality::OriginId;

/// A step that sets fields of a memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PatchStep {
    pub(super) edit_id: String,
    pub(super) at: i64,
    pub(super) origin: Option<OriginId>,
    pub(super) patch: MemoryPatch,
}

/// All edits of one memory that count.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct EditedMemory {
    /// In order of time, then of text.
    pub(super) patches: Vec<PatchStep>,
    /// For each field that any step sets, the steps whose values are left, as indices of `patches`: the one that is
    /// shown first.
    registers: BTreeMap<MemoryField, Vec<usize>>,
    /// Whether the ends of the period of validity were set concurrently.
    period_concurrent: bool,
}

impl EditedMemory {
    /// Collects the effect of `steps`, which are the steps on one memory that count, in order of time.
    pub(super) fn of(steps: &[&OrderedStep<'_>]) -> Self {
        let mut memory = Self::default();
        let mut patching: Vec<&OrderedStep<'_>> = Vec::new();
        for step in steps {
            if let EditAction::Patch(patch) = &step.step.action {
                let (edit_id, at, origin) = (step.step.edit_id.clone(), step.step.at, step.origin());
                memory.patches.push(PatchStep { edit_id, at, origin, patch: MemoryPatch::clone(patch) });
                patching.push(step);
            }
        }
        let mut period = Vec::new();
        for field in MemoryField::ALL {
            let sets = |at: &usize| memory.patches[*at].patch.fields.contains(&field);
            let indices: Vec<usize> = (0..patching.len()).filter(sets).collect();
            if indices.is_empty() {
                continue;
            }
            let setting: Vec<&OrderedStep<'_>> = indices.iter().map(|at| patching[*at]).collect();
            let left = surviving(&setting);
            if matches!(field, MemoryField::ValidFrom | MemoryField::ValidUntil) {
                period.extend(left.iter().copied());
            }
            let is_left = |at: &usize| left.iter().any(|step| step.position == patching[*at].position);
            let indices = indices.into_iter().filter(is_left).collect();
            let register = memory.best_first(field, indices);
            memory.registers.insert(field, register);
        }
        memory.period_concurrent = any_concurrent(&period);
        memory
    }

    fn best_first(&self, field: MemoryField, mut indices: Vec<usize>) -> Vec<usize> {
        if indices.len() > 1 {
            indices.sort_by_cached_key(|at| Reverse((self.patches[*at].rank(field), *at)));
        }
        indices
    }

    /// Returns the steps whose values of `field` are left: the one that is shown first.
    pub(super) fn values(&self, field: MemoryField) -> Vec<&PatchStep> {
        self.registers.get(&field).into_iter().flatten().map(|at| &self.patches[*at]).collect()
    }

    /// Returns the fields that are set.
    pub(super) fn fields(&self) -> impl Iterator<Item = MemoryField> {
        self.registers.keys().copied()
    }

    /// If the ends of the period of validity were set concurrently, returns the newest of the steps that set them.
    pub(super) fn newest_of_concurrent_period(&self) -> Option<&PatchStep> {
        let ends = [MemoryField::ValidFrom, MemoryField::ValidUntil].into_iter();
        let steps = ends.flat_map(|field| self.registers.get(&field).into_iter().flatten());
        let newest = steps.max_by_key(|at| (self.patches[**at].at, self.patches[**at].origin, **at));
        newest.filter(|_| self.period_concurrent).map(|at| &self.patches[*at])
    }
}

impl PatchStep {
    pub(super) fn sets(&self, field: MemoryField) -> bool {
        self.patch.fields.contains(&field)
    }

    /// Returns the sort key of the value: of several values that are left, the greatest is shown. The time decides,
    /// except for a status, then the value itself, so that equal values rank equal, then the origin.
    fn rank(&self, field: MemoryField) -> (u8, i64, String, Option<OriginId>) {
        let status = if field == MemoryField::Status { status_rank(&self.patch.to) } else { 0 };
        (status, self.at, value_text(field, &self.patch.to), self.origin)
    }
}

/// The more final a status is, the higher it ranks: a memory that one store retracted is not shown as active because
/// another one changed it at the same time.
fn status_rank(memory: &Memory) -> u8 {
    match memory.status {
        Status::Active => 0,
        Status::Deprecated => 1,
        Status::Superseded => 2,
        Status::Archived => 3,
        Status::Retracted => 4,
    }
}
