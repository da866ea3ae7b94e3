//! Builds an importer in JavaScript with componentize-qjs, which npm installs into the project.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use super::{BuildProjectError, Component, Progress, process};
use crate::language::Language;

/// The tool, relative to the project's folder.
const TOOL: &str = "node_modules/.bin/componentize-qjs";
/// The entry of a project whose `package.json` names none.
const DEFAULT_ENTRY: &str = "src/importer.js";

pub(super) fn component(
    folder: &Path,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Component, BuildProjectError> {
    let tool = folder.join(TOOL);
    if !tool.is_file() {
        return Err(BuildProjectError::MissingTool {
            tool: "componentize-qjs",
            language: Language::JavaScript,
            get: &["npm install", "it needs Node.js 20 or later with npm: https://nodejs.org"],
        });
    }
    let package = json(&folder.join("package.json"))?;
    let entry = package.get("main").and_then(Value::as_str).unwrap_or(DEFAULT_ENTRY);
    if !folder.join(entry).is_file() {
        let problem = format!("names {entry:?} as `main`, which does not exist");
        return Err(BuildProjectError::Source { path: folder.join("package.json"), problem });
    }
    let version = json(&folder.join("node_modules/componentize-qjs/package.json"))?;
    let version = version.get("version").and_then(Value::as_str).unwrap_or("of unknown version").to_owned();

    let refused = |source| BuildProjectError::Io { path: std::env::temp_dir(), source };
    let output = tempfile::tempdir().map_err(refused)?;
    let wasm = output.path().join("component.wasm");
    let mut command = Command::new(tool);
    command.current_dir(folder).args(["--wit", "sdk/wit", "--world", "importer", "--js", entry]);
    // `--stub-wasi`: the sandbox has no WASI. `--sync`: the contract has no asynchronous functions.
    command.args(["--module-root", ".", "--stub-wasi", "--sync", "--output"]).arg(&wasm);
    process::run(command, progress)?;
    let wasm = fs::read(&wasm).map_err(|source| BuildProjectError::Io { path: wasm.clone(), source })?;
    Ok(Component { wasm, toolchain: format!("componentize-qjs {version}") })
}

fn json(path: &Path) -> Result<Value, BuildProjectError> {
    let text = fs::read(path).map_err(|source| BuildProjectError::Io { path: path.to_owned(), source })?;
    serde_json::from_slice(&text).map_err(|error| BuildProjectError::Source {
        path: path.to_owned(),
        problem: format!("is not valid JSON: {error}"),
    })
}
