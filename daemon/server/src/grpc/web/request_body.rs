//! The body of a request, limited in size and in the time that the client may take to send it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use prost::bytes::Bytes;
use tokio::time::Sleep;

use crate::grpc::guard::MAX_MESSAGE_BYTES;

/// Length of the header of a message.
const MESSAGE_HEADER_BYTES: usize = 5;
/// Longest body: one message of the largest size in Base64.
pub(super) const MAX_BODY_BYTES: usize = (MAX_MESSAGE_BYTES + MESSAGE_HEADER_BYTES).div_ceil(3) * 4;
/// How long a client may take to send a body. It is on the same machine.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The body of a request.
pub(crate) struct RequestBody<B = Incoming> {
    inner: B,
    /// Bytes that may still come.
    left: usize,
    timeout: Pin<Box<Sleep>>,
}

/// The reason why a body is not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError<E> {
    #[error("a request must have at most {MAX_BODY_BYTES} bytes")]
    TooLong,
    #[error("the request did not arrive within {} s", BODY_TIMEOUT.as_secs())]
    TooSlow,
    #[error(transparent)]
    Transport(E),
}

impl<B> RequestBody<B> {
    /// Limits `inner`.
    pub(super) fn new(inner: B) -> Self {
        Self::with_timeout(inner, BODY_TIMEOUT)
    }

    fn with_timeout(inner: B, timeout: Duration) -> Self {
        Self { inner, left: MAX_BODY_BYTES, timeout: Box::pin(tokio::time::sleep(timeout)) }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = BodyError<B::Error>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.timeout.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(BodyError::TooSlow)));
        }
        let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(context)) else {
            return Poll::Ready(None);
        };
        let frame = frame.map_err(BodyError::Transport)?;
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        let Some(left) = self.left.checked_sub(bytes) else {
            return Poll::Ready(Some(Err(BodyError::TooLong)));
        };
        self.left = left;
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Sends pieces of 1 MiB without end, or nothing.
    struct Endless {
        silent: bool,
    }

    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.silent {
                return Poll::Pending;
            }
            Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![0; 1 << 20])))))
        }
    }

    async fn next(body: &mut RequestBody<Endless>) -> Result<Frame<Bytes>, BodyError<Infallible>> {
        std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await.unwrap()
    }

    #[tokio::test]
    async fn a_body_without_end_is_cut() {
        let mut body = RequestBody::new(Endless { silent: false });
        for _ in 0..MAX_BODY_BYTES >> 20 {
            next(&mut body).await.unwrap();
        }
        assert!(matches!(next(&mut body).await, Err(BodyError::TooLong)));
    }

    #[tokio::test]
    async fn a_body_that_does_not_arrive_is_not_awaited() {
        let mut body = RequestBody::with_timeout(Endless { silent: true }, Duration::from_millis(5));
        assert!(matches!(next(&mut body).await, Err(BodyError::TooSlow)));
    }
}
