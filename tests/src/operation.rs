//! Long-running operations of a daemon, started and followed until they end.

use satchel_proto::v1::{
    self, Operation, WatchOperationRequest, admin_service_client::AdminServiceClient,
    export_service_client::ExportServiceClient, import_service_client::ImportServiceClient,
    operation::Result as Reached, operation_service_client::OperationServiceClient,
};
use tonic::{Status, transport::Channel};

type Outcome<T> = Result<T, Status>;

/// Follows an operation until it has ended and returns its last state.
///
/// # Errors
/// If the daemon refuses the call or becomes unavailable.
pub async fn ended(channel: &Channel, id: &str) -> Outcome<Operation> {
    states(channel, id).await?.pop().ok_or_else(|| Status::unavailable("no state was sent"))
}

/// Follows an operation until it has ended and returns every state that was sent.
///
/// # Errors
/// If the daemon refuses the call or becomes unavailable.
pub async fn states(channel: &Channel, id: &str) -> Outcome<Vec<Operation>> {
    let request = WatchOperationRequest { id: id.to_owned(), min_interval: None };
    let mut answers =
        OperationServiceClient::new(channel.clone()).watch_operation(request).await?.into_inner();
    let mut states = Vec::new();
    while let Some(answer) = answers.message().await? {
        states.extend(answer.operation);
    }
    Ok(states)
}

async fn result(channel: &Channel, started: Option<Operation>) -> Outcome<Reached> {
    let started = started.ok_or_else(|| Status::internal("no operation was started"))?;
    ended(channel, &started.id).await?.into_result()
}

fn other<T>() -> Outcome<T> {
    Err(Status::internal("the result is of another kind"))
}

/// Makes an export.
///
/// # Errors
/// If the call or the operation fails.
pub async fn export(channel: &Channel, request: v1::CreateExportRequest) -> Outcome<v1::Export> {
    let started = ExportServiceClient::new(channel.clone()).create_export(request).await?.into_inner();
    match result(channel, started.operation).await? {
        Reached::Export(export) => Ok(export),
        _ => other(),
    }
}

/// Verifies a bundle.
///
/// # Errors
/// If the call or the operation fails.
pub async fn verify(channel: &Channel, request: v1::VerifyExportRequest) -> Outcome<v1::BundleVerification> {
    let started = ExportServiceClient::new(channel.clone()).verify_export(request).await?.into_inner();
    match result(channel, started.operation).await? {
        Reached::Verification(verification) => Ok(verification),
        _ => other(),
    }
}

/// Undoes an import.
///
/// # Errors
/// If the call or the operation fails.
pub async fn undo(channel: &Channel, request: v1::UndoImportRequest) -> Outcome<v1::ImportReversal> {
    let started = ImportServiceClient::new(channel.clone()).undo_import(request).await?.into_inner();
    reversal(result(channel, started.operation).await?)
}

/// Redoes an import.
///
/// # Errors
/// If the call or the operation fails.
pub async fn redo(channel: &Channel, request: v1::RedoImportRequest) -> Outcome<v1::ImportReversal> {
    let started = ImportServiceClient::new(channel.clone()).redo_import(request).await?.into_inner();
    reversal(result(channel, started.operation).await?)
}

fn reversal(reached: Reached) -> Outcome<v1::ImportReversal> {
    match reached {
        Reached::Reversal(reversal) => Ok(reversal),
        _ => other(),
    }
}

/// Writes a backup.
///
/// # Errors
/// If the call or the operation fails.
pub async fn backup(channel: &Channel, request: v1::CreateBackupRequest) -> Outcome<v1::Backup> {
    let started = AdminServiceClient::new(channel.clone()).create_backup(request).await?.into_inner();
    match result(channel, started.operation).await? {
        Reached::Backup(backup) => Ok(backup),
        _ => other(),
    }
}

/// Verifies the store.
///
/// # Errors
/// If the call or the operation fails.
pub async fn verify_store(channel: &Channel) -> Outcome<v1::StoreCheck> {
    let request = v1::VerifyStoreRequest {};
    let started = AdminServiceClient::new(channel.clone()).verify_store(request).await?.into_inner();
    match result(channel, started.operation).await? {
        Reached::StoreCheck(check) => Ok(check),
        _ => other(),
    }
}
