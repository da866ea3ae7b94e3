//! Streamable HTTP, the transport for clients that do not start the server themselves.

mod limits;

use std::sync::Arc;

use http::{Method, Request, Response};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use tokio::sync::Semaphore;
use tonic::body::Body;

use super::{Connection, clients::AgentIdentity, server::Server};

/// Requests that are answered at once, of all clients. More wait, before their bodies are read.
const MAX_REQUESTS: usize = 32;

/// Answers the HTTP requests of agents, each with the token in its header `authorization`. Clones share one server.
///
/// There are no sessions: each request is complete in itself, as in version 2026-07-28 of the protocol, and older clients
/// need none either. A client that closes its connection cancels its request.
#[derive(Clone)]
pub struct HttpEndpoint {
    service: StreamableHttpService<Server, NeverSessionManager>,
    requests: Arc<Semaphore>,
}

impl HttpEndpoint {
    /// Creates the endpoint. The caller has to check the host, the origin and the token of each request, and to add its
    /// [`HttpPeer`](super::HttpPeer) to its extensions.
    #[must_use]
    pub fn new(connection: Arc<dyn Connection>) -> Self {
        let server = Server::new(connection, AgentIdentity::RequestToken);
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(limits::MAX_BODY_BYTES)
            .disable_allowed_hosts();
        let sessions = Arc::new(NeverSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(server.for_next_client()), sessions, config);
        Self { service, requests: Arc::new(Semaphore::new(MAX_REQUESTS)) }
    }

    /// Answers a request.
    pub async fn answer(&self, request: Request<Body>) -> Response<Body> {
        // The semaphore is never closed.
        let _permit = self.requests.acquire().await;
        let (head, body) = request.into_parts();
        let body = match head.method {
            Method::POST => match limits::read(body).await {
                Ok(body) => body,
                Err(refused) => return refused,
            },
            _ => Body::empty(),
        };
        self.service.handle(Request::from_parts(head, body)).await.map(Body::new)
    }
}
