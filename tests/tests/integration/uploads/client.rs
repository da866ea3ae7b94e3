//! The transfers of the client: of whole files, and across a broken connection.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify;
use satchel_proto::v1::{self, DeviceRole};
use satchel_server::transfer::{self, TransferError};
use satchel_tests::{
    operation, samples,
    test_daemon::TestDaemon,
    test_device::{TestDevice, listening_daemon, policy},
};

use crate::uploads::fixture::{Uploader, noise};

#[tokio::test(flavor = "multi_thread")]
async fn files_are_sent_and_fetched_with_progress() -> Result<()> {
    let daemon = listening_daemon().await?;
    daemon.import(&samples::sample("chatgpt", "multimodal-text")).await?;
    let device = TestDevice::pair(&daemon, "laptop", policy(DeviceRole::Owner)).await?;
    let folder = daemon.folder.path();
    let bytes = noise((5 << 20) + 17);
    fs::write(folder.join("export.zip"), &bytes)?;
    let mut steps = Vec::new();
    let mut progress = |done, total| steps.push((done, total));
    let id =
        transfer::upload(&device.channel, &folder.join("export.zip"), "export.zip", &mut progress).await?;
    ensure!(steps.len() == 7 && steps.last() == Some(&(bytes.len() as u64, bytes.len() as u64)), "{steps:?}");
    let upload = Uploader::new(&device.channel).get(&id).await?;
    ensure!(upload.name == "export.zip" && upload.committed_bytes == upload.size_bytes);

    let export = operation::export(&device.channel, v1::CreateExportRequest::default()).await?;
    let output = folder.join("fetched.zip");
    transfer::download_export(&device.channel, &export.id, &output, &mut |_, _| {}).await?;
    let report = verify::path(&output, &verify::VerifyOptions { strict: true, ..Default::default() })?;
    ensure!(report.valid, "{:?}", report.issues);
    let again = transfer::download_export(&device.channel, &export.id, &output, &mut |_, _| {}).await;
    ensure!(matches!(again, Err(TransferError::File(_))), "nothing is overwritten");
    let missing = folder.join("missing.zip");
    let unknown = transfer::download_export(&device.channel, "nothing", &missing, &mut |_, _| {}).await;
    ensure!(matches!(unknown, Err(TransferError::Call(_))) && !missing.exists());
    Ok(())
}

/// Starts to send a file, and returns when the first chunk is sent.
async fn send_first_chunk(daemon: &TestDaemon, path: &Path) -> Result<()> {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let (channel, path) = (daemon.channel.clone(), path.to_owned());
    let sending = tokio::spawn(async move {
        let mut progress = |done, _| sender.send(done).unwrap_or(());
        transfer::upload(&channel, &path, "export.zip", &mut progress).await
    });
    let started = async {
        while receiver.recv().await.context("it is being sent")? == 0 {}
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_secs(20), started).await??;
    sending.abort();
    drop(sending.await);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_sender_was_stopped_is_continued() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let path = daemon.folder.path().join("export.zip");
    fs::write(&path, noise(20 << 20))?;
    send_first_chunk(&daemon, &path).await?;
    let mut first = None;
    let mut progress = |done, _| {
        first.get_or_insert(done);
    };
    let id = transfer::upload(&daemon.channel, &path, "export.zip", &mut progress).await?;
    ensure!(first.is_some_and(|first: u64| first >= 1 << 20), "it began anew at {first:?}");
    let upload = Uploader::new(&daemon.channel).get(&id).await?;
    ensure!(upload.committed_bytes == 20 << 20);
    Ok(())
}
