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
    status::Fault,
    unread::{Counted, Unread},
};

/// Largest number of concurrent calls on one connection.
pub const MAX_CALLS_PER_CONNECTION: u32 = 32;
/// Largest request and largest response, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Calls that are processed at once, of all connections; the others wait for their turn.
const AT_ONCE: usize = 32;
/// The same for long-running calls, which have no time limit.
const LONG_AT_ONCE: usize = 16;
/// Time limit of a call that sets no deadline; no page takes that long.
const DEADLINE: Duration = Duration::from_secs(30);
/// Longest request id that is accepted, in characters.
const MAX_REQUEST_ID_CHARS: usize = 64;
/// Path prefix of our own services; health and reflection do not need the clock.
const OWN: &str = "/satchel.";
/// The header with error details. Each of our errors has it; an error of the transport does not.
const DETAILS: &str = "grpc-status-details-bin";
/// The code INTERNAL, with which the transport answers bytes that are not a request.
const INTERNAL: &str = "13";

/// The download method. A folder is packed before its download begins, which may take long.
const DOWNLOAD: &str = "/satchel.v1.ExportService/DownloadExport";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// A layer that wraps services in [`Guard`].
#[derive(Clone)]
pub struct GuardLayer {
    owner: u32,
    clock: Arc<dyn Clock>,
    deadline: Duration,
    turns: Turns,
}

/// The limits on all concurrent calls; clones share them.
#[derive(Clone, Debug)]
struct Turns {
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
    unread: Unread,
}

impl Default for Turns {
    fn default() -> Self {
        let room = |calls| Arc::new(Semaphore::new(calls));
        Self { short: room(AT_ONCE), long: room(LONG_AT_ONCE), unread: Unread::default() }
    }
}

impl GuardLayer {
    /// Creates a layer that admits only processes of the user `owner`, and only while `clock` shows a time that can be
    /// stored.
    #[must_use]
    pub fn new(owner: u32, clock: Arc<dyn Clock>) -> Self {
        Self { owner, clock, deadline: DEADLINE, turns: Turns::default() }
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
        let answer = answer(inner, request, self.layer.clone());
        Box::pin(
            async move {
                let began = Instant::now();
                let mut response = answer.await?;
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

async fn answer<S>(
    mut inner: S,
    request: Request<Body>,
    layer: GuardLayer,
) -> Result<Response<Body>, BoxError>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Error: Into<BoxError>,
{
    let GuardLayer { owner, clock, deadline, turns } = layer;
    if peer(&request) != Some(owner) {
        return Ok(Fault::NotOwner.into_status().into_http());
    }
    if request.uri().path().starts_with(OWN)
        && let Err(error) = clock::check(clock.now_micros())
    {
        return Ok(Fault::Clock(error).into_status().into_http());
    }
    let long = satchel_proto::method(request.uri().path()).is_some_and(|method| method.long_running);
    let patient = request.headers().contains_key(GRPC_TIMEOUT);
    let Turns { short, long: long_ones, unread } = turns;
    let call = async move {
        // The semaphores are never closed.
        let _turn = if long { None } else { short.acquire_owned().await.ok() };
        // A download has its own permit, and causes no work except that it is read.
        let waits = long && request.uri().path() != DOWNLOAD;
        let place = if waits { long_ones.acquire_owned().await.ok() } else { None };
        let answered = inner.call(request).await.map_err(Into::into);
        answered.map(|response| readable(response).map(|body| Counted::body(body, &unread, place)))
    };
    if long || patient {
        return call.await;
    }
    match tokio::time::timeout(deadline, call).await {
        Ok(response) => response,
        Err(_) => Ok(Fault::Deadline { seconds: deadline.as_secs() }.into_status().into_http()),
    }
}

/// Replaces the transport's INTERNAL error for an undecodable request by an error that blames the caller.
fn readable(response: Response<Body>) -> Response<Body> {
    let headers = response.headers();
    let internal = headers.get("grpc-status").is_some_and(|code| code == INTERNAL);
    if internal && !headers.contains_key(DETAILS) {
        return Fault::Malformed.into_status().into_http();
    }
    response
}

/// Returns the user id of the process at the other end, as reported by the kernel.
fn peer(request: &Request<Body>) -> Option<u32> {
    request.extensions().get::<UdsConnectInfo>()?.peer_cred.as_ref().map(tokio::net::unix::UCred::uid)
}

/// Returns the caller's request id if it is safe, otherwise a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let harmless = |id: &&str| {
        !id.is_empty()
            && id.len() <= MAX_REQUEST_ID_CHARS
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    given.filter(harmless).map_or_else(|| Uuid::new_v4().to_string(), str::to_owned)
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
        GuardLayer::new(owner, Arc::new(At(1_800_000_000_000_000)))
    }

    struct At(i64);

    impl Clock for At {
        fn now_micros(&self) -> i64 {
            self.0
        }
    }

    async fn pass(layer: GuardLayer, request: Request<Body>) -> Response<Body> {
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
    async fn the_owner_passes_and_others_do_not() {
        let (here, _there) = UnixStream::pair().unwrap();
        let info = here.connect_info();
        let uid = info.peer_cred.as_ref().unwrap().uid();
        let passed = pass(layer(uid), request(Some(info.clone()))).await;
        assert_eq!(code(&passed), "0");
        let refused = pass(layer(uid + 1), request(Some(info))).await;
        assert_eq!(code(&refused), "7");
    }

    #[tokio::test]
    async fn a_call_from_nowhere_is_refused() {
        assert_eq!(code(&pass(layer(0), request(None)).await), "7");
    }

    #[tokio::test]
    async fn a_call_that_takes_too_long_ends() {
        let (here, _there) = UnixStream::pair().unwrap();
        let info = here.connect_info();
        let hurried =
            GuardLayer { deadline: Duration::ZERO, ..layer(info.peer_cred.as_ref().unwrap().uid()) };
        let mut slow = request(Some(info));
        slow.headers_mut().insert("slow", HeaderValue::from_static("1"));
        assert_eq!(code(&pass(hurried, slow).await), "4");
    }

    /// Starts endless calls, one more than may run at once, and one call that waits for its turn.
    #[tokio::test]
    async fn calls_take_turns() {
        let (here, _there) = UnixStream::pair().unwrap();
        let info = here.connect_info();
        let layer = layer(info.peer_cred.as_ref().unwrap().uid());
        let slow = || {
            let mut slow = request(Some(info.clone()));
            slow.headers_mut().insert("slow", HeaderValue::from_static("1"));
            Box::pin(pass(layer.clone(), slow))
        };
        let mut working: Vec<_> = (0..AT_ONCE).map(|_| slow()).collect();
        for call in &mut working {
            assert!(tokio::time::timeout(Duration::from_millis(1), call).await.is_err());
        }
        assert_eq!(layer.turns.short.available_permits(), 0);
        let mut next = Box::pin(pass(layer.clone(), request(Some(info.clone()))));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut next).await.is_err(), "it waits");
        drop(working.pop());
        assert_eq!(code(&next.await), "0");
    }

    #[tokio::test]
    async fn an_answer_carries_the_request_id() {
        let (here, _there) = UnixStream::pair().unwrap();
        let info = here.connect_info();
        let own = layer(info.peer_cred.as_ref().unwrap().uid());
        let mut named = request(Some(info.clone()));
        named.headers_mut().insert(REQUEST_ID, HeaderValue::from_static("mine-1"));
        let response = pass(own.clone(), named).await;
        assert_eq!(response.headers().get(REQUEST_ID).unwrap(), "mine-1");
        let mut odd = request(Some(info));
        odd.headers_mut().insert(REQUEST_ID, HeaderValue::from_static("a b\"c"));
        let response = pass(own, odd).await;
        let given = response.headers().get(REQUEST_ID).unwrap().to_str().unwrap();
        assert!(Uuid::parse_str(given).is_ok());
    }

    #[tokio::test]
    async fn no_call_is_answered_while_the_clock_shows_what_cannot_be_stored() {
        let (here, _there) = UnixStream::pair().unwrap();
        let info = here.connect_info();
        let owner = info.peer_cred.as_ref().unwrap().uid();
        for (at, expected) in [(-1, "9"), (0, "0"), (253_402_300_799_999_999, "0"), (i64::MAX, "9")] {
            let response = pass(GuardLayer::new(owner, Arc::new(At(at))), request(Some(info.clone()))).await;
            assert_eq!(code(&response), expected, "{at}");
        }
    }
}
