//! A peer that lies is stopped and told so; nothing of it is stored beyond what was checked.

use anyhow::{Context as _, Result, ensure};
use satchel_pam::hash::Sha256Digest;
use satchel_proto::v1::{
    self, DeviceRole, memory_service_client::MemoryServiceClient, sync_service_client::SyncServiceClient,
};
use satchel_sync::{Author, Frontier, Kind, SigningKey};
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{TestDevice, policy},
};
use tonic::Code;

use super::{
    erasures::has,
    peer_daemon::{add, digest, eventually, pair, peers, start, start_new},
};

#[tokio::test(flavor = "multi_thread")]
async fn only_peers_exchange_changes_and_they_do_nothing_else() -> Result<()> {
    let daemon = start_new().await?;
    let id = add(&daemon, "Private").await?;
    for role in [DeviceRole::Owner, DeviceRole::Reader, DeviceRole::Agent] {
        let device = TestDevice::pair(&daemon, role.as_str_name(), policy(role)).await?;
        let mut sync = SyncServiceClient::new(device.channel);
        let refused = sync.get_frontier(v1::GetFrontierRequest::default()).await;
        ensure!(refused.is_err_and(|status| status.code() == Code::PermissionDenied), "{role:?}");
    }
    let peer = TestDevice::pair(&daemon, "peer", policy(DeviceRole::Peer)).await?;
    let request = v1::GetMemoryRequest { id, view: 0, as_of_revision: None };
    let refused = MemoryServiceClient::new(peer.channel.clone()).get_memory(request).await;
    ensure!(refused.is_err_and(|status| status.code() == Code::PermissionDenied));
    let mut sync = SyncServiceClient::new(peer.channel);
    ensure!(sync.get_frontier(v1::GetFrontierRequest::default()).await?.into_inner().format_version == 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_lies_is_refused_and_others_go_on() -> Result<()> {
    let daemon = start_new().await?;
    add(&daemon, "Stays").await?;
    let peer = TestDevice::pair(&daemon, "peer", policy(DeviceRole::Peer)).await?;
    let mut sync = SyncServiceClient::new(peer.channel.clone());
    let known = sync.get_frontier(v1::GetFrontierRequest::default()).await?.into_inner();
    let before = digest(&daemon).await?;
    let upload = async |changes: Vec<Vec<u8>>| {
        let message = v1::UploadChangesRequest { changes };
        SyncServiceClient::new(peer.channel.clone()).upload_changes(tokio_stream::iter([message])).await
    };
    // Bytes that are no change.
    for bytes in [vec![], vec![0; 10], vec![0; 300]] {
        let status = upload(vec![bytes]).await.err().context("it is refused")?;
        ensure!(status.code() == Code::InvalidArgument, "{status:?}");
    }
    let newer = upload(vec![vec![255; 300]]).await?.into_inner();
    ensure!(newer.new_changes == 0 && newer.refused.len() == 1, "{newer:?}");
    // Series with a wrong signature, a gap, and another history.
    let author = |seed: u8| Author::begin(SigningKey::from_bytes(&[seed; 32]), [seed; 16], &Frontier::new());
    let (mut first, genesis) = author(1)?;
    let next = first.append(Kind(77), b"one".to_vec(), &Frontier::new())?;
    let last = first.append(Kind(77), b"two".to_vec(), &Frontier::new())?;
    let mut forged = genesis.encode();
    let at = forged.len() - 40;
    forged[at] ^= 1;
    if let Ok(answer) = upload(vec![forged]).await {
        let answer = answer.into_inner();
        ensure!(answer.new_changes == 0 && answer.refused.len() == 1, "{answer:?}");
    }
    let answer = upload(vec![genesis.encode(), last.encode(), next.encode()]).await?.into_inner();
    ensure!(answer.new_changes == 1 && answer.refused.len() == 1, "{answer:?}");
    ensure!(answer.refused[0].counter == i64::try_from(last.change().counter.get())?, "{answer:?}");
    let answer = upload(vec![next.encode(), last.encode()]).await?.into_inner();
    ensure!(answer.new_changes == 2 && answer.refused.is_empty(), "{answer:?}");
    let (mut other, _) = author(1)?;
    let fork = other.append(Kind(77), b"another".to_vec(), &Frontier::new())?;
    let answer = upload(vec![fork.encode()]).await?.into_inner();
    ensure!(answer.new_changes == 0 && answer.refused.len() == 1, "{answer:?}");
    // Frontiers that cannot be.
    let head = |origin: &str, counter| v1::SeriesHead {
        origin: origin.to_owned(),
        counter,
        change_sha256: vec![1; 32],
    };
    for heads in [
        vec![head("x", 1)],
        vec![head(&known.origin, 0)],
        vec![head(&known.origin, 1_000_000_000)],
        vec![head(&known.origin, 1); 2],
        vec![head(&known.origin, 1); 2_000],
    ] {
        let request = v1::DownloadChangesRequest { frontier: Some(v1::Frontier { heads }) };
        let status = sync.download_changes(request).await.err().context("it is refused")?;
        ensure!(status.code() == Code::InvalidArgument, "{status:?}");
    }
    // Of a series whose history it claims to know otherwise, it gets nothing.
    let claimed = v1::Frontier { heads: vec![head(&known.origin, 1)] };
    let mut stream =
        sync.download_changes(v1::DownloadChangesRequest { frontier: Some(claimed) }).await?.into_inner();
    while let Some(message) = stream.message().await? {
        for change in &message.changes {
            let change = satchel_sync::SignedChange::decode(change)?;
            ensure!(change.change().origin.to_string() != known.origin);
        }
    }
    ensure!(digest(&daemon).await? == before, "nothing of it is shown");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_files_that_are_wanted_are_taken_and_only_whole() -> Result<()> {
    let (desk, folder) = (start_new().await?, tempfile::tempdir()?);
    let peer = TestDevice::pair(&desk, "peer", policy(DeviceRole::Peer)).await?;
    let upload = async |sha256: String, chunks: Vec<Vec<u8>>| {
        let first = v1::UploadFileRequest { sha256, data: Vec::new() };
        let rest = chunks.into_iter().map(|data| v1::UploadFileRequest { sha256: String::new(), data });
        let messages: Vec<_> = std::iter::once(first).chain(rest).collect();
        SyncServiceClient::new(peer.channel.clone()).upload_file(tokio_stream::iter(messages)).await
    };
    let bytes = b"a picture".to_vec();
    let digest = Sha256Digest::of(&bytes);
    for sha256 in ["x".to_owned(), String::new(), digest.to_hex()] {
        let status = upload(sha256, vec![bytes.clone()]).await.err().context("nobody wants it")?;
        ensure!(status.code() == Code::InvalidArgument, "{status:?}");
    }
    // A file that no store has any more.
    let (laptop, export) = (start_new().await?, folder.path().join("export"));
    demo_with_file(&export, &bytes)?;
    laptop.import(&export).await?;
    let laptop = laptop.stop().await?;
    std::fs::remove_dir_all(laptop.path().join("data/blobs"))?;
    let laptop = start(laptop).await?;
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    let mut sync = SyncServiceClient::new(peer.channel.clone());
    eventually("the file is wanted", async || {
        let missing = sync.list_missing_files(v1::ListMissingFilesRequest::default()).await?.into_inner();
        Ok((missing.sha256 == [digest.to_hex()]).then_some(()))
    })
    .await?;
    for wrong in [vec![], vec![b"another picture".to_vec()], vec![bytes[..4].to_vec()]] {
        let status = upload(digest.to_hex(), wrong).await.err().context("it is refused")?;
        ensure!(status.code() == Code::DataLoss, "{status:?}");
    }
    upload(digest.to_hex(), vec![bytes[..4].to_vec(), bytes[4..].to_vec()]).await?;
    let request = v1::SyncPeersRequest { peer: "desk".to_owned() };
    peers(&laptop).sync_peers(request).await?;
    let blob = |daemon: &TestDaemon| has(&daemon.data_dir().join("blobs"), "a picture");
    ensure!(blob(&desk)? && blob(&laptop)?, "the file is in both stores");
    let mut stream =
        sync.download_file(v1::DownloadFileRequest { sha256: digest.to_hex() }).await?.into_inner();
    let mut received = Vec::new();
    while let Some(message) = stream.message().await? {
        received.extend(message.data);
    }
    ensure!(received == bytes);
    Ok(())
}

/// Writes a ChatGPT export with one conversation that has a file.
pub(super) fn demo_with_file(folder: &std::path::Path, bytes: &[u8]) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("file-abc123-picture.png"), bytes)?;
    let message = serde_json::json!({
        "id": "m1", "author": {"role": "user"}, "create_time": 1_746_180_000,
        "content": {"content_type": "multimodal_text", "parts": [
            {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-abc123", "size_bytes": bytes.len(), "width": 1, "height": 1},
            "What is this?",
        ]},
    });
    let conversations = serde_json::json!([{
        "id": "c1", "conversation_id": "c1", "title": "A picture", "create_time": 1_746_180_000, "update_time": 1_746_180_000,
        "current_node": "m1",
        "mapping": {
            "root": {"id": "root", "message": null, "parent": null, "children": ["m1"]},
            "m1": {"id": "m1", "message": message, "parent": "root", "children": []},
        },
    }]);
    std::fs::write(folder.join("conversations.json"), serde_json::to_vec(&conversations)?)?;
    Ok(())
}

/// Changes a byte of each file below a folder; returns how many there are.
pub(super) fn damage_files(folder: &std::path::Path) -> Result<usize> {
    let mut damaged = 0;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            damaged += damage_files(&path)?;
        } else {
            let mut bytes = std::fs::read(&path)?;
            *bytes.first_mut().context("a file with bytes")? ^= 1;
            std::fs::write(&path, bytes)?;
            damaged += 1;
        }
    }
    Ok(damaged)
}
