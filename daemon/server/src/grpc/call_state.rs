//! The state of the daemon for one call, and who makes the call.

use std::{
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use satchel_devices::Device;
use satchel_proto::{integers::signed, v1};
use satchel_store::Revision;
use tokio::sync::Semaphore;
use tonic::{Extensions, Request, Response, Status};

use super::{ServerState, status::CallError};

/// Who makes a call. [`Guard`](super::guard::Guard) puts it into the extensions of each request.
#[derive(Clone, Debug)]
pub(super) enum Caller {
    /// The owner, over the Unix socket.
    Owner,
    /// A device, as it was registered when the call began.
    Device(Arc<Device>),
    /// A client over TLS that has no credentials. It reaches only the method that pairs it.
    Unpaired,
}

/// The permits for reading of the device that calls. [`Guard`](super::guard::Guard) puts them into the extensions of each
/// request of a device that only reads.
#[derive(Clone, Debug)]
pub(super) struct ReadingPermits(pub(super) Arc<Semaphore>);

/// The state of the daemon for one call.
#[derive(Clone)]
pub(super) struct CallState {
    server: ServerState,
    caller: Caller,
    reading: Option<ReadingPermits>,
}

impl Deref for CallState {
    type Target = ServerState;

    fn deref(&self) -> &ServerState {
        &self.server
    }
}

impl CallState {
    /// Returns the state for the call that made `request`.
    ///
    /// # Errors
    /// A bug: the request did not pass the guard.
    pub(super) fn of<T>(server: &ServerState, request: &Request<T>) -> Result<Self, Status> {
        Self::new(server, request.extensions())
    }

    fn new(server: &ServerState, extensions: &Extensions) -> Result<Self, Status> {
        let caller = extensions.get::<Caller>().cloned();
        match caller {
            Some(Caller::Unpaired) => Err(CallError::NoCredentials.into()),
            Some(caller) => {
                let reading = extensions.get::<ReadingPermits>().cloned();
                Ok(Self { server: server.clone(), caller, reading })
            }
            None => Err(CallError::internal("the caller of a request is not known").into()),
        }
    }

    /// Returns the device that calls; `None` for the owner.
    pub(super) fn device(&self) -> Option<&Device> {
        match &self.caller {
            Caller::Device(device) => Some(device),
            // An unpaired caller has no call state.
            Caller::Owner | Caller::Unpaired => None,
        }
    }

    /// Runs `work` on a thread that may block on the disk, and returns its result as the response.
    pub(super) async fn respond<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, CallError> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        Ok(Response::new(self.run_blocking(work).await?))
    }

    /// Runs `work`, which only reads a few records, on this thread if [`ShortReads`](super::short_reads::ShortReads)
    /// allows it, and otherwise as [`CallState::respond`]. Returns its result as the response.
    pub(super) async fn respond_short<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, CallError> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let Some(_place) = self.short_reads.place() else { return self.respond(work).await };
        self.plugins.pace().request_arrived();
        // As on a thread of its own, a panic is the error of this call alone.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(self)));
        Ok(Response::new(outcome.unwrap_or_else(|_| Err(CallError::internal("a read panicked")))?))
    }

    /// Runs `work` on a thread that may block on the disk.
    pub(super) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, Status> {
        // The semaphore is never closed. The permit ends with the work, even if nobody waits for it any more.
        let permit = match &self.reading {
            Some(ReadingPermits(permits)) => Arc::clone(permits).acquire_owned().await.ok(),
            None => None,
        };
        self.plugins.pace().request_arrived();
        let state = self.clone();
        let span = tracing::Span::current();
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            span.in_scope(|| work(&state))
        });
        let outcome = task.await.unwrap_or_else(|error| Err(CallError::internal(error)));
        outcome.map_err(Status::from)
    }

    /// Returns the header of a response that shows `revision`.
    pub(super) fn header_at(&self, revision: Revision) -> v1::StoreHeader {
        v1::StoreHeader { store_id: self.store.store_id().to_string(), revision: signed(revision.get()) }
    }

    /// Returns the header of a response that shows the current state of the store.
    pub(super) fn header(&self) -> v1::StoreHeader {
        self.header_at(self.store.revision())
    }
}
