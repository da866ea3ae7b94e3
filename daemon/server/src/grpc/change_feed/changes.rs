//! Which changes a caller is told of, and what it is told.
//!
//! A caller that is told of the changes of one span after the other has, after each of them, exactly the records that
//! it could see as of its end. A record that a device could see in the past, but neither at the start of the span nor at its
//! end, is left out completely, so that the id of a record that is hidden now is not revealed.

use prost::Message as _;
use satchel_proto::{
    integers::signed,
    v1::{self, change::Record},
};
use satchel_store::{
    ChangeKind, ChangeLogEntry, ChangePosition, ConversationQuery, ConversationRecord, MemoryQuery,
    MemoryRecord, Revision, erased, erased_conversation,
};

use crate::grpc::{
    call_state::CallState,
    request::PAGE_BYTES,
    status::CallError,
    wire::{
        conversation::{AttributionFilter, filter_from_wire as conversations_from_wire, summary_to_wire},
        memory::{View, filter_from_wire as memories_from_wire, view_from_wire},
        relation::relation_to_wire,
    },
};

/// Changes that are looked at for one message, so that one that finds nothing does not take long either.
const MAX_EXAMINED: usize = 2_000;
/// Changes of one message.
const MAX_CHANGES: usize = 1_000;

/// The revisions after `start`, up to `until`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: Revision,
    pub(super) until: Revision,
}

/// The changes of a part of a span.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) changes: Vec<v1::Change>,
    /// The last change that was looked at.
    pub(super) position: ChangePosition,
    /// The next change in the span; `None` at its end.
    pub(super) next: Option<ChangePosition>,
}

/// Which changes a caller wants, and how.
pub(super) struct ChangeQuery {
    /// `None` leaves out memories and relations.
    memories: Option<MemoryQuery>,
    /// `None` leaves out conversations.
    conversations: Option<(ConversationQuery, AttributionFilter)>,
    view: View,
}

/// Returns up to `limit` changes of a span after a position, and whether more follow.
pub(super) fn entries(
    state: &CallState,
    span: Span,
    after: ChangePosition,
    limit: usize,
) -> Result<(Vec<ChangeLogEntry>, bool), CallError> {
    let mut entries = state.store.changes_since(after, limit.saturating_add(1))?;
    entries.retain(|entry| entry.position.revision <= span.until);
    let more = entries.len() > limit;
    entries.truncate(limit);
    Ok((entries, more))
}

impl ChangeQuery {
    pub(super) fn from_wire(
        state: &CallState,
        filter: Option<v1::ChangeFilter>,
        view: i32,
    ) -> Result<Self, CallError> {
        let v1::ChangeFilter { memories, conversations, without_memories, without_conversations } =
            filter.unwrap_or_default();
        state.check_filter(memories.as_ref())?;
        let every_status = memories.as_ref().is_none_or(|filter| filter.statuses.is_empty());
        let mut memories = memories_from_wire(memories)?;
        if every_status {
            memories.statuses.clear();
        }
        let conversations = conversations_from_wire(conversations)?;
        let readable = state.may_read_conversations();
        Ok(Self {
            memories: (!without_memories).then_some(memories),
            conversations: (!without_conversations && readable).then_some(conversations),
            view: view_from_wire(view, View::Basic)?,
        })
    }

    /// Returns the changes of a span after a position, as many as one message holds.
    pub(super) fn batch(
        &self,
        state: &CallState,
        span: Span,
        after: ChangePosition,
    ) -> Result<Batch, CallError> {
        let (entries, more) = entries(state, span, after, MAX_EXAMINED)?;
        let (mut changes, mut bytes, mut position) = (Vec::new(), 0, after);
        let mut rest = entries.iter().peekable();
        while let Some(entry) = rest.peek() {
            if let Some(change) = self.change(state, span, entry)? {
                bytes += change.encoded_len();
                if !changes.is_empty() && (bytes > PAGE_BYTES || changes.len() == MAX_CHANGES) {
                    break;
                }
                changes.push(change);
            }
            position = entry.position;
            rest.next();
        }
        let next = match rest.peek() {
            Some(entry) => Some(entry.position),
            None if more => self::entries(state, span, position, 1)?.0.first().map(|entry| entry.position),
            None => None,
        };
        Ok(Batch { changes, position, next })
    }

    /// Returns what the caller is told of a change, if anything.
    pub(super) fn change(
        &self,
        state: &CallState,
        span: Span,
        entry: &ChangeLogEntry,
    ) -> Result<Option<v1::Change>, CallError> {
        let record = match entry.kind {
            ChangeKind::Memory => self.memory(state, span, entry)?,
            ChangeKind::Conversation => self.conversation(state, span, entry)?,
            ChangeKind::Relation => self.relation(state, entry)?,
            // Vectors are not served.
            _ => None,
        };
        Ok(record.map(|(kind, record)| v1::Change {
            revision: signed(entry.position.revision.get()),
            kind: kind.into(),
            record: Some(record),
        }))
    }

    fn memory(&self, state: &CallState, span: Span, entry: &ChangeLogEntry) -> Result<Told, CallError> {
        let Some(query) = &self.memories else { return Ok(None) };
        let at = |revision| state.store.memory(&entry.id, Some(revision));
        let allowed = |record: &MemoryRecord| !record.withdrawn && state.sees_memory_version(record);
        let is_erased = |record: &MemoryRecord| erased(&record.memory);
        let shown =
            |record: &MemoryRecord| allowed(record) && query.matches(&record.memory) && !is_erased(record);
        let lasting = || -> Result<bool, CallError> {
            Ok(state.sees_everything()
                || match at(span.until)? {
                    Some(record) => allowed(&record) && state.sees_memory(&record)?,
                    None => false,
                })
        };
        match at(entry.position.revision)? {
            Some(record) if shown(&record) => {
                let put = |memory| (v1::ChangeKind::Put, Record::Memory(memory));
                lasting()?.then(|| state.memory_row(record, self.view).map(put)).transpose()
            }
            _ if entry.previous == Revision::ZERO => Ok(None),
            _ => {
                let view = Former { shown, is_erased };
                let lost = view.lost(state, (span, entry), at, lasting)?;
                let memory = v1::Memory { id: entry.id.clone(), ..v1::Memory::default() };
                Ok(lost.then_some((v1::ChangeKind::OutOfView, Record::Memory(memory))))
            }
        }
    }

    fn conversation(&self, state: &CallState, span: Span, entry: &ChangeLogEntry) -> Result<Told, CallError> {
        let Some((query, attributed)) = &self.conversations else { return Ok(None) };
        let own = state.recorded_by_caller(&entry.id)?;
        let at = |revision| state.store.conversation(&entry.id, Some(revision));
        let allowed =
            |record: &ConversationRecord| !record.withdrawn && state.sees_conversation_version(record, own);
        let is_erased = |record: &ConversationRecord| erased_conversation(&record.header);
        let shown = |record: &ConversationRecord| {
            allowed(record)
                && query.matches(record)
                && attributed.matches(&record.header)
                && !is_erased(record)
        };
        let lasting = || -> Result<bool, CallError> {
            Ok(state.sees_everything()
                || match at(span.until)? {
                    Some(record) => allowed(&record) && state.sees_conversation_record(&record)?,
                    None => false,
                })
        };
        match at(entry.position.revision)? {
            Some(record) if shown(&record) => {
                let put = || (v1::ChangeKind::Put, Record::Conversation(summary_to_wire(record.summary())));
                Ok(lasting()?.then(put))
            }
            _ if entry.previous == Revision::ZERO => Ok(None),
            _ => {
                let view = Former { shown, is_erased };
                let lost = view.lost(state, (span, entry), at, lasting)?;
                let conversation = v1::Conversation { id: entry.id.clone(), ..v1::Conversation::default() };
                Ok(lost.then_some((v1::ChangeKind::OutOfView, Record::Conversation(conversation))))
            }
        }
    }

    /// Relations have no access of their own: today's access to both memories decides.
    fn relation(&self, state: &CallState, entry: &ChangeLogEntry) -> Result<Told, CallError> {
        let record = state.store.relation(&entry.id, Some(entry.position.revision))?;
        let Some(record) = record.filter(|_| self.memories.is_some()) else { return Ok(None) };
        if !state.sees_relation(&record)? {
            return Ok(None);
        }
        if !record.withdrawn {
            return Ok(Some((v1::ChangeKind::Put, Record::Relation(relation_to_wire(record)))));
        }
        let relation = v1::Relation { id: entry.id.clone(), ..v1::Relation::default() };
        let told = (v1::ChangeKind::OutOfView, Record::Relation(relation));
        Ok((entry.previous != Revision::ZERO).then_some(told))
    }
}

/// What a caller is told of a change.
type Told = Option<(v1::ChangeKind, Record)>;

/// Judges earlier versions of a record that is not shown any more.
struct Former<S, E> {
    /// Whether a version, judged by itself, was shown.
    shown: S,
    /// Whether the content of a version was erased, so that nothing can be said about it.
    is_erased: E,
}

impl<S, E> Former<S, E> {
    /// Returns whether a change took a record out of the caller's view.
    fn lost<R>(
        &self,
        state: &CallState,
        (span, entry): (Span, &ChangeLogEntry),
        at: impl Fn(Revision) -> Result<Option<R>, satchel_store::StoreError>,
        lasting: impl Fn() -> Result<bool, CallError>,
    ) -> Result<bool, CallError>
    where
        S: Fn(&R) -> bool,
        E: Fn(&R) -> bool,
    {
        let Some(previous) = at(entry.previous)? else { return Ok(false) };
        if state.sees_everything() {
            // What was erased may have matched the filter. Telling of one record too many does no harm.
            let erased = entry.previous <= span.start && (self.is_erased)(&previous);
            return Ok(erased || (self.shown)(&previous));
        }
        let first = at(span.start)?;
        if first.as_ref().is_some_and(&self.is_erased) {
            return Err(CallError::RevisionCompacted { oldest: entry.position.revision.get() });
        }
        Ok((self.shown)(&previous) && (first.is_some_and(|first| (self.shown)(&first)) || lasting()?))
    }
}
