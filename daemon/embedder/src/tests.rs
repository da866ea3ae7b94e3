//! The endpoint and the worker against a server on the loopback interface.

mod endpoint;
mod server;
mod source;
mod worker;

use std::{
    thread,
    time::{Duration, Instant},
};

use super::EndpointConfig;

/// Longest time for what a test waits for. It is reached only if the test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until a condition holds.
#[track_caller]
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn config(server: &server::Server) -> EndpointConfig {
    EndpointConfig::new(&server.url(), "test-model").unwrap()
}
