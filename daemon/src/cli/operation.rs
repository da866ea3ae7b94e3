//! Follows an operation of the daemon to its end.

use satchel_proto::v1::{
    CancelOperationRequest, Operation, WatchOperationRequest, operation,
    operation_service_client::OperationServiceClient,
};
use tonic::{Status, transport::Channel};

use super::{
    client::{DaemonClient, StartedOperation},
    error::CliError,
};

/// Follows `operation` to its end and returns its last state. `show` is called with each state.
///
/// # Errors
/// Fails if the daemon goes away before the operation has ended.
pub(super) async fn follow(
    mut client: OperationServiceClient<Channel>,
    operation: Operation,
    mut show: impl FnMut(&Operation),
) -> Result<Operation, CliError> {
    let request = WatchOperationRequest { id: operation.id.clone(), min_interval: None };
    let mut states = client.watch_operation(request).await?.into_inner();
    let mut last = operation;
    while let Some(state) = states.message().await? {
        last = state.operation.unwrap_or(last);
        show(&last);
    }
    if last.ended() {
        Ok(last)
    } else {
        Err(Status::unavailable("the connection to the daemon was lost before the operation ended").into())
    }
}

impl DaemonClient {
    /// Makes a call that starts an operation, and returns its answer. Until [`DaemonClient::result_of`] knows the operation,
    /// an interruption of the command waits for the answer: otherwise the operation would go on without it.
    ///
    /// # Errors
    /// Fails with the error of the call.
    pub(super) async fn start<T>(
        &self,
        call: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, CliError> {
        self.started().send_replace(StartedOperation::Asked);
        let answer = call.await;
        if answer.is_err() {
            self.started().send_replace(StartedOperation::None);
        }
        Ok(answer?.into_inner())
    }

    /// Waits until no call that starts an operation is under way.
    pub(super) async fn answered(&self) {
        let mut started = self.started().subscribe();
        // Fails only if the sender is gone, which `self` holds.
        drop(started.wait_for(|started| *started != StartedOperation::Asked).await);
    }

    /// Follows an operation that this command has started, and returns its result. If the command is interrupted
    /// meanwhile, [`DaemonClient::cancel_started`] cancels the operation.
    ///
    /// # Errors
    /// Fails with the error of the operation, as a plain call would have, or if the daemon goes away.
    pub(super) async fn result_of(
        &self,
        operation: Option<Operation>,
        show: impl FnMut(&Operation),
    ) -> Result<operation::Result, CliError> {
        let running = operation
            .as_ref()
            .map_or(StartedOperation::None, |operation| StartedOperation::Running(operation.id.clone()));
        self.started().send_replace(running);
        let operation = operation.ok_or_else(|| Status::internal("the daemon returned no operation"))?;
        let ended = follow(self.operations(), operation, show).await?;
        self.started().send_replace(StartedOperation::None);
        Ok(ended.into_result()?)
    }

    /// Cancels the operation that this command has started, if there is one, and waits for its end.
    ///
    /// # Errors
    /// Fails if the daemon goes away.
    pub(super) async fn cancel_started(&self) -> Result<(), CliError> {
        let started = self.started().send_replace(StartedOperation::None);
        let StartedOperation::Running(id) = started else { return Ok(()) };
        let cancelled = self.operations().cancel_operation(CancelOperationRequest { id }).await?;
        if let Some(operation) = cancelled.into_inner().operation {
            follow(self.operations(), operation, |_| {}).await?;
        }
        Ok(())
    }
}

/// Returns the error for an operation whose result does not fit its method.
pub(super) fn unexpected_result() -> CliError {
    Status::internal("the daemon returned the result of another kind of operation").into()
}
