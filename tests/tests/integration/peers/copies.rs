//! Stores that were restored or copied go on with a new series, and lose nothing.

use std::path::Path;

use anyhow::{Result, ensure};
use satchel_proto::v1::{self, DeviceRole};
use satchel_tests::{
    test_daemon::TestDaemon,
    test_device::{create_pairing, policy},
};

use super::peer_daemon::{add, content, in_step, listed, pair, pause, peers, rewrite, start, start_new};

pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

async fn origin(daemon: &TestDaemon) -> Result<String> {
    let request = v1::GetSyncStatusRequest::default();
    Ok(peers(daemon).get_sync_status(request).await?.into_inner().origin)
}

/// The disk of a machine is set back to an earlier state: its peer has changes of it that it has lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_was_set_back_gets_a_new_series() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    let early = add(&laptop, "Early").await?;
    in_step(&[&desk, &laptop]).await?;
    let before = origin(&laptop).await?;
    let folder = laptop.stop().await?;
    let image = tempfile::tempdir()?;
    copy(folder.path(), image.path())?;
    let laptop = start(folder).await?;
    let lost = add(&laptop, "Written after the image was made").await?;
    in_step(&[&desk, &laptop]).await?;
    laptop.stop().await?;

    let laptop = start(image).await?;
    in_step(&[&desk, &laptop]).await?;
    let now = origin(&laptop).await?;
    ensure!(now != before, "a new series");
    let new = add(&laptop, "Written after the disk was set back").await?;
    in_step(&[&desk, &laptop]).await?;
    for daemon in [&desk, &laptop] {
        for id in [&early, &lost, &new] {
            ensure!(content(daemon, id).await?.is_some(), "{id}");
        }
    }
    let known = listed(&laptop).await?;
    ensure!(known[0].last_error.is_empty(), "{known:?}");
    Ok(())
}

/// The folder without the key of the series is what `satchel restore` makes.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_store_gets_a_new_series_before_anything_is_written() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    add(&laptop, "Early").await?;
    in_step(&[&desk, &laptop]).await?;
    let before = origin(&laptop).await?;
    let folder = laptop.stop().await?;
    std::fs::remove_dir_all(folder.path().join("data/peers"))?;
    let laptop = start(folder).await?;
    ensure!(origin(&laptop).await? != before);
    let id = add(&laptop, "After the restore").await?;
    pair((&laptop, "laptop again"), (&desk, "desk")).await?;
    in_step_but_for(&laptop, &desk, "laptop").await?;
    ensure!(content(&desk, &id).await?.is_some());
    Ok(())
}

/// Waits until two daemons are in step; the peer `gone` of the second one has ended.
async fn in_step_but_for(one: &TestDaemon, other: &TestDaemon, gone: &str) -> Result<()> {
    peers(other).remove_peer(v1::RemovePeerRequest { peer: gone.to_owned() }).await?;
    in_step(&[one, other]).await
}

/// Somebody copies the data directory to a new machine, and goes on with both.
#[tokio::test(flavor = "multi_thread")]
async fn a_copied_store_gets_a_series_of_its_own() -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    pair((&laptop, "laptop"), (&desk, "desk")).await?;
    add(&laptop, "Early").await?;
    in_step(&[&desk, &laptop]).await?;
    let folder = laptop.stop().await?;
    let image = tempfile::tempdir()?;
    copy(folder.path(), image.path())?;
    let laptop = start(folder).await?;
    // Longer than the copy: the copy begins a new series as soon as it hears of that.
    add(&laptop, "On the laptop").await?;
    in_step(&[&desk, &laptop]).await?;
    let clone = start(image).await?;
    pair((&clone, "clone"), (&laptop, "laptop")).await?;
    in_step(&[&desk, &laptop, &clone]).await?;
    ensure!(origin(&clone).await? != origin(&laptop).await?);
    let id = add(&clone, "On the clone").await?;
    in_step(&[&desk, &laptop, &clone]).await?;
    ensure!(content(&desk, &id).await?.is_some());
    Ok(())
}

/// Both were changed before they met: both sides are in all stores afterwards, whichever of the two daemons calls the other.
#[tokio::test(flavor = "multi_thread")]
async fn copies_that_were_both_changed_are_united() -> Result<()> {
    united(false).await?;
    united(true).await
}

async fn united(desk_calls: bool) -> Result<()> {
    let (desk, laptop) = (start_new().await?, start_new().await?);
    if desk_calls {
        pair((&desk, "desk"), (&laptop, "laptop")).await?;
    } else {
        pair((&laptop, "laptop"), (&desk, "desk")).await?;
    }
    let early = add(&laptop, "Early").await?;
    in_step(&[&desk, &laptop]).await?;
    pause(&laptop, "desk", true).await?;
    let folder = laptop.stop().await?;
    let image = tempfile::tempdir()?;
    copy(folder.path(), image.path())?;
    let laptop = start(folder).await?;
    let mut ids = vec![early.clone()];
    for n in 0..3 {
        ids.push(add(&laptop, &format!("On the laptop, {n}")).await?);
    }
    move_to(&desk, &laptop, desk_calls).await?;
    pause(&laptop, "desk", false).await?;
    in_step(&[&desk, &laptop]).await?;
    let before = origin(&laptop).await?;
    laptop.stop().await?;

    let image = start(image).await?;
    ids.push(add(&image, "On the image").await?);
    rewrite(&image, &early, "Early, changed on the image").await?;
    move_to(&desk, &image, desk_calls).await?;
    pause(&image, "desk", false).await?;
    in_step(&[&desk, &image]).await?;
    ensure!(origin(&image).await? != before, "a new series");
    for daemon in [&desk, &image] {
        for id in &ids {
            ensure!(content(daemon, id).await?.is_some(), "{id}");
        }
        ensure!(content(daemon, &early).await?.as_deref() == Some("Early, changed on the image"));
        ensure!(listed(daemon).await?.iter().all(|peer| peer.last_error.is_empty()));
    }
    // And after a restart.
    let image = start(image.stop().await?).await?;
    move_to(&desk, &image, desk_calls).await?;
    let id = add(&image, "After a restart").await?;
    in_step(&[&desk, &image]).await?;
    ensure!(content(&desk, &id).await?.is_some());
    Ok(())
}

/// Tells the desk where the laptop is now, if the desk calls.
async fn move_to(desk: &TestDaemon, laptop: &TestDaemon, desk_calls: bool) -> Result<()> {
    if desk_calls {
        let addresses = create_pairing(laptop, "", policy(DeviceRole::Peer)).await?.addresses;
        let request = v1::UpdatePeerRequest { peer: "laptop".to_owned(), addresses, ..Default::default() };
        peers(desk).update_peer(request).await?;
    }
    Ok(())
}
