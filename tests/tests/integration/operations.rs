//! Long-running operations from a client's side: all are listed, followed and cancelled in the same way, and none
//! depends on a connection.

use std::{cell::Cell, path::Path};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify::{self, VerifyError};
use satchel_core::{
    export::{ExportError, ExportFormat, ExportRequest},
    integrity::check_while,
};
use satchel_proto::v1::{
    self, OperationKind, OperationState, admin_service_client::AdminServiceClient,
    export_service_client::ExportServiceClient, import_service_client::ImportServiceClient,
    operation::Result as Reached, operation_service_client::OperationServiceClient,
};
use satchel_server::connect::connect;
use satchel_source::CancelToken;
use satchel_store::StoreError;
use satchel_tests::{
    operation,
    test_core::{TestCore, demo_folder, full_export},
    test_daemon::{TestDaemon, chatgpt_export},
};
use tonic::Code;
use tonic_types::StatusExt as _;

fn export_request(folder: &Path, name: &str) -> v1::CreateExportRequest {
    v1::CreateExportRequest { output: folder.join(name).display().to_string(), ..Default::default() }
}

async fn list_operations(
    daemon: &TestDaemon,
    states: &[OperationState],
    page_size: i32,
) -> Result<Vec<v1::Operation>> {
    let mut client = OperationServiceClient::new(daemon.channel.clone());
    let states = states.iter().map(|state| i32::from(*state)).collect::<Vec<_>>();
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = v1::ListOperationsRequest { page_size, page_token, states: states.clone() };
        let page = client.list_operations(request).await?.into_inner();
        ensure!(page.operations.len() <= 2 && page.header.is_some());
        all.extend(page.operations);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(all);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_continues_when_its_caller_disconnects() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    daemon.import(&chatgpt_export(&daemon.folder.path().join("export"), 50)?).await?;
    let caller = connect(&daemon.data_dir()).await?;
    let call = export_request(daemon.folder.path(), "bundle.zip");
    let started = ExportServiceClient::new(caller).create_export(call).await?.into_inner();
    // The caller's connection is closed by now.
    let id = started.operation.context("an operation")?.id;
    let ended = operation::wait(&daemon.channel, &id).await?;
    let Reached::Export(export) = ended.into_result()? else { anyhow::bail!("no export") };
    assert_eq!(export.conversations, 50);
    let mut client = OperationServiceClient::new(daemon.channel.clone());
    let again = client.get_operation(v1::GetOperationRequest { id }).await?.into_inner().operation;
    assert_eq!(again.map(|operation| operation.into_result().ok()), Some(Some(Reached::Export(export))));
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_operation_is_listed() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let folder = daemon.folder.path();
    let imported = daemon.import(&demo_folder().join("claude-export")).await?;
    let import = imported.imports().first().context("an import")?.id.clone();
    let export = operation::export(&daemon.channel, export_request(folder, "bundle")).await?;
    let bundle = Some(v1::verify_export_request::Bundle::Id(export.id));
    let verification =
        operation::verify(&daemon.channel, v1::VerifyExportRequest { bundle, ..Default::default() }).await?;
    ensure!(verification.valid, "{verification:?}");
    let output = folder.join("backup").display().to_string();
    ensure!(operation::backup(&daemon.channel, v1::CreateBackupRequest { output }).await?.files > 0);
    ensure!(operation::verify_store(&daemon.channel).await?.problems.is_empty());
    let undo = v1::UndoImportRequest { id: import.clone(), ..Default::default() };
    ensure!(operation::undo(&daemon.channel, undo).await?.records > 0);
    let redo = v1::RedoImportRequest { id: import.clone(), ..Default::default() };
    ensure!(operation::redo(&daemon.channel, redo).await?.records > 0);
    let refused = operation::export(&daemon.channel, export_request(folder, "bundle")).await;
    let status = refused.err().context("the folder is not empty")?;
    assert_eq!(status.get_details_error_info().map(|info| info.reason), Some("OUTPUT_EXISTS".to_owned()));

    let all = list_operations(&daemon, &[], 2).await?;
    let kinds: Vec<OperationKind> = all.iter().map(v1::Operation::kind).collect();
    assert_eq!(
        kinds,
        [
            OperationKind::Export,
            OperationKind::RedoImport,
            OperationKind::UndoImport,
            OperationKind::VerifyStore,
            OperationKind::Backup,
            OperationKind::VerifyExport,
            OperationKind::Export,
            OperationKind::Import,
        ]
    );
    ensure!(all.iter().all(|one| one.ended() && one.finished_at.is_some() && one.created_at.is_some()));
    let failed = list_operations(&daemon, &[OperationState::Failed], 2).await?;
    assert_eq!(failed.iter().map(|one| &one.id).collect::<Vec<_>>(), [&all[0].id]);

    let mut client = OperationServiceClient::new(daemon.channel.clone());
    let by_import =
        client.get_operation(v1::GetOperationRequest { id: import }).await?.into_inner().operation;
    assert_eq!(by_import.map(|one| one.id), Some(imported.id));
    let stats = AdminServiceClient::new(daemon.channel.clone()).get_status(v1::GetStatusRequest {}).await?;
    assert_eq!(stats.into_inner().running_operations, 0);
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_operations_are_refused() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut client = OperationServiceClient::new(daemon.channel.clone());
    let id = || "00000000-0000-4000-8000-000000000000".to_owned();
    let missing = [
        client.get_operation(v1::GetOperationRequest { id: id() }).await.err(),
        client.watch_operation(v1::WatchOperationRequest { id: id(), min_interval: None }).await.err(),
        client.cancel_operation(v1::CancelOperationRequest { id: id() }).await.err(),
    ];
    for status in missing {
        let status = status.context("no operation has this id")?;
        let reason = status.get_details_error_info().map(|info| info.reason);
        assert_eq!((status.code(), reason.as_deref()), (Code::NotFound, Some("OPERATION_NOT_FOUND")));
    }
    for state in [0, 77] {
        let request = v1::ListOperationsRequest { states: vec![state], ..Default::default() };
        let status = client.list_operations(request).await.err().context("the call is refused")?;
        ensure!(status.code() == Code::InvalidArgument && status.message().contains("states"), "{status:?}");
    }
    let undo = v1::UndoImportRequest { id: id(), ..Default::default() };
    let started = ImportServiceClient::new(daemon.channel.clone()).undo_import(undo).await?.into_inner();
    let ended = operation::wait(&daemon.channel, &started.operation.context("an operation")?.id).await?;
    assert_eq!((ended.state(), ended.error.map(|error| error.code)), (OperationState::Failed, Some(5)));
    daemon.stop().await?;
    Ok(())
}

#[test]
fn an_export_that_is_cancelled_leaves_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    core.import(&demo_folder().join("claude-export"))?;
    for (format, name) in
        [(ExportFormat::Pam, "a.zip"), (ExportFormat::Pam, "a"), (ExportFormat::Markdown, "b")]
    {
        let seen = Cell::new(0);
        let output = folder.path().join(name);
        let request = ExportRequest { format, ..full_export(output.clone()) };
        let on_progress = |_| {
            seen.set(seen.get() + 1);
            seen.get() < 3
        };
        let cancelled = core.exports.create_with_progress(&request, &on_progress);
        ensure!(matches!(cancelled, Err(ExportError::Cancelled)), "{cancelled:?}");
        ensure!(seen.get() == 3 && !output.exists(), "{name}");
        core.exports.create(&request)?;
    }
    let left = std::fs::read_dir(folder.path())?.count();
    assert_eq!(left, 4, "the data, and three exports");
    Ok(())
}

#[test]
fn cancelled_verifications_return_an_error() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    core.import(&demo_folder().join("claude-export"))?;
    let stopped = check_while(&core.store, &|| true, &mut |_| Err(StoreError::Cancelled));
    ensure!(matches!(stopped, Err(StoreError::Cancelled)), "{stopped:?}");

    let bundle = folder.path().join("bundle.zip");
    core.export(&bundle)?;
    let cancel = CancelToken::new();
    let options = verify::VerifyOptions { cancel: cancel.clone(), ..Default::default() };
    ensure!(verify::path(&bundle, &options)?.valid);
    cancel.cancel();
    let stopped = verify::path(&bundle, &options);
    ensure!(matches!(stopped, Err(VerifyError::Cancelled)), "{stopped:?}");
    Ok(())
}
