//! A project in Rust, from `new` to a signed package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use satchel_authoring::{
    build::{BuildProjectError, Built, Progress, build},
    keys,
    language::Language,
    new::new,
};
use satchel_registry::package::Package;

fn built(folder: &Path) -> Result<(Built, Vec<u8>)> {
    let mut output = String::new();
    let built = build(folder, None, &mut |progress| match progress {
        Progress::Step(text) | Progress::Output(text) => output.push_str(&format!("{text}\n")),
    });
    let built = built.with_context(|| output.clone())?;
    let bytes = fs::read(&built.path)?;
    Ok((built, bytes))
}

/// Runs the tests of the project itself. Its crates are those of this workspace, so nothing is downloaded.
fn own_tests_pass(folder: &Path) -> Result<()> {
    let cargo = std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from);
    let mut command = Command::new(cargo);
    command.args(["test", "--offline"]).current_dir(folder).env("CARGO_TARGET_DIR", folder.join("target"));
    let output = command.output()?;
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    ensure!(output.status.success() && text.contains("3 passed"), "{text}");
    Ok(())
}

/// One test for all that needs a guest, because each build takes half a minute.
#[test]
fn a_new_project_becomes_the_same_package_in_every_folder() -> Result<()> {
    let place = tempfile::tempdir()?;
    let folders = ["a", "in another/folder b"].map(|name| place.path().join(name));
    for folder in &folders {
        new("example-notes", Language::Rust, folder)?;
    }
    own_tests_pass(&folders[0])?;
    let locked = fs::read(folders[0].join("Cargo.lock"))?;
    let (first, bytes) = built(&folders[0])?;
    assert_eq!(built(&folders[0])?.1, bytes, "a second build");
    assert_eq!(built(&folders[1])?.1, bytes, "another folder");
    assert_eq!(fs::read(folders[1].join("Cargo.lock"))?, locked, "both have the versions of the program");

    assert_eq!(first.path, folders[0].join("example-notes-0.1.0.satchel"));
    assert!(first.toolchain.starts_with("rustc 1."), "{}", first.toolchain);
    let package = Package::read(bytes.clone())?;
    assert_eq!((package.sha256_hex(), package.signer()), (first.sha256, None));
    let manifest = package.manifest();
    assert_eq!((manifest.name.as_str(), manifest.version.as_str()), ("example-notes", "0.1.0"));
    assert_eq!((manifest.api.as_str(), manifest.memory_mib), ("1.0.0", 64));
    assert_eq!(manifest.formats, ["example-notes-importer/2026.01"]);
    let text = String::from_utf8_lossy(&bytes);
    assert!(
        !text.contains(place.path().to_string_lossy().as_ref()),
        "a path of this machine is in the package"
    );

    let key_file = place.path().join("author.key");
    let key = keys::key_new(&key_file)?;
    let signed = build(&folders[0], Some(&keys::load(&key_file)?), &mut |_| ())?;
    assert_eq!(signed.signer, Some(key));
    assert!(fs::read(&signed.path)?.starts_with(&bytes), "a signature is appended");

    refuses_a_project_that_does_not_compile(&folders[0])
}

fn refuses_a_project_that_does_not_compile(folder: &Path) -> Result<()> {
    let library = folder.join("src/lib.rs");
    let source = fs::read_to_string(&library)?;
    fs::write(&library, source.replace("export_importer!(", "export_importer!(Missing"))?;
    let refused = build(folder, None, &mut |_| ());
    assert!(
        matches!(&refused, Err(BuildProjectError::Tool { output, .. }) if output.contains("MissingExampleNotes")),
        "{refused:?}"
    );
    let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
    fs::write(folder.join("Cargo.toml"), manifest.replace("\"cdylib\", ", ""))?;
    let refused = build(folder, None, &mut |_| ()).map_err(|error| error.to_string());
    assert!(refused.is_err_and(|error| error.contains("has no library of the type `cdylib`")));
    Ok(())
}

#[test]
fn a_missing_tool_is_named_with_the_commands_that_get_it() -> Result<()> {
    let place = tempfile::tempdir()?;
    let folder = place.path().join("notes");
    new("notes", Language::JavaScript, &folder)?;
    let refused = build(&folder, None, &mut |_| ()).map_err(|error| error.to_string());
    let expected = "componentize-qjs is needed to build an importer in javascript, and it is not installed; get it with:\n  npm install\n";
    assert!(refused.as_ref().is_err_and(|error| error.starts_with(expected)), "{refused:?}");
    Ok(())
}
