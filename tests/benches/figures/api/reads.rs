//! Reads of one client and of several, over the socket and over TLS, in turns with the same queries to SQLite.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    self, GetMemoryRequest, ListMemoriesRequest, MemoryFilter, memory_service_client::MemoryServiceClient,
};
use satchel_server::connect::connect;
use satchel_tests::generate::Rng;
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use super::{
    call_times::{CallTimes, median},
    client_runtime,
    filled_store::{FilledStore, StoredMemory},
    pair,
    peer::{PAGE, Peer},
    show,
};
use crate::{RUNS, print_line};

/// Calls of one run, and calls before the first one.
const CALLS: usize = 2_000;
const LISTS: usize = 300;
/// Calls of a device in one run: fewer than it may make at once.
const DEVICE_CALLS: usize = 600;
/// Time in which a device may make as many again; it may make 500 in a second.
const DEVICE_PAUSE: Duration = Duration::from_millis(1_500);
/// Number of clients that read at the same time, and for how long.
const CLIENTS: usize = 16;
const THROUGHPUT_TIME: Duration = Duration::from_secs(3);

/// The runs of one figure.
type Runs = Vec<CallTimes>;

/// The clients of the measurement.
struct Clients {
    socket: Channel,
    device: Channel,
}

pub(super) fn measure(store: &FilledStore) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let peer = Peer::fill(folder.path(), store)?;
    let runtime = client_runtime()?;
    runtime.block_on(Box::pin(measure_latency(store, &peer)))?;
    let ids: Arc<[String]> = store.memories.iter().map(|memory| memory.id.clone()).collect();
    let mut rates = Vec::new();
    for _ in 0..RUNS {
        rates.push(runtime.block_on(throughput(store, &ids))?);
    }
    print_line(&format!("{CLIENTS} clients on the socket: {:.0} memories in a second", crate::median(rates)));
    Ok(())
}

async fn measure_latency(store: &FilledStore, peer: &Peer) -> Result<()> {
    let socket = connect(&store.data).await?;
    let device = pair(&socket, "measured").await?;
    let clients = Clients { device: device.channel, socket };
    let chosen = Chosen::new(store);
    // The first turn warms up the daemon, the peer and the connections.
    let mut turns = Turns::default();
    for turn in 0..=RUNS {
        let run = Box::pin(turn_of(&clients, peer, &chosen)).await?;
        if turn > 0 {
            turns.push(run);
        }
    }
    turns.print();
    Ok(())
}

/// Memories in a random order; each figure reads the same ones.
struct Chosen<'a>(Vec<&'a StoredMemory>);

impl<'a> Chosen<'a> {
    fn new(store: &'a FilledStore) -> Self {
        let mut rng = Rng::new(5);
        let count = store.memories.len();
        let pick = |_| usize::try_from(rng.next_u64()).map_or(0, |number| number % count);
        Self((0..CALLS).map(pick).filter_map(|at| store.memories.get(at)).collect())
    }

    fn at(&self, number: usize) -> &'a StoredMemory {
        self.0[number % self.0.len()]
    }
}

/// One turn: each figure once.
struct Turn {
    floor: CallTimes,
    get: (CallTimes, CallTimes),
    device_get: CallTimes,
    by_tag: (CallTimes, CallTimes),
    by_kind: (CallTimes, CallTimes),
}

async fn turn_of(clients: &Clients, peer: &Peer, chosen: &Chosen<'_>) -> Result<Turn> {
    let (socket, device) = (&clients.socket, &clients.device);
    let by_tag =
        |number: usize| MemoryFilter { tags_all: vec![chosen.at(number).tag.clone()], ..Default::default() };
    let by_kind = |number: usize| kind_filter(chosen.at(number));
    let turn = Turn {
        floor: floor(socket).await?,
        get: (gets(socket, chosen, CALLS).await?, peer_gets(peer, chosen).await?),
        device_get: gets(device, chosen, DEVICE_CALLS).await?,
        by_tag: (
            lists(socket, by_tag).await?,
            peer_lists(|number| peer.list_by_tag(&chosen.at(number).tag)).await?,
        ),
        by_kind: (
            lists(socket, by_kind).await?,
            peer_lists(|number| {
                let memory = chosen.at(number);
                peer.list_by_kind(memory.memory_type, memory.platform)
            })
            .await?,
        ),
    };
    tokio::time::sleep(DEVICE_PAUSE).await;
    Ok(turn)
}

fn kind_filter(memory: &StoredMemory) -> MemoryFilter {
    let memory_type = match memory.memory_type {
        "fact" => v1::MemoryType::Fact,
        "preference" => v1::MemoryType::Preference,
        "skill" => v1::MemoryType::Skill,
        _ => v1::MemoryType::Goal,
    };
    MemoryFilter {
        types: vec![memory_type.into()],
        platforms: vec![memory.platform.to_owned()],
        ..Default::default()
    }
}

/// Calls a method that reads nothing: what any call costs on this machine.
async fn floor(channel: &Channel) -> Result<CallTimes> {
    let mut client = HealthClient::new(channel.clone());
    CallTimes::of(CALLS, async |_| {
        client.check(HealthCheckRequest::default()).await?;
        Ok(())
    })
    .await
}

async fn gets(channel: &Channel, chosen: &Chosen<'_>, calls: usize) -> Result<CallTimes> {
    let mut client = MemoryServiceClient::new(channel.clone());
    CallTimes::of(calls, async |number| {
        let id = &chosen.at(number).id;
        let request = GetMemoryRequest { id: id.clone(), ..Default::default() };
        let memory = client.get_memory(request).await?.into_inner().memory.context("a memory")?;
        ensure!(memory.id == *id);
        Ok(())
    })
    .await
}

async fn peer_gets(peer: &Peer, chosen: &Chosen<'_>) -> Result<CallTimes> {
    CallTimes::of(CALLS, async |number| {
        ensure!(peer.get(&chosen.at(number).id)?.contains("garden"));
        Ok(())
    })
    .await
}

async fn lists(channel: &Channel, filter: impl Fn(usize) -> MemoryFilter) -> Result<CallTimes> {
    let mut client = MemoryServiceClient::new(channel.clone());
    CallTimes::of(LISTS, async |number| {
        let request =
            ListMemoriesRequest { page_size: PAGE, filter: Some(filter(number)), ..Default::default() };
        let page = client.list_memories(request).await?.into_inner();
        ensure!(page.memories.len() == usize::try_from(PAGE)?, "{} memories", page.memories.len());
        Ok(())
    })
    .await
}

async fn peer_lists(list: impl Fn(usize) -> Result<Vec<String>>) -> Result<CallTimes> {
    CallTimes::of(LISTS, async |number| {
        ensure!(list(number)?.len() == usize::try_from(PAGE)?);
        Ok(())
    })
    .await
}

/// Returns how many memories the clients read in a second.
#[expect(clippy::cast_precision_loss, reason = "a number of calls")]
async fn throughput(store: &FilledStore, ids: &Arc<[String]>) -> Result<f64> {
    let mut channels = Vec::new();
    for _ in 0..CLIENTS {
        channels.push(connect(&store.data).await?);
    }
    let (mut clients, until) = (JoinSet::new(), Instant::now() + THROUGHPUT_TIME);
    for (seed, channel) in (0..).zip(channels) {
        clients.spawn(read_until(channel, Arc::clone(ids), seed, until));
    }
    let mut calls = 0;
    while let Some(client) = clients.join_next().await {
        calls += client??;
    }
    Ok(calls as f64 / THROUGHPUT_TIME.as_secs_f64())
}

async fn read_until(channel: Channel, ids: Arc<[String]>, seed: u64, until: Instant) -> Result<usize> {
    let (mut client, mut rng, mut calls) = (MemoryServiceClient::new(channel), Rng::new(seed), 0);
    while Instant::now() < until {
        let at = usize::try_from(rng.below(ids.len() as u64))?;
        let request = GetMemoryRequest { id: ids[at].clone(), ..Default::default() };
        client.get_memory(request).await?;
        calls += 1;
    }
    Ok(calls)
}

/// All turns, by figure.
#[derive(Default)]
struct Turns {
    floor: Runs,
    get: (Runs, Runs),
    device_get: Runs,
    by_tag: (Runs, Runs),
    by_kind: (Runs, Runs),
}

impl Turns {
    fn push(&mut self, turn: Turn) {
        let Turn { floor, get, device_get, by_tag, by_kind } = turn;
        self.floor.push(floor);
        self.device_get.push(device_get);
        for (runs, run) in [(&mut self.get, get), (&mut self.by_tag, by_tag), (&mut self.by_kind, by_kind)] {
            runs.0.push(run.0);
            runs.1.push(run.1);
        }
    }

    fn print(&self) {
        print_line(&line("a call that reads nothing, over the socket", &self.floor, None));
        print_line(&line("a memory by its id, over the socket", &self.get.0, Some(&self.get.1)));
        print_line(&line("the same by a paired device, over TLS", &self.device_get, Some(&self.get.1)));
        print_line(&line("50 memories with a tag", &self.by_tag.0, Some(&self.by_tag.1)));
        print_line(&line("50 memories of a type and platform", &self.by_kind.0, Some(&self.by_kind.1)));
    }
}

/// Describes a figure: the medians over the runs of its own median and p99, and the ratio to the peer.
fn line(what: &str, runs: &Runs, peer: Option<&Runs>) -> String {
    let p50 = |runs: &Runs| median(runs.iter().map(CallTimes::p50));
    let p99 = median(runs.iter().map(CallTimes::p99));
    let compared = peer.map(|peer| {
        let ratio = p50(runs).as_secs_f64() / p50(peer).as_secs_f64();
        format!("; SQLite {}, the daemon takes {ratio:.1} times as long", show(p50(peer)))
    });
    format!("{what}: p50 {}, p99 {}{}", show(p50(runs)), show(p99), compared.unwrap_or_default())
}
