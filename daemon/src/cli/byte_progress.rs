//! The progress of a long command: a line that is redrawn on a terminal, otherwise a plain line every few seconds.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use satchel_proto::{integers::unsigned, v1::Operation};
use satchel_store::CheckProgress;
use tokio::{sync::watch, task::JoinError};

use super::{output::Output, text};

/// Interval between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// The progress of one command.
pub(crate) struct ByteProgress {
    label: &'static str,
    spinner: ProgressBar,
    last: Instant,
}

impl ByteProgress {
    /// Starts the display.
    pub(crate) fn new(out: &Output, label: &'static str) -> Self {
        Self { label, spinner: out.spinner(label), last: Instant::now() }
    }

    /// Shows how many bytes are done, and of how many.
    pub(crate) fn update(&mut self, out: &mut Output, done: u64, total: u64) {
        let line = format!("{}: {} of {}", self.label, text::bytes(done), text::bytes(total));
        if out.bars {
            self.spinner.set_message(line);
        } else if self.last.elapsed() >= LINE_INTERVAL {
            self.last = Instant::now();
            out.note(&line);
        }
    }

    /// Shows the progress of an operation that counts bytes.
    pub(crate) fn show_operation(&mut self, out: &mut Output, operation: &Operation) {
        if let Some(progress) = &operation.progress {
            let done = unsigned(progress.bytes_done);
            self.update(out, done, progress.bytes_total.map_or(done, unsigned));
        }
    }

    /// Runs `work`, which reports its progress, on a thread that may block on the disk, and shows the progress
    /// until it ends.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        out: &mut Output,
        label: &'static str,
        work: impl FnOnce(&mut dyn FnMut(CheckProgress)) -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let (sender, mut receiver) = watch::channel(CheckProgress { done: 0, total: 0 });
        let mut work = tokio::task::spawn_blocking(move || {
            work(&mut |progress| {
                // Nobody listens after the command has ended.
                sender.send_replace(progress);
            })
        });
        let mut progress = Self::new(out, label);
        let outcome = loop {
            tokio::select! {
                outcome = &mut work => break outcome,
                Ok(()) = receiver.changed() => {
                    let CheckProgress { done, total } = *receiver.borrow_and_update();
                    progress.update(out, done, total);
                }
            }
        };
        progress.finish();
        outcome
    }

    /// Removes the line.
    pub(crate) fn finish(self) {
        self.spinner.finish_and_clear();
    }
}
