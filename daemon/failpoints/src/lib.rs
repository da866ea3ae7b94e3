//! Failpoints: named points in the code at which a test can stop or pause the process.
//!
//! Only builds with the feature `enabled` can install a listener. In every other build a failpoint is an empty
//! function, and nothing from outside, no variable and no argument, reaches it.

#[cfg(feature = "enabled")]
mod thread;

#[cfg(feature = "enabled")]
pub use thread::listen_on_thread;

/// The installed listener.
#[cfg(feature = "enabled")]
static LISTENER: std::sync::OnceLock<Box<dyn Fn(&'static str) + Send + Sync>> = std::sync::OnceLock::new();

/// Installs `listener`, which is called at every failpoint that this process reaches from now on, on the thread that
/// reaches it. The first listener stays installed; returns false if there already is one.
#[cfg(feature = "enabled")]
pub fn listen(listener: impl Fn(&'static str) + Send + Sync + 'static) -> bool {
    LISTENER.set(Box::new(listener)).is_ok()
}

/// Reports that the process reached the failpoint `name`.
#[cfg(feature = "enabled")]
pub fn reached(name: &'static str) {
    if let Some(listener) = LISTENER.get() {
        listener(name);
    }
}

/// Does nothing in this build: no listener can be installed for the failpoint `name`.
#[cfg(not(feature = "enabled"))]
#[inline]
pub const fn reached(_name: &'static str) {}
