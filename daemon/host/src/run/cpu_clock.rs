//! The processor time of a plugin, and its limits.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::error::PluginError;

/// Reading may take this many times the processor time that a plugin may use without progress. The host does the
/// reading, so the time is not charged to the plugin, but a plugin that reads the same file for ever must be stopped
/// too.
const READING_FACTOR: u32 = 10;

/// A clock that counts the processor time of the thread on which it was created. Waiting (for the consumer, a disk,
/// other processes) does not count.
#[derive(Debug)]
pub(crate) struct CpuClock {
    idle: Duration,
    total: Duration,
    started: Duration,
    progressed: Duration,
    reading: Duration,
    reading_since_progress: Duration,
}

impl CpuClock {
    pub(crate) fn start(idle: Duration, total: Duration) -> Self {
        let now = thread_time();
        Self {
            idle,
            total,
            started: now,
            progressed: now,
            reading: Duration::ZERO,
            reading_since_progress: Duration::ZERO,
        }
    }

    /// Restarts the time without progress, because something was emitted.
    pub(crate) fn progress(&mut self) {
        self.progress_at(thread_time());
    }

    /// Runs `read` without charging its time to the plugin.
    pub(crate) fn read<T>(&mut self, read: impl FnOnce() -> T) -> T {
        let before = thread_time();
        let out = read();
        self.spent_reading(thread_time().saturating_sub(before));
        out
    }

    /// Checks whether the plugin may continue.
    pub(crate) fn check(&self) -> Result<(), PluginError> {
        self.check_at(thread_time())
    }

    fn progress_at(&mut self, now: Duration) {
        self.progressed = now;
        self.reading_since_progress = Duration::ZERO;
    }

    fn spent_reading(&mut self, spent: Duration) {
        self.reading += spent;
        self.reading_since_progress += spent;
    }

    fn check_at(&self, now: Duration) -> Result<(), PluginError> {
        let since_progress = now.saturating_sub(self.progressed).saturating_sub(self.reading_since_progress);
        if since_progress > self.idle
            || self.reading_since_progress > self.idle.saturating_mul(READING_FACTOR)
        {
            return Err(PluginError::NoProgress(self.idle));
        }
        if now.saturating_sub(self.started).saturating_sub(self.reading) > self.total {
            return Err(PluginError::TooLong(self.total));
        }
        Ok(())
    }
}

/// Returns the processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn clock() -> CpuClock {
        CpuClock {
            idle: SECOND * 30,
            total: SECOND * 100,
            started: SECOND,
            progressed: SECOND,
            reading: Duration::ZERO,
            reading_since_progress: Duration::ZERO,
        }
    }

    #[test]
    fn work_without_progress_is_stopped() {
        assert_eq!(clock().check_at(SECOND * 31), Ok(()));
        assert_eq!(clock().check_at(SECOND * 32), Err(PluginError::NoProgress(SECOND * 30)));
    }

    #[test]
    fn progress_resets_the_idle_time_but_not_the_total() {
        let mut clock = clock();
        clock.progress_at(SECOND * 30);
        assert_eq!(clock.check_at(SECOND * 60), Ok(()));
        clock.progress_at(SECOND * 90);
        assert_eq!(clock.check_at(SECOND * 102), Err(PluginError::TooLong(SECOND * 100)));
    }

    #[test]
    fn reading_is_not_charged_but_is_limited_too() {
        let mut clock = clock();
        clock.spent_reading(SECOND * 200);
        assert_eq!(clock.check_at(SECOND * 220), Ok(()));
        clock.spent_reading(SECOND * 101);
        assert_eq!(clock.check_at(SECOND * 320), Err(PluginError::NoProgress(SECOND * 30)));
    }
}
