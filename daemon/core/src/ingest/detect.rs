//! Finds the exports in a source and the reader of each.

mod assign;
mod signatures;

use std::{collections::BTreeSet, sync::Arc};

use satchel_host::Plugin;
use satchel_pam::record::Warning;
use satchel_registry::{Importer, PluginLoadError, Plugins};
use satchel_source::{
    Bundle, FileSet as _, ReadFault, chain,
    pam::{self as documents, PamFiles},
};

use super::{pam, request::PAM_PLATFORM};

/// An importer that is ready to run.
#[derive(Clone)]
pub(super) struct LoadedImporter {
    pub(super) importer: Arc<Importer>,
    pub(super) plugin: Plugin,
}

/// The importers that may claim files.
pub(super) struct Only {
    /// Those of these platforms; empty: of all.
    pub(super) platforms: Vec<String>,
    /// The one of this name.
    pub(super) plugin: Option<String>,
}

impl Only {
    fn allows(&self, importer: &Importer) -> bool {
        self.allows_platform(importer.platform())
            && self.plugin.as_deref().is_none_or(|name| name == importer.name())
    }

    fn allows_platform(&self, platform: &str) -> bool {
        self.platforms.is_empty() || self.platforms.iter().any(|one| one == platform)
    }
}

/// The reader of an export.
pub(super) enum ExportReader {
    /// An importer in the sandbox.
    Plugin(LoadedImporter),
    /// Satchel's own reader: PAM is the model in which everything is stored, so there is no mapping that a plugin could
    /// do better.
    Pam(PamFiles),
}

impl ExportReader {
    /// Returns the platform, as used to select importers.
    pub(super) fn platform(&self) -> &str {
        match self {
            Self::Plugin(loaded) => &loaded.plugin.info().platform,
            Self::Pam(_) => PAM_PLATFORM,
        }
    }

    /// Returns name and version, as `name/x.y.z`.
    pub(super) fn software(&self) -> String {
        match self {
            Self::Plugin(loaded) => {
                let info = loaded.plugin.info();
                format!("{}/{}", info.name, info.version)
            }
            Self::Pam(_) => pam::SOFTWARE.to_owned(),
        }
    }

    /// Returns the importer, if it is an installed one.
    pub(super) fn installed(&self) -> Option<&Importer> {
        match self {
            Self::Plugin(loaded) => Some(&*loaded.importer).filter(|importer| importer.installed().is_some()),
            Self::Pam(_) => None,
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
/// files until all of those are claimed with high confidence by built-in importers. Installed importers are asked if
/// the source has a file that fits their manifest. `only` restricts detection to some importers.
///
/// # Errors
/// When a built-in importer does not load.
pub(super) fn detect(
    plugins: &Arc<Plugins>,
    bundle: &Bundle,
    only: &Only,
) -> Result<DetectionResult, PluginLoadError> {
    // Discard faults that were recorded before detection.
    drop(bundle.take_faults());
    let mut all = Vec::new();
    if only.allows_platform(PAM_PLATFORM) && only.plugin.is_none() {
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
        let mut survey =
            Survey { plugins, bundle: &rest, claims: Vec::new(), faults: Vec::new(), notes: &mut notes };
        if let Err(broken) = survey.ask_all(only)? {
            return Ok(DetectionResult::Broken(broken));
        }
        let Survey { claims, faults: more, .. } = survey;
        faults.extend(more);
        all.extend(assign::assign_files(claims, &mut notes));
    }
    all.sort_by(|one, other| one.files.cmp(&other.files));
    Ok(DetectionResult::Found(all, notes, faults))
}

/// The unreadable files that kept an importer from examining the others.
type AskResult = Result<(), Vec<ReadFault>>;

/// The claims of importers on the files of a source, as they are collected.
struct Survey<'a> {
    plugins: &'a Arc<Plugins>,
    bundle: &'a Bundle,
    claims: Vec<Claim>,
    /// Unreadable files that no importer needed.
    faults: Vec<ReadFault>,
    notes: &'a mut Vec<Warning>,
}

impl Survey<'_> {
    /// Asks the likely importers first; the other built-in ones only if files remain unclaimed.
    ///
    /// # Errors
    /// When a built-in importer does not load.
    fn ask_all(&mut self, only: &Only) -> Result<AskResult, PluginLoadError> {
        let importers = self.plugins.in_use();
        let wanted: Vec<Arc<Importer>> =
            importers.iter().filter(|importer| only.allows(importer)).cloned().collect();
        let candidates = signatures::candidates(self.bundle, &wanted);
        // An importer that needs the file runs into the same fault, and reports it.
        drop(self.bundle.take_faults());
        let signatures::Candidates { likely, others } = candidates;
        for importers in [likely, others] {
            if importers.is_empty()
                || (!self.claims.is_empty() && signatures::all_claimed(self.bundle, &self.claims))
            {
                continue;
            }
            // The import was cancelled, so no caller needs the answer.
            let Some(loaded) = self.plugins.load_until(&importers, &|| self.bundle.cancelled()) else {
                break;
            };
            for (importer, plugin) in importers.into_iter().zip(loaded) {
                if self.bundle.cancelled() {
                    break;
                }
                match plugin {
                    Ok(plugin) => {
                        if let Err(broken) = self.ask(LoadedImporter { importer, plugin }) {
                            return Ok(Err(broken));
                        }
                    }
                    Err(error) if importer.installed().is_none() => return Err(error),
                    Err(error) => self.note(&importer, error.to_string()),
                }
            }
        }
        Ok(Ok(()))
    }

    fn ask(&mut self, loaded: LoadedImporter) -> AskResult {
        let detected = loaded.plugin.detect(Arc::new(self.bundle.clone()));
        let faults = self.bundle.take_faults();
        match detected {
            Err(_) if !faults.is_empty() => return Err(faults),
            Ok(found) => self.claims.extend(found.into_iter().map(|detection| Claim {
                confidence: loaded.importer.capped_confidence(detection.confidence),
                found: DetectedExport {
                    reader: ExportReader::Plugin(loaded.clone()),
                    format: detection.format,
                    files: detection.files,
                },
            })),
            Err(error) => {
                self.note(
                    &loaded.importer,
                    format!("the importer could not look at the files: {}", chain(&error)),
                );
                self.plugins.record_run(&loaded.importer, Err(&error));
            }
        }
        self.faults.extend(faults);
        Ok(())
    }

    fn note(&mut self, importer: &Importer, message: String) {
        self.notes.push(Warning { locator: importer.name().to_owned(), message });
    }
}
