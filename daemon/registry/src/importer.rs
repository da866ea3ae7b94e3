//! One importer of the set, which is loaded when it is first needed.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use glob::{MatchOptions, Pattern};
use satchel_host::{Host, HostError, Plugin, PluginLimits};
use satchel_plugins::BuiltIn;

use crate::{
    files,
    package::{AuthorKey, MAX_PACKAGE_BYTES, Package, PackageError},
    registry::Installed,
    retry_once::RetryOnce,
};

/// Highest confidence that counts for an installed importer: that of a built-in importer that found records of its own
/// format. So an importer that claims every file takes none from a built-in one that is sure.
const MAX_CONFIDENCE: u8 = 95;
/// Processor time of a run of an installed importer that does not depend on the size of the export.
const BASE_TIME: Duration = Duration::from_mins(2);
/// Bytes of an export for which an installed importer gets another second. The slowest guest that was measured
/// (JavaScript) reads nine times as many.
const BYTES_PER_SECOND: u64 = 1_000_000;

/// An importer: built in or installed.
pub struct Importer {
    origin: Origin,
    loaded: RetryOnce<Plugin>,
}

/// Where an importer comes from.
pub(crate) enum Origin {
    BuiltIn(&'static BuiltIn),
    Installed { installed: Box<Installed>, path: PathBuf },
}

/// The reason why an importer cannot run.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the importer {name:?} cannot be loaded: {problem}; {remedy}")]
pub struct PluginLoadError {
    name: String,
    problem: String,
    remedy: &'static str,
}

impl PluginLoadError {
    pub(crate) fn built_in(name: &str, error: &HostError) -> Self {
        let remedy = match error {
            // A resource of the machine is exhausted; the program itself is fine.
            HostError::Engine { .. } | HostError::Describe(_) => "try again",
            _ => "try again; if the error persists, reinstall satchel",
        };
        Self { name: name.to_owned(), problem: satchel_source::chain(error), remedy }
    }

    fn installed(name: &str, problem: String) -> Self {
        let remedy = "remove it with `satchel plugins remove` and install it again";
        Self { name: name.to_owned(), problem, remedy }
    }
}

impl Importer {
    pub(crate) fn new(origin: Origin) -> Self {
        Self { origin, loaded: RetryOnce::default() }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        match &self.origin {
            Origin::BuiltIn(built_in) => built_in.name,
            Origin::Installed { installed, .. } => &installed.manifest.name,
        }
    }

    /// Returns the platform whose exports it reads. A built-in importer is named after its platform.
    pub fn platform(&self) -> &str {
        match &self.origin {
            Origin::BuiltIn(built_in) => built_in.name,
            Origin::Installed { installed, .. } => &installed.manifest.platform,
        }
    }

    /// Returns its entry in the registry; `None` if it is built in.
    pub fn installed(&self) -> Option<&Installed> {
        if let Origin::Installed { installed, .. } = &self.origin { Some(installed) } else { None }
    }

    /// Returns the author's key; `None` if it is built in or unsigned.
    pub fn signer(&self) -> Option<&AuthorKey> {
        self.installed()?.signer.as_ref()
    }

    /// Returns whether it may be asked about a source with a file of this name (its last component). A built-in
    /// importer may always be asked.
    pub fn fits_name(&self, name: &str) -> bool {
        let Some(installed) = self.installed() else { return true };
        let options = MatchOptions { case_sensitive: false, ..MatchOptions::default() };
        let patterns = installed.manifest.files.iter().filter_map(|pattern| Pattern::new(pattern).ok());
        patterns.into_iter().any(|pattern| pattern.matches_with(name, options))
    }

    /// Returns the texts of which one has to be near the start of a file that fits; empty if there is no such rule.
    pub fn required_texts(&self) -> &[String] {
        self.installed().map_or(&[], |installed| &installed.manifest.contains)
    }

    /// Returns the confidence that counts when two importers claim a file.
    pub fn capped_confidence(&self, confidence: u8) -> u8 {
        if self.installed().is_some() { confidence.min(MAX_CONFIDENCE) } else { confidence }
    }

    /// Returns the limits of a run over an export of `bytes`: the memory that its manifest asks for, and time in
    /// proportion to the export.
    pub fn limits(&self, base: &PluginLimits, bytes: u64) -> PluginLimits {
        let Some(installed) = self.installed() else { return base.clone() };
        let total = BASE_TIME.saturating_add(Duration::from_secs(bytes / BYTES_PER_SECOND)).min(base.total);
        let memory_bytes = usize::try_from(installed.manifest.memory_mib).unwrap_or(usize::MAX) << 20;
        PluginLimits { memory_bytes, total, ..base.clone() }
    }

    /// Returns whether it has been compiled, or read from the cache.
    pub fn is_loaded(&self) -> bool {
        self.loaded().is_some()
    }

    pub(crate) fn loaded(&self) -> Option<&Plugin> {
        self.loaded.get()
    }

    /// Returns the importer ready to run, compiling it or reading it from the cache at the first call.
    pub(crate) fn load(&self, host: &Host) -> Result<&Plugin, PluginLoadError> {
        self.loaded.get_or_try_init(|| match &self.origin {
            Origin::BuiltIn(built_in) => {
                host.load(built_in.wasm).map_err(|error| PluginLoadError::built_in(built_in.name, &error))
            }
            Origin::Installed { installed, path } => load_installed(host, installed, path),
        })
    }
}

/// Reads a package again and loads it, if it is the one that was installed.
fn load_installed(host: &Host, installed: &Installed, path: &Path) -> Result<Plugin, PluginLoadError> {
    let failed = |problem: String| PluginLoadError::installed(&installed.manifest.name, problem);
    let package = read_installed(installed, path).map_err(failed)?;
    let plugin = host.load(package.bytes()).map_err(|error| failed(satchel_source::chain(&error)))?;
    // Under the same name and version other bytes may have run before: what those remembered is not theirs.
    Ok(plugin.with_memo_scope(format!("{}/{}", installed.manifest.name, installed.sha256)))
}

/// Reads the package at `path`, and checks that it is the one that was installed.
///
/// # Errors
/// Fails with the problem as a text: the file cannot be read, or it was changed.
pub(crate) fn read_installed(installed: &Installed, path: &Path) -> Result<Package, String> {
    let bytes = files::read_limited(path, MAX_PACKAGE_BYTES as u64)
        .map_err(|error| format!("its file {path:?} cannot be read: {error}"))?;
    let package = Package::read(bytes).map_err(|error: PackageError| error.to_string())?;
    if package.sha256_hex() != installed.sha256 || package.signer() != installed.signer.as_ref() {
        return Err(format!("its file {path:?} was changed after it was installed"));
    }
    Ok(package)
}
