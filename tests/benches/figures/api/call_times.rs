//! The times of many calls, and what is reported of them.

use std::time::{Duration, Instant};

use anyhow::Result;

/// The times of the calls of one run.
#[derive(Default)]
pub(super) struct CallTimes(Vec<Duration>);

impl CallTimes {
    /// Makes `calls` calls one after the other.
    pub(super) async fn of(calls: usize, mut call: impl AsyncFnMut(usize) -> Result<()>) -> Result<Self> {
        let mut times = Self(Vec::with_capacity(calls));
        for number in 0..calls {
            let began = Instant::now();
            call(number).await?;
            times.push(began.elapsed());
        }
        Ok(times)
    }

    pub(super) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Returns the time that half of the calls stay within.
    pub(super) fn p50(&self) -> Duration {
        self.percentile(50)
    }

    /// Returns the time that 99 of 100 calls stay within.
    pub(super) fn p99(&self) -> Duration {
        self.percentile(99)
    }

    fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default()
    }
}

impl FromIterator<Duration> for CallTimes {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        Self(times.into_iter().collect())
    }
}

/// Returns the median of the runs.
pub(super) fn median(runs: impl IntoIterator<Item = Duration>) -> Duration {
    let mut sorted: Vec<_> = runs.into_iter().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
