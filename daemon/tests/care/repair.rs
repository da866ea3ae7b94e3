//! Tests `doctor --repair`: each kind of damage is repaired and reported, or reported with a remedy that works, and
//! nothing gets worse.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{Home, flip, json};

/// Runs `doctor --repair` and returns its exit code and output.
fn repair(home: &Home) -> (Option<i32>, Value) {
    let output = home.run(&["doctor", "--repair", "--json"]);
    (output.status.code(), json(&output))
}

/// Returns all that the person sees: memories, conversations and imports.
fn shown(home: &Home) -> Vec<Value> {
    let lists =
        [["memories", "list", "--json"], ["conversations", "list", "--json"], ["imports", "list", "--json"]];
    lists.iter().map(|words| json(&home.run(words))).collect()
}

/// Checks that the damage is repaired, that `words` report it, that the second run finds nothing, and that all data
/// is there.
fn mended(home: &Home, words: &str, before: &[Value]) {
    let (code, told) = repair(home);
    assert_eq!((code, &told["healthy"]), (Some(0), &Value::Bool(true)), "{words}: {told}");
    assert!(told["repaired"].to_string().contains(words), "{words}: {told}");
    well(home, words);
    assert_eq!(shown(home), before, "{words}");
}

/// Checks that nothing is wrong. The first run may only remove the database that was set aside; the second repairs
/// nothing.
fn well(home: &Home, what: &str) {
    for rest in [&["db.broken-"][..], &[]] {
        let (code, told) = repair(home);
        let repaired = told["repaired"].as_array().unwrap();
        let known = |one: &Value| rest.iter().any(|name| one.to_string().contains(name));
        assert!(code == Some(0) && repaired.iter().all(known), "{what}: {told}");
        assert_eq!(told["problems"].to_string(), "[]", "{what}: {told}");
    }
}

/// Returns every byte of the files that cannot be rebuilt from others.
fn kept(home: &Home) -> BTreeMap<PathBuf, Vec<u8>> {
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
fn killed() -> Home {
    let home = Home::new();
    let daemon = home.daemon();
    drop(daemon);
    home
}

#[test]
fn a_database_that_is_gone_old_or_damaged_is_built_again() {
    let home = Home::new();
    let before = shown(&home);
    let db = home.data().join("db");
    fs::remove_dir_all(&db).unwrap();
    mended(&home, "built again from the journal", &before);
    fs::remove_file(home.data().join("db.state")).unwrap();
    mended(&home, "built again from the journal", &before);
    for name in ["db", "conf"] {
        let path = home.files("db").into_iter().find(|path| path.ends_with(name)).unwrap();
        flip(&path, 20);
        mended(&home, "built again from the journal", &before);
    }
}

#[test]
fn a_database_of_an_older_day_is_brought_up() {
    let home = Home::new();
    let aside = home.0.path().join("aside");
    for name in ["db", "db.state"] {
        copy(&home.data().join(name), &aside.join(name));
    }
    let more = home.0.path().join("more");
    fs::create_dir(&more).unwrap();
    fs::write(more.join("conversations.json"), super::TALK).unwrap();
    assert_eq!(home.run(&["import", more.to_str().unwrap()]).status.code(), Some(0));
    let before = shown(&home);
    fs::remove_dir_all(home.data().join("db")).unwrap();
    for name in ["db", "db.state"] {
        copy(&aside.join(name), &home.data().join(name));
    }
    mended(&home, "the database was behind the journal", &before);
}

#[test]
fn what_was_never_confirmed_is_cut_and_unfinished_files_go() {
    let home = Home::new();
    let before = shown(&home);
    let segment = home.files("journal").pop().unwrap();
    let length = fs::metadata(&segment).unwrap().len();
    fs::File::options().append(true).open(&segment).unwrap().write_all(&[0x5a; 700]).unwrap();
    mended(&home, "were never confirmed were cut", &before);
    assert_eq!(fs::metadata(&segment).unwrap().len(), length);
    let unfinished = home.data().join("blobs/tmp/7-7");
    fs::create_dir_all(unfinished.parent().unwrap()).unwrap();
    fs::write(&unfinished, "half").unwrap();
    mended(&home, "1 unfinished file", &before);
    assert!(!unfinished.exists());
}

#[test]
fn a_flipped_bit_anywhere_in_a_believed_database_is_mended_or_harmless() {
    let rounds: u64 =
        std::env::var("SATCHEL_FAULT_ROUNDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let home = killed();
    let before = kept(&home);
    let aside = home.0.path().join("aside");
    for name in ["db", "db.state"] {
        copy(&home.data().join(name), &aside.join(name));
    }
    let log = home.data().join("db/db");
    let length = fs::metadata(&log).unwrap().len();
    let (mut mended, places) = (0, 6 * rounds);
    for place in 0..places {
        fs::remove_dir_all(home.data().join("db")).unwrap();
        for name in ["db", "db.state"] {
            copy(&aside.join(name), &home.data().join(name));
        }
        let at = usize::try_from(length * place / places + 37).unwrap();
        flip(&log, at);
        let (code, told) = repair(&home);
        assert_eq!(code, Some(0), "byte {at}: {told}");
        mended += u64::from(told["repaired"].to_string().contains("built again"));
        well(&home, &format!("byte {at}"));
        let now = kept(&home);
        assert!(
            before.iter().all(|(path, bytes)| now[path].starts_with(bytes)),
            "byte {at}: the journal changed"
        );
    }
    assert!(mended > 0, "no flip did any harm; the test showed nothing");
}

#[test]
fn an_attachment_that_is_damaged_or_gone_is_told_with_a_remedy_that_works() {
    let home = Home::new();
    let blob = home.files("blobs").remove(0);
    let bytes = fs::read(&blob).unwrap();
    for (reason, harm) in [
        ("FILE_DAMAGED", Box::new(|path: &Path| flip(path, 3)) as Box<dyn Fn(&Path)>),
        ("FILE_DAMAGED", Box::new(|path: &Path| fs::write(path, "").unwrap())),
        ("FILE_MISSING", Box::new(|path: &Path| fs::remove_file(path).unwrap())),
    ] {
        harm(&blob);
        let before = kept(&home);
        let (code, told) = repair(&home);
        let problem = &told["problems"][0];
        assert_eq!((code, problem["reason"].as_str()), (Some(1), Some(reason)), "{told}");
        assert_eq!(told["repaired"].to_string(), "[]", "{told}");
        assert_eq!(kept(&home), before, "{reason}: something was changed");
        // Follows the suggested fix literally.
        let fix = problem["fix"].as_str().unwrap();
        assert!(fix.contains("import the export again") && fix.contains("--again"), "{fix}");
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
        let again = home.run(&["import", "--again", sample.to_str().unwrap()]);
        assert_eq!(again.status.code(), Some(0), "{}", super::stderr(&again));
        assert!(fs::read(&blob).is_ok_and(|now| now == bytes), "{reason}: the remedy does not help");
        well(&home, reason);
    }
}

#[test]
fn a_damaged_journal_is_told_with_what_is_left_and_nothing_is_written() {
    let home = Home::new();
    assert_eq!(home.run(&["backup", &home.path("b.zip")]).status.code(), Some(0));
    let whole = shown(&home);
    let segment = home.files("journal").remove(0);
    flip(&segment, fs::read(&segment).unwrap().len() / 2);
    let before = kept(&home);
    for _ in 0..2 {
        let (code, told) = repair(&home);
        let problem = &told["problems"][0];
        assert_eq!((code, problem["reason"].as_str()), (Some(1), Some("JOURNAL_DAMAGED")), "{told}");
        let message = problem["message"].as_str().unwrap();
        assert!(message.contains("00000001.seg") && message.contains("at byte"), "where is not said: {told}");
        assert_eq!(kept(&home), before, "something was changed");
    }
    // The remedy: a backup replaces the data directory.
    let restored = home.run(&["restore", &home.path("b.zip"), "--replace"]);
    assert_eq!(restored.status.code(), Some(0), "{}", super::stderr(&restored));
    well(&home, "restored");
    let mut now = shown(&home);
    let mut then = whole;
    for list in now.iter_mut().chain(&mut then) {
        list["store_id"].take();
    }
    assert_eq!(now, then);
}
