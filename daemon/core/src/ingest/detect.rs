//! Finds the exports in a source and the reader of each.

mod signatures;

use std::{collections::BTreeSet, sync::Arc};

use satchel_host::Plugin;
use satchel_pam::record::Warning;
use satchel_plugins::BUILT_IN;
use satchel_source::{
    Bundle, FileSet as _, ReadFault, chain,
    pam::{self as documents, PamFiles},
};

use super::{pam, request::PAM_PLATFORM};
use crate::plugins::{PluginLoadError, Plugins};

/// The reader of an export.
pub(super) enum ExportReader {
    /// An importer in the sandbox.
    Plugin(Plugin),
    /// Satchel's own reader: PAM is the model in which everything is stored, so there is no mapping that a plugin could
    /// do better.
    Pam(PamFiles),
}

impl ExportReader {
    /// Returns the platform, as used to select importers.
    pub(super) fn platform(&self) -> &str {
        match self {
            Self::Plugin(plugin) => &plugin.info().platform,
            Self::Pam(_) => PAM_PLATFORM,
        }
    }

    /// Returns name and version, as `name/x.y.z`.
    pub(super) fn software(&self) -> String {
        match self {
            Self::Plugin(plugin) => format!("{}/{}", plugin.info().name, plugin.info().version),
            Self::Pam(_) => pam::SOFTWARE.to_owned(),
        }
    }
}

/// An export in the source, with its reader.
pub(super) struct DetectedExport {
    pub(super) reader: ExportReader,
    pub(super) format: String,
    pub(super) files: Vec<String>,
}

/// An importer's claim on files.
struct Claim {
    found: DetectedExport,
    confidence: u8,
}

/// The result of detection on a source.
pub(super) enum DetectionResult {
    /// An importer could not examine the files because some of them cannot be read; it can if those are removed.
    Broken(Vec<ReadFault>),
    /// The exports, warnings about importers that failed, and unreadable files that no importer needed.
    Found(Vec<DetectedExport>, Vec<Warning>, Vec<ReadFault>),
}

/// Detects the exports in a source. PAM documents are recognised first. Then importers are asked about the remaining
/// files until all of those are claimed with high confidence. If two importers claim a file, the one with the higher
/// confidence gets it. `only` restricts detection to the importers of these platforms; if empty, all are asked.
///
/// # Errors
/// When the importers do not load.
pub(super) fn detect(
    plugins: &Arc<Plugins>,
    bundle: &Bundle,
    only: &[String],
) -> Result<DetectionResult, PluginLoadError> {
    // Discard faults that were recorded before detection.
    drop(bundle.take_faults());
    let mut all = Vec::new();
    if wanted(only, PAM_PLATFORM) {
        all.extend(documents::find(bundle).into_iter().map(|files| DetectedExport {
            format: pam::FORMAT.to_owned(),
            files: files.files(),
            reader: ExportReader::Pam(files),
        }));
    }
    let mut faults = bundle.take_faults();
    let claimed: BTreeSet<&str> =
        all.iter().flat_map(|found| found.files.iter().map(String::as_str)).collect();
    let names = bundle.list().iter().map(|entry| &entry.path);
    let rest: Vec<String> = names.filter(|name| !claimed.contains(name.as_str())).cloned().collect();
    let mut notes = Vec::new();
    let rest =
        if all.is_empty() { Some(bundle.clone()) } else { (!rest.is_empty()).then(|| bundle.subset(&rest)) };
    if let Some(rest) = rest {
        match claims(plugins, &rest, only, &mut notes)? {
            Ok((claims, more)) => {
                all.extend(assign_files(claims));
                faults.extend(more);
            }
            Err(broken) => return Ok(DetectionResult::Broken(broken)),
        }
    }
    all.sort_by(|one, other| one.files.cmp(&other.files));
    Ok(DetectionResult::Found(all, notes, faults))
}

fn wanted(only: &[String], platform: &str) -> bool {
    only.is_empty() || only.iter().any(|one| one == platform)
}

/// On success, the claims, and unreadable files that the importers did not need; otherwise the unreadable files that
/// kept an importer from examining the others.
type AskResult = Result<(Vec<Claim>, Vec<ReadFault>), Vec<ReadFault>>;

/// Collects the claims of the importers. Likely importers are asked first; the others are asked only if files remain
/// unclaimed.
fn claims(
    plugins: &Arc<Plugins>,
    bundle: &Bundle,
    only: &[String],
    notes: &mut Vec<Warning>,
) -> Result<AskResult, PluginLoadError> {
    let names = signatures::likely_importers(bundle);
    // An importer that needs the file runs into the same fault, and reports it.
    drop(bundle.take_faults());
    let wanted = (0..BUILT_IN.len()).filter(|at| wanted(only, BUILT_IN[*at].name));
    let (first, others): (Vec<usize>, Vec<usize>) =
        wanted.partition(|at| names.contains(&BUILT_IN[*at].name));
    let (mut claims, mut all_faults) = (Vec::new(), Vec::new());
    for places in [first, others] {
        if places.is_empty() || (!claims.is_empty() && signatures::all_claimed(bundle, &claims)) {
            continue;
        }
        // The import was cancelled, so no caller needs the answer.
        let Some(plugins) = plugins.load_until(&places, &|| bundle.cancelled())? else { break };
        match ask(&plugins, bundle, notes) {
            Ok((more, faults)) => {
                claims.extend(more);
                all_faults.extend(faults);
            }
            Err(broken) => return Ok(Err(broken)),
        }
    }
    Ok(Ok((claims, all_faults)))
}

fn ask(plugins: &[Plugin], bundle: &Bundle, notes: &mut Vec<Warning>) -> AskResult {
    let mut claims = Vec::new();
    let mut all_faults = Vec::new();
    for plugin in plugins {
        let info = plugin.info();
        if bundle.cancelled() {
            break;
        }
        let detected = plugin.detect(Arc::new(bundle.clone()));
        let faults = bundle.take_faults();
        match detected {
            Err(_) if !faults.is_empty() => return Err(faults),
            Ok(found) => claims.extend(found.into_iter().map(|detection| Claim {
                confidence: detection.confidence,
                found: DetectedExport {
                    reader: ExportReader::Plugin(plugin.clone()),
                    format: detection.format,
                    files: detection.files,
                },
            })),
            Err(error) => {
                let message = format!("the importer could not look at the files: {}", chain(&error));
                notes.push(Warning { locator: info.name.clone(), message });
            }
        }
        all_faults.extend(faults);
    }
    Ok((claims, all_faults))
}

/// Assigns each file to the claim with the highest confidence.
fn assign_files(mut claims: Vec<Claim>) -> Vec<DetectedExport> {
    claims.sort_by_cached_key(|claim| (std::cmp::Reverse(claim.confidence), claim.found.reader.software()));
    let mut taken = BTreeSet::new();
    let mut all: Vec<DetectedExport> = claims.into_iter().map(|claim| claim.found).collect();
    for found in &mut all {
        found.files.retain(|file| taken.insert(file.clone()));
    }
    all.retain(|found| !found.files.is_empty());
    all
}
