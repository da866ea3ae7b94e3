//! Memories that are near in meaning, and their fusion with what fits the words.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    mem,
};

use satchel_indexer::VectorQuery;
use satchel_proto::v1::{self, search_meaning::Source};
use satchel_search::{
    fusion::{RANK_CONSTANT, fuse},
    index::{Hit, Snapshot},
    vectors::VectorHit,
};

use super::request::{HitList, ParsedSearch};
use crate::grpc::{
    call_state::CallState,
    embedding::embed_query,
    request::check_length,
    status::{CallError, ResourceKind},
};

/// Hits of each list that are fused, at least.
const FUSED_HITS: usize = 200;

/// A memory that is near in meaning.
pub(super) struct NearMemory {
    /// From 1 for the nearest.
    rank: usize,
    cosine: f32,
    model: String,
    explain: bool,
}

impl NearMemory {
    /// Adds to a hit how near it is.
    pub(super) fn complete(&self, row: &mut v1::SearchHit) {
        row.cosine = Some(self.cosine);
        if self.explain {
            let by_words = mem::take(&mut row.explanation);
            let by_words = if row.relaxed { String::new() } else { format!("; by words {by_words}") };
            row.explanation = format!(
                "number {} in meaning, cosine {:.3} by {}{by_words}",
                self.rank, self.cosine, self.model
            );
        }
    }
}

/// What hits of different lists are told apart by.
type HitKey = (u8, Option<String>, String);

fn key(hit: &Hit) -> HitKey {
    (hit.kind as u8, hit.conversation_id.clone(), hit.id.clone())
}

impl ParsedSearch {
    /// Returns the best `rows` hits by words and by meaning.
    pub(super) fn hits_with_meaning(
        &self,
        state: &CallState,
        snapshot: &Snapshot,
        meaning: &v1::SearchMeaning,
        rows: usize,
    ) -> Result<HitList, CallError> {
        let depth = rows.max(FUSED_HITS);
        let near = self.near(state, snapshot, meaning, depth)?;
        let has_words = self.query.clauses.iter().any(|clause| !clause.excluded);
        let by_words = if has_words { self.search(snapshot, 0, depth)? } else { HitList::default() };
        let mut hits = fused(&by_words.hits, &near.hits);
        if self.grouped {
            let mut seen = HashSet::new();
            hits.retain(|(hit, _)| hit.conversation_id.as_ref().is_none_or(|id| seen.insert(id.clone())));
        }
        let total = hits.len();
        hits.truncate(rows);
        Ok(HitList { hits, more: false, total, near: near.details, ..by_words })
    }

    /// Returns the memories that are nearest to what the request compares with.
    fn near(
        &self,
        state: &CallState,
        snapshot: &Snapshot,
        meaning: &v1::SearchMeaning,
        limit: usize,
    ) -> Result<Near, CallError> {
        check_length("meaning.model", &meaning.model)?;
        let matching = snapshot.matching_memories(&self.query, &self.options)?;
        // Filters and access come before the cut; a memory that the index does not have yet is not found by meaning either.
        let failed = RefCell::new(None);
        let passes = |id: &str| match matching.hit(id, 0.0) {
            Ok(hit) => hit.is_some(),
            Err(error) => {
                failed.replace(Some(error));
                false
            }
        };
        let search = |model: &str, query| state.indexer.search_vectors(model, query, limit, &passes);
        let found = match meaning.source.as_ref() {
            None => {
                return Err(CallError::invalid_field("meaning", "must have a vector, memory_id or query"));
            }
            Some(Source::Vector(vector)) => search(&meaning.model, VectorQuery::Vector(&vector.values)),
            Some(Source::MemoryId(id)) => {
                check_length("meaning.memory_id", id)?;
                let record = state.store.memory(id, None)?.filter(|record| !record.withdrawn);
                if state.only_visible(record)?.is_none() {
                    return Err(CallError::not_found(ResourceKind::Memory, id));
                }
                search(&meaning.model, VectorQuery::Memory(id))
            }
            Some(Source::Query(_)) => {
                let (model, vector) = embed_query(state, &meaning.model, &self.words())?;
                search(&model, VectorQuery::Vector(&vector))
            }
        };
        if let Some(error) = failed.take() {
            return Err(error.into());
        }
        let (model, found) = match found {
            Ok(found) => found,
            // Whether vectors exist of what a device does not see is not for it to know.
            Err(_) if !state.sees_everything() => return Ok(Near::default()),
            Err(error) => return Err(error.into()),
        };
        let mut near = Near::default();
        for (VectorHit { id, cosine }, rank) in found.into_iter().zip(1..) {
            if let Some(hit) = matching.hit(&id, cosine)? {
                near.hits.push(hit);
                let (model, explain) = (model.clone(), self.explain);
                near.details.insert(id, NearMemory { rank, cosine, model, explain });
            }
        }
        Ok(near)
    }
}

impl ParsedSearch {
    /// Returns the words of the query as a text, without filters and what is excluded.
    fn words(&self) -> String {
        let clauses = self.query.clauses.iter().filter(|clause| !clause.excluded);
        let words: Vec<&str> =
            clauses.flat_map(|clause| &clause.any).map(|atom| atom.text.as_str()).collect();
        words.join(" ")
    }
}

/// The memories that are near.
#[derive(Default)]
struct Near {
    /// The nearest first.
    hits: Vec<Hit>,
    /// By id.
    details: HashMap<String, NearMemory>,
}

/// Returns the hits of both lists, each once, the best first, with whether it has all of the words. Hits that are near only have
/// none of them.
fn fused(by_words: &[(Hit, bool)], near: &[Hit]) -> Vec<(Hit, bool)> {
    let mut all: HashMap<HitKey, (Hit, bool)> = HashMap::new();
    for hit in near {
        all.insert(key(hit), (hit.clone(), false));
    }
    for (hit, strict) in by_words {
        all.insert(key(hit), (hit.clone(), *strict));
    }
    let words: Vec<HitKey> = by_words.iter().map(|(hit, _)| key(hit)).collect();
    let nearest: Vec<HitKey> = near.iter().map(key).collect();
    let order = if by_words.is_empty() {
        // The scores are cosines then.
        nearest.into_iter().map(|key| (key, None)).collect()
    } else {
        fuse(&[&words, &nearest], RANK_CONSTANT)
            .into_iter()
            .map(|(key, score)| (key, Some(score)))
            .collect::<Vec<_>>()
    };
    let scored = order.into_iter().filter_map(|(key, score)| {
        let (mut hit, strict) = all.remove(&key)?;
        if let Some(score) = score {
            #[expect(clippy::cast_possible_truncation, reason = "scores have a single precision")]
            let score = score as f32;
            hit.score = score;
        }
        Some((hit, strict))
    });
    scored.collect()
}
