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

/// `sources add`, and an element of `sources list` and `status`.
#[derive(Debug, Serialize)]
pub(crate) struct Source<'a> {
    pub path: &'a str,
    pub origin: String,
    pub state: String,
    pub polling_reason: Option<&'a str>,
    pub recursive: bool,
    /// True if the whole folder was scanned since the daemon started.
    pub scanned: bool,
    pub imported: u64,
    pub unrecognized: u64,
    pub queued: u64,
    pub waiting_total: u64,
    pub failed_total: u64,
    pub overflows: u64,
    /// The first items of each kind.
    pub reading: Vec<Item<'a>>,
    pub waiting: Vec<Item<'a>>,
    pub failed: Vec<Item<'a>>,
    /// Only with `--unrecognised`: `reason` says what each file seems to be.
    pub unrecognized_items: Vec<Item<'a>>,
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

impl<'a> Source<'a> {
    pub(crate) fn new(source: &'a v1::Source) -> Self {
        let items = |items: &'a [v1::SourceItem]| items.iter().map(Item::new).collect();
        Self {
            path: &source.path,
            origin: labels::source_origin(source.origin),
            state: labels::source_state(source.state),
            polling_reason: non_empty(&source.polling_reason),
            recursive: source.recursive,
            scanned: source.scanned,
            imported: unsigned(source.imported),
            unrecognized: unsigned(source.unrecognized),
            queued: unsigned(source.queued),
            waiting_total: unsigned(source.waiting_total),
            failed_total: unsigned(source.failed_total),
            overflows: unsigned(source.overflows),
            reading: items(&source.reading),
            waiting: items(&source.waiting),
            failed: items(&source.failed),
            unrecognized_items: items(&source.unrecognized_items),
        }
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
