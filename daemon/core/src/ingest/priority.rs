//! Lowers the priority of import threads, so that interactive work, here and in other programs, gets the processor
//! first.

/// The `nice` value of import threads. At 10, a busy import gets about a tenth of the time of a process that competes
/// with it, and all of it when nothing competes.
#[cfg(target_os = "linux")]
const IMPORT_NICE: i32 = 10;

/// Lowers the priority of the calling thread and of all threads that it starts.
#[cfg(target_os = "linux")]
pub(super) fn lower_priority() {
    // On Linux these calls affect a single thread, although POSIX defines them for the process.
    let now = rustix::process::getpriority_process(None).unwrap_or_default();
    if let Err(error) = rustix::process::setpriority_process(None, now.max(IMPORT_NICE)) {
        tracing::debug!(%error, "an import runs at the priority of all else");
    }
}

/// Does nothing: on other systems the call would affect the whole daemon, which has to stay responsive.
#[cfg(not(target_os = "linux"))]
pub(super) fn lower_priority() {}

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
            lower_priority();
            (priority(), std::thread::spawn(priority).join().unwrap_or_default())
        });
        let expected = before.max(IMPORT_NICE);
        assert_eq!(inside.join().unwrap_or_default(), (expected, expected));
        assert_eq!(priority(), before);
    }
}
