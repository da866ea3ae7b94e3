//! Tests `doctor --repair`: each kind of damage is repaired and reported, or reported with a remedy that works, and
//! nothing gets worse.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{TestHome, flip, json};

/// Runs `doctor --repair` and returns its exit code and output.
fn repair(home: &TestHome) -> (Option<i32>, Value) {
    let output = home.run(&["doctor", "--repair", "--json"]);
    (output.status.code(), json(&output))
}

/// Returns all that the person sees: memories, conversations and imports.
fn shown(home: &TestHome) -> Vec<Value> {
    let lists =
        [["memories", "list", "--json"], ["conversations", "list", "--json"], ["imports", "list", "--json"]];
    lists.iter().map(|words| json(&home.run(words))).collect()
}

/// Checks that the damage is repaired, that `words` report it, that the second run finds nothing, and that all data
/// is there.
fn assert_repaired(home: &TestHome, words: &str, before: &[Value]) {
    let (code, printed) = repair(home);
    assert_eq!((code, &printed["healthy"]), (Some(0), &Value::Bool(true)), "{words}: {printed}");
    assert!(printed["repaired"].to_string().contains(words), "{words}: {printed}");
    assert_healthy(home, words);
    assert_eq!(shown(home), before, "{words}");
}

/// Checks that nothing is wrong. The first run may only remove the database that was set aside; the second repairs
/// nothing.
fn assert_healthy(home: &TestHome, what: &str) {
    for rest in [&["db.broken-"][..], &[]] {
        let (code, printed) = repair(home);
        let repaired = printed["repaired"].as_array().unwrap();
        let known = |one: &Value| rest.iter().any(|name| one.to_string().contains(name));
        assert!(code == Some(0) && repaired.iter().all(known), "{what}: {printed}");
        assert_eq!(printed["problems"].to_string(), "[]", "{what}: {printed}");
    }
}

/// Returns every byte of the files that cannot be rebuilt from others.
fn irreplaceable_files(home: &TestHome) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = home.files("journal").into_iter().chain(home.files("blobs")).chain(home.files("keys"));
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            copy(&path, &to.join(path.file_name().unwrap()));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

/// Returns a home whose store is in the state after a kill: the database is trusted without reading its bytes.
fn killed() -> TestHome {
    let home = TestHome::new();
    let daemon = home.daemon();
    drop(daemon);
    home
}

#[test]
fn a_missing_or_damaged_database_is_rebuilt() {
    let home = TestHome::new();
    let before = shown(&home);
    let db = home.data().join("db");
    fs::remove_dir_all(&db).unwrap();
    assert_repaired(&home, "rebuilt from the journal", &before);
    fs::remove_file(home.data().join("db.state")).unwrap();
    assert_repaired(&home, "rebuilt from the journal", &before);
    for name in ["db", "conf"] {
        let path = home.files("db").into_iter().find(|path| path.ends_with(name)).unwrap();
        flip(&path, 20);
        assert_repaired(&home, "rebuilt from the journal", &before);
    }
}

#[test]
fn an_older_database_is_brought_up_to_date() {
    let home = TestHome::new();
    let aside = home.0.path().join("aside");
    for name in ["db", "db.state"] {
        copy(&home.data().join(name), &aside.join(name));
    }
    let more = home.0.path().join("more");
    fs::create_dir(&more).unwrap();
    fs::write(more.join("conversations.json"), super::CONVERSATION).unwrap();
    assert_eq!(home.run(&["import", more.to_str().unwrap()]).status.code(), Some(0));
    let before = shown(&home);
    fs::remove_dir_all(home.data().join("db")).unwrap();
    for name in ["db", "db.state"] {
        copy(&aside.join(name), &home.data().join(name));
    }
    assert_repaired(&home, "the database was behind the journal", &before);
}

#[test]
fn unacknowledged_data_and_unfinished_files_are_removed() {
    let home = TestHome::new();
    let before = shown(&home);
    let segment = home.files("journal").pop().unwrap();
    let length = fs::metadata(&segment).unwrap().len();
    fs::File::options().append(true).open(&segment).unwrap().write_all(&[0x5a; 700]).unwrap();
    assert_repaired(&home, "were never acknowledged", &before);
    assert_eq!(fs::metadata(&segment).unwrap().len(), length);
    let unfinished = home.data().join("blobs/tmp/7-7");
    fs::create_dir_all(unfinished.parent().unwrap()).unwrap();
    fs::write(&unfinished, "half").unwrap();
    assert_repaired(&home, "1 unfinished file", &before);
    assert!(!unfinished.exists());
}

#[test]
fn a_flipped_bit_in_a_trusted_database_is_repaired_or_harmless() {
    let rounds: u64 =
        std::env::var("SATCHEL_FAULT_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let home = killed();
    let before = irreplaceable_files(&home);
    let aside = home.0.path().join("aside");
    for name in ["db", "db.state"] {
        copy(&home.data().join(name), &aside.join(name));
    }
    let log = home.data().join("db/db");
    let length = fs::metadata(&log).unwrap().len();
    let (mut repaired_count, places) = (0, 6 * rounds);
    for place in 0..places {
        fs::remove_dir_all(home.data().join("db")).unwrap();
        for name in ["db", "db.state"] {
            copy(&aside.join(name), &home.data().join(name));
        }
        let at = usize::try_from(length * place / places + 37).unwrap();
        flip(&log, at);
        let (code, printed) = repair(&home);
        assert_eq!(code, Some(0), "byte {at}: {printed}");
        repaired_count += u64::from(printed["repaired"].to_string().contains("rebuilt"));
        assert_healthy(&home, &format!("byte {at}"));
        let now = irreplaceable_files(&home);
        assert!(
            before.iter().all(|(path, bytes)| now[path].starts_with(bytes)),
            "byte {at}: the journal changed"
        );
    }
    assert!(repaired_count > 0, "no flip did any harm; the test showed nothing");
}

#[test]
fn a_damaged_or_missing_attachment_is_reported_with_a_working_fix() {
    let home = TestHome::new();
    let blob = home.files("blobs").remove(0);
    let bytes = fs::read(&blob).unwrap();
    for (reason, corrupt) in [
        ("FILE_DAMAGED", Box::new(|path: &Path| flip(path, 3)) as Box<dyn Fn(&Path)>),
        ("FILE_DAMAGED", Box::new(|path: &Path| fs::write(path, "").unwrap())),
        ("FILE_MISSING", Box::new(|path: &Path| fs::remove_file(path).unwrap())),
    ] {
        corrupt(&blob);
        let before = irreplaceable_files(&home);
        let (code, printed) = repair(&home);
        let problem = &printed["problems"][0];
        assert_eq!((code, problem["reason"].as_str()), (Some(1), Some(reason)), "{printed}");
        assert_eq!(printed["repaired"].to_string(), "[]", "{printed}");
        assert_eq!(irreplaceable_files(&home), before, "{reason}: something was changed");
        // Follows the suggested fix literally.
        let fix = problem["fix"].as_str().unwrap();
        assert!(fix.contains("import the export again") && fix.contains("--again"), "{fix}");
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
        let again = home.run(&["import", "--again", sample.to_str().unwrap()]);
        assert_eq!(again.status.code(), Some(0), "{}", super::stderr(&again));
        assert!(fs::read(&blob).is_ok_and(|now| now == bytes), "{reason}: the remedy does not help");
        assert_healthy(&home, reason);
    }
}

#[test]
fn a_damaged_journal_is_reported_and_not_changed() {
    let home = TestHome::new();
    assert_eq!(home.run(&["backup", &home.path("b.zip")]).status.code(), Some(0));
    let state = shown(&home);
    let segment = home.files("journal").remove(0);
    flip(&segment, fs::read(&segment).unwrap().len() / 2);
    let before = irreplaceable_files(&home);
    for _ in 0..2 {
        let (code, printed) = repair(&home);
        let problem = &printed["problems"][0];
        assert_eq!((code, problem["reason"].as_str()), (Some(1), Some("JOURNAL_DAMAGED")), "{printed}");
        let message = problem["message"].as_str().unwrap();
        assert!(
            message.contains("00000001.seg") && message.contains("at byte"),
            "where is not said: {printed}"
        );
        assert_eq!(irreplaceable_files(&home), before, "something was changed");
    }
    // The remedy: a backup replaces the data directory.
    let restored = home.run(&["restore", &home.path("b.zip"), "--replace"]);
    assert_eq!(restored.status.code(), Some(0), "{}", super::stderr(&restored));
    assert_healthy(&home, "restored");
    let mut now = shown(&home);
    let mut before = state;
    for list in now.iter_mut().chain(&mut before) {
        list["store_id"].take();
    }
    assert_eq!(now, before);
}
