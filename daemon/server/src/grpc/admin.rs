//! `AdminService`: reports the state of the daemon and its store.

use std::{collections::BTreeMap, path::Path};

use satchel_core::ingest::purge::{self, Line, Plan, Target};
use satchel_proto::{
    signed::signed,
    v1::{self, admin_service_server::AdminService},
};
use satchel_source::chain;
use satchel_store::{Health, Stats, StoreError};
use tonic::{Request, Response, Status};

use super::{
    Core,
    call::absolute,
    care,
    operation::Reporter,
    source,
    status::{Fault, Kind},
    wire::{
        memory::{memory_type_to_wire, status_to_wire},
        scalar::{known_micros_to_wire, time_to_wire},
    },
};

/// Largest number of records in a purge plan; a response cannot hold more.
const MOST_PURGED: usize = 30_000;

#[derive(Clone)]
pub(super) struct Admin(pub(super) Core);

#[tonic::async_trait]
impl AdminService for Admin {
    async fn create_backup(
        &self,
        request: Request<v1::CreateBackupRequest>,
    ) -> Result<Response<v1::CreateBackupResponse>, Status> {
        let v1::CreateBackupRequest { output } = request.into_inner();
        absolute("output", &output)?;
        let core = self.0.clone();
        let work = move |reporter: &Reporter| care::back_up(&core, &output, reporter);
        let operation = Some(self.0.operations.start(&self.0.clock, v1::OperationKind::Backup, work)?);
        Ok(Response::new(v1::CreateBackupResponse { operation, header: Some(self.0.header()) }))
    }

    async fn verify_store(
        &self,
        request: Request<v1::VerifyStoreRequest>,
    ) -> Result<Response<v1::VerifyStoreResponse>, Status> {
        let v1::VerifyStoreRequest {} = request.into_inner();
        let core = self.0.clone();
        let work = move |reporter: &Reporter| care::verify(&core, reporter);
        let operation = Some(self.0.operations.start(&self.0.clock, v1::OperationKind::VerifyStore, work)?);
        Ok(Response::new(v1::VerifyStoreResponse { operation, header: Some(self.0.header()) }))
    }

    async fn get_purge_plan(
        &self,
        request: Request<v1::GetPurgePlanRequest>,
    ) -> Result<Response<v1::GetPurgePlanResponse>, Status> {
        let request = request.into_inner();
        self.0.answer(|core| purge_plan(core, request)).await
    }

    async fn get_status(
        &self,
        _request: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::GetStatusResponse>, Status> {
        self.0.answer(get_status).await
    }

    async fn get_stats(
        &self,
        _request: Request<v1::GetStatsRequest>,
    ) -> Result<Response<v1::GetStatsResponse>, Status> {
        self.0
            .answer(|core| {
                let header = Some(core.header());
                Ok(v1::GetStatsResponse { header, ..stats_to_wire(core.store.stats()?) })
            })
            .await
    }
}

fn get_status(core: &Core) -> Result<v1::GetStatusResponse, Fault> {
    let (stats, closed) = match core.store.stats() {
        Ok(stats) => (stats, None),
        // Permissions were taken away. Report this in the status, because that is where users look for it.
        Err(error @ StoreError::Io { .. }) => (Stats::default(), Some(closed(&core.data_dir, &error))),
        Err(error) => return Err(error.into()),
    };
    Ok(v1::GetStatusResponse {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        header: Some(core.header()),
        journal_bytes: signed(stats.journal_bytes),
        database_bytes: signed(stats.engine_bytes),
        blob_bytes: signed(stats.blob_bytes),
        running_operations: i32::try_from(core.imports.active().len() + core.operations.open())
            .unwrap_or(i32::MAX),
        started_at: Some(time_to_wire(core.started_at)),
        problems: problems(&core.store.health())
            .into_iter()
            .chain(closed)
            .chain(source::problems(core))
            .collect(),
        data_dir: core.data_dir.to_string_lossy().into_owned(),
        pid: signed(std::process::id()),
        sources: source::all(core),
    })
}

fn purge_plan(core: &Core, request: v1::GetPurgePlanRequest) -> Result<v1::GetPurgePlanResponse, Fault> {
    use v1::get_purge_plan_request::Target as Named;
    let v1::GetPurgePlanRequest { target, keep_memories } = request;
    let (target, kind, id) = match target {
        Some(Named::MemoryId(id)) => (Target::Memory(id.clone()), Kind::Memory, id),
        Some(Named::ConversationId(id)) => {
            (Target::Conversation { id: id.clone(), keep_memories }, Kind::Conversation, id)
        }
        None => return Err(Fault::field("target", "is missing")),
    };
    let plan = purge::planned(&core.store, &target, core.clock.now_micros()).map_err(Fault::internal)?;
    let Plan { record, memories, conversations, evidence, words, stay } =
        plan.ok_or_else(|| Fault::missing(kind, id))?;
    if memories.len() + conversations.len() > MOST_PURGED {
        return Err(Fault::Busy(format!(
            "more than {MOST_PURGED} records would be erased; stop the daemon to list them"
        )));
    }
    Ok(v1::GetPurgePlanResponse {
        memories: memories.into_iter().map(purged_to_wire).collect(),
        conversations: conversations.into_iter().map(purged_to_wire).collect(),
        evidence: signed(evidence),
        changes_by_hand: signed(words),
        attachments: signed(record.attachments.len() as u64),
        staying_conversation_ids: stay.into_iter().collect(),
        header: Some(core.header()),
    })
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
fn closed(dir: &Path, error: &StoreError) -> v1::Problem {
    v1::Problem {
        reason: "DATA_DIR".to_owned(),
        message: format!("the data directory {:?} cannot be looked into: {}", dir.display(), chain(error)),
        fix: "give your user the right to read and write it and all in it, then restart satchel".to_owned(),
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
                let fix = "restore the segment from a backup, or export what is left and begin a new data directory";
                problem("STORE_CORRUPT", format!("the journal is damaged, nothing is written: {damage}"), fix)
            })
            .collect(),
        Health::Stopped(reason) => {
            let fix = "look at the disk, then restart satchel; what was confirmed is safe";
            vec![problem("STORE_STOPPED", format!("nothing is written any more: {reason}"), fix)]
        }
        Health::ReadOnly(reason) => {
            let fix = "give the disk room, or make it writable, and run the command again";
            vec![problem("READ_ONLY", format!("what is stored is only read: {reason}"), fix)]
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
        memories_by_status: most_frequent(memories_by_status)
            .map(|(status, count)| v1::MemoryStatusCount {
                status: status_number(&status),
                count: signed(count),
            })
            .collect(),
        memories_by_type: most_frequent(memories_by_type)
            .map(|(kind, count)| v1::MemoryTypeCount { r#type: type_number(&kind), count: signed(count) })
            .collect(),
        memories_by_platform: platforms(memories_by_platform),
        conversations_by_platform: platforms(conversations_by_platform),
    }
}

/// Sorts by count, highest first; equal counts by name.
fn most_frequent(counted: BTreeMap<String, u64>) -> impl Iterator<Item = (String, u64)> {
    let mut counts: Vec<_> = counted.into_iter().filter(|(_, count)| *count > 0).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter()
}

fn platforms(counted: BTreeMap<String, u64>) -> Vec<v1::PlatformCount> {
    most_frequent(counted)
        .map(|(platform, count)| v1::PlatformCount { platform, count: signed(count) })
        .collect()
}

/// Parses a word of PAM. The store counts by PAM's words and contains no others.
fn status_number(word: &str) -> i32 {
    word.parse().map_or(v1::MemoryStatus::Unspecified.into(), status_to_wire)
}

fn type_number(word: &str) -> i32 {
    word.parse().map_or(v1::MemoryType::Unspecified.into(), memory_type_to_wire)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_most_frequent_first() {
        let counted =
            [("b", 2), ("a", 2), ("c", 9), ("gone", 0)].map(|(value, count)| (value.to_owned(), count));
        let order: Vec<_> = most_frequent(counted.into()).map(|(value, _)| value).collect();
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
