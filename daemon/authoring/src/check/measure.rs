//! Measures speed and memory. The figures are reported and never judged.

use std::{path::PathBuf, time::Duration};

use satchel_host::SinkVerdict;

use super::{CheckError, CheckOptions, FixtureReport, output::Sandbox};
use crate::run::{RunError, RunEvent, run_loaded};

/// Speed and memory of an importer.
#[derive(Clone, Debug)]
pub struct Measures {
    /// The file or folder that was read.
    pub path: PathBuf,
    /// How often it was read.
    pub runs: u32,
    /// Bytes that the importer read in all runs.
    pub bytes: u64,
    /// The wall-clock time of all runs, without opening the path and without detection.
    pub elapsed: Duration,
    /// The most memory that a run needed, in bytes.
    pub memory_bytes: usize,
    /// The reason why the measurement ended early.
    pub error: Option<String>,
}

impl Measures {
    /// Returns the speed in MB (10⁶ bytes) for each second.
    #[expect(clippy::cast_precision_loss, reason = "a speed is shown with a few digits")]
    pub fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }
}

/// Reads a path again and again until enough time was measured; `None` if there is nothing to read.
pub(super) fn measure(
    sandbox: &Sandbox<'_>,
    fixtures: &[PathBuf],
    reports: &[FixtureReport],
    options: &CheckOptions,
) -> Result<Option<Measures>, CheckError> {
    if options.measured_time.is_zero() {
        return Ok(None);
    }
    let Some(path) = options.bench.clone().or_else(|| largest(fixtures, reports)) else { return Ok(None) };
    let mut measures =
        Measures { path, runs: 0, bytes: 0, elapsed: Duration::ZERO, memory_bytes: 0, error: None };
    while measures.elapsed < options.measured_time && add_run(sandbox, &mut measures)? {}
    Ok(Some(measures))
}

/// Adds one run; returns false if another one would tell nothing.
fn add_run(sandbox: &Sandbox<'_>, measures: &mut Measures) -> Result<bool, CheckError> {
    let mut discard = |_: RunEvent<'_>| SinkVerdict::Proceed;
    let report = match run_loaded(sandbox.importer(), &measures.path, sandbox.cancel(), &mut discard) {
        Ok(report) => report,
        Err(RunError::Detect(error)) => {
            measures.error = Some(error.to_string());
            return Ok(false);
        }
        Err(RunError::Source(error)) => return Err(error.into()),
        Err(RunError::Load(error)) => return Err(error.into()),
    };
    if sandbox.cancel().cancelled() {
        return Err(CheckError::Cancelled);
    }
    if report.exports.is_empty() {
        measures.error = Some("the importer finds no export in it".to_owned());
    }
    for export in report.exports {
        measures.elapsed += export.elapsed;
        match export.outcome {
            Ok(summary) => {
                measures.bytes += summary.bytes_read;
                measures.memory_bytes = measures.memory_bytes.max(summary.memory_bytes);
            }
            Err(error) => measures.error = Some(error.to_string()),
        }
    }
    measures.runs += 1;
    Ok(measures.error.is_none())
}

/// Returns the largest input that the importer reads to the end.
fn largest(fixtures: &[PathBuf], reports: &[FixtureReport]) -> Option<PathBuf> {
    let read = fixtures.iter().zip(reports).filter(|(_, report)| report.read_to_end);
    read.max_by_key(|(_, report)| report.input_bytes).map(|(fixture, _)| fixture.join("input"))
}
