//! Gathers what `satchel plugins new` writes: the templates, the SDK of each language, and the contract.
//!
//! The SDK's crates inherit versions from this workspace. In an author's project they stand alone, so their manifests are
//! written out here.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, error, fs, io,
    path::{Path, PathBuf},
};

use toml::{Table, Value};

type Result<T> = std::result::Result<T, Box<dyn error::Error>>;

/// Folders that tools make beside the sources.
const LEFT_OUT: [&str; 6] = ["node_modules", "__pycache__", ".venv", "dist", "target", "tests"];
const CRATES: [&str; 2] = ["pam", "importer"];

fn main() {
    if let Err(error) = gather() {
        println!("cargo::error={error}");
    }
}

fn gather() -> Result<()> {
    let workspace = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("project-files");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    let sdk = workspace.join("sdk");
    for language in ["rust", "javascript", "python"] {
        copy(&sdk.join("templates").join(language), &out.join("templates").join(language), &LEFT_OUT[..5])?;
        fs::create_dir_all(out.join("sdk").join(language))?;
    }
    for language in ["javascript", "python"] {
        copy(&sdk.join(language), &out.join("sdk").join(language), &LEFT_OUT)?;
    }
    copy(&sdk.join("wit"), &out.join("wit"), &[])?;
    let (root, lock) = (table(&workspace.join("Cargo.toml"))?, table(&workspace.join("Cargo.lock"))?);
    let mut wanted = BTreeMap::new();
    for name in CRATES {
        let (from, to) = (sdk.join(name), out.join("sdk/rust").join(name));
        copy(&from.join("src"), &to.join("src"), &[])?;
        fs::copy(from.join("README.md"), to.join("README.md"))?;
        let manifest = standalone(table(&from.join("Cargo.toml"))?, &root)?;
        wanted.insert(format!("satchel-{name}"), dependency_names(&manifest));
        fs::write(
            to.join("Cargo.toml"),
            format!("# A copy of Satchel's SDK.\n{}", toml::to_string(&manifest)?),
        )?;
        println!("cargo::rerun-if-changed={}", from.display());
    }
    copy(&sdk.join("wit"), &out.join("sdk/rust/importer/wit"), &[])?;
    fs::write(out.join("templates/rust/Cargo.lock"), toml::to_string(&locked(&lock, &wanted)?)?)?;
    Ok(())
}

/// Copies a folder without the folders named in `left_out`.
fn copy(from: &Path, to: &Path, left_out: &[&str]) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", from.display());
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if !path.is_dir() {
            fs::copy(&path, to.join(name))?;
        } else if !left_out.iter().any(|left| name == *left) {
            copy(&path, &to.join(name), left_out)?;
        }
    }
    Ok(())
}

fn table(path: &Path) -> Result<Table> {
    println!("cargo::rerun-if-changed={}", path.display());
    Ok(fs::read_to_string(path)?.parse()?)
}

/// Returns a crate's manifest without inheritance, lints and tests' dependencies.
fn standalone(mut manifest: Table, root: &Table) -> Result<Table> {
    let workspace = root.get("workspace").and_then(Value::as_table).ok_or("no workspace")?;
    let shared = |name: &str| workspace.get(name).and_then(Value::as_table).ok_or("no shared values");
    manifest.remove("lints");
    manifest.remove("dev-dependencies");
    let package = manifest.get_mut("package").and_then(Value::as_table_mut).ok_or("no package")?;
    for (key, value) in package.iter_mut().filter(|(_, value)| inherits(value)) {
        *value = shared("package")?.get(key).ok_or("a value is not in the workspace")?.clone();
    }
    package.insert("publish".to_owned(), false.into());
    for dependencies in dependency_tables(&mut manifest) {
        for (name, value) in dependencies.iter_mut().filter(|(_, value)| inherits(value)) {
            let base = shared("dependencies")?.get(name).ok_or("a dependency is not in the workspace")?;
            *value = Value::Table(merged(base, value));
        }
    }
    Ok(manifest)
}

fn inherits(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

/// Returns the tables of dependencies of a manifest, also those for a target.
fn dependency_tables(manifest: &mut Table) -> Vec<&mut Table> {
    let mut tables = Vec::new();
    for (key, value) in manifest.iter_mut() {
        match (key.as_str(), value.as_table_mut()) {
            ("dependencies", Some(table)) => tables.push(table),
            ("target", Some(targets)) => tables.extend(
                targets.iter_mut().filter_map(|(_, target)| target.get_mut("dependencies")?.as_table_mut()),
            ),
            _ => {}
        }
    }
    tables
}

/// Returns the workspace's entry of a dependency with what the crate adds to it.
fn merged(base: &Value, own: &Value) -> Table {
    let mut merged = match base {
        Value::Table(table) => table.clone(),
        version => Table::from_iter([("version".to_owned(), version.clone())]),
    };
    for (key, value) in own.as_table().into_iter().flatten().filter(|(key, _)| *key != "workspace") {
        match (merged.get_mut(key).and_then(Value::as_array_mut), value.as_array()) {
            (Some(features), Some(more)) => features.extend(more.iter().cloned()),
            _ => drop(merged.insert(key.clone(), value.clone())),
        }
    }
    merged
}

/// Returns the names of the dependencies that are no feature's.
fn dependency_names(manifest: &Table) -> BTreeSet<String> {
    let mut manifest = manifest.clone();
    let tables = dependency_tables(&mut manifest).into_iter().flat_map(|table| table.iter());
    let optional = |value: &Value| value.get("optional").and_then(Value::as_bool) == Some(true);
    tables.filter(|(_, value)| !optional(value)).map(|(name, _)| name.clone()).collect()
}

/// Returns the part of the workspace's lock file that a new project needs, so that its first build takes the versions
/// that Satchel was tested with. Cargo adds the project itself and drops what it does not need.
fn locked(lock: &Table, crates: &BTreeMap<String, BTreeSet<String>>) -> Result<Table> {
    let packages = lock.get("package").and_then(Value::as_array).ok_or("the lock file has no packages")?;
    let text =
        |package: &Value, key: &str| package.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut open: Vec<String> = crates.keys().cloned().collect();
    let mut taken: BTreeMap<(String, String), Value> = BTreeMap::new();
    while let Some(wanted) = open.pop() {
        // `name`, or `name version` where the lock file has several.
        let (name, version) = wanted.split_once(' ').unwrap_or((&wanted, ""));
        let version = version.split(' ').next().unwrap_or_default();
        for package in packages.iter().filter(|it| text(it, "name") == name) {
            let key = (name.to_owned(), text(package, "version"));
            if (!version.is_empty() && key.1 != version) || taken.contains_key(&key) {
                continue;
            }
            let mut package = package.clone();
            if let Some(needs) = package.get_mut("dependencies").and_then(Value::as_array_mut) {
                if let Some(own) = crates.get(name) {
                    needs.retain(|need| {
                        own.contains(need.as_str().unwrap_or_default().split(' ').next().unwrap_or_default())
                    });
                }
                open.extend(needs.iter().filter_map(|need| need.as_str().map(str::to_owned)));
            }
            taken.insert(key, package);
        }
    }
    let packages = Value::Array(taken.into_values().collect());
    Ok(Table::from_iter([("version".to_owned(), 4.into()), ("package".to_owned(), packages)]))
}
