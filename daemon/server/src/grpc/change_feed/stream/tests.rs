//! Readers that do not read.

use std::path::Path;

use satchel_proto::v1::{change::Record, memory_service_server::MemoryService as _};
use tonic::Request;
use tonic_types::StatusExt as _;

use super::*;
use crate::{
    config::Config,
    grpc::{ServerState, call_state::Caller, memory::MemoryHandler},
};

const HOUR: Duration = Duration::from_hours(1);
/// How long the reader of the test may take for a message.
const TIMEOUT: Duration = Duration::from_millis(50);
/// How long the test may take.
const LONG: Duration = Duration::from_mins(1);

fn open(folder: &Path) -> ServerState {
    let config = Config::new(folder.join("data"), folder.to_owned());
    crate::run::open(&config, false, None, |_| {}).unwrap().0
}

fn by_owner<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.extensions_mut().insert(Caller::Owner);
    request
}

async fn create_memory(server: &ServerState, content: &str) {
    let memory = v1::Memory { content: content.to_owned(), ..v1::Memory::default() };
    let request = v1::CreateMemoryRequest { memory: Some(memory), ..Default::default() };
    MemoryHandler(server.clone()).create_memory(by_owner(request)).await.unwrap();
}

/// Watches after a revision. The second result becomes finished when the stream has ended.
fn watch_after(
    server: &ServerState,
    stopping: &watch::Receiver<bool>,
    start: Revision,
) -> (ChangeStream, JoinHandle<()>) {
    let state = CallState::of(server, &by_owner(())).unwrap();
    let query = Arc::new(ChangeQuery::from_wire(&state, None, 0).unwrap());
    let watch = Watch { query, shared: None, batches: SharedBatches::default() };
    stream_with_timeout(state, stopping.clone(), watch, start, (HOUR, TIMEOUT))
}

/// Reads until a memory with the content `last`, or the error. Appends what was told; returns the last revision and the error.
async fn read(stream: &mut ChangeStream, last: &str, told: &mut Vec<String>) -> (i64, Option<Status>) {
    let mut revision = 0;
    while told.last().is_none_or(|content| content != last) {
        let message = match stream.next().await.unwrap() {
            Ok(message) => message,
            Err(status) => return (revision, Some(status)),
        };
        revision = message.header.unwrap().revision;
        told.extend(message.changes.into_iter().filter_map(|change| match change.record {
            Some(Record::Memory(memory)) => Some(memory.content),
            _ => None,
        }));
    }
    (revision, None)
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_ended_and_continues_without_loss() {
    let folder = tempfile::tempdir().unwrap();
    let server = open(folder.path());
    let (_stop, stopping) = watch::channel(false);
    let (mut stream, watching) = watch_after(&server, &stopping, Revision::ZERO);
    let mut told = Vec::new();
    create_memory(&server, "0").await;
    assert!(read(&mut stream, "0", &mut told).await.1.is_none());
    // From now on nothing is read.
    let mut written = vec!["0".to_owned()];
    let began = std::time::Instant::now();
    while !watching.is_finished() {
        assert!(began.elapsed() < LONG, "the stream goes on");
        written.push(written.len().to_string());
        create_memory(&server, written.last().unwrap()).await;
    }
    let last = written.last().unwrap();
    let (reached, ended) = read(&mut stream, last, &mut told).await;
    let ended = ended.unwrap();
    let info = ended.get_details_error_info().unwrap();
    assert_eq!((ended.code(), info.reason.as_str()), (tonic::Code::ResourceExhausted, "WATCH_TOO_SLOW"));
    assert_eq!(info.metadata["revision"], reached.to_string(), "it names the last revision that was sent");
    assert!(stream.next().await.is_none());
    assert!(told.len() < written.len());
    let resume = Revision::new(info.metadata["revision"].parse().unwrap());
    let (mut stream, _watching) = watch_after(&server, &stopping, resume);
    assert!(read(&mut stream, last, &mut told).await.1.is_none());
    assert_eq!(told, written, "each change once, and in order");
}

#[tokio::test]
async fn a_reader_that_leaves_ends_the_task() {
    let folder = tempfile::tempdir().unwrap();
    let server = open(folder.path());
    let (_stop, stopping) = watch::channel(false);
    let (stream, watching) = watch_after(&server, &stopping, Revision::ZERO);
    drop(stream);
    tokio::time::timeout(LONG, watching).await.unwrap().unwrap();
}
