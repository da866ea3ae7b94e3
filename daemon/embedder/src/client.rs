//! Requests over HTTP: one address, no redirects, no proxy, each with a time limit and a limit for the answer.

use std::{
    future, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client, Error as ClientError,
        connect::{
            Connect, HttpConnector,
            dns::{GaiResolver, Name},
        },
    },
    rt::{TokioExecutor, TokioTimer},
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
    task::yield_now,
    time::timeout,
};
use tower::Service;

use crate::{
    config::{ApiKey, EndpointConfig, EndpointConfigError},
    error::EndpointError,
    url::names_this_machine,
};

/// Longest time for a connection. A server that is switched off is noticed before the time for the request is over.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which a connection that was not used is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest answer with an error that is read, in bytes. Only the beginning of its message is shown.
const MAX_ERROR_BYTES: usize = 1 << 16;

/// A client of one address. Its connections are used again.
pub(crate) struct HttpClient {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    transport: Transport,
    target: Uri,
    /// The address as it is shown.
    url: String,
    authorization: Option<HeaderValue>,
    timeout: Duration,
}

/// An answer with any status.
pub(crate) struct HttpAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Says when a request is not wanted any more.
pub(crate) struct StopSignal(Option<watch::Receiver<bool>>);

impl StopSignal {
    pub(crate) fn new(stopping: watch::Receiver<bool>) -> Self {
        Self(Some(stopping))
    }

    pub(crate) fn never() -> Self {
        Self(None)
    }

    /// Ends when there is a stop, or nobody is left who could want the answer.
    async fn stopped(&self) {
        match &self.0 {
            Some(stopping) => drop(stopping.clone().wait_for(|stopping| *stopping).await.is_ok()),
            None => future::pending().await,
        }
    }
}

impl HttpClient {
    pub(crate) fn new(config: &EndpointConfig, key: Option<&ApiKey>) -> Result<Self, EndpointConfigError> {
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(EndpointConfigError::Runtime)?;
        Ok(Self {
            runtime: Some(runtime),
            transport: Transport::new(config.url.encrypted()).map_err(EndpointConfigError::Certificates)?,
            target: config.url.target().clone(),
            url: config.url.to_string(),
            authorization: key.map(|key| key.header.clone()),
            timeout: config.timeout(),
        })
    }

    /// Sends JSON, and returns the answer, of which at most `limit` bytes are read. Blocks, and must not be called by a thread
    /// that runs futures.
    pub(crate) fn post(
        &self,
        body: Vec<u8>,
        limit: usize,
        stop: &StopSignal,
    ) -> Result<HttpAnswer, EndpointError> {
        let runtime = self.runtime.as_ref().expect("the runtime is taken only when the client is dropped");
        let request = async {
            let answered = timeout(self.timeout, self.exchange(body, limit)).await;
            answered.map_err(|_| EndpointError::TimedOut { url: self.url.clone(), after: self.timeout })?
        };
        runtime.block_on(async {
            let answer = tokio::select! {
                biased;
                () = stop.stopped() => Err(EndpointError::Stopped),
                answer = request => answer,
            };
            if answer.is_err() {
                // The task of the connection closes it now, rather than when the runtime runs again for the next request.
                yield_now().await;
            }
            answer
        })
    }

    async fn exchange(&self, body: Vec<u8>, limit: usize) -> Result<HttpAnswer, EndpointError> {
        let body = Bytes::from(body);
        let sent = match self.transport.send(self.request(body.clone())).await {
            // The server may have closed the connection that was kept after the last answer. At most one is kept, so that this
            // attempt gets a new one. A request changes nothing at the server, and can be repeated.
            Err(error) if !error.is_connect() => self.transport.send(self.request(body)).await,
            sent => sent,
        };
        let response = sent.map_err(|error| self.failed(error))?;
        let (head, body) = response.into_parts();
        let succeeded = head.status.is_success();
        let body = match self.read(body, if succeeded { limit } else { MAX_ERROR_BYTES }).await {
            Ok(body) => body,
            Err(error) if succeeded => return Err(error),
            // The status says enough.
            Err(_) => Bytes::new(),
        };
        Ok(HttpAnswer { status: head.status, headers: head.headers, body })
    }

    fn request(&self, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.target.clone();
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        if let Some(authorization) = &self.authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        request
    }

    async fn read(&self, body: Incoming, limit: usize) -> Result<Bytes, EndpointError> {
        let collected = Limited::new(body, limit).collect().await;
        let body = collected.map_err(|source| {
            if source.is::<LengthLimitError>() {
                EndpointError::AnswerTooLarge { limit }
            } else {
                EndpointError::Interrupted { url: self.url.clone(), source }
            }
        })?;
        Ok(body.to_bytes())
    }

    fn failed(&self, error: ClientError) -> EndpointError {
        let url = self.url.clone();
        if error.is_connect() {
            EndpointError::Unreachable { url, source: Box::new(error) }
        } else {
            EndpointError::Interrupted { url, source: Box::new(error) }
        }
    }
}

/// The last owner may be a thread that runs futures, which must not wait for the end of a runtime.
impl Drop for HttpClient {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

const USER_AGENT: &str = concat!("satchel/", env!("CARGO_PKG_VERSION"));

type Tcp = HttpConnector<Resolver>;

/// Connections with and without TLS. The certificates that the system trusts are read only if they are needed.
enum Transport {
    Plain(Client<Tcp, Full<Bytes>>),
    Encrypted(Client<HttpsConnector<Tcp>, Full<Bytes>>),
}

impl Transport {
    fn new(encrypted: bool) -> io::Result<Self> {
        let mut tcp = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        if !encrypted {
            return Ok(Self::Plain(client(tcp)));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider)?;
        Ok(Self::Encrypted(client(tls.https_only().enable_http1().wrap_connector(tcp))))
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, ClientError> {
        match self {
            Self::Plain(client) => client.request(request).await,
            Self::Encrypted(client) => client.request(request).await,
        }
    }
}

fn client<C: Connect + Clone>(connector: C) -> Client<C, Full<Bytes>> {
    let mut builder = Client::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_TIMEOUT).pool_max_idle_per_host(1);
    builder.build(connector)
}

/// Looks names up, except the one of this machine: what is said to stay on this machine must not depend on a name server.
#[derive(Clone)]
struct Resolver(GaiResolver);

type Resolved = io::Result<std::vec::IntoIter<SocketAddr>>;

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Resolved> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        if names_this_machine(name.as_str()) {
            let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            let addresses = addresses.map(|address| SocketAddr::new(address, 0)).to_vec();
            return Box::pin(future::ready(Ok(addresses.into_iter())));
        }
        let found = self.0.call(name);
        Box::pin(async { Ok(found.await?.collect::<Vec<_>>().into_iter()) })
    }
}
