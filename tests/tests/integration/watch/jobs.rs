//! The imports of a watched folder: they take turns with others, can be cancelled, and survive a restart of the daemon.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::Result;
use satchel_proto::{
    integers::signed,
    v1::{self, ImportStatus, operation_service_client::OperationServiceClient},
};
use satchel_tests::operation;

use crate::watch::fixture::{WAIT_TIMEOUT, WatchFixture, chatgpt_file, idle};

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_restarts_imports_each_of_twenty_exports_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let downloads = folder.path().join("downloads");
    fs::create_dir(&downloads)?;
    for number in 0..20 {
        fs::write(downloads.join(format!("conversations-{number:03}.json")), chatgpt_file(number))?;
    }
    let mut fixture = WatchFixture::start_in(folder).await?;
    for seen in [1, 4, 9] {
        fixture.wait_until(|source| source.imported >= seen).await?;
        fixture = fixture.restart().await?;
    }
    fixture.wait_for_imported(20).await?;
    let imports = fixture.imports().await?;
    let completed = imports.iter().filter(|import| import.status() == ImportStatus::Completed).count();
    assert_eq!((completed, fixture.conversation_count().await?), (20, 20));
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_explicit_import_does_not_wait_for_queued_files() -> Result<()> {
    let fixture = WatchFixture::start().await?;
    let flood = 1_000;
    for number in 0..flood {
        fs::write(fixture.path(&format!("conversations-{number:03}.json")), chatgpt_file(number))?;
    }
    fixture.wait_until(|source| source.imported > 0).await?;
    let requested = fixture.daemon.folder.path().join("own.json");
    fs::write(&requested, chatgpt_file(9_999))?;
    let job = fixture.daemon.import(&requested).await?;
    assert_eq!(job.imports()[0].status(), ImportStatus::Completed);
    let behind = fixture.source().await?;
    assert!(behind.imported < signed(flood as u64), "all queued files were imported first: {behind:?}");
    fixture.wait_for_imported(flood as u64).await?;
    fixture.assert_completed(flood + 1).await?;
    fixture.daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_of_a_watched_folder_is_listed_and_can_be_cancelled() -> Result<()> {
    let fixture = WatchFixture::start().await?;
    for number in 0..40 {
        fs::write(fixture.path(&format!("conversations-{number:03}.json")), chatgpt_file(number))?;
    }
    // The last of the queued imports has not begun.
    let end = Instant::now() + WAIT_TIMEOUT;
    let mut cancelled = None;
    while cancelled.is_none() {
        assert!(Instant::now() < end, "{:?}", fixture.source().await?);
        let Some(item) = fixture.source().await?.reading.pop() else { continue };
        let request = v1::CancelOperationRequest { id: item.operation_id };
        let job = OperationServiceClient::new(fixture.channel()).cancel_operation(request).await;
        let begun = Instant::now();
        let Some(job) = job.ok().and_then(|answer| answer.into_inner().operation) else { continue };
        let state = operation::wait(&fixture.channel(), &job.id).await?.state();
        if state == v1::OperationState::Cancelled {
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
            cancelled = Some(item.name);
        }
    }
    fixture.wait_until(idle).await?;
    fixture.wait_for_rescans().await;
    let imports = fixture.imports().await?;
    let of = |status: ImportStatus| imports.iter().filter(|import| import.status() == status).count();
    assert!(of(ImportStatus::Cancelled) >= 1);
    assert_eq!(of(ImportStatus::Cancelled) + of(ImportStatus::Completed), 40);
    fixture.daemon.stop().await?;
    Ok(())
}
