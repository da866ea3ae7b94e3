#![expect(clippy::unwrap_used, reason = "tests")]

use std::{collections::BTreeSet, fs, os::unix::fs::symlink};

use tempfile::TempDir;

use super::*;

/// The folders of two projects, with a session, its subagent and notes in one of them.
const FILES: [&str; 7] = [
    "bakery/a.jsonl",
    "bakery/a/subagents/agent-1.jsonl",
    "bakery/a/tool-results/one.txt",
    "bakery/b.jsonl",
    "bakery/memory/flour.md",
    "garden/2026/c.jsonl",
    "garden/photo.jpg",
];

fn folder_with(files: &[&str]) -> (TempDir, SessionFolder) {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{}\n").unwrap();
    }
    let folder = SessionFolder(OsFolder::new(dir.path(), true, &[], Path::new("/nonexistent")));
    (dir, folder)
}

fn inspect(folder: &SessionFolder, name: &str) -> Inspection {
    folder.inspect(OsStr::new(name)).unwrap()
}

fn stamp(folder: &SessionFolder, name: &str) -> Option<Stamp> {
    inspect(folder, name).observation.map(|observation| observation.stamp)
}

#[test]
fn sessions_and_folders_are_listed() {
    let (_dir, folder) = folder_with(&FILES);
    let (names, truncated) = folder.list().unwrap();
    assert!(!truncated && names.is_sorted());
    let (files, folders): (BTreeSet<&str>, BTreeSet<&str>) =
        names.iter().map(|name| name.to_str().unwrap()).partition(|name| names::has_lines(OsStr::new(name)));
    assert_eq!(files, BTreeSet::from(["bakery/a.jsonl", "bakery/b.jsonl", "garden/2026/c.jsonl"]));
    assert!(folders.contains("bakery") && folders.contains("bakery/a/subagents"), "{folders:?}");
}

#[test]
fn a_change_below_a_session_changes_its_stamp_only() {
    let (dir, folder) = folder_with(&FILES);
    let before = ["bakery/a.jsonl", "bakery/b.jsonl"].map(|name| stamp(&folder, name).unwrap());
    let inner = "bakery/a/tool-results/one.txt";
    assert_eq!(
        inspect(&folder, inner),
        Inspection { related: vec!["bakery/a.jsonl".into()], ..Inspection::default() }
    );
    fs::write(dir.path().join(inner), "more than before").unwrap();
    let after = ["bakery/a.jsonl", "bakery/b.jsonl"].map(|name| stamp(&folder, name).unwrap());
    assert!(before[0] != after[0] && before[1] == after[1]);
    assert_eq!(before[0].bytes, after[0].bytes);
}

#[test]
fn notes_belong_to_the_folder_with_the_sessions() {
    let (dir, folder) = folder_with(&FILES);
    let note = "bakery/memory/flour.md";
    assert_eq!(inspect(&folder, note).related, ["bakery"]);
    let before = stamp(&folder, "bakery").unwrap();
    fs::write(dir.path().join("bakery/b.jsonl"), "{}\n{}\n").unwrap();
    assert_eq!(stamp(&folder, "bakery"), Some(before), "sessions are names of their own");
    fs::write(dir.path().join(note), "Rye needs more water.").unwrap();
    assert_ne!(stamp(&folder, "bakery"), Some(before));
    for name in ["garden", "garden/2026", "bakery/memory", "bakery/a"] {
        assert_eq!(stamp(&folder, name), None, "{name} has no notes beside sessions");
    }
}

#[test]
fn notes_of_a_project_with_its_own_file_are_a_name() {
    let files = [
        "p/.project_root",
        "p/chats/a.jsonl",
        "p/memory/MEMORY.md",
        "p/memory/other.md",
        "q/memory/MEMORY.md",
    ];
    let (dir, folder) = folder_with(&files);
    let note = "p/memory/MEMORY.md";
    assert!(folder.list().unwrap().0.contains(&note.into()));
    let before = stamp(&folder, note).unwrap();
    fs::write(dir.path().join(note), "Likes rye.").unwrap();
    assert_ne!(stamp(&folder, note), Some(before));
    for other in ["p/memory/other.md", "q/memory/MEMORY.md"] {
        assert_eq!(inspect(&folder, other), Inspection::default(), "{other}");
        assert!(!folder.list().unwrap().0.contains(&other.into()), "{other}");
    }
}

#[test]
fn a_folder_is_watched_and_names_what_is_in_it() {
    let (dir, folder) = folder_with(&FILES);
    let Inspection { folders, related, .. } = inspect(&folder, "bakery");
    assert_eq!(folders, [dir.path().join("bakery")]);
    assert_eq!(related, ["bakery/a.jsonl", "bakery/b.jsonl", "bakery/a", "bakery/memory"]);
}

#[test]
fn links_and_hidden_names_are_not_followed() {
    let (dir, folder) = folder_with(&["a.jsonl", ".cache/b.jsonl", "real/c.jsonl"]);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.jsonl"), "{}\n").unwrap();
    symlink(outside.path(), dir.path().join("link")).unwrap();
    symlink(outside.path().join("secret.jsonl"), dir.path().join("file.jsonl")).unwrap();
    let (names, _) = folder.list().unwrap();
    assert_eq!(names, ["a.jsonl", "real", "real/c.jsonl"]);
    for name in [
        "link/secret.jsonl",
        "file.jsonl",
        ".cache/b.jsonl",
        "a.jsonl/x.jsonl",
        "gone/x.jsonl",
        "..",
        "",
        "real/../a.jsonl",
    ] {
        assert_eq!(inspect(&folder, name), Inspection::default(), "{name}");
    }
}

#[test]
fn a_file_that_is_rewritten_must_be_complete() {
    let (dir, folder) = folder_with(&["a.jsonl", "b.json"]);
    for name in ["a.jsonl", "b.json"] {
        fs::write(dir.path().join(name), "{\"a\":").unwrap();
    }
    assert!(folder.check_complete(OsStr::new("a.jsonl")).unwrap().is_ok());
    assert!(folder.check_complete(OsStr::new("b.json")).unwrap().is_err());
    assert!(folder.check_complete(OsStr::new("gone.json")).unwrap().is_err());
}
