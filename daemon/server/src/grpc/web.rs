//! gRPC-Web for programs in a browser on this machine, and the Model Context Protocol for agents: plain HTTP/1.1 on a
//! loopback address.
//!
//! Any web page can make a browser send requests to a loopback address. A request is passed on only if it names this
//! listener as its host and comes from an allowed origin, has a content type that no page can send without asking first,
//! and carries a token.

mod agents;
mod request_body;
mod request_checks;
mod timeout_header;

use std::{convert::Infallible, future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use http::{HeaderValue, Request, Response, header::CONTENT_TYPE};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
};
use tonic::body::Body;
use tower::{BoxError, Service, ServiceExt as _};

pub(super) use self::agents::AgentEndpoint;
use self::{
    request_body::RequestBody,
    request_checks::{RequestChecks, RequestKind},
};
use super::{
    connection::{ConnectionPeer, Peer},
    status::CallError,
};
use crate::config::{LoopbackAddress, WebOrigin};

/// Connections at once. A browser opens at most six; other clients open one for each call that they make at once.
const MAX_CONNECTIONS: usize = 256;
/// How long a client may take for the headers of a request, and how long a connection may be unused.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest headers of a request, in bytes.
const MAX_HEADER_BYTES: usize = 16 << 10;
/// Most headers of a request.
const MAX_HEADERS: usize = 64;
/// Time until the next attempt if the system had no file descriptor for a connection.
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// The content type of a response that the service did not write.
const GRPC_WEB: HeaderValue = HeaderValue::from_static("application/grpc-web+proto");

/// A listener for gRPC-Web.
pub(crate) struct WebListener {
    listener: TcpListener,
    address: SocketAddr,
    checks: Arc<RequestChecks>,
}

impl WebListener {
    /// Listens on `address` for pages of these origins.
    pub(crate) async fn bind(address: LoopbackAddress, origins: Vec<WebOrigin>) -> io::Result<Self> {
        let listener = TcpListener::bind(address.get()).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, checks: Arc::new(RequestChecks::new(address, origins)) })
    }

    /// Returns the address, with its port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves connections until `stopped`, and then those that are open. Dropping the future closes them.
    pub(super) async fn serve<S>(
        self,
        service: S,
        agents: AgentEndpoint,
        stopped: impl Future<Output = ()> + Send,
    ) where
        S: Service<Request<RequestBody>, Response = Response<Body>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
    {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let (stopping, stop) = watch::channel(false);
        let mut connections = JoinSet::new();
        tokio::pin!(stopped);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                // Ended connections free their memory.
                Some(_) = connections.join_next() => continue,
                () = &mut stopped => break,
            };
            match (accepted, Arc::clone(&permits).try_acquire_owned()) {
                (Ok((stream, address)), Ok(permit)) => {
                    let checks = Arc::clone(&self.checks);
                    let (service, agents) = (service.clone(), agents.clone());
                    let connection = WebConnection { checks, service, agents, address };
                    connections.spawn(connection.serve(stream, permit, stop.clone()));
                }
                (Ok((_, address)), Err(_)) => tracing::debug!(%address, "too many connections"),
                (Err(error), _) => {
                    tracing::warn!(%error, "cannot accept a connection yet");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
        stopping.send_replace(true);
        while connections.join_next().await.is_some() {}
    }
}

/// One connection of a browser.
#[derive(Clone)]
struct WebConnection<S> {
    checks: Arc<RequestChecks>,
    service: S,
    agents: AgentEndpoint,
    address: SocketAddr,
}

impl<S> WebConnection<S>
where
    S: Service<Request<RequestBody>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
{
    async fn serve(self, stream: TcpStream, _permit: OwnedSemaphorePermit, stop: watch::Receiver<bool>) {
        let address = self.address;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%address, %error, "cannot send small packets at once");
        }
        let requests = service_fn(move |request| self.clone().answer(request));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_header_size(MAX_HEADER_BYTES)
            .max_headers(MAX_HEADERS);
        let connection = http.serve_connection(TokioIo::new(stream), requests);
        tokio::pin!(connection);
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = super::ended(stop) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = served {
            tracing::debug!(%address, %error, "a connection failed");
        }
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let kind = RequestKind::of(request.uri().path());
        let origin = match self.checks.check(&request, kind) {
            Ok(origin) => origin,
            Err(refused) => {
                tracing::debug!(address = %self.address, status = %refused.status(), "a request was refused");
                return Ok((*refused).map(Body::new));
            }
        };
        let mut response = match kind {
            RequestKind::Call | RequestKind::LoginDiscovery => self.call(request).await,
            RequestKind::Agent => {
                let request = request.map(|body| Body::new(RequestBody::new(body)));
                self.agents.answer(request, self.address).await
            }
        };
        if let Some(origin) = origin {
            request_checks::allow_origin(response.headers_mut(), origin);
        }
        Ok(response)
    }

    async fn call(self, request: Request<Incoming>) -> Response<Body> {
        let mut request = request.map(RequestBody::new);
        let deadline = timeout_header::deadline(request.headers_mut());
        request.extensions_mut().insert(ConnectionPeer::new(Peer::Web { address: self.address }));
        let call = self.service.oneshot(request);
        let error = match deadline {
            None => match call.await {
                Ok(response) => return response,
                Err(error) => CallError::internal(error.into()),
            },
            Some(deadline) => match tokio::time::timeout(deadline, call).await {
                Ok(Ok(response)) => return response,
                Ok(Err(error)) => CallError::internal(error.into()),
                Err(_) => CallError::Deadline { seconds: deadline.as_secs() },
            },
        };
        let mut response = error.into_status().into_http();
        response.headers_mut().insert(CONTENT_TYPE, GRPC_WEB);
        response
    }
}
