//! The privacy tests over gRPC.

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{self, export_service_client::ExportServiceClient, verify_export_request::Bundle};
use satchel_tests::{operation, test_core::demo_folder, test_daemon::TestDaemon};

#[tokio::test(flavor = "multi_thread")]
async fn selections_and_keys_are_served_to_any_client() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    daemon.import(&demo_folder().join("claude-export")).await?;
    let mut client = ExportServiceClient::new(daemon.channel.clone());
    let folder = daemon.folder.path().to_owned();
    let output = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let filter = v1::MemoryFilter { types: vec![v1::MemoryType::Context.into()], ..Default::default() };
    let request = v1::CreateExportRequest {
        output: output("part"),
        filter: Some(filter),
        strip_identifiers: true,
        ..Default::default()
    };
    let made = operation::export(&daemon.channel, request.clone()).await?;
    ensure!(
        made.selected_by == ["type"] && made.stripped && made.conversations == 0 && made.memories > 0,
        "{made:?}"
    );
    let bundle = Some(Bundle::Id(made.id.clone()));
    let verdict =
        operation::verify(&daemon.channel, v1::VerifyExportRequest { bundle, ..Default::default() }).await?;
    ensure!(verdict.valid && verdict.stripped && verdict.selected_by == ["type"], "{verdict:?}");
    let by = |filter: v1::MemoryFilter| v1::CreateExportRequest { filter: Some(filter), ..request.clone() };
    let refused = [
        (v1::CreateExportRequest { r#type: v1::ExportType::Incremental.into(), ..request.clone() }, "type"),
        (v1::CreateExportRequest { format: v1::ExportFormat::Memu.into(), ..request.clone() }, "format"),
        (
            by(v1::MemoryFilter { conversation_id: "c".into(), ..Default::default() }),
            "filter.conversation_id",
        ),
        (by(v1::MemoryFilter { types: vec![99], ..Default::default() }), "filter.types"),
    ];
    for (request, field) in refused {
        let request = v1::CreateExportRequest { output: output("refused"), ..request };
        let status =
            operation::export(&daemon.channel, request).await.err().context("the call is refused")?;
        ensure!(
            status.code() == tonic::Code::InvalidArgument && status.message().contains(field),
            "{status:?}"
        );
    }
    ensure!(!folder.join("refused").exists());
    let before =
        client.get_signing_keys(v1::GetSigningKeysRequest {}).await?.into_inner().keys.context("keys")?;
    let after = client
        .rotate_signing_key(v1::RotateSigningKeyRequest::default())
        .await?
        .into_inner()
        .keys
        .context("keys")?;
    ensure!(before.keys.len() == 1 && after.keys.len() == 2 && before.owner_id == after.owner_id);
    ensure!(after.keys[1].public_key == made.signer && after.keys[1].successor == after.keys[0].public_key);
    daemon.stop().await?;
    Ok(())
}
