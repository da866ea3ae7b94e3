//! Importers of others, from the command line: installed, used, upgraded, read again and removed.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;
#[expect(dead_code, reason = "other tests use the rest of it")]
mod packages;

use std::{fs, process::Output};

use home::{TestHome, code, stderr};
use packages::NAME;
use serde_json::Value;

/// The data directory in a home directory.
const DATA_DIR: &str = ".local/share/satchel";

fn json(output: &Output) -> Value {
    assert_eq!(code(output), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Creates an author's key and returns the public one.
fn author(home: &TestHome, key_file: &str) -> String {
    let key_file = home.path().join(key_file);
    let created = home.run(&["plugins", "key", "new", "--json", "--key-file", key_file.to_str().unwrap()]);
    json(&created)["public_key"].as_str().unwrap().to_owned()
}

/// Returns the path of a package that is signed with a key.
fn signed(home: &TestHome, key_file: &str, version: &str) -> String {
    let folder = home.path().join(format!("packages-{key_file}"));
    fs::create_dir_all(&folder).unwrap();
    let path = packages::write(&folder, NAME, version);
    let key_file = home.path().join(key_file);
    let signed = home.run(&["plugins", "sign", &path, "--key-file", key_file.to_str().unwrap()]);
    assert_eq!(code(&signed), Some(0), "{}", stderr(&signed));
    path
}

/// Returns the rows of `plugins list` with this name.
fn installed(home: &TestHome) -> Vec<Value> {
    let listed = json(&home.run(&["plugins", "list", "--json"]));
    let rows = listed["plugins"].as_array().unwrap().clone();
    rows.into_iter().filter(|row| row["name"] == NAME).collect()
}

#[test]
fn an_importer_is_installed_used_upgraded_and_removed() {
    let home = TestHome::new();
    let key = author(&home, "ana.key");
    let (first, second) = (signed(&home, "ana.key", "1.0.0"), signed(&home, "ana.key", "1.1.0"));
    let (kept, gone) = (home.file("kept/a.json", "[1]"), home.file("gone/a.json", "[2]"));

    // Without a terminal nobody can agree.
    let refused = home.run(&["plugins", "install", &first]);
    assert_eq!(code(&refused), Some(4));
    assert!(stderr(&refused).contains("--yes"), "{}", stderr(&refused));
    for shown in
        [key.as_str(), "which you do not trust yet", "nothing else: no network, no other files", "16 MiB"]
    {
        assert!(text(&refused).contains(shown), "{shown}\n{}", text(&refused));
    }
    let dry = json(&home.run(&["plugins", "install", "--dry-run", "--json", &first]));
    assert_eq!((&dry["installed"], &dry["key_trusted"]), (&false.into(), &false.into()));
    assert!(installed(&home).is_empty());
    let unknown = home.run(&["plugins", "upgrade", "--yes", &first]);
    assert_eq!(code(&unknown), Some(4), "{}", stderr(&unknown));

    let done = json(&home.run(&["plugins", "install", "--yes", "--json", &first]));
    assert_eq!((&done["installed"], &done["signer"]), (&true.into(), &key.as_str().into()));
    for path in [&kept, &gone] {
        let imported = json(&home.run(&["import", "--json", "--plugin", NAME, path]));
        let import = &imported["imports"][0];
        assert_eq!(import["status"], "completed_with_skips", "{import}");
        assert_eq!(
            (&import["plugin"], &import["plugin_signer"]),
            (&"journal/1.0.0".into(), &key.as_str().into())
        );
    }

    let upgraded = json(&home.run(&["plugins", "upgrade", "--yes", "--json", &second]));
    assert_eq!((&upgraded["replaces_version"], &upgraded["reads_differently"]), (&"1.0.0".into(), &2.into()));
    assert_eq!(upgraded["earlier_imports"].as_array().unwrap().len(), 2);
    fs::remove_file(&gone).unwrap();
    let dry = json(&home.run(&["imports", "again", "--plugin", NAME, "--dry-run", "--json"]));
    assert_eq!((&dry["imports"][0]["dry_run"], &dry["gone"][0]), (&true.into(), &gone.as_str().into()));
    let again = json(&home.run(&["imports", "again", "--plugin", NAME, "--json"]));
    assert_eq!(again["imports"].as_array().unwrap().len(), 1, "{again}");
    assert_eq!(again["imports"][0]["plugin"], "journal/1.1.0");
    assert_eq!(again["imports"][0]["conversations"]["found"], 1);
    let again = json(&home.run(&["imports", "again", "--plugin", NAME, "--json"]));
    assert!(again["imports"].as_array().unwrap().is_empty(), "{again}");

    let states = |home: &TestHome| {
        let rows = installed(home);
        rows.iter().map(|row| row["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(states(&home), ["enabled", "superseded"]);
    json(&home.run(&["plugins", "enable", NAME, "--version", "1.0.0", "--json"]));
    assert_eq!(states(&home), ["superseded", "enabled"]);
    json(&home.run(&["plugins", "disable", NAME, "--json"]));
    let refused = home.run(&["import", "--plugin", NAME, &kept]);
    assert_eq!(code(&refused), Some(2), "{}", stderr(&refused));

    let removed = json(&home.run(&["plugins", "remove", NAME, "--json"]));
    assert_eq!(removed["removed"].as_array().unwrap().len(), 2);
    assert_eq!(removed["conversations"], 1, "{removed}");
    assert!(removed["imports"].as_u64() > Some(0), "{removed}");
    assert!(installed(&home).is_empty());
    let missing = home.run(&["plugins", "show", NAME]);
    assert_eq!(code(&missing), Some(4));
    assert!(stderr(&missing).contains("satchel plugins list"), "{}", stderr(&missing));
}

#[test]
fn another_key_is_refused_and_an_untrusted_one_disables_its_importer() {
    let home = TestHome::new();
    let ana = author(&home, "ana.key");
    author(&home, "bruno.key");
    json(&home.run(&["plugins", "install", "--yes", "--json", &signed(&home, "ana.key", "1.0.0")]));
    let forged = signed(&home, "bruno.key", "1.1.0");
    let refused = home.run(&["plugins", "upgrade", "--yes", &forged]);
    assert_eq!(code(&refused), Some(4));
    assert!(stderr(&refused).contains("same key"), "{}", stderr(&refused));

    let untrusted = json(&home.run(&["plugins", "untrust", "--json", &ana]));
    assert_eq!(untrusted["disabled_plugins"][0], NAME);
    assert_eq!(installed(&home)[0]["state"], "key_not_trusted");
    let refused = home.run(&["plugins", "enable", NAME]);
    assert_eq!(code(&refused), Some(4));
    assert!(stderr(&refused).contains("plugins trust"), "{}", stderr(&refused));
    json(&home.run(&["plugins", "trust", "--json", &ana]));
    assert_eq!(installed(&home)[0]["state"], "enabled");
    let keys = json(&home.run(&["plugins", "keys", "--json"]));
    assert_eq!(
        (&keys["authors"][0]["public_key"], &keys["authors"][0]["trusted"]),
        (&ana.into(), &true.into())
    );
}

#[test]
fn unsigned_importers_and_the_names_of_built_in_ones_need_an_option() {
    let home = TestHome::new();
    let unsigned = packages::write(home.path(), NAME, "1.0.0");
    let refused = home.run(&["plugins", "install", "--yes", &unsigned]);
    assert_eq!(code(&refused), Some(4));
    assert!(stderr(&refused).contains("--unsigned"), "{}", stderr(&refused));
    let done = json(&home.run(&["plugins", "install", "--yes", "--unsigned", "--json", &unsigned]));
    assert_eq!((&done["installed"], &done["signer"]), (&true.into(), &Value::Null));
    assert_eq!(installed(&home)[0]["unsigned"], true);
    let export = home.file("a.json", "[1]");
    let imported = home.run(&["import", "--plugin", NAME, &export]);
    assert!(text(&imported).contains("an installed importer that nobody signed"), "{}", text(&imported));
    assert!(text(&home.run(&["imports", "list"])).contains("(unsigned)"));

    let replacing = packages::write(home.path(), "mistral", "9.0.0");
    let refused = home.run(&["plugins", "install", "--yes", "--unsigned", &replacing]);
    assert_eq!(code(&refused), Some(4));
    assert!(stderr(&refused).contains("--replace-built-in"), "{}", stderr(&refused));
    let words = ["plugins", "install", "--yes", "--unsigned", "--replace-built-in", "--json", &replacing];
    assert_eq!(json(&home.run(&words))["replaces_built_in"][0], "mistral");
    let listed = text(&home.run(&["plugins", "list"]));
    assert!(listed.contains("replaced by mistral"), "{listed}");
    let removed = home.run(&["plugins", "remove", "mistral"]);
    assert!(stderr(&removed).contains("satchel's own importer again"), "{}", stderr(&removed));
    let refused = home.run(&["plugins", "remove", "mistral"]);
    assert!(stderr(&refused).contains("comes with the program"), "{}", stderr(&refused));
}

#[test]
fn a_file_that_is_no_package_is_refused_and_says_why() {
    let home = TestHome::new();
    let mut bytes = packages::package(NAME, "1.0.0").bytes().to_vec();
    let middle = bytes.len() / 2;
    for (name, content) in [("text.satchel", b"hello".to_vec()), ("cut.satchel", bytes[..middle].to_vec())] {
        let file = home.file(name, content);
        let refused = home.run(&["plugins", "install", "--yes", "--unsigned", "--json", &file]);
        assert_eq!(code(&refused), Some(4), "{name}");
        assert!(stderr(&refused).contains("PLUGIN_REFUSED"), "{name}: {}", stderr(&refused));
    }
    bytes.resize(40 << 20, 0);
    let file = home.file("large.satchel", bytes);
    let refused = home.run(&["plugins", "install", "--yes", "--unsigned", &file]);
    assert_eq!(code(&refused), Some(4));
    assert!(stderr(&refused).contains("larger than"), "{}", stderr(&refused));
}

#[test]
fn an_author_sees_what_an_importer_emits() {
    let home = TestHome::new();
    let package = packages::write(home.path(), NAME, "1.0.0");
    let export = home.file("a.json", "[1]");
    let emitted = json(&home.run(&["plugins", "run", "--json", &package, &export]));
    let records = emitted["records"].as_array().unwrap();
    assert!(records.iter().any(|record| record["conversation"]["id"] == "c1"), "{emitted}");
    assert_eq!(
        (&emitted["importer"], &emitted["exports"][0]["conversations"]),
        (&"journal/1.0.0".into(), &1.into())
    );
    let shown = text(&home.run(&["plugins", "run", &package, &export]));
    assert!(shown.contains("conversation  Bread (2 messages)  a.json[0]"), "{shown}");
    let other = home.file("other.json", "[1, 2]");
    let unrecognised = home.run(&["plugins", "run", "--json", &package, &other]);
    assert_eq!(code(&unrecognised), Some(3));
    assert!(serde_json::from_slice::<Value>(&unrecognised.stdout).is_ok());
}

#[test]
fn doctor_names_an_installed_importer_that_was_changed() {
    let home = TestHome::new();
    author(&home, "ana.key");
    for version in ["1.0.0", "1.1.0"] {
        json(&home.run(&["plugins", "install", "--yes", "--json", &signed(&home, "ana.key", version)]));
    }
    let checked = |findings: &Value, words: &str| {
        let checked = findings["checked"].as_array().unwrap();
        checked.iter().any(|line| line.as_str().unwrap().contains(words))
    };
    let healthy = json(&home.run(&["doctor", "--json"]));
    assert!(checked(&healthy, "installed importers: 2 packages are intact"), "{healthy}");

    let sha256 = installed(&home)[1]["sha256"].as_str().unwrap().to_owned();
    let package = home.path().join(format!("{DATA_DIR}/plugins/{sha256}.satchel"));
    let mut bytes = fs::read(&package).unwrap();
    bytes[20] ^= 1;
    fs::write(&package, bytes).unwrap();
    let looked = home.run(&["doctor", "--json"]);
    assert_eq!(code(&looked), Some(1), "{}", stderr(&looked));
    let damaged: Value = serde_json::from_slice(&looked.stdout).unwrap();
    let problem = &damaged["problems"][0];
    assert_eq!(problem["reason"], "PLUGIN_DAMAGED", "{damaged}");
    assert!(problem["message"].as_str().unwrap().contains("journal 1.0.0"), "{damaged}");
    assert!(checked(&damaged, "installed importers: 1 package is intact"), "{damaged}");
    // The remedy works.
    let fix = problem["fix"].as_str().unwrap();
    assert!(fix.contains("satchel plugins remove journal --version 1.0.0"), "{fix}");
    json(&home.run(&["plugins", "remove", NAME, "--version", "1.0.0", "--json"]));
    json(&home.run(&["doctor", "--json"]));

    fs::write(home.path().join(format!("{DATA_DIR}/plugins/registry.json")), "{").unwrap();
    let looked = home.run(&["doctor", "--json"]);
    assert_eq!(code(&looked), Some(1), "{}", stderr(&looked));
    let damaged: Value = serde_json::from_slice(&looked.stdout).unwrap();
    assert_eq!(damaged["problems"][0]["reason"], "PLUGINS_UNREADABLE", "{damaged}");
}
