use std::{
    fs,
    net::TcpListener,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    config,
    server::{Reply, Server, Then, vector_of},
    wait_until,
};
use crate::{Endpoint, EndpointConfig, EndpointConfigError, EndpointError};

fn endpoint(server: &Server) -> Endpoint {
    Endpoint::new(config(server)).unwrap()
}

/// Returns the error for two texts that a server answers like this.
fn error_of(reply: impl Fn() -> Reply + Send + Sync + 'static) -> EndpointError {
    let server = Server::start(move |_| reply());
    endpoint(&server).embed(&["one", "two"]).unwrap_err()
}

#[test]
fn texts_are_sent_in_batches_over_one_connection() {
    let server = Server::healthy();
    let endpoint = Endpoint::new(EndpointConfig { batch_size: 2, ..config(&server) }).unwrap();
    assert_eq!(server.connections(), 0, "nothing is sent before it is asked for");
    assert_eq!(endpoint.dimension(), None);
    let vectors = endpoint.embed(&["a", "b", "\"c\"\n"]).unwrap();
    assert_eq!(vectors, ["a", "b", "\"c\"\n"].map(vector_of));
    assert_eq!(endpoint.dimension(), Some(3));
    assert_eq!(server.batches(), [vec!["a", "b"], vec!["\"c\"\n"]]);
    let request = &server.received()[0];
    assert_eq!(request.line, "POST /v1/embeddings HTTP/1.1");
    assert_eq!(request.body, json!({"model": "test-model", "input": ["a", "b"], "encoding_format": "float"}));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("authorization"), None);
    assert_eq!(server.received()[1].connection, request.connection);
    assert!(endpoint.embed(&[]).unwrap().is_empty());
    assert_eq!(server.received().len(), 2);
}

#[test]
fn vectors_are_assigned_by_index() {
    let server = Server::start(|_| {
        let data = json!([{"index": 1, "embedding": [2]}, {"index": 0, "embedding": "AACAPw=="}]);
        Reply::new(200, json!({ "data": data }).to_string())
    });
    assert_eq!(endpoint(&server).embed(&["one", "two"]).unwrap(), [[1.0], [2.0]]);
}

#[test]
fn long_texts_are_cut_at_the_end_of_a_character() {
    let server = Server::healthy();
    let endpoint = Endpoint::new(EndpointConfig { max_text_bytes: 257, ..config(&server) }).unwrap();
    endpoint.embed(&[&"é".repeat(200), &"x".repeat(257)]).unwrap();
    assert_eq!(server.batches(), [["é".repeat(128), "x".repeat(257)]]);
}

#[test]
fn the_key_is_sent_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    fs::write(&path, "sk-secret\n").unwrap();
    let server = Server::start(|request| {
        // Some servers repeat the key.
        Reply::error(401, &format!("wrong key: {}", request.header("authorization").unwrap()))
    });
    let endpoint = Endpoint::new(EndpointConfig { api_key_file: Some(path), ..config(&server) }).unwrap();
    let error = endpoint.embed(&["one"]).unwrap_err();
    assert_eq!(server.received()[0].header("authorization"), Some("Bearer sk-secret"));
    assert!(error.to_string().contains("HTTP 401: wrong key: Bearer [key]"), "{error}");
    assert!(error.to_string().contains("`api-key-file`"), "{error}");
    assert!(!error.is_transient());
    for shown in [format!("{endpoint:?}"), format!("{error:?}"), endpoint.config().disclosure()] {
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[test]
fn redirects_are_not_followed() {
    let other = Server::healthy();
    let target = other.url();
    let error = error_of(move || Reply::new(307, "").header("Location", format!("{target}/embeddings")));
    assert!(matches!(error, EndpointError::Redirect { status: 307, .. }), "{error}");
    assert!(error.to_string().contains(&other.url()), "{error}");
    assert!(!error.is_transient());
    assert_eq!(other.connections(), 0);
}

#[test]
fn limits_say_how_long_to_wait() {
    let error = error_of(|| Reply::error(429, "slow down").header("Retry-After", "7"));
    assert!(matches!(error, EndpointError::RateLimited { .. }), "{error}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(error.is_transient() && error.to_string().contains("slow down"), "{error}");
    let error =
        error_of(|| Reply::error(503, "loading").header("Retry-After", "Fri, 01 Jan 2100 00:00:00 GMT"));
    assert!(error.is_transient() && error.retry_after() > Some(Duration::from_hours(24)), "{error:?}");
}

#[test]
fn errors_of_the_server_have_their_type() {
    let error = error_of(|| Reply::error(413, "too much"));
    assert!(matches!(error, EndpointError::TooLarge { status: 413, .. }), "{error}");
    let error = error_of(|| Reply::error(400, "the input length exceeds the context length"));
    assert!(matches!(error, EndpointError::TooLarge { status: 400, .. }), "{error}");
    let error = error_of(|| Reply::error(404, "model \"test-model\" not found, try pulling it first"));
    assert!(matches!(error, EndpointError::Status { status: 404, .. }) && !error.is_transient(), "{error}");
    let error = error_of(|| Reply::error(200, "no model is loaded"));
    assert!(error.to_string().contains("(HTTP 200: no model is loaded)"), "{error}");
    let error = error_of(|| Reply::new(502, "x".repeat(1 << 20)));
    assert!(matches!(error, EndpointError::Status { status: 502, .. }) && error.is_transient(), "{error}");
}

#[test]
fn an_answer_that_is_cut_off_is_not_used() {
    let error = error_of(|| Reply::vectors(&[vec![1.0], vec![2.0]]).then(Then::CutOff));
    assert!(matches!(error, EndpointError::Interrupted { .. }) && error.is_transient(), "{error}");
}

#[test]
fn an_answer_cannot_fill_the_memory() {
    let error = error_of(|| Reply::new(200, vec![b' '; 4 << 20]));
    assert!(matches!(error, EndpointError::AnswerTooLarge { .. }), "{error}");
}

#[test]
fn wrong_answers_have_their_type() {
    let error = error_of(|| Reply::vectors(&[vec![1.0]]));
    assert!(matches!(error, EndpointError::WrongCount { expected: 2, actual: 1 }), "{error}");
    let error = error_of(|| Reply::vectors(&[vec![1.0, 2.0], vec![1.0]]));
    assert!(matches!(error, EndpointError::WrongDimension { expected: 2, actual: 1 }), "{error}");
    let null = r#"{"data":[{"embedding":[1]},{"embedding":[null]}]}"#;
    assert!(matches!(error_of(move || Reply::new(200, null)), EndpointError::UnusableVector { .. }));
    let nan = r#"{"data":[{"embedding":[1]},{"embedding":[NaN]}]}"#;
    assert!(matches!(error_of(move || Reply::new(200, nan)), EndpointError::Malformed { .. }));
    assert!(matches!(error_of(|| Reply::new(200, "<html>")), EndpointError::Malformed { .. }));
}

#[test]
fn all_vectors_have_one_dimension() {
    let server = Server::healthy();
    let endpoint = Endpoint::new(EndpointConfig { dimensions: Some(2), ..config(&server) }).unwrap();
    let error = endpoint.embed(&["one"]).unwrap_err();
    assert_eq!(server.received()[0].body["dimensions"], 2);
    assert!(matches!(error, EndpointError::WrongDimension { expected: 2, actual: 3 }), "{error}");
    // The model is replaced while the daemon runs.
    let requests = AtomicUsize::new(0);
    let server =
        Server::start(move |_| Reply::vectors(&[vec![1.0; 4 + requests.fetch_add(1, Ordering::SeqCst)]]));
    let endpoint = Endpoint::new(config(&server)).unwrap();
    endpoint.embed(&["one"]).unwrap();
    let error = endpoint.embed(&["two"]).unwrap_err();
    assert!(matches!(error, EndpointError::WrongDimension { expected: 4, actual: 5 }), "{error}");
}

#[test]
fn a_server_that_does_not_run_is_unreachable() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = EndpointConfig::new(&format!("http://{free}"), "m").unwrap();
    let error = Endpoint::new(config).unwrap().embed(&["one"]).unwrap_err();
    assert!(matches!(error, EndpointError::Unreachable { .. }) && error.is_transient(), "{error}");
    assert!(error.to_string().contains(&free.to_string()), "{error}");
}

#[test]
fn a_server_has_only_so_much_time() {
    let server = Server::start(|_| Reply::hang());
    let endpoint = Endpoint::new(EndpointConfig { timeout_seconds: 1, ..config(&server) }).unwrap();
    let started = Instant::now();
    let error = endpoint.embed(&["one"]).unwrap_err();
    assert!(matches!(error, EndpointError::TimedOut { .. }) && error.is_transient(), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20));
    wait_until("the connection is closed", || server.closed() == 1);
}

#[test]
fn a_connection_that_the_server_closed_is_not_used_again() {
    let server = Server::start(|request| Reply::embeddings(request).then(Then::Close));
    let endpoint = endpoint(&server);
    // Many times, as it depends on the moment whether the client knows of the end.
    for number in 0..50 {
        endpoint.embed(&[&number.to_string()]).unwrap();
    }
    assert_eq!((server.connections(), server.received().len()), (50, 50));
}

#[test]
fn localhost_is_this_machine() {
    let server = Server::healthy();
    let config = EndpointConfig::new(&format!("http://localhost:{}/v1", server.port()), "m").unwrap();
    assert!(!config.leaves_the_machine());
    Endpoint::new(config).unwrap().embed(&["one"]).unwrap();
    assert_eq!(server.received().len(), 1);
}

#[test]
fn nothing_is_sent_unencrypted_to_an_https_address() {
    let server = Server::healthy();
    let config = EndpointConfig::new(&server.url().replace("http://", "https://"), "m").unwrap();
    match Endpoint::new(config) {
        Ok(endpoint) => {
            let error = endpoint.embed(&["one"]).unwrap_err();
            assert!(matches!(error, EndpointError::Unreachable { .. }), "{error}");
        }
        // A system without certificates.
        Err(error) => assert!(matches!(error, EndpointConfigError::Certificates(_)), "{error}"),
    }
    assert!(server.received().is_empty());
}

#[test]
fn several_threads_can_ask_at_once() {
    let server = Server::healthy();
    let endpoint = endpoint(&server);
    thread::scope(|scope| {
        for thread in 0..4 {
            let endpoint = &endpoint;
            scope.spawn(move || {
                for request in 0..8 {
                    let text = format!("{thread} {request}");
                    assert_eq!(endpoint.embed(&[&text]).unwrap(), [vector_of(&text)]);
                }
            });
        }
    });
    assert_eq!(server.received().len(), 32);
}
