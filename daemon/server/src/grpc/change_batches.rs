//! Sends changes in batches that fit into messages.

use std::{future::Future, time::Duration};

use prost::encoding::encoded_len_varint;
use satchel_core::sync::{RecordFilter, Sync, SyncError};
use satchel_sync::SignedChange;
use tokio::runtime::Handle;

/// Bytes at which a message ends. One change may have 3 MiB and what it says about itself, and a message 4 MiB.
const BATCH_BYTES: usize = 1 << 20;
/// Changes of one message.
const BATCH_CHANGES: usize = 4_096;

/// Takes a change; returns false when no more is wanted.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(SignedChange) -> bool;

/// Passes changes to the last argument, with the payloads that the filter includes, as long as the third one returns true.
pub(crate) trait ReadChanges:
    FnOnce(&Sync, Option<&dyn RecordFilter>, &dyn Fn() -> bool, Visit<'_>) -> Result<(), SyncError>
    + Send
    + 'static
{
}

impl<T> ReadChanges for T where
    T: FnOnce(&Sync, Option<&dyn RecordFilter>, &dyn Fn() -> bool, Visit<'_>) -> Result<(), SyncError>
        + Send
        + 'static
{
}

/// How the sending of batches ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchesEnd {
    /// All were sent: so many changes.
    Done(u64),
    /// The reader took nothing for too long, or is gone.
    NotRead,
}

/// Passes the changes that `read_changes` visits to `send`, encoded and in batches. `send` returns false if there is nobody to send to, and may take
/// `stall` for each batch. Blocks; must be called on a thread of the runtime that may block.
///
/// # Errors
/// When the store cannot be read.
pub(crate) fn send_batches<S: Future<Output = bool>>(
    read_changes: impl FnOnce(Visit<'_>) -> Result<(), SyncError>,
    stall: Duration,
    mut send: impl FnMut(Vec<Vec<u8>>) -> S,
) -> Result<BatchesEnd, SyncError> {
    let runtime = Handle::current();
    let mut send =
        |batch| runtime.block_on(async { tokio::time::timeout(stall, send(batch)).await.unwrap_or(false) });
    let (mut batch, mut bytes, mut sent, mut read) = (Vec::new(), 0, 0_u64, true);
    read_changes(&mut |change| {
        let encoded = change.encode();
        let length = 1 + encoded_len_varint(encoded.len() as u64) + encoded.len();
        if !batch.is_empty() && (bytes + length > BATCH_BYTES || batch.len() == BATCH_CHANGES) {
            read = send(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes += length;
        sent += 1;
        batch.push(encoded);
        read
    })?;
    if read && !batch.is_empty() {
        read = send(batch);
    }
    Ok(if read { BatchesEnd::Done(sent) } else { BatchesEnd::NotRead })
}
