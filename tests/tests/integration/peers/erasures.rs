//! What is erased on one machine leaves the disks of all.

use std::path::Path;

use anyhow::{Context as _, Result};
use satchel_core::purge::{self, Target};
use satchel_proto::v1::{self, sync_service_client::SyncServiceClient};
use satchel_store::{OpenOptions, Store};
use satchel_tests::test_daemon::TestDaemon;

use super::peer_daemon::{add, content, eventually, in_step, pair, pause, start, start_new};

/// Returns whether a file below a folder has this text.
///
/// A daemon may be at work on the folder: what is removed between the listing and the reading has no text any more.
pub(super) fn has(folder: &Path, text: &str) -> Result<bool> {
    let Some(entries) = unless_removed(std::fs::read_dir(folder))? else { return Ok(false) };
    for entry in entries {
        let path = entry?.path();
        let found = if path.is_dir() {
            has(&path, text)?
        } else {
            path.is_file()
                && unless_removed(std::fs::read(&path))?
                    .is_some_and(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn unless_removed<T>(read: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match read {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Erases a memory while the daemon is stopped, as `satchel memories purge` does.
pub(super) async fn erase(daemon: TestDaemon, memory: &str) -> Result<TestDaemon> {
    let folder = daemon.stop().await?;
    let dir = folder.path().join("data");
    let store = Store::open(&dir, OpenOptions::default(), &mut |_| {})?;
    let plan = purge::planned(&store, &Target::Memory(memory.to_owned()), 1_800_000_000_000_000)?;
    purge::record_purge(&store, &plan.context("there is something to erase")?.record)?;
    let mut open = || Store::open(&dir, OpenOptions::default(), &mut |_| {});
    purge::complete(&dir, store, None, &mut open)?.close()?;
    start(folder).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_leaves_the_disk_of_the_peer_while_its_daemon_runs() -> Result<()> {
    const SECRET: &str = "xylophone-4711";
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    let (erased, kept) = (add(&laptop, SECRET).await?, add(&laptop, "Stays").await?);
    in_step(&[&desk, &laptop]).await?;
    let laptop = erase(laptop, &erased).await?;
    eventually("the memory is gone", async || {
        // The daemon closes its store for a moment.
        let Ok(found) = content(&desk, &erased).await else { return Ok(None) };
        Ok(found.is_none_or(|text| text.is_empty()).then_some(()))
    })
    .await?;
    eventually("its text leaves the disk", async || Ok((!has(&desk.data_dir(), SECRET)?).then_some(())))
        .await?;
    eventually("the daemon is there again", async || Ok(content(&desk, &kept).await.ok().flatten())).await?;
    in_step(&[&desk, &laptop]).await?;
    let later = add(&desk, "After the erasure").await?;
    eventually("changes go on", async || content(&laptop, &later).await).await?;
    desk.stop().await?;
    laptop.stop().await?;
    Ok(())
}

/// Nothing is exchanged after the changes that follow an erasure: the peer has to let them take effect by itself.
#[tokio::test(flavor = "multi_thread")]
async fn what_follows_an_erasure_takes_effect_after_it() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    let erased = add(&laptop, "Goes").await?;
    in_step(&[&desk, &laptop]).await?;
    pause(&laptop, "desk", true).await?;
    let laptop = erase(laptop, &erased).await?;
    // The erasure is in the series before the memory is.
    let mut sync = SyncServiceClient::new(laptop.channel.clone());
    sync.get_frontier(v1::GetFrontierRequest::default()).await?;
    let later = add(&laptop, "Comes afterwards").await?;
    pause(&laptop, "desk", false).await?;
    eventually("the later memory comes", async || Ok(content(&desk, &later).await.ok().flatten())).await?;
    in_step(&[&desk, &laptop]).await
}
