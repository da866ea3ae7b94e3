//! Many clients that watch the store and wait, and one change: how long until all of them know of it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    self, CreateMemoryRequest, WatchChangesRequest, memory_service_client::MemoryServiceClient,
    watch_service_client::WatchServiceClient,
};
use satchel_server::connect::connect;
use tokio::{sync::mpsc, task::JoinSet, time::timeout};
use tonic::transport::Channel;
use uuid::Uuid;

use super::{
    call_times::{CallTimes, median},
    client_runtime,
    filled_store::FilledStore,
    show,
};
use crate::{RUNS, print_line};

const WATCHERS: usize = 1_000;
/// Watches on one connection: fewer than the calls that the daemon allows there.
const WATCHES_PER_CONNECTION: usize = 25;
/// Changes of one run.
const CHANGES: usize = 10;
/// Time between two changes, in which all of the work for the last one ends.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a watcher may take; only a daemon that forgets one takes so long.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn measure(store: &FilledStore) -> Result<()> {
    client_runtime()?.block_on(Box::pin(measure_changes(store)))
}

async fn measure_changes(store: &FilledStore) -> Result<()> {
    let (sender, mut told) = mpsc::unbounded_channel();
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS / WATCHES_PER_CONNECTION {
        let channel = connect(&store.data).await?;
        for _ in 0..WATCHES_PER_CONNECTION {
            watchers.spawn(watch(channel.clone(), sender.clone()));
        }
    }
    // The first message says that the watch has begun.
    wait_for_all(&mut told, 0).await?;
    let mut client = MemoryServiceClient::new(connect(&store.data).await?);
    let (mut p50, mut p99, mut last) = (Vec::new(), Vec::new(), Vec::new());
    let mut alone = Vec::new();
    // The first run warms up.
    for run in 0..=RUNS {
        let mut times = CallTimes::default();
        let (mut slowest, mut answers) = (CallTimes::default(), CallTimes::default());
        for _ in 0..CHANGES {
            tokio::time::sleep(PAUSE).await;
            let began = Instant::now();
            let revision = change(&mut client).await?;
            answers.push(began.elapsed());
            let all = wait_for_all(&mut told, revision).await?;
            slowest.push(all.iter().map(|at| *at - began).max().unwrap_or_default());
            times.append(all.into_iter().map(|at| at - began).collect());
        }
        if run > 0 {
            p50.push(times.p50());
            p99.push(times.p99());
            last.push(slowest.p50());
            alone.push(answers.p50());
        }
    }
    watchers.shutdown().await;
    print_line(&format!(
        "{WATCHERS} watchers and one change, from its request on: p50 {}, p99 {}, the last one {}; the change itself is \
         answered after {}",
        show(median(p50)),
        show(median(p99)),
        show(median(last)),
        show(median(alone))
    ));
    Ok(())
}

/// The revision that a watcher was told of, and when.
type Told = (i64, Instant);

/// Watches until the stream ends.
async fn watch(channel: Channel, told: mpsc::UnboundedSender<Told>) -> Result<()> {
    let mut client = WatchServiceClient::new(channel);
    let mut changes = client.watch_changes(WatchChangesRequest::default()).await?.into_inner();
    let mut first = true;
    while let Some(message) = changes.message().await? {
        let revision = message.header.context("a header")?.revision;
        if first || !message.changes.is_empty() {
            told.send((if first { 0 } else { revision }, Instant::now()))?;
        }
        first = false;
    }
    Ok(())
}

/// Waits until all watchers were told of a revision; 0 stands for the beginning of the watch.
async fn wait_for_all(told: &mut mpsc::UnboundedReceiver<Told>, revision: i64) -> Result<Vec<Instant>> {
    let mut all = Vec::with_capacity(WATCHERS);
    while all.len() < WATCHERS {
        let (of, at) = timeout(WAIT_TIMEOUT, told.recv())
            .await
            .with_context(|| format!("only {} watchers were told", all.len()))?
            .context("a watcher")?;
        ensure!(of == revision, "a watcher was told of revision {of} instead of {revision}");
        all.push(at);
    }
    Ok(all)
}

/// Adds a memory; returns its revision.
async fn change(client: &mut MemoryServiceClient<Channel>) -> Result<i64> {
    let memory =
        v1::Memory { content: format!("The visitor {} came.", Uuid::new_v4()), ..Default::default() };
    let request = CreateMemoryRequest { memory: Some(memory), ..Default::default() };
    let answer = client.create_memory(request).await?.into_inner();
    Ok(answer.header.context("a header")?.revision)
}
