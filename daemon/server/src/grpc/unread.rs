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

use super::status::Fault;

/// Bytes that are passed to a connection at once. The connection holds them until the client reads them, and they are
/// not counted.
const PIECE: usize = 64 << 10;
/// Bytes of all responses that are not read yet.
pub(super) const MOST: usize = 128 << 20;

/// The message of a response that is refused because too many are not read yet.
const FULL: &str =
    "too much that the daemon answered waits to be read; read it, or ask again when others have";

/// The number of unread bytes; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread(Arc<AtomicUsize>);

/// The unread bytes of one response.
#[derive(Debug)]
struct Share {
    all: Unread,
    bytes: usize,
}

impl Unread {
    /// Reserves a share, unless the total would exceed `most`.
    fn share(&self, bytes: usize, most: usize) -> Option<Share> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
            all.checked_add(bytes).filter(|all| *all <= most)
        });
        taken.ok().map(|_| Share { all: self.clone(), bytes })
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A response body whose unread bytes are counted.
pub(super) struct Counted {
    inner: Body,
    unread: Unread,
    most: usize,
    /// The rest of a frame, and its share.
    rest: Option<(Bytes, Share)>,
    over: bool,
    /// The permit of a long-running call.
    _place: Option<OwnedSemaphorePermit>,
}

impl Counted {
    /// Counts the unread bytes of `inner`; `place` is released when the body ends.
    pub(super) fn body(inner: Body, unread: &Unread, place: Option<OwnedSemaphorePermit>) -> Body {
        Body::new(Self { _place: place, ..Self::new(inner, unread, MOST) })
    }

    fn new(inner: Body, unread: &Unread, most: usize) -> Self {
        Self { inner, unread: unread.clone(), most, rest: None, over: false, _place: None }
    }

    /// Returns the next small piece of the rest.
    fn piece(&mut self) -> Option<Bytes> {
        let (bytes, share) = self.rest.as_mut()?;
        let piece = bytes.split_to(bytes.len().min(PIECE));
        let left = bytes.len();
        share.all.0.fetch_sub(share.bytes - left, Ordering::Relaxed);
        share.bytes = left;
        if left == 0 {
            self.rest = None;
        }
        Some(piece)
    }

    /// Ends the response with an error. The unsent part is never sent.
    fn refuse(&mut self) -> Frame<Bytes> {
        self.over = true;
        self.inner = Body::empty();
        let mut trailers = HeaderMap::new();
        if let Err(error) = Status::from(Fault::Busy(FULL.to_owned())).add_header(&mut trailers) {
            tracing::error!(%error, "a refusal has no form");
        }
        Frame::trailers(trailers)
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if let Some(piece) = this.piece() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if this.over {
            return Poll::Ready(None);
        }
        let frame = match ready!(Pin::new(&mut this.inner).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other),
        };
        let data = match frame.into_data() {
            Ok(data) if data.len() > PIECE => data,
            Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
            Err(frame) => return Poll::Ready(Some(Ok(frame))),
        };
        let Some(share) = this.unread.share(data.len(), this.most) else {
            return Poll::Ready(Some(Ok(this.refuse())));
        };
        this.rest = Some((data, share));
        Poll::Ready(this.piece().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.rest.is_none() && self.inner.is_end_stream()
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

    fn counted(frames: &[usize], unread: &Unread, most: usize) -> Counted {
        let frames = frames.iter().map(|length| Bytes::from(vec![7; *length])).collect();
        Counted::new(Body::new(Frames(frames)), unread, most)
    }

    async fn next(body: &mut Counted) -> Option<Frame<Bytes>> {
        poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await.map(Result::unwrap)
    }

    #[tokio::test]
    async fn an_answer_is_handed_over_in_small_pieces_and_counts_until_it_is_taken() {
        let unread = Unread::default();
        let mut body = counted(&[10, 3 * PIECE + 5, 0, PIECE], &unread, usize::MAX);
        let (mut bytes, mut counts) = (0, Vec::new());
        while let Some(frame) = next(&mut body).await {
            let piece = frame.into_data().unwrap();
            assert!(piece.len() <= PIECE && piece.iter().all(|byte| *byte == 7));
            bytes += piece.len();
            counts.push(unread.bytes());
        }
        assert_eq!(bytes, 10 + 3 * PIECE + 5 + PIECE);
        assert_eq!(counts, [0, 2 * PIECE + 5, PIECE + 5, 5, 0, 0, 0]);
    }

    #[tokio::test]
    async fn past_the_bound_answers_are_refused_until_others_are_taken_or_given_up() {
        let unread = Unread::default();
        let most = 4 * PIECE;
        let mut slow = counted(&[4 * PIECE], &unread, most);
        next(&mut slow).await.unwrap();
        let mut small = counted(&[PIECE], &unread, most);
        assert!(next(&mut small).await.unwrap().is_data(), "a small answer always finds room");
        let mut refused = counted(&[2 * PIECE], &unread, most);
        let trailers = next(&mut refused).await.unwrap().into_trailers().unwrap();
        assert_eq!(trailers.get("grpc-status").unwrap(), "8");
        assert!(next(&mut refused).await.is_none());
        drop(slow);
        assert_eq!(unread.bytes(), 0);
        let mut taken = counted(&[2 * PIECE], &unread, most);
        assert!(next(&mut taken).await.unwrap().is_data());
    }
}
