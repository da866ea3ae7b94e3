//! Shows the progress of a job on stderr: as a bar on a terminal, otherwise as a line every few seconds.

use std::{
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use satchel_proto::{
    integers::unsigned,
    v1::{Operation, OperationPhase},
};

use super::throughput::ThroughputMeter;
use crate::cli::{output::Output, text};

/// Interval between two plain lines: short enough to show activity, long enough for a log.
const LINE_INTERVAL: Duration = Duration::from_secs(3);
/// Columns of the name before the bar.
const NAME_COLUMNS: usize = 28;
/// Positions of a bar. The bar only shows fractions; the line beside it has the numbers.
const BAR_STEPS: u64 = 1_000;

/// The progress display of one job.
pub(super) struct ImportProgress {
    name: String,
    throughput: ThroughputMeter,
    display: ProgressDisplay,
}

enum ProgressDisplay {
    Bar(ProgressBar),
    Lines { last: Instant },
    Nothing,
}

impl ImportProgress {
    pub(super) fn new(path: &str, out: &Output) -> Self {
        let now = Instant::now();
        let display = match (out.quiet, out.bars) {
            (true, _) => ProgressDisplay::Nothing,
            (false, true) => ProgressDisplay::Bar(bar(out.notes_style.color)),
            (false, false) => ProgressDisplay::Lines { last: now },
        };
        Self { name: name(path), throughput: ThroughputMeter::new(now), display }
    }

    /// Shows the current state of the job.
    pub(super) fn show(&mut self, operation: &Operation) {
        let Some(progress) = operation.progress.as_ref() else { return };
        let now = Instant::now();
        self.throughput.observe(progress, now);
        match &mut self.display {
            ProgressDisplay::Bar(bar) => {
                let total = unsigned(progress.bytes_total).filter(|total| *total > 0);
                let part = total.map_or(0, |total| {
                    u128::from(unsigned(progress.bytes_done).min(total)) * u128::from(BAR_STEPS)
                        / u128::from(total)
                });
                bar.set_position(u64::try_from(part).unwrap_or(BAR_STEPS));
                bar.set_prefix(text::fit(&self.name, NAME_COLUMNS).into_owned());
                bar.set_message(self.throughput.line(progress, now));
            }
            // A short job needs no line.
            ProgressDisplay::Lines { last } if now.duration_since(*last) >= LINE_INTERVAL => {
                *last = now;
                if progress.phase() != OperationPhase::Unspecified {
                    let line = self.throughput.line(progress, now);
                    self.print_message(&line);
                }
            }
            ProgressDisplay::Lines { .. } | ProgressDisplay::Nothing => {}
        }
    }

    /// Prints a message about the job, above the bar.
    pub(super) fn print_message(&self, what: &str) {
        let line = format!("{}: {what}", self.name);
        match &self.display {
            ProgressDisplay::Bar(bar) => bar.println(line),
            ProgressDisplay::Lines { .. } => {
                if let Err(error) = writeln!(std::io::stderr(), "{line}") {
                    tracing::debug!(%error, "stderr is closed");
                }
            }
            ProgressDisplay::Nothing => {}
        }
    }

    /// Removes the bar; the receipt follows.
    pub(super) fn end(self) {
        if let ProgressDisplay::Bar(bar) = self.display {
            bar.finish_and_clear();
        }
    }
}

fn bar(color: bool) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(BAR_STEPS), ProgressDrawTarget::stderr());
    let template = if color {
        "{spinner:.cyan} {prefix} {wide_bar:.cyan/dim}\n  {msg}"
    } else {
        "{spinner} {prefix} {wide_bar}\n  {msg}"
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.set_style(style.progress_chars("━━╌")),
        Err(error) => tracing::debug!(%error, "the bar's template"),
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn name(path: &str) -> String {
    let last = Path::new(path)
        .file_name()
        .map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned());
    text::one_line(&last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_valid() {
        for color in [true, false] {
            let bar = bar(color);
            bar.set_draw_target(ProgressDrawTarget::hidden());
            assert_eq!(bar.length(), Some(BAR_STEPS));
        }
    }

    #[test]
    fn a_job_has_the_name_of_its_file() {
        assert_eq!(name("/home/ana/Downloads/chatgpt\u{1b}.zip"), "chatgpt\\u{1b}.zip");
        assert_eq!(name("/"), "/");
    }
}
