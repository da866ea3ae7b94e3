//! Exports and attachments that devices fetch.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use satchel_bundle::verify;
use satchel_pam::hash::Sha256Digest;
use satchel_proto::v1::{
    self, DeviceRole, Scope, attachment_service_client::AttachmentServiceClient,
    conversation_service_client::ConversationServiceClient, export_service_client::ExportServiceClient,
};
use satchel_tests::{
    operation, samples,
    test_daemon::TestDaemon,
    test_device::{TestDevice, listening_daemon, policy},
};
use tonic::{Status, transport::Channel};

use crate::uploads::fixture::{Uploader, noise, refused};

async fn download(channel: &Channel, id: &str, offset: usize) -> Result<Vec<u8>> {
    let request = v1::DownloadExportRequest { id: id.to_owned(), offset: i64::try_from(offset)? };
    let mut chunks = ExportServiceClient::new(channel.clone()).download_export(request).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(answer) = chunks.message().await? {
        bytes.extend(answer.chunk.context("a chunk")?.data);
    }
    Ok(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_a_device_fetched_is_valid() -> Result<()> {
    let daemon = listening_daemon().await?;
    daemon.import(&samples::sample("chatgpt", "multimodal-text")).await?;
    let device = TestDevice::pair(&daemon, "laptop", policy(DeviceRole::Owner)).await?;
    let export = operation::export(&device.channel, v1::CreateExportRequest::default()).await?;
    let whole = download(&device.channel, &export.id, 0).await?;
    let half = whole.len() / 2;
    ensure!(download(&device.channel, &export.id, half).await? == whole[half..], "it is resumed");
    let path = daemon.folder.path().join("fetched.zip");
    fs::write(&path, &whole)?;
    let report = verify::path(&path, &verify::VerifyOptions { strict: true, ..Default::default() })?;
    ensure!(report.valid, "{:?}", report.issues);
    // The daemon verifies it too, as an upload.
    let mut uploader = Uploader::new(&device.channel);
    let upload_id = uploader.upload("fetched.zip", &whole).await?;
    let bundle = Some(v1::verify_export_request::Bundle::UploadId(upload_id.clone()));
    let request = v1::VerifyExportRequest { bundle, ..Default::default() };
    let verified = operation::verify(&device.channel, request).await?;
    ensure!(verified.valid, "{verified:?}");
    ensure!(uploader.get(&upload_id).await.is_ok(), "it can be imported afterwards");
    let by_path = v1::CreateExportRequest { output: "/tmp/x.zip".to_owned(), ..Default::default() };
    ensure!(refused(operation::export(&device.channel, by_path).await)? == "ACCESS_DENIED");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_eight_exports_wait_for_devices() -> Result<()> {
    let daemon = listening_daemon().await?;
    let device = TestDevice::pair(&daemon, "laptop", policy(DeviceRole::Owner)).await?;
    let mut ids = Vec::new();
    for _ in 0..9 {
        ids.push(operation::export(&device.channel, v1::CreateExportRequest::default()).await?.id);
    }
    ensure!(fs::read_dir(daemon.data_dir().join("exports-out"))?.count() == 8);
    let gone = download(&device.channel, &ids[0], 0).await.err().context("the oldest is gone")?;
    let status = gone.downcast::<Status>()?;
    ensure!(refused::<()>(Err(status))? == "BUNDLE_GONE");
    ensure!(!download(&device.channel, &ids[8], 0).await?.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_sees_a_part_gets_no_export() -> Result<()> {
    let daemon = listening_daemon().await?;
    let owner = TestDevice::pair(&daemon, "owner", policy(DeviceRole::Owner)).await?;
    let export = operation::export(&owner.channel, v1::CreateExportRequest::default()).await?;
    let scopes = [Scope::MemoriesRead, Scope::ConversationsRead, Scope::Exports];
    let part = v1::DevicePolicy {
        scopes: scopes.into_iter().map(Into::into).collect(),
        selection: Some(v1::DeviceSelection { platforms: vec!["claude".to_owned()], ..Default::default() }),
        ..policy(DeviceRole::Reader)
    };
    let part = TestDevice::pair(&daemon, "part", part).await?;
    let created = operation::export(&part.channel, v1::CreateExportRequest::default()).await;
    ensure!(refused(created)? == "ACCESS_DENIED");
    let mut client = ExportServiceClient::new(part.channel.clone());
    let fetched = client.download_export(v1::DownloadExportRequest { id: export.id, offset: 0 }).await;
    ensure!(refused(fetched.map(drop))? == "ACCESS_DENIED");
    Ok(())
}

/// Imports a conversation with an attachment of 2.5 MiB, and returns the request for its bytes.
async fn attachment(daemon: &TestDaemon, bytes: &[u8]) -> Result<v1::DownloadAttachmentRequest> {
    let folder = daemon.folder.path().join("export");
    samples::copy(&samples::sample("chatgpt", "attachments-by-every-name-rule"), &folder)?;
    fs::write(folder.join("file-AbC-notes.pdf"), bytes)?;
    daemon.import(&folder).await?;
    let sha256 = Sha256Digest::of(bytes).to_hex();
    let reference = format!("attachments/{sha256}");
    let mut client = ConversationServiceClient::new(daemon.channel.clone());
    let listed = client.list_conversations(v1::ListConversationsRequest::default()).await?.into_inner();
    for conversation in listed.conversations {
        let conversation_id = conversation.id;
        let request = v1::ListMessagesRequest {
            conversation_id: conversation_id.clone(),
            include_hidden: true,
            ..Default::default()
        };
        for message in client.list_messages(request).await?.into_inner().messages {
            if message.attachments.iter().any(|one| one.r#ref.as_deref() == Some(&reference)) {
                let message_id = message.id;
                let request = v1::DownloadAttachmentRequest {
                    conversation_id,
                    message_id,
                    sha256,
                    ..Default::default()
                };
                return Ok(request);
            }
        }
    }
    anyhow::bail!("no message has the attachment")
}

async fn fetch(channel: &Channel, request: v1::DownloadAttachmentRequest) -> Result<Vec<u8>, Status> {
    let mut client = AttachmentServiceClient::new(channel.clone());
    let mut chunks = client.download_attachment(request).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(answer) = chunks.message().await? {
        let chunk = answer.chunk.ok_or_else(|| Status::internal("no chunk"))?;
        if chunk.crc32c != crc32c::crc32c(&chunk.data) {
            return Err(Status::internal("a wrong checksum"));
        }
        bytes.extend(chunk.data);
    }
    Ok(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_are_fetched_in_ranges_by_those_who_see_the_conversation() -> Result<()> {
    let daemon = listening_daemon().await?;
    let bytes = noise(5 << 19);
    let request = attachment(&daemon, &bytes).await?;
    let reader = TestDevice::pair(&daemon, "reader", policy(DeviceRole::Reader)).await?;
    let part = |offset: usize, limit: usize| {
        let (offset, limit) = (i64::try_from(offset)?, i64::try_from(limit)?);
        anyhow::Ok(v1::DownloadAttachmentRequest { offset, limit, ..request.clone() })
    };
    ensure!(fetch(&reader.channel, part(0, 0)?).await? == bytes);
    for (offset, limit) in [(0, 1), (1 << 20, 1 << 20), (1_000_001, 1_234_567), (bytes.len() - 1, 500)] {
        let end = bytes.len().min(offset + limit);
        ensure!(fetch(&reader.channel, part(offset, limit)?).await? == bytes[offset..end], "{offset}");
    }
    ensure!(fetch(&reader.channel, part(bytes.len(), 0)?).await?.is_empty());
    ensure!(refused(fetch(&reader.channel, part(bytes.len() + 1, 0)?).await)? == "OFFSET_PAST_END");
    let other = v1::DownloadAttachmentRequest { sha256: "0".repeat(64), ..request.clone() };
    ensure!(refused(fetch(&reader.channel, other).await)? == "ATTACHMENT_NOT_FOUND");
    let path = v1::DownloadAttachmentRequest { sha256: "../../keys/ca".to_owned(), ..request.clone() };
    ensure!(refused(fetch(&reader.channel, path).await)? == "FIELD_INVALID");
    let selection = Some(v1::DeviceSelection { platforms: vec!["claude".to_owned()], ..Default::default() });
    let blind = v1::DevicePolicy { selection, ..policy(DeviceRole::Reader) };
    let blind = TestDevice::pair(&daemon, "blind", blind).await?;
    ensure!(refused(fetch(&blind.channel, request.clone()).await)? == "CONVERSATION_NOT_FOUND");
    let agent = TestDevice::pair(&daemon, "agent", policy(DeviceRole::Agent)).await?;
    ensure!(refused(fetch(&agent.channel, request).await)? == "CONVERSATION_NOT_FOUND");
    Ok(())
}
