//! The trust tests over gRPC.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    self, export_service_client::ExportServiceClient, memory_service_client::MemoryServiceClient,
    verify_export_request::Bundle,
};
use satchel_tests::{operation, test_core::demo_folder, test_daemon::TestDaemon};
use tonic::Code;

async fn import_path(daemon: &TestDaemon, path: &str, apply: Option<v1::ApplyRules>) -> Result<v1::Import> {
    let job = daemon.import_with(Path::new(path), apply).await?;
    job.imports().first().cloned().context("an import")
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_trusted_and_untrusted_signers_are_named_over_grpc() -> Result<()> {
    let (here, there) = (TestDaemon::start().await?, TestDaemon::start().await?);
    here.import(&demo_folder().join("claude-export")).await?;
    let output = here.folder.path().join("bundle").to_string_lossy().into_owned();
    let request = v1::CreateExportRequest { output, ..Default::default() };
    let made = operation::export(&here.channel, request).await?;
    let bundle = Some(Bundle::Id(made.id.clone()));
    let verdict =
        operation::verify(&here.channel, v1::VerifyExportRequest { bundle, ..Default::default() }).await?;
    let covered = verdict.covered.context("the coverage")?;
    ensure!(covered.memories() == v1::Coverage::Signed && covered.conversations() == v1::Coverage::Signed);
    ensure!(verdict.bundles.len() == 1 && verdict.bundles[0].signer == made.signer, "{:?}", verdict.bundles);

    let import = import_path(&there, &made.path, None).await?;
    ensure!(
        import.standing() == v1::DocumentStanding::Stranger && import.signer == made.signer,
        "{import:?}"
    );
    let mut memories = MemoryServiceClient::new(there.channel.clone());
    let listed = memories.list_memories(v1::ListMemoriesRequest::default()).await?.into_inner().memories;
    let id = listed.first().context("a memory")?.id.clone();
    let shown = memories.get_memory(v1::GetMemoryRequest { id: id.clone(), ..Default::default() }).await?;
    ensure!(shown.into_inner().stranger == made.signer, "the untrusted signer is not shown");

    let mut keys = ExportServiceClient::new(there.channel.clone());
    let wrong = keys.trust_key(v1::TrustKeyRequest { public_key: "zebra".into() }).await.err();
    ensure!(wrong.is_some_and(|status| status.code() == Code::InvalidArgument));
    let trust = || v1::TrustKeyRequest { public_key: made.signer.clone() };
    let answer = keys.trust_key(trust()).await?.into_inner();
    let trusted = answer.trusted_key.context("the trusted key")?;
    ensure!(answer.added && trusted.public_key == made.signer);
    ensure!(!keys.trust_key(trust()).await?.into_inner().added, "the key was added twice");
    let signing = keys.get_signing_keys(v1::GetSigningKeysRequest {}).await?.into_inner().keys;
    let listed = keys.list_trusted_keys(v1::ListTrustedKeysRequest::default()).await?.into_inner();
    ensure!(signing.is_none() && listed.trusted_keys == [trusted], "{signing:?} {listed:?}");
    let merged = import_path(&there, &made.path, Some(v1::ApplyRules::default())).await?;
    ensure!(merged.standing() == v1::DocumentStanding::Trusted, "{merged:?}");
    let shown = memories.get_memory(v1::GetMemoryRequest { id, ..Default::default() }).await?.into_inner();
    ensure!(shown.stranger.is_empty(), "a merged memory is still shown as untrusted");
    let untrust = || v1::UntrustKeyRequest { public_key: made.signer.clone() };
    ensure!(keys.untrust_key(untrust()).await?.into_inner().removed);
    let listed = keys.list_trusted_keys(v1::ListTrustedKeysRequest::default()).await?.into_inner();
    ensure!(!keys.untrust_key(untrust()).await?.into_inner().removed && listed.trusted_keys.is_empty());
    here.stop().await?;
    there.stop().await?;
    Ok(())
}
