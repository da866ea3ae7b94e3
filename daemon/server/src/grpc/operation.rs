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
    call_state::CallState,
    request::{page_request, service},
    status::CallError,
    wire::{import::job_summary_to_wire, scalar::check_count},
};

/// The service, with a value that becomes true when the daemon is about to stop.
#[derive(Clone)]
pub(super) struct OperationHandler(pub(super) ServerState, pub(super) tokio::sync::watch::Receiver<bool>);

type OperationStream = Pin<Box<dyn Stream<Item = Result<v1::WatchOperationResponse, Status>> + Send>>;

service!(OperationService for OperationHandler {
    get_operation: GetOperationRequest => GetOperationResponse = get;
    list_operations: ListOperationsRequest => ListOperationsResponse = list;
    cancel_operation: CancelOperationRequest => CancelOperationResponse = cancel;
    ..
    type WatchOperationStream = OperationStream;

    async fn watch_operation(
        &self,
        request: Request<v1::WatchOperationRequest>,
    ) -> Result<Response<OperationStream>, Status> {
        let state = CallState::of(&self.0, &request)?;
        let v1::WatchOperationRequest { id, min_interval } = request.into_inner();
        let interval = interval(min_interval)?;
        let operation = state.run_blocking(move |state| WatchedOperation::find(state, &id)).await?;
        let states = watch::stream_states(state, self.1.clone(), operation, interval);
        Ok(Response::new(Box::pin(states)))
    }
});

fn get(state: &CallState, request: v1::GetOperationRequest) -> Result<v1::GetOperationResponse, CallError> {
    let operation = Some(WatchedOperation::find(state, &request.id)?.snapshot());
    Ok(v1::GetOperationResponse { operation, header: Some(state.header()) })
}

fn cancel(
    state: &CallState,
    request: v1::CancelOperationRequest,
) -> Result<v1::CancelOperationResponse, CallError> {
    let v1::CancelOperationRequest { id } = request;
    let operation = WatchedOperation::find(state, &id)?;
    if !state.operations.cancel(&id) {
        state.imports.cancel(&id);
    }
    Ok(v1::CancelOperationResponse { operation: Some(operation.snapshot()), header: Some(state.header()) })
}

fn list(
    state: &CallState,
    mut request: v1::ListOperationsRequest,
) -> Result<v1::ListOperationsResponse, CallError> {
    let page = page_request!(state, "ListOperations", request)?;
    let states = states_from_wire(&request.states)?;
    let mut all = state.operations.list();
    all.extend(state.imports.jobs().into_iter().map(job_summary_to_wire));
    all.retain(|operation| state.sees_operation(operation.kind()));
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
    let (operations, next_page_token) = state.fill(&page, fetch, Ok)?;
    Ok(v1::ListOperationsResponse { operations, next_page_token, header: Some(state.header()) })
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
