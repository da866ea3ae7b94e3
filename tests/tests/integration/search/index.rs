//! The index follows the store, and leaves no text where none may be.

use std::{
    fs::{self, OpenOptions},
    io::{Seek as _, SeekFrom, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::{data_dir::SEARCH, purge};
use satchel_proto::v1::{self, admin_service_client::AdminServiceClient};
use satchel_store::Store;
use satchel_tests::test_daemon::TestDaemon;
use tonic_types::StatusExt as _;

use crate::search::{hive, ids, import, query, search};

async fn status(daemon: &TestDaemon) -> Result<(v1::SearchIndexStatus, i64)> {
    let mut client = AdminServiceClient::new(daemon.channel.clone());
    let status = client.get_status(v1::GetStatusRequest {}).await?.into_inner();
    Ok((status.search_index.context("a status")?, status.header.context("a header")?.revision))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_says_how_far_the_index_is() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    import(&daemon, "export", &[hive()]).await?;
    let found = search(&daemon.channel, query("bees")).await?;
    let (index, revision) = status(&daemon).await?;
    ensure!(index.running && index.error.is_empty() && index.bytes > 0, "{index:?}");
    ensure!(index.documents == 5, "a title and four messages: {index:?}");
    ensure!(index.revision == revision, "{index:?} {revision}");
    ensure!(found.header.context("a header")?.revision == revision, "the search waited");
    let ahead = v1::SearchRequest { min_revision: Some(revision + 1), ..query("bees") };
    let status = search(&daemon.channel, ahead).await.err().context("an error")?;
    ensure!(status.message().starts_with("min_revision"), "{status:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_survives_a_restart_and_is_built_anew_if_it_is_damaged() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    import(&daemon, "export", &[hive()]).await?;
    let found = ids(&daemon.channel, "bees OR queen").await?;
    let daemon = TestDaemon::start_in(daemon.stop().await?).await?;
    ensure!(ids(&daemon.channel, "bees OR queen").await? == found, "after a restart");
    let folder = daemon.data_dir().join(SEARCH);
    let kept = daemon.stop().await?;
    for file in fs::read_dir(&folder)? {
        let path = file?.path();
        if path.is_file() {
            let bytes = fs::read(&path)?;
            fs::write(&path, &bytes[..bytes.len() / 2])?;
        }
    }
    let daemon = TestDaemon::start_in(kept).await?;
    ensure!(ids(&daemon.channel, "bees OR queen").await? == found, "after the files were cut");
    Ok(())
}

/// A disk that fails while the daemon runs: the search that meets the damage is refused, and has the index built anew.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_in_which_a_search_finds_damage_is_built_anew() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    import(&daemon, "export", &[hive()]).await?;
    let found = ids(&daemon.channel, "bees OR queen").await?;
    // Started anew, it has none of the texts in its caches; this search opens the index, and reads none.
    let daemon = TestDaemon::start_in(daemon.stop().await?).await?;
    ensure!(ids(&daemon.channel, "+hornless").await?.is_empty(), "no text has it");
    let mut damaged = 0;
    for file in fs::read_dir(daemon.data_dir().join(SEARCH))? {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "store") {
            let length = usize::try_from(path.metadata()?.len())?;
            let mut file = OpenOptions::new().write(true).open(&path)?;
            // A part of the first block; the end of the file, by which it is opened, stays.
            file.seek(SeekFrom::Start(4))?;
            file.write_all(&vec![0xff; length / 4])?;
            damaged += 1;
        }
    }
    ensure!(damaged > 0, "there is a file with what hits name");
    let refused = search(&daemon.channel, query("bees")).await.err().context("a refusal")?;
    let reason = refused.get_details_error_info().context("a reason")?.reason;
    ensure!(reason == "INDEX_UNUSABLE", "{refused:?}");
    let until = Instant::now() + Duration::from_mins(1);
    let again = loop {
        match ids(&daemon.channel, "bees OR queen").await {
            Ok(again) => break again,
            Err(error) => ensure!(Instant::now() < until, "the index is not built anew: {error:#}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    ensure!(again == found, "{again:?} {found:?}");
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_erased_is_not_in_the_index() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    import(&daemon, "export", &[hive()]).await?;
    let hit = search(&daemon.channel, query("hibernate")).await?.hits.pop().context("a hit")?;
    let dir = daemon.data_dir();
    let folder = daemon.stop().await?;
    ensure!(dir.join(SEARCH).is_dir(), "the index is on the disk");
    let store = Store::open(&dir, satchel_store::OpenOptions::default(), &mut |_| {})?;
    let target = purge::Target::Conversation { id: hit.conversation_id, keep_memories: false };
    let plan = purge::planned(&store, &target, 1_800_000_000_000_000)?.context("a plan")?;
    purge::record_purge(&store, &plan.record)?;
    purge::erase_recorded(&dir, store, None, &mut |_| {})?;
    ensure!(!dir.join(SEARCH).exists(), "the index is gone with what was erased");
    let daemon = TestDaemon::start_in(folder).await?;
    ensure!(ids(&daemon.channel, "hibernate OR bees").await?.is_empty(), "nothing is found");
    let _folder = daemon.stop().await?;
    ensure!(files_with(&dir, "hibernate")?.is_empty(), "a file has the text");
    Ok(())
}

/// The files below a folder that have a text.
fn files_with(folder: &Path, text: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files_with(&path, text)?);
        } else if path.is_file() && fs::read(&path)?.windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    Ok(found)
}
