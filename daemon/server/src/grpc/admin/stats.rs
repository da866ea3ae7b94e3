//! Statistics of what a caller sees that does not see everything.

use satchel_store::{ConversationQuery, MemoryQuery, Stats};

use crate::grpc::{call_state::CallState, status::CallError};

/// Rows that are read at once.
const PAGE_ROWS: usize = 500;

/// Counts the records that the caller sees, as of the current revision.
pub(super) fn visible(state: &CallState) -> Result<Stats, CallError> {
    let mut stats = Stats::default();
    count_memories(state, &mut stats)?;
    count_conversations(state, &mut stats)?;
    count_relations(state, &mut stats)?;
    Ok(stats)
}

fn count_memories(state: &CallState, stats: &mut Stats) -> Result<(), CallError> {
    let (query, revision, mut after) = (MemoryQuery::default(), state.store.revision(), None);
    loop {
        let page = state.store.memories(&query, after.as_ref(), PAGE_ROWS, revision)?;
        for record in page.items {
            let Some(record) = state.only_visible(Some(record))? else { continue };
            let memory = record.memory;
            stats.memories += 1;
            *stats.memories_by_type.entry(memory.memory_type.as_str().to_owned()).or_default() += 1;
            *stats.memories_by_status.entry(memory.status.as_str().to_owned()).or_default() += 1;
            *stats.memories_by_platform.entry(memory.provenance.platform).or_default() += 1;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn count_conversations(state: &CallState, stats: &mut Stats) -> Result<(), CallError> {
    let (query, revision, mut after) = (ConversationQuery::default(), state.store.revision(), None);
    loop {
        let page = state.store.conversations(&query, after.as_ref(), PAGE_ROWS, revision)?;
        for summary in page.items {
            if state.sees_conversation_summary(&summary)? {
                stats.conversations += 1;
                stats.messages += u64::from(summary.messages);
                *stats.conversations_by_platform.entry(summary.platform).or_default() += 1;
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn count_relations(state: &CallState, stats: &mut Stats) -> Result<(), CallError> {
    let (revision, mut after) = (state.store.revision(), None);
    loop {
        let page = state.store.relations(after.as_ref(), PAGE_ROWS, revision)?;
        for record in page.items {
            stats.relations += u64::from(state.sees_relation(&record)?);
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}
