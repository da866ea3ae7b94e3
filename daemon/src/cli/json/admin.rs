//! JSON documents for exports, importers and the state of the daemon.

use std::collections::BTreeMap;

use satchel_proto::{integers::unsigned, v1};
use serde::Serialize;

use super::{non_empty, source::Source, timestamp};
use crate::cli::labels;

/// `exports list`.
#[derive(Debug, Serialize)]
pub(crate) struct Exports<'a> {
    pub exports: Vec<Export<'a>>,
    /// True if there are more than `--limit`.
    pub more: bool,
}

/// `export`, and an element of `exports`.
#[derive(Debug, Serialize)]
pub(crate) struct Export<'a> {
    pub export_id: &'a str,
    pub export_type: String,
    /// Only for incremental exports, as is `since`.
    pub base_export_id: Option<&'a str>,
    pub since: Option<&'a str>,
    pub memories: u64,
    pub conversations: u64,
    pub relations: u64,
    /// Only for PAM, as are `signer` and `manifest_sha256`.
    pub checksum: Option<&'a str>,
    pub revision: u64,
    pub path: &'a str,
    pub export_date: &'a str,
    pub withheld: u64,
    pub bytes: u64,
    pub signer: Option<&'a str>,
    pub manifest_sha256: Option<&'a str>,
    pub format: String,
    /// Why the export is full although an incremental one was requested.
    pub reason: Option<&'a str>,
    /// What an incremental export cannot express.
    pub warnings: &'a [String],
    /// True if it was made elsewhere and merged into this store.
    pub applied: bool,
    /// The criteria of a selection; such an export is not a copy of the store.
    pub selected_by: &'a [String],
    /// True if identifiers were removed.
    pub stripped: bool,
    /// True if it is a single `age` file.
    pub encrypted: bool,
}

impl<'a> Export<'a> {
    pub(crate) fn new(export: &'a v1::Export) -> Self {
        Self {
            export_id: &export.id,
            export_type: labels::export_type(export.r#type),
            base_export_id: non_empty(&export.base_export_id),
            since: non_empty(&export.since),
            memories: unsigned(export.memories),
            conversations: unsigned(export.conversations),
            relations: unsigned(export.relations),
            checksum: non_empty(&export.checksum),
            revision: unsigned(export.revision),
            path: &export.path,
            export_date: &export.export_date,
            withheld: unsigned(export.withheld),
            bytes: unsigned(export.size_bytes),
            signer: non_empty(&export.signer),
            manifest_sha256: non_empty(&export.manifest_sha256),
            format: labels::export_format(export.format),
            reason: non_empty(&export.reason),
            warnings: &export.warnings,
            applied: export.applied,
            selected_by: &export.selected_by,
            stripped: export.stripped,
            encrypted: export.encrypted,
        }
    }
}

/// `plugins list`.
#[derive(Debug, Serialize)]
pub(crate) struct Plugins<'a> {
    pub plugins: Vec<Plugin<'a>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Plugin<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub platform: &'a str,
    pub importer_version: &'a str,
    pub formats: &'a [String],
    pub built_in: bool,
    pub sha256: &'a str,
}

impl<'a> Plugin<'a> {
    pub(crate) fn new(plugin: &'a v1::Plugin) -> Self {
        let v1::Plugin { name, version, platform, sha256, built_in, formats, newest_format } = plugin;
        Self {
            name,
            version,
            platform,
            importer_version: newest_format,
            formats,
            built_in: *built_in,
            sha256,
        }
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
        }
    }
}

fn counts(counts: &[impl labels::LabelledCount]) -> BTreeMap<String, u64> {
    counts.iter().map(labels::LabelledCount::label_and_count).collect()
}
