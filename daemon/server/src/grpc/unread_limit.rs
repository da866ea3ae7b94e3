//! A limit on the memory of all responses that clients have not read yet.
//!
//! A response is passed to the connection in small pieces, as the client reads them. The rest counts until it is read
//! or dropped. A response that would exceed the limit ends with `RESOURCE_EXHAUSTED`; responses that are already being
//! sent continue.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use http::HeaderMap;
use http_body::{Frame, SizeHint};
use prost::bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tonic::{Status, body::Body};

use super::status::CallError;

/// Bytes that are passed to a connection at once. The connection holds them until the client reads them, and they are
/// not counted.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes of all responses that are not read yet.
pub(super) const MAX_UNREAD_BYTES: usize = 128 << 20;
/// The same for the responses of one device, so that a device that does not read leaves room for the others.
pub(super) const MAX_UNREAD_BYTES_PER_DEVICE: usize = 32 << 20;

/// The message of a response that is refused because too many are not read yet.
const LIMIT_MESSAGE: &str =
    "too many response bytes wait to be read; read them, or try again when other clients have read theirs";

/// A number of unread bytes, and its limit; clones share the number.
#[derive(Clone, Debug)]
pub(super) struct UnreadBytes {
    bytes: Arc<AtomicUsize>,
    limit: usize,
}

/// The unread bytes of one response.
#[derive(Debug)]
struct Reservation {
    counts: UnreadBytes,
    bytes: usize,
}

impl UnreadBytes {
    /// Counts up to `limit`.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Arc::default(), limit }
    }

    /// Returns whether no response is counted.
    pub(super) fn idle(&self) -> bool {
        self.bytes() == 0
    }

    /// Reserves bytes, unless the total would exceed the limit.
    fn reserve(&self, bytes: usize) -> Option<Reservation> {
        let taken = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
            all.checked_add(bytes).filter(|all| *all <= self.limit)
        });
        taken.ok().map(|_| Reservation { counts: self.clone(), bytes })
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Reservation {
    /// Releases all bytes but the `remaining` ones.
    fn shrink(&mut self, remaining: usize) {
        self.counts.bytes.fetch_sub(self.bytes - remaining, Ordering::Relaxed);
        self.bytes = remaining;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

/// A response body whose unread bytes are counted.
pub(super) struct LimitedBody {
    inner: Body,
    /// Every count in which the bytes must fit.
    unread: Vec<UnreadBytes>,
    /// The rest of a frame, and its reservations.
    rest: Option<(Bytes, Vec<Reservation>)>,
    ended: bool,
    /// The permits of a long-running call.
    _permits: Vec<OwnedSemaphorePermit>,
}

impl LimitedBody {
    /// Counts the unread bytes of `inner`; `permits` are released when the body ends.
    pub(super) fn body(inner: Body, unread: Vec<UnreadBytes>, permits: Vec<OwnedSemaphorePermit>) -> Body {
        Body::new(Self { _permits: permits, ..Self::new(inner, unread) })
    }

    fn new(inner: Body, unread: Vec<UnreadBytes>) -> Self {
        Self { inner, unread, rest: None, ended: false, _permits: Vec::new() }
    }

    /// Counts a frame; returns its first piece, or the trailers that end the response.
    fn count(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        let data = match frame.into_data() {
            Ok(data) if data.len() > PIECE_BYTES => data,
            Ok(data) => return Frame::data(data),
            Err(frame) => return frame,
        };
        let reservations: Option<Vec<_>> =
            self.unread.iter().map(|unread| unread.reserve(data.len())).collect();
        match reservations {
            None => self.refuse(),
            Some(reservations) => Frame::data(self.next_piece(data, reservations)),
        }
    }

    /// Takes a small piece from `bytes`, and keeps the rest.
    fn next_piece(&mut self, mut bytes: Bytes, mut reservations: Vec<Reservation>) -> Bytes {
        let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
        reservations.iter_mut().for_each(|reservation| reservation.shrink(bytes.len()));
        self.rest = (!bytes.is_empty()).then_some((bytes, reservations));
        piece
    }

    /// Ends the response with an error. The unsent part is never sent.
    fn refuse(&mut self) -> Frame<Bytes> {
        self.end(&Status::from(CallError::Busy(LIMIT_MESSAGE.to_owned())))
    }

    fn end(&mut self, status: &Status) -> Frame<Bytes> {
        self.ended = true;
        self.inner = Body::empty();
        error_trailers(status)
    }
}

/// Returns the trailers that end a response with an error.
fn error_trailers(status: &Status) -> Frame<Bytes> {
    let mut trailers = HeaderMap::new();
    if let Err(error) = status.add_header(&mut trailers) {
        tracing::error!(%error, "cannot encode why a response ends");
    }
    Frame::trailers(trailers)
}

impl http_body::Body for LimitedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if let Some((bytes, reservations)) = this.rest.take() {
            let piece = this.next_piece(bytes, reservations);
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if this.ended {
            return Poll::Ready(None);
        }
        match ready!(Pin::new(&mut this.inner).poll_frame(context)) {
            Some(Ok(frame)) => Poll::Ready(Some(Ok(this.count(frame)))),
            other => Poll::Ready(other),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.rest.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // The inner body does not know the rest of the current frame.
        SizeHint::default()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{convert::Infallible, future::poll_fn};

    use http_body::Body as _;

    use super::*;

    /// A body that consists of these frames.
    struct Frames(Vec<Bytes>);

    impl http_body::Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(if self.0.is_empty() { None } else { Some(Ok(Frame::data(self.0.remove(0)))) })
        }
    }

    fn frames(lengths: &[usize]) -> Body {
        Body::new(Frames(lengths.iter().map(|length| Bytes::from(vec![7; *length])).collect()))
    }

    fn limited(lengths: &[usize], unread: &UnreadBytes) -> LimitedBody {
        LimitedBody::new(frames(lengths), vec![unread.clone()])
    }

    async fn next(body: &mut LimitedBody) -> Option<Frame<Bytes>> {
        poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await.map(Result::unwrap)
    }

    #[tokio::test]
    async fn a_response_is_sent_in_small_pieces_and_counts_until_it_is_read() {
        let unread = UnreadBytes::new(usize::MAX);
        let mut body = limited(&[10, 3 * PIECE_BYTES + 5, 0, PIECE_BYTES], &unread);
        let (mut bytes, mut counts) = (0, Vec::new());
        while let Some(frame) = next(&mut body).await {
            let piece = frame.into_data().unwrap();
            assert!(piece.len() <= PIECE_BYTES && piece.iter().all(|byte| *byte == 7));
            bytes += piece.len();
            counts.push(unread.bytes());
        }
        assert_eq!(bytes, 10 + 3 * PIECE_BYTES + 5 + PIECE_BYTES);
        assert_eq!(counts, [0, 2 * PIECE_BYTES + 5, PIECE_BYTES + 5, 5, 0, 0, 0]);
    }

    #[tokio::test]
    async fn responses_beyond_the_limit_are_refused_until_others_are_read_or_dropped() {
        let unread = UnreadBytes::new(4 * PIECE_BYTES);
        let mut slow = limited(&[4 * PIECE_BYTES], &unread);
        next(&mut slow).await.unwrap();
        let mut small = limited(&[PIECE_BYTES], &unread);
        assert!(next(&mut small).await.unwrap().is_data(), "a small response is always sent");
        let mut refused = limited(&[2 * PIECE_BYTES], &unread);
        let trailers = next(&mut refused).await.unwrap().into_trailers().unwrap();
        assert_eq!(trailers.get("grpc-status").unwrap(), "8");
        assert!(next(&mut refused).await.is_none());
        drop(slow);
        assert_eq!(unread.bytes(), 0);
        let mut taken = limited(&[2 * PIECE_BYTES], &unread);
        assert!(next(&mut taken).await.unwrap().is_data());
    }

    #[tokio::test]
    async fn a_device_that_does_not_read_leaves_room_for_others() {
        let (all, device) = (UnreadBytes::new(8 * PIECE_BYTES), UnreadBytes::new(4 * PIECE_BYTES));
        let of_device = || LimitedBody::new(frames(&[3 * PIECE_BYTES]), vec![device.clone(), all.clone()]);
        let (mut first, mut second, mut other) =
            (of_device(), of_device(), limited(&[3 * PIECE_BYTES], &all));
        assert!(next(&mut first).await.unwrap().is_data());
        assert!(next(&mut second).await.unwrap().is_trailers(), "beyond the share of the device");
        assert!(next(&mut other).await.unwrap().is_data(), "others have their room");
    }
}
