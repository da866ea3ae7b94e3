//! An importer that is ready to run, from a component or a package.

use satchel_host::{CodeCache, Host, HostError, HostOptions, Plugin, PluginLimits};
use satchel_registry::package::{MAX_MANIFEST_BYTES, Manifest, Package, PackageError};

/// The name of the section by which a package is told from a plain component.
const MANIFEST_SECTION: &[u8] = b"satchel:manifest";
/// Bytes of a signature's section, and of the heads of both sections, generously.
const SIGNATURE_BYTES: usize = 4 << 10;

/// The reason why an importer cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file is a damaged package.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The component is refused.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// An importer that is ready to run.
pub struct LoadedImporter {
    plugin: Plugin,
    package: Package,
    limits: PluginLimits,
}

impl LoadedImporter {
    /// Checks and compiles a component or a package. The memory limit of a package is the one that its manifest asks
    /// for. `cache` keeps the compiled code.
    ///
    /// # Errors
    /// The file is neither, or is damaged.
    pub fn load(bytes: &[u8], cache: Option<CodeCache>) -> Result<Self, LoadError> {
        let given = if is_package(bytes) { Some(Package::read(bytes.to_vec())?) } else { None };
        let host = Host::new(HostOptions { cache, ..HostOptions::default() })?;
        let plugin = host.load(bytes)?;
        let package = match given {
            Some(package) => package,
            None => Package::pack(bytes, &manifest_of(&plugin))?,
        };
        let memory_bytes = usize::try_from(package.manifest().memory_mib).unwrap_or(usize::MAX) << 20;
        let limits = PluginLimits { memory_bytes, ..PluginLimits::default() };
        Ok(Self { plugin, package, limits })
    }

    /// Returns the compiled importer.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// Returns the package. A plain component has one that claims files of every name.
    pub fn package(&self) -> &Package {
        &self.package
    }

    /// Returns the limits of its runs.
    pub fn limits(&self) -> &PluginLimits {
        &self.limits
    }
}

/// Returns whether the file has the manifest of a package at its end.
fn is_package(bytes: &[u8]) -> bool {
    let end = bytes.len().saturating_sub(MAX_MANIFEST_BYTES + SIGNATURE_BYTES);
    bytes[end..].windows(MANIFEST_SECTION.len()).any(|part| part == MANIFEST_SECTION)
}

/// Returns a manifest for a component that has none.
fn manifest_of(plugin: &Plugin) -> Manifest {
    let info = plugin.info().clone();
    Manifest {
        manifest_version: satchel_registry::package::MANIFEST_VERSION,
        name: info.name,
        version: info.version,
        platform: info.platform,
        importer_version: info.importer_version,
        formats: info.formats,
        api: "1.0.0".to_owned(),
        description: "A component without a manifest".to_owned(),
        authors: vec!["unknown".to_owned()],
        license: "unknown".to_owned(),
        homepage: None,
        files: vec!["*".to_owned()],
        contains: Vec::new(),
        memory_mib: 128,
        toolchain: String::new(),
    }
}
