//! Responses that end when their device is revoked or its policy changes.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::HeaderMap;
use http_body::{Frame, SizeHint};
use prost::bytes::Bytes;
use satchel_devices::Device;
use tonic::{Status, body::Body};

use super::{authenticate::expired, limits::WatchPermit};
use crate::{devices::Devices, grpc::status::CallError};

/// The reason to end a response, once there is one.
type Revoked = Pin<Box<dyn Future<Output = CallError> + Send>>;

/// The response of a device.
pub(super) struct DeviceBody {
    inner: Body,
    /// `None` after it has completed.
    revoked: Option<Revoked>,
    _watch: Option<WatchPermit>,
}

impl DeviceBody {
    /// Wraps `inner`, so that it ends when `device` is no longer what it was when the call began.
    pub(super) fn body(
        inner: Body,
        device: Arc<Device>,
        (devices, now): (&Devices, i64),
        watch: Option<WatchPermit>,
    ) -> Body {
        let revoked = Box::pin(revoked(device, devices.clone(), now));
        Body::new(Self { inner, revoked: Some(revoked), _watch: watch })
    }
}

/// Waits until the device is revoked, its policy is changed, or its certificate or token has expired.
pub(super) async fn revoked(device: Arc<Device>, devices: Devices, now: i64) -> CallError {
    let left = Duration::from_micros(u64::try_from(device.expires_at.saturating_sub(now)).unwrap_or(0));
    tokio::select! {
        error = changed(&device, &devices) => error,
        () = tokio::time::sleep(left) => expired(&device),
    }
}

async fn changed(device: &Device, devices: &Devices) -> CallError {
    let mut changes = devices.registry().subscribe();
    loop {
        changes.borrow_and_update();
        let name = device.name.clone();
        match devices.registry().by_id(&device.id) {
            Some(current) if current.revoked() => return CallError::DeviceRevoked { device: name },
            Some(current) if current.policy != device.policy => {
                return CallError::PolicyChanged { device: name };
            }
            Some(_) => {}
            // Devices are never removed.
            None => return CallError::DeviceRevoked { device: name },
        }
        if changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl http_body::Body for DeviceBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(revoked) = &mut self.revoked else { return Poll::Ready(None) };
        if let Poll::Ready(error) = revoked.as_mut().poll(context) {
            self.revoked = None;
            self.inner = Body::empty();
            let mut trailers = HeaderMap::new();
            if let Err(error) = Status::from(error).add_header(&mut trailers) {
                tracing::error!(%error, "cannot encode why a response ends");
            }
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
