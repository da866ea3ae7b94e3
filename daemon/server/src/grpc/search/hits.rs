//! What a hit shows: the record as it is now, or at the revision that is searched, and the passage that matches.

use std::collections::HashMap;

use satchel_core::conversation_record::MessageTree;
use satchel_indexer::{memory_text, message_text};
use satchel_merge::body::Body;
use satchel_proto::v1;
use satchel_search::{
    index::{DocumentKind, Hit, snippet},
    query::Query,
};
use satchel_store::ConversationRecord;

use super::request::{ParsedSearch, position};
use crate::grpc::{
    call_state::CallState,
    status::CallError,
    wire::{
        conversation::role_to_wire,
        memory::{memory_type_to_wire, status_to_wire},
        scalar::{known_micros_to_wire, truncate},
    },
};

/// Longest title that is returned, in bytes.
const MAX_TITLE_BYTES: usize = 1_024;

/// A conversation that hits are in.
struct OpenConversation {
    record: ConversationRecord,
    tree: MessageTree,
    /// The index of each message.
    index: HashMap<String, usize>,
}

/// Reads the records of hits. A conversation with several hits is read once.
pub(super) struct HitReader<'a> {
    state: &'a CallState,
    parsed: &'a ParsedSearch,
    /// What the hit that is read matches.
    query: Query,
    conversations: HashMap<String, Option<OpenConversation>>,
}

impl<'a> HitReader<'a> {
    pub(super) fn new(state: &'a CallState, parsed: &'a ParsedSearch) -> Self {
        Self { state, parsed, query: Query::default(), conversations: HashMap::new() }
    }

    /// Returns a hit as the caller sees it; `None` if it does not see it any more.
    ///
    /// `query` is what it matches.
    pub(super) fn read(&mut self, hit: &Hit, query: &Query) -> Result<Option<v1::SearchHit>, CallError> {
        self.query = query.clone();
        match (hit.kind, &hit.conversation_id) {
            (DocumentKind::Memory, _) => self.memory(hit),
            (DocumentKind::Title, Some(conversation)) => self.title(hit, conversation),
            (DocumentKind::Message, Some(conversation)) => self.message(hit, conversation),
            (DocumentKind::Title | DocumentKind::Message, None) => Ok(None),
        }
    }

    fn memory(&self, hit: &Hit) -> Result<Option<v1::SearchHit>, CallError> {
        let record = self.state.store.memory(&hit.id, self.parsed.as_of)?.filter(|record| !record.withdrawn);
        let Some(record) = self.state.only_visible(record)? else { return Ok(None) };
        let (memory, now) = (&record.memory, self.state.clock.now_micros());
        let time = memory.temporal.updated_at.unwrap_or(memory.temporal.created_at);
        Ok(Some(v1::SearchHit {
            kind: v1::SearchHitKind::Memory.into(),
            platform: memory.provenance.platform.clone(),
            memory_type: memory_type_to_wire(memory.memory_type),
            memory_status: status_to_wire(memory.status),
            time: known_micros_to_wire(time.micros()),
            snippet: Some(self.snippet(&memory_text(memory))),
            expired: memory.temporal.valid_until.is_some_and(|until| until.micros() <= now),
            ..row(hit)
        }))
    }

    fn title(&mut self, hit: &Hit, id: &str) -> Result<Option<v1::SearchHit>, CallError> {
        let Some(OpenConversation { record, .. }) = self.conversation(id)? else { return Ok(None) };
        let temporal = &record.header.temporal;
        let time = temporal.updated_at.unwrap_or(temporal.created_at).micros();
        let (title, platform) = (title(record), record.header.provider.name.clone());
        Ok(Some(v1::SearchHit {
            kind: v1::SearchHitKind::Title.into(),
            conversation_id: id.to_owned(),
            snippet: Some(self.snippet(&title)),
            title,
            platform,
            time: known_micros_to_wire(time),
            on_active_branch: true,
            ..row(hit)
        }))
    }

    fn message(&mut self, hit: &Hit, id: &str) -> Result<Option<v1::SearchHit>, CallError> {
        let state = self.state;
        let Some(OpenConversation { record, tree, index }) = self.conversation(id)? else { return Ok(None) };
        let Some(at) = index.get(&hit.id).copied() else { return Ok(None) };
        let head = &record.heads[at];
        let Some(body) = state.store.bodies_at(record, &[at])?.pop() else { return Ok(None) };
        let body = Body::decode(&body).map_err(CallError::internal)?;
        let mut row = v1::SearchHit {
            kind: v1::SearchHitKind::Message.into(),
            conversation_id: id.to_owned(),
            title: title(record),
            platform: record.header.provider.name.clone(),
            role: role_to_wire(head.role),
            time: known_micros_to_wire(head.created_at_micros),
            hidden: head.hidden,
            is_thought: head.thought,
            on_active_branch: tree.is_active(at),
            model: body.model.clone().or_else(|| record.header.model.clone()).unwrap_or_default(),
            ..row(hit)
        };
        row.snippet = Some(self.snippet(&message_text(&body)));
        Ok(Some(row))
    }

    fn conversation(&mut self, id: &str) -> Result<Option<&OpenConversation>, CallError> {
        if !self.conversations.contains_key(id) {
            let opened = open(self.state, id)?;
            self.conversations.insert(id.to_owned(), opened);
        }
        Ok(self.conversations.get(id).and_then(Option::as_ref))
    }

    fn snippet(&self, text: &str) -> v1::SearchSnippet {
        if self.parsed.short_texts_whole && text.len() <= self.parsed.snippet_bytes {
            return v1::SearchSnippet { text: text.to_owned(), ..v1::SearchSnippet::default() };
        }
        let found = snippet(text, &self.query, self.parsed.snippet_bytes);
        let marks = found
            .marks
            .into_iter()
            .map(|mark| v1::SearchMark { start: position(mark.start), end: position(mark.end) });
        v1::SearchSnippet {
            marks: marks.collect(),
            text: found.text,
            cut_start: found.cut_start,
            cut_end: found.cut_end,
        }
    }
}

fn open(state: &CallState, id: &str) -> Result<Option<OpenConversation>, CallError> {
    let record = state.store.conversation(id, None)?.filter(|record| !record.withdrawn);
    let Some(record) = record else { return Ok(None) };
    if !state.sees_conversation_record(&record)? {
        return Ok(None);
    }
    let index = record.heads.iter().enumerate().map(|(at, head)| (head.id.clone(), at)).collect();
    Ok(Some(OpenConversation { tree: MessageTree::new(&record), record, index }))
}

fn title(record: &ConversationRecord) -> String {
    truncate(record.header.title.clone().unwrap_or_default(), MAX_TITLE_BYTES)
}

fn row(hit: &Hit) -> v1::SearchHit {
    v1::SearchHit { id: hit.id.clone(), score: hit.score, ..v1::SearchHit::default() }
}
