//! Tests `memories purge` and `conversations purge` through the program.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use home::{TestHome, code, stderr, stop};
use serde_json::Value;

const PLANTED: &str = "planted-Medlar-2210";

fn ok(output: &Output) -> String {
    assert_eq!(code(output), Some(0), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&ok(output)).unwrap()
}

/// Returns the files of the data directory that contain the planted words.
fn readable(home: &TestHome) -> Vec<PathBuf> {
    let mut folders = vec![home.path().join(".local/share/satchel")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.is_file() && holds(&path) {
                found.push(path);
            }
        }
    }
    found
}

fn holds(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap();
    bytes.windows(PLANTED.len()).any(|window| window == PLANTED.as_bytes())
}

/// Returns a home with a memory that contains the planted words, and the id of that memory.
fn planted() -> (TestHome, String) {
    let home = TestHome::new();
    ok(&home.run(&["memories", "add", &format!("The door opens with {PLANTED}")]));
    let listed = json(&home.run(&["memories", "list", "--json"]));
    let id = listed["memories"][0]["id"].as_str().unwrap().to_owned();
    assert!(!readable(&home).is_empty());
    (home, id)
}

#[test]
fn a_purge_requires_the_full_id() {
    let (home, id) = planted();
    for words in [&["memories", "purge", &id][..], &["memories", "purge", &id[..6], "--yes"]] {
        let refused = home.run(words);
        assert_eq!(code(&refused), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(&format!("--confirm {id}")), "{}", stderr(&refused));
    }
    let other = home.run(&["memories", "purge", &id, "--confirm", &id[..6]]);
    assert_eq!(code(&other), Some(2), "{}", stderr(&other));
    let listed = ok(&home.run(&["memories", "purge", &id[..6], "--dry-run"]));
    assert!(
        listed.contains("would be erased") && listed.contains(&id) && !listed.contains(PLANTED),
        "{listed}"
    );
    assert!(!readable(&home).is_empty(), "nothing was erased");
    let unknown = home.run(&["memories", "purge", "00000000-0000-5000-8000-000000000000", "--dry-run"]);
    assert_ne!(code(&unknown), Some(0));
}

#[test]
fn erased_content_is_gone_and_the_erasure_is_shown() {
    let (home, id) = planted();
    let done = ok(&home.run(&["memories", "purge", &id[..8], "--confirm", &id]));
    assert!(done.contains("exports and backups that you made before"), "{done}");
    assert_eq!(readable(&home), Vec::<PathBuf>::new());
    let shown = ok(&home.run(&["memories", "show", &id]));
    assert!(shown.contains("you erased it permanently") && shown.contains("sha256:"), "{shown}");
    let history = ok(&home.run(&["memories", "history", &id]));
    assert!(history.contains("purged") && history.contains("by owner"), "{history}");
    ok(&home.run(&["doctor"]));
    ok(&home.run(&["rebuild"]));
    assert_eq!(readable(&home), Vec::<PathBuf>::new());
    let again = home.run(&["memories", "add", &format!("The door opens with {PLANTED}")]);
    assert!(stderr(&again).contains("erased for good"), "{}", stderr(&again));
    assert_eq!(readable(&home), Vec::<PathBuf>::new());
    let twice = home.run(&["memories", "purge", &id, "--confirm", &id]);
    assert!(stderr(&twice).contains("nothing left to erase"), "{}", stderr(&twice));
}

#[test]
fn a_purge_is_refused_while_a_daemon_runs() {
    let (home, id) = planted();
    let daemon = home.serve();
    let refused = home.run(&["memories", "purge", &id, "--confirm", &id]);
    stop(daemon);
    assert_eq!(code(&refused), Some(4), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("stop the daemon first"), "{}", stderr(&refused));
    ok(&home.run(&["memories", "purge", &id, "--confirm", &id]));
    assert_eq!(readable(&home), Vec::<PathBuf>::new());
}

#[test]
fn obstacles_are_reported_before_anything_is_erased() {
    let (home, id) = planted();
    let (journal, there) = (home.path().join(".local/share/satchel/journal"), home.path().join("large disk"));
    fs::rename(&journal, &there).unwrap();
    std::os::unix::fs::symlink(&there, &journal).unwrap();
    let refused = home.run(&["memories", "purge", &id, "--confirm", &id]);
    let printed = stderr(&refused);
    assert!(code(&refused) != Some(0) && printed.contains("nothing was erased"), "{printed}");
    let planned = home.run(&["memories", "purge", &id, "--dry-run"]);
    assert!(
        ok(&planned).contains(&id) && stderr(&planned).contains("to resolve before erasing"),
        "{planned:?}"
    );
    for printed in [printed, stderr(&planned)] {
        assert!(printed.contains("satchel/journal") && printed.contains("it is a link"), "{printed}");
    }
    let shown = ok(&home.run(&["memories", "show", &id]));
    assert!(shown.contains(PLANTED), "it is still shown: {shown}");
    fs::remove_file(&journal).unwrap();
    fs::rename(&there, &journal).unwrap();
    ok(&home.run(&["memories", "purge", &id, "--confirm", &id]));
    assert_eq!(readable(&home), Vec::<PathBuf>::new());
}

#[test]
fn a_rebuild_completes_an_interrupted_erasure() {
    let (home, id) = planted();
    let data = home.path().join(".local/share/satchel");
    // The state after a kill between the removal of the old journal and the move of the new one into its place.
    fs::create_dir(data.join("purging")).unwrap();
    fs::rename(data.join("journal"), data.join("purging/journal")).unwrap();
    ok(&home.run(&["rebuild"]));
    assert!(data.join("journal").is_dir() && !data.join("purging").exists());
    ok(&home.run(&["memories", "show", &id]));
}
