//! Processes one family of rows of which an export has several conversations: it is united once and written once.

use std::collections::{HashMap, HashSet};

use satchel_merge::{
    conversation::Tally,
    groups::{self, Component, Place},
};
use satchel_pam::conversation::ImportMetadata;
use satchel_store::{Change, StoreError};

use super::{Group, Step, planned, steps};
use crate::{
    conversation_record::{self, Labels},
    ingest::{
        IngestError,
        receipt::{Counts, ImportRecord},
        write::{
            BATCH_BYTES, Writer,
            conversation::{self, StoredBodies, write_of},
            weight,
        },
    },
    lineage::{Clan, Family, Kept, Part, Said, shown},
};

/// The changes of an import.
#[derive(Default)]
struct Told {
    changes: Vec<Change>,
    lineage: Vec<Change>,
    /// Whether messages may have moved to another conversation.
    moved: bool,
}

/// One conversation of the import, compared with what is known.
struct Heard<'a> {
    group: &'a Group,
    said: Said,
    /// Whether it takes part in the union: it is a new part, or known parts have to be united again.
    new: bool,
    /// Whether the lineage has to record it as a new part.
    noted: bool,
    becomes: Becomes,
    messages: Tally,
}

/// The effect on a conversation of rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Becomes {
    /// Nothing of it was shown before.
    New,
    Updated,
    Unchanged,
}

impl Writer<'_> {
    /// Adds the changes to the rows of a clan to the batch and counts them. The commit lock is held. The inner error is
    /// a refusal because of the contents: the store accepts none of these conversations, and nothing was changed.
    pub(super) fn clan(
        &mut self,
        clan: &mut Clan,
        groups: &[&Group],
        record: &mut ImportRecord,
    ) -> Result<Result<(), StoreError>, IngestError> {
        // All documents of one run come from the same stranger, or from none.
        let stranger = groups.iter().find_map(|group| group.stranger.as_deref());
        if stranger.is_some() && clan.family.is_of_another(&self.left_out, stranger) {
            return self.hold_rows_back(&clan.family, groups, record).map(Ok);
        }
        let mut heard = self.heard(&clan.family, groups, stranger)?;
        let outdone = clan.family.is_outdone_by(stranger, &self.left_out);
        let told = self.told(clan, &mut heard, stranger)?;
        // A union may exceed the limits of one conversation, whoever reported its parts.
        for change in &told.changes {
            if let Some(refusal) = self.refusal(Some(change))? {
                return Ok(Err(refusal));
            }
        }
        for heard in heard {
            if outdone && !matches!(heard.becomes, Becomes::Unchanged) {
                record.warn(conversation::outdone_stranger(&heard.group.id));
            }
            heard.count(&mut record.conversations, &mut record.messages);
            self.says(heard.said.key());
        }
        if !self.dry_run {
            self.bytes += told.changes.iter().map(weight).sum::<usize>();
            // The lineage comes first: the commit is atomic, but its readers need the lineage before the
            // conversations.
            self.changes.extend(told.lineage.into_iter().chain(told.changes));
            self.moved |= told.moved;
            if self.bytes >= BATCH_BYTES {
                self.store_changes(record)?;
            }
        }
        Ok(Ok(()))
    }

    /// Leaves out a stranger's conversations of rows that others brought. One that is the same as a known part counts
    /// as unchanged.
    fn hold_rows_back(
        &mut self,
        family: &Family,
        groups: &[&Group],
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let known: HashSet<&str> = family.parts.iter().map(|part| part.digest.as_str()).collect();
        for group in groups {
            let (report, nodes) = &group.part;
            let found = nodes.len() as u64;
            record.messages.found += found;
            if known.contains(Said::of(&group.id, report, nodes)?.digest.as_str()) {
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
    fn heard<'a>(
        &self,
        family: &Family,
        groups: &[&'a Group],
        stranger: Option<&str>,
    ) -> Result<Vec<Heard<'a>>, IngestError> {
        let mut known: HashSet<String> = family.parts.iter().map(|part| part.digest.clone()).collect();
        let (again, mut now) = (family.has_left_out(&self.left_out), HashSet::new());
        let mut all = Vec::with_capacity(groups.len());
        for group in groups {
            let said = Said::of(&group.id, &group.part.0, &group.part.1)?.by(stranger);
            let noted = known.insert(said.digest.clone());
            let new = now.insert(said.digest.clone()) && (noted || again);
            let messages = Tally { unchanged: group.part.1.len() as u64, ..Tally::default() };
            all.push(Heard { group, said, new, noted, becomes: Becomes::Unchanged, messages });
        }
        Ok(all)
    }

    /// Returns the changes to conversations and lineage when this import brings the conversations `heard`.
    fn told(
        &self,
        clan: &mut Clan,
        heard: &mut [Heard<'_>],
        stranger: Option<&str>,
    ) -> Result<Told, IngestError> {
        let mut told = Told::default();
        let new: Vec<usize> = (0..heard.len()).filter(|at| heard[*at].new).collect();
        let Some(last) = new.last().copied() else { return Ok(told) };
        let platform = &heard[last].group.platform;
        let parts: Vec<&groups::Part> = new.iter().map(|at| &heard[*at].group.part).collect();
        let (components, first) = self.come_to(platform, clan, &parts, stranger)?;
        // An event may have moved from one conversation to another.
        told.moved = components.len() > 1;
        clan.family.titled = match components.as_slice() {
            [only] => Some(only.titled.clone()),
            _ => None,
        };
        for step in steps(self.store, &clan.family, components)? {
            let (component, stored, changed) = match step {
                Step::Withdraw(change) => {
                    told.changes.push(change);
                    told.moved = true;
                    continue;
                }
                Step::Show { component, stored, changed } => (component, stored, changed),
            };
            clan.family.show([component.id.clone()]);
            let shown = stored.as_ref().is_some_and(|stored| !stored.withdrawn);
            let now = stored.as_ref().map_or(0, |stored| stored.version) + u32::from(changed);
            let own: Vec<(usize, Place)> = component
                .parts
                .iter()
                .filter_map(|place| Some((*new.get(place.at.checked_sub(first)?)?, *place)))
                .collect();
            for (at, place) in &own {
                let alone = component.parts.len() == 1;
                heard[*at].becomes = if place.joins == 0 && !(alone && shown) {
                    Becomes::New
                } else if alone && changed || !alone && place.changed {
                    Becomes::Updated
                } else {
                    Becomes::Unchanged
                };
                heard[*at].messages = place.messages;
            }
            let noted = own.iter().map(|(at, _)| &heard[*at]).filter(|heard| heard.noted);
            told.lineage.extend(note(&mut clan.family, &component, now, noted)?);
            if changed {
                let import = self.import_of(&heard[own.last().map_or(last, |(at, _)| *at)]);
                let Component { id, planned, .. } = *component;
                let labels = Labels { id: &id, platform, fallback: 0, import };
                told.changes.push(write_of(planned, labels, stored.as_deref()));
            }
        }
        told.lineage.extend(clan.changes()?);
        Ok(told)
    }

    fn import_of(&self, heard: &Heard<'_>) -> ImportMetadata {
        heard.group.import.clone().unwrap_or_else(|| self.import.clone())
    }

    /// Returns the conversations of a clan including the new `parts`, and the index of the first new part among all
    /// parts.
    fn come_to(
        &self,
        platform: &str,
        clan: &Clan,
        parts: &[&groups::Part],
        stranger: Option<&str>,
    ) -> Result<(Vec<Component>, usize), IngestError> {
        let outdone = clan.family.is_outdone_by(stranger, &self.left_out);
        if !outdone && let Some(component) = self.grown(platform, clan, parts)? {
            return Ok((vec![component], 1));
        }
        let known: Vec<&Part> = clan.family.counting(&self.left_out, stranger.is_none()).collect();
        Ok((planned(self.store, platform, &known, parts, &self.cancel)?, known.len()))
    }

    /// Returns the only conversation of a clan extended by `parts`; `None` if the shortcut does not apply.
    fn grown(
        &self,
        platform: &str,
        clan: &Clan,
        parts: &[&groups::Part],
    ) -> Result<Option<Component>, IngestError> {
        let Some(titled) = clan.family.titled.as_ref().filter(|_| clan.alone()) else { return Ok(None) };
        if clan.family.has_left_out(&self.left_out) {
            return Ok(None);
        }
        let mut shown = Vec::new();
        for id in &clan.family.shown {
            shown.extend(self.store.conversation(id, None)?.filter(|stored| !stored.withdrawn));
        }
        let [stored] = shown.as_slice() else { return Ok(None) };
        let mut bodies = StoredBodies::of(self.store, Some(stored));
        let known = conversation_record::known(stored);
        groups::grown(platform, known, titled, parts, &mut |message| bodies.get(message))
    }
}

impl Heard<'_> {
    fn count(&self, conversations: &mut Counts, messages: &mut Counts) {
        conversations.found += 1;
        match self.becomes {
            Becomes::New => conversations.new += 1,
            Becomes::Updated => conversations.updated += 1,
            Becomes::Unchanged => conversations.unchanged += 1,
        }
        let Tally { new, updated, unchanged: _ } = self.messages;
        let found = self.group.part.1.len() as u64;
        messages.found += found;
        messages.new += new;
        messages.updated += updated;
        messages.unchanged += found - new - updated;
    }
}

/// Records the new parts with the version of the component that equals them; parts that no version equals are kept
/// separately.
fn note<'a>(
    family: &mut Family,
    component: &Component,
    now: u32,
    said: impl Iterator<Item = &'a Heard<'a>>,
) -> Result<Vec<Change>, IngestError> {
    let (mut changes, digests) = (Vec::new(), shown(&component.planned));
    for Heard { group, said, .. } in said {
        let (report, nodes) = &group.part;
        let (digest, home) = (said.digest.clone(), Some(component.id.clone()));
        let version = component.planned.is(report, nodes).then_some(now);
        family.parts.push(Part { digest: digest.clone(), version, home, stranger: group.stranger.clone() });
        if version.is_none() {
            let own: HashMap<&str, &[u8]> =
                nodes.iter().map(|node| (node.id.as_str(), node.bytes.as_slice())).collect();
            changes.push(Kept::of(said.clone(), &digests, &own, now)?.change(&digest)?);
        }
    }
    Ok(changes)
}
