//! One device that floods, cancels its calls and leaves answers unread, and what other clients notice of it.

use std::{
    future::poll_fn,
    io::Read as _,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use bytes::{BufMut as _, BytesMut};
use http_body_util::Full;
use prost::Message as _;
use satchel_devices::PairingSecret;
use satchel_proto::v1::{
    self, GetMemoryRequest, ListMemoriesRequest, MemoryFilter, memory_service_client::MemoryServiceClient,
};
use satchel_server::connect::connect;
use satchel_tests::{generate::Rng, test_device::TestDevice};
use tokio::time::{interval, timeout};
use tonic::{body::Body, client::GrpcService as _, codegen::http::Request, transport::Channel};

use super::{
    call_times::{CallTimes, median},
    client_runtime,
    filled_store::FilledStore,
    pair, pairing_uri, show,
};
use crate::{RUNS, print_line};

/// The argument with which this program is the device that floods, in a process of its own.
pub(crate) const FLOOD_ARGUMENT: &str = "--flood";
/// The priority of that process, the lowest: on a machine of its own it would take no processor from the daemon.
const FLOOD_PRIORITY: i32 = 19;
/// Calls at once on each connection of the device: as many as the daemon allows there.
const STREAMS: u64 = 32;
/// How long the clients are measured in each run.
const MEASURED: Duration = Duration::from_secs(4);
/// Time between two calls of a client. That of a device is long enough for its limit of calls.
const SOCKET_INTERVAL: Duration = Duration::from_millis(2);
const DEVICE_INTERVAL: Duration = Duration::from_millis(4);
/// How long an answer is left unread.
const UNREAD_TIME: Duration = Duration::from_secs(1);
/// The device is left this long to begin.
const WARM_UP: Duration = Duration::from_millis(1_500);

pub(super) fn measure(store: &FilledStore) -> Result<()> {
    client_runtime()?.block_on(Box::pin(measure_others(store)))
}

async fn measure_others(store: &FilledStore) -> Result<()> {
    let socket = connect(&store.data).await?;
    let device = pair(&socket, "other").await?;
    let others = Others { store, socket: &socket, device: &device.channel };
    others.run().await?;
    let (mut quiet, mut flooded, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS {
        quiet.push(others.run().await?);
        let uri = pairing_uri(&socket, &format!("flood-{run}")).await?;
        let flood = FloodProcess::start(&uri, &store.memories[0].id)?;
        tokio::time::sleep(WARM_UP).await;
        flooded.push(others.run().await?);
        calls.push(flood.stop()?);
    }
    for (number, who) in ["over the socket", "of a paired device"].into_iter().enumerate() {
        let of = |runs: &[[CallTimes; 2]], which: fn(&CallTimes) -> Duration| {
            median(runs.iter().map(|run| which(&run[number])))
        };
        let ratios = quiet
            .iter()
            .zip(&flooded)
            .map(|(quiet, flooded)| flooded[number].p99().as_secs_f64() / quiet[number].p99().as_secs_f64());
        print_line(&format!(
            "calls {who}: p50 and p99 {} and {}; while another device floods {} and {}, ratio of p99 {:.1}",
            show(of(&quiet, CallTimes::p50)),
            show(of(&quiet, CallTimes::p99)),
            show(of(&flooded, CallTimes::p50)),
            show(of(&flooded, CallTimes::p99)),
            crate::median(ratios.collect())
        ));
    }
    print_line(&format!("that device makes {:.0} calls in a second", crate::median(calls)));
    Ok(())
}

/// The clients that the flood must not disturb.
struct Others<'a> {
    store: &'a FilledStore,
    socket: &'a Channel,
    device: &'a Channel,
}

impl Others<'_> {
    /// Measures the calls of the client over the socket and of the device.
    async fn run(&self) -> Result<[CallTimes; 2]> {
        let socket = self.read_paced(self.socket, SOCKET_INTERVAL);
        let device = self.read_paced(self.device, DEVICE_INTERVAL);
        let (socket, device) = tokio::try_join!(Box::pin(socket), Box::pin(device))?;
        Ok([socket, device])
    }

    /// Reads memories one by one, at this interval.
    async fn read_paced(&self, channel: &Channel, pause: Duration) -> Result<CallTimes> {
        let (mut client, mut rng) = (MemoryServiceClient::new(channel.clone()), Rng::new(3));
        let (mut times, mut ticks, began) = (CallTimes::default(), interval(pause), Instant::now());
        while began.elapsed() < MEASURED {
            ticks.tick().await;
            let at = usize::try_from(rng.below(self.store.memories.len() as u64))?;
            let request = GetMemoryRequest { id: self.store.memories[at].id.clone(), ..Default::default() };
            let sent = Instant::now();
            client.get_memory(request).await?;
            times.push(sent.elapsed());
        }
        Ok(times)
    }
}

/// The device that floods, until it is stopped or dropped.
struct FloodProcess(Child, Instant);

impl FloodProcess {
    fn start(uri: &str, memory: &str) -> Result<Self> {
        let child = Command::new(std::env::current_exe()?)
            .args([FLOOD_ARGUMENT, uri, memory])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self(child, Instant::now()))
    }

    /// Returns how many calls it made in a second.
    #[expect(clippy::cast_precision_loss, reason = "a number of calls")]
    fn stop(mut self) -> Result<f64> {
        let seconds = self.1.elapsed().as_secs_f64();
        drop(self.0.stdin.take());
        let mut output = String::new();
        self.0.stdout.take().context("its output")?.read_to_string(&mut output)?;
        let calls: u64 = output.trim().parse().context("the flood ended early")?;
        Ok(calls as f64 / seconds)
    }
}

impl Drop for FloodProcess {
    fn drop(&mut self) {
        // It may have exited by itself; in both cases it is gone afterwards.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Is the device that floods, until the standard input ends.
pub(crate) fn run_flood(uri: &str, memory: &str) -> Result<()> {
    rustix::process::nice(FLOOD_PRIORITY)?;
    let calls = Arc::new(AtomicU64::new(0));
    let runtime = client_runtime()?;
    let ended = runtime.block_on(async {
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        let device = TestDevice::pair_with(&PairingSecret::parse(uri)?, "flood").await?;
        for _ in 0..3 {
            let other = TestDevice::connect(device.credentials.clone(), device.device.clone()).await?;
            for stream in 0..STREAMS {
                let (channel, memory, calls) = (other.channel.clone(), memory.to_owned(), Arc::clone(&calls));
                tokio::spawn(misbehave(channel, memory, calls, stream));
            }
        }
        Ok::<_, anyhow::Error>(ended.await?.map(drop))
    });
    print_line(&calls.load(Ordering::Relaxed).to_string());
    ended?.map_err(Into::into)
}

/// Calls without a pause. A third of the streams waits for answers, one cancels its calls, one leaves its answers
/// unread.
async fn misbehave(channel: Channel, memory: String, calls: Arc<AtomicU64>, stream: u64) {
    let mut rng = Rng::new(stream);
    loop {
        calls.fetch_add(1, Ordering::Relaxed);
        // Most of the calls are refused; the flood goes on.
        match stream % 3 {
            0 => drop(get(&channel, &memory).await),
            1 => {
                let patience = Duration::from_micros(rng.below(2_000));
                drop(timeout(patience, list(&channel)).await);
            }
            _ => drop(leave_unread(channel.clone()).await),
        }
    }
}

async fn get(channel: &Channel, memory: &str) -> Result<()> {
    let request = GetMemoryRequest { id: memory.to_owned(), ..Default::default() };
    MemoryServiceClient::new(channel.clone()).get_memory(request).await?;
    Ok(())
}

fn large_page() -> ListMemoriesRequest {
    let filter = MemoryFilter { tags_all: vec!["garden".to_owned()], ..Default::default() };
    ListMemoriesRequest {
        page_size: 1_000,
        filter: Some(filter),
        view: v1::MemoryView::Full.into(),
        ..Default::default()
    }
}

async fn list(channel: &Channel) -> Result<()> {
    MemoryServiceClient::new(channel.clone()).list_memories(large_page()).await?;
    Ok(())
}

/// Makes a call and does not read its answer, as long as this takes the place of another call.
async fn leave_unread(mut channel: Channel) -> Result<()> {
    let message = large_page().encode_to_vec();
    let mut body = BytesMut::with_capacity(message.len() + 5);
    // The prefix of a message in gRPC: not compressed, and its length.
    body.put_u8(0);
    body.put_u32(u32::try_from(message.len())?);
    body.put_slice(&message);
    let request = Request::post("/satchel.v1.MemoryService/ListMemories")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Body::new(Full::new(body.freeze())))?;
    poll_fn(|context| channel.poll_ready(context)).await?;
    let unread = channel.call(request).await?;
    tokio::time::sleep(UNREAD_TIME).await;
    drop(unread);
    Ok(())
}
