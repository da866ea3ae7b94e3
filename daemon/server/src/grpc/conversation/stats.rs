//! `GetConversationStats`.

use satchel_core::conversation_stats::{ConversationStats, Group, Grouping, LargestGroups, Totals};
use satchel_proto::{integers::signed, v1};

use super::has_attribution;
use crate::grpc::{
    call_state::CallState,
    status::CallError,
    wire::{conversation::filter_from_wire, scalar::known_micros_to_wire},
};

/// Rows of the list of conversations that are read at once.
const PAGE_ROWS: usize = 500;
const DEFAULT_GROUPS: usize = 50;
const MAX_GROUPS: usize = 1_000;

pub(super) fn get(
    state: &CallState,
    request: v1::GetConversationStatsRequest,
) -> Result<v1::GetConversationStatsResponse, CallError> {
    let v1::GetConversationStatsRequest { filter, group_by, max_groups } = request;
    let grouping = grouping_from_wire(group_by)?;
    let max_groups = match usize::try_from(max_groups) {
        Ok(0) => DEFAULT_GROUPS,
        Ok(wanted) => wanted.min(MAX_GROUPS),
        Err(_) => return Err(CallError::invalid_field("max_groups", "must not be negative")),
    };
    let (query, attributed) = filter_from_wire(filter)?;
    let (mut stats, revision, mut after) = (ConversationStats::new(grouping), state.store.revision(), None);
    loop {
        let page = state.store.conversations(&query, after.as_ref(), PAGE_ROWS, revision)?;
        for row in page.items {
            let shown = state.sees_conversation_summary(&row)?
                && has_attribution(state, &attributed, &row.id, revision)?;
            let record = if shown { state.store.conversation(&row.id, Some(revision))? } else { None };
            if let Some(record) = record {
                stats.add(&state.store, &record)?;
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let answer = groups_to_wire(stats.largest(max_groups));
    Ok(v1::GetConversationStatsResponse { header: Some(state.header_at(revision)), ..answer })
}

fn grouping_from_wire(wire: i32) -> Result<Grouping, CallError> {
    match v1::ConversationGrouping::try_from(wire) {
        Ok(v1::ConversationGrouping::Unspecified | v1::ConversationGrouping::Platform) => {
            Ok(Grouping::Platform)
        }
        Ok(v1::ConversationGrouping::Project) => Ok(Grouping::Project),
        Ok(v1::ConversationGrouping::Model) => Ok(Grouping::Model),
        Ok(v1::ConversationGrouping::Month) => Ok(Grouping::Month),
        Err(_) => {
            Err(CallError::invalid_field("group_by", format!("holds {wire}, which is not a known value")))
        }
    }
}

fn groups_to_wire(largest: LargestGroups) -> v1::GetConversationStatsResponse {
    let LargestGroups { groups, others, other_groups, total } = largest;
    let group_to_wire =
        |Group { name, totals }| v1::ConversationGroup { name, totals: Some(totals_to_wire(totals)) };
    v1::GetConversationStatsResponse {
        groups: groups.into_iter().map(group_to_wire).collect(),
        others: (other_groups > 0).then(|| totals_to_wire(others)),
        other_groups: signed(other_groups),
        total: Some(totals_to_wire(total)),
        header: None,
    }
}

fn totals_to_wire(totals: Totals) -> v1::ConversationTotals {
    let Totals { conversations, messages, tokens, cost_micros, times } = totals;
    v1::ConversationTotals {
        conversations: signed(conversations),
        messages: signed(messages),
        tokens: signed(tokens),
        cost_micros: signed(cost_micros),
        first_message_at: times.and_then(|(first, _)| known_micros_to_wire(first)),
        last_message_at: times.and_then(|(_, last)| known_micros_to_wire(last)),
    }
}
