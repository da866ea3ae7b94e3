//! Shows what an importer emits for a file, a folder or a ZIP, without storing anything.

mod counts;
mod loaded;

use std::{
    collections::BTreeSet,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use satchel_host::{CodeCache, Detection, Emitted, PluginError, PluginInfo, RunSummary, SinkVerdict};
use satchel_pam::record::Line;
use satchel_source::{Bundle, CancelToken, FileSet as _, Limits, OpenedArchives, Source, SourceError};

pub use self::{
    counts::LineCounts,
    loaded::{LoadError, LoadedImporter},
};

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Keeps compiled code between runs.
    pub cache: Option<CodeCache>,
    /// Ends the run when it is set.
    pub cancel: CancelToken,
}

/// Something that happened during a run.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// The importer found an export and begins to read it.
    Detected(&'a Detection),
    /// The importer emitted a record, a skip or a warning.
    Line(&'a Line),
    /// The importer read `done` of `total` bytes of the export.
    Progress {
        /// Bytes read.
        done: u64,
        /// Bytes of the export.
        total: u64,
    },
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The importer's description of itself.
    pub importer: PluginInfo,
    /// The exports that it found, in its order.
    pub exports: Vec<ExportReport>,
    /// The files that it did not claim.
    pub unclaimed: Vec<String>,
    /// The files that could not be read, each with the reason.
    pub unread: Vec<String>,
    /// Claims of the detection that were left out because they are wrong.
    pub wrong_claims: Vec<String>,
}

/// The result of reading one export.
#[derive(Clone, Debug)]
pub struct ExportReport {
    /// The result of the detection.
    pub detection: Detection,
    /// The records, skips and warnings that were emitted.
    pub counts: LineCounts,
    /// The size of its files in bytes.
    pub bytes: u64,
    /// The wall-clock time of the run.
    pub elapsed: Duration,
    /// The host's counts and the peak of the importer's memory, or the reason why the run ended early. Lines that were
    /// emitted before that are counted.
    pub outcome: Result<RunSummary, PluginError>,
}

/// The reason why an importer could not be asked about a path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The importer cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The path cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The importer failed while it looked for its exports.
    #[error("the importer failed in detect")]
    Detect(#[source] PluginError),
}

/// Runs an importer (a component or a package) on `path`, which is opened as imports do, and stores nothing. Every event
/// is passed to `on_event`; nothing is collected, so the memory needed does not depend on the export. After `on_event`
/// returns [`SinkVerdict::Stop`], the run ends with [`PluginError::Cancelled`].
///
/// # Errors
/// The importer cannot be loaded, the path cannot be opened, or the detection fails. An error of a run is part of the
/// report.
pub fn run(
    importer: &[u8],
    path: &Path,
    options: &RunOptions,
    on_event: &mut dyn FnMut(RunEvent<'_>) -> SinkVerdict,
) -> Result<RunReport, RunError> {
    let importer = LoadedImporter::load(importer, options.cache.clone())?;
    run_loaded(&importer, path, &options.cancel, on_event)
}

/// Does the same as [`run`] with an importer that is loaded already.
///
/// # Errors
/// As [`run`].
pub fn run_loaded(
    importer: &LoadedImporter,
    path: &Path,
    cancel: &CancelToken,
    on_event: &mut dyn FnMut(RunEvent<'_>) -> SinkVerdict,
) -> Result<RunReport, RunError> {
    let bundle = Source::at(path)?.open_cancellable(&Limits::default(), cancel)?;
    let Detected { bundle, detections, wrong_claims } = detect(importer, bundle)?;
    let mut exports = Vec::new();
    for detection in detections {
        let report = read(importer, &bundle, detection, cancel, on_event);
        let stopped = report.outcome == Err(PluginError::Cancelled);
        exports.push(report);
        if stopped {
            break;
        }
    }
    let claimed: BTreeSet<&str> =
        exports.iter().flat_map(|export| &export.detection.files).map(String::as_str).collect();
    let names = bundle.list().iter().map(|entry| entry.path.clone());
    Ok(RunReport {
        importer: importer.plugin().info().clone(),
        unclaimed: names.filter(|name| !claimed.contains(name.as_str())).collect(),
        unread: bundle.all_unread().map(|file| format!("{}: {}", file.name, file.reason)).collect(),
        wrong_claims,
        exports,
    })
}

/// The exports in a source.
struct Detected {
    bundle: Bundle,
    detections: Vec<Detection>,
    wrong_claims: Vec<String>,
}

/// Detects exports; archives inside the source are opened while they are not claimed.
fn detect(importer: &LoadedImporter, mut bundle: Bundle) -> Result<Detected, RunError> {
    let mut opened = OpenedArchives::default();
    loop {
        let mut wrong_claims = Vec::new();
        let report = &mut |problem| wrong_claims.push(problem);
        let detections =
            importer.plugin().detect_reporting(Arc::new(bundle.clone()), report).map_err(RunError::Detect)?;
        let claimed = detections.iter().flat_map(|found| &found.files).map(String::as_str).collect();
        let inner = opened.unopened(&bundle, &claimed);
        if inner.is_empty() {
            let bundle = opened.close_unclaimed(bundle, &claimed);
            return Ok(Detected { bundle, detections, wrong_claims });
        }
        let after = bundle.with_opened(&inner)?;
        opened.add(bundle, inner);
        bundle = after;
    }
}

fn read(
    importer: &LoadedImporter,
    bundle: &Bundle,
    detection: Detection,
    cancel: &CancelToken,
    on_event: &mut dyn FnMut(RunEvent<'_>) -> SinkVerdict,
) -> ExportReport {
    let files = bundle.subset(&detection.files);
    let bytes = files.bytes();
    let mut counts = LineCounts::default();
    let started = Instant::now();
    let verdict = on_event(RunEvent::Detected(&detection));
    let outcome = if verdict == SinkVerdict::Stop {
        Err(PluginError::Cancelled)
    } else {
        let limits = importer.limits();
        importer.plugin().run(Arc::new(files), &detection.format, limits, cancel, &mut |emitted| {
            if let Emitted::Progress { done, total } = emitted {
                return on_event(RunEvent::Progress { done, total });
            }
            for line in lines(emitted) {
                counts.add(&line);
                if on_event(RunEvent::Line(&line)) == SinkVerdict::Stop {
                    return SinkVerdict::Stop;
                }
            }
            SinkVerdict::Proceed
        })
    };
    ExportReport { detection, counts, bytes, elapsed: started.elapsed(), outcome }
}

/// Returns the records of a delivery as lines.
pub(crate) fn lines(emitted: Emitted) -> Vec<Line> {
    match emitted {
        Emitted::Conversation(conversation) => vec![Line::Conversation(conversation)],
        Emitted::Evidence(evidence) => evidence.into_iter().map(Line::Evidence).collect(),
        Emitted::Relations(relations) => relations.into_iter().map(Line::Relation).collect(),
        Emitted::Embeddings(embeddings) => embeddings.into_iter().map(Line::Embedding).collect(),
        Emitted::Account(account) => vec![Line::Account(account)],
        Emitted::Skip(skip) => vec![Line::Skip(skip)],
        Emitted::Warning(warning) => vec![Line::Warning(warning)],
        Emitted::Progress { .. }
        | Emitted::PieceStarted
        | Emitted::PieceUnchanged(_)
        | Emitted::PieceNoted { .. } => Vec::new(),
    }
}
