//! Keys of authors, and signing.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use anyhow::Result;
use satchel_authoring::keys::{self, KeyError, SignError};
use satchel_registry::package::{AuthorKey, Manifest, Package};

fn mode(path: &Path) -> Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o777)
}

fn package() -> Result<Package> {
    let manifest = Manifest {
        manifest_version: 1,
        name: "notes".to_owned(),
        version: "1.0.0".to_owned(),
        platform: "notes".to_owned(),
        importer_version: "notes-importer/2026.01".to_owned(),
        formats: vec!["notes-importer/2026.01".to_owned()],
        api: "1.0.0".to_owned(),
        description: "Reads notes".to_owned(),
        authors: vec!["Ana Silva".to_owned()],
        license: "MIT".to_owned(),
        homepage: None,
        files: vec!["*.json".to_owned()],
        contains: Vec::new(),
        memory_mib: 64,
        toolchain: String::new(),
    };
    Ok(Package::pack(b"\0asm\x0d\0\x01\0", &manifest)?)
}

#[test]
fn a_key_is_two_lines_that_only_its_owner_can_read() -> Result<()> {
    let place = tempfile::tempdir()?;
    let path = place.path().join("config/satchel/author.key");
    let key = keys::key_new(&path)?;
    let text = fs::read_to_string(&path)?;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with(&format!("# Satchel author key {key}: ")), "{text}");
    assert!(key.to_string().starts_with("z6Mk"));
    assert_eq!((mode(&path)?, mode(path.parent().unwrap_or(&path))?), (0o600, 0o700));
    assert_eq!(AuthorKey::of(&keys::load(&path)?), key);
    // The comment is for people.
    fs::write(&path, format!("\n{}\n\n", lines[1]))?;
    assert_eq!(AuthorKey::of(&keys::load(&path)?), key);
    Ok(())
}

#[test]
fn a_key_is_never_overwritten() -> Result<()> {
    let place = tempfile::tempdir()?;
    let path = place.path().join("author.key");
    keys::key_new(&path)?;
    let before = fs::read(&path)?;
    assert!(matches!(keys::key_new(&path), Err(KeyError::Exists { .. })));
    assert_eq!(fs::read(&path)?, before);
    let link = place.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link)?;
    assert!(matches!(keys::key_new(&link), Err(KeyError::Exists { .. })));
    assert_eq!(fs::read_dir(place.path())?.count(), 2, "no temporary file is left");
    Ok(())
}

#[test]
fn a_file_that_is_no_safe_key_is_refused_with_what_to_do() -> Result<()> {
    let place = tempfile::tempdir()?;
    let path = place.path().join("author.key");
    let refused =
        |path: &Path| keys::load(path).map_or_else(|error| error.to_string(), |_| "accepted".to_owned());
    assert!(refused(&path).ends_with("`satchel plugins key new` makes one"));
    let key = keys::key_new(&path)?;
    let text = fs::read_to_string(&path)?;
    let secret = text.lines().nth(1).unwrap_or_default();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
    assert!(refused(&path).contains("run `chmod 600 /"), "{}", refused(&path));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    let other = keys::key_new(&place.path().join("other.key"))?;
    let cases = [
        (String::new(), "it has no secret key"),
        (format!("{key}\n"), "it has a public key"),
        (format!("{secret}\n{secret}\n"), "more than one line"),
        (secret[..secret.len() - 1].to_owned(), "is damaged"),
        (format!("# key {other}:\n{secret}\n"), "belongs to another secret key"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\n".to_owned(), "damaged or of another kind"),
        ("#".repeat(5000), "it is too large"),
    ];
    for (content, expected) in cases {
        fs::write(&path, content)?;
        assert!(refused(&path).contains(expected), "{}", refused(&path));
    }
    assert!(matches!(keys::load(place.path()), Err(KeyError::Io { .. })));
    Ok(())
}

#[test]
fn a_package_is_signed_in_place() -> Result<()> {
    let place = tempfile::tempdir()?;
    let (file, package) = (place.path().join("notes-1.0.0.satchel"), package()?);
    fs::write(&file, package.bytes())?;
    let keys = ["a.key", "b.key"].map(|name| place.path().join(name));
    let first = keys::key_new(&keys[0])?;
    let signed = keys::sign(&file, &keys::load(&keys[0])?)?;
    assert_eq!((signed.key, signed.replaced, signed.name.as_str()), (first, None, "notes"));
    let read = Package::read(fs::read(&file)?)?;
    assert_eq!((read.signer(), read.sha256_hex()), (Some(&first), signed.sha256));
    let second = keys::key_new(&keys[1])?;
    let signed = keys::sign(&file, &keys::load(&keys[1])?)?;
    assert_eq!((signed.key, signed.replaced), (second, Some(first)));
    assert!(fs::read(&file)?.starts_with(package.bytes()));
    fs::write(&file, "hello")?;
    let refused = keys::sign(&file, &keys::load(&keys[1])?);
    assert!(matches!(refused, Err(SignError::Package { .. })), "{refused:?}");
    assert_eq!(fs::read(&file)?, b"hello");
    Ok(())
}
