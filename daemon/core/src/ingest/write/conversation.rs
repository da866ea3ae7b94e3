//! Unites one conversation with what the store has, counts it, and adds it to the batch with its lineage.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Display,
};

use satchel_merge::{
    body::Body,
    conversation::{ConversationPlan, ConversationReport, ReportedNode, unite, unite_all},
};
use satchel_pam::{
    conversation::ImportMetadata,
    record::{RecordKind, Skip, Warning},
};
use satchel_store::{Change, ConversationRecord, MessageWrite, Store};

use super::Writer;
use crate::{
    conversation_record::{self, WriteLabels, write_of},
    ingest::{error::IngestError, normalise::NormalisedConversation, receipt::ImportRecord},
    provenance::{
        self, Contribution, ContributionReader, ContributionSkeleton, ConversationProvenance, EvidenceKey,
        StoredContribution, shown,
    },
};

/// The reason why a stranger's conversation is left out.
const HELD_BACK: &str = "it is here from another source and says something else; a document of somebody whom you do not trust \
                         changes nothing";

/// A conversation as the store has it, before the import.
struct StoredState {
    stored: Option<ConversationRecord>,
    family: ConversationProvenance,
}

impl StoredState {
    /// Returns whether the report replaces what is shown: it is not a stranger's, what counts so far includes a stranger's
    /// report, and what is shown differs from it.
    fn is_superseded_by(
        &self,
        untrusted: Option<&str>,
        (report, nodes): (&ConversationReport, &[ReportedNode]),
        left_out: &BTreeSet<EvidenceKey>,
    ) -> bool {
        let shown = self.stored.as_ref().filter(|stored| !stored.withdrawn);
        self.family.is_superseded_by(untrusted, left_out)
            && shown
                .is_none_or(|shown| !conversation_record::known(shown).same_visible_content(report, nodes))
    }
}

impl Writer<'_> {
    pub(super) fn conversation(
        &mut self,
        conversation: NormalisedConversation,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let NormalisedConversation { id, platform, import, foreign, untrusted, report, nodes, weight } =
            conversation;
        let untrusted = untrusted.as_deref();
        if self.batch.contains(&id) {
            self.store_batch(record)?;
        }
        if foreign && provenance::is_reserved(&id) {
            return self.refuse(&id, nodes.len() as u64, &"the id is reserved for the store itself", record);
        }
        self.session.lock()?;
        let store = self.session.store;
        let stored = store.conversation(&id, None)?;
        let family = ConversationProvenance::load(store, &id, stored.as_ref())?;
        let before = StoredState { stored, family };
        let fresh = before.stored.as_ref().is_none_or(|stored| stored.withdrawn);
        let found = nodes.len() as u64;
        let skeleton = ContributionSkeleton::of(&id, &report, &nodes)?.attributed_to(untrusted);
        if untrusted.is_some() && before.family.has_other_signer(&self.session.left_out, untrusted) {
            return self.hold_back(&id, report, nodes, &before, record);
        }
        let superseded = before.is_superseded_by(untrusted, (&report, &nodes), &self.session.left_out);
        let planned = self.united(&id, (report, nodes), &before, superseded)?;
        let (messages, changed) = (planned.messages, planned.changed);
        if superseded && changed {
            record.warn(superseded_untrusted(&id));
        }
        let key = skeleton.key();
        let StoredState { stored, family } = before;
        let lineage = Self::lineage(&id, (skeleton, untrusted), &planned, (family, stored.as_ref()))?;
        let mut change = None;
        if changed {
            let import = import.unwrap_or_else(|| self.import.clone());
            let labels = WriteLabels { id: &id, platform: &platform, fallback: 0, import };
            change = Some(write_of(planned, labels, stored.as_ref()));
        }
        if let Some(change) = change.as_ref().filter(|_| foreign)
            && let Some(refusal) = self.session.refusal(change)?
        {
            return self.refuse(&id, found, &refusal, record);
        }
        record.conversations.found += 1;
        record.messages.found += found;
        record.messages.new += messages.new;
        record.messages.updated += messages.updated;
        record.messages.unchanged += messages.unchanged;
        match (fresh, changed) {
            (true, _) => record.conversations.new += 1,
            (false, true) => record.conversations.updated += 1,
            (false, false) => record.conversations.unchanged += 1,
        }
        self.record_part(key);
        self.pieces.add_part(key);
        let changes: Vec<Change> = change.into_iter().chain(lineage).collect();
        if !self.session.dry_run && !changes.is_empty() {
            self.batch.add(id, changes, weight);
        }
        Ok(())
    }

    /// Returns the union of a report with the earlier parts that count; if `superseded`, without those of strangers.
    fn united(
        &self,
        id: &str,
        (report, nodes): (ConversationReport, Vec<ReportedNode>),
        before: &StoredState,
        superseded: bool,
    ) -> Result<ConversationPlan, IngestError> {
        let shown = before.stored.as_ref().filter(|stored| !stored.withdrawn);
        if !superseded && !before.family.has_excluded(&self.session.left_out) {
            let mut bodies = StoredBodies::of(self.session.store, shown);
            return unite(report, nodes, shown.map(conversation_record::known), &mut |message| {
                bodies.get(message)
            });
        }
        // An undo in progress may not have updated the stored conversation yet.
        let mut reading = ContributionReader::new(self.session.store);
        let parts = before.family.included(&self.session.left_out, superseded);
        let parts = parts.map(|part| Ok(reading.read(id, part)?)).chain([Ok((report, nodes))]);
        let planned = unite_all::<IngestError>(parts)?;
        let mut planned = planned.ok_or(IngestError::Unencodable { what: "a conversation" })?;
        planned.changed =
            shown.is_none_or(|shown| !conversation_record::known(shown).same_content(&planned.state()));
        Ok(planned)
    }

    /// Leaves out a stranger's version of a conversation that others brought. It is counted as unchanged if it adds
    /// nothing.
    fn hold_back(
        &mut self,
        id: &str,
        report: ConversationReport,
        nodes: Vec<ReportedNode>,
        before: &StoredState,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let found = nodes.len() as u64;
        // The result if the user trusted the stranger.
        let superseded = before.is_superseded_by(None, (&report, &nodes), &self.session.left_out);
        let planned = self.united(id, (report, nodes), before, superseded)?;
        record.messages.found += found;
        if !planned.changed {
            record.conversations.found += 1;
            record.conversations.unchanged += 1;
            record.messages.unchanged += found;
            return Ok(());
        }
        record.messages.skipped += found;
        self.skip_conversation(id, record)
    }

    /// Counts a conversation as skipped because a stranger's document changes nothing.
    pub(super) fn skip_conversation(
        &mut self,
        id: &str,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        record.would_change.conversations += 1;
        let (locator, reason) = (format!("conversation {id:?}"), HELD_BACK.to_owned());
        let skip = Skip { kind: RecordKind::Conversation, locator, reason };
        self.skips.add(skip, &self.session, record)
    }

    /// Returns the changes that keep the reported part in the lineage, if it is not there yet.
    fn lineage(
        id: &str,
        (skeleton, untrusted): (ContributionSkeleton, Option<&str>),
        planned: &ConversationPlan,
        (mut family, stored): (ConversationProvenance, Option<&ConversationRecord>),
    ) -> Result<Vec<Change>, IngestError> {
        if family.contributions.iter().any(|part| part.digest == skeleton.digest) {
            return Ok(Vec::new());
        }
        let now = stored.map_or(0, |stored| stored.version) + u32::from(planned.changed);
        let version = planned.equals_report.then_some(now);
        let (digest, untrusted) = (skeleton.digest.clone(), untrusted.map(str::to_owned));
        family.contributions.push(Contribution { digest, version, conversation: None, untrusted });
        let mut changes = Vec::new();
        if version.is_none() {
            let digest = skeleton.digest.clone();
            let spare =
                planned.differing_bodies.iter().map(|(id, bytes)| (id.as_str(), bytes.as_slice())).collect();
            changes.push(
                StoredContribution::from_skeleton(skeleton, &shown(planned), &spare, now)?
                    .to_change(&digest)?,
            );
        }
        changes.push(family.to_change(id)?);
        Ok(changes)
    }

    /// Counts a conversation that the store would not accept, and its messages, as skipped.
    pub(super) fn refuse(
        &mut self,
        id: &str,
        messages: u64,
        refusal: &dyn Display,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        record.messages.found += messages;
        record.messages.skipped += messages;
        let (locator, reason) = (format!("conversation {id:?}"), refusal.to_string());
        let skip = Skip { kind: RecordKind::Conversation, locator, reason };
        self.skips.add(skip, &self.session, record)
    }
}

/// Returns the warning that a conversation no longer shows what a stranger's document said.
pub(super) fn superseded_untrusted(id: &str) -> Warning {
    let message = "a document of somebody whom you do not trust had brought it before; it now shows what this import says, and nothing of that document".to_owned();
    Warning { locator: format!("conversation {id:?}"), message }
}

/// Returns the union of the parts that count; `None` if there are none.
pub(in crate::ingest) fn replayed<'p>(
    store: &Store,
    id: &str,
    parts: impl Iterator<Item = &'p Contribution>,
) -> Result<Option<ConversationPlan>, IngestError> {
    let mut reading = ContributionReader::new(store);
    unite_all(parts.map(|part| Ok(reading.read(id, part)?)))
}

/// Returns the change that withdraws `stored`.
pub(in crate::ingest) fn withdrawal_of(stored: ConversationRecord) -> Change {
    let ConversationRecord { header, current, opaque, heads, .. } = stored;
    let messages = heads.into_iter().map(|head| MessageWrite::Keep { head }).collect();
    let write = satchel_store::ConversationWrite { header, current, opaque, messages };
    Change::WithdrawConversation(Box::new(write))
}

/// Returns the import metadata for the header of a conversation.
pub(in crate::ingest) fn import_of(record: &ImportRecord) -> ImportMetadata {
    ImportMetadata {
        importer: record.plugin.clone(),
        importer_version: record.importer.clone(),
        imported_at: Some(satchel_pam::time::Timestamp::saturating(record.started_at)),
        source_file: Some(record.source.clone()),
        source_checksum: record.source_checksum.as_deref().and_then(|text| text.parse().ok()),
    }
}

/// The bodies of a stored conversation, read together when the first of them is needed.
pub(super) struct StoredBodies<'a> {
    store: &'a Store,
    record: Option<&'a ConversationRecord>,
    loaded: Option<HashMap<String, Vec<u8>>>,
}

impl<'a> StoredBodies<'a> {
    pub(super) fn of(store: &'a Store, record: Option<&'a ConversationRecord>) -> Self {
        Self { store, record, loaded: None }
    }

    pub(super) fn get(&mut self, message: &str) -> Result<Body, IngestError> {
        let loaded = match &mut self.loaded {
            Some(loaded) => loaded,
            empty => {
                let bodies = self.record.into_iter().flat_map(|record| self.store.all_bodies(record));
                empty.insert(bodies.collect::<Result<_, _>>()?)
            }
        };
        let bytes = loaded.get(message).map(Vec::as_slice).unwrap_or_default();
        Body::decode(bytes).map_err(|_| IngestError::Unencodable { what: "a stored message" })
    }
}
