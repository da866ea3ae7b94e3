//! Limits on the calls of all callers together, and of the owner over the socket.

use std::sync::Arc;

use satchel_proto::Method;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limits::{CallShare, DeviceLimits};
use crate::grpc::{
    status::CallError,
    unread_limit::{MAX_UNREAD_BYTES, UnreadBytes},
};

/// Calls that are processed at once, of all connections; the others wait.
pub(super) const MAX_CONCURRENT_CALLS: usize = 32;
/// The same for long-running calls, which have no time limit.
const MAX_CONCURRENT_LONG_CALLS: usize = 16;
/// Watches that the owner may hold at once, over the socket. Each costs some KiB, and a query at each change.
pub(super) const MAX_OWNER_WATCHES: usize = 2_048;
/// The download methods. A folder is packed before its download begins, which may take long.
pub(super) const DOWNLOAD_METHODS: [&str; 7] = [
    "/satchel.v1.ExportService/DownloadExport",
    "/satchel.v1.AttachmentService/DownloadAttachment",
    "/satchel.v1.SyncService/DownloadChanges",
    "/satchel.v1.SyncService/DownloadPayloads",
    "/satchel.v1.SyncService/DownloadWithheldRanges",
    "/satchel.v1.SyncService/DownloadFile",
    "/satchel.v1.PeerService/DownloadChangeFile",
];
/// The methods whose responses count as watches.
pub(super) const WATCH_METHODS: [&str; 2] =
    ["/satchel.v1.WatchService/WatchChanges", "/satchel.v1.SyncService/WatchFrontier"];

/// The limits on all concurrent calls; clones share them.
#[derive(Clone, Debug)]
pub(super) struct CallLimits {
    pub(super) short: Arc<Semaphore>,
    long: Arc<Semaphore>,
    pub(super) unread: UnreadBytes,
    pub(super) devices: DeviceLimits,
    /// Watches of the owner, over the socket.
    owner_watches: Arc<Semaphore>,
    /// The part of the limits for all clients without credentials together: they may only pair and read the health.
    pub(super) unpaired: CallShare,
}

impl Default for CallLimits {
    fn default() -> Self {
        let semaphore = |calls| Arc::new(Semaphore::new(calls));
        Self {
            short: semaphore(MAX_CONCURRENT_CALLS),
            long: semaphore(MAX_CONCURRENT_LONG_CALLS),
            unread: UnreadBytes::new(MAX_UNREAD_BYTES),
            devices: DeviceLimits::default(),
            owner_watches: semaphore(MAX_OWNER_WATCHES),
            unpaired: CallShare::default(),
        }
    }
}

impl CallLimits {
    /// Returns the permit that a response holds until it ends: of a download of a device, or of a watch of the owner.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn held_permit(
        &self,
        method: Option<&Method>,
        share: Option<&CallShare>,
    ) -> Result<Option<OwnedSemaphorePermit>, CallError> {
        let path = method.map_or("", |method| method.path);
        match share {
            Some(share) if DOWNLOAD_METHODS.contains(&path) => share.download().map(Some),
            None if WATCH_METHODS.contains(&path) => {
                let busy = || {
                    CallError::Busy(format!("{MAX_OWNER_WATCHES} watches are held already; end one of them"))
                };
                Arc::clone(&self.owner_watches).try_acquire_owned().map(Some).map_err(|_| busy())
            }
            _ => Ok(None),
        }
    }

    /// Waits for the permits of a call: first one of the caller's share, so that calls that wait for it take none of the
    /// others' permits.
    pub(super) async fn short_permits(&self, share: Option<&CallShare>) -> Vec<OwnedSemaphorePermit> {
        acquire(share.map(|share| &share.short), &self.short).await
    }

    /// The same for a long-running call.
    pub(super) async fn long_permits(&self, share: Option<&CallShare>) -> Vec<OwnedSemaphorePermit> {
        acquire(share.map(|share| &share.long), &self.long).await
    }
}

async fn acquire(share: Option<&Arc<Semaphore>>, all: &Arc<Semaphore>) -> Vec<OwnedSemaphorePermit> {
    let mut permits = Vec::with_capacity(2);
    for semaphore in share.into_iter().chain([all]) {
        // The semaphores are never closed.
        permits.extend(Arc::clone(semaphore).acquire_owned().await);
    }
    permits
}
