//! The import of an upload has the result of an import by path.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result, ensure};
use satchel_core::vault::{self, UnlockMethod, UnlockOptions};
use satchel_proto::v1::{
    self, DeviceRole, ImportStatus, import_service_client::ImportServiceClient, upload_import_request::Part,
};
use satchel_tests::{
    operation, samples,
    test_daemon::TestDaemon,
    test_device::{TestDevice, listen, listening_daemon, policy},
};
use tonic::{Code, Status, transport::Channel};

use crate::uploads::fixture::{MIB, Uploader, archive, import_of, refused};

/// Waits until an upload is removed, which happens right after its operation has ended.
async fn wait_until_gone(uploader: &mut Uploader, id: &str) -> Result<()> {
    let gone = async {
        while uploader.get(id).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await.context("the upload stays")
}

/// Returns a receipt without what differs between two imports of the same file.
fn comparable(operation: &v1::Operation) -> Result<v1::Import> {
    let [receipt] = operation.imports() else { anyhow::bail!("{operation:?}") };
    Ok(v1::Import {
        id: String::new(),
        operation_id: String::new(),
        path: String::new(),
        elapsed: None,
        started_at: None,
        finished_at: None,
        ..receipt.clone()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receipt_is_that_of_the_same_file_imported_by_path() -> Result<()> {
    for (name, lone) in [("export.zip", false), ("conversations.json", true)] {
        let by_path = TestDaemon::start().await?;
        let folder = by_path.folder.path().to_owned();
        let bytes = if lone {
            let from = samples::sample("chatgpt", "attachments-by-every-name-rule").join(name);
            fs::copy(from, folder.join(name))?;
            fs::read(folder.join(name))?
        } else {
            archive(&folder, name)?
        };
        let expected = comparable(&by_path.import(&folder.join(name)).await?)?;
        ensure!(expected.conversations.is_some_and(|counts| counts.new > 0), "{expected:?}");
        let daemon = listening_daemon().await?;
        let device = TestDevice::pair(&daemon, "phone", policy(DeviceRole::Owner)).await?;
        let mut uploader = Uploader::new(&device.channel);
        let id = uploader.upload(name, &bytes).await?;
        let operation = uploader.import(import_of(&id)).await?;
        ensure!(comparable(&operation)? == expected, "{operation:?}\n{expected:?}");
        wait_until_gone(&mut uploader, &id).await?;
        ensure!(fs::read_dir(daemon.data_dir().join("uploads"))?.next().is_none());
        // The same bytes by path are known.
        let again = daemon.import(&folder.join(name)).await?;
        ensure!(comparable(&again)?.status() == ImportStatus::Unchanged, "{again:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incomplete_upload_is_not_imported_and_a_dry_run_keeps_it() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let bytes = archive(daemon.folder.path(), "export.zip")?;
    let mut uploader = Uploader::new(&daemon.channel);
    let id = uploader.create("export.zip", &bytes).await?.id;
    uploader.write(&id, 0, &bytes[..100]).await?;
    let mut imports = ImportServiceClient::new(daemon.channel.clone());
    ensure!(refused(imports.create_import(import_of(&id)).await)? == "UPLOAD_INCOMPLETE");
    let both = v1::CreateImportRequest { path: "/nowhere".to_owned(), ..import_of(&id) };
    ensure!(refused(imports.create_import(both).await)? == "FIELD_INVALID");
    uploader.send(&id, &bytes, MIB).await?;
    let dry_run = uploader.import(v1::CreateImportRequest { dry_run: true, ..import_of(&id) }).await?;
    ensure!(dry_run.imports().first().is_some_and(|receipt| receipt.dry_run), "{dry_run:?}");
    let real = uploader.import(import_of(&id)).await?;
    ensure!(real.imports().first().is_some_and(|receipt| receipt.conversations.is_some()), "{real:?}");
    wait_until_gone(&mut uploader, &id).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_data_directory_holds_no_plain_byte_of_an_upload() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    fs::create_dir(&data)?;
    let key = UnlockMethod::KeyFile(folder.path().join("key"));
    vault::encrypt(&data, &key, &UnlockOptions::default(), &mut |_| {}, &mut |_| {})?;
    let daemon = TestDaemon::start_with(folder, listen).await?;
    let mut uploader = Uploader::new(&daemon.channel);
    let input = samples::sample("chatgpt", "attachments-by-every-name-rule").join("conversations.json");
    let bytes = fs::read(input)?;
    let id = uploader.upload("a telling name.json", &bytes).await?;
    let staged = fs::read(data.join("uploads").join(&id))?;
    for text in [&b"telling"[..], &bytes[..16], b"mapping"] {
        ensure!(!staged.windows(text.len()).any(|window| window == text));
    }
    let daemon = TestDaemon::start_with(daemon.stop().await?, listen).await?;
    let operation = Uploader::new(&daemon.channel).import(import_of(&id)).await?;
    let receipt = operation.imports().first().context("a receipt")?;
    ensure!(receipt.conversations.is_some_and(|counts| counts.new > 0), "{receipt:?}");
    ensure!(receipt.source == "a telling name.json");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypting_a_data_directory_removes_the_plain_files_of_devices() -> Result<()> {
    let daemon = listening_daemon().await?;
    let device = TestDevice::pair(&daemon, "laptop", policy(DeviceRole::Owner)).await?;
    let id = Uploader::new(&device.channel).upload("a.json", b"plain").await?;
    operation::export(&device.channel, v1::CreateExportRequest::default()).await?;
    let folder = daemon.stop().await?;
    let data = folder.path().join("data");
    ensure!(data.join("uploads").join(id).exists() && data.join("exports-out").exists());
    let key = UnlockMethod::KeyFile(folder.path().join("key"));
    vault::encrypt(&data, &key, &UnlockOptions::default(), &mut |_| {}, &mut |_| {})?;
    ensure!(!data.join("uploads").exists() && !data.join("exports-out").exists());
    // An export that waits in an encrypted data directory has to be encrypted itself.
    let daemon = TestDaemon::start_with(folder, listen).await?;
    let device = TestDevice::pair(&daemon, "phone", policy(DeviceRole::Owner)).await?;
    let plain = operation::export(&device.channel, v1::CreateExportRequest::default()).await;
    ensure!(refused(plain)? == "FIELD_INVALID");
    let passphrase = "correct horse battery".to_owned();
    let sealed = v1::CreateExportRequest { passphrase, ..v1::CreateExportRequest::default() };
    let export = operation::export(&device.channel, sealed).await?;
    ensure!(fs::read(&export.path)?.starts_with(b"age-encryption.org/v1"), "{export:?}");
    Ok(())
}

async fn stream(channel: &Channel, parts: Vec<Part>) -> Result<v1::UploadImportResponse, Status> {
    let messages = parts.into_iter().map(|part| v1::UploadImportRequest { part: Some(part) });
    let messages: Vec<_> = messages.collect();
    let mut client = ImportServiceClient::new(channel.clone());
    Ok(client.upload_import(tokio_stream::iter(messages)).await?.into_inner())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_arrives_as_one_stream() -> Result<()> {
    let daemon = listening_daemon().await?;
    let device = TestDevice::pair(&daemon, "laptop", policy(DeviceRole::Owner)).await?;
    let bytes = archive(daemon.folder.path(), "export.zip")?;
    let header = v1::UploadImportHeader {
        name: "export.zip".to_owned(),
        size_bytes: i64::try_from(bytes.len())?,
        ..v1::UploadImportHeader::default()
    };
    let chunks = || bytes.chunks(300).map(|chunk| Part::Chunk(chunk.to_vec()));
    let head = |header: v1::UploadImportHeader| std::iter::once(Part::Header(header));
    let wrong_hash = v1::UploadImportHeader { sha256: "0".repeat(64), ..header.clone() };
    let with_path = v1::CreateImportRequest { path: "/x".to_owned(), ..v1::CreateImportRequest::default() };
    let with_path = v1::UploadImportHeader { options: Some(with_path), ..header.clone() };
    let hostile = v1::UploadImportHeader { name: "../x".to_owned(), ..header.clone() };
    for (parts, code) in [
        (Vec::new(), Code::InvalidArgument),
        (chunks().collect(), Code::InvalidArgument),
        (head(header.clone()).chain(head(header.clone())).collect(), Code::InvalidArgument),
        (head(header.clone()).chain(chunks().skip(1)).collect(), Code::FailedPrecondition),
        (head(header.clone()).chain(chunks().take(2)).collect(), Code::FailedPrecondition),
        (head(header.clone()).chain(chunks()).chain(chunks()).collect(), Code::InvalidArgument),
        (head(wrong_hash).chain(chunks()).collect(), Code::DataLoss),
        (head(with_path).chain(chunks()).collect(), Code::InvalidArgument),
        (head(hostile).chain(chunks()).collect(), Code::InvalidArgument),
    ] {
        let count = parts.len();
        let outcome = stream(&device.channel, parts).await;
        ensure!(outcome.as_ref().err().map(Status::code) == Some(code), "{count}: {outcome:?}");
    }
    // Broken streams leave nothing, or the fourth would have been refused.
    let started = stream(&device.channel, head(header).chain(chunks()).collect()).await?;
    let id = started.operation.context("an operation")?.id;
    let operation = operation::wait(&device.channel, &id).await?;
    let receipt = operation.imports().first().context("a receipt")?;
    ensure!(receipt.conversations.is_some_and(|counts| counts.new > 0), "{receipt:?}");
    Ok(())
}
