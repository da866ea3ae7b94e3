//! What is erased on one machine leaves the disks of all.

use anyhow::{Context as _, Result};
use satchel_core::purge::{self, Target};
use satchel_store::{OpenOptions, Store};

use super::peer_daemon::{add, content, eventually, in_step, pair, start, start_new};

/// Returns whether a file below a folder has this text.
pub(super) fn has(folder: &std::path::Path, text: &str) -> Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if has(&path, text)? {
                return Ok(true);
            }
        } else if path.is_file() {
            let bytes = std::fs::read(&path)?;
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_leaves_the_disk_of_the_peer_while_its_daemon_runs() -> Result<()> {
    const SECRET: &str = "xylophone-4711";
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    let (erased, kept) = (add(&laptop, SECRET).await?, add(&laptop, "Stays").await?);
    in_step(&[&desk, &laptop]).await?;
    let folder = laptop.stop().await?;
    let dir = folder.path().join("data");
    {
        let store = Store::open(&dir, OpenOptions::default(), &mut |_| {})?;
        let plan = purge::planned(&store, &Target::Memory(erased.clone()), 1_800_000_000_000_000)?;
        purge::record_purge(&store, &plan.context("there is something to erase")?.record)?;
        let mut open = || Store::open(&dir, OpenOptions::default(), &mut |_| {});
        purge::complete(&dir, store, None, &mut open)?.close()?;
    }
    let laptop = start(folder).await?;
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
