//! Flips one bit in any file: every command ends with the same output or a clear error, no identity changes, and
//! `doctor` reports it.

use std::{fs, path::Path, thread};

use serde_json::Value;

use super::{assert_clean_exit, copy, data, files, imported, ok, text};
use crate::home::{TestHome, code, stderr};

/// Number of bits flipped per file, spread over its length.
const FLIPS: usize = 4;
/// Commands whose output must stay the same.
const QUERIES: [&[&str]; 3] = [
    &["memories", "list", "--json", "--limit", "500"],
    &["conversations", "list", "--json", "--limit", "500"],
    &["keys", "list", "--json"],
];

fn flip(path: &Path, bit: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

/// Returns the positions of the bits to flip in a file: at its ends and in between.
fn bit_positions(path: &Path) -> Vec<usize> {
    let bits = usize::try_from(fs::metadata(path).unwrap().len()).unwrap() * 8;
    (0..FLIPS)
        .map(|at| (bits.saturating_sub(1) * at / (FLIPS - 1)) ^ (at % 8))
        .filter(|bit| *bit < bits)
        .collect()
}

/// Returns the output of the commands in `QUERIES`. It can be compared as a whole, because the revision and similar
/// values in lists are equal in a copy.
fn query_outputs(home: &TestHome) -> Vec<String> {
    QUERIES.iter().map(|words| ok(&home.run(words))).collect()
}

fn signer(bundle: &Path) -> String {
    let manifest = fs::read_to_string(bundle.join("memory-store.json")).unwrap();
    let store: Value = serde_json::from_str(&manifest).unwrap();
    store["signature"]["public_key"].as_str().unwrap_or_default().to_owned()
}

/// Flips one bit in a copy of `home`, and runs all commands on it.
fn examine(home: &TestHome, file: &Path, bit: usize, expected: &[String], key: &str) {
    let (flipped, relative) = (TestHome::new(), file.strip_prefix(data(home)).unwrap());
    copy(&data(home), &data(&flipped));
    flip(&data(&flipped).join(relative), bit);
    let what = format!("bit {bit} of {}", relative.display());
    let mut wrong = Vec::new();
    for (words, expected) in QUERIES.iter().zip(expected) {
        let output = flipped.run(words);
        assert_clean_exit(&output, &format!("{what}: {words:?}"));
        if code(&output) == Some(0) {
            assert_eq!(&text(&output), expected, "{what}: {words:?} answers something else");
        } else {
            wrong.push(format!("{words:?}: {}", stderr(&output)));
        }
    }
    let bundle = flipped.path().join("bundle");
    let output = flipped.run(&["export", "--output", bundle.to_str().unwrap()]);
    assert_clean_exit(&output, &format!("{what}: export"));
    if code(&output) == Some(0) {
        assert_eq!(signer(&bundle), key, "{what}: another key signs");
    } else {
        wrong.push(format!("export: {}", stderr(&output)));
    }
    let doctor = flipped.run(&["doctor"]);
    assert_clean_exit(&doctor, &format!("{what}: doctor"));
    assert!(wrong.is_empty() || code(&doctor) != Some(0), "{what}: doctor says nothing of {wrong:?}");
}

#[test]
fn a_flipped_bit_in_the_data_directory_changes_no_output_and_no_identity() {
    flip_all(&imported());
}

#[test]
fn a_flipped_bit_in_an_encrypted_data_directory_changes_no_output_and_no_identity() {
    let home = imported();
    let key_file = home.path().join("data.key");
    ok(&home.run(&["keys", "encrypt", "--key-file", key_file.to_str().unwrap()]));
    flip_all(&home);
}

/// Flips bits of every file in the data directory of `home`, one at a time.
fn flip_all(home: &TestHome) {
    let bundle = home.path().join("first");
    ok(&home.run(&["export", "--output", bundle.to_str().unwrap()]));
    let (expected, key) = (query_outputs(home), signer(&bundle));
    assert!(!key.is_empty());
    let bit_positions: Vec<_> = files(&data(home))
        .into_iter()
        .flat_map(|path| bit_positions(&path).into_iter().map(move |bit| (path.clone(), bit)))
        .collect();
    assert!(bit_positions.iter().any(|(path, _)| path.ends_with("keys/signing.json")));
    thread::scope(|scope| {
        for half in bit_positions.chunks(bit_positions.len().div_ceil(2)) {
            let (expected, key) = (&expected, &key);
            scope.spawn(move || half.iter().for_each(|(path, bit)| examine(home, path, *bit, expected, key)));
        }
    });
}

#[test]
fn a_missing_or_damaged_signing_key_is_an_error_until_a_new_identity_is_requested() {
    let home = imported();
    let export = |name: &str| {
        let bundle = home.path().join(name);
        (home.run(&["export", "--output", bundle.to_str().unwrap()]), bundle)
    };
    let (first, bundle) = export("first");
    ok(&first);
    let (path, key) = (data(&home).join("keys/signing.json"), signer(&bundle));
    let original = fs::read(&path).unwrap();
    let works = home.run(&["keys", "rotate", "--new-identity"]);
    assert!(code(&works) == Some(2) && stderr(&works).contains("satchel keys rotate"), "{}", stderr(&works));
    let unusable = || {
        let (refused, bundle) = export("second");
        let printed = stderr(&refused);
        assert!(code(&refused) != Some(0) && !bundle.exists(), "{printed}");
        assert!(
            printed.contains("keys/signing.json") && printed.contains("keys rotate --new-identity"),
            "{printed}"
        );
        for words in [&["keys", "list"] as &[&str], &["keys", "rotate"]] {
            assert_ne!(code(&home.run(words)), Some(0), "{words:?}");
        }
        let doctor = home.run(&["doctor"]);
        assert!(code(&doctor) == Some(1) && text(&doctor).contains("signing.json"), "{}", text(&doctor));
    };
    fs::remove_file(&path).unwrap();
    unusable();
    assert!(!path.exists(), "another key was made silently");
    fs::write(&path, &original[..original.len() / 2]).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    unusable();
    fs::write(&path, &original).unwrap();
    let (again, bundle) = export("third");
    ok(&again);
    assert_eq!(signer(&bundle), key);
    fs::remove_file(&path).unwrap();
    ok(&home.run(&["keys", "rotate", "--new-identity"]));
    let (new, bundle) = export("fourth");
    ok(&new);
    assert_ne!(signer(&bundle), key);
    ok(&home.run(&["doctor"]));
}

#[test]
fn a_flipped_bit_in_either_copy_of_the_data_key_is_repaired_and_reported() {
    let home = imported();
    let key_file = home.path().join("data.key");
    ok(&home.run(&["keys", "encrypt", "--key-file", key_file.to_str().unwrap()]));
    let [first, second] =
        ["data-key.json", "data-key.copy.json"].map(|name| data(&home).join("keys").join(name));
    let original = fs::read(&first).unwrap();
    assert_eq!(fs::read(&second).unwrap(), original);
    for path in [&first, &second] {
        for bit in bit_positions(path).into_iter().skip(1) {
            flip(path, bit);
            let doctor = home.run(&["doctor"]);
            let printed = ok(&doctor);
            assert!(printed.contains("is damaged: restored from the other copy"), "bit {bit}: {printed}");
            assert_eq!(
                [&first, &second].map(|path| fs::read(path).unwrap()),
                [original.clone(), original.clone()]
            );
        }
        fs::remove_file(path).unwrap();
        ok(&home.run(&["status"]));
        assert_eq!(fs::read(path).unwrap(), original, "it is written again");
    }
    let printed = ok(&home.run(&["doctor"]));
    assert!(printed.contains("both copies are intact"), "{printed}");
    let backup = home.run(&["backup", home.path().join("b.zip").to_str().unwrap()]);
    ok(&backup);
    assert!(stderr(&backup).contains("keys/data-key.json"), "{}", stderr(&backup));
    assert!(stderr(&backup).contains("key file") && stderr(&backup).contains("recovery phrase"));
    [&first, &second].into_iter().for_each(|path| flip(path, original.len() * 4));
    let refused = home.run(&["status"]);
    assert_clean_exit(&refused, "both");
    assert!(stderr(&refused).contains("is damaged; put it back from a backup"), "{}", stderr(&refused));
}

#[test]
fn a_flipped_bit_in_the_code_cache_or_its_key_is_reported_and_recompiled() {
    let home = TestHome::new();
    let run = |words: &[&str]| {
        let mut command = home.command(words);
        // Not the cache that all tests share.
        command.env_remove("XDG_CACHE_HOME").env_remove("XDG_STATE_HOME");
        command.output().unwrap()
    };
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/chatgpt-export");
    ok(&run(&["import", sample.to_str().unwrap()]));
    let [cache, key] = [".cache/satchel/importers", ".local/state/satchel/code-cache.key"];
    let (cache, key) = (home.path().join(cache), home.path().join(key));
    assert!(!data(&home).join("cache").exists());
    // A process that ends while wasmtime still writes leaves its folder behind; the next one removes it unread.
    let entries = files(&cache).into_iter().filter(|path| path.extension().is_some_and(|end| end == "code"));
    for path in entries.chain([key]) {
        for bit in bit_positions(&path) {
            flip(&path, bit);
            ok(&run(&["import", "--again", sample.to_str().unwrap()]));
        }
        flip(&path, 9);
        let printed = ok(&run(&["doctor"]));
        assert!(printed.contains("damaged or not written by you, and recompiled"), "{printed}");
        let printed = ok(&run(&["doctor"]));
        assert!(printed.contains("importers: 21 loaded") && !printed.contains("recompiled"), "{printed}");
    }
}
