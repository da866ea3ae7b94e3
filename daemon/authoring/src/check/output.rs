//! What an importer produces in the sandbox.

use std::sync::Arc;

use satchel_host::{Emitted, PieceMemo, PluginError, PluginErrorKind, PluginLimits, RunSummary, SinkVerdict};
use satchel_importer::{
    Detection, ErrorKind, ImportError,
    testkit::{Produced, ProducedExport},
};
use satchel_pam::record::Line;
use satchel_source::CancelToken;

use super::{CheckError, MemoryFiles};
use crate::run::{LineCounts, LoadedImporter, lines};

/// Runs one importer.
pub(super) struct Sandbox<'a> {
    importer: &'a LoadedImporter,
    limits: PluginLimits,
    cancel: CancelToken,
}

/// The output for the files of one fixture.
#[derive(Debug, PartialEq)]
pub(super) struct SandboxOutput {
    /// As the SDK's test kit has it; the error of a run that crashed is among `crashes`.
    pub(super) produced: Produced,
    /// For each export, the host's counts if it succeeded.
    pub(super) summaries: Vec<Option<RunSummary>>,
    /// Wrong claims of the detection.
    pub(super) wrong_claims: Vec<String>,
    /// The crash of the detection, if it crashed, and those of runs.
    crashes: Vec<String>,
}

/// How a call ended.
pub(super) enum Ending {
    /// The importer reported an error.
    Reported(ImportError),
    /// The host had to end the call.
    Crashed(String),
}

impl<'a> Sandbox<'a> {
    pub(super) fn new(importer: &'a LoadedImporter, cancel: &CancelToken) -> Self {
        Self { importer, limits: importer.limits().clone(), cancel: cancel.clone() }
    }

    /// Returns the sandbox with other limits.
    pub(super) fn with_limits(&self, change: impl FnOnce(&mut PluginLimits)) -> Self {
        let mut limits = self.limits.clone();
        change(&mut limits);
        Self { importer: self.importer, limits, cancel: self.cancel.clone() }
    }

    pub(super) fn importer(&self) -> &'a LoadedImporter {
        self.importer
    }

    pub(super) fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    /// Detects the exports among `files` and runs each with its files only.
    pub(super) fn produce(&self, files: &MemoryFiles) -> Result<SandboxOutput, CheckError> {
        let mut output = SandboxOutput::of(Produced { exports: Vec::new() });
        let detections = match self.detect(files, &mut output.wrong_claims)? {
            Ok(detections) => detections,
            Err(Ending::Crashed(crash)) => return Ok(output.with_crash(format!("detect: {crash}"))),
            Err(Ending::Reported(error)) => {
                let advice = "if there is nothing for it among the files, it has to return an empty list";
                return Ok(output.with_crash(format!("detect failed: {error}; {advice}")));
            }
        };
        for detection in detections {
            let (lines, ended) = self.run(files, &detection, None, &mut |_, _| {})?;
            let (error, summary) = match ended {
                Ok(summary) => (None, Some(summary)),
                Err(Ending::Reported(error)) => (Some(error), None),
                Err(Ending::Crashed(crash)) => {
                    output = output.with_crash(format!("run({:?}): {crash}", detection.format));
                    (None, None)
                }
            };
            output.produced.exports.push(ProducedExport { detection, lines, error });
            output.summaries.push(summary);
        }
        Ok(output)
    }

    /// Detects the exports among `files`.
    pub(super) fn detect(
        &self,
        files: &MemoryFiles,
        wrong_claims: &mut Vec<String>,
    ) -> Result<Result<Vec<Detection>, Ending>, CheckError> {
        let report = &mut |problem| wrong_claims.push(problem);
        match self.importer.plugin().detect_reporting(Arc::new(files.clone()), report) {
            Ok(found) => Ok(Ok(found.into_iter().map(detection).collect())),
            Err(error) => Ok(Err(self.ending(error)?)),
        }
    }

    /// Runs the importer on the files of one detection, with the results of earlier runs if there are any. `on_delivery`
    /// sees each delivery that is no line, and may add lines.
    pub(super) fn run(
        &self,
        files: &MemoryFiles,
        detection: &Detection,
        memo: Option<Arc<dyn PieceMemo>>,
        on_delivery: &mut dyn FnMut(&Emitted, &mut Vec<Line>),
    ) -> Result<(Vec<Line>, Result<RunSummary, Ending>), CheckError> {
        let files = Arc::new(files.subset(&detection.files));
        let mut all = Vec::new();
        let sink = &mut |emitted: Emitted| {
            on_delivery(&emitted, &mut all);
            all.extend(lines(emitted));
            SinkVerdict::Proceed
        };
        let plugin = self.importer.plugin();
        let ended = plugin.run_with_memo(files, &detection.format, &self.limits, &self.cancel, memo, sink);
        match ended {
            Ok(summary) => Ok((all, Ok(summary))),
            Err(error) => Ok((all, Err(self.ending(error)?))),
        }
    }

    /// Returns whose fault an error is, or stops the check.
    fn ending(&self, error: PluginError) -> Result<Ending, CheckError> {
        match error {
            PluginError::Cancelled if self.cancel.cancelled() => Err(CheckError::Cancelled),
            PluginError::Host(_) => Err(CheckError::Sandbox(error)),
            PluginError::Reported { kind, message, locator } => {
                Ok(Ending::Reported(ImportError { kind: kind_of(kind), message, locator }))
            }
            error => Ok(Ending::Crashed(error.to_string())),
        }
    }
}

impl SandboxOutput {
    pub(super) fn of(produced: Produced) -> Self {
        Self { produced, summaries: Vec::new(), wrong_claims: Vec::new(), crashes: Vec::new() }
    }

    fn with_crash(mut self, crash: String) -> Self {
        self.crashes.push(crash);
        self
    }

    /// Returns how calls ended that did not end properly.
    pub(super) fn crashes(&self) -> Vec<String> {
        self.crashes.clone()
    }

    /// Returns where the lines that arrived differ from the host's counts of found records.
    pub(super) fn count_differences(&self) -> Vec<String> {
        let exports = self.produced.exports.iter().zip(&self.summaries);
        let differences = exports.flat_map(|(export, summary)| {
            let counts = LineCounts::of(&export.lines);
            summary.iter().flat_map(|summary| counts.differences(summary)).collect::<Vec<_>>()
        });
        differences.collect()
    }

    /// Returns whether there are exports and every run succeeded.
    pub(super) fn read_to_end(&self) -> bool {
        !self.summaries.is_empty() && self.summaries.iter().all(Option::is_some)
    }

    /// Returns the most memory that a run needed, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.summaries.iter().flatten().map(|summary| summary.memory_bytes).max().unwrap_or_default()
    }
}

fn detection(found: satchel_host::Detection) -> Detection {
    let satchel_host::Detection { format, confidence, files, account } = found;
    Detection { format, confidence, files, account }
}

fn kind_of(kind: PluginErrorKind) -> ErrorKind {
    match kind {
        PluginErrorKind::NotThisFormat => ErrorKind::NotThisFormat,
        PluginErrorKind::UnsupportedVersion => ErrorKind::UnsupportedVersion,
        PluginErrorKind::Malformed => ErrorKind::Malformed,
        PluginErrorKind::Limit => ErrorKind::Limit,
        PluginErrorKind::Io => ErrorKind::Io,
        PluginErrorKind::Cancelled => ErrorKind::Cancelled,
        PluginErrorKind::Internal => ErrorKind::Internal,
    }
}
