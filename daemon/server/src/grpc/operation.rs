//! `OperationService`: watches and cancels long-running operations, both imports and others.

mod registry;
mod watch;

use std::pin::Pin;

use satchel_proto::v1::{self, operation_service_server::OperationService};
use satchel_store::Cursor;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

pub use self::registry::Operations;
pub(super) use self::registry::{Outcome, Reporter, bytes};
use self::watch::{Followed, interval};
use super::{
    Core,
    call::fill,
    status::Fault,
    wire::{import::light_job_to_wire, scalar::bounded_count},
};

#[derive(Clone)]
pub(super) struct Operating {
    pub(super) core: Core,
    /// Becomes true when the daemon is about to stop.
    pub(super) stopping: tokio::sync::watch::Receiver<bool>,
}

type Watched = Pin<Box<dyn Stream<Item = Result<v1::WatchOperationResponse, Status>> + Send>>;

#[tonic::async_trait]
impl OperationService for Operating {
    type WatchOperationStream = Watched;

    async fn get_operation(
        &self,
        request: Request<v1::GetOperationRequest>,
    ) -> Result<Response<v1::GetOperationResponse>, Status> {
        let v1::GetOperationRequest { id } = request.into_inner();
        self.core
            .answer(move |core| {
                let operation = Some(Followed::find(core, &id)?.now());
                Ok(v1::GetOperationResponse { operation, header: Some(core.header()) })
            })
            .await
    }

    async fn list_operations(
        &self,
        request: Request<v1::ListOperationsRequest>,
    ) -> Result<Response<v1::ListOperationsResponse>, Status> {
        let request = request.into_inner();
        self.core.answer(|core| list(core, request)).await
    }

    async fn watch_operation(
        &self,
        request: Request<v1::WatchOperationRequest>,
    ) -> Result<Response<Watched>, Status> {
        let v1::WatchOperationRequest { id, min_interval } = request.into_inner();
        let interval = interval(min_interval)?;
        let operation = self.core.blocking(move |core| Followed::find(core, &id)).await?;
        let states = watch::states(self.core.clone(), self.stopping.clone(), operation, interval);
        Ok(Response::new(Box::pin(states)))
    }

    async fn cancel_operation(
        &self,
        request: Request<v1::CancelOperationRequest>,
    ) -> Result<Response<v1::CancelOperationResponse>, Status> {
        let v1::CancelOperationRequest { id } = request.into_inner();
        self.core
            .answer(move |core| {
                let operation = Followed::find(core, &id)?;
                if !core.operations.cancel(&id) {
                    core.imports.cancel(&id);
                }
                Ok(v1::CancelOperationResponse {
                    operation: Some(operation.now()),
                    header: Some(core.header()),
                })
            })
            .await
    }
}

fn list(core: &Core, mut request: v1::ListOperationsRequest) -> Result<v1::ListOperationsResponse, Fault> {
    let size = std::mem::take(&mut request.page_size);
    let token = std::mem::take(&mut request.page_token);
    let paging = core.paging("ListOperations", &request, size, &token)?;
    let states = wanted_states(&request.states)?;
    let mut all = core.operations.list();
    all.extend(core.imports.jobs().into_iter().map(light_job_to_wire));
    all.retain(|operation| states.is_empty() || states.contains(&operation.state()));
    all.sort_by_cached_key(|operation| std::cmp::Reverse(position(operation)));
    let page = |after: Option<&Cursor>, limit: usize| {
        // Continue after the position of the last row, not after its index, because newer operations may appear before
        // it.
        let passed =
            all.partition_point(|one| after.is_some_and(|after| position(one) >= after.as_bytes().to_vec()));
        let items: Vec<_> = all.iter().skip(passed).take(limit).cloned().collect();
        let more = passed + items.len() < all.len();
        let next = items.last().filter(|_| more).map(|last| Cursor::from_bytes(&position(last)));
        Ok(satchel_store::Page { items, next })
    };
    let (operations, next) = fill(paging.rows, paging.store_cursor(), page, Ok)?;
    let next = next.map(|cursor| cursor.as_bytes().to_vec());
    Ok(v1::ListOperationsResponse {
        operations,
        next_page_token: core.next_token(&paging, core.store.revision(), next),
        header: Some(core.header()),
    })
}

/// Returns the sort key of an operation: time and id.
fn position(operation: &v1::Operation) -> Vec<u8> {
    let at = operation.created_at.unwrap_or_default();
    let seconds = u64::try_from(at.seconds).unwrap_or(0).to_be_bytes();
    let nanos = u32::try_from(at.nanos).unwrap_or(0).to_be_bytes();
    [&seconds, &nanos[..], operation.id.as_bytes()].concat()
}

fn wanted_states(states: &[i32]) -> Result<Vec<v1::OperationState>, Fault> {
    bounded_count("states", states.len())?;
    let known = |state: &i32| match v1::OperationState::try_from(*state) {
        Ok(v1::OperationState::Unspecified) | Err(_) => {
            Err(Fault::field("states", format!("holds {state}, which is no known value")))
        }
        Ok(state) => Ok(state),
    };
    states.iter().map(known).collect()
}
