//! How far a long command is: a line that is redrawn on a terminal, a plain line every few seconds elsewhere.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use satchel_proto::{signed::unsigned, v1::Operation};
use satchel_store::CheckProgress;
use tokio::{sync::watch, task::JoinError};

use super::{out::Out, text};

/// Between two plain lines.
const PACE: Duration = Duration::from_secs(5);

/// The progress of one command.
pub(crate) struct Steps {
    what: &'static str,
    spinner: ProgressBar,
    last: Instant,
}

impl Steps {
    /// Begins.
    pub(crate) fn new(out: &Out, what: &'static str) -> Self {
        Self { what, spinner: out.spinner(what), last: Instant::now() }
    }

    /// Tells how many bytes are done, of how many.
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

    /// Does `work`, which tells how far it is, on a thread that may wait for the disk, and shows that to its end.
    pub(crate) async fn follow<T: Send + 'static>(
        out: &mut Out,
        what: &'static str,
        work: impl FnOnce(&mut dyn FnMut(CheckProgress)) -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let (tell, mut told) = watch::channel(CheckProgress { done: 0, total: 0 });
        let mut work = tokio::task::spawn_blocking(move || {
            work(&mut |progress| {
                // Nobody listens once the command ended.
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

    /// Takes the line away.
    pub(crate) fn end(self) {
        self.spinner.finish_and_clear();
    }
}
