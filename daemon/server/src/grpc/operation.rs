//! `OperationService`: watches and cancels long-running operations, both imports and others.

mod registry;
mod watch;

use std::pin::Pin;

use satchel_proto::v1::{self, operation_service_server::OperationService};
use satchel_store::Cursor;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

pub use self::registry::Operations;
pub(super) use self::registry::{OperationReporter, WorkOutcome, bytes_progress};
use self::watch::{WatchedOperation, interval};
use super::{
    ServerState,
    request::fill_page,
    status::CallError,
    wire::{import::job_summary_to_wire, scalar::check_count},
};

#[derive(Clone)]
pub(super) struct OperationHandler {
    pub(super) state: ServerState,
    /// Becomes true when the daemon is about to stop.
    pub(super) stopping: tokio::sync::watch::Receiver<bool>,
}

type OperationStream = Pin<Box<dyn Stream<Item = Result<v1::WatchOperationResponse, Status>> + Send>>;

#[tonic::async_trait]
impl OperationService for OperationHandler {
    type WatchOperationStream = OperationStream;

    async fn get_operation(
        &self,
        request: Request<v1::GetOperationRequest>,
    ) -> Result<Response<v1::GetOperationResponse>, Status> {
        let v1::GetOperationRequest { id } = request.into_inner();
        self.state
            .respond(move |state| {
                let operation = Some(WatchedOperation::find(state, &id)?.snapshot());
                Ok(v1::GetOperationResponse { operation, header: Some(state.header()) })
            })
            .await
    }

    async fn list_operations(
        &self,
        request: Request<v1::ListOperationsRequest>,
    ) -> Result<Response<v1::ListOperationsResponse>, Status> {
        let request = request.into_inner();
        self.state.respond(|state| list(state, request)).await
    }

    async fn watch_operation(
        &self,
        request: Request<v1::WatchOperationRequest>,
    ) -> Result<Response<OperationStream>, Status> {
        let v1::WatchOperationRequest { id, min_interval } = request.into_inner();
        let interval = interval(min_interval)?;
        let operation = self.state.run_blocking(move |state| WatchedOperation::find(state, &id)).await?;
        let states = watch::stream_states(self.state.clone(), self.stopping.clone(), operation, interval);
        Ok(Response::new(Box::pin(states)))
    }

    async fn cancel_operation(
        &self,
        request: Request<v1::CancelOperationRequest>,
    ) -> Result<Response<v1::CancelOperationResponse>, Status> {
        let v1::CancelOperationRequest { id } = request.into_inner();
        self.state
            .respond(move |state| {
                let operation = WatchedOperation::find(state, &id)?;
                if !state.operations.cancel(&id) {
                    state.imports.cancel(&id);
                }
                Ok(v1::CancelOperationResponse {
                    operation: Some(operation.snapshot()),
                    header: Some(state.header()),
                })
            })
            .await
    }
}

fn list(
    state: &ServerState,
    mut request: v1::ListOperationsRequest,
) -> Result<v1::ListOperationsResponse, CallError> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let page = state.page_request("ListOperations", &request, size, &token)?;
    let states = states_from_wire(&request.states)?;
    let mut all = state.operations.list();
    all.extend(state.imports.jobs().into_iter().map(job_summary_to_wire));
    all.retain(|operation| states.is_empty() || states.contains(&operation.state()));
    all.sort_by_cached_key(|operation| std::cmp::Reverse(sort_key(operation)));
    let fetch = |after: Option<&Cursor>, limit: usize| {
        // Continue after the position of the last row, not after its index, because newer operations may appear before
        // it.
        let start =
            all.partition_point(|one| after.is_some_and(|after| sort_key(one) >= after.as_bytes().to_vec()));
        let items: Vec<_> = all.iter().skip(start).take(limit).cloned().collect();
        let more = start + items.len() < all.len();
        let next = items.last().filter(|_| more).map(|last| Cursor::from_bytes(&sort_key(last)));
        Ok(satchel_store::Page { items, next })
    };
    let (operations, next) = fill_page(page.rows, page.store_cursor(), fetch, Ok)?;
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListOperationsResponse {
        operations,
        next_page_token: state.next_token(&page, state.store.revision(), next),
        header: Some(state.header()),
    })
}

/// Returns the sort key of an operation: time and id.
fn sort_key(operation: &v1::Operation) -> Vec<u8> {
    let at = operation.created_at.unwrap_or_default();
    let seconds = u64::try_from(at.seconds).unwrap_or(0).to_be_bytes();
    let nanos = u32::try_from(at.nanos).unwrap_or(0).to_be_bytes();
    [&seconds, &nanos[..], operation.id.as_bytes()].concat()
}

fn states_from_wire(states: &[i32]) -> Result<Vec<v1::OperationState>, CallError> {
    check_count("states", states.len())?;
    let known = |state: &i32| match v1::OperationState::try_from(*state) {
        Ok(v1::OperationState::Unspecified) | Err(_) => {
            Err(CallError::invalid_field("states", format!("holds {state}, which is not a known value")))
        }
        Ok(state) => Ok(state),
    };
    states.iter().map(known).collect()
}
