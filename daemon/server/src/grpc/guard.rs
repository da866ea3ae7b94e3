//! The middleware for every call: who calls, whether the caller may use the method, the request id, and limits.

mod authenticate;
mod call_limits;
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
use tonic::{Code, body::Body};
use tower::{BoxError, Layer, Service};
use tracing::{Instrument, Span, debug, field, info_span};
use uuid::Uuid;

pub(super) use self::authenticate::{may_read_conversations, permits};
use self::{
    call_limits::{CallLimits, DOWNLOAD_METHODS, WATCH_METHODS},
    limits::{CallShare, WatchPermit},
    revocation::{DeviceBody, revoked},
};
use super::{
    call_state::{Caller, ReadingPermits},
    connection::{ConnectionPeer, Peer, RemotePeer},
    status::CallError,
    unread_limit::LimitedBody,
};
use crate::devices::Devices;

/// Largest number of concurrent calls on one connection.
pub const MAX_CALLS_PER_CONNECTION: u32 = 32;
/// Largest request and largest response, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;
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

    /// Returns the device of the token in the headers of a request; `None` if there is none.
    ///
    /// # Errors
    /// If the token is unknown or not valid any more.
    pub(super) fn token_device(&self, headers: &HeaderMap) -> Result<Option<Arc<Device>>, CallError> {
        authenticate::token_device(headers, &self.devices, self.clock.now_micros())
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
        let watches = method.is_some_and(|method| WATCH_METHODS.contains(&method.path));
        watches.then(|| self.limits.devices.count_watch(device.id.as_str())).transpose()
    }

    /// Answers a request within the limits on all calls; `share` is the part of them that the caller may take, and `None`
    /// for the owner.
    async fn answer<S>(
        &self,
        mut inner: S,
        mut request: Request<Body>,
        method: Option<&Method>,
        share: Option<CallShare>,
    ) -> Result<Response<Body>, BoxError>
    where
        S: Service<Request<Body>, Response = Response<Body>>,
        S::Error: Into<BoxError>,
    {
        let long = method.is_some_and(|method| method.long_running);
        // A call that changes something may wait for an import to end, and must not keep the caller from reading.
        if let Some(share) = share.as_ref().filter(|_| method.is_some_and(|method| !long && !method.mutates))
        {
            request.extensions_mut().insert(ReadingPermits(Arc::clone(&share.reading)));
        }
        let deadline = self.deadline(&request, long, share.is_some());
        let limits = self.limits.clone();
        let held = match limits.held_permit(method, share.as_ref()) {
            Ok(held) => held,
            Err(error) => return Ok(error.into_status().into_http()),
        };
        let call = async move {
            let _short_permits = if long { Vec::new() } else { limits.short_permits(share.as_ref()).await };
            // A download has its own permit, and causes no work except that it is read.
            let needs_permits = long && !DOWNLOAD_METHODS.contains(&request.uri().path());
            let mut permits =
                if needs_permits { limits.long_permits(share.as_ref()).await } else { Vec::new() };
            permits.extend(held);
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
mod tests;
