//! Calls whose bytes are not a valid request, and times that cannot be stored: both are refused with a reason, and
//! nothing is stored.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::clock::Clock;
use satchel_proto::v1::{
    self, export_service_client::ExportServiceClient, import_service_client::ImportServiceClient,
    memory_service_client::MemoryServiceClient, restore_memory_version_request::Target,
};
use satchel_source::Limits;
use satchel_tests::{
    raw_codec::RawCodec,
    test_core::{TestCore, demo_folder},
    test_daemon::TestDaemon,
};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

async fn send(daemon: &TestDaemon, path: &'static str, bytes: &[u8]) -> Result<Status> {
    let mut client = tonic::client::Grpc::new(daemon.channel.clone());
    client.ready().await?;
    let path = path.parse::<tonic::codegen::http::uri::PathAndQuery>()?;
    let answer = client.unary(Request::new(bytes.to_vec()), path, RawCodec).await;
    answer.err().with_context(|| format!("{bytes:?} was accepted as a request"))
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_bytes_are_an_invalid_argument() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    for path in [
        "/satchel.v1.MemoryService/GetMemory",
        "/satchel.v1.ImportService/CreateImport",
        "/satchel.v1.AdminService/CreateBackup",
    ] {
        // An invalid wire type, a length beyond the end, a number without an end.
        for bytes in [&[0x0f][..], &[0x0a, 0xff, 0x01], &[0xff; 11]] {
            let status = send(&daemon, path, bytes).await?;
            ensure!(status.code() == Code::InvalidArgument, "{path} {bytes:?}: {status:?}");
            let reason = status.get_details_error_info().context("details")?.reason;
            ensure!(reason == "REQUEST_MALFORMED", "{reason}");
        }
    }
    daemon.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn negative_counts_are_refused() -> Result<()> {
    let daemon = TestDaemon::start().await?;
    let mut memories = MemoryServiceClient::new(daemon.channel.clone());
    let version = v1::MemoryVersionRef { id: "m".to_owned(), version: -1 };
    let restored = memories.restore_memory_version(v1::RestoreMemoryVersionRequest {
        target: Some(Target::MemoryVersion(version)),
        ..Default::default()
    });
    let restored = restored.await.err();
    let set = memories.bulk_set_status(v1::BulkSetStatusRequest {
        filter: Some(v1::MemoryFilter { platforms: vec!["x".to_owned()], ..Default::default() }),
        status: v1::MemoryStatus::Archived.into(),
        expected_count: Some(-1),
        ..Default::default()
    });
    let mut exports = ExportServiceClient::new(daemon.channel.clone());
    let download = v1::DownloadExportRequest { id: "x".to_owned(), offset: -1 };
    let mut imports = ImportServiceClient::new(daemon.channel.clone());
    let undo = v1::UndoImportRequest { id: "x".to_owned(), dry_run: false, expected_records: Some(-1) };
    for (field, refused) in [
        ("memory_version.version", restored),
        ("expected_count", set.await.err()),
        ("offset", exports.download_export(download).await.err()),
        ("expected_records", imports.undo_import(undo).await.err()),
    ] {
        let refused = refused.with_context(|| format!("{field} of -1 was accepted"))?;
        ensure!(refused.code() == Code::InvalidArgument, "{field}: {refused:?}");
        let violations = refused.get_details_bad_request().context("details")?.field_violations;
        ensure!(violations.iter().any(|violation| violation.field == field), "{field}: {violations:?}");
    }
    daemon.stop().await?;
    Ok(())
}

struct SettableClock(AtomicI64);

impl Clock for SettableClock {
    fn now_micros(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn nothing_is_stored_while_the_clock_is_out_of_range() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let clock = Arc::new(SettableClock(AtomicI64::new(0)));
    let core = TestCore::with_limits_and_clock(
        &folder.path().join("data"),
        Limits::default(),
        Arc::clone(&clock) as Arc<dyn Clock>,
    )?;
    let export = demo_folder().join("chatgpt-export");
    for (at, expected) in [
        (-1, "before the year 1970"),
        (i64::MIN, "1970"),
        (253_402_300_800_000_000, "9999"),
        (i64::MAX, "9999"),
    ] {
        clock.0.store(at, Ordering::Relaxed);
        let before = core.store.revision();
        let refused = core.import(&export).err().context("an import at an impossible time")?;
        ensure!(format!("{refused:#}").contains(expected), "{at}: {refused:#}");
        let output = folder.path().join("bundle");
        let refused = core.export(&output).err().context("an export at an impossible time")?;
        ensure!(format!("{refused:#}").contains(expected) && !output.exists(), "{at}: {refused:#}");
        ensure!(core.store.revision() == before && !folder.path().join("data/keys").exists());
    }
    for at in [0, 253_402_300_799_999_999] {
        clock.0.store(at, Ordering::Relaxed);
        core.import_again(&export)?;
        core.export(&folder.path().join(format!("bundle-{at}")))?;
    }
    core.close()
}
