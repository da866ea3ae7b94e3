//! Other programs work with ours: the official SDK and the few lines of Python in the README verify our bundles, we
//! store everything that the SDK reads from an export, and clients in Python and Node call the daemon.

#![expect(clippy::print_stderr, reason = "a skipped test prints the reason")]

mod clients;
mod convert;
mod import;
mod merge;
mod validate;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use satchel_tests::test_core::{TestCore, demo_folder, shared_samples};

/// Returns the Python that has the SDK. A missing SDK is an error only if the environment requires it.
fn python() -> Result<Option<PathBuf>> {
    python_with("portable_ai_memory, rfc8785, cryptography")
}

/// Returns the Python that has these modules.
fn python_with(modules: &str) -> Result<Option<PathBuf>> {
    let python = std::env::var_os("SATCHEL_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let probe = Command::new(&python).arg("-c").arg(format!("import {modules}")).output();
    if probe.is_ok_and(|output| output.status.success()) {
        return Ok(Some(python));
    }
    missing(&format!("{python:?} lacks one of {modules} (set SATCHEL_PYTHON)"))
}

/// Says that a test is skipped. If the environment requires these tests, it is an error.
fn missing<T>(what: &str) -> Result<Option<T>> {
    ensure!(std::env::var_os("SATCHEL_INTEROP").is_none(), "{what}, and this run requires it");
    eprintln!("skipped: {what}");
    Ok(None)
}

fn export_bundle(folder: &Path) -> Result<PathBuf> {
    let core = TestCore::open(&folder.join("data"))?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    core.import(&demo_folder().join("claude-export"))?;
    let generated = folder.join("generated");
    satchel_tests::generate::chatgpt(&generated, 300_000, 11)?;
    core.import(&generated)?;
    if let Some(samples) = shared_samples() {
        for provider in ["chatgpt", "claude", "authored/chatgpt", "authored/claude"] {
            core.import(&samples.join(provider))?;
        }
    }
    let bundle = folder.join("bundle");
    core.export(&bundle)?;
    Ok(bundle)
}

/// Returns the official program, from the folder of its Python if it is there.
fn pam_program(python: &Path) -> PathBuf {
    let beside = python.parent().map(|bin| bin.join("pam")).filter(|pam| pam.exists());
    beside.unwrap_or_else(|| "pam".into())
}

fn output_text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_official_sdk_accepts_our_bundle() -> Result<()> {
    let Some(python) = python()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let bundle = export_bundle(folder.path())?;
    let output =
        Command::new(pam_program(&python)).arg("validate").arg(&bundle).env("COLUMNS", "200").output()?;
    ensure!(output.status.success(), "pam validate refuses the bundle:\n{}", output_text(&output));
    Ok(())
}

/// Returns the program in the README as a reader would copy it.
fn readme_program() -> Result<String> {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md"))?;
    let (_, rest) = readme.split_once("```python\n").context("the README has a Python program")?;
    Ok(rest.split_once("```").context("the program ends")?.0.to_owned())
}

#[test]
fn the_python_program_of_the_readme_verifies_our_bundle_and_refuses_a_changed_one() -> Result<()> {
    let Some(python) = python()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let bundle = export_bundle(folder.path())?;
    let check = |bundle: &Path| -> Result<Output> {
        Ok(Command::new(&python).arg("-c").arg(readme_program()?).arg(bundle).output()?)
    };
    let output = check(&bundle)?;
    ensure!(
        output.status.success() && output_text(&output).contains("valid, signed by z6Mk"),
        "{}",
        output_text(&output)
    );
    let store = bundle.join("memory-store.json");
    let text = fs::read_to_string(&store)?;
    for (from, to) in
        [("\"content\": \"", "\"content\": \"Not: "), ("\"export_id\": \"", "\"export_id\": \"0")]
    {
        ensure!(text.contains(from), "nothing to change");
        fs::write(&store, text.replacen(from, to, 1))?;
        ensure!(!check(&bundle)?.status.success(), "a changed {from} was accepted");
    }
    fs::write(&store, &text)?;
    let conversation = fs::read_dir(bundle.join("conversations"))?.next().context("a conversation")??.path();
    fs::write(&conversation, fs::read_to_string(&conversation)?.replacen("user", "USER", 1))?;
    ensure!(!check(&bundle)?.status.success(), "a changed conversation was accepted");
    Ok(())
}
