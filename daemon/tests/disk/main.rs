//! Tests of the disk: damaged bits in any file, folders of other users or with other content, and outputs inside
//! the data directory.

#![expect(clippy::unwrap_used, reason = "tests")]

mod flips;
mod folders;
#[path = "../home/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
mod home;
mod outputs;
mod pipes;

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Output,
};

use home::{TestHome, code, stderr};

/// Returns a home with sample conversations imported.
fn imported() -> TestHome {
    let home = TestHome::new();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/chatgpt-export");
    ok(&home.run(&["import", sample.to_str().unwrap()]));
    home
}

fn data(home: &TestHome) -> PathBuf {
    home.path().join(".local/share/satchel")
}

fn ok(output: &Output) -> String {
    assert_eq!(code(output), Some(0), "{}", stderr(output));
    text(output)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Checks that a program ended with a result or an error of its own, not by a signal or a panic.
fn assert_clean_exit(output: &Output, what: &str) {
    let printed = stderr(output);
    assert_eq!(output.status.signal(), None, "{what}: {printed}");
    assert!(code(output).is_some_and(|code| code < 100), "{what}: {printed}");
    assert!(!printed.contains("panicked"), "{what}: {printed}");
    assert!(code(output) == Some(0) || !printed.is_empty() || !output.stdout.is_empty(), "{what}: no output");
}

/// Returns the regular files below a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// Copies a folder with everything in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for path in files(from) {
        let place = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(path, place).unwrap();
    }
}
