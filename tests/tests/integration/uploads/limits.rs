//! Limits: names, sizes, numbers, space and time.

use anyhow::{Context as _, Result, ensure};
use satchel_core::uploads::{LIFETIME_MICROS, MAX_CHUNK_BYTES, NewUpload, UploadError, Uploads};
use satchel_pam::hash::Sha256Digest;
use satchel_proto::v1::DeviceRole;
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{TestDevice, listen, listening_daemon, policy},
};

use crate::uploads::fixture::{Uploader, noise, refused};

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_are_refused() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut uploader = Uploader::new(&daemon.channel);
    let long = "x".repeat(1 << 20);
    for name in ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\\b", "a\0b", "a\nb", "\u{1b}[2J", &long] {
        ensure!(refused(uploader.create(name, b"x").await)? == "FIELD_INVALID", "{name:.20?}");
    }
    for id in ["../journal", "..", "a\0b", &long, "no-upload"] {
        let outcome = refused(uploader.get(id).await)?;
        ensure!(outcome == "UPLOAD_NOT_FOUND" || outcome == "FIELD_INVALID", "{id:.20?}: {outcome}");
    }
    // The name is text, whatever it looks like.
    for name in ["..zip", "-rf", "con.zip", "über – 日本.json"] {
        let upload = uploader.create(name, b"x").await?;
        ensure!(upload.name == name);
        uploader.cancel(&upload.id).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_sizes_and_hashes_are_refused() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut uploader = Uploader::new(&daemon.channel);
    let sha256 = Sha256Digest::of(b"x").to_hex();
    ensure!(refused(uploader.announce("a", 0, &sha256).await)? == "FIELD_INVALID");
    for sha256 in [String::new(), sha256.to_uppercase(), format!("{sha256}0"), "z".repeat(64)] {
        ensure!(refused(uploader.announce("a", 1, &sha256).await)? == "FIELD_INVALID", "{sha256}");
    }
    let big = noise(MAX_CHUNK_BYTES + 1);
    let id = uploader.create("a", &big).await?.id;
    ensure!(refused(uploader.write(&id, 0, &big).await)? == "FIELD_INVALID");
    uploader.write(&id, 0, &big[..MAX_CHUNK_BYTES]).await?;
    ensure!(uploader.write(&id, MAX_CHUNK_BYTES, &big[MAX_CHUNK_BYTES..]).await? == big.len());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_has_three_uploads_and_all_have_a_total_size() -> Result<()> {
    let limited = |config: &mut satchel_server::config::Config| {
        listen(config);
        config.upload_bytes = 10_000;
    };
    let daemon = TestDaemon::start_with(tempfile::tempdir()?, limited).await?;
    let one = TestDevice::pair(&daemon, "one", policy(DeviceRole::Owner)).await?;
    let other = TestDevice::pair(&daemon, "other", policy(DeviceRole::Owner)).await?;
    let (mut one, mut other) = (Uploader::new(&one.channel), Uploader::new(&other.channel));
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(one.create(name, &noise(2_000)).await?.id);
    }
    ensure!(refused(one.create("d", b"x").await)? == "LIMIT_EXCEEDED");
    // What is announced counts, though nothing was sent.
    ensure!(refused(other.create("a", &noise(4_001)).await)? == "LIMIT_EXCEEDED");
    other.create("a", &noise(4_000)).await?;
    ensure!(refused(other.create("b", b"x").await)? == "LIMIT_EXCEEDED");
    one.cancel(&ids[0]).await?;
    one.create("d", &noise(2_000)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_without_the_permission_cannot_upload() -> Result<()> {
    let daemon = listening_daemon().await?;
    let reader = TestDevice::pair(&daemon, "reader", policy(DeviceRole::Reader)).await?;
    ensure!(refused(Uploader::new(&reader.channel).create("a", b"x").await)? == "SCOPE_MISSING");
    Ok(())
}

fn request(size: u64) -> NewUpload {
    let sha256 = Some(Sha256Digest::of(&[7; 10]).to_hex());
    NewUpload { owner: "device".to_owned(), name: "a".to_owned(), size, sha256, streamed: false }
}

#[test]
fn an_expired_upload_is_gone_with_its_file() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let files = || std::fs::read_dir(folder.path().join("uploads")).map(Iterator::count);
    let uploads = Uploads::open(folder.path(), None, 1 << 30, 0);
    let id = uploads.create(request(10), 0)?.id;
    let last = LIFETIME_MICROS - 1;
    uploads.write(("device", &id), 0, &[7; 5], last)?;
    let late = |outcome| matches!(outcome, Err(UploadError::NotFound { .. }));
    ensure!(late(uploads.write(("device", &id), 5, &[7; 5], LIFETIME_MICROS)));
    ensure!(uploads.get("device", &id, last)?.committed == 5);
    drop(uploads);
    // One that expired while no daemon ran is removed at the start.
    let uploads = Uploads::open(folder.path(), None, 1 << 30, last);
    ensure!(uploads.get("device", &id, last)?.committed == 5);
    uploads.remove_expired(LIFETIME_MICROS);
    ensure!(files()? == 0);
    let id = uploads.create(request(10), 0)?.id;
    drop(Uploads::open(folder.path(), None, 1 << 30, LIFETIME_MICROS));
    ensure!(files()? == 0, "{id}");
    Ok(())
}

#[test]
fn an_upload_that_the_disk_cannot_hold_is_refused_at_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let uploads = Uploads::open(folder.path(), None, u64::MAX, 0);
    let error = uploads.create(request(1 << 60), 0).err().context("an error")?;
    ensure!(matches!(error, UploadError::DiskFull { .. }), "{error}");
    ensure!(std::fs::read_dir(folder.path().join("uploads"))?.next().is_none());
    Ok(())
}
