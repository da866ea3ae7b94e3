//! Figures for the gRPC API of a running daemon, warm, in a store with many messages and memories.
//!
//! `SATCHEL_BENCH_MESSAGES` and `SATCHEL_BENCH_MEMORIES` set the size of the store. `SATCHEL_BENCH_API=reads,watch`
//! measures only these parts: `reads`, `watch`, `flood`, `append` and `search`. `SATCHEL_BENCH_STORE=/path` keeps the
//! filled store in this folder, so that builds can be compared on the same store.

mod append;
mod call_times;
mod filled_store;
pub(crate) mod flood;
mod peer;
mod reads;
mod search;
mod watch;

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};
use satchel_devices::PairingSecret;
use satchel_proto::v1::{self, DeviceRole, device_service_client::DeviceServiceClient};
use satchel_tests::test_device::{TestDevice, policy};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Channel;

use self::filled_store::FilledStore;

/// A part of the group.
type Part = fn(&FilledStore, u64) -> Result<()>;

pub(crate) fn all(scratch: &Path, megabytes: u64) -> Result<()> {
    let store = FilledStore::open(scratch)?;
    let parts: [(&str, Part); 5] = [
        ("reads", |store, _| reads::measure(store)),
        ("watch", |store, _| watch::measure(store)),
        ("flood", |store, _| flood::measure(store)),
        ("append", |store, _| append::measure(store)),
        ("search", search::measure),
    ];
    let only = std::env::var("SATCHEL_BENCH_API").ok();
    for (name, part) in parts {
        if only.as_deref().is_none_or(|only| only.split(',').any(|one| one == name)) {
            part(&store, megabytes)?;
        }
    }
    Ok(())
}

/// Returns a runtime with one thread. The clients share the machine with the daemon, and more threads would take its
/// processors away.
fn client_runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Opens a window in which one device can pair, and returns its link.
async fn pairing_uri(socket: &Channel, name: &str) -> Result<String> {
    let request = v1::CreatePairingRequest {
        policy: Some(policy(DeviceRole::Reader)),
        name: name.to_owned(),
        valid_for: None,
    };
    Ok(DeviceServiceClient::new(socket.clone()).create_pairing(request).await?.into_inner().uri)
}

/// Pairs a device that only reads.
async fn pair(socket: &Channel, name: &str) -> Result<TestDevice> {
    let uri = pairing_uri(socket, name).await?;
    TestDevice::pair_with(&PairingSecret::parse(&uri)?, name).await.context("a device cannot be paired")
}

/// Writes a duration in the unit that suits it.
fn show(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1_000.0 { format!("{micros:.0} µs") } else { format!("{:.1} ms", micros / 1e3) }
}
