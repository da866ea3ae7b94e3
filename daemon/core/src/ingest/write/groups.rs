//! Conversations grouped from rows without ids: all that was said of the rows decides which conversations they come to.

mod clan;

use std::collections::{HashMap, HashSet};

use satchel_merge::groups::{self, Component, Outline};
use satchel_pam::conversation::ImportMetadata;
use satchel_source::CancelToken;
use satchel_store::{Change, ConversationRecord, Store};

use super::{Writer, conversation::withdrawal_of};
use crate::{
    conversation_record,
    ingest::{IngestError, normalise::Conversation, receipt::ImportRecord},
    lineage::{Clan, Family, Part, Reading},
};

/// Bytes in memory of conversations that wait. Each family of rows is united once for so much of an export, so that the work
/// is what the rows are, however many conversations the export makes of them.
const WAITING_BYTES: usize = 16 << 20;
/// Unions of one lot that the store may refuse before those of which they are made are left out together.
const REFUSALS: u32 = 64;

/// Conversations of rows that wait to be said together.
#[derive(Default)]
pub(super) struct Waiting {
    conversations: Vec<Group>,
    bytes: usize,
}

/// A conversation of rows, as one export has it.
pub(super) struct Group {
    id: String,
    platform: String,
    import: Option<ImportMetadata>,
    /// As of a [`Conversation`].
    stranger: Option<String>,
    part: groups::Part,
}

/// Whether a conversation is one of rows. One from a document is if its id says so: all others keep theirs.
pub(in crate::ingest) fn are(conversation: &Conversation) -> bool {
    let Conversation { id, platform, foreign, report, nodes, .. } = conversation;
    groups::grouped(report.provider_conversation_id.as_deref(), report.raw_metadata.as_ref())
        && !nodes.is_empty()
        && (!foreign || *id == groups::id_of(platform, report.account.as_deref(), nodes))
}

/// What becomes of one conversation.
pub(in crate::ingest) enum Step {
    /// It is shown as `component`.
    Show {
        component: Box<Component>,
        stored: Option<Box<ConversationRecord>>,
        /// Whether that differs from what is stored.
        changed: bool,
    },
    /// It is shown no more; the change that says so.
    Withdraw(Change),
}

/// What makes the store show `components`, and nothing else of what the rows of `family` ever came to.
pub(in crate::ingest) fn steps(
    store: &Store,
    family: &Family,
    components: Vec<Component>,
) -> Result<Vec<Step>, IngestError> {
    let mut steps = Vec::new();
    let shown: HashSet<&str> = components.iter().map(|component| component.id.as_str()).collect();
    let mut places = None;
    for id in family.shown.iter().filter(|id| !shown.contains(id.as_str())) {
        if let Some(stored) = store.conversation(id, None)?.filter(|stored| !stored.withdrawn) {
            let places = places.get_or_insert_with(|| index(&components));
            steps.push(Step::Withdraw(withdrawal_of(pointed(stored, places))));
        }
    }
    for component in components {
        let stored = store.conversation(&component.id, None)?.map(Box::new);
        let shown = stored.as_ref().filter(|stored| !stored.withdrawn);
        let changed =
            shown.is_none_or(|shown| !conversation_record::known(shown).shows(&component.planned.known()));
        steps.push(Step::Show { component: Box::new(component), stored, changed });
    }
    Ok(steps)
}

/// The component in which each message is.
fn index(components: &[Component]) -> HashMap<String, String> {
    let mut index = HashMap::new();
    for Component { id, planned, .. } in components {
        index.extend(planned.nodes.iter().map(|node| (node.known.id.clone(), id.clone())));
    }
    index
}

/// The conversation with the id of the one where its first message is now.
fn pointed(mut stored: ConversationRecord, index: &HashMap<String, String>) -> ConversationRecord {
    if let Some(id) = stored.heads.first().and_then(|head| index.get(&head.id)) {
        let raw = stored.header.raw_metadata.take().unwrap_or_default();
        stored.header.raw_metadata = Some(raw.with(groups::CONTINUED, &id.as_str().into()));
    }
    stored
}

/// What the parts of a family that count come to, with `more` that are at hand.
pub(in crate::ingest) fn planned(
    store: &Store,
    platform: &str,
    known: &[&Part],
    more: &[&groups::Part],
    cancel: &CancelToken,
) -> Result<Vec<Component>, IngestError> {
    let mut reading = Reading::new(store);
    let mut outlines = Vec::with_capacity(known.len() + more.len());
    for part in known {
        wanted(cancel)?;
        outlines.push(reading.outline("", part)?);
    }
    outlines.extend(more.iter().map(|part| Outline::of_part(part)));
    groups::components(platform, &outlines, &mut |at| {
        wanted(cancel)?;
        match known.get(at) {
            Some(part) => Ok(reading.part("", part)?),
            None => Ok(more[at - known.len()].clone()),
        }
    })
}

fn wanted(cancel: &CancelToken) -> Result<(), IngestError> {
    if cancel.cancelled() { Err(IngestError::Cancelled) } else { Ok(()) }
}

impl Writer<'_> {
    /// Takes a conversation of rows.
    pub(super) fn group(
        &mut self,
        conversation: Conversation,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let Conversation { id, platform, import, foreign: _, stranger, report, nodes, weight } = conversation;
        self.waiting.conversations.push(Group { id, platform, import, stranger, part: (report, nodes) });
        self.waiting.bytes += weight;
        if self.waiting.bytes >= WAITING_BYTES { self.say_groups(record) } else { Ok(()) }
    }

    /// Says all conversations of rows that wait: those of one family together.
    pub(super) fn say_groups(&mut self, record: &mut ImportRecord) -> Result<(), IngestError> {
        let Waiting { conversations, .. } = std::mem::take(&mut self.waiting);
        if conversations.is_empty() {
            return Ok(());
        }
        // Nothing of them must wait to be committed when they are looked up.
        self.store_changes(record)?;
        self.hold()?;
        let said = self.say(&conversations.iter().collect::<Vec<_>>(), &mut { REFUSALS }, record);
        // Those families that were counted are stored, whatever ended the rest.
        self.store_batch(record)?;
        said
    }

    /// Says conversations of rows. Where the store refuses what they come to, each half of them is said for itself, `tries`
    /// times in all.
    fn say(
        &mut self,
        said: &[&Group],
        tries: &mut u32,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let rows: Vec<(&str, Vec<&str>)> =
            said.iter().map(|group| (group.id.as_str(), group.rows())).collect();
        for mut clan in Clan::all(self.store, &rows)? {
            self.wanted()?;
            let mine: Vec<&Group> = clan.said.iter().map(|at| said[*at]).collect();
            let Err(refusal) = self.clan(&mut clan, &mine, record)? else { continue };
            if mine.len() == 1 || *tries == 0 {
                for group in mine {
                    self.refuse(&group.id, group.part.1.len() as u64, &refusal, record)?;
                }
                continue;
            }
            *tries -= 1;
            let (one, other) = mine.split_at(mine.len() / 2);
            for half in [one, other] {
                self.say(half, tries, record)?;
                // The other half is to find it.
                self.store_changes(record)?;
            }
        }
        Ok(())
    }
}

impl Group {
    fn rows(&self) -> Vec<&str> {
        self.part.1.iter().map(|node| node.id.as_str()).collect()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
