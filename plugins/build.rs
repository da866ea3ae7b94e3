//! Builds the first-party importers into components and writes their list.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use satchel_plugins_build::{Guests, check, componentize, uses_simd};

/// The importers' folders; the packages are `satchel-plugin-<folder>`.
const IMPORTERS: [&str; 21] = [
    "chatgpt",
    "claude",
    "claude-code",
    "codex",
    "copilot",
    "deepseek",
    "dti",
    "gemini",
    "gemini-cli",
    "goose",
    "grok",
    "jan",
    "librechat",
    "lm-studio",
    "memu",
    "mistral",
    "open-webui",
    "opencode",
    "perplexity",
    "snapchat",
    "vscode-copilot",
];

fn main() {
    if let Err(error) = build() {
        let causes = std::iter::successors(Some(&*error), |&cause| cause.source());
        let chain: Vec<String> = causes.map(ToString::to_string).collect();
        println!("cargo::error={}", chain.join(": "));
    }
}

fn build() -> Result<(), Box<dyn Error>> {
    let plugins = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let workspace = plugins.parent().ok_or("the folder `plugins` has no parent")?;
    rerun_if_changed(&plugins, workspace);
    let packages: Vec<String> = IMPORTERS.iter().map(|name| format!("satchel-plugin-{name}")).collect();
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let modules = Guests { workspace, packages: &packages }.build()?;

    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut list = String::from("&[\n");
    for (name, module) in IMPORTERS.iter().zip(modules) {
        if !uses_simd(&module) {
            let problem = "was built without SIMD: some configuration overrides the compiler flags";
            return Err(format!("{name} {problem}").into());
        }
        let component = componentize(&module)?;
        check(&component, &workspace.join("sdk/wit"))?;
        fs::write(out.join(format!("{name}.wasm")), component)?;
        writeln!(list, "    BuiltIn {{ name: {name:?}, wasm: include_bytes!(\"{name}.wasm\") }},")?;
    }
    list.push(']');
    fs::write(out.join("built_in.rs"), list)?;
    Ok(())
}

/// Tells cargo what the components depend on.
fn rerun_if_changed(plugins: &Path, workspace: &Path) {
    let importers =
        IMPORTERS.iter().flat_map(|name| ["src", "Cargo.toml"].map(|part| plugins.join(name).join(part)));
    let shared =
        ["sdk/wit", "sdk/pam/src", "sdk/pam/Cargo.toml", "sdk/importer/src", "sdk/importer/Cargo.toml"];
    let manifests = ["Cargo.toml", "Cargo.lock"];
    for path in importers.chain(shared.iter().chain(&manifests).map(|path| workspace.join(path))) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
