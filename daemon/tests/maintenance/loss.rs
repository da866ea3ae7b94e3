//! Damage to the journal is remembered until it is repaired. A rebuild loses no visible data unless told to. Files
//! that commands set aside are reported, and the commands that erase or encrypt take them into account.

use std::{fs, process::Output};

use serde_json::Value;

use super::{TestHome, flip, json, stderr};

fn shown(home: &TestHome) -> Vec<Value> {
    let list = |kind: &str| json(&home.run(&[kind, "list", "--json"]))[kind].clone();
    let shown = ["memories", "conversations"].map(list);
    assert!(shown.iter().all(|list| list.as_array().is_some_and(|list| !list.is_empty())), "{shown:?}");
    shown.into()
}

fn problems(home: &TestHome) -> String {
    json(&home.run(&["status", "--json"]))["problems"].to_string()
}

fn assert_fails_with(output: &Output, words: &[&str]) {
    let printed = stderr(output);
    assert_ne!(output.status.code(), Some(0), "{printed}");
    assert!(words.iter().all(|word| printed.contains(word)), "{words:?} are not all in {printed}");
}

fn assert_ok(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
}

/// Returns a home whose journal is damaged where no start reads, at 1/`part` of its length, with the segment, the
/// offset, and the records from before.
fn corrupted_home(part: usize) -> (TestHome, std::path::PathBuf, usize, Vec<Value>) {
    let home = TestHome::new();
    assert_ok(&home.run(&["memories", "add", "The north hive needs a new roof"]));
    let state = shown(&home);
    let segment = home.files("journal").remove(0);
    let at = fs::read(&segment).unwrap().len() / part;
    flip(&segment, at);
    (home, segment, at, state)
}

#[test]
fn known_damage_is_reported_and_blocks_writes_until_it_is_repaired() {
    let (home, segment, at, state) = corrupted_home(2);
    assert_eq!(problems(&home), "[]", "nobody has looked yet");
    assert_eq!(home.run(&["doctor"]).status.code(), Some(1));
    for _ in 0..2 {
        let printed = problems(&home);
        assert!(printed.contains("STORE_CORRUPT") && printed.contains("00000001.seg"), "{printed}");
        assert_fails_with(&home.run(&["memories", "add", "The south hive too"]), &["damaged"]);
    }
    assert_eq!(shown(&home), state);
    // Restores the original bytes: the problem disappears by itself.
    flip(&segment, at);
    assert_eq!(problems(&home), "[]");
    assert_ok(&home.run(&["memories", "add", "The south hive too"]));
    assert!(!home.data().join("journal.damaged").exists());
}

#[test]
fn a_daemon_that_finds_damage_stops_writing() {
    let (home, ..) = corrupted_home(2);
    let daemon = home.daemon();
    assert_eq!(home.run(&["doctor"]).status.code(), Some(1));
    assert!(problems(&home).contains("STORE_CORRUPT"));
    assert_fails_with(&home.run(&["memories", "add", "The south hive too"]), &["damaged"]);
    drop(daemon);
    assert!(problems(&home).contains("STORE_CORRUPT"), "a restart forgot it");
}

#[test]
fn damage_found_by_a_read_is_remembered() {
    let (home, ..) = corrupted_home(10);
    let listed = json(&home.run(&["conversations", "list", "--json"]));
    let ids = listed["conversations"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap());
    let failed = ids.filter(|id| home.run(&["conversations", "show", id]).status.code() != Some(0)).count();
    assert!(failed > 0, "no reader met it");
    for _ in 0..2 {
        assert!(problems(&home).contains("STORE_CORRUPT"));
        assert_fails_with(&home.run(&["memories", "add", "The south hive too"]), &["damaged"]);
    }
}

#[test]
fn a_rebuild_from_a_damaged_journal_reports_the_loss_and_keeps_the_old_database() {
    // Inside the bodies of messages, which are at the beginning.
    let (home, segment, at, state) = corrupted_home(10);
    for _ in 0..2 {
        let refused = home.run(&["rebuild"]);
        assert_fails_with(
            &refused,
            &["would lose", "revision", "conversation", "from 20", "--accept-loss", "restore"],
        );
        assert_eq!(shown(&home), state, "something was changed");
    }
    assert!(problems(&home).contains("STORE_CORRUPT"));
    let built = home.run(&["rebuild", "--accept-loss", "--json"]);
    let printed = json(&built);
    assert_eq!(built.status.code(), Some(1), "{printed}");
    assert!(printed["kept"].as_str().is_some_and(|kept| kept.contains("db.kept-1")), "{printed}");
    assert!(printed["lost"]["revisions"][0][0].as_u64() > Some(0), "{printed}");
    // Nothing is offered for removal that may be the only copy, and nothing is removed.
    let doctor = json(&home.run(&["doctor", "--repair", "--json"]));
    let left = doctor["leftovers"].to_string();
    assert!(left.contains("db.kept-1") && left.contains("--put-back"), "{doctor}");
    assert!(!left.contains("doctor --repair") && home.data().join("db.kept-1").is_dir(), "{doctor}");
    assert_ok(&home.run(&["rebuild", "--put-back"]));
    assert_eq!(shown(&home), state);
    assert!(problems(&home).contains("STORE_CORRUPT"), "the journal is as damaged as before");
    assert_fails_with(&home.run(&["rebuild", "--put-back"]), &["no database was kept"]);
    flip(&segment, at);
    assert_ok(&home.run(&["rebuild"]));
    assert_eq!((problems(&home), shown(&home)), ("[]".to_owned(), state));
}

#[test]
fn a_truncated_journal_is_still_reported_after_a_rebuild() {
    let (home, segment, at, state) = corrupted_home(2);
    flip(&segment, at);
    let bytes = fs::read(&segment).unwrap();
    fs::write(&segment, &bytes[..bytes.len() / 2]).unwrap();
    assert_fails_with(&home.run(&["rebuild"]), &["would lose", "--accept-loss"]);
    assert_eq!(home.run(&["rebuild", "--accept-loss"]).status.code(), Some(1));
    for _ in 0..2 {
        assert!(problems(&home).contains("STORE_CORRUPT"));
        assert_fails_with(&home.run(&["memories", "add", "The south hive too"]), &["damaged"]);
    }
    assert_ok(&home.run(&["rebuild", "--put-back"]));
    assert_eq!(shown(&home), state);
    fs::write(&segment, bytes).unwrap();
    assert_eq!((problems(&home), shown(&home)), ("[]".to_owned(), state));
    assert_ok(&home.run(&["memories", "add", "The south hive too"]));
}

#[test]
fn erasing_and_encrypting_are_refused_next_to_a_data_directory_that_was_set_aside() {
    let home = TestHome::new();
    assert_ok(&home.run(&["memories", "add", "The door opens with planted-Quince-7731"]));
    let listed = json(&home.run(&["memories", "list", "--json"]));
    let id = listed["memories"][0]["id"].as_str().unwrap().to_owned();
    assert_ok(&home.run(&["backup", &home.path("b.zip")]));
    assert_ok(&home.run(&["restore", &home.path("b.zip"), "--replace"]));
    let aside = home.0.path().join(".local/share/satchel.replaced-1");
    assert!(aside.is_dir());
    let doctor = json(&home.run(&["doctor", "--json"]));
    assert!(doctor["leftovers"].to_string().contains("satchel.replaced-1"), "{doctor}");
    let key = home.path("data.key");
    for words in [&["memories", "purge", &id, "--confirm", &id][..], &["keys", "encrypt", "--key-file", &key]]
    {
        assert_fails_with(&home.run(words), &["nothing was", "satchel.replaced-1", "rm -r"]);
    }
    let preview = home.run(&["memories", "purge", &id, "--dry-run"]);
    assert!(stderr(&preview).contains("satchel.replaced-1"), "{}", stderr(&preview));
    assert_ok(&home.run(&["memories", "show", &id]));
    fs::remove_dir_all(aside).unwrap();
    assert_ok(&home.run(&["memories", "purge", &id, "--confirm", &id]));
    // A database kept in the data directory itself is removed along with the plain files.
    fs::create_dir(home.data().join("db.kept-1")).unwrap();
    fs::write(home.data().join("db.kept-1/db"), "planted-Quince-7731").unwrap();
    assert_ok(&home.run(&["keys", "encrypt", "--key-file", &key]));
    assert!(!home.data().join("db.kept-1").exists());
}
