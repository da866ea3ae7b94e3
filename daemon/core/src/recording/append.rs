//! Appends messages to a conversation.

use satchel_merge::{
    body::Body,
    conversation::{ReportedNode, unite},
    groups,
};
use satchel_store::{ConversationRecord, Ledger};

use super::{
    ConversationPlan, ConversationReport, MAX_CONVERSATION_MESSAGES, NewMessage, Recorded, RecordedPart,
    RecordingChange, RecordingContext, RecordingError, Recordings, attribution::is_recorded, lineage,
    messages, messages::Chain, recorded_at, unencodable,
};
use crate::conversation_record::{self, WriteLabels};

impl Recordings {
    /// Appends `new` to a conversation: the first message answers `parent`, or the message that was written last if
    /// `parent` is empty.
    ///
    /// # Errors
    /// An unknown conversation or parent, a field that is not valid, or an error of the store.
    pub fn append(
        &self,
        call: &RecordingContext,
        id: &str,
        parent: &str,
        new: &[NewMessage],
    ) -> Result<Recorded, RecordingError> {
        if new.is_empty() {
            return Err(RecordingError::invalid("messages", "must not be empty"));
        }
        messages::check(new)?;
        self.transact(call, |now| {
            let stored = self.store.conversation(id, None)?.filter(|stored| !stored.withdrawn);
            let stored = stored.ok_or_else(|| RecordingError::NoConversation(id.to_owned()))?;
            check_appendable(&stored)?;
            let parent = parent_of(&stored, parent)?;
            let chain = messages::chain(id, parent, new, now, &|message| self.message(&stored, message))?;
            let recorded = Recorded { conversation: id.to_owned(), messages: chain.ids.clone(), revision: 0 };
            if chain.new.is_empty() {
                return Ok((recorded, RecordingChange::default()));
            }
            if stored.heads.len() + chain.new.len() > MAX_CONVERSATION_MESSAGES {
                return Err(RecordingError::TooLong { messages: stored.heads.len() });
            }
            let known = conversation_record::known(&stored);
            let report = ConversationReport { is_archived: known.report.is_archived, ..Default::default() };
            let part = RecordedPart {
                conversation: id.to_owned(),
                platform: stored.header.provider.name.clone(),
                import: stored.header.import_metadata.clone().unwrap_or_else(|| recorded_at(now)),
                report: completed(report, &chain, now, Some(&stored)),
                nodes: chain.new,
            };
            Ok((recorded, self.added(part, Some(&stored), now)?))
        })
    }

    /// Returns the changes that add a recorded part to a conversation. `now` is the time of creation of one without any time.
    pub(super) fn added(
        &self,
        part: RecordedPart,
        stored: Option<&ConversationRecord>,
        now: i64,
    ) -> Result<RecordingChange, RecordingError> {
        let RecordedPart { conversation: id, platform, import, report, nodes } = part.clone();
        let imported = self.store.ledger_get(Ledger::Provenance, &id)?.is_some();
        let (planned, mut changes) = match stored.filter(|_| imported) {
            Some(stored) => lineage::extended(&self.store, stored, report, nodes)?,
            None => (self.united(report, nodes, stored)?, Vec::new()),
        };
        let labels = WriteLabels { id: &id, platform: &platform, fallback: now, import };
        changes.insert(0, conversation_record::write_of(planned, labels, stored));
        Ok(RecordingChange { changes, part: Some(part) })
    }

    /// Unites a recorded part with a conversation that no import contains.
    fn united(
        &self,
        report: ConversationReport,
        nodes: Vec<ReportedNode>,
        stored: Option<&ConversationRecord>,
    ) -> Result<ConversationPlan, RecordingError> {
        let known = stored.map(conversation_record::known);
        // Bodies of stored messages are read only if the part has another text for one.
        let mut body = |id: &str| {
            let found = stored.map(|stored| self.message(stored, id)).transpose()?.flatten();
            found.ok_or_else(unencodable)
        };
        unite(report, nodes, known, &mut body)
    }

    /// Returns the body of a stored message; `None` if the conversation has no such message.
    fn message(&self, stored: &ConversationRecord, id: &str) -> Result<Option<Body>, RecordingError> {
        let at = stored.heads.iter().position(|head| head.id == id);
        let bodies = self.store.bodies_at(stored, at.as_slice())?;
        bodies.first().map(|bytes| Body::decode(bytes)).transpose().map_err(|_| unencodable())
    }
}

/// Refuses conversations that cannot be continued.
fn check_appendable(stored: &ConversationRecord) -> Result<(), RecordingError> {
    let header = &stored.header;
    if conversation_record::is_stub(stored) {
        let problem = "only the title of the conversation is known, from an index; import its export first";
        return Err(RecordingError::state(&header.id, problem));
    }
    if groups::grouped(header.provider.conversation_id.as_deref(), header.raw_metadata.as_ref()) {
        let problem = "the conversation was put together from single questions, and a later export may divide it otherwise; \
             record a new conversation";
        return Err(RecordingError::state(&header.id, problem));
    }
    Ok(())
}

fn parent_of(stored: &ConversationRecord, parent: &str) -> Result<Option<String>, RecordingError> {
    if parent.is_empty() {
        return Ok(conversation_record::leaf(stored).map(str::to_owned));
    }
    let known = stored.heads.iter().any(|head| head.id == parent);
    if known { Ok(Some(parent.to_owned())) } else { Err(RecordingError::NoMessage(parent.to_owned())) }
}

/// Adds the times and the leaf to a report. It is newer than everything that is known, so that its leaf is shown.
pub(super) fn completed(
    report: ConversationReport,
    chain: &Chain,
    now: i64,
    stored: Option<&ConversationRecord>,
) -> ConversationReport {
    let known = stored.map(|stored| &stored.header.temporal);
    let last = known.map(|known| known.updated_at.unwrap_or(known.created_at).micros().saturating_add(1));
    let times = || chain.new.iter().filter_map(|node| node.time);
    let recorded = stored.is_none_or(|stored| is_recorded(&stored.header));
    let first = times().min().unwrap_or(now);
    ConversationReport {
        created_at: recorded.then_some(first),
        updated_at: [Some(now), last, times().max()].into_iter().flatten().max(),
        current: chain.ids.last().cloned(),
        ..report
    }
}
