//! Conversations grouped from rows without ids: all reports on the rows together determine the conversations.

mod row_group;

use std::collections::{HashMap, HashSet};

use satchel_merge::groups::{self, GroupedConversation, Outline};
use satchel_pam::conversation::ImportMetadata;
use satchel_source::CancelToken;
use satchel_store::{Change, ConversationRecord, Store};

use super::{Writer, conversation::withdrawal_of};
use crate::{
    conversation_record,
    ingest::{error::IngestError, normalise::NormalisedConversation, receipt::ImportRecord},
    provenance::{Contribution, ContributionReader, ConversationProvenance, RowGroup},
};

/// Memory of waiting conversations, in bytes. Each family of rows is united once per this amount of an export, so that
/// the work depends on the number of rows, however many conversations the export makes of them.
const WAITING_BYTES: usize = 16 << 20;
/// Maximum number of unions in one lot that the store may refuse before the remaining ones that it refuses are left out
/// as a whole, without splitting them.
const REFUSALS: u32 = 64;

/// Conversations of rows that wait to be processed together.
#[derive(Default)]
pub(super) struct PendingGroups {
    conversations: Vec<RowConversation>,
    bytes: usize,
}

/// A conversation of rows, as one export has it.
pub(super) struct RowConversation {
    id: String,
    platform: String,
    import: Option<ImportMetadata>,
    /// See [`Conversation`].
    untrusted: Option<String>,
    part: groups::GroupPart,
}

/// Returns whether a conversation is grouped from rows. One from a document is if its id was derived from its rows; all
/// others keep their ids.
pub(in crate::ingest) fn is_grouped(conversation: &NormalisedConversation) -> bool {
    let NormalisedConversation { id, platform, foreign, report, nodes, .. } = conversation;
    groups::grouped(report.provider_conversation_id.as_deref(), report.raw_metadata.as_ref())
        && !nodes.is_empty()
        && (!foreign || *id == groups::conversation_id(platform, report.account.as_deref(), nodes))
}

/// The effect on one conversation.
pub(in crate::ingest) enum GroupStep {
    /// It is shown as `component`.
    Show {
        component: Box<GroupedConversation>,
        stored: Option<Box<ConversationRecord>>,
        /// Whether that differs from what is stored.
        changed: bool,
    },
    /// It is no longer shown; holds the change that withdraws it.
    Withdraw(Change),
}

/// Returns the steps after which the store shows `components`, and no other conversation of the rows of `family`.
pub(in crate::ingest) fn steps(
    store: &Store,
    family: &ConversationProvenance,
    components: Vec<GroupedConversation>,
) -> Result<Vec<GroupStep>, IngestError> {
    let mut steps = Vec::new();
    let shown: HashSet<&str> = components.iter().map(|component| component.id.as_str()).collect();
    let mut places = None;
    for id in family.shown.iter().filter(|id| !shown.contains(id.as_str())) {
        if let Some(stored) = store.conversation(id, None)?.filter(|stored| !stored.withdrawn) {
            let places = places.get_or_insert_with(|| index(&components));
            steps.push(GroupStep::Withdraw(withdrawal_of(pointed(stored, places))));
        }
    }
    for component in components {
        let stored = store.conversation(&component.id, None)?.map(Box::new);
        let shown = stored.as_ref().filter(|stored| !stored.withdrawn);
        let changed = shown
            .is_none_or(|shown| !conversation_record::known(shown).same_content(&component.planned.state()));
        steps.push(GroupStep::Show { component: Box::new(component), stored, changed });
    }
    Ok(steps)
}

/// Returns the id of the component that has each message.
fn index(components: &[GroupedConversation]) -> HashMap<String, String> {
    let mut index = HashMap::new();
    for GroupedConversation { id, planned, .. } in components {
        index.extend(planned.nodes.iter().map(|node| (node.state.id.clone(), id.clone())));
    }
    index
}

/// Adds the id of the conversation that has its first message now to the metadata of a withdrawn conversation.
fn pointed(mut stored: ConversationRecord, index: &HashMap<String, String>) -> ConversationRecord {
    if let Some(id) = stored.heads.first().and_then(|head| index.get(&head.id)) {
        let raw = stored.header.raw_metadata.take().unwrap_or_default();
        stored.header.raw_metadata = Some(raw.with(groups::CONTINUED_IN, &id.as_str().into()));
    }
    stored
}

/// Returns the conversations that follow from the `known` parts together with `more` parts of the import.
pub(in crate::ingest) fn planned(
    store: &Store,
    platform: &str,
    known: &[&Contribution],
    more: &[&groups::GroupPart],
    cancel: &CancelToken,
) -> Result<Vec<GroupedConversation>, IngestError> {
    let mut reading = ContributionReader::new(store);
    let mut outlines = Vec::with_capacity(known.len() + more.len());
    for part in known {
        wanted(cancel)?;
        outlines.push(reading.read_outline("", part)?);
    }
    outlines.extend(more.iter().map(|part| Outline::of_part(part)));
    groups::components(platform, &outlines, &mut |at| {
        wanted(cancel)?;
        match known.get(at) {
            Some(part) => Ok(reading.read("", part)?),
            None => Ok(more[at - known.len()].clone()),
        }
    })
}

fn wanted(cancel: &CancelToken) -> Result<(), IngestError> {
    if cancel.cancelled() { Err(IngestError::Cancelled) } else { Ok(()) }
}

impl Writer<'_> {
    /// Adds a conversation of rows to those that wait.
    pub(super) fn group(
        &mut self,
        conversation: NormalisedConversation,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let NormalisedConversation { id, platform, import, foreign: _, untrusted, report, nodes, weight } =
            conversation;
        self.waiting.conversations.push(RowConversation {
            id,
            platform,
            import,
            untrusted,
            part: (report, nodes),
        });
        self.waiting.bytes += weight;
        if self.waiting.bytes >= WAITING_BYTES { self.write_groups(record) } else { Ok(()) }
    }

    /// Processes all waiting conversations of rows, those of one family together.
    pub(super) fn write_groups(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        let PendingGroups { conversations, .. } = std::mem::take(&mut self.waiting);
        if conversations.is_empty() {
            return Ok(());
        }
        // Pending changes have to be committed before the conversations are looked up.
        self.store_changes(record)?;
        self.session.lock()?;
        let written =
            self.write_families(&conversations.iter().collect::<Vec<_>>(), &mut { REFUSALS }, record);
        // Families that were counted are committed, even if the others failed.
        self.store_batch(record)?;
        written
    }

    /// Processes conversations of rows. Where the store refuses a union, each half of its conversations is tried
    /// separately, with at most `tries` such splits in all.
    fn write_families(
        &mut self,
        groups: &[&RowConversation],
        tries: &mut u32,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let rows: Vec<(&str, Vec<&str>)> =
            groups.iter().map(|group| (group.id.as_str(), group.rows())).collect();
        for mut row_group in RowGroup::load_all(self.session.store, &rows)? {
            self.session.check_cancelled()?;
            let mine: Vec<&RowConversation> = row_group.conversations.iter().map(|at| groups[*at]).collect();
            let Err(refusal) = self.write_row_group(&mut row_group, &mine, record)? else { continue };
            if mine.len() == 1 || *tries == 0 {
                for group in mine {
                    self.refuse(&group.id, group.part.1.len() as u64, &refusal, record)?;
                }
                continue;
            }
            *tries -= 1;
            let (one, other) = mine.split_at(mine.len() / 2);
            for half in [one, other] {
                self.write_families(half, tries, record)?;
                // The other half has to find this one in the store.
                self.store_changes(record)?;
            }
        }
        Ok(())
    }
}

impl RowConversation {
    fn rows(&self) -> Vec<&str> {
        self.part.1.iter().map(|node| node.id.as_str()).collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
