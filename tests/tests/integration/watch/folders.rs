//! The watched folder itself: it disappears and returns, is added and removed, and its files stay unchanged.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::Instant};

use anyhow::{Context as _, Result};
use satchel_proto::v1::{self, SourceState};

use crate::watch::fixture::{POLL_INTERVAL, WAIT_TIMEOUT, WatchFixture, chatgpt_file, idle};

#[tokio::test(flavor = "multi_thread")]
async fn watched_files_stay_unchanged() -> Result<()> {
    let fixture = WatchFixture::start().await?;
    fs::write(fixture.path("conversations.json"), chatgpt_file(1))?;
    fs::write(fixture.path("notes.txt"), "not an export")?;
    let stamp = |name: &str| -> Result<_> {
        let meta = fs::metadata(fixture.path(name))?;
        Ok((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec(), meta.mode(), meta.nlink()))
    };
    let before = [stamp("conversations.json")?, stamp("notes.txt")?];
    fixture.wait_until(|source| source.imported == 1 && source.unrecognized == 1 && idle(source)).await?;
    assert_eq!([stamp("conversations.json")?, stamp("notes.txt")?], before);
    assert_eq!(fs::read(fixture.path("conversations.json"))?, chatgpt_file(1));
    assert_eq!(fs::read_dir(&fixture.downloads)?.count(), 2);
    fixture.assert_completed(1).await?;
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_disappears_is_watched_again_when_it_is_back() -> Result<()> {
    let fixture = WatchFixture::start().await?;
    fs::write(fixture.path("a.json"), chatgpt_file(1))?;
    fixture.wait_for_imported(1).await?;
    let away = fixture.downloads.with_file_name("away");
    fs::rename(&fixture.downloads, &away)?;
    fixture.wait_until(|source| source.state() == SourceState::Broken).await?;
    let problems = fixture.problems().await?;
    assert!(
        problems[0].message.contains("does not exist") && problems[0].fix.contains("mount"),
        "{problems:?}"
    );
    fs::write(away.join("b.json"), chatgpt_file(2))?;
    fs::rename(&away, &fixture.downloads)?;
    fixture.wait_for_imported(2).await?;
    fixture.assert_completed(2).await?;
    assert_eq!(fixture.problems().await?, []);
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_added_and_removed_at_run_time_are_remembered() -> Result<()> {
    let fixture = WatchFixture::start().await?;
    let more = fixture.daemon.folder.path().join("more");
    fs::create_dir(&more)?;
    fs::write(more.join("a.json"), chatgpt_file(1))?;
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let add = |path: String| async {
        fixture.client().add_source(v1::AddSourceRequest { path, ..Default::default() }).await
    };
    assert!(add(path(&more)).await?.into_inner().added);
    assert!(!add(path(&more)).await?.into_inner().added);
    let beside = |name: &str| fixture.daemon.folder.path().join(name);
    fs::write(beside("chats.db"), "a database")?;
    fs::write(beside("photo.jpg"), "no export")?;
    std::os::unix::fs::symlink(beside("chats.db"), beside("link.db"))?;
    for (folder, code) in [
        (path(&beside("absent")), tonic::Code::InvalidArgument),
        (path(&beside("photo.jpg")), tonic::Code::InvalidArgument),
        (path(&beside("link.db")), tonic::Code::InvalidArgument),
        (path(fixture.daemon.folder.path()), tonic::Code::FailedPrecondition),
        ("relative".to_owned(), tonic::Code::InvalidArgument),
    ] {
        assert_eq!(add(folder).await.err().map(|status| status.code()), Some(code));
    }
    let remove = |path: String| v1::RemoveSourceRequest { path };
    let refused = fixture.client().remove_source(remove(path(&fixture.downloads))).await;
    assert_eq!(refused.err().map(|status| status.code()), Some(tonic::Code::FailedPrecondition));
    let fixture = fixture.restart().await?;
    let end = Instant::now() + WAIT_TIMEOUT;
    while fixture.conversation_count().await? < 1 {
        assert!(Instant::now() < end);
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    fixture.client().remove_source(remove(path(&more))).await?;
    let missing = fixture.client().remove_source(remove(path(&more))).await;
    assert_eq!(missing.err().map(|status| status.code()), Some(tonic::Code::NotFound));
    let fixture = fixture.restart().await?;
    let sources =
        fixture.client().list_sources(v1::ListSourcesRequest::default()).await?.into_inner().sources;
    assert_eq!(sources.len(), 1);
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settle_time_and_the_ignored_names_of_an_added_folder_are_kept_over_a_restart() -> Result<()> {
    let mut fixture = WatchFixture::start().await?;
    let more = fixture.daemon.folder.path().join("more");
    fs::create_dir(&more)?;
    fs::write(more.join("a.json"), chatgpt_file(1))?;
    fs::write(more.join("logs.json"), chatgpt_file(2))?;
    let path = more.to_string_lossy().into_owned();
    let request = |seconds: i64, nanos: i32| v1::AddSourceRequest {
        path: path.clone(),
        settle_time: Some(prost_types::Duration { seconds, nanos }),
        sessions: false,
        ignore: vec!["logs.*".to_owned()],
    };
    let wrong = v1::AddSourceRequest { ignore: vec!["a***".to_owned()], ..request(1, 0) };
    let refused = fixture.client().add_source(wrong).await.err().context("a wrong pattern")?;
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert!(refused.message().starts_with("ignore pattern \"a***\" is not valid: "), "{refused:?}");
    for (seconds, nanos) in
        [(0, 0), (0, 9_999_999), (-1, 0), (3_601, 0), (i64::MIN, 0), (1, -1), (i64::MAX, 0)]
    {
        let refused = fixture.client().add_source(request(seconds, nanos)).await;
        assert_eq!(
            refused.err().map(|status| status.code()),
            Some(tonic::Code::InvalidArgument),
            "{seconds}"
        );
    }
    assert!(fixture.client().add_source(request(3_600, 0)).await?.into_inner().added);
    for _ in 0..2 {
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            let sources =
                fixture.client().list_sources(v1::ListSourcesRequest::default()).await?.into_inner().sources;
            if sources.iter().any(|source| source.path == path && source.waiting_total == 1) {
                break;
            }
            assert!(Instant::now() < end, "{sources:?}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        fixture.wait_for_rescans().await;
        fixture.assert_completed(0).await?;
        fixture = fixture.restart().await?;
    }
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_out_of_the_folder_is_not_followed() -> Result<()> {
    let fixture = WatchFixture::start().await?;
    let out = fixture.daemon.folder.path().join("out");
    fs::create_dir(&out)?;
    fs::write(out.join("secret.json"), chatgpt_file(7))?;
    std::os::unix::fs::symlink(out.join("secret.json"), fixture.path("secret.json"))?;
    std::os::unix::fs::symlink(&out, fixture.path("out"))?;
    fs::write(fixture.path("mine.json"), chatgpt_file(8))?;
    fixture.wait_for_imported(1).await?;
    fixture.wait_for_rescans().await;
    fixture.assert_completed(1).await?;
    fixture.daemon.stop().await?;
    Ok(())
}
