//! Imports stand back: what a person waits for, here and in other programs, has the processor first.

/// How much less an import's threads count than others, as the `nice` command says it: at 10 a busy import gets a tenth of the
/// time of what competes with it, and all of it when nothing does.
#[cfg(target_os = "linux")]
const STAND_BACK: i32 = 10;

/// Puts the calling thread, and those that it starts, behind others.
#[cfg(target_os = "linux")]
pub(super) fn stand_back() {
    // Here the calls are about one thread, although the standard has them about a process.
    let now = rustix::process::getpriority_process(None).unwrap_or_default();
    if let Err(error) = rustix::process::setpriority_process(None, now.max(STAND_BACK)) {
        tracing::debug!(%error, "an import runs at the priority of all else");
    }
}

/// Elsewhere it would be about the whole daemon, which has to answer.
#[cfg(not(target_os = "linux"))]
pub(super) fn stand_back() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn priority() -> i32 {
        rustix::process::getpriority_process(None).unwrap_or_default()
    }

    #[test]
    fn the_thread_and_what_it_starts_stand_back_and_nobody_else() {
        let before = priority();
        let inside = std::thread::spawn(|| {
            stand_back();
            (priority(), std::thread::spawn(priority).join().unwrap_or_default())
        });
        let expected = before.max(STAND_BACK);
        assert_eq!(inside.join().unwrap_or_default(), (expected, expected));
        assert_eq!(priority(), before);
    }
}
