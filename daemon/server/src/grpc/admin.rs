//! `AdminService`: reports the state of the daemon and its store.

mod stats;

use std::{collections::BTreeMap, path::Path};

use satchel_core::purge::{self, Line, Plan, Target};
use satchel_embedder::{EmbedderProgress, WorkerState};
use satchel_proto::{
    integers::signed,
    v1::{self, admin_service_server::AdminService},
};
use satchel_source::chain;
use satchel_store::{Health, Stats, StoreError};

use super::{
    ServerState,
    call_state::CallState,
    maintenance,
    operation::OperationReporter,
    plugin,
    request::{check_absolute, service},
    source,
    status::{CallError, ResourceKind},
    wire::{
        memory::{memory_type_to_wire, status_to_wire},
        scalar::{known_micros_to_wire, time_to_wire},
    },
};
use crate::embeddings::Embedder;

/// Largest number of records in a purge plan; a response cannot hold more.
const MAX_PURGED_RECORDS: usize = 30_000;

#[derive(Clone)]
pub(super) struct AdminHandler(pub(super) ServerState);

service!(AdminService for AdminHandler {
    create_backup: CreateBackupRequest => CreateBackupResponse = create_backup;
    verify_store: VerifyStoreRequest => VerifyStoreResponse = verify_store;
    get_purge_plan: GetPurgePlanRequest => GetPurgePlanResponse = purge_plan;
    get_status: GetStatusRequest => GetStatusResponse = get_status;
    get_stats: GetStatsRequest => GetStatsResponse = get_stats;
});

fn create_backup(
    state: &CallState,
    request: v1::CreateBackupRequest,
) -> Result<v1::CreateBackupResponse, CallError> {
    let v1::CreateBackupRequest { output } = request;
    state.check_local("output")?;
    check_absolute("output", &output)?;
    let backed_up = state.clone();
    let work = move |reporter: &OperationReporter| maintenance::back_up(&backed_up, &output, reporter);
    let operation = Some(state.operations.start(&state.clock, v1::OperationKind::Backup, work)?);
    Ok(v1::CreateBackupResponse { operation, header: Some(state.header()) })
}

fn verify_store(
    state: &CallState,
    _request: v1::VerifyStoreRequest,
) -> Result<v1::VerifyStoreResponse, CallError> {
    let verified = state.clone();
    let work = move |reporter: &OperationReporter| maintenance::verify(&verified, reporter);
    let operation = Some(state.operations.start(&state.clock, v1::OperationKind::VerifyStore, work)?);
    Ok(v1::VerifyStoreResponse { operation, header: Some(state.header()) })
}

fn get_stats(state: &CallState, _request: v1::GetStatsRequest) -> Result<v1::GetStatsResponse, CallError> {
    let header = Some(state.header());
    let stats = if state.sees_everything() { state.store.stats()? } else { stats::visible(state)? };
    Ok(v1::GetStatsResponse { header, ..stats_to_wire(stats) })
}

fn get_status(state: &CallState, _request: v1::GetStatusRequest) -> Result<v1::GetStatusResponse, CallError> {
    let (stats, unreadable) = match state.store.stats() {
        Ok(stats) => (stats, None),
        // Permissions were taken away. Report this in the status, because that is where users look for it.
        Err(error @ StoreError::Io { .. }) => {
            (Stats::default(), Some(unreadable_data_dir(&state.data_dir, &error)))
        }
        Err(error) => return Err(error.into()),
    };
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let peers = state.peers.list();
    Ok(v1::GetStatusResponse {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        header: Some(state.header()),
        journal_bytes: signed(stats.journal_bytes),
        database_bytes: signed(stats.engine_bytes),
        blob_bytes: signed(stats.blob_bytes),
        running_operations: count(state.imports.active().len() + state.operations.open()),
        started_at: Some(time_to_wire(state.started_at)),
        problems: problems(&state.store.health())
            .into_iter()
            .chain(unreadable)
            .chain(source::problems(state))
            .chain(plugin::problems(&state.plugins))
            .collect(),
        data_dir: state.data_dir.to_string_lossy().into_owned(),
        pid: signed(std::process::id()),
        sources: source::list_all(state),
        disabled_plugins: plugin::disabled_after_failures(&state.plugins),
        quarantined_memories: signed(state.imports.edits().waiting_memories()?),
        device_addresses: state.devices.addresses(),
        peers: count(peers.len()),
        peers_in_step: count(peers.iter().filter(|peer| peer.in_step).count()),
        devices: count(state.devices.registry().list(false).len()),
        search_index: Some(index_status(state)),
        embeddings: state.embedder.as_ref().map(embedding_status),
    })
}

fn embedding_status(embedder: &Embedder) -> v1::EmbeddingStatus {
    let config = embedder.config();
    let progress = embedder.progress();
    let counted = |count: fn(&EmbedderProgress) -> u64| signed(progress.as_ref().map_or(0, count));
    v1::EmbeddingStatus {
        url: config.url.to_string(),
        model: config.model.clone(),
        disclosure: config.disclosure(),
        leaves_machine: config.leaves_the_machine(),
        running: progress.is_some(),
        embedded_count: counted(|progress| progress.embedded),
        failed_count: counted(|progress| progress.failed),
        idle: progress.as_ref().is_some_and(|progress| progress.state == WorkerState::Idle),
        last_error: progress.and_then(|progress| progress.last_error).unwrap_or_default(),
    }
}

fn index_status(state: &CallState) -> v1::SearchIndexStatus {
    let progress = state.indexer.progress();
    v1::SearchIndexStatus {
        revision: signed(progress.revision.get()),
        documents: signed(progress.documents),
        running: progress.running,
        bytes: signed(progress.bytes),
        error: progress.error.as_ref().map(|error| chain(error)).unwrap_or_default(),
    }
}

fn purge_plan(
    state: &CallState,
    request: v1::GetPurgePlanRequest,
) -> Result<v1::GetPurgePlanResponse, CallError> {
    use v1::get_purge_plan_request::Target as WireTarget;
    let v1::GetPurgePlanRequest { target, keep_memories } = request;
    let (target, kind, id) = match target {
        Some(WireTarget::MemoryId(id)) => (Target::Memory(id.clone()), ResourceKind::Memory, id),
        Some(WireTarget::ConversationId(id)) => {
            (Target::Conversation { id: id.clone(), keep_memories }, ResourceKind::Conversation, id)
        }
        None => return Err(CallError::invalid_field("target", "is missing")),
    };
    let plan =
        purge::planned(&state.store, &target, state.clock.now_micros()).map_err(CallError::internal)?;
    let plan = plan.ok_or_else(|| CallError::not_found(kind, id))?;
    if plan.memories.len() + plan.conversations.len() > MAX_PURGED_RECORDS {
        return Err(CallError::Busy(format!(
            "more than {MAX_PURGED_RECORDS} records would be erased; stop the daemon to list them"
        )));
    }
    Ok(v1::GetPurgePlanResponse { header: Some(state.header()), ..purge_plan_to_wire(plan) })
}

/// Converts the plan of a purge to the wire, without a header.
#[must_use]
pub fn purge_plan_to_wire(plan: Plan) -> v1::GetPurgePlanResponse {
    let Plan { record, memories, conversations, evidence, edits, stay } = plan;
    v1::GetPurgePlanResponse {
        memories: memories.into_iter().map(purged_to_wire).collect(),
        conversations: conversations.into_iter().map(purged_to_wire).collect(),
        evidence: signed(evidence),
        changes_by_hand: signed(edits),
        attachments: signed(record.attachments.len() as u64),
        staying_conversation_ids: stay.into_iter().collect(),
        header: None,
    }
}

fn purged_to_wire(line: Line) -> v1::PurgedRecord {
    let Line { id, platform, created_at, versions, messages } = line;
    v1::PurgedRecord {
        id,
        platform,
        created_at: known_micros_to_wire(created_at),
        versions: signed(versions),
        messages: signed(messages),
    }
}

/// Returns the problem to report if the data directory cannot be read.
fn unreadable_data_dir(dir: &Path, error: &StoreError) -> v1::Problem {
    v1::Problem {
        reason: "DATA_DIR".to_owned(),
        message: format!("the data directory {:?} cannot be read: {}", dir.display(), chain(error)),
        fix: "allow your user to read and write it and everything in it, then restart satchel".to_owned(),
    }
}

/// Returns the problems of the store, each with a fix.
fn problems(health: &Health) -> Vec<v1::Problem> {
    let problem = |reason: &str, message: String, fix: &str| v1::Problem {
        reason: reason.to_owned(),
        message,
        fix: fix.to_owned(),
    };
    match health {
        Health::Good => Vec::new(),
        Health::Damaged(damages) => damages
            .iter()
            .map(|damage| {
                let fix = "restore the segment from a backup, or export what is left and create a new data directory";
                problem("STORE_CORRUPT", format!("the journal is damaged, so the store is read-only: {damage}"), fix)
            })
            .collect(),
        Health::Stopped(reason) => {
            let fix = "check the disk, then restart satchel; everything that was committed is safe";
            vec![problem("STORE_STOPPED", format!("the store stopped writing: {reason}"), fix)]
        }
        Health::ReadOnly(reason) => {
            let fix = "free some disk space, or make the disk writable, and run the command again";
            vec![problem("READ_ONLY", format!("the store is open read-only: {reason}"), fix)]
        }
        other => vec![problem("STORE_UNKNOWN", format!("{other:?}"), "restart satchel")],
    }
}

fn stats_to_wire(stats: Stats) -> v1::GetStatsResponse {
    let Stats {
        memories,
        memories_by_type,
        memories_by_status,
        memories_by_platform,
        conversations,
        conversations_by_platform,
        messages,
        relations,
        embeddings: _,
        evidence: _,
        journal_bytes: _,
        engine_bytes: _,
        blob_bytes: _,
    } = stats;
    v1::GetStatsResponse {
        memories: signed(memories),
        header: None,
        conversations: signed(conversations),
        messages: signed(messages),
        relations: signed(relations),
        memories_by_status: by_frequency(memories_by_status)
            .map(|(status, count)| v1::MemoryStatusCount {
                status: status_from_name(&status),
                count: signed(count),
            })
            .collect(),
        memories_by_type: by_frequency(memories_by_type)
            .map(|(kind, count)| v1::MemoryTypeCount { r#type: type_from_name(&kind), count: signed(count) })
            .collect(),
        memories_by_platform: platform_counts(memories_by_platform),
        conversations_by_platform: platform_counts(conversations_by_platform),
    }
}

/// Sorts by count, highest first; equal counts by name.
fn by_frequency(counted: BTreeMap<String, u64>) -> impl Iterator<Item = (String, u64)> {
    let mut counts: Vec<_> = counted.into_iter().filter(|(_, count)| *count > 0).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter()
}

fn platform_counts(counted: BTreeMap<String, u64>) -> Vec<v1::PlatformCount> {
    by_frequency(counted)
        .map(|(platform, count)| v1::PlatformCount { platform, count: signed(count) })
        .collect()
}

/// Parses a word of PAM. The store counts by PAM's words and contains no others.
fn status_from_name(word: &str) -> i32 {
    word.parse().map_or(v1::MemoryStatus::Unspecified.into(), status_to_wire)
}

fn type_from_name(word: &str) -> i32 {
    word.parse().map_or(v1::MemoryType::Unspecified.into(), memory_type_to_wire)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_most_frequent_first() {
        let counted =
            [("b", 2), ("a", 2), ("c", 9), ("gone", 0)].map(|(value, count)| (value.to_owned(), count));
        let order: Vec<_> = by_frequency(counted.into()).map(|(value, _)| value).collect();
        assert_eq!(order, ["c", "a", "b"]);
    }

    #[test]
    fn a_store_that_does_not_write_is_a_problem_with_a_remedy() {
        assert!(problems(&Health::Good).is_empty());
        let stopped = problems(&Health::Stopped("fsync failed".to_owned()));
        assert!(
            stopped.iter().all(|problem| problem.message.contains("fsync failed") && !problem.fix.is_empty())
        );
        assert_eq!(stopped.len(), 1);
    }
}
