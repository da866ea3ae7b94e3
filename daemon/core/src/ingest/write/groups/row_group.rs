//! Processes one family of rows of which an export has several conversations: it is united once and written once.

use std::collections::{HashMap, HashSet};

use satchel_merge::{
    conversation::MessageCounts,
    groups::{self, GroupedConversation, PartOutcome},
};
use satchel_pam::conversation::ImportMetadata;
use satchel_store::{Change, StoreError};

use super::{GroupStep, RowConversation, planned, steps};
use crate::{
    conversation_record::{self, WriteLabels, write_of},
    ingest::{
        error::IngestError,
        receipt::{Counts, ImportRecord},
        write::{
            Writer,
            conversation::{self, StoredBodies},
        },
    },
    provenance::{
        Contribution, ContributionSkeleton, ConversationProvenance, RowGroup, StoredContribution, shown,
    },
};

/// The changes of an import.
#[derive(Default)]
struct RowGroupChanges {
    changes: Vec<Change>,
    lineage: Vec<Change>,
    /// Whether messages may have moved to another conversation.
    moved: bool,
}

/// One conversation of the import, compared with what is known.
struct ComparedConversation<'a> {
    group: &'a RowConversation,
    skeleton: ContributionSkeleton,
    /// Whether it takes part in the union: it is a new part, or known parts have to be united again.
    new: bool,
    /// Whether the lineage has to record it as a new part.
    noted: bool,
    becomes: ConversationEffect,
    messages: MessageCounts,
}

/// The effect on a conversation of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConversationEffect {
    /// Nothing of it was shown before.
    New,
    Updated,
    Unchanged,
}

impl Writer<'_> {
    /// Adds the changes to a group of rows to the batch and counts them. The write lock is held. The inner error is
    /// a refusal because of the contents: the store accepts none of these conversations, and nothing was changed.
    pub(super) fn write_row_group(
        &mut self,
        row_group: &mut RowGroup,
        groups: &[&RowConversation],
        record: &mut ImportRecord,
    ) -> Result<Result<(), StoreError>, IngestError> {
        // All documents of one run come from the same stranger, or from none.
        let untrusted = groups.iter().find_map(|group| group.untrusted.as_deref());
        if untrusted.is_some() && row_group.provenance.has_other_signer(&self.session.left_out, untrusted) {
            return self.hold_rows_back(&row_group.provenance, groups, record).map(Ok);
        }
        let mut compared = self.compare(&row_group.provenance, groups, untrusted)?;
        let superseded = row_group.provenance.is_superseded_by(untrusted, &self.session.left_out);
        let outcome = self.plan_changes(row_group, &mut compared, untrusted)?;
        // A union may exceed the limits of one conversation, whoever reported its parts.
        for change in &outcome.changes {
            if let Some(refusal) = self.session.refusal(change)? {
                return Ok(Err(refusal));
            }
        }
        for compared in compared {
            if superseded && !matches!(compared.becomes, ConversationEffect::Unchanged) {
                record.warn(conversation::superseded_untrusted(&compared.group.id));
            }
            compared.count(&mut record.conversations, &mut record.messages);
            self.record_part(compared.skeleton.key());
        }
        if !self.session.dry_run {
            self.batch.add_all(outcome.lineage, outcome.changes, outcome.moved);
            if self.batch.is_full(1) {
                self.store_changes(record)?;
            }
        }
        Ok(Ok(()))
    }

    /// Leaves out a stranger's conversations of rows that others brought. One that is the same as a known part counts
    /// as unchanged.
    fn hold_rows_back(
        &mut self,
        family: &ConversationProvenance,
        groups: &[&RowConversation],
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let known: HashSet<&str> = family.contributions.iter().map(|part| part.digest.as_str()).collect();
        for group in groups {
            let (report, nodes) = &group.part;
            let found = nodes.len() as u64;
            record.messages.found += found;
            if known.contains(ContributionSkeleton::of(&group.id, report, nodes)?.digest.as_str()) {
                record.conversations.found += 1;
                record.conversations.unchanged += 1;
                record.messages.unchanged += found;
            } else {
                record.messages.skipped += found;
                self.skip_conversation(&group.id, record)?;
            }
        }
        Ok(())
    }

    /// Compares the conversations of the import with the known parts.
    fn compare<'a>(
        &self,
        family: &ConversationProvenance,
        groups: &[&'a RowConversation],
        untrusted: Option<&str>,
    ) -> Result<Vec<ComparedConversation<'a>>, IngestError> {
        let mut known: HashSet<String> =
            family.contributions.iter().map(|part| part.digest.clone()).collect();
        let (again, mut now) = (family.has_excluded(&self.session.left_out), HashSet::new());
        let mut all = Vec::with_capacity(groups.len());
        for group in groups {
            let skeleton =
                ContributionSkeleton::of(&group.id, &group.part.0, &group.part.1)?.attributed_to(untrusted);
            let noted = known.insert(skeleton.digest.clone());
            let new = now.insert(skeleton.digest.clone()) && (noted || again);
            let messages = MessageCounts { unchanged: group.part.1.len() as u64, ..MessageCounts::default() };
            all.push(ComparedConversation {
                group,
                skeleton,
                new,
                noted,
                becomes: ConversationEffect::Unchanged,
                messages,
            });
        }
        Ok(all)
    }

    /// Returns the changes to conversations and lineage when this import brings the conversations `compared`.
    fn plan_changes(
        &self,
        row_group: &mut RowGroup,
        compared: &mut [ComparedConversation<'_>],
        untrusted: Option<&str>,
    ) -> Result<RowGroupChanges, IngestError> {
        let mut outcome = RowGroupChanges::default();
        let new: Vec<usize> = (0..compared.len()).filter(|at| compared[*at].new).collect();
        let Some(last) = new.last().copied() else { return Ok(outcome) };
        let platform = &compared[last].group.platform;
        let parts: Vec<&groups::GroupPart> = new.iter().map(|at| &compared[*at].group.part).collect();
        let (components, first) = self.unite_parts(platform, row_group, &parts, untrusted)?;
        // An event may have moved from one conversation to another.
        outcome.moved = components.len() > 1;
        row_group.provenance.title_source = match components.as_slice() {
            [only] => Some(only.title_key.clone()),
            _ => None,
        };
        for step in steps(self.session.store, &row_group.provenance, components)? {
            let (component, stored, changed) = match step {
                GroupStep::Withdraw(change) => {
                    outcome.changes.push(change);
                    outcome.moved = true;
                    continue;
                }
                GroupStep::Show { component, stored, changed } => (component, stored, changed),
            };
            row_group.provenance.add_shown_in([component.id.clone()]);
            let shown = stored.as_ref().is_some_and(|stored| !stored.withdrawn);
            let now = stored.as_ref().map_or(0, |stored| stored.version) + u32::from(changed);
            let own: Vec<(usize, PartOutcome)> = component
                .parts
                .iter()
                .filter_map(|place| Some((*new.get(place.at.checked_sub(first)?)?, *place)))
                .collect();
            for (at, place) in &own {
                let alone = component.parts.len() == 1;
                compared[*at].becomes = if place.joins == 0 && !(alone && shown) {
                    ConversationEffect::New
                } else if alone && changed || !alone && place.changed {
                    ConversationEffect::Updated
                } else {
                    ConversationEffect::Unchanged
                };
                compared[*at].messages = place.messages;
            }
            let noted = own.iter().map(|(at, _)| &compared[*at]).filter(|compared| compared.noted);
            outcome.lineage.extend(add_contributions(&mut row_group.provenance, &component, now, noted)?);
            if changed {
                let import = self.import_of(&compared[own.last().map_or(last, |(at, _)| *at)]);
                let GroupedConversation { id, planned, .. } = *component;
                let labels = WriteLabels { id: &id, platform, fallback: 0, import };
                outcome.changes.push(write_of(planned, labels, stored.as_deref()));
            }
        }
        outcome.lineage.extend(row_group.changes()?);
        Ok(outcome)
    }

    fn import_of(&self, compared: &ComparedConversation<'_>) -> ImportMetadata {
        compared.group.import.clone().unwrap_or_else(|| self.import.clone())
    }

    /// Returns the conversations of a group of rows including the new `parts`, and the index of the first new part among all
    /// parts.
    fn unite_parts(
        &self,
        platform: &str,
        row_group: &RowGroup,
        parts: &[&groups::GroupPart],
        untrusted: Option<&str>,
    ) -> Result<(Vec<GroupedConversation>, usize), IngestError> {
        let superseded = row_group.provenance.is_superseded_by(untrusted, &self.session.left_out);
        if !superseded && let Some(component) = self.extend_only(platform, row_group, parts)? {
            return Ok((vec![component], 1));
        }
        let known: Vec<&Contribution> =
            row_group.provenance.included(&self.session.left_out, untrusted.is_none()).collect();
        Ok((planned(self.session.store, platform, &known, parts, &self.session.cancel)?, known.len()))
    }

    /// Returns the only conversation of a group of rows extended by `parts`; `None` if the shortcut does not apply.
    fn extend_only(
        &self,
        platform: &str,
        row_group: &RowGroup,
        parts: &[&groups::GroupPart],
    ) -> Result<Option<GroupedConversation>, IngestError> {
        let Some(titled) = row_group.provenance.title_source.as_ref().filter(|_| row_group.is_single())
        else {
            return Ok(None);
        };
        if row_group.provenance.has_excluded(&self.session.left_out) {
            return Ok(None);
        }
        let mut shown = Vec::new();
        for id in &row_group.provenance.shown {
            shown.extend(self.session.store.conversation(id, None)?.filter(|stored| !stored.withdrawn));
        }
        let [stored] = shown.as_slice() else { return Ok(None) };
        let mut bodies = StoredBodies::of(self.session.store, Some(stored));
        let known = conversation_record::known(stored);
        groups::grow(platform, known, titled, parts, &mut |message| bodies.get(message))
    }
}

impl ComparedConversation<'_> {
    fn count(&self, conversations: &mut Counts, messages: &mut Counts) {
        conversations.found += 1;
        match self.becomes {
            ConversationEffect::New => conversations.new += 1,
            ConversationEffect::Updated => conversations.updated += 1,
            ConversationEffect::Unchanged => conversations.unchanged += 1,
        }
        let MessageCounts { new, updated, unchanged: _ } = self.messages;
        let found = self.group.part.1.len() as u64;
        messages.found += found;
        messages.new += new;
        messages.updated += updated;
        messages.unchanged += found - new - updated;
    }
}

/// Records the new parts with the version of the component that equals them; parts that no version equals are kept
/// separately.
fn add_contributions<'a>(
    family: &mut ConversationProvenance,
    component: &GroupedConversation,
    now: u32,
    skeleton: impl Iterator<Item = &'a ComparedConversation<'a>>,
) -> Result<Vec<Change>, IngestError> {
    let (mut changes, digests) = (Vec::new(), shown(&component.planned));
    for ComparedConversation { group, skeleton, .. } in skeleton {
        let (report, nodes) = &group.part;
        let (digest, conversation) = (skeleton.digest.clone(), Some(component.id.clone()));
        let version = component.planned.equals(report, nodes).then_some(now);
        family.contributions.push(Contribution {
            digest: digest.clone(),
            version,
            conversation,
            untrusted: group.untrusted.clone(),
        });
        if version.is_none() {
            let own: HashMap<&str, &[u8]> =
                nodes.iter().map(|node| (node.id.as_str(), node.bytes.as_slice())).collect();
            changes.push(
                StoredContribution::from_skeleton(skeleton.clone(), &digests, &own, now)?
                    .to_change(&digest)?,
            );
        }
    }
    Ok(changes)
}
