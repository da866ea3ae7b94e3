//! The one layer that every call passes: who calls, under which request id, for how long.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tonic::{body::Body, transport::server::UdsConnectInfo};
use tower::{BoxError, Layer, Service};
use tracing::{Instrument, Span, debug, field, info_span};
use uuid::Uuid;

use super::status::Fault;

/// Most calls at once on one connection.
pub const MAX_CALLS_PER_CONNECTION: u32 = 32;
/// Largest request and largest answer, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// How long a call may take that sets no deadline of its own: no page takes as long.
const DEADLINE: Duration = Duration::from_secs(30);
/// Longest request id that is taken over, in characters.
const MAX_REQUEST_ID_CHARS: usize = 64;
/// Calls that work as long as their work takes. Of a stream only its beginning is bounded, but a folder must be packed
/// before its download begins.
const UNBOUNDED: [&str; 11] = [
    "/satchel.v1.AdminService/CreateBackup",
    "/satchel.v1.AdminService/GetPurgePlan",
    "/satchel.v1.AdminService/VerifyStore",
    "/satchel.v1.ExportService/CreateExport",
    "/satchel.v1.ExportService/MakeExport",
    "/satchel.v1.ExportService/DownloadExport",
    "/satchel.v1.ExportService/VerifyExport",
    "/satchel.v1.ImportService/UndoImport",
    "/satchel.v1.ImportService/RedoImport",
    "/satchel.v1.MemoryService/BulkSetStatus",
    "/satchel.v1.MemoryService/RestoreMemoryVersion",
];

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Puts [`Guard`] around the services.
#[derive(Clone, Debug)]
pub struct GuardLayer {
    owner: u32,
    deadline: Duration,
}

impl GuardLayer {
    /// Lets in only processes of the user `owner`.
    #[must_use]
    pub fn new(owner: u32) -> Self {
        Self { owner, deadline: DEADLINE }
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard { inner, owner: self.owner, deadline: self.deadline }
    }
}

/// Refuses other users, names each call, and ends calls that take too long.
#[derive(Clone, Debug)]
pub struct Guard<S> {
    inner: S,
    owner: u32,
    deadline: Duration,
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
        // The clone is not ready, the original is: swap them.
        let ready = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, ready);
        let answer = answer(inner, request, self.owner, self.deadline);
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
    owner: u32,
    deadline: Duration,
) -> Result<Response<Body>, BoxError>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Error: Into<BoxError>,
{
    if peer(&request) != Some(owner) {
        return Ok(Fault::NotOwner.into_status().into_http());
    }
    let bounded = !request.headers().contains_key(GRPC_TIMEOUT) && !UNBOUNDED.contains(&request.uri().path());
    let call = inner.call(request);
    if !bounded {
        return call.await.map_err(Into::into);
    }
    match tokio::time::timeout(deadline, call).await {
        Ok(response) => response.map_err(Into::into),
        Err(_) => Ok(Fault::Deadline { seconds: deadline.as_secs() }.into_status().into_http()),
    }
}

/// The user id of the process at the other end, as the kernel says.
fn peer(request: &Request<Body>) -> Option<u32> {
    request.extensions().get::<UdsConnectInfo>()?.peer_cred.as_ref().map(tokio::net::unix::UCred::uid)
}

/// The caller's id for the call if it is harmless, else a fresh one.
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
        let passed = pass(GuardLayer::new(uid), request(Some(info.clone()))).await;
        assert_eq!(code(&passed), "0");
        let refused = pass(GuardLayer::new(uid + 1), request(Some(info))).await;
        assert_eq!(code(&refused), "7");
    }

    #[tokio::test]
    async fn a_call_from_nowhere_is_refused() {
        assert_eq!(code(&pass(GuardLayer::new(0), request(None)).await), "7");
    }

    #[tokio::test]
    async fn a_call_that_takes_too_long_ends() {
        let (here, _there) = UnixStream::pair().unwrap();
        let info = here.connect_info();
        let layer = GuardLayer { owner: info.peer_cred.as_ref().unwrap().uid(), deadline: Duration::ZERO };
        let mut slow = request(Some(info));
        slow.headers_mut().insert("slow", HeaderValue::from_static("1"));
        assert_eq!(code(&pass(layer, slow).await), "4");
    }

    #[tokio::test]
    async fn an_answer_carries_the_request_id() {
        let (here, _there) = UnixStream::pair().unwrap();
        let info = here.connect_info();
        let layer = GuardLayer::new(info.peer_cred.as_ref().unwrap().uid());
        let mut named = request(Some(info.clone()));
        named.headers_mut().insert(REQUEST_ID, HeaderValue::from_static("mine-1"));
        let response = pass(layer.clone(), named).await;
        assert_eq!(response.headers().get(REQUEST_ID).unwrap(), "mine-1");
        let mut odd = request(Some(info));
        odd.headers_mut().insert(REQUEST_ID, HeaderValue::from_static("a b\"c"));
        let response = pass(layer, odd).await;
        let given = response.headers().get(REQUEST_ID).unwrap().to_str().unwrap();
        assert!(Uuid::parse_str(given).is_ok());
    }
}
