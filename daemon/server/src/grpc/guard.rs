//! The middleware for every call: checks the caller, sets the request id, and limits the time.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use satchel_core::clock::{self, Clock};
use tokio::sync::Semaphore;
use tonic::{body::Body, transport::server::UdsConnectInfo};
use tower::{BoxError, Layer, Service};
use tracing::{Instrument, Span, debug, field, info_span};
use uuid::Uuid;

use super::{
    call_state::Caller,
    status::CallError,
    unread_limit::{LimitedBody, UnreadBytes},
};

/// Largest number of concurrent calls on one connection.
pub const MAX_CALLS_PER_CONNECTION: u32 = 32;
/// Largest request and largest response, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Calls that are processed at once, of all connections; the others wait.
const MAX_CONCURRENT_CALLS: usize = 32;
/// The same for long-running calls, which have no time limit.
const MAX_CONCURRENT_LONG_CALLS: usize = 16;
/// Time limit of a call that sets no deadline; no page takes that long.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);
/// Longest request id that is accepted, in characters.
const MAX_REQUEST_ID_CHARS: usize = 64;
/// Path prefix of our own services; health and reflection do not need the clock.
const OWN_PREFIX: &str = "/satchel.";
/// The header with error details. Each of our errors has it; an error of the transport does not.
const DETAILS_HEADER: &str = "grpc-status-details-bin";
/// The code INTERNAL, with which the transport responds to bytes that are not a request.
const INTERNAL_CODE: &str = "13";

/// The download method. A folder is packed before its download begins, which may take long.
const DOWNLOAD_METHOD: &str = "/satchel.v1.ExportService/DownloadExport";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// A layer that wraps services in [`Guard`].
#[derive(Clone)]
pub struct GuardLayer {
    owner: u32,
    clock: Arc<dyn Clock>,
    deadline: Duration,
    limits: CallLimits,
}

/// The limits on all concurrent calls; clones share them.
#[derive(Clone, Debug)]
struct CallLimits {
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
    unread: UnreadBytes,
}

impl Default for CallLimits {
    fn default() -> Self {
        let semaphore = |calls| Arc::new(Semaphore::new(calls));
        Self {
            short: semaphore(MAX_CONCURRENT_CALLS),
            long: semaphore(MAX_CONCURRENT_LONG_CALLS),
            unread: UnreadBytes::default(),
        }
    }
}

impl GuardLayer {
    /// Creates a layer that admits only processes of the user `owner`, and only while `clock` shows a time that can be
    /// stored.
    #[must_use]
    pub fn new(owner: u32, clock: Arc<dyn Clock>) -> Self {
        Self { owner, clock, deadline: DEFAULT_DEADLINE, limits: CallLimits::default() }
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard { inner, layer: self.clone() }
    }
}

/// A service that refuses other users, sets a request id for each call, and ends calls that take too long.
#[derive(Clone)]
pub struct Guard<S> {
    inner: S,
    layer: GuardLayer,
}

impl<S> Service<Request<Body>> for Guard<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let id = request_id(request.headers());
        let method = request.uri().path().to_owned();
        let span = info_span!("call", method, request = id, code = field::Empty);
        // The original is ready, but its clone is not, so swap them.
        let ready = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, ready);
        let response = handle(inner, request, self.layer.clone());
        Box::pin(
            async move {
                let began = Instant::now();
                let mut response = response.await?;
                if let Ok(value) = HeaderValue::from_str(&id) {
                    response.headers_mut().insert(REQUEST_ID, value);
                }
                let code =
                    response.headers().get("grpc-status").and_then(|code| code.to_str().ok()).unwrap_or("0");
                Span::current().record("code", code);
                debug!(elapsed_ms = began.elapsed().as_millis(), "answered");
                Ok(response)
            }
            .instrument(span),
        )
    }
}

async fn handle<S>(
    mut inner: S,
    mut request: Request<Body>,
    layer: GuardLayer,
) -> Result<Response<Body>, BoxError>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Error: Into<BoxError>,
{
    let GuardLayer { owner, clock, deadline, limits } = layer;
    if peer_uid(&request) != Some(owner) {
        return Ok(CallError::NotOwner.into_status().into_http());
    }
    request.extensions_mut().insert(Caller::Owner);
    if request.uri().path().starts_with(OWN_PREFIX)
        && let Err(error) = clock::check(clock.now_micros())
    {
        return Ok(CallError::Clock(error).into_status().into_http());
    }
    let long = satchel_proto::method(request.uri().path()).is_some_and(|method| method.long_running);
    let has_deadline = request.headers().contains_key(GRPC_TIMEOUT);
    let CallLimits { short, long: long_calls, unread } = limits;
    let call = async move {
        // The semaphores are never closed.
        let _short_permit = if long { None } else { short.acquire_owned().await.ok() };
        // A download has its own permit, and causes no work except that it is read.
        let needs_permit = long && request.uri().path() != DOWNLOAD_METHOD;
        let long_permit = if needs_permit { long_calls.acquire_owned().await.ok() } else { None };
        let response = inner.call(request).await.map_err(Into::into);
        response.map(|response| {
            replace_decoding_error(response).map(|body| LimitedBody::body(body, &unread, long_permit))
        })
    };
    if long || has_deadline {
        return call.await;
    }
    match tokio::time::timeout(deadline, call).await {
        Ok(response) => response,
        Err(_) => Ok(CallError::Deadline { seconds: deadline.as_secs() }.into_status().into_http()),
    }
}

/// Replaces the transport's INTERNAL error for an undecodable request by an error that blames the caller.
fn replace_decoding_error(response: Response<Body>) -> Response<Body> {
    let headers = response.headers();
    let internal = headers.get("grpc-status").is_some_and(|code| code == INTERNAL_CODE);
    if internal && !headers.contains_key(DETAILS_HEADER) {
        return CallError::Malformed.into_status().into_http();
    }
    response
}

/// Returns the user id of the process at the other end, as reported by the kernel.
fn peer_uid(request: &Request<Body>) -> Option<u32> {
    request.extensions().get::<UdsConnectInfo>()?.peer_cred.as_ref().map(tokio::net::unix::UCred::uid)
}

/// Returns the caller's request id if it is safe, otherwise a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let valid = |id: &&str| {
        !id.is_empty()
            && id.len() <= MAX_REQUEST_ID_CHARS
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    given.filter(valid).map_or_else(|| Uuid::new_v4().to_string(), str::to_owned)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use tokio::net::UnixStream;
    use tonic::transport::server::Connected;
    use tower::{ServiceExt, service_fn};

    use super::*;

    fn request(info: Option<UdsConnectInfo>) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = "/satchel.v1.AdminService/GetStatus".parse().unwrap();
        if let Some(info) = info {
            request.extensions_mut().insert(info);
        }
        request
    }

    fn layer(owner: u32) -> GuardLayer {
        GuardLayer::new(owner, Arc::new(FixedClock(1_800_000_000_000_000)))
    }

    struct FixedClock(i64);

    impl Clock for FixedClock {
        fn now_micros(&self) -> i64 {
            self.0
        }
    }

    async fn respond_to(layer: GuardLayer, request: Request<Body>) -> Response<Body> {
        let inner = service_fn(|request: Request<Body>| async move {
            if request.headers().contains_key("slow") {
                std::future::pending::<()>().await;
            }
            Ok::<_, BoxError>(Response::new(Body::empty()))
        });
        layer.layer(inner).oneshot(request).await.unwrap()
    }

    fn code(response: &Response<Body>) -> &str {
        response.headers().get("grpc-status").map_or("0", |value| value.to_str().unwrap())
    }

    #[tokio::test]
    async fn only_the_owner_may_call() {
        let (client, _server) = UnixStream::pair().unwrap();
        let info = client.connect_info();
        let uid = info.peer_cred.as_ref().unwrap().uid();
        let passed = respond_to(layer(uid), request(Some(info.clone()))).await;
        assert_eq!(code(&passed), "0");
        let refused = respond_to(layer(uid + 1), request(Some(info))).await;
        assert_eq!(code(&refused), "7");
    }

    #[tokio::test]
    async fn a_call_without_peer_credentials_is_refused() {
        assert_eq!(code(&respond_to(layer(0), request(None)).await), "7");
    }

    #[tokio::test]
    async fn a_call_times_out() {
        let (client, _server) = UnixStream::pair().unwrap();
        let info = client.connect_info();
        let strict = GuardLayer { deadline: Duration::ZERO, ..layer(info.peer_cred.as_ref().unwrap().uid()) };
        let mut slow = request(Some(info));
        slow.headers_mut().insert("slow", HeaderValue::from_static("1"));
        assert_eq!(code(&respond_to(strict, slow).await), "4");
    }

    /// Starts endless calls, one more than may run at once, and one call that waits.
    #[tokio::test]
    async fn concurrent_calls_are_limited() {
        let (client, _server) = UnixStream::pair().unwrap();
        let info = client.connect_info();
        let layer = layer(info.peer_cred.as_ref().unwrap().uid());
        let slow = || {
            let mut slow = request(Some(info.clone()));
            slow.headers_mut().insert("slow", HeaderValue::from_static("1"));
            Box::pin(respond_to(layer.clone(), slow))
        };
        let mut working: Vec<_> = (0..MAX_CONCURRENT_CALLS).map(|_| slow()).collect();
        for call in &mut working {
            assert!(tokio::time::timeout(Duration::from_millis(1), call).await.is_err());
        }
        assert_eq!(layer.limits.short.available_permits(), 0);
        let mut next = Box::pin(respond_to(layer.clone(), request(Some(info.clone()))));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut next).await.is_err(), "it waits");
        drop(working.pop());
        assert_eq!(code(&next.await), "0");
    }

    #[tokio::test]
    async fn a_response_carries_the_request_id() {
        let (client, _server) = UnixStream::pair().unwrap();
        let info = client.connect_info();
        let guard = layer(info.peer_cred.as_ref().unwrap().uid());
        let mut named = request(Some(info.clone()));
        named.headers_mut().insert(REQUEST_ID, HeaderValue::from_static("mine-1"));
        let response = respond_to(guard.clone(), named).await;
        assert_eq!(response.headers().get(REQUEST_ID).unwrap(), "mine-1");
        let mut invalid = request(Some(info));
        invalid.headers_mut().insert(REQUEST_ID, HeaderValue::from_static("a b\"c"));
        let response = respond_to(guard, invalid).await;
        let given = response.headers().get(REQUEST_ID).unwrap().to_str().unwrap();
        assert!(Uuid::parse_str(given).is_ok());
    }

    #[tokio::test]
    async fn calls_are_refused_while_the_clock_shows_a_time_that_cannot_be_stored() {
        let (client, _server) = UnixStream::pair().unwrap();
        let info = client.connect_info();
        let owner = info.peer_cred.as_ref().unwrap().uid();
        for (at, expected) in [(-1, "9"), (0, "0"), (253_402_300_799_999_999, "0"), (i64::MAX, "9")] {
            let response =
                respond_to(GuardLayer::new(owner, Arc::new(FixedClock(at))), request(Some(info.clone())))
                    .await;
            assert_eq!(code(&response), expected, "{at}");
        }
    }
}
