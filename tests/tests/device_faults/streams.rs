//! Streams: requests that are never completed, answers that are never read, and downloads cancelled at each message.

use std::{net::Ipv4Addr, time::Duration};

use anyhow::{Context as _, Result, ensure};
use prost::Message as _;
use satchel_devices::{FingerprintPrefix, credentials::pairing_config};
use satchel_proto::v1::{
    self, CreateExportRequest, DeviceRole, DownloadExportRequest, ListMessagesRequest,
    export_service_client::ExportServiceClient,
};
use satchel_tests::operation;
use tokio::time::timeout;

use crate::{
    CONVERSATION, daemon_with_devices,
    frames::{END_HEADERS, HEADERS, RawConnection, call, call_headers, frame},
};

/// Connections of a device besides its own, and streams of each.
const CONNECTIONS: usize = 7;
const STREAMS: u32 = 32;
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Memory that the daemon may use for a device that does not read, in MiB. Most of it is what the allocator keeps of calls
/// that were answered side by side. It was 150 to 200 MiB, and 330 to 345 MiB when a device had no share of its own.
const UNREAD_MIB: usize = 270;
const LIST_MESSAGES: &str = "/satchel.v1.ConversationService/ListMessages";

fn stream_ids() -> impl Iterator<Item = u32> {
    (0..STREAMS).map(|number| 2 * number + 1)
}

/// Each call begins and says that it may take years, but its message never comes.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_never_completed_leave_room_for_others() -> Result<()> {
    let (daemon, device, others) = daemon_with_devices(DeviceRole::Agent).await?;
    let before = daemon.usage()?;
    let unknown = pairing_config(&FingerprintPrefix::Full(device.credentials.fingerprint()?))?.tls;
    let mut connections = Vec::new();
    for (config, path) in [
        (device.credentials.client_config()?, "/satchel.v1.MemoryService/GetMemory"),
        (device.credentials.client_config()?, "/satchel.v1.MemoryService/BulkSetStatus"),
        (unknown, "/satchel.v1.PairingService/CompletePairing"),
    ] {
        for _ in 0..3 {
            let mut connection = RawConnection::open(&device, config.clone(), ADDRESS, 0).await?;
            let headers = call_headers(path, Some("99999999S"));
            let frames: Vec<u8> =
                stream_ids().flat_map(|stream| frame(HEADERS, END_HEADERS, stream, &headers)).collect();
            connection.send(&frames).await?;
            connections.push(connection);
        }
    }
    others.all_succeeded().await?;
    drop(connections);
    daemon.at_rest_as(before, 64).await
}

/// Each stream asks for a page of 3 MiB, and reads nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_never_read_leave_room_for_others() -> Result<()> {
    let (daemon, device, others) = daemon_with_devices(DeviceRole::Reader).await?;
    let before = daemon.usage()?;
    let request = ListMessagesRequest {
        conversation_id: CONVERSATION.to_owned(),
        page_size: 1_000,
        ..Default::default()
    }
    .encode_to_vec();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let config = device.credentials.client_config()?;
        let mut connection = RawConnection::open(&device, config, ADDRESS, 0).await?;
        let calls: Vec<u8> = stream_ids().flat_map(|stream| call(stream, LIST_MESSAGES, &request)).collect();
        connection.send(&calls).await?;
        connections.push(connection);
    }
    for connection in &mut connections {
        connection.read_headers(stream_ids().collect()).await?;
    }
    let loaded = daemon.usage()?;
    ensure!(loaded.memory_mib < before.memory_mib + UNREAD_MIB, "{before:?} became {loaded:?}");
    others.all_succeeded().await?;
    drop(connections);
    daemon.at_rest_as(before, UNREAD_MIB).await
}

/// More downloads are cancelled than may run at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_download_can_be_cancelled_at_each_message() -> Result<()> {
    let (daemon, device, others) = daemon_with_devices(DeviceRole::Owner).await?;
    let output = daemon.folder.path().join("export.zip");
    let request =
        CreateExportRequest { output: output.to_str().context("UTF-8")?.to_owned(), ..Default::default() };
    let started = ExportServiceClient::new(daemon.channel.clone()).create_export(request).await?;
    let started = started.into_inner().operation.context("an operation")?;
    let ended = operation::wait(&daemon.channel, &started.id).await?;
    let Some(v1::operation::Result::Export(export)) = ended.result else { anyhow::bail!("{ended:?}") };
    let before = daemon.usage()?;
    let mut client = ExportServiceClient::new(device.channel.clone());
    let whole = download(&mut client, &export.id, usize::MAX).await?;
    ensure!(whole.len() as u64 == std::fs::metadata(&output)?.len());
    for round in 0..40 {
        let part = download(&mut client, &export.id, round % 5).await?;
        ensure!(whole.starts_with(&part));
    }
    ensure!(download(&mut client, &export.id, usize::MAX).await? == whole, "the download differs");
    others.all_succeeded().await?;
    daemon.at_rest_as(before, 64).await
}

/// Downloads an export until so many messages were read.
async fn download(
    client: &mut ExportServiceClient<tonic::transport::Channel>,
    id: &str,
    messages: usize,
) -> Result<Vec<u8>> {
    let request = DownloadExportRequest { id: id.to_owned(), offset: 0 };
    let mut stream = client.download_export(request).await?.into_inner();
    let mut bytes = Vec::new();
    for _ in 0..messages {
        let next = timeout(Duration::from_secs(20), stream.message()).await??;
        let Some(next) = next else { break };
        bytes.extend(next.chunk.context("a chunk")?.data);
    }
    Ok(bytes)
}
