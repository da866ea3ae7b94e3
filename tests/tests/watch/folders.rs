//! The watched folder itself: it disappears and returns, is added and removed, and its files stay unchanged.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::Instant};

use anyhow::Result;
use satchel_proto::v1::{self, SourceState};

use crate::play::{LOOK, PATIENCE, Play, at_rest, export};

#[tokio::test(flavor = "multi_thread")]
async fn files_stay_as_they_are() -> Result<()> {
    let play = Play::start().await?;
    fs::write(play.at("conversations.json"), export(1))?;
    fs::write(play.at("notes.txt"), "not an export")?;
    let stamp = |name: &str| -> Result<_> {
        let meta = fs::metadata(play.at(name))?;
        Ok((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec(), meta.mode(), meta.nlink()))
    };
    let before = [stamp("conversations.json")?, stamp("notes.txt")?];
    play.until(|source| source.imported == 1 && source.unrecognized == 1 && at_rest(source)).await?;
    assert_eq!([stamp("conversations.json")?, stamp("notes.txt")?], before);
    assert_eq!(fs::read(play.at("conversations.json"))?, export(1));
    assert_eq!(fs::read_dir(&play.downloads)?.count(), 2);
    play.completed(1).await?;
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_goes_is_picked_up_when_it_is_back() -> Result<()> {
    let play = Play::start().await?;
    fs::write(play.at("a.json"), export(1))?;
    play.imported(1).await?;
    let away = play.downloads.with_file_name("away");
    fs::rename(&play.downloads, &away)?;
    play.until(|source| source.state() == SourceState::Broken).await?;
    let problems = play.problems().await?;
    assert!(
        problems[0].message.contains("is not there") && problems[0].fix.contains("mount"),
        "{problems:?}"
    );
    fs::write(away.join("b.json"), export(2))?;
    fs::rename(&away, &play.downloads)?;
    play.imported(2).await?;
    play.completed(2).await?;
    assert_eq!(play.problems().await?, []);
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_added_and_removed_at_run_time_and_kept() -> Result<()> {
    let play = Play::start().await?;
    let more = play.daemon.folder.path().join("more");
    fs::create_dir(&more)?;
    fs::write(more.join("a.json"), export(1))?;
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let add = |path: String| async { play.client().add_source(v1::AddSourceRequest { path }).await };
    assert!(add(path(&more)).await?.into_inner().added);
    assert!(!add(path(&more)).await?.into_inner().added);
    for (folder, code) in [
        (path(&play.daemon.folder.path().join("absent")), tonic::Code::InvalidArgument),
        (path(play.daemon.folder.path()), tonic::Code::FailedPrecondition),
        ("relative".to_owned(), tonic::Code::InvalidArgument),
    ] {
        assert_eq!(add(folder).await.err().map(|status| status.code()), Some(code));
    }
    let remove = |path: String| v1::RemoveSourceRequest { path };
    let refused = play.client().remove_source(remove(path(&play.downloads))).await;
    assert_eq!(refused.err().map(|status| status.code()), Some(tonic::Code::FailedPrecondition));
    let play = play.restart().await?;
    let end = Instant::now() + PATIENCE;
    while play.conversations().await? < 1 {
        assert!(Instant::now() < end);
        tokio::time::sleep(LOOK).await;
    }
    play.client().remove_source(remove(path(&more))).await?;
    let missing = play.client().remove_source(remove(path(&more))).await;
    assert_eq!(missing.err().map(|status| status.code()), Some(tonic::Code::NotFound));
    let play = play.restart().await?;
    let sources = play.client().list_sources(v1::ListSourcesRequest::default()).await?.into_inner().sources;
    assert_eq!(sources.len(), 1);
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_out_of_the_folder_is_not_followed() -> Result<()> {
    let play = Play::start().await?;
    let out = play.daemon.folder.path().join("out");
    fs::create_dir(&out)?;
    fs::write(out.join("secret.json"), export(7))?;
    std::os::unix::fs::symlink(out.join("secret.json"), play.at("secret.json"))?;
    std::os::unix::fs::symlink(&out, play.at("out"))?;
    fs::write(play.at("mine.json"), export(8))?;
    play.imported(1).await?;
    play.looks_again().await;
    play.completed(1).await?;
    play.daemon.stop().await?;
    Ok(())
}
