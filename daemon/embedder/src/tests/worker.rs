use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use super::{
    config,
    server::{Received, Reply, Server, Then, vector_of},
    source::Memories,
    wait_until,
};
use crate::{Backoff, EmbedderProgress, Endpoint, EndpointConfig, Worker, WorkerState};

/// Waits that no test notices.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(2), max: Duration::from_millis(20) };
/// Time that a stop may take, far below the time limit of a request.
const STOP: Duration = Duration::from_secs(10);

/// Starts a worker that sends four texts at once.
fn start(server: &Server, memories: &Memories) -> Worker {
    let endpoint = Endpoint::new(EndpointConfig { batch_size: 4, ..config(server) }).unwrap();
    Worker::start_with(endpoint, memories.clone(), BACKOFF).unwrap()
}

#[track_caller]
fn wait_until_idle(worker: &Worker) -> EmbedderProgress {
    wait_until("the worker is idle", || worker.progress().state == WorkerState::Idle);
    worker.progress()
}

/// Writes a memory, and waits until the worker has dealt with it.
#[track_caller]
fn write(memories: &Memories, worker: &Worker, id: &str, text: &str) {
    memories.write(id, text);
    worker.wake();
    wait_until("the memory is embedded", || memories.vector(id).is_some());
    wait_until_idle(worker);
}

fn waits(worker: &Worker) -> bool {
    matches!(worker.progress().state, WorkerState::Waiting { .. })
}

/// Refuses requests in which a text has `bad`.
fn refuse_bad(request: &Received, status: u16) -> Reply {
    if request.texts().iter().any(|text| text.contains("bad")) {
        Reply::error(status, "cannot embed this")
    } else {
        Reply::embeddings(request)
    }
}

#[test]
fn everything_is_embedded_in_batches() {
    let (server, memories) = (Server::healthy(), Memories::numbered(10));
    assert_eq!(server.connections(), 0);
    let worker = start(&server, &memories);
    let progress = wait_until_idle(&worker);
    assert_eq!((progress.embedded, progress.failed, progress.remaining), (10, 0, Some(0)));
    assert_eq!(progress.last_error, None);
    assert_eq!(server.batches().iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2]);
    assert_eq!(server.batches().concat(), (0..10).map(|number| format!("text {number}")).collect::<Vec<_>>());
    assert_eq!(memories.vector("memory-007"), Some(vector_of("text 7")));
    worker.stop();
    assert_eq!(worker.progress().state, WorkerState::Stopped);
}

#[test]
fn new_and_changed_memories_are_embedded_after_a_wake() {
    let (server, memories) = (Server::healthy(), Memories::numbered(1));
    let worker = start(&server, &memories);
    wait_until_idle(&worker);
    write(&memories, &worker, "new", "a new text");
    write(&memories, &worker, "memory-000", "another text");
    // Without a new revision, nothing is to do.
    worker.waker().wake();
    write(&memories, &worker, "last", "the last text");
    assert_eq!(server.batches(), [["text 0"], ["a new text"], ["another text"], ["the last text"]]);
    let waker = worker.waker();
    drop(worker);
    waker.wake();
}

#[test]
fn a_text_that_changes_while_it_is_embedded_is_embedded_again() {
    let memories = Memories::numbered(1);
    let changed = memories.clone();
    let server = Server::start(move |request| {
        if request.texts() == ["text 0"] {
            changed.write("memory-000", "changed");
        }
        Reply::embeddings(request)
    });
    let worker = start(&server, &memories);
    wait_until("the new text is embedded", || memories.vector("memory-000") == Some(vector_of("changed")));
    wait_until_idle(&worker);
    assert_eq!(server.received().len(), 2);
}

#[test]
fn a_restart_goes_on_with_what_is_missing() {
    let memories = Memories::numbered(20);
    let requests = AtomicUsize::new(0);
    let server = Server::start(move |request| {
        if requests.fetch_add(1, Ordering::SeqCst) == 2 { Reply::hang() } else { Reply::embeddings(request) }
    });
    let worker = start(&server, &memories);
    wait_until("the third batch is sent", || server.received().len() == 3);
    worker.stop();
    let stored: HashSet<String> = memories.embedded().into_iter().collect();
    assert_eq!(stored.len(), 8);
    let worker = start(&server, &memories);
    assert_eq!(wait_until_idle(&worker).embedded, 12);
    let sent_later: Vec<String> = server.batches()[3..].concat();
    assert!(sent_later.iter().all(|text| !stored.contains(text)));
    assert_eq!((sent_later.len(), memories.embedded().len()), (12, 20));
}

#[test]
fn a_stop_does_not_wait_for_the_server() {
    let (server, memories) = (Server::start(|_| Reply::hang()), Memories::numbered(3));
    let endpoint = Endpoint::new(config(&server)).unwrap();
    // Another owner of the endpoint does not keep the connection open.
    let worker = Worker::start_with(endpoint.clone(), memories.clone(), BACKOFF).unwrap();
    wait_until("the request arrives", || server.received().len() == 1);
    assert_eq!(worker.progress().state, WorkerState::Working);
    let started = Instant::now();
    worker.stop();
    worker.stop();
    assert!(started.elapsed() < STOP);
    assert_eq!(worker.progress().state, WorkerState::Stopped);
    wait_until("the connection is closed", || server.closed() == 1);
    drop(endpoint);
}

#[test]
fn a_limit_is_respected() {
    let requests = AtomicUsize::new(0);
    let server = Server::start(move |request| {
        if requests.fetch_add(1, Ordering::SeqCst) == 0 {
            Reply::error(429, "slow down").header("Retry-After", "1")
        } else {
            Reply::embeddings(request)
        }
    });
    let worker = start(&server, &Memories::numbered(2));
    assert_eq!(wait_until_idle(&worker).last_error, None);
    let received = server.received();
    assert_eq!(received.len(), 2);
    assert!(received[1].at - received[0].at >= Duration::from_secs(1));
}

#[test]
fn a_long_wait_is_shown_and_can_be_stopped() {
    let server = Server::start(|_| Reply::error(429, "slow down").header("Retry-After", "1800"));
    let memories = Memories::numbered(2);
    let worker = start(&server, &memories);
    wait_until("the worker waits", || waits(&worker));
    // A new revision does not shorten the wait.
    memories.write("new", "text");
    worker.wake();
    let WorkerState::Waiting { until, reason } = worker.progress().state else { panic!("it does not wait") };
    let left = until.duration_since(SystemTime::now()).unwrap();
    assert!(left > Duration::from_mins(29) && left <= Duration::from_mins(30), "{left:?}");
    assert!(reason.contains("HTTP 429: slow down"), "{reason}");
    assert_eq!(worker.progress().last_error, Some(reason));
    let started = Instant::now();
    drop(worker);
    assert!(started.elapsed() < STOP);
    assert_eq!(server.received().len(), 1);
}

#[test]
fn errors_of_the_server_pass() {
    let requests = AtomicUsize::new(0);
    let server = Server::start(move |request| match requests.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::error(500, "out of memory"),
        1 => Reply::error(503, "loading the model"),
        3 => Reply::embeddings(request).then(Then::CutOff),
        _ => Reply::embeddings(request),
    });
    let memories = Memories::numbered(8);
    let worker = start(&server, &memories);
    let progress = wait_until_idle(&worker);
    assert_eq!((progress.embedded, progress.failed, progress.last_error), (8, 0, None));
    assert_eq!(server.received().len(), 5);
}

#[test]
fn one_bad_text_does_not_block_the_others() {
    let server = Server::start(|request| refuse_bad(request, 400));
    let memories = Memories::new(["one", "two", "a bad text", "four", "five", "six"]);
    let worker = start(&server, &memories);
    let progress = wait_until_idle(&worker);
    assert_eq!((progress.embedded, progress.failed, progress.remaining), (5, 1, Some(0)));
    assert!(progress.last_error.unwrap().contains("cannot embed this"));
    // It is not sent again, but what it becomes is.
    write(&memories, &worker, "new", "seven");
    let sent = server.batches().concat();
    assert_eq!(sent.iter().filter(|text| *text == "a bad text").count(), 2);
    write(&memories, &worker, "memory-002", "three");
    assert_eq!(worker.progress().failed, 0);
}

#[test]
fn a_text_that_the_server_fails_on_is_left_out_at_last() {
    let server = Server::start(|request| refuse_bad(request, 500));
    let memories = Memories::new(["one", "bad"]);
    let worker = start(&server, &memories);
    let progress = wait_until_idle(&worker);
    assert_eq!((progress.embedded, progress.failed), (1, 1));
    // One that is alone is found too.
    memories.write("new", "another bad one");
    worker.wake();
    wait_until("it is left out", || worker.progress().failed == 2);
    assert_eq!(wait_until_idle(&worker).embedded, 1);
}

#[test]
fn no_text_is_blamed_for_a_server_that_refuses_everything() {
    for refusal in [
        || Reply::error(401, "no such key"),
        || Reply::error(404, "no such model"),
        || Reply::error(400, "no such model"),
        || Reply::new(200, "<html>a page"),
        || Reply::vectors(&[]),
    ] {
        let healthy = Arc::new(AtomicBool::new(false));
        let recovered = Arc::clone(&healthy);
        let server = Server::start(move |request| {
            if recovered.load(Ordering::SeqCst) { Reply::embeddings(request) } else { refusal() }
        });
        let memories = Memories::numbered(6);
        let worker = start(&server, &memories);
        wait_until("it was tried a few times", || server.received().len() >= 8);
        wait_until("the worker waits", || waits(&worker));
        assert_eq!(worker.progress().failed, 0);
        healthy.store(true, Ordering::SeqCst);
        let progress = wait_until_idle(&worker);
        assert_eq!((progress.embedded, progress.failed, progress.last_error), (6, 0, None));
    }
}

#[test]
fn batches_become_as_small_as_the_server_wants() {
    let server = Server::start(|request| {
        if request.texts().len() > 2 {
            Reply::error(422, "batch size 4 > maximum allowed batch size 2")
        } else {
            Reply::embeddings(request)
        }
    });
    let worker = start(&server, &Memories::numbered(10));
    let progress = wait_until_idle(&worker);
    assert_eq!((progress.embedded, progress.failed, progress.last_error), (10, 0, None));
    let sizes: Vec<usize> = server.batches().iter().map(Vec::len).collect();
    // The batch, the probe, its texts, and smaller ones from there on.
    assert_eq!(sizes, [4, 1, 1, 1, 1, 1, 2, 2, 2]);
}

#[test]
fn errors_of_the_source_pass() {
    let (server, memories) = (Server::healthy(), Memories::numbered(4));
    memories.lock().failures = 2;
    let worker = start(&server, &memories);
    let progress = wait_until_idle(&worker);
    assert_eq!((progress.embedded, progress.last_error), (4, None));
    assert_eq!(server.received().len(), 3);
}
