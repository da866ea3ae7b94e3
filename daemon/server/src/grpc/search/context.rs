//! `BuildContext`: what the archive knows about a query, quoted for the prompt of a model.

use std::collections::HashSet;

use satchel_devices::Role;
use satchel_pam::{
    lifecycle,
    memory::{Memory, MemoryType, Status},
    time::Timestamp,
};
use satchel_proto::{integers::signed, v1};
use satchel_search::{
    context::{self, Passage, PassageOrigin, Quotation},
    index::{DocumentKind, Hit, Snapshot},
    query::{Filter, FilterField, Query},
};
use satchel_store::{MemoryRecord, Revision};

use super::{
    hits::HitReader,
    latest,
    request::{ParsedSearch, position},
};
use crate::grpc::{
    call_state::CallState,
    status::CallError,
    wire::{
        conversation::role_from_wire,
        memory::{memory_type_to_wire, status_to_wire},
        scalar::{known_micros_to_wire, optional_time_from_wire},
    },
};

/// Tokens of a context if the client does not say.
const DEFAULT_TOKENS: usize = 1_000;
/// Most tokens of a context; its response is far below what clients accept.
const MAX_TOKENS: usize = 100_000;
/// Matches that are considered. The documentation of the service names this number and the next.
const MAX_CANDIDATES: usize = 300;
/// Instructions that are considered, and as many that fit the words of the query.
const MAX_INSTRUCTIONS: usize = 100;
/// Longest passage of a memory, in bytes.
const MEMORY_BYTES: usize = 4_096;
/// Longest passage of a message, in bytes.
const MESSAGE_BYTES: i32 = 1_024;

/// What may be quoted, and how a response shows it.
struct Candidate {
    passage: Passage,
    item: v1::ContextItem,
}

/// Reads candidates from the store.
struct CandidateReader<'a> {
    state: &'a CallState,
    /// When memories have to be valid.
    valid_at: Timestamp,
    /// Memories that were read.
    seen: HashSet<String>,
}

/// Quotes what fits a query.
///
/// # Errors
/// `QUERY_INVALID`, `FIELD_INVALID`, `INDEX_BEHIND`, `INDEX_UNUSABLE`, or an error of the store.
pub(super) fn build(
    state: &CallState,
    request: v1::BuildContextRequest,
) -> Result<v1::BuildContextResponse, CallError> {
    let budget = budget_from_wire(request.token_budget)?;
    let valid_at = optional_time_from_wire("valid_at", request.valid_at)?;
    let pinned = latest(state, (request.min_revision, request.wait_until_current))?;
    let snapshot = &pinned.snapshot;
    let parsed = parsed_search(state, &request, pinned.now)?;
    let mut reader = CandidateReader {
        state,
        valid_at: Timestamp::saturating(valid_at.unwrap_or(pinned.now)),
        seen: HashSet::new(),
    };
    let instructions =
        if request.include_instructions { reader.instructions(&parsed, snapshot)? } else { Vec::new() };
    let found = match &request.meaning {
        Some(meaning) => parsed.best_with_meaning(state, snapshot, meaning, MAX_CANDIDATES)?,
        None => parsed.best(snapshot, MAX_CANDIDATES)?,
    };
    let passages = reader.passages(&parsed, found)?;
    let context = context::pack(&passages_of(&instructions), &passages_of(&passages), budget);
    Ok(v1::BuildContextResponse {
        instructions: items(&instructions, context.instructions),
        items: items(&passages, context.passages),
        text: context.text,
        tokens_used: position(context.tokens),
        header: Some(state.header_at(Revision::new(snapshot.revision()))),
        omitted: signed(context.omitted as u64),
    })
}

fn budget_from_wire(wire: i32) -> Result<usize, CallError> {
    match usize::try_from(wire) {
        Err(_) => Err(CallError::invalid_field("token_budget", "must not be negative")),
        Ok(0) => Ok(DEFAULT_TOKENS),
        Ok(tokens) => Ok(tokens.min(MAX_TOKENS)),
    }
}

/// Reads the query, restricted to what may be quoted.
fn parsed_search(
    state: &CallState,
    request: &v1::BuildContextRequest,
    now: i64,
) -> Result<ParsedSearch, CallError> {
    let messages = request.include_messages.then_some(v1::SearchHitKind::Message);
    let kinds = [v1::SearchHitKind::Memory].into_iter().chain(messages).map(Into::into).collect();
    let search = v1::SearchRequest {
        query: request.query.clone(),
        kinds,
        time_zone: request.time_zone.clone(),
        snippet_bytes: MESSAGE_BYTES,
        ..v1::SearchRequest::default()
    };
    let mut parsed = ParsedSearch::from_wire(state, &search, now)?;
    parsed.short_texts_whole = true;
    // Memories that are not active would only take the places of others. Messages have no status.
    let inactive = Status::ALL.iter().filter(|status| **status != Status::Active);
    let values = inactive.map(|status| status.as_str().to_owned()).collect();
    parsed.query.filters.push(Filter { excluded: true, field: FilterField::Status, values });
    Ok(parsed)
}

/// Returns the search for instructions: those that have the words of the query, or all.
fn instruction_search(parsed: &ParsedSearch, all: bool) -> ParsedSearch {
    let mut search = parsed.clone();
    let mut only = |field, value: &str| {
        search.query.filters.push(Filter { excluded: false, field, values: vec![value.to_owned()] });
    };
    only(FilterField::Type, MemoryType::Instruction.as_str());
    only(FilterField::In, DocumentKind::Memory.word());
    if all {
        search.query.clauses.retain(|clause| clause.excluded);
    }
    search
}

impl CandidateReader<'_> {
    /// Returns the user's instructions: first those that have the words of the query.
    fn instructions(
        &mut self,
        parsed: &ParsedSearch,
        snapshot: &Snapshot,
    ) -> Result<Vec<Candidate>, CallError> {
        let mut found = instruction_search(parsed, false).best(snapshot, MAX_INSTRUCTIONS)?;
        found.extend(instruction_search(parsed, true).best(snapshot, MAX_INSTRUCTIONS)?);
        let mut instructions = Vec::new();
        let mut read = HashSet::new();
        for (hit, query) in found {
            if instructions.len() == MAX_INSTRUCTIONS || !read.insert(hit.id.clone()) {
                continue;
            }
            let Some(record) = self.memory(&hit.id)? else { continue };
            if self.is_instruction(&record.memory)? {
                self.seen.insert(hit.id);
                instructions.push(self.memory_candidate(record, &query, usize::MAX)?);
            }
        }
        Ok(instructions)
    }

    fn is_instruction(&self, memory: &Memory) -> Result<bool, CallError> {
        let owner_device = |name: &str| {
            let mut devices = self.state.devices.registry().list(true);
            devices.retain(|device| device.name == name);
            !devices.is_empty() && devices.iter().all(|device| device.policy.role == Role::Owner)
        };
        let edits = self.state.imports.edits();
        Ok(memory.memory_type == MemoryType::Instruction
            && edits.stated_by_user(&memory.id, &owner_device)?)
    }

    /// Reads the memories and messages that were found, without those that were read before.
    fn passages(
        &mut self,
        parsed: &ParsedSearch,
        found: Vec<(Hit, Query)>,
    ) -> Result<Vec<Candidate>, CallError> {
        let mut messages = HitReader::new(self.state, parsed);
        let mut passages = Vec::new();
        for (hit, query) in found {
            let passage = match hit.kind {
                DocumentKind::Memory if !self.seen.insert(hit.id.clone()) => None,
                DocumentKind::Memory => match self.memory(&hit.id)? {
                    Some(record) => Some(self.memory_candidate(record, &query, MEMORY_BYTES)?),
                    None => None,
                },
                DocumentKind::Message => messages.read(&hit, &query)?.and_then(message_candidate),
                DocumentKind::Title => None,
            };
            passages.extend(passage);
        }
        Ok(passages)
    }

    /// Returns a memory as it is now, if it is active and valid and the caller sees it.
    fn memory(&self, id: &str) -> Result<Option<MemoryRecord>, CallError> {
        let record = self.state.store.memory(id, None)?;
        let current =
            |record: &MemoryRecord| !record.withdrawn && lifecycle::current_at(&record.memory, self.valid_at);
        self.state.only_visible(record.filter(current))
    }

    fn memory_candidate(
        &self,
        mut record: MemoryRecord,
        query: &Query,
        max_bytes: usize,
    ) -> Result<Candidate, CallError> {
        self.state.redact(&mut record)?;
        let memory = record.memory;
        let now = Timestamp::saturating(self.state.clock.now_micros());
        let half_lives = self.state.confidence_decay.half_lives(memory.memory_type);
        let confidence = lifecycle::decayed(&memory, now, &half_lives);
        let time = memory.temporal.updated_at.unwrap_or(memory.temporal.created_at);
        let item = v1::ContextItem {
            kind: v1::SearchHitKind::Memory.into(),
            id: memory.id.clone(),
            conversation_id: memory.provenance.conversation_ref.unwrap_or_default(),
            platform: memory.provenance.platform.clone(),
            memory_type: memory_type_to_wire(memory.memory_type),
            memory_status: status_to_wire(memory.status),
            time: known_micros_to_wire(time.micros()),
            confidence,
            ..v1::ContextItem::default()
        };
        let (text, part) = passage(memory.content, query, max_bytes);
        let origin =
            PassageOrigin::Memory { memory_type: memory.memory_type.as_str().to_owned(), confidence };
        let (id, platform) = (memory.id, memory.provenance.platform);
        Ok(Candidate { passage: Passage { origin, id, platform, day: day(item.time), text, part }, item })
    }
}

/// Returns the text, or the part of it that fits a query best if it is too long.
fn passage(text: String, query: &Query, max_bytes: usize) -> (String, bool) {
    if text.len() <= max_bytes {
        return (text, false);
    }
    let found = satchel_search::index::snippet(&text, query, max_bytes);
    (found.text, true)
}

fn message_candidate(hit: v1::SearchHit) -> Option<Candidate> {
    let role = role_from_wire("role", hit.role).ok()?.as_str().to_owned();
    let snippet = hit.snippet.filter(|snippet| !snippet.text.trim().is_empty())?;
    let origin = PassageOrigin::Message {
        role,
        conversation_id: hit.conversation_id.clone(),
        title: hit.title.clone(),
    };
    let passage = Passage {
        origin,
        id: hit.id.clone(),
        platform: hit.platform.clone(),
        day: day(hit.time),
        text: snippet.text,
        part: snippet.cut_start || snippet.cut_end,
    };
    let item = v1::ContextItem {
        kind: v1::SearchHitKind::Message.into(),
        id: hit.id,
        conversation_id: hit.conversation_id,
        title: hit.title,
        platform: hit.platform,
        role: hit.role,
        time: hit.time,
        ..v1::ContextItem::default()
    };
    Some(Candidate { passage, item })
}

/// Returns the day of a time, in UTC.
fn day(time: Option<prost_types::Timestamp>) -> Option<String> {
    let time = jiff::Timestamp::from_second(time?.seconds).ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).date().to_string())
}

fn passages_of(candidates: &[Candidate]) -> Vec<Passage> {
    candidates.iter().map(|candidate| candidate.passage.clone()).collect()
}

fn items(candidates: &[Candidate], quotations: Vec<Quotation>) -> Vec<v1::ContextItem> {
    let item = |Quotation { index, text, cut, tokens }| {
        let item = candidates.get(index)?.item.clone();
        Some(v1::ContextItem { text, cut, tokens: position(tokens), ..item })
    };
    quotations.into_iter().filter_map(item).collect()
}
