//! Lowers the priority of threads that work in the background, so that interactive work, here and in other programs, gets
//! the processor first.

/// The `nice` value of import threads. At 10, a busy import gets about a tenth of the time of a process that competes
/// with it, and all of it when nothing competes.
pub const IMPORT_NICE: i32 = 10;
/// The `nice` value of the thread that builds the search index, so that imports come first.
pub const INDEX_NICE: i32 = 15;

/// Lowers the priority of the calling thread and of all threads that it starts to this `nice` value.
#[cfg(target_os = "linux")]
pub fn lower_priority(nice: i32) {
    // On Linux these calls affect a single thread, although POSIX defines them for the process.
    let now = rustix::process::getpriority_process(None).unwrap_or_default();
    if let Err(error) = rustix::process::setpriority_process(None, now.max(nice)) {
        tracing::debug!(%error, "background work runs at the priority of all else");
    }
}

/// Does nothing: on other systems the call would affect the whole daemon, which has to stay responsive.
#[cfg(not(target_os = "linux"))]
pub fn lower_priority(_nice: i32) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn priority() -> i32 {
        rustix::process::getpriority_process(None).unwrap_or_default()
    }

    #[test]
    fn only_the_thread_and_the_threads_it_starts_have_a_lower_priority() {
        let before = priority();
        let inside = std::thread::spawn(|| {
            lower_priority(IMPORT_NICE);
            (priority(), std::thread::spawn(priority).join().unwrap_or_default())
        });
        let expected = before.max(IMPORT_NICE);
        assert_eq!(inside.join().unwrap_or_default(), (expected, expected));
        assert_eq!(priority(), before);
    }
}
