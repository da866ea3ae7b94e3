//! Chunks: resumed at each boundary, repeated, wrong, by two writers, and across a restart.

use anyhow::{Result, ensure};
use satchel_proto::v1::{self, DeviceRole};
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{TestDevice, listen, listening_daemon, policy},
};
use tonic::Code;

use crate::uploads::fixture::{MIB, Uploader, noise, reason, refused};

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_resumes_after_every_chunk_on_a_new_connection() -> Result<()> {
    let daemon = listening_daemon().await?;
    let device = TestDevice::pair(&daemon, "phone", policy(DeviceRole::Owner)).await?;
    let bytes = noise(10_000);
    let upload = Uploader::new(&device.channel).create("export.zip", &bytes).await?;
    let size = 997;
    for (number, chunk) in bytes.chunks(size).enumerate() {
        let again = TestDevice::connect(device.credentials.clone(), device.device.clone()).await?;
        let mut uploader = Uploader::new(&again.channel);
        let known = uploader.create("export.zip", &bytes).await?;
        ensure!(known.id == upload.id && known.committed_bytes == i64::try_from(number * size)?, "{known:?}");
        let committed = uploader.write(&upload.id, number * size, chunk).await?;
        ensure!(committed == number * size + chunk.len());
    }
    ensure!(Uploader::new(&device.channel).get(&upload.id).await?.committed_bytes == 10_000);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_chunk_changes_nothing_and_a_different_one_is_refused() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut uploader = Uploader::new(&daemon.channel);
    let bytes = noise(5_000);
    let id = uploader.create("a.json", &bytes).await?.id;
    for _ in 0..3 {
        ensure!(uploader.write(&id, 0, &bytes[..1_000]).await? == 1_000);
    }
    uploader.write(&id, 1_000, &bytes[1_000..2_000]).await?;
    // Repeated chunks need not have the boundaries of the first ones.
    ensure!(uploader.write(&id, 500, &bytes[500..1_800]).await? == 2_000);
    let mut other = bytes[500..1_800].to_vec();
    other[700] ^= 1;
    ensure!(refused(uploader.write(&id, 500, &other).await)? == "FIELD_INVALID");
    ensure!(uploader.get(&id).await?.committed_bytes == 2_000);
    uploader.send(&id, &bytes, MIB).await?;
    ensure!(uploader.write(&id, 4_000, &bytes[4_000..]).await? == 5_000);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_offset_is_answered_with_the_committed_size() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut uploader = Uploader::new(&daemon.channel);
    let bytes = noise(3_000);
    let id = uploader.create("a.json", &bytes).await?.id;
    uploader.write(&id, 0, &bytes[..1_000]).await?;
    for (offset, end) in [(2_000, 3_000), (1_001, 2_000), (900, 1_100)] {
        let error = uploader.write(&id, offset, &bytes[offset..end]).await.err();
        let error = error.ok_or_else(|| anyhow::anyhow!("{offset} is accepted"))?;
        let (word, metadata) = reason(&error);
        ensure!(error.code() == Code::OutOfRange && word == "UPLOAD_OFFSET", "{error:?}");
        ensure!(metadata.get("committed_bytes").is_some_and(|bytes| bytes == "1000"), "{metadata:?}");
    }
    let negative = v1::WriteUploadRequest { id: id.clone(), offset: -1, data: vec![1], crc32c: None };
    ensure!(refused(uploader.write_request(negative).await)? == "FIELD_INVALID");
    ensure!(refused(uploader.write(&id, 1_000, &[]).await)? == "FIELD_INVALID");
    ensure!(refused(uploader.write(&id, 1_000, &noise(2_001)).await)? == "FIELD_INVALID", "past the end");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_checksums_are_refused() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut uploader = Uploader::new(&daemon.channel);
    let bytes = noise(2_000);
    let id = uploader.create("a.json", &bytes).await?.id;
    let wrong = v1::WriteUploadRequest { id: id.clone(), offset: 0, data: bytes.clone(), crc32c: Some(1) };
    ensure!(refused(uploader.write_request(wrong).await)? == "FIELD_INVALID");
    ensure!(uploader.get(&id).await?.committed_bytes == 0);
    let mut damaged = bytes.clone();
    damaged[1_500] ^= 1;
    uploader.write(&id, 0, &damaged[..1_000]).await?;
    let error = uploader.write(&id, 1_000, &damaged[1_000..]).await.err();
    ensure!(error.as_ref().is_some_and(|error| error.code() == Code::DataLoss), "{error:?}");
    // The damage cannot be located, so the whole upload is gone.
    ensure!(refused(uploader.get(&id).await)? == "UPLOAD_NOT_FOUND");
    ensure!(std::fs::read_dir(daemon.data_dir().join("uploads"))?.next().is_none());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_writers_of_one_upload_cannot_mix_it_up() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let bytes = noise(40_000);
    let mut first = Uploader::new(&daemon.channel);
    let id = first.create("a.json", &bytes).await?.id;
    let write = |mut uploader: Uploader, id: String, bytes: Vec<u8>, size: usize| async move {
        let mut at = 0;
        while at < bytes.len() {
            let end = bytes.len().min(at + size);
            at = match uploader.write(&id, at, &bytes[at..end]).await {
                Ok(committed) => committed,
                Err(error) if reason(&error).0 == "UPLOAD_OFFSET" => {
                    usize::try_from(uploader.get(&id).await?.committed_bytes)?
                }
                Err(error) => return Err(error.into()),
            };
        }
        anyhow::Ok(())
    };
    let one = tokio::spawn(write(first.clone(), id.clone(), bytes.clone(), 700));
    let other = tokio::spawn(write(first.clone(), id.clone(), bytes.clone(), 900));
    one.await??;
    other.await??;
    // The hash was checked with the last byte.
    ensure!(first.get(&id).await?.committed_bytes == 40_000);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_continues_after_a_restart_of_the_daemon() -> Result<()> {
    let daemon = listening_daemon().await?;
    let device = TestDevice::pair(&daemon, "phone", policy(DeviceRole::Owner)).await?;
    let bytes = noise(3_000);
    let mut owner = Uploader::new(&daemon.channel);
    let id = owner.create("a.json", &bytes).await?.id;
    owner.write(&id, 0, &bytes[..1_200]).await?;
    let of_device = Uploader::new(&device.channel).create("a.json", &bytes).await?.id;
    let daemon = TestDaemon::start_with(daemon.stop().await?, listen).await?;
    let mut owner = Uploader::new(&daemon.channel);
    ensure!(owner.get(&id).await?.committed_bytes == 1_200);
    ensure!(refused(owner.get(&of_device).await)? == "UPLOAD_NOT_FOUND", "it is still the device's");
    // The hash covers what arrived before the restart.
    let mut damaged = bytes.clone();
    damaged[2_000] ^= 1;
    let error = owner.write(&id, 1_200, &damaged[1_200..]).await.err();
    ensure!(error.is_some_and(|error| error.code() == Code::DataLoss));
    let id = owner.upload("a.json", &bytes).await?;
    ensure!(owner.get(&id).await?.committed_bytes == 3_000);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_upload_of_another_device_does_not_exist() -> Result<()> {
    let daemon = listening_daemon().await?;
    let one = TestDevice::pair(&daemon, "one", policy(DeviceRole::Owner)).await?;
    let other = TestDevice::pair(&daemon, "other", policy(DeviceRole::Owner)).await?;
    let bytes = noise(100);
    let id = Uploader::new(&one.channel).upload("a.json", &bytes).await?;
    for channel in [&other.channel, &daemon.channel] {
        let mut uploader = Uploader::new(channel);
        for outcome in [
            refused(uploader.get(&id).await)?,
            refused(uploader.write(&id, 0, &bytes).await)?,
            refused(uploader.cancel(&id).await)?,
        ] {
            ensure!(outcome == "UPLOAD_NOT_FOUND");
        }
        let import = uploader.import(crate::uploads::fixture::import_of(&id)).await;
        ensure!(import.is_err());
    }
    ensure!(Uploader::new(&one.channel).get(&id).await?.committed_bytes == 100);
    Ok(())
}
