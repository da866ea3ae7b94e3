//! The imports of a watched folder: they take turns with others, can be cancelled, and survive a restart of the daemon.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::Result;
use satchel_proto::{
    signed::signed,
    v1::{self, ImportStatus, operation_service_client::OperationServiceClient},
};
use satchel_tests::operation;

use crate::play::{PATIENCE, Play, at_rest, export};

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_restarts_among_twenty_exports_imports_each_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let downloads = folder.path().join("downloads");
    fs::create_dir(&downloads)?;
    for number in 0..20 {
        fs::write(downloads.join(format!("conversations-{number:03}.json")), export(number))?;
    }
    let mut play = Play::start_in(folder).await?;
    for seen in [1, 4, 9] {
        play.until(|source| source.imported >= seen).await?;
        play = play.restart().await?;
    }
    play.imported(20).await?;
    let imports = play.imports().await?;
    let completed = imports.iter().filter(|import| import.status() == ImportStatus::Completed).count();
    assert_eq!((completed, play.conversations().await?), (20, 20));
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_does_not_wait_behind_a_flood() -> Result<()> {
    let play = Play::start().await?;
    let flood = 1_000;
    for number in 0..flood {
        fs::write(play.at(&format!("conversations-{number:03}.json")), export(number))?;
    }
    play.until(|source| source.imported > 0).await?;
    let own = play.daemon.folder.path().join("own.json");
    fs::write(&own, export(9_999))?;
    let job = play.daemon.import(&own).await?;
    assert_eq!(job.imports()[0].status(), ImportStatus::Completed);
    let behind = play.source().await?;
    assert!(behind.imported < signed(flood as u64), "the flood was over first: {behind:?}");
    play.imported(flood as u64).await?;
    play.completed(flood + 1).await?;
    play.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_a_folder_is_seen_in_the_history_and_can_be_cancelled() -> Result<()> {
    let play = Play::start().await?;
    for number in 0..40 {
        fs::write(play.at(&format!("conversations-{number:03}.json")), export(number))?;
    }
    // The last of the queued imports has not begun.
    let end = Instant::now() + PATIENCE;
    let mut cancelled = None;
    while cancelled.is_none() {
        assert!(Instant::now() < end, "{:?}", play.source().await?);
        let Some(item) = play.source().await?.reading.pop() else { continue };
        let request = v1::CancelOperationRequest { id: item.operation_id };
        let job = OperationServiceClient::new(play.channel()).cancel_operation(request).await;
        let begun = Instant::now();
        let Some(job) = job.ok().and_then(|answer| answer.into_inner().operation) else { continue };
        let state = operation::ended(&play.channel(), &job.id).await?.state();
        if state == v1::OperationState::Cancelled {
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
            cancelled = Some(item.name);
        }
    }
    play.until(at_rest).await?;
    play.looks_again().await;
    let imports = play.imports().await?;
    let of = |status: ImportStatus| imports.iter().filter(|import| import.status() == status).count();
    assert!(of(ImportStatus::Cancelled) >= 1);
    assert_eq!(of(ImportStatus::Cancelled) + of(ImportStatus::Completed), 40);
    play.daemon.stop().await?;
    Ok(())
}
