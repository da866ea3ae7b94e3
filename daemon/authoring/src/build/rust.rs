//! Builds an importer in Rust: cargo makes a core module, and that becomes a component.

use std::{
    fs,
    path::{Path, PathBuf},
};

use satchel_plugins_build::{BuildError, Project, Toolchain, cargo, check, componentize, uses_simd};
use serde::Deserialize;

use super::{BuildProjectError, Component, Progress, process};
use crate::language::Language;

const GET_RUST: &[&str] = &[
    "rustup target add wasm32-unknown-unknown",
    "or on Debian: apt-get install rustc-web cargo-web rust-web-src lld",
    "or, without rustup: see https://rustup.rs, then the first command",
];

/// The part of `cargo metadata` that is used.
#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    packages: Vec<PackageMetadata>,
}

#[derive(Deserialize)]
struct PackageMetadata {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<TargetMetadata>,
}

#[derive(Deserialize)]
struct TargetMetadata {
    name: String,
    crate_types: Vec<String>,
}

pub(super) fn component(
    folder: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Component, BuildProjectError> {
    let toolchain = Toolchain::find(folder).map_err(|error| match error {
        BuildError::NoToolchain => BuildProjectError::MissingTool {
            tool: "a Rust toolchain for wasm32-unknown-unknown",
            language: Language::Rust,
            get: GET_RUST,
        },
        error => BuildProjectError::Component(error),
    })?;
    let manifest = folder.join("Cargo.toml");
    let source_problem =
        |problem: &str| BuildProjectError::Source { path: manifest.clone(), problem: problem.to_owned() };
    let metadata = metadata(&toolchain, folder, &manifest)?;
    let package = metadata.packages.iter().find(|package| package.manifest_path == manifest);
    let package = package.ok_or_else(|| source_problem("has no package"))?;
    let is_module = |target: &&TargetMetadata| target.crate_types.iter().any(|kind| kind == "cdylib");
    let library = package.targets.iter().find(is_module).ok_or_else(|| {
        source_problem(
            "has no library of the type `cdylib`; add `[lib]` with `crate-type = [\"cdylib\", \"rlib\"]`",
        )
    })?;
    let project = Project {
        folder,
        workspace: &metadata.workspace_root,
        package: &package.name,
        library: &library.name,
    };
    process::run(project.command(&toolchain), progress)?;

    let path = project.module();
    let module = fs::read(&path).map_err(|source| BuildProjectError::Io { path: path.clone(), source })?;
    if !uses_simd(&module) {
        let problem = "was built without SIMD, which halves the speed: a configuration of cargo overrides the \
                       compiler flags, or the importer reads nothing with the SDK";
        return Err(BuildProjectError::Source { path, problem: problem.to_owned() });
    }
    let wasm = componentize(&module).map_err(BuildProjectError::Component)?;
    let wit = folder.join("sdk/wit");
    if wit.is_dir() {
        check(&wasm, &wit).map_err(BuildProjectError::Component)?;
    }
    Ok(Component { wasm, toolchain: toolchain.version().to_owned() })
}

fn metadata(toolchain: &Toolchain, folder: &Path, manifest: &Path) -> Result<Metadata, BuildProjectError> {
    let mut command = cargo(toolchain, folder);
    command.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]).arg(manifest);
    let program = PathBuf::from(command.get_program());
    let output =
        command.output().map_err(|source| BuildProjectError::Start { program: program.clone(), source })?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        return Err(BuildProjectError::Tool { program, output });
    }
    serde_json::from_slice(&output.stdout).map_err(|error| BuildProjectError::Source {
        path: manifest.to_owned(),
        problem: format!("is described by cargo in an unknown form: {error}"),
    })
}
