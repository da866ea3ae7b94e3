//! A second implementation, written in Python from the text of the specification, verifies and merges like ours.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use satchel_tests::archive::{Archive, demo};
use serde_json::Value;

fn run(python: &Path, arguments: &[&Path]) -> Result<Output> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/merge.py");
    // `-B`: Python writes no files beside the source.
    Ok(Command::new(python).arg("-B").arg(script).args(arguments).output()?)
}

fn vectors(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/pam/vectors").join(name)
}

fn report(output: &Output) -> Result<Value> {
    serde_json::from_slice(&output.stdout).with_context(|| super::told(output))
}

#[test]
fn the_python_reference_agrees_on_every_vector() -> Result<()> {
    let Some(python) = super::python()? else { return Ok(()) };
    for (name, least) in [("merge.json", 20), ("signatures.json", 20)] {
        let output = run(&python, &[Path::new("--vectors"), &vectors(name)])?;
        ensure!(output.status.success(), "{name}: {}", super::told(&output));
        let cases = report(&output)?["cases"].as_u64().unwrap_or_default();
        ensure!(cases >= least, "{name} has {cases} cases");
    }
    Ok(())
}

#[test]
fn the_python_reference_notices_a_vector_that_is_wrong() -> Result<()> {
    let Some(python) = super::python()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    for (name, from, to) in [
        ("merge.json", "\"stays_retracted\"", "\"newer\""),
        ("signatures.json", "\"outcome\": \"invalid\"", "\"outcome\": \"valid\""),
    ] {
        let text = fs::read_to_string(vectors(name))?;
        ensure!(text.contains(from), "nothing to change in {name}");
        let changed = folder.path().join(name);
        fs::write(&changed, text.replacen(from, to, 1))?;
        let output = run(&python, &[Path::new("--vectors"), &changed])?;
        ensure!(output.status.code() == Some(1), "{name} with {to}: {}", super::told(&output));
    }
    Ok(())
}

/// Our bundle, verified and merged into an empty store, has the content that we claim; a changed one is rejected.
#[test]
fn the_python_reference_verifies_our_bundle() -> Result<()> {
    let Some(python) = super::python()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let bundle = super::bundle(folder.path())?;
    let output = run(&python, &[&bundle, &bundle])?;
    ensure!(output.status.success(), "{}", super::told(&output));
    let found = report(&output)?;
    let store: Value = serde_json::from_slice(&fs::read(bundle.join("memory-store.json"))?)?;
    for key in ["checksum", "total_memories"] {
        ensure!(found["held"][key] == store["integrity"][key], "{key}: {found}");
    }
    ensure!(found["documents"][0]["signature"] == "valid", "{found}");
    let total = &store["integrity"]["total_memories"];
    ensure!(found["documents"][1]["done"]["memories"]["equal"] == *total, "twice is not once: {found}");
    let conversation = fs::read_dir(bundle.join("conversations"))?.next().context("a conversation")??.path();
    fs::write(&conversation, fs::read_to_string(&conversation)?.replacen("user", "USER", 1))?;
    let output = run(&python, &[&bundle])?;
    ensure!(output.status.code() == Some(1), "a changed conversation was accepted: {}", super::told(&output));
    Ok(())
}

/// A base and the changes since it, merged by the reference, equal our full export.
#[test]
fn the_python_reference_merges_our_changes_onto_their_base() -> Result<()> {
    let Some(python) = super::python()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let archive = Archive::open(&folder.path().join("data"))?;
    archive.import(&demo().join("chatgpt-export"))?;
    let at = |name: &str| folder.path().join(name);
    archive.export(&at("base"))?;
    archive.import(&demo().join("claude-export"))?;
    archive.export_changes(None, &at("early.zip"))?;
    let generated = at("generated");
    satchel_tests::generate::chatgpt(&generated, 300_000, 11)?;
    archive.import(&generated)?;
    let delta = archive.export_changes(None, &at("late"))?;
    ensure!(delta.base_export_id.is_some(), "{delta:?}");
    let whole = archive.export(&at("whole"))?;
    for row in [vec![at("base"), at("late")], vec![at("base"), at("early.zip"), at("late"), at("late")]] {
        let paths: Vec<&Path> = row.iter().map(PathBuf::as_path).collect();
        let output = run(&python, &paths)?;
        ensure!(output.status.success(), "{}", super::told(&output));
        let found = report(&output)?;
        ensure!(found["held"]["checksum"] == whole.checksum.as_str(), "{found}");
        ensure!(found["documents"][1]["signature"] == "valid", "{found}");
    }
    let there = Archive::open(&at("there"))?;
    for name in ["base", "early.zip", "late"] {
        there.apply(&at(name))?;
    }
    ensure!(there.export(&at("again"))?.checksum == whole.checksum, "we merge otherwise");
    let output = run(&python, &[&at("late")])?;
    ensure!(told_refused(&report(&output)?), "{}", super::told(&output));
    Ok(())
}

fn told_refused(found: &Value) -> bool {
    found["problems"]
        .as_array()
        .is_some_and(|problems| problems.iter().any(|one| one == "refused: unknown_base"))
}
