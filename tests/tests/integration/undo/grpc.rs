//! Undo from a client's side.

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{self, import_service_client::ImportServiceClient};
use satchel_tests::{
    operation,
    test_daemon::{TestDaemon, chatgpt_export},
};
use tonic::Code;
use tonic_types::StatusExt as _;

#[tokio::test(flavor = "multi_thread")]
async fn an_import_is_undone_and_redone_over_grpc() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let export = chatgpt_export(&daemon.folder.path().join("export"), 3)?;
    let job = daemon.import(&export).await?;
    let id = job.imports().first().context("an import")?.id.clone();
    let mut client = ImportServiceClient::new(daemon.channel.clone());
    let request = v1::UndoImportRequest { id: id.clone(), dry_run: true, expected_records: None };
    let preview = operation::undo(&daemon.channel, request.clone()).await?;
    ensure!(preview.records == 3 && preview.revisions.is_none(), "{preview:?}");
    let wrong = v1::UndoImportRequest { dry_run: false, expected_records: Some(2), ..request.clone() };
    let refused = operation::undo(&daemon.channel, wrong)
        .await
        .err()
        .context("a different undo than previewed was made")?;
    let reason = refused.get_details_error_info().map(|info| info.reason);
    ensure!(refused.code() == Code::FailedPrecondition && reason.as_deref() == Some("IMPORT_STATE"));
    let right = v1::UndoImportRequest { dry_run: false, expected_records: Some(3), ..request.clone() };
    let done = operation::undo(&daemon.channel, right).await?;
    let import = done.receipt.context("an import")?;
    ensure!(import.status() == v1::ImportStatus::Undone && import.reason.contains("redo"), "{import:?}");
    let mut talks = v1::conversation_service_client::ConversationServiceClient::new(daemon.channel.clone());
    let list = talks.list_conversations(v1::ListConversationsRequest::default()).await?.into_inner();
    ensure!(list.conversations.is_empty());
    let listed = client.list_imports(v1::ListImportsRequest::default()).await?.into_inner();
    ensure!(listed.imports.iter().any(|import| import.status() == v1::ImportStatus::Undone));
    let twice =
        operation::undo(&daemon.channel, v1::UndoImportRequest { dry_run: false, ..request }).await.err();
    ensure!(twice.is_some_and(|refused| refused.message().contains("undone already")));
    let request = v1::RedoImportRequest { id, dry_run: false, expected_records: None };
    let back = operation::redo(&daemon.channel, request).await?;
    ensure!(back.conversations.is_some_and(|effect| effect.restored == 3));
    let list = talks.list_conversations(v1::ListConversationsRequest::default()).await?.into_inner();
    let first = list.conversations.first().context("a conversation")?.id.clone();
    let shown = talks
        .get_conversation(v1::GetConversationRequest { id: first, as_of_revision: None })
        .await?
        .into_inner();
    ensure!(shown.conversation.is_some_and(|conversation| !conversation.withdrawn));
    let unknown = v1::UndoImportRequest { id: "nobody".to_owned(), ..v1::UndoImportRequest::default() };
    ensure!(
        operation::undo(&daemon.channel, unknown).await.is_err_and(|status| status.code() == Code::NotFound)
    );
    daemon.stop().await?;
    Ok(())
}
