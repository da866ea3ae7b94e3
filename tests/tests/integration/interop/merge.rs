//! A second implementation, written in Python from the text of the specification, verifies and merges like ours.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use satchel_tests::test_core::{TestCore, demo_folder};
use serde_json::Value;

fn run_reference(python: &Path, arguments: &[&Path]) -> Result<Output> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/interop/merge.py");
    // `-B`: Python writes no files beside the source.
    Ok(Command::new(python).arg("-B").arg(script).args(arguments).output()?)
}

fn vector_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/pam/vectors").join(name)
}

fn report(output: &Output) -> Result<Value> {
    serde_json::from_slice(&output.stdout).with_context(|| super::output_text(output))
}

#[test]
fn the_python_reference_agrees_on_every_vector() -> Result<()> {
    let Some(python) = super::python()? else { return Ok(()) };
    for (name, least) in [("merge.json", 20), ("signatures.json", 20)] {
        let output = run_reference(&python, &[Path::new("--vectors"), &vector_file(name)])?;
        ensure!(output.status.success(), "{name}: {}", super::output_text(&output));
        let cases = report(&output)?["cases"].as_u64().unwrap_or_default();
        ensure!(cases >= least, "{name} has {cases} cases");
    }
    Ok(())
}

#[test]
fn the_python_reference_detects_a_wrong_vector() -> Result<()> {
    let Some(python) = super::python()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    for (name, from, to) in [
        ("merge.json", "\"stays_retracted\"", "\"newer\""),
        ("signatures.json", "\"outcome\": \"invalid\"", "\"outcome\": \"valid\""),
    ] {
        let text = fs::read_to_string(vector_file(name))?;
        ensure!(text.contains(from), "nothing to change in {name}");
        let changed = folder.path().join(name);
        fs::write(&changed, text.replacen(from, to, 1))?;
        let output = run_reference(&python, &[Path::new("--vectors"), &changed])?;
        ensure!(output.status.code() == Some(1), "{name} with {to}: {}", super::output_text(&output));
    }
    Ok(())
}

/// Our bundle, verified and merged into an empty store, has the content that we claim; a changed one is rejected.
#[test]
fn the_python_reference_verifies_our_bundle() -> Result<()> {
    let Some(python) = super::python()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let bundle = super::export_bundle(folder.path())?;
    let output = run_reference(&python, &[&bundle, &bundle])?;
    ensure!(output.status.success(), "{}", super::output_text(&output));
    let found = report(&output)?;
    let store: Value = serde_json::from_slice(&fs::read(bundle.join("memory-store.json"))?)?;
    for key in ["checksum", "total_memories"] {
        ensure!(found["held"][key] == store["integrity"][key], "{key}: {found}");
    }
    ensure!(found["documents"][0]["signature"] == "valid", "{found}");
    let total = &store["integrity"]["total_memories"];
    ensure!(
        found["documents"][1]["done"]["memories"]["equal"] == *total,
        "merging twice changed the result: {found}"
    );
    let conversation = fs::read_dir(bundle.join("conversations"))?.next().context("a conversation")??.path();
    fs::write(&conversation, fs::read_to_string(&conversation)?.replacen("user", "USER", 1))?;
    let output = run_reference(&python, &[&bundle])?;
    ensure!(
        output.status.code() == Some(1),
        "a changed conversation was accepted: {}",
        super::output_text(&output)
    );
    Ok(())
}

/// A base and the changes since it, merged by the reference, equal our full export.
#[test]
fn the_python_reference_merges_our_changes_onto_their_base() -> Result<()> {
    let Some(python) = super::python()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let core = TestCore::open(&folder.path().join("data"))?;
    core.import(&demo_folder().join("chatgpt-export"))?;
    let at = |name: &str| folder.path().join(name);
    core.export(&at("base"))?;
    core.import(&demo_folder().join("claude-export"))?;
    core.export_changes(None, &at("early.zip"))?;
    let generated = at("generated");
    satchel_tests::generate::chatgpt(&generated, 300_000, 11)?;
    core.import(&generated)?;
    let delta = core.export_changes(None, &at("late"))?;
    ensure!(delta.base_export_id.is_some(), "{delta:?}");
    let whole = core.export(&at("whole"))?;
    for row in [vec![at("base"), at("late")], vec![at("base"), at("early.zip"), at("late"), at("late")]] {
        let paths: Vec<&Path> = row.iter().map(PathBuf::as_path).collect();
        let output = run_reference(&python, &paths)?;
        ensure!(output.status.success(), "{}", super::output_text(&output));
        let found = report(&output)?;
        ensure!(found["held"]["checksum"] == whole.checksum.as_str(), "{found}");
        ensure!(found["documents"][1]["signature"] == "valid", "{found}");
    }
    let there = TestCore::open(&at("there"))?;
    for name in ["base", "early.zip", "late"] {
        there.apply(&at(name))?;
    }
    ensure!(there.export(&at("again"))?.checksum == whole.checksum, "our merge differs");
    let output = run_reference(&python, &[&at("late")])?;
    ensure!(unknown_base_refused(&report(&output)?), "{}", super::output_text(&output));
    Ok(())
}

fn unknown_base_refused(found: &Value) -> bool {
    found["problems"]
        .as_array()
        .is_some_and(|problems| problems.iter().any(|one| one == "refused: unknown_base"))
}
