//! Long-running operations of a daemon, started and followed until they end.

use satchel_proto::v1::{
    self, Operation, WatchOperationRequest, admin_service_client::AdminServiceClient,
    export_service_client::ExportServiceClient, import_service_client::ImportServiceClient,
    operation::Result as Reached, operation_service_client::OperationServiceClient,
};
use tonic::{Status, transport::Channel};

type RpcResult<T> = Result<T, Status>;

/// Follows an operation until it has ended and returns its last state.
///
/// # Errors
/// If the daemon refuses the call or becomes unavailable.
pub async fn wait(channel: &Channel, id: &str) -> RpcResult<Operation> {
    states(channel, id).await?.pop().ok_or_else(|| Status::unavailable("no state was sent"))
}

/// Follows an operation until it has ended and returns every state that was sent.
///
/// # Errors
/// If the daemon refuses the call or becomes unavailable.
pub async fn states(channel: &Channel, id: &str) -> RpcResult<Vec<Operation>> {
    let request = WatchOperationRequest { id: id.to_owned(), min_interval: None };
    let mut answers =
        OperationServiceClient::new(channel.clone()).watch_operation(request).await?.into_inner();
    let mut states = Vec::new();
    while let Some(answer) = answers.message().await? {
        states.extend(answer.operation);
    }
    Ok(states)
}

async fn wait_for_result(channel: &Channel, started: Option<Operation>) -> RpcResult<Reached> {
    let started = started.ok_or_else(|| Status::internal("no operation was started"))?;
    wait(channel, &started.id).await?.into_result()
}

fn wrong_result_kind<T>() -> RpcResult<T> {
    Err(Status::internal("the result is of another kind"))
}

/// Makes an export.
///
/// # Errors
/// If the call or the operation fails.
pub async fn export(channel: &Channel, request: v1::CreateExportRequest) -> RpcResult<v1::Export> {
    let started = ExportServiceClient::new(channel.clone()).create_export(request).await?.into_inner();
    match wait_for_result(channel, started.operation).await? {
        Reached::Export(export) => Ok(export),
        _ => wrong_result_kind(),
    }
}

/// Verifies a bundle.
///
/// # Errors
/// If the call or the operation fails.
pub async fn verify(
    channel: &Channel,
    request: v1::VerifyExportRequest,
) -> RpcResult<v1::BundleVerification> {
    let started = ExportServiceClient::new(channel.clone()).verify_export(request).await?.into_inner();
    match wait_for_result(channel, started.operation).await? {
        Reached::Verification(verification) => Ok(verification),
        _ => wrong_result_kind(),
    }
}

/// Undoes an import.
///
/// # Errors
/// If the call or the operation fails.
pub async fn undo(channel: &Channel, request: v1::UndoImportRequest) -> RpcResult<v1::ImportReversal> {
    let started = ImportServiceClient::new(channel.clone()).undo_import(request).await?.into_inner();
    reversal(wait_for_result(channel, started.operation).await?)
}

/// Redoes an import.
///
/// # Errors
/// If the call or the operation fails.
pub async fn redo(channel: &Channel, request: v1::RedoImportRequest) -> RpcResult<v1::ImportReversal> {
    let started = ImportServiceClient::new(channel.clone()).redo_import(request).await?.into_inner();
    reversal(wait_for_result(channel, started.operation).await?)
}

fn reversal(reached: Reached) -> RpcResult<v1::ImportReversal> {
    match reached {
        Reached::Reversal(reversal) => Ok(reversal),
        _ => wrong_result_kind(),
    }
}

/// Writes a backup.
///
/// # Errors
/// If the call or the operation fails.
pub async fn backup(channel: &Channel, request: v1::CreateBackupRequest) -> RpcResult<v1::Backup> {
    let started = AdminServiceClient::new(channel.clone()).create_backup(request).await?.into_inner();
    match wait_for_result(channel, started.operation).await? {
        Reached::Backup(backup) => Ok(backup),
        _ => wrong_result_kind(),
    }
}

/// Verifies the store.
///
/// # Errors
/// If the call or the operation fails.
pub async fn verify_store(channel: &Channel) -> RpcResult<v1::StoreCheck> {
    let request = v1::VerifyStoreRequest {};
    let started = AdminServiceClient::new(channel.clone()).verify_store(request).await?.into_inner();
    match wait_for_result(channel, started.operation).await? {
        Reached::StoreCheck(check) => Ok(check),
        _ => wrong_result_kind(),
    }
}
