//! Packages of an importer by somebody else, as files that a person was given.

use std::{fs, path::Path};

use satchel_registry::package::{AuthorKey, Package};
use satchel_tests::packages::{signed, signing_key, unsigned};

/// The name of the importer. It reads files that are called `a.json`, whatever is in them: one conversation and one skip.
pub(crate) const NAME: &str = "journal";
/// What the importer does, as its package says.
const GUEST: &str = "good";
/// The seed of the author's key.
const AUTHOR: u8 = 1;

/// Returns a package that nobody signed.
pub(crate) fn package(name: &str, version: &str) -> Package {
    unsigned(GUEST, name, version).unwrap()
}

/// Writes a package that nobody signed into `folder`, and returns the path.
pub(crate) fn write(folder: &Path, name: &str, version: &str) -> String {
    write_package(folder, &package(name, version))
}

/// Writes a package of the importer that [`author`] signed.
pub(crate) fn write_signed(folder: &Path, version: &str) -> String {
    write_package(folder, &signed(GUEST, NAME, version, AUTHOR).unwrap())
}

/// Returns the public key of the author.
pub(crate) fn author() -> String {
    AuthorKey::of(&signing_key(AUTHOR)).to_string()
}

fn write_package(folder: &Path, package: &Package) -> String {
    let path = folder.join(package.file_name());
    fs::write(&path, package.bytes()).unwrap();
    path.to_str().unwrap().to_owned()
}
