//! Unites one conversation with what the store has, counts it, and adds it to the batch with its lineage.

use std::collections::{BTreeSet, HashMap};

use satchel_merge::{
    body::{Body, Digest16},
    conversation::{Planned, Report, ReportedNode, unite, unite_all},
};
use satchel_pam::{
    conversation::ImportMetadata,
    record::{RecordKind, Skip, Warning},
};
use satchel_store::{Change, ConversationRecord, MessageWrite, Store, StoreError};

use super::{Writer, of_the_record};
use crate::{
    conversation_record::{self, Labels},
    ingest::{IngestError, normalise::Conversation, receipt::ImportRecord},
    lineage::{Family, Kept, Key, Part, Reading, Said, shown},
};

/// The reason why a stranger's conversation is left out.
const HELD_BACK: &str = "it is here from another source and says something else; a document of somebody whom you do not trust \
                         changes nothing";

/// A conversation as the store has it, before the import.
struct Before {
    stored: Option<ConversationRecord>,
    family: Family,
}

impl Before {
    /// Returns whether the report replaces what is shown: it is not a stranger's, what counts so far includes a stranger's
    /// report, and what is shown differs from it.
    fn is_outdone_by(
        &self,
        stranger: Option<&str>,
        (report, nodes): (&Report, &[ReportedNode]),
        left_out: &BTreeSet<Key>,
    ) -> bool {
        let shown = self.stored.as_ref().filter(|stored| !stored.withdrawn);
        self.family.is_outdone_by(stranger, left_out)
            && shown.is_none_or(|shown| !conversation_record::known(shown).reads_as(report, nodes))
    }
}

impl Writer<'_> {
    pub(super) fn conversation(
        &mut self,
        conversation: Conversation,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let Conversation { id, platform, import, foreign, stranger, report, nodes, weight } = conversation;
        let stranger = stranger.as_deref();
        if self.pending.contains(&id) {
            self.store_batch(record)?;
        }
        self.hold()?;
        let stored = self.store.conversation(&id, None)?;
        let family = Family::of(self.store, &id, stored.as_ref())?;
        let before = Before { stored, family };
        let fresh = before.stored.as_ref().is_none_or(|stored| stored.withdrawn);
        let found = nodes.len() as u64;
        let said = Said::of(&id, &report, &nodes)?.by(stranger);
        if stranger.is_some() && before.family.is_of_another(&self.left_out, stranger) {
            return self.hold_back(&id, report, nodes, &before, record);
        }
        let outdone = before.is_outdone_by(stranger, (&report, &nodes), &self.left_out);
        let planned = self.united(&id, (report, nodes), &before, outdone)?;
        let (messages, changed) = (planned.messages, planned.changed);
        if outdone && changed {
            record.warn(outdone_stranger(&id));
        }
        let key = said.key();
        let Before { stored, family } = before;
        let lineage = Self::lineage(&id, (said, stranger), &planned, (family, stored.as_ref()))?;
        let mut change = None;
        if changed {
            let import = import.unwrap_or_else(|| self.import.clone());
            let labels = Labels { id: &id, platform: &platform, fallback: 0, import };
            change = Some(write_of(planned, labels, stored.as_ref()));
        }
        if foreign && let Some(refusal) = self.refusal(change.as_ref())? {
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
        self.says(key);
        if let Some([said, _]) = &mut self.piece {
            said.push(key);
        }
        let changes: Vec<Change> = change.into_iter().chain(lineage).collect();
        if !self.dry_run && !changes.is_empty() {
            self.changes.extend(changes);
            self.bytes += weight;
            self.pending.insert(id);
        }
        Ok(())
    }

    /// Returns the union of a report with the earlier parts that count; `outdone`: without those of strangers.
    fn united(
        &self,
        id: &str,
        (report, nodes): (Report, Vec<ReportedNode>),
        before: &Before,
        outdone: bool,
    ) -> Result<Planned, IngestError> {
        let shown = before.stored.as_ref().filter(|stored| !stored.withdrawn);
        if !outdone && !before.family.has_left_out(&self.left_out) {
            let mut bodies = StoredBodies::of(self.store, shown);
            return unite(report, nodes, shown.map(conversation_record::known), &mut |message| {
                bodies.get(message)
            });
        }
        // An undo in progress may not have updated the stored conversation yet.
        let mut reading = Reading::new(self.store);
        let parts = before.family.counting(&self.left_out, outdone);
        let parts = parts.map(|part| Ok(reading.part(id, part)?)).chain([Ok((report, nodes))]);
        let planned = unite_all::<IngestError>(parts)?;
        let mut planned = planned.ok_or(IngestError::Unencodable { what: "a conversation" })?;
        planned.changed =
            shown.is_none_or(|shown| !conversation_record::known(shown).shows(&planned.known()));
        Ok(planned)
    }

    /// Leaves out a stranger's version of a conversation that others brought. It is counted as unchanged if it adds
    /// nothing.
    fn hold_back(
        &mut self,
        id: &str,
        report: Report,
        nodes: Vec<ReportedNode>,
        before: &Before,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        let found = nodes.len() as u64;
        // The result if the user trusted the stranger.
        let outdone = before.is_outdone_by(None, (&report, &nodes), &self.left_out);
        let planned = self.united(id, (report, nodes), before, outdone)?;
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
        let skip = record.skip(Skip { kind: RecordKind::Conversation, locator, reason });
        skip.map_or(Ok(()), |skip| self.spill(skip, record))
    }

    /// Returns the changes that keep the reported part in the lineage, if it is not there yet.
    fn lineage(
        id: &str,
        (said, stranger): (Said, Option<&str>),
        planned: &Planned,
        (mut family, stored): (Family, Option<&ConversationRecord>),
    ) -> Result<Vec<Change>, IngestError> {
        if family.parts.iter().any(|part| part.digest == said.digest) {
            return Ok(Vec::new());
        }
        let now = stored.map_or(0, |stored| stored.version) + u32::from(planned.changed);
        let version = planned.sole.then_some(now);
        let (digest, stranger) = (said.digest.clone(), stranger.map(str::to_owned));
        family.parts.push(Part { digest, version, home: None, stranger });
        let mut changes = Vec::new();
        if version.is_none() {
            let digest = said.digest.clone();
            let spare = planned.spare.iter().map(|(id, bytes)| (id.as_str(), bytes.as_slice())).collect();
            changes.push(Kept::of(said, &shown(planned), &spare, now)?.change(&digest)?);
        }
        changes.push(family.change(id)?);
        Ok(changes)
    }

    /// Returns the reason why the store would not accept a change; `Err` is an error that does not concern the change
    /// itself.
    pub(super) fn refusal(&self, change: Option<&Change>) -> Result<Option<StoreError>, IngestError> {
        match change.map_or(Ok(()), |change| self.store.accepts(std::slice::from_ref(change))) {
            Ok(()) => Ok(None),
            Err(refusal) if of_the_record(&refusal) => Ok(Some(refusal)),
            Err(error) => Err(error.into()),
        }
    }

    /// Counts a conversation that the store would not accept, and its messages, as skipped.
    pub(super) fn refuse(
        &mut self,
        id: &str,
        messages: u64,
        refusal: &StoreError,
        record: &mut ImportRecord,
    ) -> Result<(), IngestError> {
        record.messages.found += messages;
        record.messages.skipped += messages;
        let (locator, reason) = (format!("conversation {id:?}"), refusal.to_string());
        let skip = record.skip(Skip { kind: RecordKind::Conversation, locator, reason });
        skip.map_or(Ok(()), |skip| self.spill(skip, record))
    }
}

/// Returns the warning that a conversation no longer shows what a stranger's document said.
pub(super) fn outdone_stranger(id: &str) -> Warning {
    let message = "a document of somebody whom you do not trust had brought it before; it now shows what this import says, and nothing of that document".to_owned();
    Warning { locator: format!("conversation {id:?}"), message }
}

/// Returns the union of the parts that count; `None` if there are none.
pub(in crate::ingest) fn replayed<'p>(
    store: &Store,
    id: &str,
    parts: impl Iterator<Item = &'p Part>,
) -> Result<Option<Planned>, IngestError> {
    let mut reading = Reading::new(store);
    unite_all(parts.map(|part| Ok(reading.part(id, part)?)))
}

/// Returns the change that shows `planned`. Bodies that the stored version has, visible or not, are not stored twice.
pub(in crate::ingest) fn write_of(
    planned: Planned,
    labels: Labels<'_>,
    stored: Option<&ConversationRecord>,
) -> Change {
    let held: HashMap<&str, Digest16> =
        stored.iter().flat_map(|stored| &stored.heads).map(|head| (head.id.as_str(), head.digest)).collect();
    let mut write = conversation_record::to_write(planned, labels);
    for message in &mut write.messages {
        if held.get(message.head().id.as_str()) == Some(&message.head().digest) {
            *message = MessageWrite::Keep { head: message.head().clone() };
        }
    }
    Change::Conversation(Box::new(write))
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
