//! Searches in one state of the index.

use std::collections::BTreeMap;

use tantivy::{
    DocAddress, DocId, Score, Searcher, SegmentReader, TantivyDocument,
    aggregation::{
        AggContextParams, AggregationCollector,
        agg_req::Aggregations,
        agg_result::{AggregationResult, BucketResult},
    },
    collector::{Count, TopDocs},
    schema::{Field, Value as _},
};

use super::{IndexError, compile::compile, document::DocumentKind, schema::Fields};
use crate::query::{FilterField, Query};

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
    /// Whether one of the words is enough.
    pub any_word: bool,
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
}

/// A page of hits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    pub hits: Vec<Hit>,
    /// How many there are in all.
    pub total: usize,
}

/// How many hits have a value, for the most frequent values.
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
        let top = TopDocs::with_limit(limit).and_offset(offset);
        let top = top.tweak_score(move |segment: &SegmentReader| {
            let times = segment.fast_fields().i64("time");
            let weights = segment.fast_fields().f64("weight");
            move |document: DocId, score: Score| {
                let time = times.as_ref().ok().and_then(|times| times.first(document));
                let weight = weights.as_ref().ok().and_then(|weights| weights.first(document)).unwrap_or(1.0);
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

    /// Counts the values that the hits have in each of these fields.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn facets(
        &self,
        query: &Query,
        options: &SearchOptions,
        fields: &[FilterField],
    ) -> Result<BTreeMap<&'static str, Facet>, IndexError> {
        let requests: serde_json::Map<String, serde_json::Value> = fields
            .iter()
            .map(|field| {
                let name = self.searcher.schema().get_field_name(self.fields.of_filter(*field));
                let terms = serde_json::json!({"terms": {"field": name, "size": MAX_FACET_VALUES}});
                (field.word().to_owned(), terms)
            })
            .collect();
        let requests: Aggregations =
            serde_json::from_value(requests.into()).map_err(tantivy::TantivyError::from)?;
        let collector = AggregationCollector::from_aggs(requests, AggContextParams::default());
        let mut counted = self.searcher.search(&compile(&self.fields, query, options), &collector)?.0;
        let facets = fields.iter().map(|field| {
            let buckets = counted.remove(field.word()).map(buckets).unwrap_or_default();
            (field.word(), buckets)
        });
        Ok(facets.collect())
    }

    fn hit(&self, score: f32, address: DocAddress) -> Result<Hit, IndexError> {
        let document: TantivyDocument = self.searcher.doc(address)?;
        let text =
            |field: Field| document.get_first(field).and_then(|value| value.as_str()).unwrap_or_default();
        let conversation_id = text(self.fields.owner).strip_prefix("c:").map(ToOwned::to_owned);
        let kind = DocumentKind::of_word(text(self.fields.kind)).unwrap_or(DocumentKind::Message);
        Ok(Hit { kind, id: text(self.fields.id).to_owned(), conversation_id, score })
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
