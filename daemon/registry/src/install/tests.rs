use ed25519_dalek::SigningKey;

use super::*;
use crate::package::tests::{EMPTY_COMPONENT, manifest};

fn plugins(place: &tempfile::TempDir) -> Plugins {
    Plugins::open(&place.path().join("plugins"), crate::PluginsOptions::default())
}

fn package(name: &str, version: &str, seed: Option<u8>) -> Package {
    let package = Package::pack(EMPTY_COMPONENT, &manifest(name, version)).unwrap();
    seed.map_or(package.clone(), |seed| package.sign(&SigningKey::from_bytes(&[seed; 32])).unwrap())
}

const ALL: Consent = Consent { trust_key: true, unsigned: true, replace_built_in: true, downgrade: true };

#[test]
fn each_consent_is_needed_and_no_other_one_stands_for_it() {
    type Case = (&'static str, Option<u8>, Consent, fn(&InstallError) -> bool);
    let cases: [Case; 3] = [
        ("notes", Some(1), Consent { trust_key: false, ..ALL }, |it| {
            matches!(it, InstallError::KeyNotTrusted { .. })
        }),
        ("notes", None, Consent { unsigned: false, ..ALL }, |it| matches!(it, InstallError::Unsigned { .. })),
        ("chatgpt", Some(1), Consent { replace_built_in: false, ..ALL }, |it| {
            matches!(it, InstallError::BuiltIn { .. })
        }),
    ];
    for (name, seed, consent, expected) in cases {
        let place = tempfile::tempdir().unwrap();
        let plugins = plugins(&place);
        let package = package(name, "1.0.0", seed);
        let error = plugins.install(&package, consent, 0).unwrap_err();
        assert!(expected(&error), "{name}: {error}");
        assert!(plugins.installed().is_empty());
        plugins.install(&package, ALL, 0).unwrap();
        assert_eq!(plugins.installed().len(), 1);
    }
}

#[test]
fn an_upgrade_needs_the_same_key_whatever_the_person_agrees_to() {
    let place = tempfile::tempdir().unwrap();
    let plugins = plugins(&place);
    plugins.install(&package("notes", "1.0.0", Some(1)), ALL, 0).unwrap();
    for other in [package("notes", "1.1.0", Some(2)), package("notes", "1.1.0", None)] {
        let error = plugins.install(&other, ALL, 0).unwrap_err();
        assert!(matches!(error, InstallError::OtherKey { .. }), "{error}");
    }
    let same_key = package("notes", "1.1.0", Some(1));
    plugins.install(&same_key, Consent::default(), 0).unwrap();
    let older = package("notes", "1.0.5", Some(1));
    let error = plugins.install(&older, Consent { downgrade: false, ..ALL }, 0).unwrap_err();
    assert!(matches!(error, InstallError::Downgrade { .. }), "{error}");
    plugins.install(&older, ALL, 0).unwrap();
    let versions: Vec<String> = plugins
        .in_use()
        .iter()
        .filter_map(|importer| importer.installed().map(|one| one.manifest.version.clone()))
        .collect();
    assert_eq!(versions, ["1.0.5"]);
}

#[test]
fn the_same_version_with_other_content_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let plugins = plugins(&place);
    let one = package("notes", "1.0.0", Some(1));
    plugins.install(&one, ALL, 0).unwrap();
    plugins.install(&one, ALL, 0).unwrap();
    assert_eq!(plugins.installed().len(), 1);
    let mut changed = manifest("notes", "1.0.0");
    changed.description = "Reads more".to_owned();
    let changed = Package::pack(EMPTY_COMPONENT, &changed).unwrap();
    let changed = changed.sign(&SigningKey::from_bytes(&[1; 32])).unwrap();
    let error = plugins.install(&changed, ALL, 0).unwrap_err();
    assert!(matches!(error, InstallError::SameVersion { .. }), "{error}");
}

#[test]
fn a_built_in_importer_is_replaced_until_the_other_is_removed() {
    let place = tempfile::tempdir().unwrap();
    let plugins = plugins(&place);
    let in_use = |name: &str| {
        let in_use = plugins.in_use();
        let named = in_use.iter().filter(|importer| importer.name() == name);
        named.map(|importer| importer.installed().is_some()).collect::<Vec<_>>()
    };
    assert_eq!(in_use("chatgpt"), [false]);
    plugins.install(&package("chatgpt", "9.0.0", Some(1)), ALL, 0).unwrap();
    assert_eq!(in_use("chatgpt"), [true]);
    plugins.set_enabled("chatgpt", None, false).unwrap();
    assert_eq!(in_use("chatgpt"), [false]);
    plugins.set_enabled("chatgpt", None, true).unwrap();
    plugins.remove("chatgpt", None).unwrap();
    assert_eq!(in_use("chatgpt"), [false]);
    assert!(matches!(plugins.remove("chatgpt", None), Err(RegistryError::BuiltIn { .. })));
}

#[test]
fn the_component_has_to_say_what_the_manifest_says() {
    let built_in = BUILT_IN.iter().find(|one| one.name == "deepseek").unwrap();
    let place = tempfile::tempdir().unwrap();
    let plugins = plugins(&place);
    let info = plugins.host().unwrap().load(built_in.wasm).unwrap().info().clone();
    let mut honest = manifest(&info.name, &info.version);
    (honest.platform, honest.importer_version) = (info.platform.clone(), info.importer_version.clone());
    honest.formats.clone_from(&info.formats);
    let review = plugins.review(&Package::pack(built_in.wasm, &honest).unwrap(), &|| false).unwrap();
    assert_eq!(review.replaces_built_in, ["deepseek"]);
    let lies: [fn(&mut Manifest); 4] = [
        |it| it.name = "notes".to_owned(),
        |it| it.version = "99.0.0".to_owned(),
        |it| it.platform = "notes".to_owned(),
        |it| it.formats.push("more".to_owned()),
    ];
    for lie in lies {
        let mut manifest = honest.clone();
        lie(&mut manifest);
        let error = plugins.review(&Package::pack(built_in.wasm, &manifest).unwrap(), &|| false).unwrap_err();
        assert!(matches!(error, InstallError::Mismatch { .. }), "{error}");
    }
    let empty = package("notes", "1.0.0", None);
    assert!(matches!(plugins.review(&empty, &|| false), Err(InstallError::Compile(_))));
    assert!(plugins.installed().is_empty());
}

#[test]
fn names_that_look_like_a_built_in_one_are_told() {
    for name in ["chatgpt-importer", "chatgtp", "cha-tgpt", "c1aude", "deepseeek", "gr0k"] {
        assert!(similar(name).is_some(), "{name}");
    }
    for name in
        ["chatgpt", "copilot", "notes", "open-webui", "opencode", "librechat", "goose", "lm-studio", "jan"]
    {
        assert_eq!(similar(name), None, "{name}");
    }
}

#[test]
fn a_changed_file_is_not_loaded() {
    let place = tempfile::tempdir().unwrap();
    let plugins = std::sync::Arc::new(plugins(&place));
    let built_in = BUILT_IN.iter().find(|one| one.name == "deepseek").unwrap();
    let info = plugins.host().unwrap().load(built_in.wasm).unwrap().info().clone();
    let mut honest = manifest(&info.name, &info.version);
    (honest.platform, honest.importer_version, honest.formats) =
        (info.platform.clone(), info.importer_version.clone(), info.formats.clone());
    let package = Package::pack(built_in.wasm, &honest).unwrap();
    let installed = plugins.install(&package, ALL, 0).unwrap();
    let path = place.path().join("plugins").join(format!("{}.satchel", installed.sha256));
    let load = || {
        let in_use = plugins.in_use();
        let these: Vec<_> = in_use.iter().filter(|one| one.installed().is_some()).cloned().collect();
        plugins.load_until(&these, &|| false).unwrap().remove(0)
    };
    let good = std::fs::read(&path).unwrap();
    for bad in
        [good[..good.len() / 2].to_vec(), [good.as_slice(), b"x"].concat(), package_of_another(&honest)]
    {
        std::fs::write(&path, bad).unwrap();
        assert!(load().is_err());
    }
    std::fs::write(&path, good).unwrap();
    assert!(load().is_ok());
}

/// A valid package that was not installed.
fn package_of_another(manifest: &Manifest) -> Vec<u8> {
    let other = BUILT_IN.iter().find(|one| one.name == "grok").unwrap();
    Package::pack(other.wasm, manifest).unwrap().bytes().to_vec()
}
