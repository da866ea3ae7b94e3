//! Makes the package of a project: the component, its manifest, and the author's signature.

mod javascript;
mod process;
mod python;
mod rust;

use std::{
    io,
    path::{Path, PathBuf},
};

use ed25519_dalek::SigningKey;
use satchel_host::{Host, HostError, HostOptions, Plugin};
use satchel_plugins_build::BuildError;
use satchel_registry::package::{AuthorKey, Package, PackageError};

use crate::{
    atomic::{self, Existing},
    language::Language,
    project::{Project, ProjectError},
};

/// The contract of an importer that imports nothing of it.
const OLDEST_API: &str = "1.0.0";
/// Permissions of a package, less those that the person's umask takes away.
const PACKAGE_MODE: u32 = 0o666;

/// What a build reports while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A step begins.
    Step(&'a str),
    /// A line that a tool printed.
    Output(&'a str),
}

/// A package that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The package `NAME-VERSION.satchel`, in the project's folder.
    pub path: PathBuf,
    /// The importer's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The SHA-256 of the file as 64 hex digits.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
    /// The tools that built it.
    pub toolchain: String,
    /// The key that signed it.
    pub signer: Option<AuthorKey>,
}

/// Why a project cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildProjectError {
    /// The project's description is not valid.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A tool is not on this machine.
    #[error("{tool} is needed to build an importer in {language}, and it is not installed; get it with:\n{}", indented(.get))]
    MissingTool { tool: &'static str, language: Language, get: &'static [&'static str] },
    /// A tool cannot be started.
    #[error("cannot run {program:?}")]
    Start { program: PathBuf, source: io::Error },
    /// A tool failed.
    #[error("{program:?} failed:\n{output}")]
    Tool { program: PathBuf, output: String },
    /// The project's own files are not as the tool needs them.
    #[error("{path:?} {problem}")]
    Source { path: PathBuf, problem: String },
    /// The module does not become a component of the contract.
    #[error("the importer does not fit the contract in sdk/wit")]
    Component(#[source] BuildError),
    /// The sandbox refuses the component.
    #[error("the importer was built, but Satchel cannot load it")]
    Load(#[source] HostError),
    /// The package would not be valid.
    #[error("the importer was built, but it cannot be packed")]
    Package(#[source] PackageError),
    /// The file system refuses.
    #[error("cannot read or write {path:?}")]
    Io { path: PathBuf, source: io::Error },
}

/// A component, and the tools that built it.
struct Component {
    wasm: Vec<u8>,
    toolchain: String,
}

/// Builds the project in `folder`, and signs the package if there is a `key`.
///
/// # Errors
/// The project is not valid, a tool is missing or fails, or the component is not an importer.
pub fn build(
    folder: &Path,
    key: Option<&SigningKey>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Built, BuildProjectError> {
    let project = Project::read(folder)?;
    // Paths in the component are replaced, so the folder must be as the compiler sees it.
    let folder =
        folder.canonicalize().map_err(|source| BuildProjectError::Io { path: folder.to_owned(), source })?;
    progress(Progress::Step("building the component"));
    let Component { wasm, toolchain } = match project.language {
        Language::Rust => rust::component(&folder, progress),
        Language::JavaScript => javascript::component(&folder, progress),
        Language::Python => python::component(&folder, progress),
    }?;
    progress(Progress::Step("loading it in the sandbox"));
    let host = Host::new(HostOptions::default()).map_err(BuildProjectError::Load)?;
    let plugin = host.load(&wasm).map_err(BuildProjectError::Load)?;
    let manifest = project.manifest(plugin.info(), &api(&plugin), &toolchain);
    let mut package = Package::pack(&wasm, &manifest).map_err(BuildProjectError::Package)?;
    if let Some(key) = key {
        package = package.sign(key).map_err(BuildProjectError::Package)?;
    }
    let path = project.folder.join(package.file_name());
    progress(Progress::Step("writing the package"));
    atomic::write(&path, package.bytes(), PACKAGE_MODE, Existing::Replace)
        .map_err(|source| BuildProjectError::Io { path: path.clone(), source })?;
    Ok(Built {
        path,
        name: package.manifest().name.clone(),
        version: package.manifest().version.clone(),
        sha256: package.sha256_hex(),
        bytes: package.bytes().len() as u64,
        toolchain,
        signer: package.signer().copied(),
    })
}

/// Returns the highest version of `satchel:importer` that the component imports.
fn api(plugin: &Plugin) -> String {
    let versions =
        plugin.imports().iter().filter_map(|import| import.split_once('@')).map(|(_, version)| version);
    let numbers =
        |version: &&str| version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u64>>();
    versions.max_by_key(numbers).unwrap_or(OLDEST_API).to_owned()
}

fn indented(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
