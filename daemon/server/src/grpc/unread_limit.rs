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

/// The message of a response that is refused because too many are not read yet.
const LIMIT_MESSAGE: &str =
    "too many response bytes wait to be read; read them, or try again when other clients have read theirs";

/// The number of unread bytes; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct UnreadBytes(Arc<AtomicUsize>);

/// The unread bytes of one response.
#[derive(Debug)]
struct Reservation {
    all: UnreadBytes,
    bytes: usize,
}

impl UnreadBytes {
    /// Reserves bytes, unless the total would exceed `limit`.
    fn reserve(&self, bytes: usize, limit: usize) -> Option<Reservation> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
            all.checked_add(bytes).filter(|all| *all <= limit)
        });
        taken.ok().map(|_| Reservation { all: self.clone(), bytes })
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A response body whose unread bytes are counted.
pub(super) struct LimitedBody {
    inner: Body,
    unread: UnreadBytes,
    limit: usize,
    /// The rest of a frame, and its reservation.
    rest: Option<(Bytes, Reservation)>,
    refused: bool,
    /// The permit of a long-running call.
    _permit: Option<OwnedSemaphorePermit>,
}

impl LimitedBody {
    /// Counts the unread bytes of `inner`; `permit` is released when the body ends.
    pub(super) fn body(inner: Body, unread: &UnreadBytes, permit: Option<OwnedSemaphorePermit>) -> Body {
        Body::new(Self { _permit: permit, ..Self::new(inner, unread, MAX_UNREAD_BYTES) })
    }

    fn new(inner: Body, unread: &UnreadBytes, limit: usize) -> Self {
        Self { inner, unread: unread.clone(), limit, rest: None, refused: false, _permit: None }
    }

    /// Returns the next small piece of the rest.
    fn next_piece(&mut self) -> Option<Bytes> {
        let (bytes, reservation) = self.rest.as_mut()?;
        let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
        let remaining = bytes.len();
        reservation.all.0.fetch_sub(reservation.bytes - remaining, Ordering::Relaxed);
        reservation.bytes = remaining;
        if remaining == 0 {
            self.rest = None;
        }
        Some(piece)
    }

    /// Ends the response with an error. The unsent part is never sent.
    fn refuse(&mut self) -> Frame<Bytes> {
        self.refused = true;
        self.inner = Body::empty();
        let mut trailers = HeaderMap::new();
        if let Err(error) = Status::from(CallError::Busy(LIMIT_MESSAGE.to_owned())).add_header(&mut trailers)
        {
            tracing::error!(%error, "cannot encode the refusal");
        }
        Frame::trailers(trailers)
    }
}

impl http_body::Body for LimitedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if let Some(piece) = this.next_piece() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if this.refused {
            return Poll::Ready(None);
        }
        let frame = match ready!(Pin::new(&mut this.inner).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other),
        };
        let data = match frame.into_data() {
            Ok(data) if data.len() > PIECE_BYTES => data,
            Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
            Err(frame) => return Poll::Ready(Some(Ok(frame))),
        };
        let Some(reservation) = this.unread.reserve(data.len(), this.limit) else {
            return Poll::Ready(Some(Ok(this.refuse())));
        };
        this.rest = Some((data, reservation));
        Poll::Ready(this.next_piece().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.refused || self.rest.is_none() && self.inner.is_end_stream()
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

    fn limited(frames: &[usize], unread: &UnreadBytes, limit: usize) -> LimitedBody {
        let frames = frames.iter().map(|length| Bytes::from(vec![7; *length])).collect();
        LimitedBody::new(Body::new(Frames(frames)), unread, limit)
    }

    async fn next(body: &mut LimitedBody) -> Option<Frame<Bytes>> {
        poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await.map(Result::unwrap)
    }

    #[tokio::test]
    async fn a_response_is_sent_in_small_pieces_and_counts_until_it_is_read() {
        let unread = UnreadBytes::default();
        let mut body = limited(&[10, 3 * PIECE_BYTES + 5, 0, PIECE_BYTES], &unread, usize::MAX);
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
        let unread = UnreadBytes::default();
        let limit = 4 * PIECE_BYTES;
        let mut slow = limited(&[4 * PIECE_BYTES], &unread, limit);
        next(&mut slow).await.unwrap();
        let mut small = limited(&[PIECE_BYTES], &unread, limit);
        assert!(next(&mut small).await.unwrap().is_data(), "a small response is always sent");
        let mut refused = limited(&[2 * PIECE_BYTES], &unread, limit);
        let trailers = next(&mut refused).await.unwrap().into_trailers().unwrap();
        assert_eq!(trailers.get("grpc-status").unwrap(), "8");
        assert!(next(&mut refused).await.is_none());
        drop(slow);
        assert_eq!(unread.bytes(), 0);
        let mut taken = limited(&[2 * PIECE_BYTES], &unread, limit);
        assert!(next(&mut taken).await.unwrap().is_data());
    }
}
