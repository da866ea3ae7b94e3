//! Named places on the way of the data, at which a test can stop the process, or hold it.
//!
//! Only tests of this crate and those that ask for the feature `points` can listen; in every other build a place is an empty
//! function, and nothing from outside, no variable and no argument, reaches it.

/// Who listens.
#[cfg(any(test, feature = "points"))]
static LISTENER: std::sync::OnceLock<Box<dyn Fn(&'static str) + Send + Sync>> = std::sync::OnceLock::new();

/// Tells `listener` of every place that this process comes to from now on, on the thread that comes to it. The first listener
/// stays; false: there is one.
#[cfg(any(test, feature = "points"))]
pub fn listen(listener: impl Fn(&'static str) + Send + Sync + 'static) -> bool {
    LISTENER.set(Box::new(listener)).is_ok()
}

/// The process has come to the place `name`.
#[cfg(any(test, feature = "points"))]
pub fn reached(name: &'static str) {
    if let Some(listener) = LISTENER.get() {
        listener(name);
    }
}

/// The process has come to the place `name`; nobody can hear of it.
#[cfg(not(any(test, feature = "points")))]
#[inline]
pub const fn reached(_name: &'static str) {}
