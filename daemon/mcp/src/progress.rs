//! Sends progress notifications while a request runs or waits.

use std::time::Duration;

use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Time between two notifications. Clients that end a request after a time without progress wait at least some seconds.
const INTERVAL: Duration = Duration::from_secs(1);

/// The progress of one request. Its total is unknown; it is counted in seconds.
pub(crate) struct Progress {
    client: Option<(Peer<RoleServer>, ProgressToken)>,
    began: Instant,
    ticks: Interval,
}

impl Progress {
    /// Starts counting. A client that has not asked for progress gets none.
    pub(crate) fn new(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        let began = Instant::now();
        let mut ticks = interval_at(began + INTERVAL, INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { client: token.map(|token| (context.peer.clone(), token)), began, ticks }
    }

    /// Sends notifications until `work` is ready. `message` says what the request does meanwhile.
    pub(crate) async fn during<T>(&mut self, message: &str, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                outcome = &mut work => return outcome,
                _ = self.ticks.tick() => self.send(message).await,
            }
        }
    }

    async fn send(&self, message: &str) {
        let Some((peer, token)) = &self.client else { return };
        let seconds = self.began.elapsed().as_secs_f64();
        let progress = ProgressNotificationParam::new(token.clone(), seconds).with_message(message);
        if let Err(error) = peer.notify_progress(progress).await {
            // The request itself ends when the client is gone.
            tracing::debug!(%error, "a client gets no progress");
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{future, pin::Pin, sync::Arc};

    use rmcp::ServiceExt as _;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines, ReadHalf, WriteHalf, split};

    use crate::{Connection, GrpcServices, clients::AgentIdentity, server::Server};

    /// A daemon that does not answer, for example because it opens a large store.
    struct Silent;

    impl Connection for Silent {
        fn services(&self) -> Pin<Box<dyn Future<Output = GrpcServices> + Send + '_>> {
            Box::pin(future::pending())
        }
    }

    struct Client {
        input: WriteHalf<tokio::io::DuplexStream>,
        output: Lines<BufReader<ReadHalf<tokio::io::DuplexStream>>>,
    }

    impl Client {
        async fn connected() -> Self {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let server = Server::new(Arc::new(Silent), AgentIdentity::Connection);
            tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
            let (output, input) = split(ours);
            let mut client = Self { input, output: BufReader::new(output).lines() };
            let about = json!({"name": "test", "version": "1"});
            let begin = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about});
            client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin})).await;
            assert!(client.receive().await["result"].is_object());
            client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
            client
        }

        async fn send(&mut self, message: &Value) {
            self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }

        async fn receive(&mut self) -> Value {
            serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap()
        }

        async fn search(&mut self, id: u64, meta: Value) {
            let params = json!({"name": "search", "arguments": {"query": "bees"}, "_meta": meta});
            self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_asks_gets_progress_while_its_call_runs_or_waits() {
        let mut client = Client::connected().await;
        // All calls that run at once, without progress; then one that waits.
        for id in 1..u64::try_from(crate::server::MAX_CALLS).unwrap() {
            client.search(id, json!({})).await;
        }
        client.search(100, json!({"progressToken": "runs"})).await;
        let mut before = 0.0;
        for _ in 0..3 {
            let notification = client.receive().await;
            assert_eq!(notification["method"], "notifications/progress", "{notification}");
            assert_eq!(notification["params"]["progressToken"], "runs", "{notification}");
            assert_eq!(notification["params"]["message"], "waiting for the daemon", "{notification}");
            let progress = notification["params"]["progress"].as_f64().unwrap();
            assert!(progress > before, "{notification}");
            before = progress;
        }
        client.search(101, json!({"progressToken": 7})).await;
        loop {
            let notification = client.receive().await;
            if notification["params"]["progressToken"] == 7 {
                assert_eq!(notification["params"]["message"], "waiting for other calls", "{notification}");
                break;
            }
        }
    }
}
