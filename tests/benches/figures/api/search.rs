//! Searches in a daemon at rest, while it imports, and while its index catches up; what the index and vectors add to its memory.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use satchel_proto::v1::{
    GetStatusRequest, MemoryEmbedding, PutEmbeddingsRequest, SearchMeaning, SearchRequest, SearchVector,
    admin_service_client::AdminServiceClient, embedding_service_client::EmbeddingServiceClient,
    search_meaning::Source, search_service_client::SearchServiceClient,
};
use satchel_server::connect::connect;
use satchel_tests::generate::{self, Rng};
use tokio::runtime::Runtime;
use tonic::transport::Channel;

use super::{
    call_times::{CallTimes, median},
    client_runtime,
    filled_store::{FilledStore, StoredMemory},
    show,
};
use crate::{RUNS, client::Client, print_line};

/// Searches of each kind in one run.
const SEARCHES: usize = 100;
/// Words of the messages. Each is in tens of thousands of them, so that these searches rank far more than usual ones.
const WORDS: [&str; 12] = [
    "garden",
    "letters",
    "trains",
    "journal",
    "storage",
    "engine",
    "jardim",
    "estação",
    "cartas",
    "música",
    "coração",
    "página",
];
/// How long the daemon is left alone before its memory is read: it frees buffers 5 s after the last change.
const REST: Duration = Duration::from_secs(10);
/// How long the index may take to catch up.
const INDEX_TIMEOUT: Duration = Duration::from_mins(30);
/// Numbers of a vector.
const DIMENSION: usize = 1_536;
/// Vectors of one call: about as many as the daemon allows.
const VECTORS_PER_CALL: usize = 640;
const MODEL: &str = "synthetic";

type Searches = SearchServiceClient<Channel>;

/// What is searched for.
#[derive(Clone, Copy)]
enum Kind {
    Word,
    ThreeWords,
    Phrase,
    AsYouType,
}

impl Kind {
    const ALL: [(Self, &str); 4] = [
        (Self::Word, "one word"),
        (Self::ThreeWords, "three words"),
        (Self::Phrase, "a phrase"),
        (Self::AsYouType, "the first letters of a word"),
    ];

    fn query(self, rng: &mut Rng) -> String {
        let mut word = || WORDS[usize::try_from(rng.below(WORDS.len() as u64)).unwrap_or_default()];
        match self {
            Self::Word => word().to_owned(),
            Self::ThreeWords => [word(), word(), word()].join(" "),
            Self::Phrase => format!("\"{} {}\"", word(), word()),
            Self::AsYouType => format!("{}*", word().chars().take(3).collect::<String>()),
        }
    }
}

pub(super) fn measure(store: &FilledStore, megabytes: u64) -> Result<()> {
    let runtime = client_runtime()?;
    let socket = runtime.block_on(connect(&store.data))?;
    let client = SearchServiceClient::new(socket.clone());
    let waited = runtime.block_on(wait_for_index(&socket))?;
    print_line(&format!(
        "the search index is complete {:.0} s after the start of the daemon",
        waited.as_secs_f64()
    ));
    thread::sleep(REST);
    let unused = store.daemon.private_mib()?;
    let idle = at_rest(&runtime, &client)?;
    thread::sleep(REST);
    print_line(&format!(
        "private memory at rest: {unused} MiB before the first search, {} MiB after all of them",
        store.daemon.private_mib()?
    ));
    while_importing(&runtime, &socket, store, megabytes, idle)?;
    vectors(&runtime, &socket, store)
}

/// Waits until the index has everything that is stored.
async fn wait_for_index(socket: &Channel) -> Result<Duration> {
    let began = Instant::now();
    while !index_is_complete(socket).await? {
        ensure!(began.elapsed() < INDEX_TIMEOUT, "the index does not catch up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(began.elapsed())
}

async fn search(client: &Searches, query: String) -> Result<()> {
    let request = SearchRequest { query, page_size: 20, ..SearchRequest::default() };
    client.clone().search(request).await?;
    Ok(())
}

/// Measures each kind of search, and returns the p99 of searches for one word.
fn at_rest(runtime: &Runtime, client: &Searches) -> Result<Duration> {
    let mut word = Duration::ZERO;
    for (kind, name) in Kind::ALL {
        let mut runs = Vec::new();
        // The first run warms up.
        for run in 0..=RUNS as u64 {
            let mut rng = Rng::new(run);
            let times = runtime
                .block_on(CallTimes::of(SEARCHES, async |_| search(client, kind.query(&mut rng)).await))?;
            if run > 0 {
                runs.push(times);
            }
        }
        let p99 = median(runs.iter().map(CallTimes::p99));
        print_line(&format!(
            "search for {name}, over the socket: p50 {}, p99 {}",
            show(median(runs.iter().map(CallTimes::p50))),
            show(p99)
        ));
        if matches!(kind, Kind::Word) {
            word = p99;
        }
    }
    Ok(word)
}

/// Measures searches for one word while an export is imported, and then while its messages are indexed.
fn while_importing(
    runtime: &Runtime,
    socket: &Channel,
    store: &FilledStore,
    megabytes: u64,
    idle: Duration,
) -> Result<()> {
    let client = &SearchServiceClient::new(socket.clone());
    let scratch = tempfile::tempdir()?;
    generate::chatgpt(scratch.path(), megabytes * 5_000_000, 41)?;
    let imported = AtomicBool::new(false);
    let during = thread::scope(|scope| {
        let import = scope.spawn(|| {
            let outcome = import(&store.data, scratch.path());
            imported.store(true, Ordering::Release);
            outcome
        });
        let times = runtime.block_on(searches_until(client, async || Ok(imported.load(Ordering::Acquire))));
        import.join().map_err(|_| anyhow::anyhow!("the import panicked"))??;
        times
    })?;
    report("while an export is imported", &during, idle);
    let after = runtime.block_on(searches_until(client, async || index_is_complete(socket).await))?;
    report("while its messages are indexed", &after, idle);
    Ok(())
}

fn import(data: &Path, export: &Path) -> Result<()> {
    let client = Client::connect(data)?;
    let job = client.start_import(export)?;
    client.follow(&job, |_| false).map(drop)
}

async fn index_is_complete(socket: &Channel) -> Result<bool> {
    let status = AdminServiceClient::new(socket.clone()).get_status(GetStatusRequest {}).await?.into_inner();
    let index = status.search_index.context("a search index")?;
    ensure!(index.error.is_empty(), "the index failed: {}", index.error);
    Ok(index.revision == status.header.context("a header")?.revision)
}

async fn searches_until(client: &Searches, ended: impl AsyncFn() -> Result<bool>) -> Result<CallTimes> {
    let (mut times, mut rng) = (CallTimes::default(), Rng::new(9));
    while !ended().await? {
        let began = Instant::now();
        search(client, Kind::Word.query(&mut rng)).await?;
        times.push(began.elapsed());
    }
    Ok(times)
}

fn report(when: &str, times: &CallTimes, idle: Duration) {
    print_line(&format!(
        "search for one word {when}: p50 {}, p99 {}, {:.1} times that at rest",
        show(times.p50()),
        show(times.p99()),
        times.p99().as_secs_f64() / idle.as_secs_f64()
    ));
}

/// Gives each memory a vector, and measures the first search by meaning and the following ones.
fn vectors(runtime: &Runtime, socket: &Channel, store: &FilledStore) -> Result<()> {
    let began = Instant::now();
    runtime.block_on(put_vectors(socket, store))?;
    print_line(&format!(
        "{} vectors of {DIMENSION} numbers stored in {:.0} s",
        store.memories.len(),
        began.elapsed().as_secs_f64()
    ));
    let (client, mut rng) = (SearchServiceClient::new(socket.clone()), Rng::new(13));
    let before = store.daemon.private_mib()?;
    let first = runtime.block_on(CallTimes::of(1, async |_| nearest(&client, vector(&mut rng)).await))?;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(
            runtime.block_on(CallTimes::of(SEARCHES, async |_| nearest(&client, vector(&mut rng)).await))?,
        );
    }
    print_line(&format!(
        "the 10 nearest of them: at first {}, then p50 {}, p99 {}; private memory {before} MiB, then {} MiB",
        show(first.p50()),
        show(median(runs.iter().map(CallTimes::p50))),
        show(median(runs.iter().map(CallTimes::p99))),
        store.daemon.private_mib()?
    ));
    Ok(())
}

async fn put_vectors(socket: &Channel, store: &FilledStore) -> Result<()> {
    let (mut client, mut rng) = (EmbeddingServiceClient::new(socket.clone()), Rng::new(12));
    for memories in store.memories.chunks(VECTORS_PER_CALL) {
        let embedding = |memory: &StoredMemory| MemoryEmbedding {
            memory_id: memory.id.clone(),
            content_hash: memory.document["content_hash"].as_str().unwrap_or_default().to_owned(),
            vector: vector(&mut rng),
        };
        let request = PutEmbeddingsRequest {
            model: MODEL.to_owned(),
            embeddings: memories.iter().map(embedding).collect(),
            ..PutEmbeddingsRequest::default()
        };
        let response = client.put_embeddings(request).await?.into_inner();
        ensure!(response.outdated_memory_ids.is_empty(), "a memory has another text");
    }
    Ok(())
}

/// A vector without structure: nothing helps to find what is near.
fn vector(rng: &mut Rng) -> Vec<f32> {
    #[expect(clippy::cast_precision_loss, reason = "random numbers")]
    let number = |rng: &mut Rng| rng.below(2_000_001) as f32 / 1e6 - 1.0;
    (0..DIMENSION).map(|_| number(rng)).collect()
}

async fn nearest(client: &Searches, values: Vec<f32>) -> Result<()> {
    let source = Some(Source::Vector(SearchVector { values }));
    let meaning = Some(SearchMeaning { model: MODEL.to_owned(), source });
    let request = SearchRequest { page_size: 10, meaning, ..SearchRequest::default() };
    let found = client.clone().search(request).await?.into_inner();
    ensure!(found.hits.len() == 10, "{} hits", found.hits.len());
    Ok(())
}
