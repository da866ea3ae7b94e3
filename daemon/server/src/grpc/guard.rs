//! The middleware for every call: who calls, whether the caller may use the method, the request id, and limits.

mod authenticate;
mod limits;
mod revocation;

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use satchel_core::clock::{self, Clock};
use satchel_devices::Device;
use satchel_proto::Method;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Code, body::Body};
use tower::{BoxError, Layer, Service};
use tracing::{Instrument, Span, debug, field, info_span};
use uuid::Uuid;

pub(super) use self::authenticate::{may_read_conversations, permits};
use self::{
    limits::{CallShare, DeviceLimits, WatchPermit},
    revocation::{DeviceBody, revoked},
};
use super::{
    call_state::Caller,
    connection::{ConnectionPeer, Peer, RemotePeer},
    status::CallError,
    unread_limit::{LimitedBody, MAX_UNREAD_BYTES, UnreadBytes},
};
use crate::devices::Devices;

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
/// Longest time for a call of a device that sets a deadline, except long-running ones. Without it, a device could hold its
/// places for as long as it likes.
const MAX_DEVICE_DEADLINE: Duration = Duration::from_mins(5);
/// Longest request id that is accepted, in characters.
const MAX_REQUEST_ID_CHARS: usize = 64;
/// Path prefix of our own services; health and reflection do not need the clock.
const OWN_PREFIX: &str = "/satchel.";
/// The header with error details. Each of our errors has it; an error of the transport does not.
const DETAILS_HEADER: &str = "grpc-status-details-bin";
const STATUS_HEADER: &str = "grpc-status";

/// A device gets `NOT_FOUND` at a multiple of this time after its call began, so that the time does not tell whether the
/// record exists and is hidden.
const NOT_FOUND_STEP: Duration = Duration::from_millis(5);

/// The download methods. A folder is packed before its download begins, which may take long.
const DOWNLOAD_METHODS: [&str; 2] =
    ["/satchel.v1.ExportService/DownloadExport", "/satchel.v1.AttachmentService/DownloadAttachment"];
/// The method whose responses count as watches.
const WATCH_METHOD: &str = "/satchel.v1.WatchService/WatchChanges";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// A layer that wraps services in [`Guard`].
#[derive(Clone)]
pub struct GuardLayer {
    owner: u32,
    devices: Devices,
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
    devices: DeviceLimits,
    /// The part of the limits for all clients without credentials together: they may only pair and read the health.
    unpaired: CallShare,
}

impl Default for CallLimits {
    fn default() -> Self {
        let semaphore = |calls| Arc::new(Semaphore::new(calls));
        Self {
            short: semaphore(MAX_CONCURRENT_CALLS),
            long: semaphore(MAX_CONCURRENT_LONG_CALLS),
            unread: UnreadBytes::new(MAX_UNREAD_BYTES),
            devices: DeviceLimits::default(),
            unpaired: CallShare::default(),
        }
    }
}

impl GuardLayer {
    /// Creates a layer that admits processes of the user `owner` and the devices of `devices`, and only while `clock`
    /// shows a time that can be stored.
    #[must_use]
    pub fn new(owner: u32, devices: Devices, clock: Arc<dyn Clock>) -> Self {
        Self { owner, devices, clock, deadline: DEFAULT_DEADLINE, limits: CallLimits::default() }
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard { inner, layer: self.clone() }
    }
}

/// A service that refuses callers without permission, sets a request id for each call, and ends calls that take too long.
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
        let span = info_span!("call", method, request = id, device = field::Empty, code = field::Empty);
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
                Span::current().record("code", i32::from(status_code(&response)));
                debug!(elapsed_ms = began.elapsed().as_millis(), "answered");
                Ok(response)
            }
            .instrument(span),
        )
    }
}

/// Identifies the caller of a request, and answers it if the caller may use its method.
async fn handle<S>(
    inner: S,
    mut request: Request<Body>,
    layer: GuardLayer,
) -> Result<Response<Body>, BoxError>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Error: Into<BoxError>,
{
    let path = request.uri().path().to_owned();
    let method = satchel_proto::method(&path);
    let caller = match layer.authenticate(&request, &path) {
        Ok(caller) => caller,
        Err(error) => return Ok(error.into_status().into_http()),
    };
    request.extensions_mut().insert(caller.clone());
    if let Caller::Owner = caller {
        return layer.answer(inner, request, method, None).await;
    }
    let address = remote_address(&request);
    let began = Instant::now();
    let (device, response) = match caller {
        Caller::Device(device) => {
            Span::current().record("device", &device.name);
            let response = match layer.admit(&device, &path, method) {
                Ok(share) => layer.answer_device(inner, request, (method, share), &device).await?,
                Err(error) => error.into_status().into_http(),
            };
            (Some(device), response)
        }
        Caller::Owner | Caller::Unpaired => {
            let share = layer.limits.unpaired.clone();
            (None, layer.answer(inner, request, method, Some(share)).await?)
        }
    };
    let code = status_code(&response);
    if code == Code::NotFound {
        tokio::time::sleep_until((began + next_step(began.elapsed())).into()).await;
    }
    // A stranger who reads the health over and over must not push the calls of devices out of the log.
    if device.is_some() || path.starts_with(OWN_PREFIX) {
        layer.devices.record_call(device, address, &path, code, layer.clock.now_micros());
    }
    Ok(response)
}

/// Returns the address from which a client over TLS or gRPC-Web calls.
fn remote_address(request: &Request<Body>) -> String {
    match request.extensions().get::<ConnectionPeer>().map(|peer| &**peer) {
        Some(Peer::Remote(RemotePeer { address, .. }) | Peer::Web { address }) => address.to_string(),
        Some(Peer::Local { .. }) | None => String::new(),
    }
}

/// Returns the next multiple of [`NOT_FOUND_STEP`] after `elapsed`.
fn next_step(elapsed: Duration) -> Duration {
    let steps = elapsed.as_micros() / NOT_FOUND_STEP.as_micros() + 1;
    NOT_FOUND_STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX))
}

impl GuardLayer {
    /// Returns the caller of a request, while the clock shows a time that can be stored.
    fn authenticate(&self, request: &Request<Body>, path: &str) -> Result<Caller, CallError> {
        let now = self.clock.now_micros();
        let peer = request.extensions().get::<ConnectionPeer>().map(|peer| &**peer);
        let caller =
            authenticate::authenticate(peer, request.headers(), path, self.owner, (&self.devices, now))?;
        if path.starts_with(OWN_PREFIX) {
            clock::check(now)?;
        }
        Ok(caller)
    }

    /// Checks that a device may use a method, and does not make too many calls.
    fn admit(&self, device: &Device, path: &str, method: Option<&Method>) -> Result<CallShare, CallError> {
        let share = self.limits.devices.count_call(device.id.as_str(), Instant::now())?;
        authenticate::authorize(device, path, method).map(|()| share)
    }

    /// Answers a request of a device. The response ends when the device is revoked.
    async fn answer_device<S>(
        &self,
        inner: S,
        request: Request<Body>,
        (method, share): (Option<&Method>, CallShare),
        device: &Arc<Device>,
    ) -> Result<Response<Body>, BoxError>
    where
        S: Service<Request<Body>, Response = Response<Body>>,
        S::Error: Into<BoxError>,
    {
        let watch = match self.count_watch(device, method) {
            Ok(watch) => watch,
            Err(error) => return Ok(error.into_status().into_http()),
        };
        let now = self.clock.now_micros();
        tokio::select! {
            response = self.answer(inner, request, method, Some(share)) => {
                Ok(response?.map(|body| DeviceBody::body(body, Arc::clone(device), (&self.devices, now), watch)))
            }
            error = revoked(Arc::clone(device), self.devices.clone(), now) => Ok(error.into_status().into_http()),
        }
    }

    fn count_watch(
        &self,
        device: &Device,
        method: Option<&Method>,
    ) -> Result<Option<WatchPermit>, CallError> {
        let watches = method.is_some_and(|method| method.path == WATCH_METHOD);
        watches.then(|| self.limits.devices.count_watch(device.id.as_str())).transpose()
    }

    /// Answers a request within the limits on all calls; `share` is the part of them that the caller may take, and `None`
    /// for the owner.
    async fn answer<S>(
        &self,
        mut inner: S,
        request: Request<Body>,
        method: Option<&Method>,
        share: Option<CallShare>,
    ) -> Result<Response<Body>, BoxError>
    where
        S: Service<Request<Body>, Response = Response<Body>>,
        S::Error: Into<BoxError>,
    {
        let long = method.is_some_and(|method| method.long_running);
        let deadline = self.deadline(&request, long, share.is_some());
        let limits = self.limits.clone();
        let call = async move {
            let _short_permits = if long { Vec::new() } else { limits.short_permits(share.as_ref()).await };
            // A download has its own permit, and causes no work except that it is read.
            let needs_permits = long && !DOWNLOAD_METHODS.contains(&request.uri().path());
            let permits = if needs_permits { limits.long_permits(share.as_ref()).await } else { Vec::new() };
            let response = replace_decoding_error(inner.call(request).await.map_err(Into::into)?);
            let (parts, body) = response.into_parts();
            let unread = share.into_iter().map(|share| share.unread).chain([limits.unread]).collect();
            Ok(Response::from_parts(parts, LimitedBody::body(body, unread, permits)))
        };
        let Some(deadline) = deadline else { return call.await };
        match tokio::time::timeout(deadline, call).await {
            Ok(response) => response,
            Err(_) => Ok(CallError::Deadline { seconds: deadline.as_secs() }.into_status().into_http()),
        }
    }

    /// Returns the time limit of a call. The transport sees to that of the caller.
    fn deadline(&self, request: &Request<Body>, long: bool, remote: bool) -> Option<Duration> {
        let own = request.headers().contains_key(GRPC_TIMEOUT);
        match (long, own) {
            (true, _) => None,
            (false, false) => Some(self.deadline),
            (false, true) => remote.then_some(MAX_DEVICE_DEADLINE),
        }
    }
}

impl CallLimits {
    /// Waits for the permits of a call: first one of the caller's share, so that calls that wait for it take none of the
    /// others' permits.
    async fn short_permits(&self, share: Option<&CallShare>) -> Vec<OwnedSemaphorePermit> {
        acquire(share.map(|share| &share.short), &self.short).await
    }

    /// The same for a long-running call.
    async fn long_permits(&self, share: Option<&CallShare>) -> Vec<OwnedSemaphorePermit> {
        acquire(share.map(|share| &share.long), &self.long).await
    }
}

async fn acquire(share: Option<&Arc<Semaphore>>, all: &Arc<Semaphore>) -> Vec<OwnedSemaphorePermit> {
    let mut permits = Vec::with_capacity(2);
    for semaphore in share.into_iter().chain([all]) {
        // The semaphores are never closed.
        permits.extend(Arc::clone(semaphore).acquire_owned().await);
    }
    permits
}

/// Returns the status in the headers of a response: that of an error. Other responses have it in their trailers.
fn status_code(response: &Response<Body>) -> Code {
    let value = response.headers().get(STATUS_HEADER);
    value.map_or(Code::Ok, |value| Code::from_bytes(value.as_bytes()))
}

/// Replaces the transport's errors for a request that is too large or cannot be decoded by errors that say so.
fn replace_decoding_error(response: Response<Body>) -> Response<Body> {
    if response.headers().contains_key(DETAILS_HEADER) {
        return response;
    }
    match status_code(&response) {
        Code::Internal => CallError::Malformed.into_status().into_http(),
        Code::OutOfRange => CallError::RequestTooLarge { limit: MAX_MESSAGE_BYTES }.into_status().into_http(),
        _ => response,
    }
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
    use tower::{ServiceExt, service_fn};

    use super::*;

    const OWNER: u32 = 1_000;

    fn request(uid: Option<u32>) -> Request<Body> {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = "/satchel.v1.AdminService/GetStatus".parse().unwrap();
        request.extensions_mut().insert(ConnectionPeer::new(Peer::Local { uid }));
        request
    }

    /// There are no devices in a folder that does not exist.
    fn devices() -> Devices {
        Devices::open("/nonexistent/satchel".as_ref(), None, 0).unwrap()
    }

    fn layer() -> GuardLayer {
        layer_at(1_800_000_000_000_000)
    }

    fn layer_at(now: i64) -> GuardLayer {
        GuardLayer::new(OWNER, devices(), Arc::new(FixedClock(now)))
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
        assert_eq!(code(&respond_to(layer(), request(Some(OWNER))).await), "0");
        assert_eq!(code(&respond_to(layer(), request(Some(OWNER + 1))).await), "7");
    }

    #[tokio::test]
    async fn a_call_without_peer_credentials_is_refused() {
        assert_eq!(code(&respond_to(layer(), request(None)).await), "7");
        let mut unknown = request(None);
        unknown.extensions_mut().clear();
        assert_eq!(code(&respond_to(layer(), unknown).await), "7");
    }

    #[tokio::test]
    async fn a_call_times_out() {
        let strict = GuardLayer { deadline: Duration::ZERO, ..layer() };
        let mut slow = request(Some(OWNER));
        slow.headers_mut().insert("slow", HeaderValue::from_static("1"));
        assert_eq!(code(&respond_to(strict, slow).await), "4");
    }

    /// Starts endless calls, one more than may run at once, and one call that waits.
    #[tokio::test]
    async fn concurrent_calls_are_limited() {
        let layer = layer();
        let slow = || {
            let mut slow = request(Some(OWNER));
            slow.headers_mut().insert("slow", HeaderValue::from_static("1"));
            Box::pin(respond_to(layer.clone(), slow))
        };
        let mut working: Vec<_> = (0..MAX_CONCURRENT_CALLS).map(|_| slow()).collect();
        for call in &mut working {
            assert!(tokio::time::timeout(Duration::from_millis(1), call).await.is_err());
        }
        assert_eq!(layer.limits.short.available_permits(), 0);
        let mut next = Box::pin(respond_to(layer.clone(), request(Some(OWNER))));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut next).await.is_err(), "it waits");
        drop(working.pop());
        assert_eq!(code(&next.await), "0");
    }

    #[tokio::test]
    async fn a_response_carries_the_request_id() {
        let mut named = request(Some(OWNER));
        named.headers_mut().insert(REQUEST_ID, HeaderValue::from_static("mine-1"));
        let response = respond_to(layer(), named).await;
        assert_eq!(response.headers().get(REQUEST_ID).unwrap(), "mine-1");
        let mut invalid = request(Some(OWNER));
        invalid.headers_mut().insert(REQUEST_ID, HeaderValue::from_static("a b\"c"));
        let response = respond_to(layer(), invalid).await;
        let given = response.headers().get(REQUEST_ID).unwrap().to_str().unwrap();
        assert!(Uuid::parse_str(given).is_ok());
    }

    #[tokio::test]
    async fn calls_are_refused_while_the_clock_shows_a_time_that_cannot_be_stored() {
        for (at, expected) in [(-1, "9"), (0, "0"), (253_402_300_799_999_999, "0"), (i64::MAX, "9")] {
            let response = respond_to(layer_at(at), request(Some(OWNER))).await;
            assert_eq!(code(&response), expected, "{at}");
        }
    }

    #[test]
    fn a_missing_record_takes_as_long_as_a_hidden_one() {
        for (elapsed, expected) in [(0, 5_000), (4_999, 5_000), (5_000, 10_000), (12_345, 15_000)] {
            assert_eq!(next_step(Duration::from_micros(elapsed)), Duration::from_micros(expected));
        }
    }
}
