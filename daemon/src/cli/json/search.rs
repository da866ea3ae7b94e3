//! JSON documents for `search` and `context`.

use satchel_proto::{
    integers::unsigned,
    v1::{self, SearchHitKind},
};
use serde::Serialize;

use super::{non_empty, timestamp};
use crate::cli::labels;

/// `search`.
#[derive(Debug, Serialize)]
pub(crate) struct SearchResults<'a> {
    pub hits: Vec<SearchHit<'a>>,
    /// Number of all memories, messages and titles that match.
    pub total: u64,
    /// True if there are more than `--limit`.
    pub more: bool,
    /// How many of them have all of the words; the others have some of them, or similar ones.
    pub strict_total: u64,
    pub suggestions: Vec<SearchSuggestion<'a>>,
    /// The revision up to which everything was searched.
    pub revision: u64,
    pub store_id: &'a str,
}

document! {
    /// A hit.
    SearchHit<'a> from hit: v1::SearchHit {
        kind: String = labels::search_hit_kind(hit.kind),
        id: &'a str = &hit.id,
        conversation_id: Option<&'a str> = non_empty(&hit.conversation_id),
        title: Option<&'a str> = non_empty(&hit.title),
        platform: &'a str = &hit.platform,
        role: Option<String> = (hit.kind() == SearchHitKind::Message).then(|| labels::role(hit.role)),
        #[serde(rename = "type")]
        memory_type: Option<String> = (hit.kind() == SearchHitKind::Memory).then(|| labels::memory_type(hit.memory_type)),
        status: Option<String> = (hit.kind() == SearchHitKind::Memory).then(|| labels::memory_status(hit.memory_status)),
        model: Option<&'a str> = non_empty(&hit.model),
        date: Option<String> = timestamp(hit.time.as_ref()),
        snippet: &'a str = hit.snippet.as_ref().map_or("", |snippet| &snippet.text),
        marks: Vec<[u64; 2]> = marks(hit),
        score: f32 = hit.score,
        hidden: bool = hit.hidden,
        is_thought: bool = hit.is_thought,
        on_active_branch: bool = hit.on_active_branch,
        more_in_conversation: u64 = unsigned(hit.more_in_conversation),
        /// True if it has only some of the words, or similar ones.
        relaxed: bool = hit.relaxed,
        /// True if a memory is not valid any more.
        expired: bool = hit.expired,
        /// How near a memory is in meaning, from -1 to 1; null if that was not asked for.
        cosine: Option<f32> = hit.cosine,
        explanation: Option<&'a str> = non_empty(&hit.explanation),
    }
}

document! {
    /// A word that finds something, for one that does not.
    SearchSuggestion<'a> from suggestion: v1::SearchSuggestion {
        start: u64 = u64::from(unsigned(suggestion.start)),
        end: u64 = u64::from(unsigned(suggestion.end)),
        word: &'a str = &suggestion.word,
    }
}

/// `context`.
#[derive(Debug, Serialize)]
pub(crate) struct PromptContext<'a> {
    /// The text for the prompt.
    pub text: &'a str,
    pub instructions: Vec<ContextItem<'a>>,
    pub items: Vec<ContextItem<'a>>,
    /// The tokens of `text`, by an estimate.
    pub tokens_used: u32,
    /// How many more fit the query, but not the budget.
    pub omitted: u64,
    /// The revision up to which everything was searched.
    pub revision: u64,
    pub store_id: &'a str,
}

document! {
    /// What is quoted of a memory or message.
    ContextItem<'a> from item: v1::ContextItem {
        kind: String = labels::search_hit_kind(item.kind),
        id: &'a str = &item.id,
        conversation_id: Option<&'a str> = non_empty(&item.conversation_id),
        title: Option<&'a str> = non_empty(&item.title),
        platform: &'a str = &item.platform,
        role: Option<String> = (item.kind() == SearchHitKind::Message).then(|| labels::role(item.role)),
        #[serde(rename = "type")]
        memory_type: Option<String> = (item.kind() == SearchHitKind::Memory).then(|| labels::memory_type(item.memory_type)),
        status: Option<String> = (item.kind() == SearchHitKind::Memory).then(|| labels::memory_status(item.memory_status)),
        date: Option<String> = timestamp(item.time.as_ref()),
        confidence: Option<f64> = item.confidence,
        text: &'a str = &item.text,
        cut: bool = item.cut,
        tokens: u32 = unsigned(item.tokens),
    }
}

/// Returns the parts of the snippet that match, in bytes of UTF-8.
fn marks(hit: &v1::SearchHit) -> Vec<[u64; 2]> {
    let marks = hit.snippet.iter().flat_map(|snippet| &snippet.marks);
    marks.map(|mark| [u64::from(unsigned(mark.start)), u64::from(unsigned(mark.end))]).collect()
}
