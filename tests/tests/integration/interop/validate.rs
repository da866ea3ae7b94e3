//! The official validator accepts every bundle, whatever happened before it.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use satchel_core::export::{ExportRequest, Selection};
use satchel_tests::{
    histories::History,
    samples::{copy, samples},
    test_core::{TestCore, full_export},
};
use serde_json::Value;

/// Number of histories, and number of steps in each.
const HISTORIES: u64 = 2;
const STEPS: usize = 20;

/// One process validates all bundles, because starting Python takes longer than validating one bundle.
#[test]
fn the_official_sdk_accepts_every_bundle_of_every_history() -> Result<()> {
    let Some(python) = super::python()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let mut descriptions = BTreeMap::new();
    for seed in 0..HISTORIES {
        let history_folder = folder.path().join(seed.to_string());
        let made = History::new(&history_folder, 100 + seed)?.run(STEPS)?;
        descriptions.extend(made.into_iter().map(|made| (made.plain.display().to_string(), made.steps)));
    }
    validate(&python, &descriptions)?;
    ensure!(descriptions.len() >= 2 * STEPS, "{descriptions:?}");
    Ok(())
}

#[test]
fn the_official_sdk_accepts_a_stripped_export_of_every_importers_fixtures() -> Result<()> {
    let Some(python) = super::python()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let mut descriptions = BTreeMap::new();
    for built_in in satchel_plugins::BUILT_IN {
        let history_folder = folder.path().join(built_in.name);
        let core = TestCore::open(&history_folder.join("data"))?;
        for sample in samples()?.iter().filter(|sample| sample.provider == built_in.name) {
            let export = history_folder.join(&sample.behaviour);
            copy(&sample.input, &export)?;
            core.import(&export)?;
        }
        let out = history_folder.join("stripped");
        let selection = Selection { strip: true, ..Selection::default() };
        core.export_with(&ExportRequest { selection, attachments: true, ..full_export(out.clone()) })?;
        descriptions.insert(out.display().to_string(), format!("the fixtures of {}", built_in.name));
    }
    validate(&python, &descriptions)
}

/// Fails at the first bundle in which the official program finds a problem; `descriptions` says how each one was made.
pub(crate) fn validate(python: &Path, descriptions: &BTreeMap<String, String>) -> Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/interop/validate.py");
    let mut child = Command::new(python)
        .arg("-B")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let paths: Vec<&str> = descriptions.keys().map(String::as_str).collect();
    let lines = paths.join("\n") + "\n";
    child.stdin.take().context("an input")?.write_all(lines.as_bytes())?;
    let output = child.wait_with_output()?;
    let problems: BTreeMap<String, Value> =
        serde_json::from_slice(&output.stdout).with_context(|| super::output_text(&output))?;
    if let Some((path, problems)) = problems.iter().next() {
        anyhow::bail!("{problems} after {}", descriptions[path]);
    }
    ensure!(output.status.success(), "{}", super::output_text(&output));
    Ok(())
}
