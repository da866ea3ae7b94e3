//! Builds an importer in Python with componentize-py, which pip installs.

use std::{fs, path::Path, process::Command};

use super::{BuildProjectError, Component, Progress, process};
use crate::language::Language;

/// The tool in the project's own environment.
const OWN_TOOL: &str = ".venv/bin/componentize-py";
/// The tool on the path.
const TOOL: &str = "componentize-py";
/// The folder of the author's modules; the entry is `app.py` in it.
const SOURCES: &str = "src";
const ENTRY: &str = "app";

pub(super) fn component(
    folder: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Component, BuildProjectError> {
    let own = folder.join(OWN_TOOL);
    let tool = if own.is_file() { own } else { TOOL.into() };
    let entry = folder.join(SOURCES).join(ENTRY).with_extension("py");
    if !entry.is_file() {
        return Err(BuildProjectError::Source { path: entry, problem: "does not exist".to_owned() });
    }
    let version = Command::new(&tool).arg("--version").output().ok().filter(|output| output.status.success());
    let version = version.ok_or(BuildProjectError::MissingTool {
        tool: TOOL,
        language: Language::Python,
        get: &["python3 -m venv .venv", ".venv/bin/pip install -r requirements.txt"],
    })?;
    let toolchain = String::from_utf8_lossy(&version.stdout).trim().to_owned();

    let refused = |source| BuildProjectError::Io { path: std::env::temp_dir(), source };
    let output = tempfile::tempdir().map_err(refused)?;
    let wasm = output.path().join("component.wasm");
    let mut command = Command::new(tool);
    command.current_dir(folder).args(["--wit-path", "sdk/wit", "--world", "importer", "componentize"]);
    // The sandbox has no WASI.
    command.args(["--stub-wasi", "-p", SOURCES, "-p", "sdk/python", ENTRY, "-o"]).arg(&wasm);
    // The interpreter's state becomes part of the component. Fewer things in it differ from build to build this way, but
    // not none: componentize-py draws random keys of its own.
    command.env("PYTHONHASHSEED", "0").env("PYTHONDONTWRITEBYTECODE", "1");
    process::run(command, progress)?;
    let wasm = fs::read(&wasm).map_err(|source| BuildProjectError::Io { path: wasm.clone(), source })?;
    Ok(Component { wasm, toolchain })
}
