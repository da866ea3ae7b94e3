//! Searches in one state of the index.

use std::collections::{HashMap, HashSet};

use tantivy::{
    DocAddress, DocId, Score, Searcher, SegmentReader, TantivyDocument, Term,
    aggregation::{
        AggContextParams, AggregationCollector,
        agg_req::Aggregations,
        agg_result::{AggregationResult, BucketResult},
    },
    collector::{Count, DocSetCollector, TopDocs},
    columnar::Column,
    index::SegmentId,
    query::{EnableScoring, Query as IndexQuery, TermQuery},
    schema::{Field, IndexRecordOption, Value as _},
};

use super::{
    IndexError,
    compile::{alternatives, compile},
    document::{DocumentKind, OwnerId},
    schema::Fields,
};
use crate::query::{Filter, FilterField, Query};

/// By how much the newest documents count more than the oldest: a quarter.
const RECENCY: f64 = 0.25;
/// After so long half of it is left: half a year, in microseconds.
const RECENCY_HALF_LIFE: f64 = 182.5 * 86_400.0 * 1e6;
/// Values of a facet that are counted.
const MAX_FACET_VALUES: usize = 100;

/// A state of the index, which does not change.
#[derive(Clone)]
pub struct Snapshot {
    pub(super) searcher: Searcher,
    pub(super) fields: Fields,
    revision: u64,
}

/// How to search.
#[derive(Clone, Debug, Default)]
pub struct SearchOptions {
    /// Hits to leave out before the first one.
    pub offset: usize,
    /// Hits to return.
    pub limit: usize,
    /// The present, in microseconds since the Unix epoch.
    pub now: i64,
    /// Whether to find what the platform hides, and thoughts.
    pub hidden: bool,
    /// What the caller may see; `None`: everything.
    pub restriction: Option<Restriction>,
}

/// What a caller may see. An empty list restricts nothing, unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restriction {
    /// Kinds of documents. Empty: none.
    pub kinds: Vec<DocumentKind>,
    pub platforms: Vec<String>,
    /// At least one of these tags.
    pub tags: Vec<String>,
    /// None of these.
    pub deny_tags: Vec<String>,
    /// Types of memories.
    pub types: Vec<String>,
    /// Values of [`super::Document::readers`], of which a memory has at least one; `None`: any memory.
    pub readers: Option<Vec<String>>,
}

/// A document that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub kind: DocumentKind,
    /// The id of the memory, message or conversation.
    pub id: String,
    /// The id of the conversation; `None` for a memory.
    pub conversation_id: Option<String>,
    /// How well it fits; comparable within one query.
    pub score: f32,
    address: DocAddress,
}

/// A page of hits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub hits: Vec<Hit>,
    /// How many there are in all.
    pub total: usize,
}

/// A field whose values are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FacetField {
    Kind,
    Platform,
    Role,
    Type,
    Status,
    Model,
    /// As `2025-06`, in UTC.
    Month,
}

/// When the documents of a segment were written, and how much they count; `None` if that is known of none of them.
type Columns = (Option<Column<i64>>, Option<Column<f64>>);

/// How many hits have a value: the most frequent values, or the latest months, in order.
pub type Facet = Vec<(String, u64)>;

impl Snapshot {
    pub(super) fn new(searcher: Searcher, fields: Fields, revision: u64) -> Self {
        Self { searcher, fields, revision }
    }

    /// Returns the revision of the store up to which everything can be found.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns how many documents there are.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// Returns the keys of all documents of an owner.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn keys_of(&self, owner: &OwnerId<'_>) -> Result<HashSet<u64>, IndexError> {
        let owner = Term::from_field_text(self.fields.owner, &owner.to_string());
        let query = TermQuery::new(owner, IndexRecordOption::Basic);
        let found = self.searcher.search(&query, &DocSetCollector)?;
        let mut keys = HashSet::with_capacity(found.len());
        for address in found {
            let segment = self.searcher.segment_reader(address.segment_ord);
            keys.extend(segment.fast_fields().u64("key")?.first(address.doc_id));
        }
        Ok(keys)
    }

    /// Returns the documents that match, the best first. Equally good ones are in a stable order.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn search(&self, query: &Query, options: &SearchOptions) -> Result<Page, IndexError> {
        let compiled = compile(&self.fields, query, options);
        self.best(&compiled, options.offset, options.limit, options.now)
    }

    /// Returns the best documents that match.
    pub(super) fn best(
        &self,
        query: &dyn tantivy::query::Query,
        offset: usize,
        limit: usize,
        now: i64,
    ) -> Result<Page, IndexError> {
        if limit == 0 {
            return Ok(Page { hits: Vec::new(), total: self.searcher.search(query, &Count)? });
        }
        let columns = self.columns()?;
        let top = TopDocs::with_limit(limit).and_offset(offset);
        let top = top.tweak_score(move |segment: &SegmentReader| {
            let (times, weights) = columns.get(&segment.segment_id()).cloned().unwrap_or_default();
            move |document: DocId, score: Score| {
                let time = times.as_ref().and_then(|times| times.first(document));
                let weight = weights.as_ref().and_then(|weights| weights.first(document)).unwrap_or(1.0);
                #[expect(clippy::cast_possible_truncation, reason = "scores have a single precision")]
                let boosted = (f64::from(score) * weight * recency(time, now)) as Score;
                boosted
            }
        });
        let (top, total) = self.searcher.search(query, &(top, Count))?;
        let hits =
            top.into_iter().map(|(score, address)| self.hit(score, address)).collect::<Result<_, _>>()?;
        Ok(Page { hits, total })
    }

    /// Returns the times and the weights of the documents of each segment. A segment whose columns cannot be read is an error, as
    /// the order of the hits would be another one without them.
    fn columns(&self) -> Result<HashMap<SegmentId, Columns>, IndexError> {
        let columns = self.searcher.segment_readers().iter().map(|segment| {
            let fast = segment.fast_fields();
            Ok((segment.segment_id(), (fast.column_opt("time")?, fast.column_opt("weight")?)))
        });
        columns.collect()
    }

    /// Counts the values that the hits have in each of these fields, in the order of the fields.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn facets(
        &self,
        query: &Query,
        options: &SearchOptions,
        fields: &[FacetField],
    ) -> Result<Vec<Facet>, IndexError> {
        let requests: serde_json::Map<String, serde_json::Value> = fields
            .iter()
            .enumerate()
            .map(|(number, field)| {
                let name = self.searcher.schema().get_field_name(self.fields.of_facet(*field));
                let mut terms = serde_json::json!({"field": name, "size": MAX_FACET_VALUES});
                if *field == FacetField::Month {
                    terms["order"] = serde_json::json!({"_key": "desc"});
                }
                (number.to_string(), serde_json::json!({ "terms": terms }))
            })
            .collect();
        let requests: Aggregations =
            serde_json::from_value(requests.into()).map_err(tantivy::TantivyError::from)?;
        let collector = AggregationCollector::from_aggs(requests, AggContextParams::default());
        let mut counted = self.searcher.search(&compile(&self.fields, query, options), &collector)?.0;
        let facets = fields.iter().enumerate().map(|(number, field)| {
            let mut facet = counted.remove(&number.to_string()).map(buckets).unwrap_or_default();
            if *field == FacetField::Month {
                facet.reverse();
            }
            facet
        });
        Ok(facets.collect())
    }

    /// Returns which memories match the filters of a query and have none of its excluded words; other words do not count.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn matching_memories(
        &self,
        query: &Query,
        options: &SearchOptions,
    ) -> Result<MatchingMemories, IndexError> {
        let mut query = query.clone();
        query.clauses.retain(|clause| clause.excluded);
        let values = vec![DocumentKind::Memory.word().to_owned()];
        query.filters.push(Filter { excluded: false, field: FilterField::In, values });
        let documents = self.searcher.search(&compile(&self.fields, &query, options), &DocSetCollector)?;
        Ok(MatchingMemories { snapshot: self.clone(), documents })
    }

    /// Says how the score of a hit of this snapshot came about: what each part of the query contributes, and the weights.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn explain(&self, query: &Query, options: &SearchOptions, hit: &Hit) -> Result<String, IndexError> {
        let segment = self.searcher.segment_reader(hit.address.segment_ord);
        let time = segment.fast_fields().i64("time")?.first(hit.address.doc_id);
        let weight = segment.fast_fields().f64("weight")?.first(hit.address.doc_id).unwrap_or(1.0);
        let mut parts = Vec::new();
        for clause in query.clauses.iter().filter(|clause| !clause.excluded) {
            let compiled = alternatives(&self.fields, clause);
            let score = self.score(&*compiled, hit.address)?;
            let words: Vec<&str> = clause.any.iter().map(|atom| atom.text.as_str()).collect();
            parts.push(format!("{} {score:.2}", words.join(" OR ")));
        }
        let words = if parts.is_empty() { "filters only".to_owned() } else { parts.join(" + ") };
        let recency = recency(time, options.now);
        Ok(format!(
            "{:.2} = ({words}) × {weight:.2} for confidence and status × {recency:.2} for the time",
            hit.score
        ))
    }

    /// Returns what a query contributes to the score of a document: nothing if it does not match.
    fn score(&self, query: &dyn IndexQuery, address: DocAddress) -> Result<f32, IndexError> {
        let weight = query.weight(EnableScoring::enabled_from_searcher(&self.searcher))?;
        let mut scorer = weight.scorer(self.searcher.segment_reader(address.segment_ord), 1.0)?;
        // A scorer must not be moved back. Tantivy's own explanations do that for a part that does not match.
        let matches = scorer.doc() <= address.doc_id && scorer.seek(address.doc_id) == address.doc_id;
        Ok(if matches { scorer.score() } else { 0.0 })
    }

    fn hit(&self, score: f32, address: DocAddress) -> Result<Hit, IndexError> {
        let document: TantivyDocument = self.searcher.doc(address)?;
        let text =
            |field: Field| document.get_first(field).and_then(|value| value.as_str()).unwrap_or_default();
        let conversation_id = text(self.fields.owner).strip_prefix("c:").map(ToOwned::to_owned);
        let kind = DocumentKind::of_word(text(self.fields.kind)).unwrap_or(DocumentKind::Message);
        Ok(Hit { kind, id: text(self.fields.id).to_owned(), conversation_id, score, address })
    }
}

/// The memories that match filters.
pub struct MatchingMemories {
    snapshot: Snapshot,
    documents: HashSet<DocAddress>,
}

impl MatchingMemories {
    /// Returns a memory as a hit with this score; `None` if it does not match, or is not in the index.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn hit(&self, memory: &str, score: f32) -> Result<Option<Hit>, IndexError> {
        let owner = OwnerId::Memory(memory).to_string();
        let owner = Term::from_field_text(self.snapshot.fields.owner, &owner);
        let query = TermQuery::new(owner, IndexRecordOption::Basic);
        let found = self.snapshot.searcher.search(&query, &DocSetCollector)?;
        let address = found.into_iter().find(|address| self.documents.contains(address));
        Ok(address.map(|address| Hit {
            kind: DocumentKind::Memory,
            id: memory.to_owned(),
            conversation_id: None,
            score,
            address,
        }))
    }
}

/// Returns how much a document of this age counts, from 1 to 1 + [`RECENCY`].
fn recency(time: Option<i64>, now: i64) -> f64 {
    let Some(time) = time else { return 1.0 };
    #[expect(clippy::cast_precision_loss, reason = "a few microseconds do not matter")]
    let age = now.saturating_sub(time).max(0) as f64;
    1.0 + RECENCY * (-age / RECENCY_HALF_LIFE).exp2()
}

fn buckets(result: AggregationResult) -> Facet {
    let AggregationResult::BucketResult(BucketResult::Terms { buckets, .. }) = result else {
        return Vec::new();
    };
    buckets
        .into_iter()
        .map(|bucket| (bucket.key_as_string.unwrap_or_else(|| bucket.key.to_string()), bucket.doc_count))
        .collect()
}
