//! The ways in which exports arrive in a folder.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use satchel_proto::{
    signed::unsigned,
    v1::{self, admin_service_client::AdminServiceClient},
};
use satchel_tests::exports::{copy, sample};

use crate::play::{Play, at_rest, export, zipped};

/// A way to bring an export into the folder.
type Arrival = fn(&Path, &[u8]) -> Result<()>;

fn pause() {
    // Simulates a slow writer; nothing depends on the length of the pause.
    std::thread::sleep(Duration::from_millis(25));
}

fn in_pieces(file: &mut File, bytes: &[u8]) -> Result<()> {
    for piece in bytes.chunks(bytes.len() / 8 + 1) {
        file.write_all(piece)?;
        file.flush()?;
        pause();
    }
    Ok(())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn under_another_name(path: &Path, bytes: &[u8], ending: &str) -> Result<()> {
    let on_the_way = beside(path, ending);
    in_pieces(&mut File::create(&on_the_way)?, bytes)?;
    pause();
    fs::rename(on_the_way, path)?;
    Ok(())
}

const ARRIVALS: [(&str, Arrival); 12] = [
    ("at once", |path, bytes| Ok(fs::write(path, bytes)?)),
    ("crdownload", |path, bytes| under_another_name(path, bytes, ".crdownload")),
    ("part", |path, bytes| {
        // Firefox reserves the name with an empty file.
        File::create(path)?;
        under_another_name(path, bytes, ".part")
    }),
    ("tmp", |path, bytes| under_another_name(path, bytes, ".tmp")),
    ("download folder", |path, bytes| {
        let folder = beside(path, ".download");
        fs::create_dir(&folder)?;
        let inner = folder.join(path.file_name().context("a name")?);
        in_pieces(&mut File::create(&inner)?, bytes)?;
        fs::rename(inner, path)?;
        Ok(fs::remove_dir(folder)?)
    }),
    ("grows", |path, bytes| in_pieces(&mut File::create(path)?, bytes)),
    ("preallocated", |path, bytes| {
        let mut file = File::create(path)?;
        file.write_all(&vec![0; bytes.len()])?;
        pause();
        pause();
        pause();
        pause();
        std::io::Seek::rewind(&mut file)?;
        in_pieces(&mut file, bytes)
    }),
    ("aria2", |path, bytes| {
        let control = beside(path, ".aria2");
        fs::write(&control, "control")?;
        let mut file = File::create(path)?;
        file.set_len(bytes.len() as u64)?;
        in_pieces(&mut file, bytes)?;
        Ok(fs::remove_file(control)?)
    }),
    ("renamed", |path, bytes| under_another_name(path, bytes, ".bin")),
    ("replaced", |path, bytes| {
        fs::write(path, &bytes[..bytes.len() / 2])?;
        pause();
        under_another_name(path, bytes, ".new")
    }),
    ("truncated and regrown", |path, bytes| {
        fs::write(path, &bytes[..bytes.len() / 2])?;
        pause();
        let mut file = File::create(path)?;
        pause();
        in_pieces(&mut file, bytes)
    }),
    ("hidden by rsync", |path, bytes| {
        let name = path.file_name().and_then(|name| name.to_str()).context("a name")?;
        let on_the_way = path.with_file_name(format!(".{name}.Xy12Ab"));
        in_pieces(&mut File::create(&on_the_way)?, bytes)?;
        Ok(fs::rename(on_the_way, path)?)
    }),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_and_what_lands_is_imported_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::create_dir(folder.path().join("downloads"))?;
    fs::write(folder.path().join("downloads/conversations-000.json"), export(0))?;
    let play = Play::start_in(folder).await?;
    play.imported(1).await?;
    fs::write(play.at("export.zip"), zipped(1)?)?;
    fs::create_dir_all(play.at("unpacked/inner"))?;
    fs::write(play.at("unpacked/inner/conversations.json"), export(2))?;
    fs::write(play.at("photo.jpg"), "\u{ff}\u{d8}")?;
    play.imported(3).await?;
    play.looks_again().await;
    play.completed(3).await?;
    let play = play.restart().await?;
    play.imported(3).await?;
    play.looks_again().await;
    play.completed(3).await?;
    assert_eq!(play.conversations().await?, 3);
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_of_every_kind_are_imported_once_and_whole() -> Result<()> {
    let play = Play::start().await?;
    let mut count = 0;
    for (_, arrival) in ARRIVALS {
        for (ending, bytes) in [("zip", zipped(count)?), ("json", export(count + 1))] {
            // Incomplete JSON has no closing bracket, and an incomplete ZIP has no central directory.
            let path = play.at(&format!("conversations-{count:03}.{ending}"));
            tokio::task::spawn_blocking(move || arrival(&path, &bytes)).await??;
            count += 1;
        }
        count += 1;
    }
    let files = 2 * ARRIVALS.len();
    play.imported(files as u64).await?;
    play.looks_again().await;
    play.completed(files).await?;
    assert_eq!(play.conversations().await?, files as u64);
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_download_waits_and_says_so() -> Result<()> {
    let play = Play::start().await?;
    let bytes = zipped(1)?;
    fs::write(play.at("export.zip"), &bytes[..bytes.len() - 30])?;
    fs::write(play.at("other.zip.crdownload"), "x")?;
    let source = play
        .until(|source| source.waiting_total == 2 && source.waiting[0].reason.starts_with("unfinished"))
        .await?;
    assert!(source.waiting[1].reason.contains("download is in progress"), "{source:?}");
    play.looks_again().await;
    play.completed(0).await?;
    fs::write(play.at("export.zip"), &bytes)?;
    fs::remove_file(play.at("other.zip.crdownload"))?;
    play.imported(1).await?;
    play.completed(1).await?;
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_under_another_name_are_not_read_again() -> Result<()> {
    let play = Play::start().await?;
    fs::write(play.at("a.json"), export(1))?;
    play.imported(1).await?;
    fs::copy(play.at("a.json"), play.at("a (1).json"))?;
    play.imported(2).await?;
    fs::rename(play.at("a.json"), play.at("b.json"))?;
    play.looks_again().await;
    play.imported(2).await?;
    play.completed(1).await?;
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_arrive_one_by_one_end_as_if_they_had_come_together() -> Result<()> {
    let batch = sample("claude", "batched-archives");
    let together = Play::start().await?;
    copy(&batch, &together.at("together"))?;
    together.imported(1).await?;
    let all = counts(&together).await?;
    assert!(all.0 > 0 && all.1 > 0, "{all:?}");
    let apart = Play::start().await?;
    let place = tempfile::tempdir()?;
    copy(&batch, place.path())?;
    let parts = ["memories-000.zip", "light_metadata-000.zip", "conversations-000.zip"];
    for part in parts {
        fs::copy(place.path().join(part), apart.at(part))?;
        let done = |source: &v1::Source| source.imported + source.unrecognized;
        let before = done(&apart.source().await?);
        apart.until(|source| done(source) > before && at_rest(source)).await?;
    }
    assert_eq!(counts(&apart).await?, all);
    together.daemon.stop().await?;
    apart.daemon.stop().await?;
    Ok(())
}

async fn counts(play: &Play) -> Result<(u64, u64)> {
    let mut admin = AdminServiceClient::new(play.daemon.channel.clone());
    let stats = admin.get_stats(v1::GetStatsRequest {}).await?.into_inner();
    Ok((unsigned(stats.conversations), unsigned(stats.memories)))
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_no_text_are_imported_and_shown_escaped() -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let play = Play::start().await?;
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9\n.zip");
    let bytes = zipped(1)?;
    fs::write(play.downloads.join(name), &bytes[..bytes.len() - 20])?;
    let source = play.until(|source| source.waiting_total == 1).await?;
    assert_eq!(source.waiting[0].name, "caf\\xe9\\u{a}.zip");
    fs::write(play.downloads.join(name), &bytes)?;
    play.imported(1).await?;
    play.completed(1).await?;
    play.daemon.stop().await?;
    Ok(())
}
