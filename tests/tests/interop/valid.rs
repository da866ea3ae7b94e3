//! The official validator accepts every bundle, whatever happened before it.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use satchel_tests::histories::History;
use serde_json::Value;

/// Histories, and what happens in each.
const HISTORIES: u64 = 2;
const STEPS: usize = 20;

/// One process for all bundles: to start Python takes longer than to validate one.
#[test]
fn the_official_sdk_accepts_every_bundle_of_every_history() -> Result<()> {
    let Some(python) = super::python()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let mut told = BTreeMap::new();
    for seed in 0..HISTORIES {
        let place = folder.path().join(seed.to_string());
        let made = History::new(&place, 100 + seed)?.run(STEPS)?;
        told.extend(made.into_iter().map(|made| (made.path.display().to_string(), made.told)));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/valid.py");
    let mut child = Command::new(&python)
        .arg("-B")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let paths: Vec<&str> = told.keys().map(String::as_str).collect();
    let lines = paths.join("\n") + "\n";
    child.stdin.take().context("an input")?.write_all(lines.as_bytes())?;
    let output = child.wait_with_output()?;
    let problems: BTreeMap<String, Value> =
        serde_json::from_slice(&output.stdout).with_context(|| super::told(&output))?;
    if let Some((path, problems)) = problems.iter().next() {
        anyhow::bail!("{problems} after {}", told[path]);
    }
    ensure!(output.status.success() && told.len() >= 2 * STEPS, "{}", super::told(&output));
    Ok(())
}
