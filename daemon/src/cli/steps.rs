//! The progress of a long command: a line that is redrawn on a terminal, otherwise a plain line every few seconds.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use satchel_proto::{signed::unsigned, v1::Operation};
use satchel_store::CheckProgress;
use tokio::{sync::watch, task::JoinError};

use super::{out::Out, text};

/// Interval between two plain lines.
const PACE: Duration = Duration::from_secs(5);

/// The progress of one command.
pub(crate) struct Steps {
    what: &'static str,
    spinner: ProgressBar,
    last: Instant,
}

impl Steps {
    /// Starts the display.
    pub(crate) fn new(out: &Out, what: &'static str) -> Self {
        Self { what, spinner: out.spinner(what), last: Instant::now() }
    }

    /// Shows how many bytes are done, and of how many.
    pub(crate) fn at(&mut self, out: &mut Out, done: u64, total: u64) {
        let line = format!("{}: {} of {}", self.what, text::bytes(done), text::bytes(total));
        if out.bars {
            self.spinner.set_message(line);
        } else if self.last.elapsed() >= PACE {
            self.last = Instant::now();
            out.note(&line);
        }
    }

    /// Shows the progress of an operation that counts bytes.
    pub(crate) fn show(&mut self, out: &mut Out, operation: &Operation) {
        if let Some(progress) = &operation.progress {
            let done = unsigned(progress.bytes_done);
            self.at(out, done, progress.bytes_total.map_or(done, unsigned));
        }
    }

    /// Runs `work`, which reports its progress, on a thread that may block on the disk, and shows the progress
    /// until it ends.
    pub(crate) async fn follow<T: Send + 'static>(
        out: &mut Out,
        what: &'static str,
        work: impl FnOnce(&mut dyn FnMut(CheckProgress)) -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let (tell, mut told) = watch::channel(CheckProgress { done: 0, total: 0 });
        let mut work = tokio::task::spawn_blocking(move || {
            work(&mut |progress| {
                // Nobody listens after the command has ended.
                tell.send_replace(progress);
            })
        });
        let mut steps = Self::new(out, what);
        let outcome = loop {
            tokio::select! {
                outcome = &mut work => break outcome,
                Ok(()) = told.changed() => {
                    let CheckProgress { done, total } = *told.borrow_and_update();
                    steps.at(out, done, total);
                }
            }
        };
        steps.end();
        outcome
    }

    /// Removes the line.
    pub(crate) fn end(self) {
        self.spinner.finish_and_clear();
    }
}
