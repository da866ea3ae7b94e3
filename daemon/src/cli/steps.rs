//! How far a long command is: a line that is redrawn on a terminal, a plain line every few seconds elsewhere.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;

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

    /// Takes the line away.
    pub(crate) fn end(self) {
        self.spinner.finish_and_clear();
    }
}
