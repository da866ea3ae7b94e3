//! The flag that stops a run early.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use satchel_source::CancelToken;

/// Whether the run was asked to stop: by its caller with the token, or by the sink with its verdict.
#[derive(Clone, Debug)]
pub(crate) struct StopFlag {
    cancel: CancelToken,
    stopped: Arc<AtomicBool>,
}

impl StopFlag {
    pub(crate) fn new(cancel: CancelToken) -> Self {
        Self { cancel, stopped: Arc::default() }
    }

    pub(crate) fn request(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(crate) fn requested(&self) -> bool {
        self.stopped.load(Ordering::Acquire) || self.cancel.cancelled()
    }
}
