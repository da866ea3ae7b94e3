//! Follows an operation of the daemon to its end.

use satchel_proto::v1::{
    CancelOperationRequest, Operation, WatchOperationRequest, operation,
    operation_service_client::OperationServiceClient,
};
use tonic::{Status, transport::Channel};

use super::{client::DaemonClient, error::CliError};

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
        let operation = operation.ok_or_else(|| Status::internal("the daemon returned no operation"))?;
        self.replace_operation(Some(operation.id.clone()));
        let ended = follow(self.operations(), operation, show).await?;
        self.replace_operation(None);
        Ok(ended.into_result()?)
    }

    /// Cancels the operation that this command has started, if there is one, and waits for its end.
    ///
    /// # Errors
    /// Fails if the daemon goes away.
    pub(super) async fn cancel_started(&self) -> Result<(), CliError> {
        let Some(id) = self.replace_operation(None) else { return Ok(()) };
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
