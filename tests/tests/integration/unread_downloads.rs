//! Clients that do not read their downloads: the number of simultaneous downloads is limited, and all other calls are
//! served meanwhile.

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    self, DeviceRole, admin_service_client::AdminServiceClient, export_service_client::ExportServiceClient,
};
use satchel_tests::{
    operation,
    test_daemon::{TestDaemon, chatgpt_export},
    test_device::{TestDevice, listening_daemon, policy},
};
use tonic::Code;

/// The limit documented in `proto/README.md`.
const MAX_DOWNLOADS: usize = 16;
/// The same, of one device.
const MAX_DOWNLOADS_OF_DEVICE: usize = 4;

/// Makes an export that is larger than all buffers on the way, so that a download that nobody reads does not end.
async fn large_export(daemon: &TestDaemon) -> Result<v1::DownloadExportRequest> {
    let folder = chatgpt_export(&daemon.folder.path().join("export"), 3)?;
    daemon.import(&folder).await?;
    let output = daemon.folder.path().join("bundle.zip");
    let request = v1::CreateExportRequest {
        output: output.to_str().context("UTF-8")?.to_owned(),
        ..v1::CreateExportRequest::default()
    };
    let export = operation::export(&daemon.channel, request).await?;
    std::fs::OpenOptions::new().write(true).open(&output)?.set_len(64 << 20)?;
    Ok(v1::DownloadExportRequest { id: export.id, offset: 0 })
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_downloads_of_a_device_leave_room_for_others() -> Result<()> {
    let daemon = listening_daemon().await?;
    let download = large_export(&daemon).await?;
    let one = TestDevice::pair(&daemon, "one", policy(DeviceRole::Owner)).await?;
    let other = TestDevice::pair(&daemon, "other", policy(DeviceRole::Owner)).await?;
    let (mut one, mut other) =
        (ExportServiceClient::new(one.channel), ExportServiceClient::new(other.channel));
    let mut open = Vec::new();
    for _ in 0..MAX_DOWNLOADS_OF_DEVICE {
        open.push(one.download_export(download.clone()).await?.into_inner());
    }
    for _ in 0..MAX_DOWNLOADS {
        let refused = one.download_export(download.clone()).await.err().context("it is refused")?;
        ensure!(refused.code() == Code::ResourceExhausted, "{refused:?}");
        ensure!(refused.message().contains("of this device"), "{refused:?}");
    }
    for channel in [&mut other, &mut ExportServiceClient::new(daemon.channel.clone())] {
        let mut whole = channel.download_export(download.clone()).await?.into_inner();
        let mut bytes = 0;
        while let Some(answer) = whole.message().await? {
            bytes += answer.chunk.context("a chunk")?.data.len();
        }
        ensure!(bytes == 64 << 20, "{bytes}");
    }
    // A place is free again once a download has ended, also one that was not read to its end.
    open.pop();
    while let Err(status) = one.download_export(download.clone()).await {
        ensure!(status.code() == Code::ResourceExhausted, "{status:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_downloads_are_limited_and_do_not_block_other_calls() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let download = large_export(&daemon).await?;
    let mut client = ExportServiceClient::new(daemon.channel.clone());

    // The downloads of one connection share its buffers, so the client that reads has its own connection.
    let channel = satchel_server::connect::connect(&daemon.data_dir()).await?;
    let mut one = ExportServiceClient::new(channel).download_export(download.clone()).await?.into_inner();
    let (mut open, mut refused) = (Vec::new(), 0);
    for _ in 0..3 {
        // One connection allows only a limited number of calls.
        let channel = satchel_server::connect::connect(&daemon.data_dir()).await?;
        let mut client = ExportServiceClient::new(channel);
        for _ in 0..MAX_DOWNLOADS {
            match client.download_export(download.clone()).await {
                Ok(answer) => open.push(answer.into_inner()),
                Err(status) => {
                    ensure!(status.code() == Code::ResourceExhausted, "{status:?}");
                    ensure!(status.message().contains("downloads are running"), "{status:?}");
                    refused += 1;
                }
            }
        }
    }
    ensure!((open.len(), refused) == (MAX_DOWNLOADS - 1, 2 * MAX_DOWNLOADS + 1), "{} are open", open.len());
    AdminServiceClient::new(daemon.channel.clone()).get_status(v1::GetStatusRequest {}).await?;

    // A download that is read runs to its end and then frees its slot.
    let mut bytes = 0;
    while let Some(answer) = one.message().await? {
        bytes += answer.chunk.context("a chunk")?.data.len();
    }
    ensure!(bytes == 64 << 20, "{bytes}");
    drop(open);
    let mut again = loop {
        // The slots of abandoned downloads are free once the daemon notices.
        match client.download_export(download.clone()).await {
            Ok(answer) => break answer.into_inner(),
            Err(status) => ensure!(status.code() == Code::ResourceExhausted, "{status:?}"),
        }
    };
    ensure!(again.message().await?.is_some());
    drop(again);
    daemon.stop().await?;
    Ok(())
}
