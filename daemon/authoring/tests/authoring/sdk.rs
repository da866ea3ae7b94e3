//! The SDK's crates outside this workspace.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use satchel_authoring::{language::Language, new::new};
use toml::{Table, Value};

fn table(path: &Path) -> Result<Table> {
    Ok(fs::read_to_string(path).with_context(|| path.display().to_string())?.parse()?)
}

fn version(dependency: &Value) -> Option<&Value> {
    dependency.get("version").or_else(|| dependency.is_str().then_some(dependency))
}

#[test]
fn copies_of_the_sdk_have_the_versions_of_the_workspace() -> Result<()> {
    let place = tempfile::tempdir()?;
    let project = place.path().join("notes");
    new("notes", Language::Rust, &project)?;
    let root = table(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"))?;
    let shared = &root["workspace"]["dependencies"];
    for name in ["pam", "importer"] {
        let text = fs::read_to_string(project.join("sdk").join(name).join("Cargo.toml"))?;
        assert!(!text.contains("workspace"), "{text}");
        let manifest: Table = text.parse()?;
        assert_eq!(manifest["package"]["version"], root["workspace"]["package"]["version"]);
        let mut compared = 0;
        let target = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
        let tables = target.map(|target| &target["dependencies"]).chain([&manifest["dependencies"]]);
        for (dependency, own) in tables.filter_map(Value::as_table).flatten() {
            let expected = shared.get(dependency).and_then(version);
            // The path between the two crates has the version under which they are published.
            let expected = expected.or(own.get("path").map(|_| &root["workspace"]["package"]["version"]));
            assert_eq!(version(own), expected, "{name}: {dependency}");
            compared += 1;
        }
        assert!(compared > 8, "{text}");
    }
    Ok(())
}

#[test]
fn the_crates_can_be_published() -> Result<()> {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk");
    for name in ["pam", "importer"] {
        let manifest = table(&sdk.join(name).join("Cargo.toml"))?;
        let package = manifest["package"].as_table().context("a package")?;
        assert!(!package.contains_key("publish") && package.contains_key("description"), "{package:?}");
    }
    // What `wit_bindgen` reads must be inside the crate.
    assert_eq!(fs::read(sdk.join("importer/wit/importer.wit"))?, fs::read(sdk.join("wit/importer.wit"))?);
    Ok(())
}
