//! Exports of changes over gRPC: made with progress, listed, downloaded, verified on their base, merged.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    self, export_service_client::ExportServiceClient, operation::Result as Reached,
    verify_export_request::Bundle,
};
use satchel_tests::{
    operation,
    test_daemon::{TestDaemon, chatgpt_export},
};
use tonic::{Code, transport::Channel};

fn text(path: &Path) -> Result<String> {
    Ok(path.to_str().context("UTF-8")?.to_owned())
}

fn export_request(daemon: &TestDaemon, name: &str, kind: v1::ExportType) -> Result<v1::CreateExportRequest> {
    let output = text(&daemon.folder.path().join(name))?;
    Ok(v1::CreateExportRequest { output, r#type: kind.into(), ..Default::default() })
}

/// Makes an export; returns it with the number of states with progress that were sent before the last one.
async fn export(channel: &Channel, request: v1::CreateExportRequest) -> Result<(v1::Export, usize)> {
    let started = ExportServiceClient::new(channel.clone()).create_export(request).await?.into_inner();
    let mut states = operation::states(channel, &started.operation.context("an operation")?.id).await?;
    let last = states.pop().context("a last state")?;
    for state in &states {
        let progress = state.progress.unwrap_or_default();
        ensure!(!state.ended() && Some(progress.records_done) <= progress.records_total.or(Some(0)));
    }
    let progress = last.progress.map_or(0, |progress| progress.records_done);
    match last.into_result()? {
        Reached::Export(export) => Ok((export, states.len() + usize::from(progress > 0))),
        other => anyhow::bail!("{other:?}"),
    }
}

async fn apply(daemon: &TestDaemon, path: &str, rules: v1::ApplyRules) -> Result<v1::Import> {
    let job = daemon.import_with(Path::new(path), Some(rules)).await?;
    job.imports().first().cloned().context("an import")
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_exported_listed_verified_and_merged() -> Result<()> {
    let (here, there) = (TestDaemon::start().await?, TestDaemon::start().await?);
    here.import(&chatgpt_export(&here.folder.path().join("one"), 20)?).await?;
    let mut client = ExportServiceClient::new(here.channel.clone());
    let (full, steps) =
        export(&here.channel, export_request(&here, "full.zip", v1::ExportType::Full)?).await?;
    assert!(steps > 0 && full.r#type() == v1::ExportType::Full);
    here.import(&chatgpt_export(&here.folder.path().join("two"), 32)?).await?;
    let (delta, _) =
        export(&here.channel, export_request(&here, "delta.zip", v1::ExportType::Incremental)?).await?;
    assert_eq!((delta.r#type(), &delta.base_export_id), (v1::ExportType::Incremental, &full.id));
    assert_eq!((delta.base_revision, delta.since.is_empty()), (Some(full.revision), false));
    let listed = client.list_exports(v1::ListExportsRequest::default()).await?.into_inner().exports;
    assert_eq!(listed, [delta.clone(), full.clone()]);
    let got = client.get_export(v1::GetExportRequest { id: delta.id.clone() }).await?.into_inner().export;
    assert_eq!(got.as_ref(), Some(&delta));

    let bundle = Some(Bundle::Id(delta.id.clone()));
    let request = v1::VerifyExportRequest { bundle, base_path: full.path.clone(), ..Default::default() };
    let report = operation::verify(&here.channel, request).await?;
    let (whole, _) = export(&here.channel, export_request(&here, "whole", v1::ExportType::Full)?).await?;
    assert_eq!((report.valid, &report.merged_checksum), (true, &whole.checksum), "{report:?}");

    let refused = apply(&there, &delta.path, v1::ApplyRules::default()).await?;
    assert_eq!(refused.status(), v1::ImportStatus::Failed);
    ensure!(refused.reason.contains(&full.id), "{}", refused.reason);
    for path in [&full.path, &delta.path] {
        let import = apply(&there, path, v1::ApplyRules::default()).await?;
        assert_eq!(import.status(), v1::ImportStatus::Completed, "{}", import.reason);
    }
    let (copy, _) = export(&there.channel, export_request(&there, "copy.zip", v1::ExportType::Full)?).await?;
    assert_eq!((copy.checksum, copy.conversations), (whole.checksum, whole.conversations));
    here.stop().await?;
    there.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_base_is_refused_with_its_reason() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let changes = export_request(&daemon, "delta", v1::ExportType::Incremental)?;
    let unknown = v1::CreateExportRequest { base_export_id: "nobody".into(), ..changes.clone() };
    let status = operation::export(&daemon.channel, unknown).await.err().context("refused")?;
    assert_eq!(status.code(), Code::NotFound);
    let full = export_request(&daemon, "full", v1::ExportType::Full)?;
    let with_base = v1::CreateExportRequest { base_export_id: "nobody".into(), ..full.clone() };
    let status = operation::export(&daemon.channel, with_base).await.err().context("refused")?;
    assert_eq!(status.code(), Code::InvalidArgument);
    let memu = v1::CreateExportRequest { format: v1::ExportFormat::Memu.into(), ..changes.clone() };
    let status = operation::export(&daemon.channel, memu).await.err().context("refused")?;
    assert_eq!(status.code(), Code::InvalidArgument);
    let (_, _) = export(&daemon.channel, full).await?;
    let (empty, _) = export(&daemon.channel, changes).await?;
    assert_eq!((empty.r#type(), empty.memories), (v1::ExportType::Incremental, 0));
    let bad = v1::CreateExportRequest {
        base_export_id: empty.id,
        ..export_request(&daemon, "later", v1::ExportType::Incremental)?
    };
    let status = operation::export(&daemon.channel, bad).await.err().context("refused")?;
    ensure!(status.message().contains("is no full PAM export"), "{status}");
    daemon.stop().await?;
    Ok(())
}
