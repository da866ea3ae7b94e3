//! JSON documents for exports and the state of the daemon.

use std::collections::BTreeMap;

use satchel_proto::{integers::unsigned, v1};
use serde::Serialize;

use super::{non_empty, plugin::Plugin, source::Source, timestamp};
use crate::cli::labels;

/// `exports list`.
#[derive(Debug, Serialize)]
pub(crate) struct Exports<'a> {
    pub exports: Vec<Export<'a>>,
    /// True if there are more than `--limit`.
    pub more: bool,
}

document! {
    /// `export`, and an element of `exports`.
    Export<'a> from export: v1::Export {
        export_id: &'a str = &export.id,
        export_type: String = labels::export_type(export.r#type),
        /// Only for incremental exports, as is `since`.
        base_export_id: Option<&'a str> = non_empty(&export.base_export_id),
        since: Option<&'a str> = non_empty(&export.since),
        memories: u64 = unsigned(export.memories),
        conversations: u64 = unsigned(export.conversations),
        relations: u64 = unsigned(export.relations),
        /// Only for PAM, as are `signer` and `manifest_sha256`.
        checksum: Option<&'a str> = non_empty(&export.checksum),
        revision: u64 = unsigned(export.revision),
        path: &'a str = &export.path,
        export_date: &'a str = &export.export_date,
        withheld: u64 = unsigned(export.withheld),
        bytes: u64 = unsigned(export.size_bytes),
        signer: Option<&'a str> = non_empty(&export.signer),
        manifest_sha256: Option<&'a str> = non_empty(&export.manifest_sha256),
        format: String = labels::export_format(export.format),
        /// Why the export is full although an incremental one was requested.
        reason: Option<&'a str> = non_empty(&export.reason),
        /// What an incremental export cannot express.
        warnings: &'a [String] = &export.warnings,
        /// True if it was made elsewhere and merged into this store.
        applied: bool = export.applied,
        /// The criteria of a selection; such an export is not a copy of the store.
        selected_by: &'a [String] = &export.selected_by,
        /// True if identifiers were removed.
        stripped: bool = export.stripped,
        /// True if it is a single `age` file.
        encrypted: bool = export.encrypted,
        /// The machine that made it, with `path` there; null if this one did.
        machine: Option<&'a str> = non_empty(&export.machine),
    }
}

/// `status`.
#[derive(Debug, Serialize)]
pub(crate) struct Status<'a> {
    pub version: &'a str,
    pub data_dir: &'a str,
    /// True if a separate daemon is running; false if only this command served the request.
    pub daemon: bool,
    pub pid: u32,
    pub started_at: Option<String>,
    pub store_id: &'a str,
    pub revision: u64,
    pub running_jobs: u32,
    pub memories: MemoryCounts,
    pub conversations: ConversationCounts,
    pub messages: u64,
    pub relations: u64,
    pub journal_bytes: u64,
    pub database_bytes: u64,
    pub blob_bytes: u64,
    pub problems: Vec<Problem<'a>>,
    /// The watched folders.
    pub sources: Vec<Source<'a>>,
    /// The importers that were disabled after failures.
    pub disabled_plugins: Vec<Plugin<'a>>,
    /// The number of memories that agents wrote and that wait for review.
    pub quarantined_memories: u64,
    /// Where the daemon listens for devices.
    pub device_addresses: &'a [String],
    /// The number of devices and tokens that are not revoked.
    pub devices: u32,
    /// The number of daemons with which this one exchanges changes.
    pub peers: u32,
    /// The number of those that are in step.
    pub peers_in_step: u32,
    /// How far the search index is; null if the daemon is older.
    pub search_index: Option<SearchIndex<'a>>,
    /// The endpoint for embeddings; null if the configuration names none.
    pub embeddings: Option<EmbeddingEndpoint<'a>>,
}

document! {
    /// The endpoint for embeddings.
    EmbeddingEndpoint<'a> from status: v1::EmbeddingStatus {
        url: &'a str = &status.url,
        model: &'a str = &status.model,
        disclosure: &'a str = &status.disclosure,
        leaves_machine: bool = status.leaves_machine,
        /// False if no daemon runs.
        running: bool = status.running,
        embedded: u64 = unsigned(status.embedded_count),
        failed: u64 = unsigned(status.failed_count),
        idle: bool = status.idle,
        last_error: Option<&'a str> = non_empty(&status.last_error),
    }
}

document! {
    /// How far the search index is.
    SearchIndex<'a> from index: v1::SearchIndexStatus {
        /// Everything up to this revision of the store can be found.
        revision: u64 = unsigned(index.revision),
        documents: u64 = unsigned(index.documents),
        /// False if nobody has searched yet and no daemon runs.
        running: bool = index.running,
        /// On disk; 0 if it is in memory.
        bytes: u64 = unsigned(index.bytes),
        error: Option<&'a str> = non_empty(&index.error),
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct MemoryCounts {
    pub total: u64,
    pub by_status: BTreeMap<String, u64>,
    pub by_type: BTreeMap<String, u64>,
    pub by_platform: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ConversationCounts {
    pub total: u64,
    pub by_platform: BTreeMap<String, u64>,
}

/// A problem that needs a person's attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem<'a> {
    pub reason: &'a str,
    pub message: &'a str,
    pub fix: &'a str,
}

impl<'a> Problem<'a> {
    pub(crate) fn new(problem: &'a v1::Problem) -> Self {
        let v1::Problem { reason, message, fix } = problem;
        Self { reason, message, fix }
    }
}

impl<'a> Status<'a> {
    pub(crate) fn new(
        status: &'a v1::GetStatusResponse,
        stored: &'a v1::GetStatsResponse,
        daemon: bool,
    ) -> Self {
        let header = status.header.as_ref();
        Self {
            version: &status.version,
            data_dir: &status.data_dir,
            daemon,
            pid: unsigned(status.pid),
            started_at: timestamp(status.started_at.as_ref()),
            store_id: header.map_or("", |header| &header.store_id),
            revision: header.map_or(0, |header| unsigned(header.revision)),
            running_jobs: unsigned(status.running_operations),
            memories: MemoryCounts {
                total: unsigned(stored.memories),
                by_status: counts(&stored.memories_by_status),
                by_type: counts(&stored.memories_by_type),
                by_platform: counts(&stored.memories_by_platform),
            },
            conversations: ConversationCounts {
                total: unsigned(stored.conversations),
                by_platform: counts(&stored.conversations_by_platform),
            },
            messages: unsigned(stored.messages),
            relations: unsigned(stored.relations),
            journal_bytes: unsigned(status.journal_bytes),
            database_bytes: unsigned(status.database_bytes),
            blob_bytes: unsigned(status.blob_bytes),
            problems: status.problems.iter().map(Problem::new).collect(),
            sources: status.sources.iter().map(Source::new).collect(),
            disabled_plugins: status.disabled_plugins.iter().map(Plugin::new).collect(),
            quarantined_memories: unsigned(status.quarantined_memories),
            device_addresses: &status.device_addresses,

            devices: unsigned(status.devices),
            peers: unsigned(status.peers),
            peers_in_step: unsigned(status.peers_in_step),
            search_index: status.search_index.as_ref().map(SearchIndex::new),
            embeddings: status.embeddings.as_ref().map(EmbeddingEndpoint::new),
        }
    }
}

fn counts(counts: &[impl labels::LabelledCount]) -> BTreeMap<String, u64> {
    counts.iter().map(labels::LabelledCount::label_and_count).collect()
}
