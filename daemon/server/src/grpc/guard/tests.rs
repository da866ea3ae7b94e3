use prost::bytes::Bytes;
use tower::{ServiceExt, service_fn};

use super::{
    call_limits::{MAX_CONCURRENT_CALLS, MAX_OWNER_WATCHES},
    *,
};

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

/// The body of a response that goes on.
struct OpenBody;

impl http_body::Body for OpenBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        Poll::Pending
    }
}

async fn respond_to(layer: GuardLayer, request: Request<Body>) -> Response<Body> {
    let inner = service_fn(|request: Request<Body>| async move {
        if request.headers().contains_key("slow") {
            std::future::pending::<()>().await;
        }
        let watch = WATCH_METHODS.contains(&request.uri().path());
        Ok::<_, BoxError>(Response::new(if watch { Body::new(OpenBody) } else { Body::empty() }))
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
async fn the_owner_holds_a_limited_number_of_watches() {
    let layer = layer();
    let watch = || {
        let mut request = request(Some(OWNER));
        *request.uri_mut() = WATCH_METHODS[0].parse().unwrap();
        respond_to(layer.clone(), request)
    };
    let mut held = Vec::new();
    for _ in 0..MAX_OWNER_WATCHES {
        held.push(watch().await);
    }
    assert!(held.iter().all(|response| code(response) == "0"));
    assert_eq!(code(&watch().await), "8");
    assert_eq!(code(&respond_to(layer.clone(), request(Some(OWNER))).await), "0", "other calls go on");
    held.pop();
    assert_eq!(code(&watch().await), "0");
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
