//! Calls whose bytes are not a valid request, and times that cannot be stored: both are refused with a reason, and
//! nothing is stored.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use anyhow::{Context as _, Result, ensure};
use bytes::BufMut as _;
use satchel_core::clock::Clock;
use satchel_proto::v1::{
    self, export_service_client::ExportServiceClient, import_service_client::ImportServiceClient,
    memory_service_client::MemoryServiceClient, restore_memory_version_request::Target,
};
use satchel_source::Limits;
use satchel_tests::{
    archive::{Archive, demo},
    daemon::Daemon,
};
use tonic::{
    Code, Request, Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};
use tonic_types::StatusExt as _;

/// A codec that sends bytes unchanged.
#[derive(Clone, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, out: &mut EncodeBuf<'_>) -> std::result::Result<(), Status> {
        out.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, _: &mut DecodeBuf<'_>) -> std::result::Result<Option<()>, Status> {
        Ok(Some(()))
    }
}

async fn send(daemon: &Daemon, path: &'static str, bytes: &[u8]) -> Result<Status> {
    let mut client = tonic::client::Grpc::new(daemon.channel.clone());
    client.ready().await?;
    let path = path.parse::<tonic::codegen::http::uri::PathAndQuery>()?;
    let answer = client.unary(Request::new(bytes.to_vec()), path, Raw).await;
    answer.err().with_context(|| format!("{bytes:?} is taken for a request"))
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_request_are_the_callers_mistake() -> Result<()> {
    let daemon = Daemon::start().await?;
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
async fn a_number_that_counts_is_not_negative() -> Result<()> {
    let daemon = Daemon::start().await?;
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
        let refused = refused.with_context(|| format!("{field} of -1 is taken"))?;
        ensure!(refused.code() == Code::InvalidArgument, "{field}: {refused:?}");
        let violations = refused.get_details_bad_request().context("details")?.field_violations;
        ensure!(violations.iter().any(|violation| violation.field == field), "{field}: {violations:?}");
    }
    daemon.stop().await?;
    Ok(())
}

struct Set(AtomicI64);

impl Clock for Set {
    fn now_micros(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn while_the_clock_shows_what_cannot_be_stored_nothing_is_stored_or_written() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let clock = Arc::new(Set(AtomicI64::new(0)));
    let archive =
        Archive::with(&folder.path().join("data"), Limits::default(), Arc::clone(&clock) as Arc<dyn Clock>)?;
    let export = demo().join("chatgpt-export");
    for (at, told) in [
        (-1, "before the year 1970"),
        (i64::MIN, "1970"),
        (253_402_300_800_000_000, "9999"),
        (i64::MAX, "9999"),
    ] {
        clock.0.store(at, Ordering::Relaxed);
        let before = archive.store.revision();
        let refused = archive.import(&export).err().context("an import at an impossible time")?;
        ensure!(format!("{refused:#}").contains(told), "{at}: {refused:#}");
        let output = folder.path().join("bundle");
        let refused = archive.export(&output).err().context("an export at an impossible time")?;
        ensure!(format!("{refused:#}").contains(told) && !output.exists(), "{at}: {refused:#}");
        ensure!(archive.store.revision() == before && !folder.path().join("data/keys").exists());
    }
    for at in [0, 253_402_300_799_999_999] {
        clock.0.store(at, Ordering::Relaxed);
        archive.import_again(&export)?;
        archive.export(&folder.path().join(format!("bundle-{at}")))?;
    }
    archive.close()
}
