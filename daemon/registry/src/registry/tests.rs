use ed25519_dalek::SigningKey;

use super::*;
use crate::package::tests::{EMPTY_COMPONENT, manifest};

fn package(name: &str, version: &str, seed: Option<u8>) -> Package {
    let package = Package::pack(EMPTY_COMPONENT, &manifest(name, version)).unwrap();
    seed.map_or(package.clone(), |seed| package.sign(&SigningKey::from_bytes(&[seed; 32])).unwrap())
}

fn key(seed: u8) -> AuthorKey {
    AuthorKey::of(&SigningKey::from_bytes(&[seed; 32]))
}

fn states(registry: &Registry) -> Vec<(String, InstalledState)> {
    let state = |one: &Installed| (format!("{} {}", one.manifest.name, one.manifest.version), one.state);
    registry.installed().iter().map(state).collect()
}

#[test]
fn what_was_installed_is_found_again() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("plugins");
    let mut registry = Registry::open(&folder).unwrap();
    registry.add(&package("notes", "1.0.0", Some(1)), false, true, 7).unwrap();
    registry.add(&package("notes", "1.1.0", Some(1)), false, false, 8).unwrap();
    registry.add(&package("diary", "0.1.0", None), true, false, 9).unwrap();
    let again = Registry::open(&folder).unwrap();
    assert_eq!(again.installed(), registry.installed());
    assert_eq!(
        states(&again),
        [
            ("diary 0.1.0".to_owned(), InstalledState::Enabled),
            ("notes 1.1.0".to_owned(), InstalledState::Enabled),
            ("notes 1.0.0".to_owned(), InstalledState::Superseded),
        ]
    );
    let author = Author { key: key(1), trusted: true, since: 7, importers: vec!["notes".to_owned()] };
    assert_eq!(again.authors(), [author]);
    let stored = fs::read(again.path(&again.installed()[0].sha256)).unwrap();
    assert_eq!(stored, package("diary", "0.1.0", None).bytes());
}

#[test]
fn versions_are_chosen_disabled_and_removed() {
    let place = tempfile::tempdir().unwrap();
    let mut registry = Registry::open(place.path()).unwrap();
    for version in ["1.9.0", "1.10.0", "2.0.0"] {
        registry.add(&package("notes", version, None), false, false, 0).unwrap();
    }
    let state = |registry: &Registry, version: &str| registry.find("notes", Some(version)).unwrap().state;
    registry.set_enabled("notes", None, false).unwrap();
    assert_eq!(state(&registry, "2.0.0"), InstalledState::DisabledByUser);
    registry.set_enabled("notes", Some("1.9.0"), true).unwrap();
    assert_eq!(state(&registry, "1.9.0"), InstalledState::Enabled);
    assert_eq!(state(&registry, "2.0.0"), InstalledState::Superseded);
    let removed = registry.remove("notes", Some("1.9.0")).unwrap();
    assert_eq!((removed.len(), state(&registry, "2.0.0")), (1, InstalledState::Enabled));
    assert!(!registry.path(&removed[0].sha256).exists());
    assert_eq!(registry.remove("notes", None).unwrap().len(), 2);
    assert!(matches!(registry.remove("notes", None), Err(RegistryError::NotInstalled { .. })));
}

#[test]
fn a_key_that_is_not_trusted_any_more_stops_its_importers() {
    let place = tempfile::tempdir().unwrap();
    let mut registry = Registry::open(place.path()).unwrap();
    registry.add(&package("notes", "1.0.0", Some(1)), false, true, 0).unwrap();
    registry.add(&package("diary", "1.0.0", Some(2)), false, true, 0).unwrap();
    assert_eq!(registry.untrust(key(1)).unwrap(), ["notes"]);
    assert_eq!(registry.find("notes", None).unwrap().state, InstalledState::KeyNotTrusted);
    assert_eq!(registry.find("diary", None).unwrap().state, InstalledState::Enabled);
    // Enabling it does not bring back the trust.
    registry.set_enabled("notes", None, true).unwrap();
    assert_eq!(registry.find("notes", None).unwrap().state, InstalledState::KeyNotTrusted);
    assert!(registry.trust(key(1), 5).unwrap());
    assert_eq!(registry.find("notes", None).unwrap().state, InstalledState::Enabled);
    assert!(!registry.trust(key(1), 6).unwrap());
    assert!(matches!(registry.untrust(key(3)), Err(RegistryError::UnknownKey { .. })));
}

#[test]
fn three_failures_in_a_row_disable_an_importer() {
    let place = tempfile::tempdir().unwrap();
    let mut registry = Registry::open(place.path()).unwrap();
    let sha256 = registry.add(&package("notes", "1.0.0", None), false, false, 0).unwrap().sha256;
    let mut run = |failure: Option<&str>| registry.record_run(&sha256, failure, 3).unwrap();
    assert!(!run(Some("a")) && !run(Some("b")) && !run(None));
    assert!(!run(Some("c")) && !run(Some("d")) && run(Some("e")));
    let installed = registry.find("notes", None).unwrap();
    assert_eq!((installed.state, installed.failures), (InstalledState::DisabledAfterFailures, 3));
    assert_eq!(installed.last_failure.as_deref(), Some("e"));
    registry.set_enabled("notes", None, true).unwrap();
    assert_eq!(registry.find("notes", None).unwrap().failures, 0);
}

#[test]
fn files_that_are_not_listed_are_removed_and_others_stay() {
    let place = tempfile::tempdir().unwrap();
    let mut registry = Registry::open(place.path()).unwrap();
    let sha256 = registry.add(&package("notes", "1.0.0", None), false, false, 0).unwrap().sha256;
    let unlisted = registry.path(&"0".repeat(64));
    for path in [&unlisted, &place.path().join(".new-abc"), &place.path().join("note.txt")] {
        fs::write(path, "x").unwrap();
    }
    Registry::open(place.path()).unwrap().remove_unlisted();
    assert!(!unlisted.exists() && !place.path().join(".new-abc").exists());
    assert!(place.path().join("note.txt").exists() && registry.path(&sha256).exists());
}

#[test]
fn a_damaged_list_is_reported_and_nothing_is_removed() {
    let place = tempfile::tempdir().unwrap();
    let mut registry = Registry::open(place.path()).unwrap();
    let sha256 = registry.add(&package("notes", "1.0.0", None), false, false, 0).unwrap().sha256;
    let path = place.path().join(FILE);
    let good = fs::read_to_string(&path).unwrap();
    let newer = good.replace("\"format\": 1", "\"format\": 2");
    let elsewhere = good.replace(&sha256, "../../evil");
    for bad in ["", "{", &good[..good.len() / 2], &newer, &elsewhere] {
        fs::write(&path, bad).unwrap();
        let error = Registry::open(place.path()).unwrap_err();
        assert!(matches!(error, RegistryError::Damaged { .. }), "{bad}: {error}");
        assert!(registry.path(&sha256).exists());
    }
}
