//! Tells a peer which payloads it does not get any more, and takes out what a peer has taken back.

use satchel_core::sync::{PayloadRange, Revoked};
use satchel_proto::{integers::signed, v1};
use tokio_stream::StreamExt as _;
use tonic::{Response, Status, Streaming};

use super::{
    call_state::CallState,
    status::CallError,
    sync::{STALL_TIMEOUT, check_not_paused, check_order, key_of, note},
    wire::sync::{range_from_wire, range_to_wire},
};
use crate::peers::{MAX_WITHHELD_RANGES, SelectionFilter, WITHHELD_RANGES};

/// Returns the messages that name the changes whose payloads this store has and does not give to the caller.
pub(super) async fn download(state: &CallState) -> Result<Vec<v1::DownloadWithheldRangesResponse>, Status> {
    let withheld = state.run_blocking(withheld_from_caller).await?;
    let header = state.header();
    let messages = withheld.chunks(WITHHELD_RANGES).take(MAX_WITHHELD_RANGES / WITHHELD_RANGES);
    let message = |some: &[PayloadRange]| v1::DownloadWithheldRangesResponse {
        ranges: some.iter().map(range_to_wire).collect(),
        header: Some(header.clone()),
    };
    Ok(messages.map(message).collect())
}

fn withheld_from_caller(state: &CallState) -> Result<Vec<PayloadRange>, CallError> {
    let filter = state.peers.filter_of_device(state.device());
    Ok(match SelectionFilter::of(filter.as_ref()) {
        Some(filter) => state.peers.sync().withheld_payloads(filter)?,
        None => Vec::new(),
    })
}

/// Takes out what the caller has taken back.
pub(super) async fn upload(
    state: &CallState,
    mut stream: Streaming<v1::UploadWithheldRangesRequest>,
) -> Result<Response<v1::UploadWithheldRangesResponse>, Status> {
    let (mut withheld, seconds): (Vec<PayloadRange>, _) = (Vec::new(), STALL_TIMEOUT.as_secs());
    loop {
        let next = tokio::time::timeout(STALL_TIMEOUT, stream.next()).await;
        let Some(message) = next.map_err(|_| CallError::UploadStalled { seconds })?.transpose()? else {
            break;
        };
        for range in message.ranges {
            let range = range_from_wire(range).map_err(CallError::from)?;
            check_order(withheld.last(), &range)?;
            withheld.push(range);
        }
        if withheld.len() > MAX_WITHHELD_RANGES {
            let problem = format!("are more than {MAX_WITHHELD_RANGES}");
            return Err(CallError::invalid_field("ranges", problem).into());
        }
    }
    check_not_paused(state)?;
    let take_out = move |state: &CallState| {
        let is_peer = state.device().is_some();
        Ok(if is_peer { state.peers.take_out(key_of(state), &withheld)? } else { Revoked::default() })
    };
    let Revoked { records, again } = state.run_blocking(take_out).await?;
    note(state, None, 0, 0);
    Ok(Response::new(v1::UploadWithheldRangesResponse {
        removed_records: signed(records),
        incomplete: again,
        header: Some(state.header()),
    }))
}
