//! What a request asks of the index.

use std::collections::{HashMap, HashSet};

use satchel_devices::{Policy, Role, Scope};
use satchel_proto::{
    integers::{signed, unsigned},
    v1,
};
use satchel_search::{
    index::{
        DocumentKind, FacetField, Hit, PUBLIC_READER, RelaxedPage, Restriction, SearchOptions, Snapshot,
        shared_reader,
    },
    query::{Calendar, Filter, FilterField, Query},
};
use satchel_store::Revision;

use super::{HITS_PER_GROUP, MAX_HITS, meaning::NearMemory};
use crate::grpc::{call_state::CallState, request::check_length, status::CallError};

/// Bytes of a snippet if the client does not say.
const DEFAULT_SNIPPET_BYTES: usize = 240;
const MAX_SNIPPET_BYTES: usize = 4_096;

/// A request that was understood.
#[derive(Clone)]
pub(super) struct ParsedSearch {
    pub(super) query: Query,
    pub(super) options: SearchOptions,
    facets: Vec<(v1::SearchFacetField, FacetField)>,
    pub(super) snippet_bytes: usize,
    /// Whether a text that is no longer than a snippet is returned whole.
    pub(super) short_texts_whole: bool,
    pub(super) grouped: bool,
    pub(super) explain: bool,
    /// The earlier revision whose memories are shown.
    pub(super) as_of: Option<Revision>,
}

/// The hits of a page.
#[derive(Default)]
pub(super) struct HitList {
    /// Each with whether it has all of the words.
    pub(super) hits: Vec<(Hit, bool)>,
    /// Whether there are more after them.
    pub(super) more: bool,
    /// How many there are in all.
    pub(super) total: usize,
    /// How many of these have all of the words.
    pub(super) strict_total: usize,
    /// What hits match that have not all of the words.
    pub(super) relaxed: Option<Query>,
    /// The memories that are near in meaning, by id.
    pub(super) near: HashMap<String, NearMemory>,
}

impl ParsedSearch {
    /// Reads a request that is made at `now`, in microseconds since the Unix epoch.
    ///
    /// # Errors
    /// `QUERY_INVALID`, `FIELD_INVALID`.
    pub(super) fn from_wire(
        state: &CallState,
        request: &v1::SearchRequest,
        now: i64,
    ) -> Result<Self, CallError> {
        let calendar = calendar(&request.time_zone, now)?;
        let mut query = Query::parse(&request.query, &calendar)?;
        if query.is_empty() && request.meaning.is_none() {
            return Err(CallError::invalid_field("query", "must have a word or a filter"));
        }
        let kinds: Vec<String> =
            request.kinds.iter().map(|kind| kind_word(*kind)).collect::<Result<_, _>>()?;
        if !kinds.is_empty() {
            query.filters.push(Filter { excluded: false, field: FilterField::In, values: kinds });
        }
        let facets = request.facets.iter().map(|field| facet_from_wire(*field)).collect::<Result<_, _>>()?;
        let options = SearchOptions {
            now,
            hidden: request.include_hidden,
            restriction: state.device().and_then(|device| restriction(&device.policy)),
            ..SearchOptions::default()
        };
        Ok(Self {
            query,
            options,
            facets,
            snippet_bytes: snippet_bytes(request.snippet_bytes)?,
            short_texts_whole: false,
            grouped: request.group_by_conversation,
            // An explanation shows words that are similar, of all texts.
            explain: request.explain && state.sees_everything(),
            as_of: request.as_of_revision.map(unsigned).map(Revision::new),
        })
    }

    /// Returns `rows` hits from the one with the number `first` on; of each conversation only the best if they are grouped.
    pub(super) fn hits(&self, snapshot: &Snapshot, first: usize, rows: usize) -> Result<HitList, CallError> {
        let end = first.saturating_add(rows).min(MAX_HITS);
        if self.grouped {
            return self.groups(snapshot, first, end);
        }
        let (offset, limit) = (first, end.saturating_sub(first));
        let found = self.search(snapshot, offset, limit)?;
        Ok(HitList { more: end < found.total.min(MAX_HITS), ..found })
    }

    fn groups(&self, snapshot: &Snapshot, first: usize, end: usize) -> Result<HitList, CallError> {
        let mut limit = end.saturating_add(1).saturating_mul(HITS_PER_GROUP).min(MAX_HITS);
        loop {
            let mut found = self.search(snapshot, 0, limit)?;
            let all = found.hits.len() == found.total;
            let mut seen = HashSet::new();
            let mut is_first =
                |hit: &Hit| hit.conversation_id.as_ref().is_none_or(|id| seen.insert(id.clone()));
            found.hits.retain(|(hit, _)| is_first(hit));
            if found.hits.len() > end || all || limit == MAX_HITS {
                found.more = found.hits.len() > end;
                found.hits = found.hits.into_iter().take(end).skip(first).collect();
                return Ok(found);
            }
            limit = limit.saturating_mul(HITS_PER_GROUP).min(MAX_HITS);
        }
    }

    pub(super) fn search(
        &self,
        snapshot: &Snapshot,
        offset: usize,
        limit: usize,
    ) -> Result<HitList, CallError> {
        let options = SearchOptions { offset, limit, ..self.options.clone() };
        let RelaxedPage { page, strict_total, relaxed } = snapshot.search_relaxed(&self.query, &options)?;
        let numbered = page.hits.into_iter().zip(offset..);
        let hits = numbered.map(|(hit, number)| (hit, number < strict_total)).collect();
        Ok(HitList { hits, more: false, total: page.total, strict_total, relaxed, near: HashMap::new() })
    }

    /// Returns the best `limit` hits, each with the query that it matches.
    pub(super) fn best(&self, snapshot: &Snapshot, limit: usize) -> Result<Vec<(Hit, Query)>, CallError> {
        Ok(self.with_queries(self.search(snapshot, 0, limit)?))
    }

    /// As [`ParsedSearch::best`], by words and by meaning.
    pub(super) fn best_with_meaning(
        &self,
        state: &CallState,
        snapshot: &Snapshot,
        meaning: &v1::SearchMeaning,
        limit: usize,
    ) -> Result<Vec<(Hit, Query)>, CallError> {
        Ok(self.with_queries(self.hits_with_meaning(state, snapshot, meaning, limit)?))
    }

    fn with_queries(&self, found: HitList) -> Vec<(Hit, Query)> {
        let relaxed = found.relaxed.unwrap_or_else(|| self.query.clone());
        let query = |strict| if strict { self.query.clone() } else { relaxed.clone() };
        found.hits.into_iter().map(|(hit, strict)| (hit, query(strict))).collect()
    }

    /// Adds what the index knows about a hit.
    pub(super) fn complete(
        &self,
        snapshot: &Snapshot,
        hit: &Hit,
        query: &Query,
        row: &mut v1::SearchHit,
    ) -> Result<(), CallError> {
        if self.explain {
            row.explanation = snapshot.explain(query, &self.options, hit)?;
        }
        let Some(conversation) = hit.conversation_id.as_ref().filter(|_| self.grouped) else { return Ok(()) };
        let mut query = self.query.clone();
        let values = vec![conversation.clone()];
        query.filters.push(Filter { excluded: false, field: FilterField::Conversation, values });
        let all = snapshot.search(&query, &SearchOptions { limit: 0, ..self.options.clone() })?.total;
        row.more_in_conversation = signed(all.saturating_sub(usize::from(!row.relaxed)) as u64);
        Ok(())
    }

    pub(super) fn facets(&self, snapshot: &Snapshot) -> Result<Vec<v1::SearchFacet>, CallError> {
        if self.facets.is_empty() {
            return Ok(Vec::new());
        }
        let fields: Vec<FacetField> = self.facets.iter().map(|(_, field)| *field).collect();
        let counted = snapshot.facets(&self.query, &self.options, &fields)?;
        let facets = self.facets.iter().zip(counted).map(|((field, _), counts)| v1::SearchFacet {
            field: (*field).into(),
            counts: counts
                .into_iter()
                .map(|(value, count)| v1::SearchFacetCount { value, count: signed(count) })
                .collect(),
        });
        Ok(facets.collect())
    }

    pub(super) fn suggestions(&self, snapshot: &Snapshot) -> Result<Vec<v1::SearchSuggestion>, CallError> {
        let suggestions = snapshot.suggest(&self.query, &self.options)?;
        let suggestions = suggestions.into_iter().map(|suggestion| v1::SearchSuggestion {
            start: position(suggestion.at.start),
            end: position(suggestion.at.end),
            word: suggestion.word,
        });
        Ok(suggestions.collect())
    }
}

/// Converts a position in a text; queries and snippets are short.
pub(super) fn position(at: usize) -> i32 {
    i32::try_from(at).unwrap_or(i32::MAX)
}

fn calendar(zone: &str, now: i64) -> Result<Calendar, CallError> {
    check_length("time_zone", zone)?;
    let zone = match zone {
        "" => jiff::tz::TimeZone::UTC,
        name => jiff::tz::TimeZone::get(name).map_err(|_| {
            CallError::invalid_field("time_zone", "is not known here; use a name such as \"Europe/Lisbon\"")
        })?,
    };
    let now = jiff::Timestamp::from_microsecond(now).map_err(CallError::internal)?;
    Ok(Calendar { now, zone })
}

fn snippet_bytes(wire: i32) -> Result<usize, CallError> {
    match usize::try_from(wire) {
        Err(_) => Err(CallError::invalid_field("snippet_bytes", "must not be negative")),
        Ok(0) => Ok(DEFAULT_SNIPPET_BYTES),
        Ok(bytes) => Ok(bytes.min(MAX_SNIPPET_BYTES)),
    }
}

fn kind_word(wire: i32) -> Result<String, CallError> {
    let kind = match v1::SearchHitKind::try_from(wire) {
        Ok(v1::SearchHitKind::Memory) => DocumentKind::Memory,
        Ok(v1::SearchHitKind::Message) => DocumentKind::Message,
        Ok(v1::SearchHitKind::Title) => DocumentKind::Title,
        Ok(v1::SearchHitKind::Unspecified) | Err(_) => {
            return Err(CallError::invalid_field(
                "kinds",
                format!("holds {wire}, which is not a known value"),
            ));
        }
    };
    Ok(kind.word().to_owned())
}

fn facet_from_wire(wire: i32) -> Result<(v1::SearchFacetField, FacetField), CallError> {
    use v1::SearchFacetField as Wire;
    let unknown = || CallError::invalid_field("facets", format!("holds {wire}, which is not a known value"));
    let field = Wire::try_from(wire).map_err(|_| unknown())?;
    let ours = match field {
        Wire::Unspecified => return Err(unknown()),
        Wire::Platform => FacetField::Platform,
        Wire::Type => FacetField::Type,
        Wire::Status => FacetField::Status,
        Wire::Month => FacetField::Month,
        Wire::Model => FacetField::Model,
        Wire::Role => FacetField::Role,
        Wire::Kind => FacetField::Kind,
    };
    Ok((field, ours))
}

/// Returns what a device may find; `None`: everything. It is never more than the rules of `access` show, which are applied to
/// each hit again, as the index may be behind.
fn restriction(policy: &Policy) -> Option<Restriction> {
    if policy.unrestricted() {
        return None;
    }
    let mut kinds = Vec::new();
    if policy.may(Scope::MemoriesRead) {
        kinds.push(DocumentKind::Memory);
    }
    if policy.may(Scope::ConversationsRead) {
        kinds.extend([DocumentKind::Message, DocumentKind::Title]);
    }
    let list = |set: &std::collections::BTreeSet<String>| set.iter().cloned().collect();
    let selection = &policy.selection;
    let readers =
        (policy.role == Role::Agent).then(|| vec![PUBLIC_READER.to_owned(), shared_reader(&policy.entity)]);
    Some(Restriction {
        kinds,
        platforms: list(&selection.platforms),
        tags: list(&selection.tags),
        deny_tags: list(&selection.denied_tags),
        types: list(&selection.types),
        readers,
    })
}
