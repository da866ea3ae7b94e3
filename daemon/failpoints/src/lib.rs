//! Failpoints: named places on the way of the data, at which a test can stop the process, or hold it.
//!
//! Only builds with the feature `enabled` can listen. In every other build a failpoint is an empty function, and nothing from
//! outside, no variable and no argument, reaches it.

#[cfg(feature = "enabled")]
mod here;

#[cfg(feature = "enabled")]
pub use here::listen_here;

/// Who listens.
#[cfg(feature = "enabled")]
static LISTENER: std::sync::OnceLock<Box<dyn Fn(&'static str) + Send + Sync>> = std::sync::OnceLock::new();

/// Tells `listener` of every place that this process comes to from now on, on the thread that comes to it. The first listener
/// stays; false: there is one.
#[cfg(feature = "enabled")]
pub fn listen(listener: impl Fn(&'static str) + Send + Sync + 'static) -> bool {
    LISTENER.set(Box::new(listener)).is_ok()
}

/// The process has come to the place `name`.
#[cfg(feature = "enabled")]
pub fn reached(name: &'static str) {
    if let Some(listener) = LISTENER.get() {
        listener(name);
    }
}

/// The process has come to the place `name`; nobody can hear of it.
#[cfg(not(feature = "enabled"))]
#[inline]
pub const fn reached(_name: &'static str) {}
