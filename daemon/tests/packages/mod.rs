//! Packages of an importer by somebody else, made from one that comes with the program.

use std::{fs, path::Path};

use satchel_plugins::BUILT_IN;
use satchel_registry::package::{AuthorKey, Manifest, Package};
use satchel_tests::packages::signing_key;

/// The importer that the packages are made from.
const ORIGINAL: &str = "deepseek";
/// Its name and version, as they stand in the component.
const DESCRIBED: &[u8] = b"deepseek0.1.0";
/// The name of the importer in the packages; it has as many letters.
pub(crate) const NAME: &str = "my-notes";

/// Returns an unsigned package of an importer with this name and version. It reads what the original reads.
pub(crate) fn package(name: &str, version: &str) -> Package {
    let original = BUILT_IN.iter().find(|built_in| built_in.name == ORIGINAL).unwrap();
    let described = format!("{name}{version}");
    assert_eq!(described.len(), DESCRIBED.len(), "name and version keep their lengths");
    let component = replaced(original.wasm, DESCRIBED, described.as_bytes());
    let component = replaced(&component, b"deepseek-importer", format!("{name}-importer").as_bytes());
    let formats = ["2025.01", "2026.01"].map(|format| format!("{name}-importer/{format}"));
    let manifest = Manifest {
        manifest_version: 1,
        name: name.to_owned(),
        version: version.to_owned(),
        platform: name.to_owned(),
        importer_version: formats[1].clone(),
        formats: formats.to_vec(),
        api: "1.0.0".to_owned(),
        description: "Reads the notes of Example Notes".to_owned(),
        authors: vec!["Ana Silva".to_owned()],
        license: "Apache-2.0".to_owned(),
        homepage: None,
        files: vec!["*.json".to_owned()],
        contains: Vec::new(),
        memory_mib: 128,
        toolchain: String::new(),
    };
    Package::pack(&component, &manifest).unwrap()
}

/// Writes the package under its usual name into `folder`, and returns the path.
pub(crate) fn write(folder: &Path, name: &str, version: &str) -> String {
    let package = package(name, version);
    let path = folder.join(package.file_name());
    fs::write(&path, package.bytes()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Writes the package as [`write`] does, signed by [`author`].
pub(crate) fn write_signed(folder: &Path, name: &str, version: &str) -> String {
    let package = package(name, version).sign(&signing_key(1)).unwrap();
    let path = folder.join(package.file_name());
    fs::write(&path, package.bytes()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Returns the public key of the author.
pub(crate) fn author() -> String {
    AuthorKey::of(&signing_key(1)).to_string()
}

/// Returns an export with one conversation that the importer reads; `id` tells it from others.
pub(crate) fn export(id: &str) -> String {
    format!(
        r#"[{{"id": "{id}", "title": "Garden {id}", "inserted_at": "2026-01-05T16:00:00Z", "updated_at": "2026-01-05T16:01:00Z",
        "mapping": {{"root": {{"id": "root", "parent": null, "children": ["1"], "message": null}},
        "1": {{"id": "1", "parent": "root", "children": [], "message": {{"files": [], "model": "notes",
        "inserted_at": "2026-01-05T16:00:10Z", "fragments": [{{"type": "REQUEST", "content": "Which tomatoes for {id}?"}}]}}}}}}}}]"#
    )
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let mut at = 0;
    let mut count = 0;
    while let Some(found) = out[at..].windows(from.len()).position(|window| window == from) {
        at += found;
        out[at..at + from.len()].copy_from_slice(to);
        at += to.len();
        count += 1;
    }
    assert!(count > 0, "the component does not have the text");
    out
}
