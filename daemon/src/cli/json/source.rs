//! JSON documents for watched folders.

use satchel_proto::{integers::unsigned, v1};
use serde::Serialize;

use super::non_empty;
use crate::cli::labels;

/// `sources list`.
#[derive(Debug, Serialize)]
pub(crate) struct Sources<'a> {
    pub sources: Vec<Source<'a>>,
}

document! {
    /// `sources add`, and an element of `sources list` and `status`.
    Source<'a> from source: v1::Source {
        path: &'a str = &source.path,
        origin: String = labels::source_origin(source.origin),
        state: String = labels::source_state(source.state),
        polling_reason: Option<&'a str> = non_empty(&source.polling_reason),
        recursive: bool = source.recursive,
        sessions: bool = source.sessions,
        /// True if the whole folder was scanned since the daemon started.
        scanned: bool = source.scanned,
        imported: u64 = unsigned(source.imported),
        unrecognized: u64 = unsigned(source.unrecognized),
        queued: u64 = unsigned(source.queued),
        waiting_total: u64 = unsigned(source.waiting_total),
        failed_total: u64 = unsigned(source.failed_total),
        overflows: u64 = unsigned(source.overflows),
        /// The first items of each kind.
        reading: Vec<Item<'a>> = source.reading.iter().map(Item::new).collect(),
        waiting: Vec<Item<'a>> = source.waiting.iter().map(Item::new).collect(),
        failed: Vec<Item<'a>> = source.failed.iter().map(Item::new).collect(),
        /// Only with `--unrecognised`: `reason` says what each file seems to be.
        unrecognized_items: Vec<Item<'a>> = source.unrecognized_items.iter().map(Item::new).collect(),
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Item<'a> {
    pub name: &'a str,
    pub reason: Option<&'a str>,
    pub job_id: Option<&'a str>,
    pub retry_in_seconds: Option<i64>,
}

/// `sources remove`.
#[derive(Debug, Serialize)]
pub(crate) struct Removed<'a> {
    pub removed: &'a str,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(sources: &'a [v1::Source]) -> Self {
        Self { sources: sources.iter().map(Source::new).collect() }
    }
}

impl<'a> Item<'a> {
    fn new(item: &'a v1::SourceItem) -> Self {
        let v1::SourceItem { name, reason, operation_id, retry_in } = item;
        Self {
            name,
            reason: non_empty(reason),
            job_id: non_empty(operation_id),
            retry_in_seconds: retry_in.as_ref().map(|wait| wait.seconds),
        }
    }
}
