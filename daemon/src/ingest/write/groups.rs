//! Conversations grouped from rows without ids: all that was said of the rows decides which conversations they come to.

use satchel_store::{Change, ConversationRecord, Store};

use super::{
    Writer,
    conversation::{StoredBodies, counted, withdrawal_of, write_of},
    weight,
};
use crate::{
    ingest::{IngestError, normalise::Conversation, receipt::ImportRecord},
    lineage::{Clan, Family, Kept, Key, Part, Said},
    plan::{
        assemble::{self, Labels},
        conversation::Tally,
        groups::{self, Component},
    },
};

/// Whether a conversation is one of rows. One from a document is if its id says so: all others keep theirs.
pub(super) fn are(conversation: &Conversation) -> bool {
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
    for id in family.shown.iter().filter(|id| components.iter().all(|component| component.id != **id)) {
        if let Some(stored) = store.conversation(id, None)?.filter(|stored| !stored.withdrawn) {
            steps.push(Step::Withdraw(withdrawal_of(pointed(stored, &components))));
        }
    }
    for component in components {
        let stored = store.conversation(&component.id, None)?.map(Box::new);
        let shown = stored.as_ref().filter(|stored| !stored.withdrawn);
        let changed = shown.is_none_or(|shown| !assemble::known(shown).shows(&component.planned.known()));
        steps.push(Step::Show { component: Box::new(component), stored, changed });
    }
    Ok(steps)
}

/// The conversation with the id of the one where its first message is now.
fn pointed(mut stored: ConversationRecord, components: &[Component]) -> ConversationRecord {
    let first = stored.heads.first().map(|head| head.id.as_str());
    let has = |component: &&Component| {
        component.planned.nodes.iter().any(|node| Some(node.known.id.as_str()) == first)
    };
    if let Some(component) = components.iter().find(has) {
        let raw = stored.header.raw_metadata.take().unwrap_or_default();
        stored.header.raw_metadata = Some(raw.with(groups::CONTINUED, &component.id.as_str().into()));
    }
    stored
}

/// What an import changes, and counts.
#[derive(Default)]
struct Told {
    /// Of what it says.
    key: Key,
    changes: Vec<Change>,
    messages: Tally,
    /// Whether nothing was shown of the conversation.
    fresh: bool,
    /// Whether messages may have got another conversation.
    moved: bool,
}

impl Writer<'_> {
    pub(super) fn groups(
        &mut self,
        conversation: Conversation,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let mut clan = self.clan(&conversation, record)?;
        let id = conversation.id.clone();
        let rows: Vec<String> = conversation.nodes.iter().map(|node| node.id.clone()).collect();
        let found = rows.len() as u64;
        let (told, lineage) = self.told(conversation, &mut clan)?;
        // What is united may be more than one conversation holds, whoever says it.
        for change in &told.changes {
            if let Some(refusal) = self.refusal(Some(change))? {
                return self.refuse(&id, found, refusal, record);
            }
        }
        let (conversations, messages) = (&mut record.conversations, &mut record.messages);
        conversations.found += 1;
        match (told.fresh, told.changes.is_empty()) {
            (true, _) => conversations.new += 1,
            (false, false) => conversations.updated += 1,
            (false, true) => conversations.unchanged += 1,
        }
        let Tally { new, updated, unchanged: _ } = told.messages;
        messages.found += found;
        messages.new += new;
        messages.updated += updated;
        messages.unchanged += found - new - updated;
        self.says(told.key);
        if !(self.dry_run || told.changes.is_empty() && lineage.is_empty()) {
            self.bytes += told.changes.iter().map(weight).sum::<usize>();
            self.pending.extend(clan.keys().chain(&clan.family.shown).chain([&id]).cloned());
            self.rows.extend(rows);
            // The lineage first: a commit is whole, but a reader of it wants to know the conversations before they come.
            self.changes.extend(lineage.into_iter().chain(told.changes));
            self.moved |= told.moved;
        }
        Ok(())
    }

    /// What is known of the rows of a conversation. The pen is held, and nothing of them waits to be committed.
    fn clan(&mut self, conversation: &Conversation, record: &mut ImportRecord) -> Result<Clan, IngestError> {
        let rows = || conversation.nodes.iter().map(|node| node.id.as_str());
        if self.pending.contains(&conversation.id) || rows().any(|row| self.rows.contains(row)) {
            self.flush(record)?;
        }
        self.hold()?;
        let clan = Clan::of(self.store, &conversation.id, rows())?;
        if !clan.keys().any(|key| self.pending.contains(key)) {
            return Ok(clan);
        }
        self.flush(record)?;
        self.hold()?;
        Ok(Clan::of(self.store, &conversation.id, rows())?)
    }

    /// What becomes of what is shown, and of the lineage, when this import says `conversation`.
    fn told(
        &mut self,
        conversation: Conversation,
        clan: &mut Clan,
    ) -> Result<(Told, Vec<Change>), IngestError> {
        let Conversation { id, platform, import, report, nodes, .. } = conversation;
        let said = Said::of(&id, &report, &nodes)?;
        let (mut told, mut lineage) = (Told { key: said.key(), ..Told::default() }, Vec::new());
        let known = clan.family.parts.iter().any(|part| part.digest == said.digest);
        if known && !clan.family.has_left_out(&self.left_out) {
            return Ok((told, lineage));
        }
        let mut said = (!known).then_some(said);
        let import = import.unwrap_or_else(|| self.import.clone());
        let (components, last) = self.come_to(&platform, clan, (report, nodes))?;
        // An event may have gone from one to the other.
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
            if component.parts.contains(&last) {
                told.messages = component.planned.messages;
                let shown = stored.as_ref().is_some_and(|stored| !stored.withdrawn);
                told.fresh = component.parts.len() == 1 && !shown;
                if let Some(said) = said.take() {
                    let now = stored.as_ref().map_or(0, |stored| stored.version) + u32::from(changed);
                    lineage.extend(noted(&mut clan.family, said, &component, now)?);
                }
            }
            if changed {
                let Component { id, planned, .. } = *component;
                let labels = Labels { id: &id, platform: &platform, fallback: 0, import: import.clone() };
                told.changes.push(write_of(planned, labels, stored.as_deref()));
            }
        }
        lineage.extend(clan.changes()?);
        Ok((told, lineage))
    }

    /// The conversations of a clan of which `part` is said, too, and the place of that among their parts.
    fn come_to(
        &self,
        platform: &str,
        clan: &Clan,
        part: groups::Part,
    ) -> Result<(Vec<Component>, usize), IngestError> {
        if let Some(component) = self.grown(platform, clan, &part)? {
            let last = component.parts.len() - 1;
            return Ok((vec![component], last));
        }
        let mut parts = counted(self.store, "", &clan.family, |part| part.counts(&self.left_out))?;
        parts.push(part);
        let last = parts.len() - 1;
        Ok((planned(platform, parts)?, last))
    }

    /// The only conversation of a clan, grown by `part`.
    fn grown(
        &self,
        platform: &str,
        clan: &Clan,
        part: &groups::Part,
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
        groups::grown(platform, assemble::known(stored), titled, part, &mut |message| bodies.get(message))
    }
}

/// Notes what was `said` with the version of the component that has it; what no version has is kept apart.
fn noted(
    family: &mut Family,
    said: Said,
    component: &Component,
    now: u32,
) -> Result<Option<Change>, IngestError> {
    let (digest, home) = (said.digest.clone(), Some(component.id.clone()));
    let version = component.planned.sole.then_some(now);
    family.parts.push(Part { digest: digest.clone(), version, home });
    if version.is_some() {
        return Ok(None);
    }
    Ok(Some(Kept::of(said, &component.planned, now)?.change(&digest)?))
}

/// What `parts` come to.
pub(in crate::ingest) fn planned(
    platform: &str,
    parts: Vec<groups::Part>,
) -> Result<Vec<Component>, IngestError> {
    groups::components(platform, parts).map_err(|_| IngestError::Unencodable { what: "a stored message" })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests;
