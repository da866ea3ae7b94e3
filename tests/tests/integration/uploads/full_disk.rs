//! A disk that another program fills while a file arrives.

use anyhow::{Result, ensure};
use satchel_proto::v1::ImportStatus;
use satchel_tests::{small_disk::SmallDisk, test_daemon::TestDaemon};
use tonic::Code;

use crate::uploads::fixture::{MIB, Uploader, archive, import_of, noise, reason, refused};

/// Size of the disk in MiB. 256 MiB have to stay free when an upload is created.
const DISK_MIB: u64 = 400;

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_continues_when_a_full_disk_has_room_again() -> Result<()> {
    let Some(disk) = SmallDisk::mount(DISK_MIB)? else { return Ok(()) };
    let daemon = TestDaemon::start_in(tempfile::tempdir_in(disk.path())?).await?;
    let mut uploader = Uploader::new(&daemon.channel);
    let bytes = noise(5 * MIB);
    let id = uploader.create("export.zip", &bytes).await?.id;
    let mut committed = uploader.write(&id, 0, &bytes[..MIB]).await?;
    for round in 0..3 {
        disk.fill()?;
        for _ in 0..2 {
            let error = uploader.write(&id, committed, &bytes[committed..committed + MIB]).await.err();
            let error = error.ok_or_else(|| anyhow::anyhow!("round {round}: it is written"))?;
            ensure!(error.code() == Code::ResourceExhausted && reason(&error).0 == "DISK_FULL", "{error:?}");
            ensure!(usize::try_from(uploader.get(&id).await?.committed_bytes)? == committed);
        }
        // Another one is refused at once.
        ensure!(refused(uploader.create("other.zip", b"x").await)? == "DISK_FULL");
        disk.free()?;
        committed = uploader.write(&id, committed, &bytes[committed..committed + MIB]).await?;
        ensure!(committed == (round + 2) * MIB);
    }
    // The hash over all bytes is checked with the last one.
    uploader.send(&id, &bytes, MIB).await?;
    ensure!(uploader.get(&id).await?.committed_bytes == i64::try_from(bytes.len())?);
    uploader.cancel(&id).await?;
    drop(daemon.stop().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_of_an_upload_succeeds_after_one_that_found_no_room() -> Result<()> {
    let Some(disk) = SmallDisk::mount(DISK_MIB)? else { return Ok(()) };
    let daemon = TestDaemon::start_in(tempfile::tempdir_in(disk.path())?).await?;
    let mut uploader = Uploader::new(&daemon.channel);
    let id = uploader.upload("export.zip", &archive(daemon.folder.path(), "export.zip")?).await?;
    disk.fill()?;
    let failed = uploader.import(import_of(&id)).await;
    let stored = failed.is_ok_and(|operation| {
        operation.imports().iter().any(|import| import.status() == ImportStatus::Completed)
    });
    ensure!(!stored, "it was stored on a full disk");
    ensure!(uploader.get(&id).await.is_ok(), "the upload can be imported again");
    disk.free()?;
    let operation = uploader.import(import_of(&id)).await?;
    ensure!(
        operation.imports().iter().all(|import| import.status() == ImportStatus::Completed),
        "{operation:?}"
    );
    drop(daemon.stop().await?);
    Ok(())
}
