//! The change feed: what a client that applies it has, and how a stream begins, continues and ends.

mod access;
mod ends;
mod follower;
mod guarantees;
mod killed;
mod out_of_view;
mod starts;
mod writers;

use anyhow::{Context as _, Result};
use satchel_proto::v1::{self, watch_service_client::WatchServiceClient};
use tonic::{Status, Streaming, transport::Channel};
use tonic_types::StatusExt as _;

/// A filter of every memory, for lists. Without it they leave out memories that are not active.
fn every_status() -> v1::MemoryFilter {
    v1::MemoryFilter { statuses: (1..=5).collect(), include_expired: true, ..v1::MemoryFilter::default() }
}

/// Returns the reason of an error, and one of its metadata.
fn reason(status: &Status, key: &str) -> (String, Option<String>) {
    let info = status.get_details_error_info();
    info.map(|info| (info.reason, info.metadata.get(key).cloned())).unwrap_or_default()
}

async fn watch(
    channel: &Channel,
    request: v1::WatchChangesRequest,
) -> Result<Streaming<v1::WatchChangesResponse>, Status> {
    Ok(WatchServiceClient::new(channel.clone()).watch_changes(request).await?.into_inner())
}

/// Reads a stream until it ends, and returns the error.
async fn end_of(mut stream: Streaming<v1::WatchChangesResponse>) -> Result<Status> {
    loop {
        match stream.message().await {
            Ok(message) => drop(message.context("the stream ends without an error")?),
            Err(status) => return Ok(status),
        }
    }
}

fn after(revision: i64) -> v1::WatchChangesRequest {
    v1::WatchChangesRequest {
        after_revision: Some(revision),
        progress_interval: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        ..v1::WatchChangesRequest::default()
    }
}
