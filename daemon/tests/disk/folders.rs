//! Folders that are not data directories, or belong to another user, are refused and left unchanged.

#![expect(clippy::print_stderr, reason = "a test that cannot run says so")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::Path,
};

use super::{copy, data, files, imported, ok};
use crate::home::{TestHome, code, stderr};

/// The user `nobody`, who owns nothing, on every Linux.
const NOBODY: u32 = 65_534;

fn state(folder: &Path) -> (u32, u32, i64, Vec<(std::path::PathBuf, Vec<u8>)>) {
    let about = fs::metadata(folder).unwrap();
    let content = files(folder).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    (about.mode(), about.uid(), about.mtime_nsec(), content)
}

/// Returns commands that open a data directory, including those that create one.
fn commands(home: &TestHome) -> Vec<Vec<String>> {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/chatgpt-export");
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let (backup, key, sample) = (at("backup.zip"), at("data.key"), sample.to_str().unwrap().to_owned());
    [
        vec!["serve"],
        vec!["import", &sample],
        vec!["apply", &sample],
        vec!["memories", "add", "tea", "--type", "fact"],
        vec!["keys", "encrypt", "--key-file", &key],
        vec!["restore", &backup],
        vec!["restore", "--replace", &backup],
        vec!["doctor"],
        vec!["doctor", "--repair"],
        vec!["rebuild"],
        vec!["status"],
        vec!["backup", "/nowhere/b.zip"],
        vec!["memories", "list"],
    ]
    .into_iter()
    .map(|words| words.into_iter().map(str::to_owned).collect())
    .collect()
}

fn assert_refused(home: &TestHome, folder: &Path, expected: &str) {
    let before = state(folder);
    for words in commands(home) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = home.command(&words).args(["--data-dir", folder.to_str().unwrap()]).output().unwrap();
        assert_ne!(code(&output), Some(0), "{words:?}");
        assert!(stderr(&output).contains(expected), "{words:?}: {}", stderr(&output));
        assert!(state(folder) == before, "{words:?} changed {}", folder.display());
    }
}

#[test]
fn a_folder_with_other_content_is_refused_and_not_changed() {
    let home = imported();
    ok(&home.run(&["backup", home.path().join("backup.zip").to_str().unwrap()]));
    let folder = home.path().join("web");
    home.file("web/index.html", "<p>hello");
    home.file("web/db/users.sql", "select");
    home.file("web/journal/monday.txt", "rain");
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    assert_refused(&home, &folder, "is not a data directory of satchel: it holds \"index.html\"");
    let linked = home.path().join("linked");
    std::os::unix::fs::symlink(&folder, &linked).unwrap();
    assert_refused(&home, &linked, "is not a data directory");
}

/// Files in these folders cannot be read or written like others, so only the mode of the folder shows that nothing
/// was changed.
#[test]
fn a_system_folder_is_refused_and_keeps_its_mode() {
    let home = TestHome::new();
    for system in ["/sys", "/proc"] {
        let mode = || fs::metadata(system).unwrap().mode();
        let before = mode();
        for words in [&["import", "/nowhere"] as &[&str], &["serve"], &["doctor"], &["status"]] {
            let output = home.command(words).args(["--data-dir", system]).output().unwrap();
            assert_ne!(code(&output), Some(0), "{words:?}");
            let printed = stderr(&output);
            assert!(
                printed.contains("is not a data directory") || printed.contains("belongs to"),
                "{printed}"
            );
            assert_eq!(mode(), before, "{words:?}");
        }
    }
}

#[test]
fn an_empty_folder_is_accepted_by_commands_that_create_a_data_directory() {
    let home = imported();
    let backup = home.path().join("backup.zip");
    ok(&home.run(&["backup", backup.to_str().unwrap()]));
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/chatgpt-export");
    let begin: [&[&str]; 3] = [
        &["import", sample.to_str().unwrap()],
        &["memories", "add", "tea", "--type", "fact"],
        &["restore", backup.to_str().unwrap()],
    ];
    for (number, words) in begin.iter().enumerate() {
        let folder = home.path().join(format!("empty-{number}"));
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        let with =
            |words: &[&str]| home.command(words).args(["--data-dir", folder.to_str().unwrap()]).output();
        assert_eq!(code(&with(&["status"]).unwrap()), Some(4), "nothing begins by a look");
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o755);
        ok(&with(words).unwrap());
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700, "{words:?}");
        ok(&with(&["status"]).unwrap());
    }
}

#[test]
fn a_data_directory_of_another_user_is_refused_even_for_root() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root gives folders to others");
        return;
    }
    let home = imported();
    ok(&home.run(&["backup", home.path().join("backup.zip").to_str().unwrap()]));
    let folder = home.path().join("theirs");
    copy(&data(&home), &folder);
    chown(&folder, Some(NOBODY), None).unwrap();
    assert_refused(&home, &folder, "belongs to the user with the id 65534");
    let empty = home.path().join("empty");
    fs::create_dir(&empty).unwrap();
    chown(&empty, Some(NOBODY), None).unwrap();
    assert_refused(&home, &empty, "--allow-other-owner");
    let words = ["memories", "list", "--data-dir", folder.to_str().unwrap(), "--allow-other-owner"];
    ok(&home.run(&words));
}
