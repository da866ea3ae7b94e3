//! The ways in which exports arrive in a folder.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use satchel_proto::{
    integers::unsigned,
    v1::{self, admin_service_client::AdminServiceClient},
};
use satchel_tests::samples::{copy, sample};

use crate::watch::fixture::{WatchFixture, chatgpt_file, chatgpt_zip, idle};

/// A way to bring an export into the folder.
type Arrival = fn(&Path, &[u8]) -> Result<()>;

fn pause() {
    // Simulates a slow writer; nothing depends on the length of the pause.
    std::thread::sleep(Duration::from_millis(25));
}

fn write_in_pieces(file: &mut File, bytes: &[u8]) -> Result<()> {
    for piece in bytes.chunks(bytes.len() / 8 + 1) {
        file.write_all(piece)?;
        file.flush()?;
        pause();
    }
    Ok(())
}

fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn write_and_rename(path: &Path, bytes: &[u8], ending: &str) -> Result<()> {
    let on_the_way = with_suffix(path, ending);
    write_in_pieces(&mut File::create(&on_the_way)?, bytes)?;
    pause();
    fs::rename(on_the_way, path)?;
    Ok(())
}

const ARRIVALS: [(&str, Arrival); 12] = [
    ("at once", |path, bytes| Ok(fs::write(path, bytes)?)),
    ("crdownload", |path, bytes| write_and_rename(path, bytes, ".crdownload")),
    ("part", |path, bytes| {
        // Firefox reserves the name with an empty file.
        File::create(path)?;
        write_and_rename(path, bytes, ".part")
    }),
    ("tmp", |path, bytes| write_and_rename(path, bytes, ".tmp")),
    ("download folder", |path, bytes| {
        let folder = with_suffix(path, ".download");
        fs::create_dir(&folder)?;
        let inner = folder.join(path.file_name().context("a name")?);
        write_in_pieces(&mut File::create(&inner)?, bytes)?;
        fs::rename(inner, path)?;
        Ok(fs::remove_dir(folder)?)
    }),
    ("grows", |path, bytes| write_in_pieces(&mut File::create(path)?, bytes)),
    ("preallocated", |path, bytes| {
        let mut file = File::create(path)?;
        file.write_all(&vec![0; bytes.len()])?;
        pause();
        pause();
        pause();
        pause();
        std::io::Seek::rewind(&mut file)?;
        write_in_pieces(&mut file, bytes)
    }),
    ("aria2", |path, bytes| {
        let control = with_suffix(path, ".aria2");
        fs::write(&control, "control")?;
        let mut file = File::create(path)?;
        file.set_len(bytes.len() as u64)?;
        write_in_pieces(&mut file, bytes)?;
        Ok(fs::remove_file(control)?)
    }),
    ("renamed", |path, bytes| write_and_rename(path, bytes, ".bin")),
    ("replaced", |path, bytes| {
        fs::write(path, &bytes[..bytes.len() / 2])?;
        pause();
        write_and_rename(path, bytes, ".new")
    }),
    ("truncated and regrown", |path, bytes| {
        fs::write(path, &bytes[..bytes.len() / 2])?;
        pause();
        let mut file = File::create(path)?;
        pause();
        write_in_pieces(&mut file, bytes)
    }),
    ("hidden by rsync", |path, bytes| {
        let name = path.file_name().and_then(|name| name.to_str()).context("a name")?;
        let on_the_way = path.with_file_name(format!(".{name}.Xy12Ab"));
        write_in_pieces(&mut File::create(&on_the_way)?, bytes)?;
        Ok(fs::rename(on_the_way, path)?)
    }),
];

#[tokio::test(flavor = "multi_thread")]
async fn existing_and_arriving_files_are_imported_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("downloads"))?;
    fs::write(folder.path().join("downloads/conversations-000.json"), chatgpt_file(0))?;
    let fixture = WatchFixture::start_in(folder).await?;
    fixture.wait_for_imported(1).await?;
    fs::write(fixture.path("export.zip"), chatgpt_zip(1)?)?;
    fs::create_dir_all(fixture.path("unpacked/inner"))?;
    fs::write(fixture.path("unpacked/inner/conversations.json"), chatgpt_file(2))?;
    fs::write(fixture.path("photo.jpg"), "\u{ff}\u{d8}")?;
    fixture.wait_for_imported(3).await?;
    fixture.wait_for_rescans().await;
    fixture.assert_completed(3).await?;
    let fixture = fixture.restart().await?;
    fixture.wait_for_imported(3).await?;
    fixture.wait_for_rescans().await;
    fixture.assert_completed(3).await?;
    assert_eq!(fixture.conversation_count().await?, 3);
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_of_every_kind_are_imported_once_and_completely() -> Result<()> {
    let fixture = WatchFixture::start().await?;
    let mut count = 0;
    for (_, arrival) in ARRIVALS {
        for (ending, bytes) in [("zip", chatgpt_zip(count)?), ("json", chatgpt_file(count + 1))] {
            // Incomplete JSON has no closing bracket, and an incomplete ZIP has no central directory.
            let path = fixture.path(&format!("conversations-{count:03}.{ending}"));
            tokio::task::spawn_blocking(move || arrival(&path, &bytes)).await??;
            count += 1;
        }
        count += 1;
    }
    let files = 2 * ARRIVALS.len();
    fixture.wait_for_imported(files as u64).await?;
    fixture.wait_for_rescans().await;
    fixture.assert_completed(files).await?;
    assert_eq!(fixture.conversation_count().await?, files as u64);
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_download_waits_with_a_reason() -> Result<()> {
    let fixture = WatchFixture::start().await?;
    let bytes = chatgpt_zip(1)?;
    fs::write(fixture.path("export.zip"), &bytes[..bytes.len() - 30])?;
    fs::write(fixture.path("other.zip.crdownload"), "x")?;
    let source = fixture
        .wait_until(|source| source.waiting_total == 2 && source.waiting[0].reason.starts_with("unfinished"))
        .await?;
    assert!(source.waiting[1].reason.contains("download is in progress"), "{source:?}");
    fixture.wait_for_rescans().await;
    fixture.assert_completed(0).await?;
    fs::write(fixture.path("export.zip"), &bytes)?;
    fs::remove_file(fixture.path("other.zip.crdownload"))?;
    fixture.wait_for_imported(1).await?;
    fixture.assert_completed(1).await?;
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_under_another_name_are_not_read_again() -> Result<()> {
    let fixture = WatchFixture::start().await?;
    fs::write(fixture.path("a.json"), chatgpt_file(1))?;
    fixture.wait_for_imported(1).await?;
    fs::copy(fixture.path("a.json"), fixture.path("a (1).json"))?;
    fixture.wait_for_imported(2).await?;
    fs::rename(fixture.path("a.json"), fixture.path("b.json"))?;
    fixture.wait_for_rescans().await;
    fixture.wait_for_imported(2).await?;
    fixture.assert_completed(1).await?;
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_arrive_one_by_one_give_the_same_as_together() -> Result<()> {
    let batch = sample("claude", "batched-archives");
    let together = WatchFixture::start().await?;
    copy(&batch, &together.path("together"))?;
    together.wait_for_imported(1).await?;
    let all = record_counts(&together).await?;
    assert!(all.0 > 0 && all.1 > 0, "{all:?}");
    let apart = WatchFixture::start().await?;
    let place = tempfile::tempdir()?;
    copy(&batch, place.path())?;
    let parts = ["memories-000.zip", "light_metadata-000.zip", "conversations-000.zip"];
    for part in parts {
        fs::copy(place.path().join(part), apart.path(part))?;
        let done = |source: &v1::Source| source.imported + source.unrecognized;
        let before = done(&apart.source().await?);
        apart.wait_until(|source| done(source) > before && idle(source)).await?;
    }
    assert_eq!(record_counts(&apart).await?, all);
    together.daemon.stop().await?;
    apart.daemon.stop().await?;
    Ok(())
}

async fn record_counts(fixture: &WatchFixture) -> Result<(u64, u64)> {
    let mut admin = AdminServiceClient::new(fixture.daemon.channel.clone());
    let stats = admin.get_stats(v1::GetStatsRequest {}).await?.into_inner();
    Ok((unsigned(stats.conversations), unsigned(stats.memories)))
}

#[tokio::test(flavor = "multi_thread")]
async fn files_with_non_utf8_names_are_imported_and_shown_escaped() -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let fixture = WatchFixture::start().await?;
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9\n.zip");
    let bytes = chatgpt_zip(1)?;
    fs::write(fixture.downloads.join(name), &bytes[..bytes.len() - 20])?;
    let source = fixture.wait_until(|source| source.waiting_total == 1).await?;
    assert_eq!(source.waiting[0].name, "caf\\xe9\\u{a}.zip");
    fs::write(fixture.downloads.join(name), &bytes)?;
    fixture.wait_for_imported(1).await?;
    fixture.assert_completed(1).await?;
    fixture.daemon.stop().await?;
    Ok(())
}
