//! Recorded conversations of other stores, and those of this store for others.

use satchel_merge::conversation::ReportedNode;
use satchel_store::{
    Batch, Change, ConversationQuery, ConversationRecord, Ledger, Origin, Store, StoreError,
};

use super::{
    REASON, RecordedPart, RecordingChange, RecordingError, Recordings, lineage, recorded_at, unencodable,
};
use crate::{
    each_row,
    provenance::{ContributionReader, ConversationProvenance, PurgedData, version_as_report},
    series::payload::ContributionPayload,
};

/// Conversations per page of a list.
const PAGE: usize = 500;

impl RecordedPart {
    /// Returns the part as other stores get it.
    pub(super) fn into_payload(self) -> Result<ContributionPayload, RecordingError> {
        let Self { conversation, platform, import, report, nodes } = self;
        let nodes = ContributionPayload::encode_nodes(nodes).map_err(|_| unencodable())?;
        Ok(ContributionPayload { conversation, platform, import, untrusted: None, report, nodes })
    }

    fn from_payload(payload: ContributionPayload) -> Result<Self, RecordingError> {
        let ContributionPayload { conversation, platform, import, untrusted: _, report, nodes } = payload;
        let nodes: Vec<ReportedNode> = ContributionPayload::decode_nodes(nodes).map_err(|_| unencodable())?;
        Ok(Self { conversation, platform, import, report, nodes })
    }
}

impl Recordings {
    /// Adds what was recorded in another store, and writes `entries` in the same commit. Durable when this returns. The caller holds
    /// the write lock.
    ///
    /// # Errors
    /// Any error of the store.
    pub(crate) fn merge(
        &self,
        actor: &str,
        payload: ContributionPayload,
        entries: Vec<Change>,
    ) -> Result<(), RecordingError> {
        let part = RecordedPart::from_payload(payload)?;
        let at_micros = self.clock.now_micros();
        let origin = Origin { import: None, actor: actor.to_owned(), reason: REASON.to_owned(), at_micros };
        let mut changes = entries;
        if !PurgedData::load(&self.store)?.contains_conversation(&part.conversation) {
            let stored = self.store.conversation(&part.conversation, None)?;
            let created = part.report.created_at.unwrap_or(0);
            let RecordingChange { changes: added, part: _ } = self.added(part, stored.as_ref(), created)?;
            changes.extend(added);
        }
        self.store.commit(Batch { origin, changes })?;
        Ok(())
    }
}

/// Passes everything to `visit` that programs have recorded in the store.
///
/// # Errors
/// When the store cannot be read, or an error of `visit`.
pub(crate) fn each_recording<E: From<RecordingError> + From<StoreError>>(
    store: &Store,
    mut visit: impl FnMut(ContributionPayload) -> Result<(), E>,
) -> Result<(), E> {
    let (query, at) = (ConversationQuery::default(), store.revision());
    each_row(
        |after| store.conversations(&query, after, PAGE, at).map_err(E::from),
        |summary| match recording(store, &summary.id)? {
            Some(part) => visit(part.into_payload()?),
            None => Ok(()),
        },
    )
}

/// Returns what was recorded of a conversation.
fn recording(store: &Store, id: &str) -> Result<Option<RecordedPart>, RecordingError> {
    let Some(stored) = store.conversation(id, None)? else { return Ok(None) };
    let (report, nodes) = if store.ledger_get(Ledger::Provenance, id)?.is_none() {
        version_as_report(store, &stored)?
    } else {
        let family = ConversationProvenance::load(store, id, Some(&stored))?;
        let Some(part) = family.contributions.iter().find(|part| lineage::is_recorded(part)) else {
            return Ok(None);
        };
        ContributionReader::new(store).read(id, part)?
    };
    let ConversationRecord { header, .. } = stored;
    let import = header.import_metadata.unwrap_or_else(|| recorded_at(header.temporal.created_at.micros()));
    let (conversation, platform) = (id.to_owned(), header.provider.name);
    Ok(Some(RecordedPart { conversation, platform, import, report, nodes }))
}
